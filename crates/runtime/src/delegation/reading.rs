//! One raw event as a host sends it.

use std::borrow::Cow;

use model::{ModelFailure, StreamEvent, parse_event};
use serde::Deserialize;
use serde_json::Value;

const NO_EVENT: &str = "it is no object with a `type`";

/// `Ok(None)`: nothing the turn needs. As in direct mode, but stricter: a host that adapts another provider's events
/// learns at once that one of them is not what its type promises.
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
    kind: Cow<'a, str>,
}

/// Few events come here, so only they are looked at twice.
fn unneeded(text: &str) -> Result<Option<StreamEvent>, String> {
    match serde_json::from_str::<Typed<'_>>(text) {
        Ok(typed) if typed.kind == "error" => Ok(Some(StreamEvent::Failed(failed(text)))),
        Ok(_) => Ok(None),
        Err(_) => Err(NO_EVENT.to_owned()),
    }
}

/// An `error` event has its fields at the top, or below `error`.
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
    fn what_has_no_type_or_breaks_its_promise_is_bad() {
        for text in ["7", "null", "{}", r#"{"type":5}"#, r#"["response.completed"]"#] {
            assert_eq!(read_event(text), Err(NO_EVENT.to_owned()), "{text}");
        }
        for text in [r#"{"type":"response.completed"}"#, r#"{"type":"response.output_text.delta"}"#] {
            assert!(read_event(text).is_err_and(|problem| problem.contains("has no")), "{text}");
        }
        assert_eq!(read_event(r#"{"type":"response.created","response":{"id":"r"}}"#), Ok(None));
        assert_eq!(read_event(r#"{"type":"keepalive"}"#), Ok(None));
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
