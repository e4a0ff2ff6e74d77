//! What tools ask of clients. An answer that cannot be read is a no; only a clear yes is one.

use std::sync::Arc;

use protocol::{
    CommandExecutionApprovalDecision, CommandExecutionRequestApproval, FileChangeApprovalDecision,
    FileChangeRequestApproval, GrantedPermissionProfile, PermissionGrantScope, PermissionsRequestApproval,
    PermissionsRequestApprovalResponse, ToolApprovalDecision, ToolRequestApproval, ToolRequestUserInput,
    ToolRequestUserInputResponse,
};
use runtime::{Question, Reply};

use super::{AskError, Hub, Target};

pub(super) async fn ask(hub: Arc<Hub>, question: Question) -> Result<Reply, String> {
    match question {
        Question::Command(params) => {
            let target = Target::Thread(params.thread_id.clone());
            match hub.ask::<CommandExecutionRequestApproval>(target, params).await {
                Ok(answer) => Ok(Reply::Command(answer.decision)),
                Err(error) => no(&error, Reply::Command(CommandExecutionApprovalDecision::Decline)),
            }
        }
        Question::FileChange(params) => {
            let target = Target::Thread(params.thread_id.clone());
            match hub.ask::<FileChangeRequestApproval>(target, params).await {
                Ok(answer) => Ok(Reply::FileChange(answer.decision)),
                Err(error) => no(&error, Reply::FileChange(FileChangeApprovalDecision::Decline)),
            }
        }
        Question::Permissions(params) => {
            let target = Target::Thread(params.thread_id.clone());
            let answer = hub.ask::<PermissionsRequestApproval>(target, params).await;
            // Without a usable answer nothing is granted.
            Ok(Reply::Permissions(answer.unwrap_or(PermissionsRequestApprovalResponse {
                permissions: GrantedPermissionProfile { network: None, file_system: None },
                scope: PermissionGrantScope::Turn,
            })))
        }
        Question::UserInput(params) => {
            let target = Target::Thread(params.thread_id.clone());
            let answer = hub.ask::<ToolRequestUserInput>(target, params).await;
            let nothing = || ToolRequestUserInputResponse { answers: Default::default() };
            Ok(Reply::UserInput(answer.unwrap_or_else(|_| nothing())))
        }
        Question::Tool(params) => {
            let target = Target::Thread(params.thread_id.clone());
            match hub.ask::<ToolRequestApproval>(target, params).await {
                Ok(answer) => Ok(Reply::Tool(answer.decision)),
                Err(error) => no(&error, Reply::Tool(ToolApprovalDecision::Decline)),
            }
        }
        Question::DynamicTool(_) => Err("client tools are called, not asked about".to_owned()),
    }
}

fn no(error: &AskError, declined: Reply) -> Result<Reply, String> {
    match error {
        AskError::Unreadable(_) => Ok(declined),
        AskError::Refused(_) | AskError::TurnEnded | AskError::Gone => Err(error.to_string()),
    }
}
