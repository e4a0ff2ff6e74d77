//! The bytes of a stream before they are split into frames, as plain data.

use std::ops::Range;

use memchr::memchr;

use crate::id::Id;
use crate::salvage::salvage_id;

/// The size of a read, and the capacity of an idle buffer.
const CHUNK_BYTES: usize = 64 * 1024;

/// A larger buffer is freed after the line that needed it.
pub(crate) const KEPT_BYTES: usize = 4 * CHUNK_BYTES;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Grows with the current line up to the limit, and shrinks after it. A longer line is reported once, as soon as it
/// exceeds the limit, and its rest is discarded.
#[derive(Debug)]
pub(crate) struct LineBuffer {
    limit: usize,
    bytes: Vec<u8>,
    /// The end of the consumed bytes.
    start: usize,
    /// No newline before this index.
    scanned: usize,
    /// Inside a line that was too long and is reported already.
    discarding: bool,
}

/// A line over the limit, with the request's id if it is at the beginning.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LineTooLong {
    pub(crate) id: Option<Id>,
}

impl LineBuffer {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, bytes: Vec::new(), start: 0, scanned: 0, discarding: false }
    }

    pub(crate) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// The bytes of a frame, valid until the next call of `room`.
    pub(crate) fn get(&self, frame: Range<usize>) -> &[u8] {
        &self.bytes[frame]
    }

    /// The next frame, if it is complete. At the end of the stream the last line needs no newline.
    pub(crate) fn next(&mut self, ended: bool) -> Option<Result<Range<usize>, LineTooLong>> {
        while let Some(line) = self.take_line(ended) {
            if let Some(found) = self.judge(line) {
                return Some(found);
            }
        }
        let too_long = !self.discarding && self.unfinished() > self.limit;
        let error = too_long.then(|| Err(self.too_long(self.start..self.bytes.len())));
        self.discarding |= too_long;
        if self.discarding {
            self.start = self.bytes.len();
            self.make_room();
        }
        error
    }

    /// Space for the next read.
    pub(crate) fn room(&mut self) -> &mut Vec<u8> {
        self.make_room();
        &mut self.bytes
    }

    /// A complete line: up to a newline, or the rest at the end of the stream.
    fn take_line(&mut self, ended: bool) -> Option<Range<usize>> {
        let line = match memchr(b'\n', &self.bytes[self.scanned..]) {
            Some(found) => self.start..self.scanned + found,
            None if ended && self.unfinished() > 0 => self.start..self.bytes.len(),
            None => {
                self.scanned = self.bytes.len();
                return None;
            }
        };
        self.start = self.bytes.len().min(line.end + 1);
        self.scanned = self.start;
        Some(line)
    }

    /// Whether a complete line is a frame, too long, or blank.
    fn judge(&mut self, line: Range<usize>) -> Option<Result<Range<usize>, LineTooLong>> {
        if std::mem::take(&mut self.discarding) {
            return None;
        }
        if line.len() > self.limit {
            return Some(Err(self.too_long(line)));
        }
        let frame = trimmed(&self.bytes[line.clone()]);
        (!frame.is_empty()).then_some(Ok(line.start + frame.start..line.start + frame.end))
    }

    fn too_long(&self, line: Range<usize>) -> LineTooLong {
        LineTooLong { id: salvage_id(&self.bytes[line]) }
    }

    fn unfinished(&self) -> usize {
        self.bytes.len() - self.start
    }

    /// Moves the incomplete line to the front, frees the memory of a long line, and grows for the next one.
    fn make_room(&mut self) {
        self.bytes.drain(..self.start);
        self.scanned -= self.start;
        self.start = 0;
        if self.bytes.len() < CHUNK_BYTES && self.bytes.capacity() > KEPT_BYTES {
            self.bytes.shrink_to(CHUNK_BYTES);
        }
        let (length, capacity) = (self.bytes.len(), self.bytes.capacity());
        if length == capacity {
            // The last step grows to the limit at once: growing copies, which would hold the bytes twice.
            let most = self.limit.saturating_add(CHUNK_BYTES);
            let grown = if 2 * capacity < self.limit { 2 * capacity } else { most };
            self.bytes.reserve_exact(grown.max(CHUNK_BYTES).saturating_sub(length));
        }
    }
}

/// The trimmed message of a line. Accepts a byte order mark before it, and white space around it, such as the carriage
/// return of a CRLF.
pub(crate) fn trim(line: &[u8]) -> &[u8] {
    &line[trimmed(line)]
}

fn trimmed(line: &[u8]) -> Range<usize> {
    let text = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line).trim_ascii_start();
    let start = line.len() - text.len();
    start..start + text.trim_ascii_end().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    impl LineBuffer {
        pub(crate) fn capacity(&self) -> usize {
            self.bytes.capacity()
        }
    }

    #[test]
    fn never_takes_much_more_than_the_limit() {
        let limit = 1024 * 1024;
        let mut buffer = LineBuffer::new(limit);
        let mut reported = 0;
        for _ in 0..1000 {
            let room = buffer.room();
            room.resize(room.capacity(), b'x');
            assert!(buffer.capacity() <= limit + CHUNK_BYTES);
            reported += usize::from(buffer.next(false).is_some());
        }
        assert_eq!(reported, 1);
        assert_eq!(buffer.next(true), None);
    }

    #[test]
    fn trims_marks_and_white_space() {
        assert_eq!(trim(b"\xef\xbb\xbf {} \t\r"), b"{}");
        assert_eq!(trim(b"\xef\xbb\xbf"), b"");
        assert_eq!(trim(b" \xef\xbb\xbf"), b"\xef\xbb\xbf");
    }
}
