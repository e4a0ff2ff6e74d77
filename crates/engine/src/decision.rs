//! From what a client answered, or somebody decided before a restart, to what is done; and how the record keeps it.

use protocol::{
    CommandExecutionApprovalDecision as CommandDecision, DecisionScope, DynamicToolCallOutputContentItem,
    FileChangeApprovalDecision as PatchDecision, OperationDecision, PermissionsRequestApprovalResponse,
    ToolApprovalDecision as GateDecision,
};
use serde_json::{Value, json};

use crate::doing::Ended;
use crate::grants::intersection;
use crate::{Question, Reply, Verdict};

/// What a decision comes to.
pub(crate) enum Outcome {
    Go {
        session: bool,
        amendment: Option<Vec<String>>,
    },
    /// Another command, which passes policy and sandbox first.
    Instead(Vec<String>),
    /// Another patch, which is looked at and decided about first.
    Patch(String),
    /// The same tool with other arguments.
    With(Value),
    /// Nothing is done, and this is the result.
    Respond(Vec<DynamicToolCallOutputContentItem>, bool),
    Tell(Verdict),
    No(Ended),
    /// No, and the turn ends.
    Stop,
}

/// A reply of another kind than the question, or one this release cannot carry out, is a no.
pub(crate) fn weigh(question: &Question, reply: Reply) -> Outcome {
    let go = |session| Outcome::Go { session, amendment: None };
    match (question, reply) {
        (Question::Command(asked), Reply::Command(decision)) => match decision {
            CommandDecision::Accept => go(false),
            CommandDecision::AcceptForSession => go(true),
            // Only what this very question offered becomes a rule; any other rule is a yes for once.
            CommandDecision::AcceptWithExecpolicyAmendment { execpolicy_amendment } => Outcome::Go {
                session: false,
                amendment: Some(execpolicy_amendment).filter(|prefix| {
                    !prefix.is_empty() && Some(prefix) == asked.proposed_execpolicy_amendment.as_ref()
                }),
            },
            CommandDecision::AcceptWithCommandOverride { command } if !command.is_empty() => {
                Outcome::Instead(command)
            }
            CommandDecision::AcceptWithArguments { arguments } => {
                command_in(&arguments).map_or(Outcome::No(Ended::Declined), Outcome::Instead)
            }
            CommandDecision::Respond { content_items, success } => Outcome::Respond(content_items, success),
            CommandDecision::Cancel => Outcome::Stop,
            _ => Outcome::No(Ended::Declined),
        },
        (Question::FileChange(_), Reply::FileChange(decision)) => match decision {
            PatchDecision::Accept => go(false),
            PatchDecision::AcceptForSession => go(true),
            PatchDecision::Respond { content_items, success } => Outcome::Respond(content_items, success),
            PatchDecision::Cancel => Outcome::Stop,
            PatchDecision::AcceptWithArguments { arguments } => {
                patch_in(&arguments).map_or(Outcome::No(Ended::Declined), Outcome::Patch)
            }
            PatchDecision::Decline => Outcome::No(Ended::Declined),
        },
        (Question::Permissions(asked), Reply::Permissions(given)) => {
            let PermissionsRequestApprovalResponse { permissions, scope } = given;
            let permissions = intersection(&asked.permissions, &permissions);
            Outcome::Tell(Verdict::Permissions(PermissionsRequestApprovalResponse { permissions, scope }))
        }
        (Question::UserInput(_), Reply::UserInput(answers)) => Outcome::Tell(Verdict::UserInput(answers)),
        (Question::Tool(_), Reply::Tool(decision)) => match decision {
            GateDecision::Accept => go(false),
            GateDecision::AcceptForSession => go(true),
            GateDecision::AcceptWithArguments { arguments } => Outcome::With(arguments),
            GateDecision::Respond { content_items, success } => Outcome::Respond(content_items, success),
            GateDecision::Decline => Outcome::No(Ended::Declined),
            GateDecision::Cancel => Outcome::Stop,
        },
        _ => Outcome::No(Ended::Declined),
    }
}

/// The words of a command among arguments.
fn command_in(arguments: &Value) -> Option<Vec<String>> {
    let words = arguments.get("command")?.as_array()?;
    let words: Option<Vec<String>> = words.iter().map(|word| word.as_str().map(str::to_owned)).collect();
    words.filter(|words| !words.is_empty())
}

/// The patch among arguments, under the name that the tool itself has for it.
fn patch_in(arguments: &Value) -> Option<String> {
    arguments.get("input")?.as_str().filter(|input| !input.is_empty()).map(str::to_owned)
}

/// As the record keeps it: enough to carry it out without asking again.
pub(crate) fn decision_of(outcome: &Outcome) -> OperationDecision {
    let scope = |session: bool| Some(if session { DecisionScope::Session } else { DecisionScope::Call });
    match outcome {
        Outcome::Go { session, .. } => OperationDecision::Approve { scope: scope(*session) },
        Outcome::Instead(command) => {
            OperationDecision::Replace { command: Some(command.clone()), arguments: None }
        }
        Outcome::Patch(input) => {
            OperationDecision::Replace { command: None, arguments: Some(json!({ "input": input })) }
        }
        Outcome::With(arguments) => {
            OperationDecision::Replace { command: None, arguments: Some(arguments.clone()) }
        }
        Outcome::Respond(content_items, success) => {
            OperationDecision::Respond { content_items: content_items.clone(), success: *success }
        }
        Outcome::Tell(Verdict::Permissions(given)) => words_of(serde_json::to_string(given)),
        Outcome::Tell(Verdict::UserInput(answers)) => words_of(serde_json::to_string(answers)),
        Outcome::Tell(_) => OperationDecision::Approve { scope: None },
        Outcome::No(_) => OperationDecision::Reject { message: None, end_turn: false },
        Outcome::Stop => OperationDecision::Reject { message: None, end_turn: true },
    }
}

fn words_of(json: serde_json::Result<String>) -> OperationDecision {
    let text = json.unwrap_or_default();
    let content_items = vec![DynamicToolCallOutputContentItem::InputText { text }];
    OperationDecision::Respond { content_items, success: true }
}

/// What was decided before a restart.
pub(crate) fn decided_before(decision: OperationDecision, question: Option<&Question>) -> Outcome {
    match (decision, question) {
        (OperationDecision::Approve { scope }, _) => {
            Outcome::Go { session: scope == Some(DecisionScope::Session), amendment: None }
        }
        (OperationDecision::Retry, _) => Outcome::Go { session: false, amendment: None },
        (OperationDecision::Reject { end_turn: true, .. }, _) => Outcome::Stop,
        (OperationDecision::Reject { .. }, _) => Outcome::No(Ended::Declined),
        (OperationDecision::Replace { command: Some(command), .. }, _) => Outcome::Instead(command),
        (OperationDecision::Replace { arguments: Some(arguments), .. }, question) => match question {
            Some(Question::FileChange(_)) => {
                patch_in(&arguments).map_or(Outcome::No(Ended::Declined), Outcome::Patch)
            }
            Some(Question::Command(_)) => {
                command_in(&arguments).map_or(Outcome::No(Ended::Declined), Outcome::Instead)
            }
            _ => Outcome::With(arguments),
        },
        (OperationDecision::Replace { .. }, _) => Outcome::No(Ended::Declined),
        (OperationDecision::Respond { content_items, success }, question) => {
            let words = match content_items.as_slice() {
                [DynamicToolCallOutputContentItem::InputText { text }] => text.as_str(),
                _ => "",
            };
            let told = match question {
                Some(Question::Permissions(_)) => serde_json::from_str(words).ok().map(Verdict::Permissions),
                Some(Question::UserInput(_)) => serde_json::from_str(words).ok().map(Verdict::UserInput),
                _ => None,
            };
            told.map_or(Outcome::Respond(content_items, success), Outcome::Tell)
        }
    }
}

/// What a host that agreed on it may answer beyond what every client may, shown as it might look.
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

/// For the record: why it is asked about, and what can be answered. `for_host` adds what has to be agreed on.
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
        Question::UserInput(_) => (None, words(&["respond"])),
        Question::Tool(asked) => (
            asked.reason.clone(),
            words(&["accept", "acceptForSession", "acceptWithArguments", "respond", "decline", "cancel"]),
        ),
        Question::DynamicTool(_) => (None, Vec::new()),
    }
}
