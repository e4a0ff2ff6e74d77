//! Brings pieces into the order that wires with turns insist on: after calls come their outputs, all of them, and
//! nothing in between.

use std::sync::{Arc, Weak};

use model::protocol::ResponseItem;

use crate::piece::{ContentPart, HistoryPiece, NO_OUTPUT, piece};

/// Turns pieces into the bytes of messages, each piece once.
pub(crate) trait MessageWriter: Sized {
    fn write(&mut self, piece: HistoryPiece);
    /// One that goes on from here into a buffer of its own.
    fn tail(&self) -> Self;
}

/// The messages written so far, and the items they came from. A request that repeats those items continues behind them.
#[derive(Debug)]
pub(crate) struct Transcript<W> {
    /// A weak reference keeps the address from being used again, so equal addresses are equal items.
    seen: Vec<Weak<ResponseItem>>,
    order: CallOrder,
    pub(crate) writer: W,
}

#[derive(Debug, Clone, Default)]
struct CallOrder {
    /// Calls without an output so far.
    open: Vec<String>,
    /// An output of these calls has come, so what a model writes next is a new answer.
    answered: bool,
    /// Wait until every open call has its output.
    deferred: Vec<HistoryPiece>,
}

impl<W: MessageWriter> Transcript<W> {
    pub(crate) fn new(writer: W) -> Self {
        Self { seen: Vec::new(), order: CallOrder::default(), writer }
    }

    /// Whether these items begin with all that were written.
    pub(crate) fn continues(&self, input: &[Arc<ResponseItem>]) -> bool {
        self.seen.len() <= input.len()
            && self.seen.iter().zip(input).all(|(seen, item)| seen.as_ptr() == Arc::as_ptr(item))
    }

    /// Writes the items that were not written yet. The error names what cannot be expressed.
    pub(crate) fn follow(&mut self, input: &[Arc<ResponseItem>]) -> Result<(), &'static str> {
        for item in input.iter().skip(self.seen.len()) {
            if let Some(piece) = piece(item)? {
                self.order.push(piece, &mut self.writer);
            }
            self.seen.push(Arc::downgrade(item));
        }
        Ok(())
    }

    /// The end of this request, which may differ in the next: outputs that are missing, pieces that wait for them.
    pub(crate) fn rest(&self) -> W {
        let mut tail = self.writer.tail();
        let mut order = self.order.clone();
        while let Some(call_id) = order.open.first().cloned() {
            let parts = vec![ContentPart::Text(NO_OUTPUT.to_owned())];
            order.push(HistoryPiece::Output { call_id, parts, has_failed: true }, &mut tail);
        }
        tail
    }
}

impl CallOrder {
    fn push(&mut self, piece: HistoryPiece, writer: &mut impl MessageWriter) {
        let is_free = self.open.is_empty();
        match &piece {
            HistoryPiece::Output { call_id, .. } => match self.open.iter().position(|open| open == call_id) {
                Some(at) => {
                    self.open.remove(at);
                    self.answered = true;
                    writer.write(piece);
                    self.release(writer);
                }
                // Its call waits, or there never was one.
                None if !is_free => self.deferred.push(piece),
                None => writer.write(orphan(piece)),
            },
            HistoryPiece::Call(call) if is_free || !self.answered => {
                self.open.push(call.id.clone());
                writer.write(piece);
            }
            // ContentPart of the same answer as the open calls.
            HistoryPiece::Assistant(_) | HistoryPiece::Reasoning(_) if is_free || !self.answered => {
                writer.write(piece);
            }
            HistoryPiece::User(_) | HistoryPiece::Developer(_) if is_free => writer.write(piece),
            _ => self.deferred.push(piece),
        }
    }

    fn release(&mut self, writer: &mut impl MessageWriter) {
        if self.open.is_empty() {
            self.answered = false;
            for piece in std::mem::take(&mut self.deferred) {
                self.push(piece, writer);
            }
        }
    }
}

/// An output without a call is said by the user.
fn orphan(piece: HistoryPiece) -> HistoryPiece {
    match piece {
        HistoryPiece::Output { call_id, mut parts, .. } => {
            parts.insert(0, ContentPart::Text(format!("The output of an earlier tool call ({call_id}):")));
            HistoryPiece::User(parts)
        }
        other => other,
    }
}
