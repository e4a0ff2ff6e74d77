//! Orders pieces for wires with strict turns: calls are followed by all their outputs, with nothing between.

use std::sync::{Arc, Weak};

use model::protocol::ResponseItem;

use crate::piece::{ContentPart, HistoryPiece, NO_OUTPUT, piece};

/// Encodes pieces as messages, each piece once.
pub(crate) trait MessageWriter: Sized {
    fn write(&mut self, piece: HistoryPiece);
    /// A writer that continues from here into its own buffer.
    fn tail(&self) -> Self;
}

/// The encoded messages and their items. A request that repeats those items continues after them.
#[derive(Debug)]
pub(crate) struct Transcript<W> {
    /// A weak reference prevents reuse of the address, so equal addresses mean equal items.
    seen: Vec<Weak<ResponseItem>>,
    order: CallOrder,
    pub(crate) writer: W,
}

#[derive(Debug, Clone, Default)]
struct CallOrder {
    /// Calls without an output so far.
    open: Vec<String>,
    /// These calls have an output, so the model's next text is a new answer.
    answered: bool,
    /// Held back until every open call has its output.
    deferred: Vec<HistoryPiece>,
}

impl<W: MessageWriter> Transcript<W> {
    pub(crate) fn new(writer: W) -> Self {
        Self { seen: Vec::new(), order: CallOrder::default(), writer }
    }

    /// Whether these items start with all encoded ones.
    pub(crate) fn continues(&self, input: &[Arc<ResponseItem>]) -> bool {
        self.seen.len() <= input.len()
            && self.seen.iter().zip(input).all(|(seen, item)| seen.as_ptr() == Arc::as_ptr(item))
    }

    /// Encodes the new items. The error names what cannot be expressed.
    pub(crate) fn follow(&mut self, input: &[Arc<ResponseItem>]) -> Result<(), &'static str> {
        for item in input.iter().skip(self.seen.len()) {
            if let Some(piece) = piece(item)? {
                self.order.push(piece, &mut self.writer);
            }
            self.seen.push(Arc::downgrade(item));
        }
        Ok(())
    }

    /// The end of this request, which may differ in the next: missing outputs, and pieces held back.
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
                // Its call is held back, or does not exist.
                None if !is_free => self.deferred.push(piece),
                None => writer.write(orphan(piece)),
            },
            HistoryPiece::Call(call) if is_free || !self.answered => {
                self.open.push(call.id.clone());
                writer.write(piece);
            }
            // Part of the same answer as the open calls.
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

/// An output without a call becomes a user message.
fn orphan(piece: HistoryPiece) -> HistoryPiece {
    match piece {
        HistoryPiece::Output { call_id, mut parts, .. } => {
            parts.insert(0, ContentPart::Text(format!("The output of an earlier tool call ({call_id}):")));
            HistoryPiece::User(parts)
        }
        other => other,
    }
}
