//! Decisions about proposals. One type, `OperationDecision`, goes from the client's answer through the record to the
//! tool, so that a restart carries out exactly what was decided.

use protocol::{
    CommandExecutionApprovalDecision as CommandDecision, DecisionScope, DynamicToolCallOutputContentItem,
    FileChangeApprovalDecision as PatchDecision, McpServerElicitationRequestResponse, OperationDecision,
    PermissionsRequestApprovalResponse, ToolApprovalDecision as GateDecision, ToolRequestUserInputResponse,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::grants::intersection;
use crate::{Question, Reply};

/// Sent to the tool that made the proposal. On an approval, the operation is already recorded as started.
#[derive(Debug, Clone, PartialEq)]
pub struct ProposalDecision {
    pub decision: OperationDecision,
    /// A client approved this proposal, now or for the session. Otherwise the policy approved it.
    pub by_client: bool,
}

impl ProposalDecision {
    /// The tool may do what it proposed.
    pub const fn approved(by_client: bool) -> Self {
        let decision = OperationDecision::Approve { scope: None, execpolicy_amendment: None };
        Self { decision, by_client }
    }

    /// The tool must not do it. Clients were notified already.
    pub const fn declined() -> Self {
        Self { decision: declined(false), by_client: false }
    }

    /// A client granted these permissions.
    pub fn granted(permissions: &PermissionsRequestApprovalResponse) -> Self {
        Self { decision: respond_with(permissions), by_client: true }
    }

    /// A client answered the questions.
    pub fn answered(answers: &ToolRequestUserInputResponse) -> Self {
        Self { decision: respond_with(answers), by_client: true }
    }

    /// A client answered a question of an MCP server, or about one.
    pub fn elicited(answer: &McpServerElicitationRequestResponse) -> Self {
        Self { decision: respond_with(answer), by_client: true }
    }

    pub fn is_approved(&self) -> bool {
        matches!(self.decision, OperationDecision::Approve { .. })
    }

    /// The patch to propose instead. The client that sent it approved it; policy and sandbox are still to check it.
    pub fn other_patch(&self) -> Option<String> {
        match &self.decision {
            OperationDecision::Replace { arguments: Some(arguments), .. } => patch_in(arguments),
            _ => None,
        }
    }

    /// The permissions in a client's answer.
    pub fn permissions(&self) -> Option<PermissionsRequestApprovalResponse> {
        response_in(&self.decision)
    }

    /// The answers of a client.
    pub fn answers(&self) -> Option<ToolRequestUserInputResponse> {
        response_in(&self.decision)
    }

    /// The user's answer to a question of an MCP server, or about one. It starts no operation.
    pub fn elicitation(&self) -> Option<McpServerElicitationRequestResponse> {
        response_in(&self.decision)
    }
}

/// Converts a client's answer to a decision. An answer that does not fit the question, or that this release cannot
/// carry out, declines.
pub(crate) fn decision_in(question: &Question, reply: Reply) -> OperationDecision {
    let decision = match (question, reply) {
        (Question::Command(_), Reply::Command(answer)) => of_command(answer.decision),
        (Question::FileChange(_), Reply::FileChange(answer)) => of_patch(answer.decision),
        (Question::Tool(_), Reply::Tool(answer)) => of_gate(answer.decision),
        (Question::Permissions(_), Reply::Permissions(given)) => respond_with(&given),
        (Question::UserInput(_), Reply::UserInput(answers)) => respond_with(&answers),
        (Question::Elicitation(_), Reply::Elicitation(answer)) => respond_with(&answer),
        _ => declined(false),
    };
    checked(Some(question), decision)
}

fn approved(scope: DecisionScope) -> OperationDecision {
    OperationDecision::Approve { scope: Some(scope), execpolicy_amendment: None }
}

const fn declined(end_turn: bool) -> OperationDecision {
    OperationDecision::Reject { message: None, end_turn }
}

fn of_command(decision: CommandDecision) -> OperationDecision {
    match decision {
        CommandDecision::Accept => approved(DecisionScope::Call),
        CommandDecision::AcceptForSession => approved(DecisionScope::Session),
        CommandDecision::AcceptWithExecpolicyAmendment { execpolicy_amendment } => {
            let (scope, execpolicy_amendment) = (Some(DecisionScope::Call), Some(execpolicy_amendment));
            OperationDecision::Approve { scope, execpolicy_amendment }
        }
        CommandDecision::AcceptWithCommandOverride { command } => {
            OperationDecision::Replace { command: Some(command), arguments: None }
        }
        CommandDecision::AcceptWithArguments { arguments } => {
            OperationDecision::Replace { command: None, arguments: Some(arguments) }
        }
        CommandDecision::Respond { content_items, success } => {
            OperationDecision::Respond { content_items, success }
        }
        CommandDecision::Cancel => declined(true),
        // A deferral leaves the question open and is handled earlier.
        CommandDecision::Decline
        | CommandDecision::Defer
        | CommandDecision::ApplyNetworkPolicyAmendment { .. } => declined(false),
    }
}

fn of_patch(decision: PatchDecision) -> OperationDecision {
    match decision {
        PatchDecision::Accept => approved(DecisionScope::Call),
        PatchDecision::AcceptForSession => approved(DecisionScope::Session),
        PatchDecision::AcceptWithArguments { arguments } => {
            OperationDecision::Replace { command: None, arguments: Some(arguments) }
        }
        PatchDecision::Respond { content_items, success } => {
            OperationDecision::Respond { content_items, success }
        }
        PatchDecision::Cancel => declined(true),
        PatchDecision::Decline | PatchDecision::Defer => declined(false),
    }
}

fn of_gate(decision: GateDecision) -> OperationDecision {
    match decision {
        GateDecision::Accept => approved(DecisionScope::Call),
        GateDecision::AcceptForSession => approved(DecisionScope::Session),
        GateDecision::AcceptWithArguments { arguments } => {
            OperationDecision::Replace { command: None, arguments: Some(arguments) }
        }
        GateDecision::Respond { content_items, success } => {
            OperationDecision::Respond { content_items, success }
        }
        GateDecision::Cancel => declined(true),
        GateDecision::Decline | GateDecision::Defer => declined(false),
    }
}

/// Restricts a decision, fresh or from the record, to what the question allows: saves only the rule that was offered,
/// grants only permissions that were requested, and declines a replacement that does not fit.
pub(crate) fn checked(question: Option<&Question>, decision: OperationDecision) -> OperationDecision {
    match (question, decision) {
        (question, OperationDecision::Approve { scope, execpolicy_amendment }) => match question {
            Some(Question::Permissions(_) | Question::UserInput(_) | Question::Elicitation(_)) => {
                declined(false)
            }
            question => {
                let offered = match question {
                    Some(Question::Command(asked)) => asked.proposed_execpolicy_amendment.as_ref(),
                    _ => None,
                };
                let is_offered = |prefix: &Vec<String>| !prefix.is_empty() && Some(prefix) == offered;
                let execpolicy_amendment = execpolicy_amendment.filter(is_offered);
                OperationDecision::Approve { scope, execpolicy_amendment }
            }
        },
        (_, OperationDecision::Retry) => {
            OperationDecision::Approve { scope: None, execpolicy_amendment: None }
        }
        (question, OperationDecision::Replace { command, arguments }) => {
            replacement(question, command, arguments).unwrap_or(declined(false))
        }
        (Some(Question::Permissions(asked)), respond @ OperationDecision::Respond { .. }) => {
            match response_in::<PermissionsRequestApprovalResponse>(&respond) {
                Some(given) => {
                    let permissions = intersection(&asked.permissions, &given.permissions);
                    respond_with(&PermissionsRequestApprovalResponse { permissions, ..given })
                }
                None => respond,
            }
        }
        (_, decision @ (OperationDecision::Respond { .. } | OperationDecision::Reject { .. })) => decision,
    }
}

fn replacement(
    question: Option<&Question>,
    command: Option<Vec<String>>,
    arguments: Option<Value>,
) -> Option<OperationDecision> {
    let (command, arguments) = match question {
        // Hosts may give a command as the tool's arguments.
        Some(Question::Command(_)) | None => {
            let command = command.or_else(|| arguments.as_ref().and_then(command_in));
            (Some(command.filter(|words| !words.is_empty())?), None)
        }
        Some(Question::FileChange(_)) => (None, Some(json!({ "input": patch_in(arguments.as_ref()?)? }))),
        Some(Question::Tool(_)) => (None, Some(arguments?)),
        Some(
            Question::Permissions(_)
            | Question::UserInput(_)
            | Question::Elicitation(_)
            | Question::DynamicTool(_),
        ) => return None,
    };
    Some(OperationDecision::Replace { command, arguments })
}

/// Whether the tool formats the response for the model. Otherwise the response is the output of the call.
pub(crate) fn is_for_tool(question: Option<&Question>, decision: &OperationDecision) -> bool {
    match question {
        Some(Question::Permissions(_)) => {
            response_in::<PermissionsRequestApprovalResponse>(decision).is_some()
        }
        Some(Question::UserInput(_)) => response_in::<ToolRequestUserInputResponse>(decision).is_some(),
        Some(Question::Elicitation(_)) => {
            response_in::<McpServerElicitationRequestResponse>(decision).is_some()
        }
        _ => false,
    }
}

/// A typed response as the record stores it: JSON in one string.
fn respond_with(response: &impl Serialize) -> OperationDecision {
    let text = serde_json::to_string(response).unwrap_or_default();
    let content_items = vec![DynamicToolCallOutputContentItem::InputText { text }];
    OperationDecision::Respond { content_items, success: true }
}

pub(crate) fn response_in<T: DeserializeOwned>(decision: &OperationDecision) -> Option<T> {
    let OperationDecision::Respond { content_items, .. } = decision else { return None };
    match content_items.as_slice() {
        [DynamicToolCallOutputContentItem::InputText { text }] => serde_json::from_str(text).ok(),
        _ => None,
    }
}

/// The argv of a command in the arguments.
fn command_in(arguments: &Value) -> Option<Vec<String>> {
    let words = arguments.get("command")?.as_array()?;
    let words: Option<Vec<String>> = words.iter().map(|word| word.as_str().map(str::to_owned)).collect();
    words.filter(|words| !words.is_empty())
}

/// The patch in the arguments, under the tool's own field name.
fn patch_in(arguments: &Value) -> Option<String> {
    arguments.get("input")?.as_str().filter(|input| !input.is_empty()).map(str::to_owned)
}

/// Adds the decisions that need the host's `operations` capability, each with example values.
pub(crate) fn offer_to_host(decisions: &mut Vec<CommandDecision>, arguments: &Value) {
    let mut more = Vec::new();
    if let Some(command) = command_in(arguments) {
        more.push(CommandDecision::AcceptWithCommandOverride { command });
        more.push(CommandDecision::AcceptWithArguments { arguments: arguments.clone() });
    }
    more.push(CommandDecision::Respond { content_items: Vec::new(), success: true });
    let is_no =
        |decision: &CommandDecision| matches!(decision, CommandDecision::Decline | CommandDecision::Cancel);
    let at = decisions.iter().position(is_no).unwrap_or(decisions.len());
    decisions.splice(at..at, more);
}

/// Reason and possible decisions, for the record. `for_host` adds those that need the `operations` capability.
pub(crate) fn reason_and_decisions(question: &Question, for_host: bool) -> (Option<String>, Vec<String>) {
    let words = |decisions: &[&str]| decisions.iter().map(|word| (*word).to_owned()).collect();
    match question {
        Question::Command(asked) => {
            let more: &[&str] =
                if for_host { &["acceptWithCommandOverride", "acceptWithArguments"] } else { &[] };
            let all = [&["accept", "acceptForSession"], more, &["respond", "decline", "cancel"]].concat();
            (asked.reason.clone(), words(&all))
        }
        Question::FileChange(asked) => {
            let more: &[&str] = if for_host { &["acceptWithArguments"] } else { &[] };
            let all = [&["accept", "acceptForSession"], more, &["respond", "decline", "cancel"]].concat();
            (asked.reason.clone(), words(&all))
        }
        Question::Permissions(asked) => (asked.reason.clone(), words(&["respond"])),
        Question::UserInput(_) | Question::Elicitation(_) => (None, words(&["respond"])),
        Question::Tool(asked) => (
            asked.reason.clone(),
            words(&["accept", "acceptForSession", "acceptWithArguments", "respond", "decline", "cancel"]),
        ),
        Question::DynamicTool(_) => (None, Vec::new()),
    }
}
