//! The beginning and the end of output that may be too long to keep.

use std::collections::VecDeque;

/// Keeps the first and last half of a number of bytes, and counts the rest.
#[derive(Debug, Clone)]
pub struct HeadTail {
    cap: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
}

/// Text with a gap. If nothing was left out, all of it is in `head`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt {
    pub head: String,
    pub omitted_bytes: u64,
    pub tail: String,
}

impl HeadTail {
    pub fn new(cap: usize) -> Self {
        Self { cap, head: Vec::new(), tail: VecDeque::new(), total: 0 }
    }

    fn head_cap(&self) -> usize {
        self.cap / 2
    }

    fn tail_cap(&self) -> usize {
        self.cap - self.head_cap()
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let to_head = bytes.len().min(self.head_cap() - self.head.len());
        let (first, rest) = bytes.split_at(to_head);
        self.head.extend_from_slice(first);
        let rest = &rest[rest.len().saturating_sub(self.tail_cap())..];
        let too_many = (self.tail.len() + rest.len()).saturating_sub(self.tail_cap());
        self.tail.drain(..too_many);
        self.tail.extend(rest);
    }

    /// The total size, including dropped bytes.
    pub fn total_bytes(&self) -> u64 {
        self.total
    }

    pub fn kept_bytes(&self) -> usize {
        self.head.len() + self.tail.len()
    }

    pub fn omitted_bytes(&self) -> u64 {
        self.total - self.kept_bytes() as u64
    }

    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// Reduces the cap, as if it had been created with the smaller one.
    pub fn shrink(&mut self, cap: usize) {
        if cap >= self.cap {
            return;
        }
        if self.omitted_bytes() == 0 {
            let (all, _) = self.parts();
            *self = Self::new(cap);
            self.push(&all);
        } else {
            // Both halves are full, so the smaller ones are too.
            self.cap = cap;
            self.head.truncate(self.head_cap());
            self.tail.drain(..self.tail.len() - self.tail_cap());
        }
    }

    /// The beginning and, if something was left out, the end.
    pub fn parts(&self) -> (Vec<u8>, Vec<u8>) {
        let tail = self.tail.iter().copied();
        if self.omitted_bytes() == 0 {
            (self.head.iter().copied().chain(tail).collect(), Vec::new())
        } else {
            (self.head.clone(), tail.collect())
        }
    }

    /// Invalid bytes become U+FFFD. A character that the gap splits counts as left out.
    pub fn excerpt(&self) -> Excerpt {
        let (head, tail) = self.parts();
        let omitted_bytes = self.omitted_bytes();
        if omitted_bytes == 0 {
            return Excerpt {
                head: String::from_utf8_lossy(&head).into_owned(),
                omitted_bytes,
                tail: String::new(),
            };
        }
        let head_end = head.len() - cut_off_at_end(&head);
        let tail_start = tail.iter().take(3).take_while(|byte| is_continuation(**byte)).count();
        let cut = head.len() - head_end + tail_start;
        Excerpt {
            head: String::from_utf8_lossy(&head[..head_end]).into_owned(),
            omitted_bytes: omitted_bytes + cut as u64,
            tail: String::from_utf8_lossy(&tail[tail_start..]).into_owned(),
        }
    }
}

/// How many bytes at the end are an incomplete character.
fn cut_off_at_end(bytes: &[u8]) -> usize {
    let last = bytes.utf8_chunks().last().map_or(&[][..], |chunk| chunk.invalid());
    match std::str::from_utf8(last) {
        Err(error) if error.error_len().is_none() => last.len(),
        _ => 0,
    }
}

fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

#[cfg(test)]
mod tests {
    use super::{Excerpt, HeadTail};

    fn check(cap: usize, pieces: &[&[u8]], head: &str, omitted_bytes: u64, tail: &str) {
        let mut kept = HeadTail::new(cap);
        for piece in pieces {
            kept.push(piece);
        }
        let expected = Excerpt { head: head.to_owned(), omitted_bytes, tail: tail.to_owned() };
        assert_eq!(kept.excerpt(), expected, "{pieces:?}");
        assert_eq!(kept.total_bytes(), pieces.iter().map(|piece| piece.len() as u64).sum::<u64>());
        assert!(kept.kept_bytes() <= cap);
    }

    #[test]
    fn what_fits_is_kept_whole() {
        check(6, &[], "", 0, "");
        check(6, &[b"abc"], "abc", 0, "");
        check(6, &[b"abcdef"], "abcdef", 0, "");
        check(6, &[b"a", b"bcd", b"ef"], "abcdef", 0, "");
    }

    #[test]
    fn what_does_not_fit_leaves_a_gap() {
        check(6, &[b"abcdefg"], "abc", 1, "efg");
        check(6, &[b"abcde", b"fghij"], "abc", 4, "hij");
        check(6, &[b"abcdef", b"ghijklmnop"], "abc", 10, "nop");
        check(7, &[b"abcdefgh"], "abc", 1, "efgh");
        check(1, &[b"abc"], "", 2, "c");
        check(0, &[b"abc"], "", 3, "");
    }

    #[test]
    fn one_byte_at_a_time_is_the_same() {
        let all: Vec<u8> = (0..1000).map(|number| b'a' + (number % 26) as u8).collect();
        let mut at_once = HeadTail::new(100);
        at_once.push(&all);
        let mut slowly = HeadTail::new(100);
        all.iter().for_each(|byte| slowly.push(&[*byte]));
        assert_eq!(at_once.excerpt(), slowly.excerpt());
        assert_eq!(at_once.omitted_bytes(), 900);
    }

    #[test]
    fn no_character_is_cut_by_the_gap() {
        // Two bytes each: the cap of six puts the gap into the second and the one before the last.
        check(6, &["äöüÄÖÜ".as_bytes()], "ä", 8, "Ü");
        check(8, &["äöüÄÖÜ".as_bytes()], "äö", 4, "ÖÜ");
    }

    #[test]
    fn a_character_across_the_middle_is_whole_when_nothing_is_left_out() {
        check(10, &["xxxx€yyy".as_bytes()], "xxxx€yyy", 0, "");
    }

    #[test]
    fn what_is_no_text_is_replaced() {
        check(100, &[b"a\xffb"], "a\u{fffd}b", 0, "");
        check(4, &[b"\xff\xffxxx\xff\xff"], "\u{fffd}\u{fffd}", 3, "\u{fffd}\u{fffd}");
    }

    #[test]
    fn shrinking_is_like_having_been_smaller() {
        let all = b"0123456789abcdefghij";
        for (before, length) in [(20, 20), (10, 20), (20, 7), (30, 3)] {
            for after in 0..=before {
                let mut shrunk = HeadTail::new(before);
                shrunk.push(&all[..length]);
                shrunk.shrink(after);
                let mut small = HeadTail::new(after);
                small.push(&all[..length]);
                assert_eq!(shrunk.excerpt(), small.excerpt(), "{before} to {after} with {length}");
                shrunk.push(b"xyz");
                small.push(b"xyz");
                assert_eq!(shrunk.excerpt(), small.excerpt(), "{before} to {after} with {length}, and more");
            }
        }
    }
}
