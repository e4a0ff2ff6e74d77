//! Whether any line of a file matches a regular expression, in bounded memory.

use std::io::{self, Read};

use memchr::{memchr, memrchr};
use regex_automata::meta::{BuildError, Regex};
use regex_automata::util::syntax;

/// The size of a read.
pub(crate) const AT_ONCE: usize = 64 << 10;
/// A file with a longer line is skipped.
pub(crate) const LONGEST_LINE: usize = 16 << 20;
/// Limit of a compiled pattern, in bytes.
const LARGEST_PATTERN: usize = 10 << 20;

/// The pattern that a line must match.
#[derive(Debug, Clone)]
pub(crate) struct Pattern(Regex);

#[derive(Debug, thiserror::Error)]
pub(crate) enum PatternError {
    #[error("it names a line break, and lines are searched one by one")]
    LineBreak,
    #[error("{}", reason(.0))]
    Bad(Box<BuildError>),
}

/// The parser's message, if the parser failed.
fn reason(error: &BuildError) -> String {
    match (error.syntax_error(), error.size_limit()) {
        (Some(syntax), _) => syntax.to_string(),
        (None, Some(_)) => "it is too large".to_owned(),
        (None, None) => error.to_string(),
    }
}

impl Pattern {
    pub(crate) fn new(pattern: &str) -> Result<Self, PatternError> {
        if names_line_break(pattern) {
            return Err(PatternError::LineBreak);
        }
        let built = Regex::builder()
            .syntax(syntax::Config::new().multi_line(true).utf8(false))
            .configure(Regex::config().utf8_empty(false).nfa_size_limit(Some(LARGEST_PATTERN)))
            .build(pattern);
        built.map(Self).map_err(|error| PatternError::Bad(Box::new(error)))
    }

    /// Whether one of these lines matches. The last may have no line break.
    fn matches(&self, lines: &[u8]) -> bool {
        let mut from = 0;
        while from <= lines.len() {
            let input = regex_automata::Input::new(lines).range(from..);
            let Some(found) = self.0.search(&input) else { return false };
            if memchr(b'\n', &lines[found.range()]).is_none() {
                return true;
            }
            // A match across lines does not count; its first line may match alone.
            let start = memrchr(b'\n', &lines[..found.start()]).map_or(0, |at| at + 1);
            let end = memchr(b'\n', &lines[found.start()..]).map_or(lines.len(), |at| found.start() + at);
            if self.0.is_match(&lines[start..end]) {
                return true;
            }
            from = end + 1;
        }
        false
    }
}

fn names_line_break(pattern: &str) -> bool {
    let mut escaped = false;
    pattern.chars().any(|character| {
        let names_it = character == '\n' || (escaped && character == 'n');
        escaped = character == '\\' && !escaped;
        names_it
    })
}

/// Reads and searches files one after another; each thread has its own.
#[derive(Debug)]
pub(crate) struct LineReader {
    pattern: Pattern,
    buffer: Vec<u8>,
}

impl LineReader {
    pub(crate) fn new(pattern: Pattern) -> Self {
        Self { pattern, buffer: Vec::with_capacity(AT_ONCE) }
    }

    /// A file with a NUL byte is binary, except UTF-16 with a byte order mark.
    pub(crate) fn has_match(&mut self, mut source: impl Read) -> io::Result<bool> {
        self.buffer.clear();
        loop {
            let before = self.buffer.len();
            let read = source.by_ref().take(AT_ONCE as u64).read_to_end(&mut self.buffer)?;
            if before == 0 && is_wide(&self.buffer) {
                return self.has_wide_match(source);
            }
            if memchr(0, &self.buffer[before..]).is_some() {
                return Ok(false);
            }
            let is_last = read < AT_ONCE;
            let whole = if is_last { Some(self.buffer.len()) } else { memrchr(b'\n', &self.buffer) };
            if let Some(end) = whole {
                let lines = &self.buffer[..end];
                let lines = if is_last { lines.strip_suffix(b"\n").unwrap_or(lines) } else { lines };
                if !self.buffer.is_empty() && self.pattern.matches(lines) {
                    return Ok(true);
                }
                if is_last {
                    return Ok(false);
                }
                self.buffer.drain(..=end);
            }
            if self.buffer.len() > LONGEST_LINE {
                return Err(io::Error::other("a line is too long"));
            }
        }
    }

    /// UTF-16 files are rare and small: read at once.
    fn has_wide_match(&mut self, source: impl Read) -> io::Result<bool> {
        source.take(LONGEST_LINE as u64).read_to_end(&mut self.buffer)?;
        let (mark, units) = self.buffer.split_at(2);
        let unit = if mark == LITTLE { u16::from_le_bytes } else { u16::from_be_bytes };
        let units = units.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
        let text: String = char::decode_utf16(units).map(|unit| unit.unwrap_or('\u{fffd}')).collect();
        let lines = text.strip_suffix('\n').unwrap_or(&text);
        Ok(!text.is_empty() && self.pattern.matches(lines.as_bytes()))
    }
}

const LITTLE: [u8; 2] = [0xff, 0xfe];
const BIG: [u8; 2] = [0xfe, 0xff];

fn is_wide(begin: &[u8]) -> bool {
    begin.starts_with(&LITTLE) || begin.starts_with(&BIG)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_match_is_within_one_line() {
        let cases = [
            ("a", "a", true),
            ("^b$", "a\nb\nc", true),
            ("a\\s+b", "a\nb", false),
            ("a\\s+b", "a\nb\na  b\n", true),
            ("[^x]+c", "a\nb\nc", false),
            ("^$", "", false),
            ("^$", "\n", true),
            ("^$", "a\n", false),
            ("^$", "a\n\nb", true),
            ("c\\z", "abc\n", true),
            ("(?i)STRASSE", "strasse", true),
            ("\\w+é", "caf\u{e9}", true),
            ("\\p{Lu}", "é É", true),
            ("x\\\\n", "x\\n", true),
        ];
        for (pattern, text, expected) in cases {
            let mut reader = LineReader::new(Pattern::new(pattern).expect("a pattern"));
            assert_eq!(reader.has_match(text.as_bytes()).expect("read"), expected, "{pattern} in {text:?}");
        }
    }

    #[test]
    fn the_reader_agrees_with_checking_each_line() {
        for pattern in ["needle", "^y?needle$", "e\\s*n", "x$"] {
            let pattern = Pattern::new(pattern).expect("a pattern");
            for size in [0, 1, AT_ONCE - 9, AT_ONCE - 1, AT_ONCE, AT_ONCE + 1, 3 * AT_ONCE] {
                for end in ["needle", "needle\n", "\nneedle\ny", "\n"] {
                    let text = "x\n".repeat(size / 2) + &"y".repeat(size % 2) + end;
                    let lines = text.strip_suffix('\n').unwrap_or(&text);
                    let expected = lines.split('\n').any(|line| pattern.0.is_match(line));
                    let mut reader = LineReader::new(pattern.clone());
                    assert_eq!(reader.has_match(text.as_bytes()).expect("read"), expected, "{size} {end:?}");
                }
            }
        }
    }
}
