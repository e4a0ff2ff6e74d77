//! Checks of requests to open a thread.

use std::path::Path;

use delegation::DelegationError;
use protocol::{ContentItem, ResolvedOperation, ResponseItem, ThreadId};

use crate::error::RuntimeError;
use driver::check_thread_id;

/// A new thread has no turn to resume. The turn of the thread it was copied from stays there: its operations must not
/// be repeated.
pub(crate) fn nothing_to_resume(
    resolved: Option<&[ResolvedOperation]>,
    resume_turn: bool,
) -> Result<(), RuntimeError> {
    let field = match (resolved, resume_turn) {
        (Some(_), _) => "resolvedOperations",
        (None, true) => "resumeTurn",
        (None, false) => return Ok(()),
    };
    let problem = "is for thread/resume: a new thread has no turn to go on with, and a copy leaves an unfinished turn to the \
                   thread it was copied from";
    Err(DelegationError::Unsupported { field, problem: problem.to_owned() }.into())
}

/// Records are named after their threads; those of the reference begin with `rollout-` and a time.
pub(crate) fn id_of_path(path: &str) -> Result<ThreadId, RuntimeError> {
    let stem = Path::new(path).file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let id = stem.strip_prefix("rollout-").and_then(|named| named.get(named.len().checked_sub(36)?..));
    let stem = id.unwrap_or(stem);
    check_thread_id(&ThreadId::new(stem)).map_err(|_| RuntimeError::UnreadableRecord {
        path: path.to_owned(),
        problem: "it is not named after a thread; give the path that thread/read shows".to_owned(),
    })
}

/// The list preview of a history without turns.
pub(crate) fn first_words(items: &[ResponseItem]) -> String {
    let said = items.iter().find_map(|item| match item {
        ResponseItem::Message { content, .. } if engine::is_user_turn(item) => {
            content.iter().find_map(|part| match part {
                ContentItem::InputText { text } => Some(text.clone()),
                _ => None,
            })
        }
        _ => None,
    });
    said.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_contains_the_thread_id() {
        let id = "0198f0a0-0000-7000-8000-00000000abcd";
        assert_eq!(id_of_path(&format!("/state/threads/{id}.jsonl")).ok(), Some(ThreadId::new(id)));
        let rollout = format!("/state/sessions/2026/11/17/rollout-2026-11-17T19-37-06-{id}.jsonl");
        assert_eq!(id_of_path(&rollout).ok(), Some(ThreadId::new(id)));
        for path in ["/etc/passwd", "rollout-é", "rollout-2026.jsonl"] {
            assert!(id_of_path(path).is_err(), "{path}");
        }
    }
}
