//! Approval requests of tools to clients. Only an explicit yes approves; an answer that cannot be read does not.

use std::sync::Arc;

use protocol::{
    CommandExecutionApprovalDecision, CommandExecutionRequestApproval, FileChangeApprovalDecision,
    FileChangeRequestApproval, GrantedPermissionProfile, McpServerElicitationAction, McpServerElicitationAsk,
    McpServerElicitationRequestResponse, PermissionGrantScope, PermissionsRequestApproval,
    PermissionsRequestApprovalResponse, ToolApprovalDecision, ToolRequestApproval, ToolRequestUserInput,
    ToolRequestUserInputResponse,
};
use runtime::{Question, Reply};

use super::{AskError, AskTarget, Hub};

pub(super) async fn ask(hub: Arc<Hub>, question: Question) -> Result<Reply, String> {
    match question {
        Question::Command(params) => {
            let target = AskTarget::Thread(params.thread_id.clone());
            match hub.ask::<CommandExecutionRequestApproval>(target, params).await {
                Ok(answer) => Ok(Reply::Command(answer)),
                Err(error) => no(&error, Reply::Command(CommandExecutionApprovalDecision::Decline.into())),
            }
        }
        Question::FileChange(params) => {
            let target = AskTarget::Thread(params.thread_id.clone());
            match hub.ask::<FileChangeRequestApproval>(target, params).await {
                Ok(answer) => Ok(Reply::FileChange(answer)),
                Err(error) => no(&error, Reply::FileChange(FileChangeApprovalDecision::Decline.into())),
            }
        }
        Question::Permissions(params) => {
            let target = AskTarget::Thread(params.thread_id.clone());
            let answer = hub.ask::<PermissionsRequestApproval>(target, params).await;
            // Without a usable answer nothing is granted.
            Ok(Reply::Permissions(answer.unwrap_or(PermissionsRequestApprovalResponse {
                permissions: GrantedPermissionProfile { network: None, file_system: None },
                scope: PermissionGrantScope::Turn,
                origin: None,
            })))
        }
        Question::UserInput(params) => {
            let target = AskTarget::Thread(params.thread_id.clone());
            let answer = hub.ask::<ToolRequestUserInput>(target, params).await;
            let nothing = || ToolRequestUserInputResponse { answers: Default::default(), origin: None };
            Ok(Reply::UserInput(answer.unwrap_or_else(|_| nothing())))
        }
        Question::Elicitation(params) => {
            let target = AskTarget::Thread(params.thread_id.clone());
            let answer = hub.ask::<McpServerElicitationAsk>(target, params).await;
            Ok(Reply::Elicitation(answer.unwrap_or_else(|error| unanswered(&error))))
        }
        Question::Tool(params) => {
            let target = AskTarget::Thread(params.thread_id.clone());
            match hub.ask::<ToolRequestApproval>(target, params).await {
                Ok(answer) => Ok(Reply::Tool(answer)),
                Err(error) => no(&error, Reply::Tool(ToolApprovalDecision::Decline.into())),
            }
        }
        Question::DynamicTool(_) => Err("client tools are called, not asked about".to_owned()),
    }
}

/// Without a usable answer the user has said no, or has had no time to.
fn unanswered(error: &AskError) -> McpServerElicitationRequestResponse {
    let action = match error {
        AskError::TurnEnded | AskError::Gone => McpServerElicitationAction::Cancel,
        AskError::Refused { .. } | AskError::Unreadable(_) => McpServerElicitationAction::Decline,
    };
    McpServerElicitationRequestResponse { action, content: None, meta: None, origin: None }
}

fn no(error: &AskError, declined: Reply) -> Result<Reply, String> {
    match error {
        AskError::Unreadable(_) => Ok(declined),
        AskError::Refused { .. } | AskError::TurnEnded | AskError::Gone => Err(error.to_string()),
    }
}
