//! Messages on a connection other than responses.

use std::fmt;
use std::sync::Arc;

use crate::encode::EncodedLine;

/// The cost of an entry in addition to its bytes: its slot, the queue's spare capacity, and its allocations.
pub(crate) const ENTRY_BYTES: usize = 256;

/// Messages whose relative order matters, such as those of one thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OrderGroup(pub u64);

/// Renders the line of a delta from its merged text, when it is written. An empty line is not sent.
pub type Render = Arc<dyn Fn(&str) -> EncodedLine + Send + Sync>;

/// Deltas with equal keys are pieces of one text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeltaKey {
    pub group: OrderGroup,
    /// The text within the group: the item, and its part.
    pub stream: Arc<str>,
}

/// A notification, or a request of ours.
#[derive(Clone)]
pub enum OutgoingMessage {
    /// Without a group, it keeps its order relative to all messages.
    Plain { group: Option<OrderGroup>, line: EncodedLine },
    /// A piece of text that may be merged with the next one. `render` is the same for all of a key.
    Delta { key: DeltaKey, text: String, render: Render },
}

impl OutgoingMessage {
    /// The bytes it takes in the queue. The text's allocation may be a quarter larger.
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
