//! The question about a command for a client, displayed so that nothing in it is hidden.

use policy::escape_for_display;
use protocol::{CommandAction, CommandExecutionRequestApprovalParams, ItemId, ThreadId, ThreadItem, TurnId};

use super::Wish;
use super::setting::Setting;

/// Why a command is asked about.
#[derive(Debug, Clone, Default)]
pub(crate) struct ToolCommandQuestion {
    /// Replaces the model's reason.
    pub(crate) reason: Option<String>,
    /// The prefix of a permanent approval.
    pub(crate) amendment: Option<Vec<String>>,
    /// A session approval does not apply.
    pub(crate) every_time: bool,
}

/// The question to ask; the engine fills in its thread and turn.
pub(crate) fn question(
    wish: &Wish,
    item: &ThreadItem,
    ask: ToolCommandQuestion,
) -> CommandExecutionRequestApprovalParams {
    let ToolCommandQuestion { reason, amendment, .. } = ask;
    let offer = match &wish.permissions.additional {
        Some(_) => policy::ApprovalOffer::AdditionalPermissions,
        None => policy::ApprovalOffer::Command { amendment: amendment.as_deref() },
    };
    let decisions = policy::available_decisions(offer);
    let reason = reason.or_else(|| wish.permissions.justification.clone());
    let (command, actions) = match item {
        ThreadItem::CommandExecution { command, command_actions, .. } => {
            (command.as_str(), command_actions.iter().map(escaped).collect())
        }
        _ => ("", Vec::new()),
    };
    CommandExecutionRequestApprovalParams {
        thread_id: ThreadId::new(""),
        turn_id: TurnId::new(""),
        item_id: ItemId::new(""),
        started_at_ms: 0,
        approval_id: None,
        reason: reason.map(|text| escape_for_display(&text)),
        network_approval_context: None,
        command: Some(escape_for_display(command)),
        cwd: Some(escape_for_display(&wish.cwd.to_string_lossy())),
        command_actions: Some(actions),
        additional_permissions: wish.permissions.additional.clone(),
        skill_metadata: None,
        proposed_execpolicy_amendment: amendment.filter(|_| wish.permissions.additional.is_none()),
        proposed_network_policy_amendments: None,
        available_decisions: Some(decisions),
        operation_id: None,
        arguments_digest: None,
    }
}

/// About text to be typed into a running command.
pub(crate) fn typing_question(
    setting: &Setting,
    chars: &str,
    reason: &str,
) -> CommandExecutionRequestApprovalParams {
    CommandExecutionRequestApprovalParams {
        thread_id: ThreadId::new(""),
        turn_id: TurnId::new(""),
        item_id: ItemId::new(""),
        started_at_ms: 0,
        approval_id: None,
        reason: Some(escape_for_display(reason)),
        network_approval_context: None,
        command: Some(escape_for_display(chars)),
        cwd: Some(escape_for_display(&setting.cwd)),
        command_actions: Some(Vec::new()),
        additional_permissions: None,
        skill_metadata: None,
        proposed_execpolicy_amendment: None,
        proposed_network_policy_amendments: None,
        available_decisions: Some(policy::available_decisions(policy::ApprovalOffer::Command {
            amendment: None,
        })),
        operation_id: None,
        arguments_digest: None,
    }
}

fn escaped(action: &CommandAction) -> CommandAction {
    let shown = |text: &String| escape_for_display(text);
    match action {
        CommandAction::Read { command, name, path } => {
            CommandAction::Read { command: shown(command), name: shown(name), path: shown(path) }
        }
        CommandAction::ListFiles { command, path } => {
            CommandAction::ListFiles { command: shown(command), path: path.as_ref().map(shown) }
        }
        CommandAction::Search { command, path, query } => CommandAction::Search {
            command: shown(command),
            path: path.as_ref().map(shown),
            query: query.as_ref().map(shown),
        },
        CommandAction::Unknown { command } => CommandAction::Unknown { command: shown(command) },
    }
}
