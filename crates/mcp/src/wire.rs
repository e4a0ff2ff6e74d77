//! The interface of a transport: messages in both directions, with limits.

use serde_json::Value;
use tokio::sync::mpsc;

/// Limit of a message. Larger ones are skipped.
pub(crate) const MAX_MESSAGE: usize = 16 * 1024 * 1024;
/// Limit of queued messages in each direction. A fast server has to wait.
pub(crate) const WAITING: usize = 64;

/// A new connection. Dropping `outgoing` closes it.
#[derive(Debug)]
pub(crate) struct McpWire {
    pub(crate) outgoing: mpsc::Sender<Value>,
    pub(crate) arrivals: mpsc::Receiver<Arrival>,
}

/// Something from the server, or about the connection to it.
#[derive(Debug)]
pub(crate) enum Arrival {
    Message(Value),
    /// A message over the limit was skipped; its request is unknown.
    TooLarge,
    /// A request of ours could not be delivered.
    Undelivered {
        id: u64,
        reason: String,
    },
    /// Nothing follows.
    Ended(String),
}

/// Cuts a stream of bytes into lines of bounded length.
#[derive(Debug, Default)]
pub(crate) struct LineCutter {
    line: Vec<u8>,
    /// The line exceeds the limit; the rest of it is dropped.
    is_skipping: bool,
}

/// A line, or a marker for one that was too long.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Whole(Vec<u8>),
    TooLong,
}

impl LineCutter {
    pub(crate) fn push(&mut self, mut bytes: &[u8], limit: usize) -> Vec<Line> {
        let mut lines = Vec::new();
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            self.take(&bytes[..end], limit);
            lines.push(match std::mem::take(&mut self.is_skipping) {
                true => Line::TooLong,
                false => Line::Whole(std::mem::take(&mut self.line)),
            });
            bytes = &bytes[end + 1..];
        }
        self.take(bytes, limit);
        lines
    }

    fn take(&mut self, bytes: &[u8], limit: usize) {
        if self.is_skipping || self.line.len() + bytes.len() > limit {
            self.is_skipping = true;
            self.line = Vec::new();
        } else {
            self.line.extend_from_slice(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_wherever_the_bytes_are() {
        let text = b"one\ntwo\n\nthree and more\nfour\nrest";
        let whole = |text: &str| Line::Whole(text.as_bytes().to_vec());
        for size in 1..text.len() {
            let mut lines = LineCutter::default();
            let all: Vec<_> = text.chunks(size).flat_map(|chunk| lines.push(chunk, 8)).collect();
            assert_eq!(all, [whole("one"), whole("two"), whole(""), Line::TooLong, whole("four")], "{size}");
        }
    }

    #[test]
    fn a_line_without_end_is_not_kept() {
        let mut lines = LineCutter::default();
        for _ in 0..1000 {
            assert!(lines.push(&[b'x'; 1000], 4096).is_empty());
            assert!(lines.line.len() <= 4096);
        }
        assert_eq!(lines.push(b"\nok\n", 4096), [Line::TooLong, Line::Whole(b"ok".to_vec())]);
    }
}
