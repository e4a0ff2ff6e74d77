//! The lines of a foreign file, with limits per line and in total.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Take};

/// Bytes read at a time.
const BUFFER: usize = 64 * 1024;

pub(super) struct BoundedLines<'a> {
    input: BufReader<Take<&'a File>>,
    line: Vec<u8>,
    max_line: usize,
}

pub(super) enum NextLine<'a> {
    /// Without its line break. The last one may have none: the file may be written to at the moment.
    Line(&'a [u8]),
    /// Skipped without being kept in memory.
    TooLong,
    End,
}

impl<'a> BoundedLines<'a> {
    pub(super) fn new(file: &'a File, up_to: u64, max_line: usize) -> Self {
        Self { input: BufReader::with_capacity(BUFFER, file.take(up_to)), line: Vec::new(), max_line }
    }

    pub(super) fn next(&mut self) -> io::Result<NextLine<'_>> {
        self.line.clear();
        let (mut is_too_long, mut has_any) = (false, false);
        loop {
            let buffer = self.input.fill_buf()?;
            if buffer.is_empty() {
                break;
            }
            has_any = true;
            let end = memchr::memchr(b'\n', buffer);
            let piece = &buffer[..end.unwrap_or(buffer.len())];
            is_too_long |= self.line.len() + piece.len() > self.max_line;
            if is_too_long {
                // Frees its memory at once.
                self.line = Vec::new();
            } else {
                self.line.extend_from_slice(piece);
            }
            let used = piece.len() + usize::from(end.is_some());
            self.input.consume(used);
            if end.is_some() {
                break;
            }
        }
        Ok(match (has_any, is_too_long) {
            (false, _) => NextLine::End,
            (true, true) => NextLine::TooLong,
            (true, false) => NextLine::Line(&self.line),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, SeekFrom, Write};

    use super::*;

    fn check(content: &str, up_to: u64, expected: &[Option<&str>]) {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(content.as_bytes()).expect("written");
        file.seek(SeekFrom::Start(0)).expect("at the beginning");
        let mut lines = BoundedLines::new(&file, up_to, 5);
        let mut found = Vec::new();
        loop {
            match lines.next().expect("read") {
                NextLine::End => break,
                NextLine::TooLong => found.push(None),
                NextLine::Line(line) => found.push(Some(String::from_utf8_lossy(line).into_owned())),
            }
        }
        let expected: Vec<_> = expected.iter().map(|line| line.map(str::to_owned)).collect();
        assert_eq!(found, expected, "{content:?}");
    }

    #[test]
    fn lines_end_where_they_should() {
        check("", 100, &[]);
        check("a\nbb\n", 100, &[Some("a"), Some("bb")]);
        check("a\n\nb", 100, &[Some("a"), Some(""), Some("b")]);
        check("12345\n123456\nx", 100, &[Some("12345"), None, Some("x")]);
        check("abc\ndef", 5, &[Some("abc"), Some("d")]);
        let long = format!("{}\nx\n", "y".repeat(3 * BUFFER));
        check(&long, u64::MAX, &[None, Some("x")]);
    }
}
