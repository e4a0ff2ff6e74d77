//! A command's output that the model has not read yet, limited in size.

use engine::{Truncation, approximate_tokens, truncate_middle};
use sandbox::{CAPTURE_BYTES, Excerpt, HeadTail};

use crate::files::shown::cut;

#[derive(Debug)]
pub(crate) struct Unread {
    kept: HeadTail,
    newlines: usize,
    /// The last line has not ended yet.
    in_line: bool,
}

impl Default for Unread {
    fn default() -> Self {
        Self { kept: HeadTail::new(CAPTURE_BYTES), newlines: 0, in_line: false }
    }
}

impl Unread {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.newlines += memchr::memchr_iter(b'\n', bytes).count();
        self.in_line = bytes.last().map_or(self.in_line, |last| *last != b'\n');
        self.kept.push(bytes);
    }

    /// The total size in bytes, including dropped ones.
    fn total(&self) -> usize {
        usize::try_from(self.kept.total_bytes()).unwrap_or(usize::MAX)
    }

    /// An estimate for the text form, in which invalid bytes have another length.
    pub(crate) fn tokens(&self) -> i64 {
        approximate_tokens(self.length())
    }

    /// Whether this many tokens are enough for all of it.
    pub(crate) fn fits(&self, tokens: usize) -> bool {
        self.length() <= tokens.saturating_mul(4)
    }

    fn length(&self) -> usize {
        match self.kept.excerpt() {
            Excerpt { head, omitted_bytes: 0, .. } => head.len(),
            _ => self.total(),
        }
    }

    /// At most this many tokens, after the number of lines if it was cut.
    pub(crate) fn text(&self, tokens: usize) -> String {
        let budget = tokens.saturating_mul(4);
        let Excerpt { head, omitted_bytes, tail } = self.kept.excerpt();
        let text = match omitted_bytes {
            0 if head.len() <= budget => return head,
            0 => truncate_middle(&head, Truncation::Tokens(tokens)),
            _ => {
                let (head, tail) = (cut(&head, budget / 2), end_of(&tail, budget - budget / 2));
                let gone = self.total().saturating_sub(head.len() + tail.len());
                format!("{head}…{} tokens truncated…{tail}", gone.div_ceil(4))
            }
        };
        let lines = self.newlines + usize::from(self.in_line);
        format!("Total output lines: {lines}\n\n{text}")
    }
}

/// The last bytes up to this limit, in whole characters.
fn end_of(text: &str, bytes: usize) -> &str {
    let mut start = text.len().saturating_sub(bytes);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unread(pieces: &[&[u8]]) -> Unread {
        let mut unread = Unread::default();
        pieces.iter().for_each(|piece| unread.push(piece));
        unread
    }

    #[test]
    fn short_output_is_shown_unchanged() {
        assert_eq!(unread(&[]).text(10), "");
        assert_eq!(unread(&[b"hi\n"]).text(10), "hi\n");
        assert_eq!(unread(&[b"hi\n"]).tokens(), 1);
        assert_eq!(unread(&[b"a\xff\xc3", b"\xa4"]).text(10), "a\u{fffd}ä");
        assert_eq!(unread(&[b"a\xff\xc3", b"\xa4"]).tokens(), 2);
    }

    #[test]
    fn long_output_loses_its_middle() {
        let lines: String = (1..=20_000).map(|number| format!("{number}\n")).collect();
        let unread = unread(&[lines.as_bytes()]);
        assert_eq!(unread.tokens(), 27_224);
        let text = unread.text(200);
        assert!(text.starts_with("Total output lines: 20000\n\n1\n2\n3\n"), "{text}");
        assert!(text.contains("\n127\n…27024 tokens truncated…934\n19935\n"), "{text}");
        assert!(text.ends_with("\n20000\n"));
    }

    #[test]
    fn the_end_of_a_flood_is_kept() {
        let mut unread = Unread::default();
        for number in 0..400_000 {
            unread.push(format!("line {number}\n").as_bytes());
        }
        let text = unread.text(100);
        assert!(text.starts_with("Total output lines: 400000\n\nline 0\n"), "{text}");
        assert!(text.ends_with("line 399999\n") && text.len() < 500, "{text}");
        let gone: usize =
            text.split('…').nth(1).and_then(|note| note.split(' ').next()?.parse().ok()).expect("a count");
        assert!(gone > 1_000_000);
    }
}
