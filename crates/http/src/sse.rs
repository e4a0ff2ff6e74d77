//! Reads server-sent events out of chunks of bytes, wherever the chunks were cut.

use std::borrow::Cow;
use std::mem;

use bytes::{Buf, Bytes, BytesMut};

/// Holds what is known of the event under way. Each byte is looked at once; the data of an event that came in one chunk is a
/// part of that chunk, not a copy.
#[derive(Debug)]
pub struct SseReader {
    /// Not yet looked at.
    chunk: Bytes,
    /// The beginning of a line whose end has not come yet.
    line: BytesMut,
    data: Data,
    at_first_line: bool,
    /// A line ended with CR at the end of a chunk; an LF that comes next belongs to it.
    after_cr: bool,
    max_bytes: usize,
}

#[derive(Debug, Default)]
enum Data {
    #[default]
    None,
    One(Bytes),
    Many(BytesMut),
}

/// An event, or a line, holds more than the reader may keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event is larger than {max_bytes} bytes")]
pub struct TooLong {
    max_bytes: usize,
}

/// The data of one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventData(Bytes);

impl EventData {
    /// Bytes that are not UTF-8 are replaced, as browsers do.
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.0)
    }
}

impl SseReader {
    pub fn new(max_bytes: usize) -> Self {
        Self {
            chunk: Bytes::new(),
            line: BytesMut::new(),
            data: Data::None,
            at_first_line: true,
            after_cr: false,
            max_bytes,
        }
    }

    /// Gives the reader more to read, once [`Self::next_event`] has nothing left.
    pub fn push(&mut self, chunk: Bytes) {
        debug_assert!(self.chunk.is_empty(), "the chunk before is not read yet");
        self.chunk = chunk;
    }

    /// `Ok(None)`: the next chunk is needed.
    pub fn next_event(&mut self) -> Result<Option<EventData>, TooLong> {
        while let Some(line) = self.next_line()? {
            if line.is_empty() {
                if let Some(event) = self.data.take() {
                    return Ok(Some(event));
                }
            } else if let Some(value) = data_value(&line) {
                self.check(self.data.len() + value.len())?;
                self.data.push(value);
            }
        }
        Ok(None)
    }

    fn next_line(&mut self) -> Result<Option<Bytes>, TooLong> {
        if self.after_cr && !self.chunk.is_empty() {
            self.after_cr = false;
            if self.chunk.starts_with(b"\n") {
                self.chunk.advance(1);
            }
        }
        let Some(end) = memchr::memchr2(b'\n', b'\r', &self.chunk) else {
            self.check(self.data.len() + self.line.len() + self.chunk.len())?;
            self.line.extend_from_slice(&mem::take(&mut self.chunk));
            return Ok(None);
        };
        let mut line = self.chunk.split_to(end);
        self.after_cr = self.chunk.split_to(1) == b"\r"[..];
        if !self.line.is_empty() {
            self.check(self.data.len() + self.line.len() + line.len())?;
            self.line.extend_from_slice(&line);
            line = mem::take(&mut self.line).freeze();
        }
        if mem::take(&mut self.at_first_line) && line.starts_with(BYTE_ORDER_MARK) {
            line.advance(BYTE_ORDER_MARK.len());
        }
        Ok(Some(line))
    }

    fn check(&self, bytes: usize) -> Result<(), TooLong> {
        if bytes > self.max_bytes { Err(TooLong { max_bytes: self.max_bytes }) } else { Ok(()) }
    }
}

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// The value of a `data` line. Comments and the fields `event`, `id` and `retry` say nothing the data does not.
fn data_value(line: &Bytes) -> Option<Bytes> {
    let rest = line.strip_prefix(b"data")?;
    let value = match rest {
        [] => rest,
        [b':', b' ', value @ ..] | [b':', value @ ..] => value,
        _ => return None,
    };
    Some(line.slice(line.len() - value.len()..))
}

impl Data {
    fn len(&self) -> usize {
        match self {
            Self::None => 0,
            Self::One(data) => data.len(),
            Self::Many(data) => data.len(),
        }
    }

    /// Several `data` lines are joined by line feeds.
    fn push(&mut self, value: Bytes) {
        *self = match mem::take(self) {
            Self::None => Self::One(value),
            Self::One(first) => Self::Many(joined(BytesMut::from(first), &value)),
            Self::Many(data) => Self::Many(joined(data, &value)),
        };
    }

    fn take(&mut self) -> Option<EventData> {
        match mem::take(self) {
            Self::None => None,
            Self::One(data) => Some(EventData(data)),
            Self::Many(data) => Some(EventData(data.freeze())),
        }
    }
}

fn joined(mut data: BytesMut, value: &[u8]) -> BytesMut {
    data.extend_from_slice(b"\n");
    data.extend_from_slice(value);
    data
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<'a>(
        chunks: impl IntoIterator<Item = &'a [u8]>,
        max_bytes: usize,
    ) -> Result<Vec<String>, TooLong> {
        let mut reader = SseReader::new(max_bytes);
        let mut events = Vec::new();
        for chunk in chunks {
            reader.push(Bytes::copy_from_slice(chunk));
            while let Some(event) = reader.next_event()? {
                events.push(event.text().into_owned());
            }
        }
        Ok(events)
    }

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        assert_eq!(read([text.as_bytes()], 1_000).unwrap(), expected, "{text:?}");
    }

    #[test]
    fn lines_end_in_three_ways() {
        check("data: a\n\ndata: b\n\n", &["a", "b"]);
        check("data: a\r\n\r\ndata: b\r\n\r\n", &["a", "b"]);
        check("data: a\r\rdata: b\r\r", &["a", "b"]);
        check("data: a\r\n\ndata: b\n\r\n", &["a", "b"]);
    }

    #[test]
    fn fields_comments_and_spaces() {
        check("event: x\nid: 1\nretry: 5\n: hello\ndata: a\n\n", &["a"]);
        check("data:a\n\ndata:  b\n\n", &["a", " b"]);
        check("data\n\n", &[""]);
        check("data: a\ndata:\ndata: b\n\n", &["a\n\nb"]);
        check("database: x\n\ndat: x\n\n: ping\n\n\n\n", &[]);
    }

    #[test]
    fn a_byte_order_mark_is_skipped_once() {
        check("\u{feff}data: a\n\n\u{feff}data: b\n\n", &["a"]);
    }

    #[test]
    fn an_event_without_its_blank_line_is_not_one() {
        check("data: a\n\ndata: b\n", &["a"]);
        check("data: a", &[]);
    }

    #[test]
    fn what_is_not_utf8_is_replaced() {
        assert_eq!(read([&b"data: a\xffb\n\n"[..]], 100).unwrap(), ["a\u{fffd}b"]);
    }

    #[test]
    fn an_event_is_bounded_however_it_grows() {
        let line = format!("data: {}\n\n", "x".repeat(90));
        assert_eq!(read([line.as_bytes()], 90).unwrap().len(), 1);
        for text in [
            format!("data: {}\n\n", "x".repeat(101)),
            format!("data: {}", "x".repeat(101)),
            ": ".to_owned() + &"x".repeat(101),
            "data: xxxxx\n".repeat(40),
        ] {
            let whole = read([text.as_bytes()], 100);
            let pieces = read(text.as_bytes().chunks(7), 100);
            assert_eq!(
                (whole, pieces),
                (Err(TooLong { max_bytes: 100 }), Err(TooLong { max_bytes: 100 })),
                "{text}"
            );
        }
        // The bound is for one event, not for all of them.
        assert_eq!(read(line.repeat(50).as_bytes().chunks(11), 100).unwrap().len(), 50);
    }

    #[test]
    fn the_data_of_a_whole_line_is_not_copied() {
        let chunk = Bytes::from_static(b"event: a\ndata: {\"x\":1}\n\n");
        let mut reader = SseReader::new(100);
        reader.push(chunk.clone());
        let event = reader.next_event().unwrap().unwrap();
        assert_eq!(event.0.as_ptr(), chunk[15..].as_ptr());
    }

    const MIXED: &str = "\u{feff}: hi\r\nevent: a\r\ndata: {\"é\":\"漢字 🦀\"}\r\n\r\ndata: one\rdata:two\r\r:\n\ndata: \
                         three\ndata\n\nid: 7\ndata: \u{feff}four\n\n\r\n\rdata: five\n\n";
    const EXPECTED: &[&str] = &["{\"é\":\"漢字 🦀\"}", "one\ntwo", "three\n", "\u{feff}four", "five"];

    #[test]
    fn cut_at_every_byte() {
        let bytes = MIXED.as_bytes();
        for at in 0..=bytes.len() {
            let (head, tail) = bytes.split_at(at);
            assert_eq!(read([head, tail], 1_000).unwrap(), EXPECTED, "cut at {at}");
        }
        assert_eq!(read(bytes.chunks(1), 1_000).unwrap(), EXPECTED);
    }

    #[test]
    fn cut_at_random() {
        let mut state = 0x5EED_u64;
        let mut random = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as usize
        };
        for _ in 0..2_000 {
            let mut rest = MIXED.as_bytes();
            let mut chunks = Vec::new();
            while !rest.is_empty() {
                let (head, tail) = rest.split_at(random() % (rest.len().min(12) + 1));
                chunks.push(head);
                rest = tail;
            }
            assert_eq!(read(chunks, 1_000).unwrap(), EXPECTED);
        }
    }
}
