//! A command's item for clients.

use std::path::Path;
use std::time::Duration;

use engine::{NO_EXIT, Truncation, truncate_middle};
use protocol::{CommandExecutionSource, CommandExecutionStatus, ThreadItem};

use super::Blocked;
use super::overflow::WholeOutput;
use super::setting::Setting;

/// How a command ended.
#[derive(Debug)]
pub(crate) struct EndedCommand {
    pub(crate) output: String,
    pub(crate) exit_code: i32,
    pub(crate) duration: Duration,
    /// The file with the rest, if the output was cut.
    pub(crate) whole: Option<WholeOutput>,
}

/// The item at the start.
pub(crate) fn begun(
    setting: &Setting,
    argv: &[String],
    cwd: &Path,
    source: CommandExecutionSource,
    process_id: Option<String>,
) -> ThreadItem {
    ThreadItem::CommandExecution {
        id: setting.item_id(),
        command: policy::shell_line(argv),
        cwd: cwd.to_string_lossy().into_owned(),
        process_id,
        source,
        status: CommandExecutionStatus::InProgress,
        command_actions: policy::command_actions(argv),
        aggregated_output: None,
        exit_code: None,
        duration_ms: None,
    }
}

/// Limit of an item's output: its beginning and its end.
pub(super) const SHOWN_BYTES: usize = 384 << 10;

/// The completed item.
pub(crate) fn ended(mut item: ThreadItem, ending: &EndedCommand) -> ThreadItem {
    if let ThreadItem::CommandExecution { status, aggregated_output, exit_code, duration_ms, .. } = &mut item
    {
        *status = match ending.exit_code {
            0 => CommandExecutionStatus::Completed,
            _ => CommandExecutionStatus::Failed,
        };
        let mut output = truncate_middle(&ending.output, Truncation::Bytes(SHOWN_BYTES));
        if let Some(whole) = &ending.whole {
            output.push_str(&format!("\n[{}]\n", whole.line()));
        }
        *aggregated_output = Some(output).filter(|output| !output.is_empty());
        *exit_code = Some(ending.exit_code);
        *duration_ms = Some(i64::try_from(ending.duration.as_millis()).unwrap_or(i64::MAX));
    }
    item
}

/// The end of a command that never ran.
pub(crate) fn not_started(mut item: ThreadItem, blocked: &Blocked) -> ThreadItem {
    let (problem, outcome) = match blocked {
        Blocked::Forbidden(reason) => (reason.as_str(), CommandExecutionStatus::Declined),
        Blocked::Failed(problem) => (problem.as_str(), CommandExecutionStatus::Failed),
        Blocked::Declined => ("", CommandExecutionStatus::Declined),
    };
    if let ThreadItem::CommandExecution { process_id, .. } = &mut item {
        *process_id = None;
    }
    let (exit_code, duration) = (NO_EXIT, Duration::ZERO);
    let ending = EndedCommand { output: problem.to_owned(), exit_code, duration, whole: None };
    let mut item = ended(item, &ending);
    if let ThreadItem::CommandExecution { status, .. } = &mut item {
        *status = outcome;
    }
    item
}
