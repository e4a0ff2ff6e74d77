//! Takes the messages of a process's shell out of its stderr. Everything else passes unchanged.

use memchr::memmem;

use crate::script::{Leader, MESSAGE};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShellMessage {
    Started {
        leader: Leader,
        cwd_exists: bool,
    },
    /// 128 and the signal's number where a signal ended the process.
    Ended(i32),
}

/// Stderr in its order.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StderrPiece {
    Plain(Vec<u8>),
    Message(ShellMessage),
}

/// Longest message, with room to spare.
const MAX_MESSAGE: usize = 200;

#[derive(Debug)]
pub(crate) struct StderrFilter {
    /// Begins every message of this process.
    head: Vec<u8>,
    /// Bytes that may still become a message.
    pending: Vec<u8>,
}

impl StderrFilter {
    pub(crate) fn new(spawn: &str) -> Self {
        Self { head: format!("{MESSAGE}{spawn} ").into_bytes(), pending: Vec::new() }
    }

    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Vec<StderrPiece> {
        self.pending.extend_from_slice(bytes);
        let mut pieces = Vec::new();
        while let Some(at) = memmem::find(&self.pending, &self.head) {
            self.pass(at, &mut pieces);
            let body = &self.pending[self.head.len()..];
            match memchr::memchr(b'\n', body) {
                Some(end) => {
                    let message = parse(&body[..end]);
                    let whole = self.head.len() + end + 1;
                    match message {
                        Some(message) => {
                            pieces.push(StderrPiece::Message(message));
                            self.pending.drain(..whole);
                        }
                        None => self.pass(whole, &mut pieces),
                    }
                }
                None if body.len() > MAX_MESSAGE => self.pass(self.head.len(), &mut pieces),
                None => return pieces,
            }
        }
        self.pass(self.pending.len() - self.partial_head(), &mut pieces);
        pieces
    }

    /// Bytes held back at the end of the stream were no message.
    pub(crate) fn finish(&mut self) -> Vec<StderrPiece> {
        let mut pieces = Vec::new();
        self.pass(self.pending.len(), &mut pieces);
        pieces
    }

    fn pass(&mut self, length: usize, pieces: &mut Vec<StderrPiece>) {
        if length > 0 {
            pieces.push(StderrPiece::Plain(self.pending.drain(..length).collect()));
        }
    }

    /// How many bytes at the end may be the beginning of a message.
    fn partial_head(&self) -> usize {
        let longest = self.head.len().min(self.pending.len() + 1).saturating_sub(1);
        (1..=longest).rev().find(|&length| self.pending.ends_with(&self.head[..length])).unwrap_or(0)
    }
}

fn parse(body: &[u8]) -> Option<ShellMessage> {
    let text = std::str::from_utf8(body).ok()?;
    let mut words = text.split(' ');
    match words.next()? {
        "start" => {
            let leader = Leader { pid: words.next()?.parse().ok()?, started: words.next()?.parse().ok()? };
            Some(ShellMessage::Started { leader, cwd_exists: words.next()? == "1" })
        }
        "end" => Some(ShellMessage::Ended(words.next()?.parse().ok()?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The plain bytes and the messages, whatever the sizes of the reads.
    fn check(stream: &str, plain: &str, messages: &[ShellMessage]) {
        for size in [1, 2, 3, 7, 1000] {
            let (mut filter, mut passed, mut found) = (StderrFilter::new("ab"), Vec::new(), Vec::new());
            let mut pieces: Vec<StderrPiece> =
                stream.as_bytes().chunks(size).flat_map(|piece| filter.feed(piece)).collect();
            pieces.extend(filter.finish());
            for piece in pieces {
                match piece {
                    StderrPiece::Plain(bytes) => passed.extend(bytes),
                    StderrPiece::Message(message) => found.push(message),
                }
            }
            assert_eq!(
                (String::from_utf8(passed).unwrap().as_str(), found.as_slice()),
                (plain, messages),
                "reads of {size}"
            );
        }
    }

    #[test]
    fn messages_are_taken_out_wherever_they_are() {
        let started = ShellMessage::Started { leader: Leader { pid: 7, started: 99 }, cwd_exists: true };
        check(
            "noise\n\x1eoarlock ab start 7 99 1\nerror without newline\x1eoarlock ab end 137\nlate",
            "noise\nerror without newlinelate",
            &[started, ShellMessage::Ended(137)],
        );
    }

    #[test]
    fn other_ids_and_broken_messages_are_plain() {
        for text in [
            "\x1eoarlock cd end 1\n",
            "\x1eoarlock ab end x\n",
            "\x1eoarlock ab",
            "\x1e\x1e",
            "\x1eoarlock ab what 1\n",
        ] {
            check(text, text, &[]);
        }
        let endless = format!("\x1eoarlock ab end {}", "1".repeat(5000));
        check(&endless, &endless, &[]);
    }
}
