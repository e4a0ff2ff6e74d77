//! The headers that belong to one request, and what the headers of its answer say.

use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use model::{Metadata, Opened, Purpose, StreamEvent};

use crate::rate_limits;

const TURN_STATE: HeaderName = HeaderName::from_static("x-codex-turn-state");
pub(crate) const SUBAGENT: HeaderName = HeaderName::from_static("x-openai-subagent");
pub(crate) const COMPACT: &str = "compact";
pub(crate) const REVIEW: &str = "review";
const CHILD: &str = "collab_spawn";

/// Correlation for the provider. A value that no header can carry is left out rather than failing the request.
pub(crate) fn of_request(metadata: &Metadata) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let mut insert = |name: HeaderName, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    };
    let (thread, turn) = (metadata.thread_id.as_str(), metadata.turn_id.as_str());
    insert(HeaderName::from_static("session_id"), thread);
    insert(HeaderName::from_static("x-client-request-id"), thread);
    let about = serde_json::json!({ "session_id": thread, "turn_id": turn, "sandbox": metadata.sandbox });
    insert(HeaderName::from_static("x-codex-turn-metadata"), &about.to_string());
    if let Some(state) = &metadata.turn_state {
        insert(TURN_STATE, state);
    }
    match metadata.purpose {
        // A summary is asked for like any other answer; only the remote endpoint for it is told.
        Purpose::Turn | Purpose::Compaction if metadata.agent_path.len() > 1 => insert(SUBAGENT, CHILD),
        Purpose::Turn | Purpose::Compaction => {}
        Purpose::Review => insert(SUBAGENT, REVIEW),
    }
    headers
}

/// The events that come before those of the body: `Opened`, then the rate limits of further families.
pub(crate) fn opening_events(headers: &HeaderMap) -> Vec<StreamEvent> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::to_owned);
    let opened = Opened {
        served_by: text("openai-model"),
        turn_state: text(TURN_STATE.as_str()),
        reasoning_included: headers.contains_key("x-reasoning-included"),
        rate_limits: Some(Box::new(rate_limits::main(headers))),
    };
    let others =
        rate_limits::others(headers).into_iter().map(|limits| StreamEvent::RateLimits(Box::new(limits)));
    std::iter::once(StreamEvent::Opened(opened)).chain(others).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(purpose: Purpose, turn_state: Option<&str>) -> Metadata {
        let turn_state = turn_state.map(str::to_owned);
        Metadata { purpose, turn_state, ..Metadata::first("thread-1".into(), "turn-1".into()) }
    }

    #[test]
    fn a_request_names_its_thread_and_turn() {
        let headers = of_request(&metadata(Purpose::Turn, Some("state")));
        assert_eq!(headers["session_id"], "thread-1");
        assert_eq!(headers["x-client-request-id"], "thread-1");
        assert_eq!(
            headers["x-codex-turn-metadata"],
            r#"{"session_id":"thread-1","turn_id":"turn-1","sandbox":"none"}"#
        );
        assert_eq!(headers["x-codex-turn-state"], "state");
        assert_eq!(headers.len(), 4);
        assert_eq!(of_request(&metadata(Purpose::Review, None))[SUBAGENT], "review");
        let agent_path = ["root".to_owned(), "child".to_owned()].into();
        let child = Metadata { agent_path, ..metadata(Purpose::Turn, None) };
        assert_eq!(of_request(&child)[SUBAGENT], "collab_spawn");
    }

    #[test]
    fn a_state_with_a_line_break_is_left_out() {
        assert!(!of_request(&metadata(Purpose::Turn, Some("a\nb"))).contains_key(TURN_STATE));
    }

    #[test]
    fn the_answer_says_who_serves_and_what_to_echo() {
        let mut headers = HeaderMap::new();
        headers.insert("openai-model", HeaderValue::from_static("served"));
        headers.insert(TURN_STATE, HeaderValue::from_static("state"));
        headers.insert("x-reasoning-included", HeaderValue::from_static("true"));
        let events = opening_events(&headers);
        let [StreamEvent::Opened(opened)] = events.as_slice() else { panic!("{events:?}") };
        assert_eq!(opened.served_by.as_deref(), Some("served"));
        assert_eq!(opened.turn_state.as_deref(), Some("state"));
        assert!(opened.reasoning_included);
    }
}
