//! Which stored thread a turn goes on with.

use anyhow::Result;
use protocol::{ThreadId, ThreadListParams, ThreadSourceKind};
use runtime::Runtime;
use runtime::config::Home;
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

pub(super) async fn find(
    runtime: &Runtime,
    home: &Home,
    target: &ExecTarget,
    folder: &str,
) -> Result<ResumeChoice> {
    match target {
        ExecTarget::New => Ok(ResumeChoice::Nothing { note: None }),
        ExecTarget::Last { of_any_folder } => {
            let cwd = (!of_any_folder).then_some(folder);
            let page = list(runtime, cwd).await?;
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
        ExecTarget::Named(name) => {
            let (home, name) = (home.clone(), name.clone());
            let found =
                tokio::task::spawn_blocking(move || crate::threads::named_thread(&home, &name)).await?;
            Ok(ResumeChoice::Thread(found?))
        }
    }
}

async fn list(runtime: &Runtime, cwd: Option<&str>) -> Result<protocol::ThreadListResponse> {
    let params: ThreadListParams = protocol::from_value(&json!({
        "limit": 1,
        "sortKey": "updated_at",
        "modelProviders": [],
        "sourceKinds": STARTED_BY_USERS,
        "cwd": cwd,
    }))?;
    Ok(runtime.list_threads(params).await?)
}
