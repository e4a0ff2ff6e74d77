//! The headers of one request, and the information in the response's headers.

use http::{HeaderMap, HeaderName, HeaderValue};
use model::{Metadata, Purpose, ResponseHead, StreamEvent};

use crate::rate_limits;

const TURN_STATE: HeaderName = HeaderName::from_static("x-codex-turn-state");
pub(crate) const SUBAGENT: HeaderName = HeaderName::from_static("x-openai-subagent");
pub(crate) const COMPACT: &str = "compact";
pub(crate) const REVIEW: &str = "review";
pub(crate) const MEMORY: &str = "memory_consolidation";
const CHILD: &str = "collab_spawn";

/// For a provider with a configured header of this name: a program that carries requests itself needs it.
pub(crate) const ABOUT: HeaderName = HeaderName::from_static("x-oarlock-request");

/// The purpose and thread of the request, also if that is no session of the provider's.
pub(crate) fn about(metadata: &Metadata) -> Option<HeaderValue> {
    let purpose = match metadata.purpose {
        Purpose::Turn => "turn",
        Purpose::Compaction => "compaction",
        Purpose::Review => "review",
        Purpose::Memory => "memory",
    };
    let about = serde_json::json!({ "purpose": purpose, "threadId": metadata.thread_id.as_str() });
    HeaderValue::from_str(&ascii(&about.to_string())).ok()
}

/// Correlation for the provider. A value that is invalid in a header is left out.
pub(crate) fn of_request(metadata: &Metadata) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let mut insert = |name: HeaderName, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    };
    // Requests of reviewers and for memories have their own history, and so their own session.
    let thread = match metadata.purpose {
        Purpose::Review | Purpose::Memory => metadata.turn_id.as_str(),
        Purpose::Turn | Purpose::Compaction => metadata.thread_id.as_str(),
    };
    let turn = metadata.turn_id.as_str();
    insert(HeaderName::from_static("session_id"), thread);
    insert(HeaderName::from_static("x-client-request-id"), thread);
    let mut about = serde_json::json!({ "session_id": thread, "turn_id": turn, "sandbox": metadata.sandbox });
    if let Some(workspaces) = &metadata.workspaces {
        about["workspaces"] = (**workspaces).clone();
    }
    insert(HeaderName::from_static("x-codex-turn-metadata"), &ascii(&about.to_string()));
    if let Some(state) = &metadata.turn_state {
        insert(TURN_STATE, state);
    }
    match metadata.purpose {
        // A summary is requested like any other answer; only a remote endpoint for it is notified.
        Purpose::Turn | Purpose::Compaction if metadata.agent_path.len() > 1 => insert(SUBAGENT, CHILD),
        Purpose::Turn | Purpose::Compaction => {}
        Purpose::Review => insert(SUBAGENT, REVIEW),
        Purpose::Memory => insert(SUBAGENT, MEMORY),
    }
    headers
}

/// ASCII JSON for a header: other characters only occur in strings, where they can be escaped.
fn ascii(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    for c in json.chars() {
        if c.is_ascii() {
            shown.push(c);
        } else {
            let mut units = [0; 2];
            c.encode_utf16(&mut units).iter().for_each(|unit| shown.push_str(&format!("\\u{unit:04x}")));
        }
    }
    shown
}

/// The events before those of the body: `ResponseHead`, then the rate limits of further families.
pub(crate) fn opening_events(headers: &HeaderMap) -> Vec<StreamEvent> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::to_owned);
    let opened = ResponseHead {
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
    fn a_repository_is_named_in_letters_that_a_header_can_carry() {
        let workspaces = serde_json::json!({"/srv/jürgen/🦀": {"latest_git_commit_hash": "abc"}});
        let about = Metadata { workspaces: Some(workspaces.clone().into()), ..metadata(Purpose::Turn, None) };
        let header = of_request(&about)["x-codex-turn-metadata"].to_str().expect("ASCII").to_owned();
        let read: serde_json::Value = serde_json::from_str(&header).expect("JSON");
        assert_eq!(read["workspaces"], workspaces, "{header}");
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
        assert_eq!(of_request(&metadata(Purpose::Memory, None))[SUBAGENT], "memory_consolidation");
        let agent_path = ["root".to_owned(), "child".to_owned()].into();
        let child = Metadata { agent_path, ..metadata(Purpose::Turn, None) };
        assert_eq!(of_request(&child)[SUBAGENT], "collab_spawn");
    }

    #[test]
    fn a_program_is_told_what_a_request_is_for() {
        let about = |purpose| about(&metadata(purpose, None)).expect("a header");
        assert_eq!(about(Purpose::Compaction), r#"{"purpose":"compaction","threadId":"thread-1"}"#);
        assert_eq!(about(Purpose::Memory), r#"{"purpose":"memory","threadId":"thread-1"}"#);
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
