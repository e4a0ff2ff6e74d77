//! The flag that would have allowed what was refused.

use crate::items::{WorkItem, WorkKind, WorkStatus};

/// Where commands of the turn may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteAccess {
    Nowhere,
    Folder,
    Everywhere,
}

/// Words of programs that met the walls of the sandbox.
const WALLS: &[&str] = &["Read-only file system", "Permission denied", "Operation not permitted"];
const NO_NETWORK: &[&str] =
    &["Could not resolve host", "Temporary failure in name resolution", "Network is unreachable"];

const SESSION: &str = "nobody can be asked here: `oarlock resume` goes on in a session where you are";

/// Nothing where the work did what it should, or where no flag would have helped.
pub(crate) fn advice(work: &WorkItem, access: WriteAccess) -> Option<&'static str> {
    if work.standing != WorkStatus::Failed {
        return None;
    }
    let output = work.output.as_deref().unwrap_or_default();
    let has = |words: &[&str]| words.iter().any(|word| output.contains(word));
    let reason = work.reason.as_deref().unwrap_or_default();
    match (work.kind, work.is_refused) {
        (WorkKind::Edit, true) if access != WriteAccess::Everywhere && reason.contains("is protected") => {
            Some("--sandbox danger-full-access lets it be written, without a sandbox")
        }
        (WorkKind::Edit, true) => match access {
            WriteAccess::Nowhere => {
                Some("the sandbox is read-only: --sandbox workspace-write lets files be changed")
            }
            WriteAccess::Folder => Some("--add-dir DIR adds a folder that may be written to"),
            WriteAccess::Everywhere => Some(SESSION),
        },
        (WorkKind::Command, true) if has(&["deletes without asking back"]) => Some(
            "--sandbox danger-full-access lets it run, without a sandbox; a rule can allow it inside of one",
        ),
        (WorkKind::Command, true) if has(&["a rule forbids"]) => {
            Some("`oarlock policy check -- COMMAND` names the rule")
        }
        (WorkKind::Command, true) if has(&["may read"]) => {
            Some("--sandbox danger-full-access lets it be read, without a sandbox")
        }
        (WorkKind::Command, true) if access != WriteAccess::Everywhere && has(&["reject command"]) => Some(
            "--sandbox danger-full-access runs commands without a sandbox; `oarlock resume` goes on in a session where \
             you can be asked",
        ),
        (WorkKind::Command, true) => Some(SESSION),
        (WorkKind::Command, false) if access != WriteAccess::Everywhere && has(NO_NETWORK) => Some(
            "commands have no network: --sandbox workspace-write -c sandbox_workspace_write.network_access=true \
             gives them one",
        ),
        (WorkKind::Command, false) if has(WALLS) => match access {
            WriteAccess::Nowhere => {
                Some("the sandbox is read-only: --sandbox workspace-write lets commands write to the folder")
            }
            WriteAccess::Folder => Some("commands may write to the folder alone: --add-dir DIR adds another"),
            WriteAccess::Everywhere => None,
        },
        _ => None,
    }
}
