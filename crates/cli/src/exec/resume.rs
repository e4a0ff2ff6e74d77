//! Which stored thread a turn goes on with.

use anyhow::Result;
use protocol::{Thread, ThreadId, ThreadListParams, ThreadSourceKind};
use runtime::Runtime;
use serde_json::json;

use super::args::Target;

/// Everything but children of other threads.
pub(crate) const STARTED_BY_USERS: &[ThreadSourceKind] = &[
    ThreadSourceKind::Cli,
    ThreadSourceKind::Vscode,
    ThreadSourceKind::Exec,
    ThreadSourceKind::AppServer,
    ThreadSourceKind::Unknown,
];

/// What was found: a thread to go on with, or why a new one is begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    Thread(ThreadId),
    Nothing { note: Option<String> },
}

pub(super) async fn find(runtime: &Runtime, target: &Target, folder: &str) -> Result<Found> {
    match target {
        Target::New => Ok(Found::Nothing { note: None }),
        Target::Last { of_any_folder } => {
            let cwd = (!of_any_folder).then_some(folder);
            let page = list(runtime, cwd, None, 1).await?;
            Ok(match page.data.into_iter().next() {
                Some(thread) => Found::Thread(thread.id),
                None => {
                    let place = if *of_any_folder { "" } else { " of this folder" };
                    Found::Nothing {
                        note: Some(format!("there is no earlier thread{place}; a new one begins")),
                    }
                }
            })
        }
        Target::Named(name) if is_id(name) => Ok(Found::Thread(ThreadId::new(name.to_ascii_lowercase()))),
        Target::Named(name) => {
            let named = named(runtime, name).await?;
            Ok(named.map_or_else(
                || Found::Nothing { note: Some(format!("no thread is named `{name}`; a new one begins")) },
                |thread| Found::Thread(thread.id),
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
    let bytes = text.as_bytes();
    bytes.len() == 36
        && bytes.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
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
