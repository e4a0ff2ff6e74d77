//! Messages sent on a connection beside answers.

use std::fmt;
use std::sync::Arc;

use crate::encode::EncodedLine;

/// Cost of an entry beside its bytes: its slot, the spare capacity of the queue, and its allocations.
pub(crate) const ENTRY_BYTES: usize = 256;

/// Messages whose order matters to each other, as those of one thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OrderGroup(pub u64);

/// Makes the line of a delta from all its text, when it is written. An empty line is not sent.
pub type Render = Arc<dyn Fn(&str) -> EncodedLine + Send + Sync>;

/// Deltas with equal keys are pieces of one text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeltaKey {
    pub group: OrderGroup,
    /// Which text of the group: the item, and which part of it.
    pub stream: Arc<str>,
}

/// A message that is not an answer: a notification, or a request of ours.
#[derive(Clone)]
pub enum OutgoingMessage {
    /// Without a group, it is in order with everything.
    Plain { group: Option<OrderGroup>, line: EncodedLine },
    /// A piece of text that may be merged with its neighbours. `render` is the same for all of a key.
    Delta { key: DeltaKey, text: String, render: Render },
}

impl OutgoingMessage {
    /// Bytes it takes in the queue. Text may be held in an allocation a quarter larger.
    pub(crate) fn cost(&self) -> usize {
        let bytes = match self {
            Self::Plain { line, .. } => line.len(),
            Self::Delta { text, .. } => text.len() + text.len() / 4,
        };
        ENTRY_BYTES + bytes
    }
}

impl fmt::Debug for OutgoingMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain { group, line } => {
                f.debug_struct("Plain").field("group", group).field("bytes", &line.len()).finish()
            }
            Self::Delta { key, text, .. } => {
                f.debug_struct("Delta").field("key", key).field("bytes", &text.len()).finish()
            }
        }
    }
}
