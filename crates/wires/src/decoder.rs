//! Decodes the events of a stream, on any wire.

use std::collections::HashSet;
use std::sync::Arc;

use model::protocol::ResponseItem;
use model::{FailureClass, ModelFailure, RequestBody, StreamEvent};

use crate::answer_check::AnswerCheck;
use crate::failure::room_helps;
use crate::usage::{estimated, item_bytes};
use crate::{Capabilities, chat, messages, responses};

/// Limit of a response.
pub(crate) const MAX_RESPONSE_BYTES: usize = 64 << 20;
/// Limit of calls in one response.
pub(crate) const MAX_CALLS: usize = 256;

/// Converts the data of stream events to Responses events, with exactly one terminal event, whatever the server does.
#[derive(Debug, Clone)]
pub struct Decoder {
    wire: WireDecoder,
    /// Set if the answer has to match a schema that the wire does not enforce.
    answer: Option<Box<AnswerCheck>>,
}

#[derive(Debug, Clone)]
enum WireDecoder {
    Responses {
        is_over: bool,
        /// Set if missing data of the server is filled in.
        gaps: Option<ResponsesGaps>,
    },
    Chat(Box<chat::ChatDecoder>),
    Messages(Box<messages::MessagesDecoder>),
}

impl Decoder {
    /// For the Responses wire, which needs no data of the request.
    pub fn responses() -> Self {
        Self { wire: WireDecoder::Responses { is_over: false, gaps: None }, answer: None }
    }

    pub(crate) fn responses_to(request: &Arc<RequestBody>, able: &Capabilities) -> Self {
        let gaps =
            able.completes_responses.then(|| ResponsesGaps { request: Arc::clone(request), written: 0 });
        Self { wire: WireDecoder::Responses { is_over: false, gaps }, answer: None }
    }

    pub(crate) fn chat(decoder: chat::ChatDecoder, request: &RequestBody) -> Self {
        Self { wire: WireDecoder::Chat(Box::new(decoder)), answer: AnswerCheck::of(request) }
    }

    pub(crate) fn messages(decoder: messages::MessagesDecoder, request: &RequestBody) -> Self {
        Self { wire: WireDecoder::Messages(Box::new(decoder)), answer: AnswerCheck::of(request) }
    }

    /// Decodes the data of one event. Nothing follows a terminal event.
    pub fn push(&mut self, data: &str, out: &mut Vec<StreamEvent>) {
        let before = out.len();
        match &mut self.wire {
            WireDecoder::Responses { is_over, gaps } => {
                if *is_over {
                    return;
                }
                if let Some(mut event) = responses::decode(data) {
                    if let Some(gaps) = gaps {
                        gaps.fill(&mut event);
                    }
                    *is_over = event.is_terminal();
                    out.push(event);
                }
            }
            WireDecoder::Chat(decoder) => decoder.push(data, out),
            WireDecoder::Messages(decoder) => decoder.push(data, out),
        }
        self.check_answer(&mut out[before..]);
    }

    /// The end of the stream. A complete response counts, whatever happened to its connection; any other has failed,
    /// for the given reason if there is one.
    pub fn close(&mut self, reason: Option<ModelFailure>, out: &mut Vec<StreamEvent>) {
        let before = out.len();
        match &mut self.wire {
            WireDecoder::Responses { is_over, .. } => {
                if !std::mem::replace(is_over, true) {
                    let failure = reason.unwrap_or_else(|| ModelFailure::stream(responses::CLOSED_EARLY));
                    out.push(StreamEvent::Failed(failure));
                }
            }
            WireDecoder::Chat(decoder) => decoder.close(reason, out),
            WireDecoder::Messages(decoder) => decoder.close(reason, out),
        }
        self.check_answer(&mut out[before..]);
    }

    fn check_answer(&mut self, events: &mut [StreamEvent]) {
        if let Some(answer) = &mut self.answer {
            answer.follow(events);
        }
    }
}

/// Adds data to a Responses server's events that other wires provide.
#[derive(Debug, Clone)]
struct ResponsesGaps {
    request: Arc<RequestBody>,
    /// Bytes of finished items, for a server that does not count tokens.
    written: usize,
}

impl ResponsesGaps {
    fn fill(&mut self, event: &mut StreamEvent) {
        match event {
            StreamEvent::ItemDone(item) => self.written += item_bytes(item),
            StreamEvent::Completed { usage, .. } => {
                usage.get_or_insert_with(|| estimated(&self.request, self.written));
            }
            StreamEvent::Failed(failure) if failure.class == FailureClass::ContextWindow => {
                failure.verdict.get_or_insert_with(room_helps);
            }
            _ => {}
        }
    }
}

/// The call ids in this request.
pub(crate) fn taken_ids(request: &RequestBody) -> HashSet<&str> {
    request.input.iter().filter_map(|item| call_id_of(item)).collect()
}

fn call_id_of(item: &ResponseItem) -> Option<&str> {
    match item {
        ResponseItem::FunctionCall { call_id, .. } | ResponseItem::CustomToolCall { call_id, .. } => {
            Some(call_id)
        }
        ResponseItem::LocalShellCall { call_id, .. } => call_id.as_deref(),
        _ => None,
    }
}

/// Makes ids unique for servers that number the calls of every response from 0.
pub(crate) fn unique_id(id: String, is_taken: impl Fn(&str) -> bool) -> String {
    if !is_taken(&id) {
        return id;
    }
    (2_u32..).map(|n| format!("{id}_{n}")).find(|id| !is_taken(id)).unwrap_or(id)
}
