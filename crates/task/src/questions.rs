//! Questions of a runtime about an operation, and the two forms of an answer: the one of the question's own method, and the
//! decision that is stored.

use protocol::{
    CommandExecutionApprovalDecision as CommandDecision, CommandExecutionRequestApproval,
    CommandExecutionRequestApprovalResponse, DecisionOrigin, DecisionScope, DynamicToolCall,
    DynamicToolCallOutputContentItem, FileChangeApprovalDecision as PatchDecision, FileChangeRequestApproval,
    FileChangeRequestApprovalResponse, McpServerElicitationAsk, OperationDecision, OperationId,
    PermissionsRequestApproval, RequestMethod, ThreadId, ToolApprovalDecision as GateDecision,
    ToolRequestApproval, ToolRequestApprovalResponse, ToolRequestUserInput,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use store::OperationRowState;

/// A question is about a thread, and nearly always about an operation in the store.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QuestionHead {
    pub thread_id: ThreadId,
    #[serde(default)]
    pub operation_id: Option<OperationId>,
    #[serde(default)]
    pub arguments_digest: Option<String>,
}

/// The questions that people answer.
const QUESTIONS: &[&str] = &[
    CommandExecutionRequestApproval::METHOD,
    FileChangeRequestApproval::METHOD,
    ToolRequestApproval::METHOD,
    ToolRequestUserInput::METHOD,
    McpServerElicitationAsk::METHOD,
    PermissionsRequestApproval::METHOD,
];

pub fn is_question(method: &str) -> bool {
    QUESTIONS.contains(&method) || is_call(method)
}

/// The request that a client runs one of its tools.
pub fn is_call(method: &str) -> bool {
    method == DynamicToolCall::METHOD
}

/// A question of an MCP server.
pub fn is_elicitation(method: &str) -> bool {
    method == McpServerElicitationAsk::METHOD
}

/// The decision in an answer. Nothing for an answer that cannot be read, or that leaves the question open.
pub fn decision_in(method: &str, result: &RawValue) -> Option<OperationDecision> {
    match method {
        CommandExecutionRequestApproval::METHOD => {
            of_command(read::<CommandExecutionRequestApprovalResponse>(result)?.decision)
        }
        FileChangeRequestApproval::METHOD => {
            of_patch(read::<FileChangeRequestApprovalResponse>(result)?.decision)
        }
        ToolRequestApproval::METHOD => of_gate(read::<ToolRequestApprovalResponse>(result)?.decision),
        // The rest are answers rather than decisions; the record keeps them as one JSON text.
        _ => {
            let content_items =
                vec![DynamicToolCallOutputContentItem::InputText { text: result.get().to_owned() }];
            Some(OperationDecision::Respond { content_items, success: true })
        }
    }
}

/// The decision of a client that answers with an error, as an app-server takes it: no, and nothing is given.
pub fn refusal_of(method: &str) -> OperationDecision {
    let nothing = match method {
        ToolRequestUserInput::METHOD => r#"{"answers":{}}"#,
        PermissionsRequestApproval::METHOD => r#"{"permissions":{},"scope":"turn"}"#,
        McpServerElicitationAsk::METHOD => r#"{"action":"decline","content":null,"_meta":null}"#,
        _ => return reject(false),
    };
    let content_items = vec![DynamicToolCallOutputContentItem::InputText { text: nothing.to_owned() }];
    OperationDecision::Respond { content_items, success: true }
}

fn read<T: DeserializeOwned>(result: &RawValue) -> Option<T> {
    serde_json::from_str(result.get()).ok()
}

fn approve(scope: DecisionScope) -> OperationDecision {
    OperationDecision::Approve { scope: Some(scope), execpolicy_amendment: None }
}

fn reject(end_turn: bool) -> OperationDecision {
    OperationDecision::Reject { message: None, end_turn }
}

fn of_command(decision: CommandDecision) -> Option<OperationDecision> {
    Some(match decision {
        CommandDecision::Accept => approve(DecisionScope::Call),
        CommandDecision::AcceptForSession => approve(DecisionScope::Session),
        CommandDecision::AcceptWithExecpolicyAmendment { execpolicy_amendment } => {
            OperationDecision::Approve {
                scope: Some(DecisionScope::Call),
                execpolicy_amendment: Some(execpolicy_amendment),
            }
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
        CommandDecision::Cancel => reject(true),
        CommandDecision::Decline | CommandDecision::ApplyNetworkPolicyAmendment { .. } => reject(false),
        CommandDecision::Defer => return None,
    })
}

fn of_patch(decision: PatchDecision) -> Option<OperationDecision> {
    Some(match decision {
        PatchDecision::Accept => approve(DecisionScope::Call),
        PatchDecision::AcceptForSession => approve(DecisionScope::Session),
        PatchDecision::AcceptWithArguments { arguments } => {
            OperationDecision::Replace { command: None, arguments: Some(arguments) }
        }
        PatchDecision::Respond { content_items, success } => {
            OperationDecision::Respond { content_items, success }
        }
        PatchDecision::Cancel => reject(true),
        PatchDecision::Decline => reject(false),
        PatchDecision::Defer => return None,
    })
}

fn of_gate(decision: GateDecision) -> Option<OperationDecision> {
    Some(match decision {
        GateDecision::Accept => approve(DecisionScope::Call),
        GateDecision::AcceptForSession => approve(DecisionScope::Session),
        GateDecision::AcceptWithArguments { arguments } => {
            OperationDecision::Replace { command: None, arguments: Some(arguments) }
        }
        GateDecision::Respond { content_items, success } => {
            OperationDecision::Respond { content_items, success }
        }
        GateDecision::Cancel => reject(true),
        GateDecision::Decline => reject(false),
        GateDecision::Defer => return None,
    })
}

/// The answer to a question of this method that a stored decision makes, with who decided.
pub fn response_for(
    method: &str,
    decision: &OperationDecision,
    origin: DecisionOrigin,
) -> Option<Box<RawValue>> {
    let origin = Some(origin);
    match method {
        CommandExecutionRequestApproval::METHOD => {
            let decision = to_command(decision);
            to_raw_value(&CommandExecutionRequestApprovalResponse { decision, origin }).ok()
        }
        FileChangeRequestApproval::METHOD => {
            let decision = to_patch(decision);
            to_raw_value(&FileChangeRequestApprovalResponse { decision, origin }).ok()
        }
        ToolRequestApproval::METHOD => {
            let decision = to_gate(decision);
            to_raw_value(&ToolRequestApprovalResponse { decision, origin }).ok()
        }
        _ => match decision {
            OperationDecision::Respond { content_items, .. } => match content_items.as_slice() {
                [DynamicToolCallOutputContentItem::InputText { text }] => {
                    let mut answer: Value = serde_json::from_str(text).ok()?;
                    answer.as_object_mut()?.insert("origin".to_owned(), json!(origin));
                    to_raw_value(&answer).ok()
                }
                _ => None,
            },
            _ => None,
        },
    }
}

fn to_command(decision: &OperationDecision) -> CommandDecision {
    match decision.clone() {
        OperationDecision::Approve { execpolicy_amendment: Some(execpolicy_amendment), .. } => {
            CommandDecision::AcceptWithExecpolicyAmendment { execpolicy_amendment }
        }
        OperationDecision::Approve { scope: Some(DecisionScope::Session), .. } => {
            CommandDecision::AcceptForSession
        }
        OperationDecision::Approve { .. } | OperationDecision::Retry => CommandDecision::Accept,
        OperationDecision::Replace { command: Some(command), .. } => {
            CommandDecision::AcceptWithCommandOverride { command }
        }
        OperationDecision::Replace { arguments: Some(arguments), .. } => {
            CommandDecision::AcceptWithArguments { arguments }
        }
        OperationDecision::Respond { content_items, success } => {
            CommandDecision::Respond { content_items, success }
        }
        OperationDecision::Reject { end_turn: true, .. } => CommandDecision::Cancel,
        OperationDecision::Reject { .. } | OperationDecision::Replace { .. } => CommandDecision::Decline,
    }
}

fn to_patch(decision: &OperationDecision) -> PatchDecision {
    match decision.clone() {
        OperationDecision::Approve { scope: Some(DecisionScope::Session), .. } => {
            PatchDecision::AcceptForSession
        }
        OperationDecision::Approve { .. } | OperationDecision::Retry => PatchDecision::Accept,
        OperationDecision::Replace { arguments: Some(arguments), .. } => {
            PatchDecision::AcceptWithArguments { arguments }
        }
        OperationDecision::Respond { content_items, success } => {
            PatchDecision::Respond { content_items, success }
        }
        OperationDecision::Reject { end_turn: true, .. } => PatchDecision::Cancel,
        OperationDecision::Reject { .. } | OperationDecision::Replace { .. } => PatchDecision::Decline,
    }
}

fn to_gate(decision: &OperationDecision) -> GateDecision {
    match decision.clone() {
        OperationDecision::Approve { scope: Some(DecisionScope::Session), .. } => {
            GateDecision::AcceptForSession
        }
        OperationDecision::Approve { .. } | OperationDecision::Retry => GateDecision::Accept,
        OperationDecision::Replace { arguments: Some(arguments), .. } => {
            GateDecision::AcceptWithArguments { arguments }
        }
        OperationDecision::Respond { content_items, success } => {
            GateDecision::Respond { content_items, success }
        }
        OperationDecision::Reject { end_turn: true, .. } => GateDecision::Cancel,
        OperationDecision::Reject { .. } | OperationDecision::Replace { .. } => GateDecision::Decline,
    }
}

/// The word in `availableDecisions` that a decision needs.
pub fn word_of(decision: &OperationDecision, state: OperationRowState) -> &'static str {
    match decision {
        OperationDecision::Approve { scope: Some(DecisionScope::Session), .. } => "acceptForSession",
        OperationDecision::Approve { .. } => "accept",
        OperationDecision::Replace { command: Some(_), .. } => "acceptWithCommandOverride",
        OperationDecision::Replace { .. } => "acceptWithArguments",
        OperationDecision::Respond { .. } => "respond",
        OperationDecision::Retry => "retry",
        OperationDecision::Reject { .. } if state == OperationRowState::Unknown => "reject",
        OperationDecision::Reject { end_turn: true, .. } => "cancel",
        OperationDecision::Reject { .. } => "decline",
    }
}

/// A member of the params, for the log alone.
pub fn shown(params: &RawValue) -> String {
    let value: Value = serde_json::from_str(params.get()).unwrap_or_default();
    value["command"].as_str().or(value["tool"].as_str()).unwrap_or("a question").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(value: &Value) -> Box<RawValue> {
        to_raw_value(value).expect("JSON")
    }

    /// An answer becomes a decision, and the decision the same answer again.
    #[track_caller]
    fn both_ways(method: &str, answer: &Value) {
        let decision = decision_in(method, &raw(answer)).expect("a decision");
        let again = response_for(method, &decision, origin()).expect("an answer");
        let again: Value = serde_json::from_str(again.get()).expect("JSON");
        let mut told = answer.clone();
        told["origin"] = json!({"by": "user:ana", "decidedAtMs": 7});
        assert_eq!(again, told, "{method}");
    }

    fn origin() -> DecisionOrigin {
        DecisionOrigin { by: "user:ana".to_owned(), decided_at_ms: 7 }
    }

    #[test]
    fn answers_survive_the_store() {
        let command = CommandExecutionRequestApproval::METHOD;
        for word in ["accept", "acceptForSession", "decline", "cancel"] {
            both_ways(command, &json!({"decision": word}));
            both_ways(FileChangeRequestApproval::METHOD, &json!({"decision": word}));
            both_ways(ToolRequestApproval::METHOD, &json!({"decision": word}));
        }
        both_ways(command, &json!({"decision": {"acceptWithCommandOverride": {"command": ["ls", "-l"]}}}));
        both_ways(
            command,
            &json!({"decision": {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["ls"]}}}),
        );
        both_ways(ToolRequestUserInput::METHOD, &json!({"answers": {"q": {"answers": ["yes"]}}}));
    }

    #[test]
    fn a_client_says_for_nobody_else_who_answered() {
        let method = ToolRequestUserInput::METHOD;
        let claimed = json!({"answers": {}, "origin": {"by": "user:eve", "decidedAtMs": 1}});
        let decision = decision_in(method, &raw(&claimed)).expect("a decision");
        let told = response_for(method, &decision, origin()).expect("an answer");
        let told: Value = serde_json::from_str(told.get()).expect("JSON");
        assert_eq!(told["origin"], json!({"by": "user:ana", "decidedAtMs": 7}));
    }

    #[test]
    fn a_deferral_and_nonsense_decide_nothing() {
        for answer in [json!({"decision": "defer"}), json!({"decision": "perhaps"}), json!(7)] {
            assert_eq!(decision_in(CommandExecutionRequestApproval::METHOD, &raw(&answer)), None, "{answer}");
        }
    }

    #[test]
    fn rejecting_has_another_name_when_the_outcome_is_unknown() {
        let reject = OperationDecision::Reject { message: None, end_turn: false };
        assert_eq!(word_of(&reject, OperationRowState::Unknown), "reject");
        assert_eq!(word_of(&reject, OperationRowState::Proposed), "decline");
    }
    #[test]
    fn an_error_of_a_client_gives_nothing_in_the_form_of_each_question() {
        for method in [
            CommandExecutionRequestApproval::METHOD,
            FileChangeRequestApproval::METHOD,
            ToolRequestApproval::METHOD,
        ] {
            assert_eq!(refusal_of(method), reject(false), "{method}");
        }
        let answer = |method: &str| response_for(method, &refusal_of(method), origin()).expect("an answer");
        let input: protocol::ToolRequestUserInputResponse =
            read(&answer(ToolRequestUserInput::METHOD)).expect("answers");
        assert!(input.answers.is_empty());
        let granted: protocol::PermissionsRequestApprovalResponse =
            read(&answer(PermissionsRequestApproval::METHOD)).expect("permissions");
        assert!(granted.permissions.network.is_none() && granted.permissions.file_system.is_none());
        let said: protocol::McpServerElicitationRequestResponse =
            read(&answer(McpServerElicitationAsk::METHOD)).expect("an answer");
        assert_eq!(said.action, protocol::McpServerElicitationAction::Decline);
    }
}
