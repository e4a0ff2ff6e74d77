//! Converts byte chunks to text chunks.

/// Converts a stream of bytes to strings without splitting characters. Invalid bytes are replaced by U+FFFD as soon as
/// they are known to be invalid.
#[derive(Debug)]
pub struct Utf8Chunks {
    at_least: usize,
    at_most: usize,
    text: String,
    /// The start of a character, three bytes at most.
    unfinished: Vec<u8>,
}

impl Utf8Chunks {
    /// Every string has at most this many bytes, or one longer character.
    pub fn new(at_most: usize) -> Self {
        Self { at_least: 1, at_most: at_most.max(1), text: String::new(), unfinished: Vec::new() }
    }

    /// Holds text back until there are this many bytes, or [`flush`](Self::flush) is called.
    #[must_use]
    pub fn coalescing(self, at_least: usize) -> Self {
        Self { at_least: at_least.clamp(1, self.at_most), ..self }
    }

    /// Takes bytes and returns the texts that are ready.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<String> {
        if self.unfinished.is_empty() {
            self.decode(bytes);
        } else {
            let mut joined = std::mem::take(&mut self.unfinished);
            joined.extend_from_slice(bytes);
            self.decode(&joined);
        }
        self.take(self.at_least)
    }

    /// Returns all complete characters held back.
    pub fn flush(&mut self) -> Vec<String> {
        self.take(1)
    }

    /// End of the stream: an incomplete character is invalid.
    pub fn finish(&mut self) -> Vec<String> {
        if !self.unfinished.is_empty() {
            self.unfinished.clear();
            self.text.push(char::REPLACEMENT_CHARACTER);
        }
        self.flush()
    }

    /// Whether [`flush`](Self::flush) would return something.
    pub fn has_text(&self) -> bool {
        !self.text.is_empty()
    }

    fn decode(&mut self, bytes: &[u8]) {
        for chunk in bytes.utf8_chunks() {
            self.text.push_str(chunk.valid());
            match std::str::from_utf8(chunk.invalid()) {
                Ok(_) => {}
                // Only at the very end can a character lack bytes that may still come.
                Err(error) if error.error_len().is_none() && is_end_of(chunk.invalid(), bytes) => {
                    self.unfinished.extend_from_slice(chunk.invalid());
                }
                Err(_) => self.text.push(char::REPLACEMENT_CHARACTER),
            }
        }
    }

    fn take(&mut self, at_least: usize) -> Vec<String> {
        let mut taken = Vec::new();
        let mut rest = self.text.as_str();
        while rest.len() > self.at_most {
            let first = rest.chars().next().map_or(1, char::len_utf8);
            let (piece, after) = rest.split_at(rest.floor_char_boundary(self.at_most).max(first));
            taken.push(piece.to_owned());
            rest = after;
        }
        let mut kept = rest.to_owned();
        if kept.len() >= at_least {
            taken.push(std::mem::take(&mut kept));
        }
        self.text = kept;
        taken
    }
}

fn is_end_of(part: &[u8], whole: &[u8]) -> bool {
    part.as_ptr_range().end == whole.as_ptr_range().end
}

#[cfg(test)]
mod tests {
    use super::Utf8Chunks;

    const SAMPLE: &[u8] =
        b"plain \x1b[31m \xc3\xa4\xe2\x82\xac\xf0\x9f\xa6\x80 \xff\xc3(\xe2\x82 \xed\xa0\x80\xf0\x9f\xa6";

    fn check(chunks: &mut Utf8Chunks, pieces: &[&[u8]], expected: &[&str]) {
        let mut out: Vec<String> = pieces.iter().flat_map(|piece| chunks.push(piece)).collect();
        out.extend(chunks.finish());
        assert_eq!(out, expected);
    }

    #[test]
    fn characters_are_never_cut() {
        let euro = "€".as_bytes();
        let mut chunks = Utf8Chunks::new(100);
        check(&mut chunks, &[b"a", &euro[..1], &euro[1..2], &euro[2..], b"b"], &["a", "€", "b"]);
        check(&mut Utf8Chunks::new(100), &[&euro[..2]], &["\u{fffd}"]);
    }

    #[test]
    fn invalid_bytes_are_replaced_once_known() {
        let mut chunks = Utf8Chunks::new(100);
        assert_eq!(chunks.push(b"a\xff"), ["a\u{fffd}"]);
        assert_eq!(chunks.push(b"\xe2\x82"), [""; 0]);
        assert_eq!(chunks.push(b"x"), ["\u{fffd}x"]);
        assert_eq!(chunks.finish(), [""; 0]);
    }

    #[test]
    fn every_way_of_cutting_gives_the_text_of_the_whole() {
        let whole = String::from_utf8_lossy(SAMPLE);
        for first in 0..=SAMPLE.len() {
            for second in first..=SAMPLE.len() {
                let mut chunks = Utf8Chunks::new(100);
                let mut text = chunks.push(&SAMPLE[..first]).concat();
                text += &chunks.push(&SAMPLE[first..second]).concat();
                text += &chunks.push(&SAMPLE[second..]).concat();
                text += &chunks.finish().concat();
                assert_eq!(text, whole, "cut at {first} and {second}");
            }
        }
    }

    #[test]
    fn no_string_is_longer_than_allowed() {
        check(&mut Utf8Chunks::new(4), &["äöüÄ!".as_bytes()], &["äö", "üÄ", "!"]);
        check(&mut Utf8Chunks::new(3), &["äöü".as_bytes()], &["ä", "ö", "ü"]);
        check(&mut Utf8Chunks::new(1), &["€uro".as_bytes()], &["€", "u", "r", "o"]);
    }

    #[test]
    fn small_writes_are_put_together() {
        let mut chunks = Utf8Chunks::new(8).coalescing(4);
        assert_eq!(chunks.push(b"ab"), [""; 0]);
        assert!(chunks.has_text());
        assert_eq!(chunks.push(b"cd"), ["abcd"]);
        assert_eq!(chunks.push(b"e"), [""; 0]);
        assert_eq!(chunks.flush(), ["e"]);
        assert_eq!(chunks.flush(), [""; 0]);
        assert_eq!(chunks.push(b"0123456789"), ["01234567"]);
        assert_eq!(chunks.finish(), ["89"]);
    }
}
