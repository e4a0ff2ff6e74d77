//! The events of a Responses stream.

use std::borrow::Cow;

use protocol::{RateLimitSnapshot, ResponseItem, TokenUsageBreakdown};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::ModelFailure;

/// One event with the data that a turn needs.
#[derive(Debug, Clone, PartialEq)]
pub enum StreamEvent {
    /// The provider accepted the request. Always first, made by the transport from the response headers.
    Opened(ResponseHead),
    ItemAdded(Box<ResponseItem>),
    ItemDone(Box<ResponseItem>),
    TextDelta {
        delta: String,
    },
    ReasoningSummaryPartAdded {
        summary_index: i64,
    },
    ReasoningSummaryDelta {
        summary_index: i64,
        delta: String,
    },
    ReasoningTextDelta {
        content_index: i64,
        delta: String,
    },
    RateLimits(Box<RateLimitSnapshot>),
    /// The image of the next item was saved there. Made by the runtime, never by a provider.
    ImageSaved {
        path: String,
    },
    /// The provider names the model that answers.
    ServedBy(String),
    /// Terminal.
    Completed {
        response_id: String,
        usage: Option<TokenUsageBreakdown>,
    },
    /// Terminal.
    Failed(ModelFailure),
}

impl StreamEvent {
    /// Nothing follows a terminal event.
    pub fn is_terminal(&self) -> bool {
        matches!(self, Self::Completed { .. } | Self::Failed(_))
    }
}

/// The values of the response headers.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ResponseHead {
    pub served_by: Option<String>,
    pub turn_state: Option<String>,
    /// The provider's token counts include earlier reasoning.
    pub reasoning_included: bool,
    pub rate_limits: Option<Box<RateLimitSnapshot>>,
}

/// An event of a known type with an invalid payload.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("stream event `{event}` {problem}")]
pub struct BadEvent {
    pub event: String,
    pub problem: String,
}

/// Parses one event in one pass. `Ok(None)`: not needed. That includes payloads that are not JSON, because providers
/// and proxies send many kinds of keep-alives.
pub fn parse_event(text: &str) -> Result<Option<StreamEvent>, BadEvent> {
    let Ok(raw) = serde_json::from_str::<RawEvent<'_>>(text) else { return Ok(None) };
    let bad = |problem: &str| BadEvent { event: raw.kind.clone().into_owned(), problem: problem.to_owned() };
    let delta = || raw.delta.as_deref().map(str::to_owned).ok_or_else(|| bad("has no `delta`"));
    let event = match raw.kind.as_ref() {
        "response.output_text.delta" => StreamEvent::TextDelta { delta: delta()? },
        "response.reasoning_summary_part.added" => StreamEvent::ReasoningSummaryPartAdded {
            summary_index: raw.summary_index.ok_or_else(|| bad("has no `summary_index`"))?,
        },
        "response.reasoning_summary_text.delta" => StreamEvent::ReasoningSummaryDelta {
            summary_index: raw.summary_index.ok_or_else(|| bad("has no `summary_index`"))?,
            delta: delta()?,
        },
        "response.reasoning_text.delta" => StreamEvent::ReasoningTextDelta {
            content_index: raw.content_index.ok_or_else(|| bad("has no `content_index`"))?,
            delta: delta()?,
        },
        "response.output_item.added" => match item(raw.item) {
            Some(item) => StreamEvent::ItemAdded(item),
            None => return Ok(None),
        },
        "response.output_item.done" => match item(raw.item) {
            Some(item) => StreamEvent::ItemDone(item),
            None => return Ok(None),
        },
        "response.completed" => completed(raw.response).ok_or_else(|| bad("has no `response.id`"))?,
        "response.failed" => StreamEvent::Failed(failed(raw.response)),
        "response.incomplete" => StreamEvent::Failed(incomplete(raw.response)),
        _ => return Ok(served_by(&raw).map(StreamEvent::ServedBy)),
    };
    Ok(Some(event))
}

/// The fields that any event may have; payloads are parsed only when their type needs them.
#[derive(Deserialize)]
struct RawEvent<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    delta: Option<Cow<'a, str>>,
    #[serde(default)]
    summary_index: Option<i64>,
    #[serde(default)]
    content_index: Option<i64>,
    #[serde(borrow, default)]
    item: Option<&'a RawValue>,
    #[serde(borrow, default)]
    response: Option<&'a RawValue>,
    #[serde(borrow, default)]
    headers: Option<&'a RawValue>,
}

/// A malformed item is ignored; the stream continues.
fn item(raw: Option<&RawValue>) -> Option<Box<ResponseItem>> {
    serde_json::from_str(raw?.get()).ok().map(Box::new)
}

#[derive(Deserialize)]
struct CompletedResponse {
    id: String,
    #[serde(default)]
    usage: Option<Usage>,
}

#[derive(Deserialize)]
struct Usage {
    #[serde(default)]
    input_tokens: i64,
    #[serde(default)]
    input_tokens_details: Option<InputDetails>,
    #[serde(default)]
    output_tokens: i64,
    #[serde(default)]
    output_tokens_details: Option<OutputDetails>,
    #[serde(default)]
    total_tokens: i64,
}

#[derive(Deserialize)]
struct InputDetails {
    #[serde(default)]
    cached_tokens: i64,
}

#[derive(Deserialize)]
struct OutputDetails {
    #[serde(default)]
    reasoning_tokens: i64,
}

fn completed(raw: Option<&RawValue>) -> Option<StreamEvent> {
    let response: CompletedResponse = serde_json::from_str(raw?.get()).ok()?;
    let usage = response.usage.map(|usage| TokenUsageBreakdown {
        total_tokens: usage.total_tokens,
        input_tokens: usage.input_tokens,
        cached_input_tokens: usage.input_tokens_details.map_or(0, |details| details.cached_tokens),
        output_tokens: usage.output_tokens,
        reasoning_output_tokens: usage.output_tokens_details.map_or(0, |details| details.reasoning_tokens),
        cache_write_input_tokens: None,
        is_estimated: false,
    });
    Some(StreamEvent::Completed { response_id: response.id, usage })
}

fn failed(raw: Option<&RawValue>) -> ModelFailure {
    let response: Option<Value> = raw.and_then(|raw| serde_json::from_str(raw.get()).ok());
    ModelFailure::from_failed_response(response.as_ref().and_then(|response| response.get("error")))
}

fn incomplete(raw: Option<&RawValue>) -> ModelFailure {
    let response: Option<Value> = raw.and_then(|raw| serde_json::from_str(raw.get()).ok());
    let reason = response.as_ref().and_then(|response| response.pointer("/incomplete_details/reason"));
    let reason = reason.and_then(Value::as_str).unwrap_or("unknown");
    ModelFailure::incomplete(reason)
}

/// The model named in an event's headers, at its top or in its `response`.
fn served_by(raw: &RawEvent<'_>) -> Option<String> {
    let direct = raw.headers.and_then(|headers| serde_json::from_str::<Value>(headers.get()).ok());
    let nested = || {
        let text = raw.response?.get();
        // Most responses repeat no headers: checked without building a tree.
        text.contains("\"headers\"")
            .then(|| serde_json::from_str::<Value>(text).ok()?.get("headers").cloned())
            .flatten()
    };
    let headers = direct.or_else(nested)?;
    let named =
        |name: &str| name.eq_ignore_ascii_case("openai-model") || name.eq_ignore_ascii_case("x-openai-model");
    let value = headers.as_object()?.iter().find(|(name, _)| named(name))?.1;
    value.as_str().or_else(|| value.get(0)?.as_str()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let shown = match parse_event(text) {
            Ok(Some(event)) => format!("{event:?}"),
            Ok(None) => "nothing".to_owned(),
            Err(error) => error.to_string(),
        };
        assert_eq!(shown, expected);
    }

    #[test]
    fn deltas() {
        check(
            r#"{"type":"response.output_text.delta","item_id":"m","delta":"a\u00e9\n"}"#,
            r#"TextDelta { delta: "aé\n" }"#,
        );
        check(
            r#"{"type":"response.reasoning_summary_text.delta","summary_index":1,"delta":"x"}"#,
            r#"ReasoningSummaryDelta { summary_index: 1, delta: "x" }"#,
        );
        check(
            r#"{"type":"response.reasoning_text.delta","delta":"x"}"#,
            "stream event `response.reasoning_text.delta` has no `content_index`",
        );
    }

    #[test]
    fn what_is_not_needed_or_not_json_is_passed_over() {
        check("not json", "nothing");
        check(r#"{"type":"response.output_item.done","item":{"type":"function_call"}}"#, "nothing");
        check(r#"{"type":"response.in_progress","response":{"id":"r"}}"#, "nothing");
    }

    #[test]
    fn a_later_item_type_is_kept_as_other() {
        check(r#"{"type":"response.output_item.done","item":{"type":"new_thing","x":1}}"#, "ItemDone(Other)");
    }

    #[test]
    fn completion_and_usage() {
        let Ok(Some(StreamEvent::Completed { response_id, usage: Some(usage) })) = parse_event(
            r#"{"type":"response.completed","response":{"id":"r1","usage":{"input_tokens":7,
                "input_tokens_details":{"cached_tokens":2},"output_tokens":3,"total_tokens":10}}}"#,
        ) else {
            panic!("not completed")
        };
        assert_eq!((response_id.as_str(), usage.cached_input_tokens, usage.total_tokens), ("r1", 2, 10));
        check(r#"{"type":"response.completed"}"#, "stream event `response.completed` has no `response.id`");
    }

    #[test]
    fn the_serving_model_is_found_in_any_event() {
        check(
            r#"{"type":"response.created","response":{"id":"r","headers":{"OpenAI-Model":["other"]}}}"#,
            r#"ServedBy("other")"#,
        );
        check(r#"{"type":"x","headers":{"x-openai-model":"m2"}}"#, r#"ServedBy("m2")"#);
    }

    #[test]
    fn an_incomplete_response_is_tried_again_unless_it_would_be_cut_again() {
        for (reason, may_retry, said) in [
            ("max_output_tokens", false, "as long as the model's answers may be (max_output_tokens)"),
            ("content_filter", false, "cut by the provider's content filter"),
            ("odd", true, "the response is incomplete, reason: odd"),
        ] {
            let response = serde_json::json!({ "incomplete_details": { "reason": reason } });
            let text = serde_json::json!({ "type": "response.incomplete", "response": response }).to_string();
            let Ok(Some(StreamEvent::Failed(failure))) = parse_event(&text) else { panic!("not failed") };
            assert_eq!(failure.is_retryable(), may_retry, "{reason}");
            assert!(failure.message.ends_with(said), "{failure}");
        }
    }
}
