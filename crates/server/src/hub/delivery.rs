//! Which connections get which message: one table for notifications, one for the server's own requests.

use protocol::{
    ApplyPatchApproval, ChatgptAuthTokensRefresh, CommandExecutionRequestApproval, DynamicToolCall,
    ExecCommandApproval, FileChangeRequestApproval, McpServerElicitationAsk, PermissionsRequestApproval,
    RequestMethod, ServerNotification, ToolRequestApproval, ToolRequestUserInput,
};

/// The receivers of a notification. Opt-outs are taken off afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// Every connection that is initialized.
    Everyone,
    /// The connections subscribed to the thread at that moment; with none of them it is gone.
    Subscribers,
    /// The connection whose request it belongs to.
    Caller,
}

/// Without a `_` arm: a new notification must choose.
pub(crate) fn delivery(notification: &ServerNotification) -> Delivery {
    use ServerNotification as N;
    match notification {
        N::ThreadStarted(_)
        | N::ThreadStatusChanged(_)
        | N::ThreadArchived(_)
        | N::ThreadDeleted(_)
        | N::ThreadUnarchived(_)
        | N::ThreadClosed(_)
        | N::ThreadNameUpdated(_)
        | N::AccountUpdated(_)
        | N::AccountLoginCompleted(_)
        | N::AppListUpdated(_)
        | N::McpServerOauthLoginCompleted(_)
        | N::FuzzyFileSearchSessionUpdated(_)
        | N::FuzzyFileSearchSessionCompleted(_) => Delivery::Everyone,
        N::ConfigWarning(_)
        | N::ThreadResynced(_)
        | N::FsChanged(_)
        | N::CommandExecOutputDelta(_)
        | N::WindowsSandboxSetupCompleted(_)
        | N::WindowsWorldWritableWarning(_) => Delivery::Caller,
        N::Error(_)
        | N::SkillsChanged(_)
        | N::ThreadGoalUpdated(_)
        | N::ThreadGoalCleared(_)
        | N::ThreadTokenUsageUpdated(_)
        | N::ThreadEnvironmentConnected(_)
        | N::ThreadEnvironmentDisconnected(_)
        | N::TurnStarted(_)
        | N::HookStarted(_)
        | N::TurnCompleted(_)
        | N::TurnSuspended(_)
        | N::HookCompleted(_)
        | N::OperationUpdated(_)
        | N::TaskUpdated(_)
        | N::PlacementProgress(_)
        | N::PlacementStatusChanged(_)
        | N::TurnDiffUpdated(_)
        | N::TurnPlanUpdated(_)
        | N::ItemStarted(_)
        | N::ItemGuardianApprovalReviewStarted(_)
        | N::ItemGuardianApprovalReviewCompleted(_)
        | N::ItemCompleted(_)
        | N::RawResponseItemCompleted(_)
        | N::AgentMessageDelta(_)
        | N::PlanDelta(_)
        | N::CommandExecutionOutputDelta(_)
        | N::TerminalInteraction(_)
        | N::FileChangeOutputDelta(_)
        | N::ServerRequestResolved(_)
        | N::McpToolCallProgress(_)
        | N::McpServerStatusUpdated(_)
        | N::AccountRateLimitsUpdated(_)
        | N::SdkDelegationConfigured(_)
        | N::ReasoningSummaryTextDelta(_)
        | N::ReasoningSummaryPartAdded(_)
        | N::ReasoningTextDelta(_)
        | N::ContextCompacted(_)
        | N::ModelRerouted(_)
        | N::DeprecationNotice(_)
        | N::ThreadRealtimeStarted(_)
        | N::ThreadRealtimeItemAdded(_)
        | N::ThreadRealtimeTranscriptUpdated(_)
        | N::ThreadRealtimeOutputAudioDelta(_)
        | N::ThreadRealtimeError(_)
        | N::ThreadRealtimeClosed(_) => Delivery::Subscribers,
    }
}

/// Questions about a turn in progress: with the turn they end.
const ENDS_WITH_TURN: &[&str] = &[
    CommandExecutionRequestApproval::METHOD,
    FileChangeRequestApproval::METHOD,
    ToolRequestApproval::METHOD,
    ToolRequestUserInput::METHOD,
    McpServerElicitationAsk::METHOD,
    PermissionsRequestApproval::METHOD,
    DynamicToolCall::METHOD,
    ApplyPatchApproval::METHOD,
    ExecCommandApproval::METHOD,
];

/// Whether a turn that starts or ends takes the question with it. A host that keeps the record or carries the model's
/// traffic is asked across turns.
pub(crate) fn ends_with_turn(method: &str) -> bool {
    ENDS_WITH_TURN.contains(&method)
}

/// Whether subscribers hear by `serverRequest/resolved` that the question is no longer open: those that a person
/// may have on the screen.
pub(crate) fn is_announced(method: &str) -> bool {
    ends_with_turn(method) && method != DynamicToolCall::METHOD && method != ChatgptAuthTokensRefresh::METHOD
}

#[cfg(test)]
mod tests {
    use protocol::{ModelRequest, RolloutAppend, SERVER_REQUESTS};

    use super::*;

    #[test]
    fn what_a_person_sees_is_announced_and_nothing_else() {
        let announced: Vec<_> =
            SERVER_REQUESTS.iter().map(|row| row.name).filter(|name| is_announced(name)).collect();
        assert_eq!(
            announced,
            [
                "item/commandExecution/requestApproval",
                "item/fileChange/requestApproval",
                "item/tool/requestApproval",
                "item/tool/requestUserInput",
                "mcpServer/elicitation/request",
                "item/permissions/requestApproval",
                "applyPatchApproval",
                "execCommandApproval",
            ]
        );
    }

    #[test]
    fn a_host_is_asked_across_turns() {
        assert!(!ends_with_turn(RolloutAppend::METHOD) && !ends_with_turn(ModelRequest::METHOD));
        assert!(ends_with_turn(DynamicToolCall::METHOD));
    }
}
