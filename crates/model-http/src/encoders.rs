//! The encoders of recently active conversations, each with the encoded bytes of its history.

use model::PreparedRequest;
use parking_lot::Mutex;
use wires::{Capabilities, EncodedRequest, Encoder, Unsupported, Wire};

/// Limits of the encoders kept in addition to the current conversation's.
const MOST_CONVERSATIONS: usize = 32;
const MOST_BYTES: usize = 32 << 20;

/// By the `prompt_cache_key`, which differs between a reviewer and its thread: their histories differ, and the thread's
/// bytes are kept meanwhile. Most recently used last.
#[derive(Debug)]
pub(crate) struct Encoders {
    wire: Wire,
    kept: Mutex<Vec<(String, Encoder)>>,
}

impl Encoders {
    pub(crate) fn new(wire: Wire) -> Self {
        Self { wire, kept: Mutex::new(Vec::new()) }
    }

    pub(crate) fn encode(
        &self,
        request: &PreparedRequest,
        able: &Capabilities,
    ) -> Result<EncodedRequest, Unsupported> {
        let key = &request.body.prompt_cache_key;
        // Concurrent requests of one conversation are rare; the second encodes its history again.
        let mut encoder = self.take(key).unwrap_or_else(|| Encoder::new(self.wire));
        let encoded = encoder.encode(&request.body, able);
        self.keep(key.clone(), encoder);
        encoded
    }

    fn take(&self, key: &str) -> Option<Encoder> {
        let mut kept = self.kept.lock();
        let at = kept.iter().position(|(known, _)| known == key)?;
        Some(kept.remove(at).1)
    }

    fn keep(&self, key: String, encoder: Encoder) {
        let mut kept = self.kept.lock();
        kept.retain(|(known, _)| *known != key);
        kept.push((key, encoder));
        let bytes = |kept: &[(String, Encoder)]| kept.iter().map(|(_, one)| one.kept_bytes()).sum::<usize>();
        while kept.len() > 1 && (kept.len() > MOST_CONVERSATIONS || bytes(&kept) > MOST_BYTES) {
            kept.remove(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use model::protocol::{ContentItem, ResponseItem, ThreadId, TurnId};
    use model::{Metadata, RequestBody, ToolChoice};

    use super::*;

    fn said(text: &str) -> Arc<ResponseItem> {
        Arc::new(ResponseItem::Message {
            id: None,
            role: "user".to_owned(),
            content: vec![ContentItem::InputText { text: text.to_owned() }],
            end_turn: None,
            phase: None,
        })
    }

    fn request(key: &str, input: Vec<Arc<ResponseItem>>) -> PreparedRequest {
        let body = RequestBody {
            model: "m".to_owned(),
            instructions: String::new(),
            input,
            tools: Vec::new(),
            tool_choice: ToolChoice::Auto,
            parallel_tool_calls: false,
            reasoning: None,
            store: false,
            stream: true,
            include: Vec::new(),
            service_tier: None,
            prompt_cache_key: key.to_owned(),
            text: None,
        };
        let metadata = Metadata::first(ThreadId::from("thread"), TurnId::from("turn"));
        PreparedRequest { body: Arc::new(body), metadata }
    }

    #[test]
    fn a_review_leaves_the_bytes_of_its_thread_where_they_are() {
        for wire in [Wire::Responses, Wire::Chat, Wire::Messages] {
            let (encoders, able) = (Encoders::new(wire), Capabilities::of("p", wire));
            let history = vec![said("one"), said("two")];
            let first = encoders.encode(&request("thread", history.clone()), &able).expect("encodes");
            let kept = encoders.take("thread").expect("kept");
            let bytes = kept.kept_bytes();
            encoders.keep("thread".to_owned(), kept);
            // Of the same thread, by its id.
            encoders.encode(&request("review", vec![said("judge")]), &able).expect("encodes");
            assert_eq!(encoders.take("thread").expect("still kept").kept_bytes(), bytes);
            let again = encoders.encode(&request("thread", history), &able).expect("encodes");
            assert_eq!(first.body.concat(), again.body.concat());
        }
    }
}
