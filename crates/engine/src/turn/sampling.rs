//! One attempt at a model request: the item being streamed and the calls received.

use model::{ModelFailure, PreparedRequest};
use protocol::{ItemId, MessagePhase, ResponseItem, ThreadItem};

use crate::calls::OpenCall;
use crate::citation::CitationFilter;
use crate::plan_text::PlanSplitter;

#[derive(Debug, Clone)]
pub(crate) struct Sampling {
    pub(crate) attempt: u64,
    /// Kept for the retry, which sends the same bytes.
    pub(crate) request: PreparedRequest,
    pub(crate) active: Option<Active>,
    pub(crate) calls: Vec<OpenCall>,
    /// Finished items held back until the response is complete, if `calls_wait` is set.
    pub(crate) held: Vec<ResponseItem>,
    /// The image file for the next item.
    pub(crate) saved_image: Option<String>,
    pub(crate) stream: StreamState,
}

#[derive(Debug, Clone)]
pub(crate) enum StreamState {
    Open,
    Completed,
    /// Broken; its calls may still be running.
    Broken(ModelFailure),
}

/// The item that receives deltas.
#[derive(Debug, Clone)]
pub(crate) enum Active {
    Message(ActiveMessage),
    Reasoning { id: ItemId, summary: Vec<String>, content: Vec<String> },
    Other(ThreadItem),
}

#[derive(Debug, Clone)]
pub(crate) struct ActiveMessage {
    pub(crate) id: ItemId,
    pub(crate) phase: Option<MessagePhase>,
    pub(crate) text: String,
    pub(crate) started: bool,
    /// Removes markup from the deltas.
    pub(crate) citations: CitationFilter,
    /// Set in plan mode.
    pub(crate) plan: Option<ActivePlan>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct ActivePlan {
    pub(crate) splitter: PlanSplitter,
    pub(crate) text: String,
    pub(crate) started: bool,
    /// Blank text before the first word is held back: the message may consist of the plan alone.
    pub(crate) blank: String,
}

impl Sampling {
    pub(crate) fn new(attempt: u64, request: PreparedRequest) -> Self {
        Self {
            attempt,
            request,
            active: None,
            calls: Vec::new(),
            held: Vec::new(),
            saved_image: None,
            stream: StreamState::Open,
        }
    }

    pub(crate) fn calls_are_done(&self) -> bool {
        self.calls.iter().all(|call| call.output.is_some())
    }

    /// The stream ended and every call has its output.
    pub(crate) fn is_done(&self) -> bool {
        !matches!(self.stream, StreamState::Open) && self.calls_are_done()
    }

    pub(crate) fn call_mut(&mut self, call_id: &str) -> Option<&mut OpenCall> {
        self.calls.iter_mut().find(|open| open.call.call_id == call_id && open.output.is_none())
    }
}

impl Active {
    pub(crate) fn id(&self) -> &ItemId {
        match self {
            Self::Message(message) => &message.id,
            Self::Reasoning { id, .. } => id,
            Self::Other(item) => item.id(),
        }
    }

    /// The item with its content so far, if clients have seen it start.
    pub(crate) fn so_far(self) -> Option<ThreadItem> {
        match self {
            Self::Message(message) => message.started.then_some(ThreadItem::AgentMessage {
                id: message.id,
                text: message.text,
                phase: message.phase,
                memory_citation: None,
            }),
            Self::Reasoning { id, summary, content } => Some(ThreadItem::Reasoning { id, summary, content }),
            Self::Other(item) => Some(item),
        }
    }
}

/// Appends to the text with this index, adding it if missing.
pub(crate) fn append_at(texts: &mut Vec<String>, index: i64, delta: &str) {
    // The index comes from the provider: a huge one must not allocate a huge list.
    let index = usize::try_from(index).unwrap_or(0).min(texts.len());
    if index == texts.len() {
        texts.push(String::new());
    }
    if let Some(text) = texts.get_mut(index) {
        text.push_str(delta);
    }
}
