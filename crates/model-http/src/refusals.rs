//! Remembers the parts of requests that a provider has refused, so that later requests leave them out.

use model::{FailureClass, ModelFailure, RequestBody};
use parking_lot::Mutex;
use wires::{Capabilities, Thinking, Wire};

const MOST_KEPT: usize = 64;

/// An optional part of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RefusedPart {
    /// The model does not support thinking.
    Thinking,
    /// The model does not support an effort.
    Effort,
    /// This provider no longer accepts the conversation's earlier reasoning.
    EarlierReasoning,
}

impl RefusedPart {
    /// The part that a 400 names.
    pub(crate) fn named_by(failure: &ModelFailure, wire: Wire, request: &RequestBody) -> Option<Self> {
        if failure.http_status != Some(400) || failure.class != FailureClass::InvalidRequest {
            return None;
        }
        // The model's name may contain the word.
        let text = failure.message.replace(&request.model, "").to_ascii_lowercase();
        let says = |words: &[&str]| words.iter().any(|words| text.contains(words));
        match wire {
            Wire::Messages if says(&["signature", "thinking block", "redacted_thinking"]) => {
                Some(Self::EarlierReasoning)
            }
            Wire::Messages if says(&["thinking"]) => Some(Self::Thinking),
            Wire::Messages | Wire::Chat if says(&["effort"]) => {
                let asked = request.reasoning.as_ref().and_then(|reasoning| reasoning.effort.as_ref());
                asked.map(|_| Self::Effort)
            }
            Wire::Responses if says(&["encrypted_content", "encrypted content"]) => {
                Some(Self::EarlierReasoning)
            }
            _ => None,
        }
    }

    pub(crate) fn left_out(self, able: &Capabilities) -> Capabilities {
        match self {
            Self::Thinking => Capabilities { thinking: Some(Thinking::Never), ..able.clone() },
            Self::Effort => Capabilities { reasoning_effort: false, ..able.clone() },
            Self::EarlierReasoning => Capabilities { returns_reasoning: false, ..able.clone() },
        }
    }

    /// The subject of the refusal.
    fn key(self, request: &RequestBody) -> &str {
        match self {
            Self::Thinking | Self::Effort => &request.model,
            Self::EarlierReasoning => &request.prompt_cache_key,
        }
    }
}

/// The latest come last.
#[derive(Debug, Default)]
pub(crate) struct Refusals(Mutex<Vec<(RefusedPart, String)>>);

impl Refusals {
    pub(crate) fn remember(&self, part: RefusedPart, request: &RequestBody) {
        let mut kept = self.0.lock();
        if kept.len() >= MOST_KEPT {
            kept.remove(0);
        }
        kept.push((part, part.key(request).to_owned()));
    }

    /// Removes the parts that were refused for this model or conversation.
    pub(crate) fn apply(&self, able: Capabilities, request: &RequestBody) -> Capabilities {
        let kept = self.0.lock();
        let parts = kept.iter().filter(|(part, key)| part.key(request) == key);
        parts.fold(able, |able, (part, _)| part.left_out(&able))
    }
}
