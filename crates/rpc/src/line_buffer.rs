//! The bytes of a stream that are not yet frames, as plain data.

use std::ops::Range;

use memchr::memchr;

use crate::id::Id;
use crate::salvage::salvage_id;

/// Bytes read at once, and the capacity of the buffer at rest.
const CHUNK_BYTES: usize = 64 * 1024;

/// A larger buffer is given back once the line that needed it is done with.
pub(crate) const KEPT_BYTES: usize = 4 * CHUNK_BYTES;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Grows with the line that is being read, up to the limit, and shrinks back after it. A longer line is reported
/// once, as soon as it is too long, and then thrown away as it comes, up to its newline.
#[derive(Debug)]
pub(crate) struct LineBuffer {
    limit: usize,
    bytes: Vec<u8>,
    /// End of the bytes that are consumed.
    start: usize,
    /// How far no newline was found.
    scanned: usize,
    /// Inside a line that was too long and is already reported.
    discarding: bool,
}

/// A line over the limit, and whom to answer if its beginning told.
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

    /// The bytes of a frame, until the next call for room.
    pub(crate) fn get(&self, frame: Range<usize>) -> &[u8] {
        &self.bytes[frame]
    }

    /// The next frame, as far as bytes are there. At the end of the stream the last line needs no newline.
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

    /// Where to put what is read.
    pub(crate) fn room(&mut self) -> &mut Vec<u8> {
        self.make_room();
        &mut self.bytes
    }

    /// A complete line: up to a newline, or all there is at the end of the stream.
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

    /// Whether a complete line is a frame, too long, or nothing.
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

    /// Moves what is unfinished to the front, gives back what a long line took, grows for one that is coming.
    fn make_room(&mut self) {
        self.bytes.drain(..self.start);
        self.scanned -= self.start;
        self.start = 0;
        if self.bytes.len() < CHUNK_BYTES && self.bytes.capacity() > KEPT_BYTES {
            self.bytes.shrink_to(CHUNK_BYTES);
        }
        let (length, capacity) = (self.bytes.len(), self.bytes.capacity());
        if length == capacity {
            // The last step goes all the way: where growing copies, only half the limit is held twice.
            let most = self.limit.saturating_add(CHUNK_BYTES);
            let grown = if 2 * capacity < self.limit { 2 * capacity } else { most };
            self.bytes.reserve_exact(grown.max(CHUNK_BYTES).saturating_sub(length));
        }
    }
}

/// The message in a line. A byte order mark before it is accepted, and so is white space on both sides: the carriage
/// return of a CRLF, above all.
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
