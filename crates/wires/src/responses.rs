//! The Responses wire: the engine's own format, with cached bytes of earlier items.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use model::protocol::ResponseItem;
use model::{ModelFailure, RequestBody, StreamEvent, parse_event};

use crate::shared_bytes::SharedBytes;
use crate::{Capabilities, blob, failure, json};

/// The items written so far, comma by comma.
#[derive(Debug, Default)]
pub(crate) struct ResponsesEncoder {
    seen: Vec<Weak<ResponseItem>>,
    bytes: SharedBytes,
    /// Earlier reasoning was left out.
    is_stripped: bool,
}

impl ResponsesEncoder {
    pub(crate) fn kept_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The fields in the order of [`RequestBody`], with the same bytes as a plain serialisation.
    pub(crate) fn encode(
        &mut self,
        request: &RequestBody,
        able: &Capabilities,
    ) -> Result<Vec<Bytes>, serde_json::Error> {
        if self.is_stripped == able.returns_reasoning {
            *self = Self { is_stripped: !able.returns_reasoning, ..Self::default() };
        }
        self.follow(&request.input);
        let frame = serde_json::to_vec(&without_input(request))?;
        // `model` and `instructions` precede `input`, whose position is found by encoding them again.
        let mut head = Vec::with_capacity(frame.len());
        head.push(b'{');
        json::field(&mut head, "model", &request.model);
        json::field(&mut head, "instructions", &request.instructions);
        json::key(&mut head, "input");
        head.push(b'[');
        let behind = Bytes::from(frame).slice(head.len()..);
        Ok([Bytes::from(head)].into_iter().chain(self.bytes.all()).chain([behind]).collect())
    }

    fn follow(&mut self, input: &[Arc<ResponseItem>]) {
        let continues = self.seen.len() <= input.len()
            && self.seen.iter().zip(input).all(|(seen, item)| seen.as_ptr() == Arc::as_ptr(item));
        if !continues {
            *self = Self { is_stripped: self.is_stripped, ..Self::default() };
        }
        let mut new = Vec::new();
        for item in input.iter().skip(self.seen.len()) {
            self.seen.push(Arc::downgrade(item));
            if is_foreign(item) || (self.is_stripped && matches!(**item, ResponseItem::Reasoning { .. })) {
                continue;
            }
            if !self.bytes.is_empty() || !new.is_empty() {
                new.push(b',');
            }
            json::write(&mut new, item.as_ref());
        }
        self.bytes.add(new);
    }
}

/// Reasoning of another wire, which a provider of this one would refuse.
fn is_foreign(item: &ResponseItem) -> bool {
    matches!(item, ResponseItem::Reasoning { encrypted_content: Some(text), .. } if blob::is_ours(text))
}

/// Everything but the history.
fn without_input(request: &RequestBody) -> RequestBody {
    RequestBody {
        model: request.model.clone(),
        instructions: request.instructions.clone(),
        input: Vec::new(),
        tools: request.tools.clone(),
        tool_choice: request.tool_choice,
        parallel_tool_calls: request.parallel_tool_calls,
        reasoning: request.reasoning.clone(),
        store: request.store,
        stream: request.stream,
        include: request.include.clone(),
        service_tier: request.service_tier.clone(),
        prompt_cache_key: request.prompt_cache_key.clone(),
        text: request.text.clone(),
    }
}

pub(crate) const CLOSED_EARLY: &str = "stream closed before response.completed";

/// Only the end of a response must be valid; other unparsable events are ignored, because providers add new ones.
pub(crate) fn decode(text: &str) -> Option<StreamEvent> {
    match parse_event(text) {
        Ok(None) if text.contains("\"error\"") => {
            let event = serde_json::from_str(text).ok()?;
            failure::in_stream(&event).map(StreamEvent::Failed)
        }
        Ok(event) => event,
        Err(bad) if bad.event == "response.completed" => Some(StreamEvent::Failed(ModelFailure::stream(bad))),
        Err(_) => None,
    }
}
