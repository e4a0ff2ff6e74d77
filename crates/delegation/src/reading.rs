//! Parses one raw event from a host.

use std::borrow::Cow;

use model::{ModelFailure, StreamEvent, parse_event};
use serde::Deserialize;
use serde_json::Value;

const NO_EVENT: &str = "it is no object with a `type`";

/// `Ok(None)`: the turn does not need it. Stricter than for direct requests: a host that adapts another provider's
/// events learns at once that one of them is invalid.
pub(super) fn read_event(text: &str) -> Result<Option<StreamEvent>, String> {
    if !text.starts_with('{') {
        return Err(NO_EVENT.to_owned());
    }
    match parse_event(text) {
        Ok(Some(event)) => Ok(Some(event)),
        Ok(None) => unneeded(text),
        Err(bad) => Err(bad.to_string()),
    }
}

#[derive(Deserialize)]
struct Typed<'a> {
    #[serde(rename = "type", borrow)]
    kind: Option<Cow<'a, str>>,
    /// Set in events of other APIs.
    #[serde(borrow)]
    object: Option<Cow<'a, str>>,
}

/// Few events get here, so only they are parsed twice.
fn unneeded(text: &str) -> Result<Option<StreamEvent>, String> {
    let typed: Typed<'_> = serde_json::from_str(text).map_err(|_| NO_EVENT.to_owned())?;
    match (typed.kind.as_deref(), typed.object.as_deref()) {
        (Some("error"), _) => Ok(Some(StreamEvent::Failed(failed(text)))),
        (Some(kind), _) if is_of_responses(kind) => Ok(None),
        (Some(foreign), _) | (None, Some(foreign)) => Err(not_of_responses(foreign)),
        (None, None) => Err(NO_EVENT.to_owned()),
    }
}

/// Whether a stream may contain events of this type, although the turn ignores them.
fn is_of_responses(kind: &str) -> bool {
    kind == "keepalive" || kind == "ping" || kind.starts_with("response.") || kind.starts_with("codex.")
}

fn not_of_responses(kind: &str) -> String {
    const SHOWN: usize = 64;
    let shown: String = kind.chars().filter(|letter| !letter.is_control()).take(SHOWN).collect();
    format!(
        "`{shown}` is no event of the Responses API; translate the provider's events before you send them"
    )
}

/// An `error` event has its fields at the top, or in `error`.
fn failed(text: &str) -> ModelFailure {
    let event: Option<Value> = serde_json::from_str(text).ok();
    let error =
        event.as_ref().map(|event| event.get("error").filter(|error| error.is_object()).unwrap_or(event));
    ModelFailure::from_failed_response(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_without_a_type_or_with_invalid_fields_are_refused() {
        for text in ["7", "null", "{}", r#"{"type":5}"#, r#"["response.completed"]"#] {
            assert_eq!(read_event(text), Err(NO_EVENT.to_owned()), "{text}");
        }
        for text in [r#"{"type":"response.completed"}"#, r#"{"type":"response.output_text.delta"}"#] {
            assert!(read_event(text).is_err_and(|problem| problem.contains("has no")), "{text}");
        }
        assert_eq!(read_event(r#"{"type":"response.created","response":{"id":"r"}}"#), Ok(None));
        assert_eq!(read_event(r#"{"type":"keepalive"}"#), Ok(None));
        assert_eq!(read_event(r#"{"type":"response.some.day"}"#), Ok(None));
    }

    #[test]
    fn events_of_other_apis_are_named() {
        for (text, kind) in [
            (r#"{"type":"message_start","message":{"id":"m"}}"#, "message_start"),
            (r#"{"type":"content_block_delta","delta":{"text":"x"}}"#, "content_block_delta"),
            (r#"{"id":"c","object":"chat.completion.chunk","choices":[]}"#, "chat.completion.chunk"),
        ] {
            let problem = read_event(text).expect_err("no event of ours");
            assert!(problem.starts_with(&format!("`{kind}` is no event of the Responses API")), "{problem}");
        }
    }

    #[test]
    fn an_error_event_ends_the_stream() {
        for text in [
            r#"{"type":"error","code":"context_length_exceeded","message":"too long"}"#,
            r#"{"type":"error","error":{"code":"context_length_exceeded","message":"too long"}}"#,
        ] {
            let Ok(Some(StreamEvent::Failed(failure))) = read_event(text) else { panic!("{text}") };
            assert_eq!(failure.class, model::FailureClass::ContextWindow);
        }
    }
}
