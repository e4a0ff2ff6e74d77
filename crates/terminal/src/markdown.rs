//! Markdown, a line at a time: what came whole is shown for good while the rest is still being written.

use crate::rows::{Ink, ScreenRow};
use crate::safe::readable;

/// Text that grows. Whole lines come out; the last, unfinished one can be looked at.
#[derive(Debug, Default)]
pub(crate) struct MarkdownStream {
    line: String,
    /// The marks that opened a block of code.
    fence: Option<String>,
    has_said_something: bool,
    /// An empty line that is shown once something follows.
    owes_gap: bool,
}

impl MarkdownStream {
    /// More text; the rows of all lines that are whole now.
    pub(crate) fn push(&mut self, text: &str) -> Vec<ScreenRow> {
        self.line.push_str(text);
        let mut rows = Vec::new();
        while let Some(end) = self.line.find('\n') {
            let line: String = self.line.drain(..=end).collect();
            self.whole(line.trim_end_matches(['\n', '\r']), &mut rows);
        }
        rows
    }

    /// The last line, and nothing more follows.
    pub(crate) fn finish(&mut self) -> Vec<ScreenRow> {
        let line = std::mem::take(&mut self.line);
        let mut rows = Vec::new();
        if !line.is_empty() {
            self.whole(&line, &mut rows);
        }
        *self = Self::default();
        rows
    }

    /// The line that is being written.
    pub(crate) fn unfinished(&self) -> Option<ScreenRow> {
        let line = readable(&self.line);
        (!line.trim().is_empty()).then(|| match self.fence {
            Some(_) => code(&line),
            None => prose(&line),
        })
    }

    fn whole(&mut self, line: &str, rows: &mut Vec<ScreenRow>) {
        let line = readable(line);
        if let Some(fence) = &self.fence {
            if line.trim_start().starts_with(fence.as_str()) && line.trim().chars().all(|c| fence.contains(c))
            {
                self.fence = None;
            } else {
                rows.push(code(&line));
            }
            return;
        }
        if line.trim().is_empty() {
            self.owes_gap = self.has_said_something;
            return;
        }
        if std::mem::take(&mut self.owes_gap) {
            rows.push(ScreenRow::default());
        }
        self.has_said_something = true;
        let start = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| start.starts_with(mark));
        match mark {
            Some(mark) if !start[mark.len()..].contains('`') => {
                let length = start.chars().take_while(|c| mark.starts_with(*c)).count();
                self.fence = Some(start[..length].to_owned());
            }
            _ => rows.push(prose(&line)),
        }
    }
}

/// A whole text.
pub(crate) fn markdown(text: &str) -> Vec<ScreenRow> {
    let mut stream = MarkdownStream::default();
    let mut rows = stream.push(text);
    rows.extend(stream.finish());
    rows
}

fn code(line: &str) -> ScreenRow {
    ScreenRow::new(Ink::Busy, format!("  {line}")).hanging(2).literal()
}

/// One line outside of a block of code.
fn prose(line: &str) -> ScreenRow {
    let indent = line.len() - line.trim_start().len();
    let start = &line[indent..];
    let margin = " ".repeat(indent.min(12));
    let level = start.chars().take_while(|c| *c == '#').count();
    if (1..=6).contains(&level) && start[level..].starts_with(' ') {
        return ScreenRow::new(Ink::Strong, start[level..].trim().trim_end_matches('#').trim_end());
    }
    if is_rule(start) {
        return ScreenRow::new(Ink::Faint, "---");
    }
    if let Some(quoted) = start.strip_prefix('>') {
        let mut row = ScreenRow::new(Ink::Faint, "> ").hanging(2);
        inline(&mut row, quoted.trim_start());
        return row;
    }
    if start.starts_with('|') {
        let mut row = ScreenRow::plain(margin).literal();
        inline(&mut row, start);
        return row;
    }
    let (mark, rest) = split_mark(start);
    let mut row = ScreenRow::plain(&margin).with(Ink::Plain, &mark);
    row.hang = margin.len() + mark.chars().count();
    inline(&mut row, rest);
    row
}

fn is_rule(line: &str) -> bool {
    let marks: String = line.chars().filter(|c| *c != ' ').collect();
    marks.len() >= 3
        && ["-", "*", "_"]
            .iter()
            .any(|mark| marks.trim_matches(mark.chars().next().unwrap_or('-')).is_empty())
}

/// The mark of a list, in one form, and what it marks.
fn split_mark(line: &str) -> (String, &str) {
    for mark in ["- ", "* ", "+ "] {
        if let Some(rest) = line.strip_prefix(mark) {
            return ("- ".to_owned(), rest);
        }
    }
    let digits = line.chars().take_while(char::is_ascii_digit).count();
    if (1..=3).contains(&digits) && (line[digits..].starts_with(". ") || line[digits..].starts_with(") ")) {
        return (line[..digits + 2].to_owned(), &line[digits + 2..]);
    }
    (String::new(), line)
}

/// Code, strong and slanted words, and links with their address.
fn inline(row: &mut ScreenRow, text: &str) {
    let mut rest = text;
    let mut before = ' ';
    while let Some(at) = rest.find(['`', '*', '_', '[', '\\']) {
        row.push(Ink::Plain, &rest[..at]);
        before = rest[..at].chars().next_back().unwrap_or(before);
        let marked = &rest[at..];
        let (taken, last) = mark(row, marked, before);
        before = last;
        rest = &marked[taken..];
    }
    row.push(Ink::Plain, rest);
}

/// Shows what begins with a mark; how much of it that was, and its last character.
fn mark(row: &mut ScreenRow, text: &str, before: char) -> (usize, char) {
    if let Some(escaped) = text.strip_prefix('\\').and_then(|rest| rest.chars().next())
        && escaped.is_ascii_punctuation()
    {
        row.push(Ink::Plain, &escaped.to_string());
        return (1 + escaped.len_utf8(), escaped);
    }
    if text.starts_with('`') {
        let ticks = text.chars().take_while(|c| *c == '`').count();
        if let Some(length) = text[ticks..].find(&text[..ticks]) {
            row.push(Ink::Busy, text[ticks..ticks + length].trim_matches(' '));
            return (2 * ticks + length, '`');
        }
        row.push(Ink::Plain, &text[..ticks]);
        return (ticks, '`');
    }
    if let Some((shown, address, taken)) = link(text) {
        row.push(Ink::Plain, shown);
        if !address.is_empty() && address != shown {
            row.push(Ink::Faint, &format!(" ({address})"));
        }
        return (taken, ')');
    }
    for (mark, ink) in [("**", Ink::Strong), ("__", Ink::Strong), ("*", Ink::Slanted), ("_", Ink::Slanted)] {
        let Some(rest) = text.strip_prefix(mark) else { continue };
        // Within a word an underscore is one.
        let is_within = mark.starts_with('_') && before.is_alphanumeric();
        let length = rest.find(mark).filter(|length| {
            let after = rest[length + mark.len()..].chars().next();
            let inner = &rest[..*length];
            let ends_word = !mark.starts_with('_') || !after.is_some_and(char::is_alphanumeric);
            !is_within && ends_word && !inner.is_empty() && inner.trim() == inner
        });
        if let Some(length) = length {
            row.push(ink, &rest[..length]);
            return (length + 2 * mark.len(), '*');
        }
    }
    let first = text.chars().next().unwrap_or(' ');
    row.push(Ink::Plain, &first.to_string());
    (first.len_utf8(), first)
}

/// `[shown](address)`, and its length.
fn link(text: &str) -> Option<(&str, &str, usize)> {
    let rest = text.strip_prefix('[')?;
    let (shown, rest) = rest.split_once("](")?;
    let (address, _) = rest.split_once(')')?;
    (!shown.contains('[') && !address.contains(' '))
        .then(|| (shown, address, shown.len() + address.len() + 4))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Strong words in `<>`, slanted ones in `//`, code in `{}`, faint ones in `()`.
    fn shown(text: &str) -> Vec<String> {
        let part = |part: &crate::rows::InkedText| match part.ink {
            Ink::Strong => format!("<{}>", part.text),
            Ink::Slanted => format!("/{}/", part.text),
            Ink::Busy => format!("{{{}}}", part.text),
            _ => part.text.clone(),
        };
        markdown(text).iter().map(|row| row.parts.iter().map(part).collect()).collect()
    }

    #[test]
    fn blocks() {
        let text =
            "# Title #\n\n\nText\n* one\n  + two\n12. three\n> said\n***\n```rust\nlet x = `1`;\n\n```\nend";
        let expected = [
            "<Title>",
            "",
            "Text",
            "- one",
            "  - two",
            "12. three",
            "> said",
            "---",
            "{  let x = `1`;}",
            "{  }",
            "end",
        ];
        assert_eq!(shown(text), expected);
    }

    #[test]
    fn words() {
        let cases = [
            ("a **b** *c* `d*e`", "a <b> /c/ {d*e}"),
            ("snake_case_name and 2 * 3 * 4", "snake_case_name and 2 * 3 * 4"),
            ("_so_ it __is__", "/so/ it <is>"),
            ("see [the page](https://x.y)", "see the page (https://x.y)"),
            (r"\*not\* [x] `open", "*not* [x] `open"),
            ("``a ` b``", "{a ` b}"),
        ];
        for (text, expected) in cases {
            assert_eq!(shown(text), [expected]);
        }
    }

    #[test]
    fn pieces_of_any_size_come_to_the_same() {
        let text = "# T\n\nüber **x**\n\n~~~\ncode\n~~~\n- a\n";
        let whole = markdown(text);
        for size in 1..8 {
            let mut stream = MarkdownStream::default();
            let letters: Vec<char> = text.chars().collect();
            let mut rows = Vec::new();
            for piece in letters.chunks(size) {
                rows.extend(stream.push(&piece.iter().collect::<String>()));
            }
            rows.extend(stream.finish());
            assert_eq!(rows, whole, "{size}");
        }
    }

    #[test]
    fn hostile_text_stays_text() {
        let rows = markdown("a\u{1b}[2J**\u{1b}]0;x\u{7}b** `\u{202e}c`\n\u{9b}1m");
        assert!(rows.iter().all(|row| !row.text().contains(crate::safe::is_obeyed)));
    }
}
