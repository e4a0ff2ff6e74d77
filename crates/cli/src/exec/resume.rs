//! Which stored thread a turn goes on with.

use anyhow::Result;
use protocol::{Thread, ThreadId, ThreadListParams, ThreadSourceKind};
use runtime::Runtime;
use serde_json::json;

use super::args::ExecTarget;

/// Everything but children of other threads.
pub(crate) const STARTED_BY_USERS: &[ThreadSourceKind] = &[
    ThreadSourceKind::Cli,
    ThreadSourceKind::Vscode,
    ThreadSourceKind::Exec,
    ThreadSourceKind::AppServer,
    ThreadSourceKind::Unknown,
];

/// The thread to resume, or why a new one is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ResumeChoice {
    Thread(ThreadId),
    Nothing { note: Option<String> },
}

pub(super) async fn find(runtime: &Runtime, target: &ExecTarget, folder: &str) -> Result<ResumeChoice> {
    match target {
        ExecTarget::New => Ok(ResumeChoice::Nothing { note: None }),
        ExecTarget::Last { of_any_folder } => {
            let cwd = (!of_any_folder).then_some(folder);
            let page = list(runtime, cwd, None, 1).await?;
            Ok(match page.data.into_iter().next() {
                Some(thread) => ResumeChoice::Thread(thread.id),
                None => {
                    let place = if *of_any_folder { "" } else { " of this folder" };
                    ResumeChoice::Nothing {
                        note: Some(format!("there is no earlier thread{place}; a new one begins")),
                    }
                }
            })
        }
        ExecTarget::Named(name) if is_id(name) => {
            Ok(ResumeChoice::Thread(ThreadId::new(name.to_ascii_lowercase())))
        }
        ExecTarget::Named(name) => {
            let named = named(runtime, name).await?;
            Ok(named.map_or_else(
                || ResumeChoice::Nothing {
                    note: Some(format!("no thread is named `{name}`; a new one begins")),
                },
                |thread| ResumeChoice::Thread(thread.id),
            ))
        }
    }
}

/// The thread of that name that was used last.
async fn named(runtime: &Runtime, name: &str) -> Result<Option<Thread>> {
    let mut cursor = None;
    loop {
        let page = list(runtime, None, cursor, 100).await?;
        let found = page.data.into_iter().find(|thread| thread.name.as_deref() == Some(name));
        match (found, page.next_cursor) {
            (None, Some(next)) => cursor = Some(next),
            (found, _) => return Ok(found),
        }
    }
}

async fn list(
    runtime: &Runtime,
    cwd: Option<&str>,
    cursor: Option<String>,
    limit: u32,
) -> Result<protocol::ThreadListResponse> {
    let params: ThreadListParams = protocol::from_value(&json!({
        "cursor": cursor,
        "limit": limit,
        "sortKey": "updated_at",
        "modelProviders": [],
        "sourceKinds": STARTED_BY_USERS,
        "cwd": cwd,
    }))?;
    Ok(runtime.list_threads(params).await?)
}

/// A UUID; everything else is a name.
fn is_id(text: &str) -> bool {
    // Of this length is only the form with hyphens.
    text.len() == uuid::fmt::Hyphenated::LENGTH && uuid::Uuid::try_parse(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::is_id;

    #[test]
    fn ids_are_told_from_names() {
        assert!(is_id("0198f0a0-0000-7000-8000-00000000ABCD"));
        assert!(
            ["", "my thread", "0198f0a0-0000-7000-8000-00000000abcg", "0198f0a00000700080000000000abcd"]
                .iter()
                .all(|text| !is_id(text))
        );
    }
}
