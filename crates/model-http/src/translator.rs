//! Serves Responses requests of other programs with a provider of another wire.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use model::protocol::{ThreadId, TurnId};
use model::{EventStream, FailureClass, Metadata, ModelFailure, ModelTransport, PreparedRequest, Reasoning};
use model::{RequestBody, StreamEvent};
use serde::Deserialize;
use serde_json::{Value, json};
use wires::{ResponsesWriter, error_code};

use crate::offline::{ForeignRequest, read_request};
use crate::{ClientOptions, HttpTransport, Provider, ProviderError};

/// One provider of the chat or messages wire, behind the Responses API.
#[derive(Debug)]
pub struct Translator {
    transport: HttpTransport,
}

/// A refused request.
#[derive(Debug, Clone, PartialEq)]
pub struct RefusedTranslation {
    pub status: u16,
    /// The error in the form of the Responses API.
    pub body: Value,
}

/// Request fields that only this code needs.
#[derive(Deserialize, Default)]
struct MoreFields {
    model: Option<String>,
    reasoning: Option<Reasoning>,
    parallel_tool_calls: Option<bool>,
}

impl Translator {
    pub fn new(provider: &Provider, options: &ClientOptions) -> Result<Self, ProviderError> {
        Ok(Self { transport: HttpTransport::new(provider, options)? })
    }

    /// Returns once the provider has accepted or refused the request. Dropping the translation ends the request.
    pub async fn post(&self, body: &[u8]) -> Result<Translation, RefusedTranslation> {
        let invalid = |problem: String| ModelFailure::new(FailureClass::InvalidRequest, problem);
        let ForeignRequest { body: request, stream } =
            read_request(body).map_err(|problem| refused(400, &invalid(problem)))?;
        let more: MoreFields = serde_json::from_slice(body).unwrap_or_default();
        let Some(model) = more.model else {
            return Err(refused(400, &invalid("`model` is missing".to_owned())));
        };
        let request = RequestBody {
            model: model.clone(),
            reasoning: more.reasoning,
            parallel_tool_calls: more.parallel_tool_calls.unwrap_or(true),
            tools: request.tools.iter().filter(|tool| can_be_offered(tool)).cloned().collect(),
            ..request
        };
        // The bytes of the conversation's earlier requests are cached under this name.
        let thread = ThreadId::from(request.prompt_cache_key.as_str());
        let metadata = Metadata::first(thread, TurnId::from("translated"));
        let request = PreparedRequest { body: Arc::new(request), metadata };
        let mut events = self.transport.open(request);
        let first = poll_fn(|context| events.as_mut().poll_next(context)).await;
        let mut translation = Translation {
            events,
            writer: ResponsesWriter::new(&model, "resp_translated"),
            written: VecDeque::new(),
            is_over: false,
            wants_stream: stream,
        };
        match first {
            Some(Ok(event)) => translation.take(Ok(event)),
            Some(Err(failure)) => return Err(refused(failure.http_status.unwrap_or(502), &failure)),
            None => return Err(refused(502, &ModelFailure::stream("no answer"))),
        }
        Ok(translation)
    }
}

/// Hosted tools of the Responses API do not exist here. Clients offer them by default, so they are left out instead of
/// refused.
fn can_be_offered(tool: &Value) -> bool {
    let kind = tool["type"].as_str().unwrap_or("function");
    let can = matches!(kind, "function" | "custom" | "namespace");
    if !can {
        tracing::debug!(kind, "a tool that only its own provider can run is left out");
    }
    can
}

fn refused(status: u16, failure: &ModelFailure) -> RefusedTranslation {
    // A web page with status 200 is no success.
    let status = if status < 400 { 502 } else { status };
    let error = json!({ "message": failure.message, "type": "upstream_error", "code": error_code(failure) });
    RefusedTranslation { status, body: json!({ "error": error }) }
}

/// A response in progress.
pub struct Translation {
    events: EventStream,
    writer: ResponsesWriter,
    /// The data of queued events.
    written: VecDeque<Value>,
    is_over: bool,
    wants_stream: bool,
}

impl Translation {
    /// Otherwise the client wants the whole response at once.
    pub fn wants_stream(&self) -> bool {
        self.wants_stream
    }

    /// The data of the next event; `None` after the last.
    pub fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Option<Value>> {
        loop {
            if let Some(event) = self.written.pop_front() {
                return Poll::Ready(Some(event));
            }
            if self.is_over {
                return Poll::Ready(None);
            }
            match ready!(self.events.as_mut().poll_next(context)) {
                Some(event) => self.take(event),
                None => self.take(Err(ModelFailure::stream("the provider's stream ended early"))),
            }
        }
    }

    /// The response of the last event.
    pub async fn whole(mut self) -> Value {
        let mut last = Value::Null;
        while let Some(event) = poll_fn(|context| self.poll_event(context)).await {
            last = event;
        }
        last["response"].take()
    }

    fn take(&mut self, event: Result<StreamEvent, ModelFailure>) {
        let event = event.unwrap_or_else(StreamEvent::Failed);
        self.is_over = event.is_terminal();
        let mut out = Vec::new();
        self.writer.push(&event, &mut out);
        self.written.extend(out);
    }
}

impl fmt::Debug for Translation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Translation").field("is_over", &self.is_over).finish_non_exhaustive()
    }
}
