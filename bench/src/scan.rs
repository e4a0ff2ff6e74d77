//! Splits a stream into lines and finds string fields in them without parsing the JSON around them.

use std::borrow::Cow;
use std::io::{self, Read};

use memchr::memmem::Finder;
use memchr::{memchr, memchr2};

/// Room for a read; a pipe never gives more at once.
const ROOM: usize = 64 * 1024;

/// Collects what a reader gives and hands it out line by line, looking at each byte once.
#[derive(Debug)]
pub(crate) struct LineBuffer {
    bytes: Vec<u8>,
    /// Where the next line starts.
    start: usize,
    /// No line ends before here.
    scanned: usize,
    end: usize,
}

impl LineBuffer {
    pub(crate) fn new() -> Self {
        Self { bytes: vec![0; 16 * ROOM], start: 0, scanned: 0, end: 0 }
    }

    /// One read. Zero is the end of the stream; what is left then is a torn line, which nobody gets.
    pub(crate) fn fill(&mut self, reader: &mut impl Read) -> io::Result<usize> {
        self.bytes.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.scanned -= self.start;
        self.start = 0;
        if self.bytes.len() - self.end < ROOM {
            self.bytes.resize(self.bytes.len() * 2, 0);
        }
        let count = reader.read(&mut self.bytes[self.end..])?;
        self.end += count;
        Ok(count)
    }

    /// The next whole line without its end.
    pub(crate) fn next_line(&mut self) -> Option<&[u8]> {
        match memchr(b'\n', &self.bytes[self.scanned..self.end]) {
            Some(offset) => {
                let line = self.start..self.scanned + offset;
                self.start = line.end + 1;
                self.scanned = self.start;
                Some(&self.bytes[line])
            }
            None => {
                self.scanned = self.end;
                None
            }
        }
    }
}

/// Finds the value of a string field by the field's quoted name.
///
/// A quoted name cannot occur inside a JSON string, where its quotes would be escaped, so a match is a whole token.
#[derive(Debug)]
pub(crate) struct StringField {
    quoted_name: Finder<'static>,
}

impl StringField {
    pub(crate) fn new(name: &str) -> Self {
        Self { quoted_name: Finder::new(&format!("\"{name}\"")).into_owned() }
    }

    /// The first value under this name, or nothing if there is none or it is not a string.
    pub(crate) fn find<'line>(&self, line: &'line [u8]) -> Option<Cow<'line, [u8]>> {
        let mut rest = line;
        while let Some(at) = self.quoted_name.find(rest) {
            rest = &rest[at + self.quoted_name.needle().len()..];
            if let Some(value) = after(b':', rest).and_then(|value| after(b'"', value)) {
                return string_body(value);
            }
        }
        None
    }
}

/// The text after `byte` and the white space before it.
fn after(byte: u8, text: &[u8]) -> Option<&[u8]> {
    text.trim_ascii_start().strip_prefix(&[byte])
}

/// The string whose opening quote is just before `text`; borrowed unless something in it is escaped.
fn string_body(text: &[u8]) -> Option<Cow<'_, [u8]>> {
    let mut end = memchr2(b'"', b'\\', text)?;
    if text[end] == b'"' {
        return Some(Cow::Borrowed(&text[..end]));
    }
    while text[end] == b'\\' {
        end += 2;
        end += memchr2(b'"', b'\\', text.get(end..)?)?;
    }
    let quoted = [b"\"", &text[..=end]].concat();
    serde_json::from_slice::<String>(&quoted).ok().map(|value| Cow::Owned(value.into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives at most `step` bytes at a time.
    struct Trickle<'text> {
        text: &'text [u8],
        step: usize,
    }

    impl Read for Trickle<'_> {
        fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
            let count = self.step.min(self.text.len()).min(room.len());
            let (now, later) = self.text.split_at(count);
            room[..count].copy_from_slice(now);
            self.text = later;
            Ok(count)
        }
    }

    fn lines(text: &[u8], step: usize) -> Vec<Vec<u8>> {
        let (mut buffer, mut reader, mut found) = (LineBuffer::new(), Trickle { text, step }, Vec::new());
        while buffer.fill(&mut reader).expect("memory does not fail") > 0 {
            while let Some(line) = buffer.next_line() {
                found.push(line.to_vec());
            }
        }
        found
    }

    #[test]
    fn lines_are_whole_however_the_reads_fall() {
        for step in [1, 2, 3, 7, 1000] {
            assert_eq!(lines(b"one\n\ntwo three\ntorn", step), [&b"one"[..], b"", b"two three"]);
        }
    }

    #[test]
    fn a_line_longer_than_the_buffer_makes_it_grow() {
        let mut text = vec![b'x'; 40 * ROOM];
        text.extend(b"\nshort\n");
        let found = lines(&text, ROOM);
        assert_eq!((found[0].len(), &found[1][..]), (40 * ROOM, &b"short"[..]));
    }

    fn check(line: &str, expected: Option<&str>) {
        let found = StringField::new("delta").find(line.as_bytes());
        assert_eq!(found.as_deref(), expected.map(str::as_bytes), "{line}");
    }

    #[test]
    fn a_plain_value_is_found_with_or_without_spaces() {
        check(r#"{"method":"item/agentMessage/delta","params":{"itemId":"i","delta":"tok "}}"#, Some("tok "));
        check(r#"{ "delta" : "tok" }"#, Some("tok"));
        check(r#"{"delta":""}"#, Some(""));
    }

    #[test]
    fn an_escaped_value_is_decoded() {
        check(r#"{"delta":"a\"b\\"}"#, Some(r#"a"b\"#));
        check(r#"{"delta":"\n\u00e9\\\\","x":"y"}"#, Some("\né\\\\"));
    }

    #[test]
    fn a_value_that_only_looks_like_the_field_is_passed_over() {
        check(r#"{"kind":"delta","delta":"x"}"#, Some("x"));
        check(r#"{"text":"\"delta\":\"no\"","other":1}"#, None);
        check(r#"{"delta":7}"#, None);
        check(r#"{"delta":"torn"#, None);
        check(r#"{"delta":"torn\"#, None);
    }
}
