"""Every type of the wire, each after the ones it mentions. Generated; do not edit."""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, StrictBool, StrictInt

from ._base import (
    FIRST_MATCH,
    NOT_NULL,
    ClosedModel,
    Keyed,
    Number,
    Open,
    Tagged,
    UnknownVariant,
    Variant,
    WireModel,
    read,
    wire,
)

__all__ = [
    "AbsolutePathBuf",
    "Account",
    "AccountApiKey",
    "AccountChatgpt",
    "AccountLoginCompletedNotification",
    "AccountRateLimitsUpdatedNotification",
    "AccountUpdatedNotification",
    "AdditionalContextEntry",
    "AdditionalContextKind",
    "AdditionalFileSystemPermissions",
    "AdditionalMacOsPermissions",
    "AdditionalNetworkPermissions",
    "AdditionalPermissionProfile",
    "AgentMessageDeltaNotification",
    "AgentPath",
    "AnalyticsConfig",
    "AppBranding",
    "AppConfig",
    "AppInfo",
    "AppListUpdatedNotification",
    "AppMetadata",
    "AppReview",
    "AppScreenshot",
    "AppSummary",
    "AppToolApproval",
    "AppToolConfig",
    "AppToolsConfig",
    "ApplyPatchApprovalParams",
    "ApplyPatchApprovalResponse",
    "ApprovalsReviewer",
    "AppsConfig",
    "AppsDefaultConfig",
    "AppsListParams",
    "AppsListResponse",
    "AskForApproval",
    "AskForApprovalGranular",
    "AskForApprovalGranularBody",
    "AskForApprovalName",
    "AuditListParams",
    "AuditListResponse",
    "AuditRecord",
    "AuthMode",
    "BuiltinToolFilter",
    "ByteRange",
    "CancelLoginAccountParams",
    "CancelLoginAccountResponse",
    "CancelLoginAccountStatus",
    "ChatgptAuthTokensRefreshParams",
    "ChatgptAuthTokensRefreshReason",
    "ChatgptAuthTokensRefreshResponse",
    "ClientInfo",
    "CodexErrorInfo",
    "CodexErrorInfoActiveTurnNotSteerable",
    "CodexErrorInfoActiveTurnNotSteerableBody",
    "CodexErrorInfoHttpConnectionFailed",
    "CodexErrorInfoHttpConnectionFailedBody",
    "CodexErrorInfoName",
    "CodexErrorInfoResponseStreamConnectionFailed",
    "CodexErrorInfoResponseStreamConnectionFailedBody",
    "CodexErrorInfoResponseStreamDisconnected",
    "CodexErrorInfoResponseStreamDisconnectedBody",
    "CodexErrorInfoResponseTooManyFailedAttempts",
    "CodexErrorInfoResponseTooManyFailedAttemptsBody",
    "CollabAgentState",
    "CollabAgentStatus",
    "CollabAgentTool",
    "CollabAgentToolCallStatus",
    "CollaborationMode",
    "CollaborationModeListParams",
    "CollaborationModeListResponse",
    "CollaborationModeMask",
    "CommandAction",
    "CommandActionListFiles",
    "CommandActionRead",
    "CommandActionSearch",
    "CommandActionUnknown",
    "CommandExecOutputDeltaNotification",
    "CommandExecOutputStream",
    "CommandExecParams",
    "CommandExecResizeParams",
    "CommandExecResizeResponse",
    "CommandExecResponse",
    "CommandExecTerminalSize",
    "CommandExecTerminateParams",
    "CommandExecTerminateResponse",
    "CommandExecWriteParams",
    "CommandExecWriteResponse",
    "CommandExecutionApprovalDecision",
    "CommandExecutionApprovalDecisionAcceptWithArguments",
    "CommandExecutionApprovalDecisionAcceptWithArgumentsBody",
    "CommandExecutionApprovalDecisionAcceptWithCommandOverride",
    "CommandExecutionApprovalDecisionAcceptWithCommandOverrideBody",
    "CommandExecutionApprovalDecisionAcceptWithExecpolicyAmendment",
    "CommandExecutionApprovalDecisionAcceptWithExecpolicyAmendmentBody",
    "CommandExecutionApprovalDecisionApplyNetworkPolicyAmendment",
    "CommandExecutionApprovalDecisionApplyNetworkPolicyAmendmentBody",
    "CommandExecutionApprovalDecisionName",
    "CommandExecutionApprovalDecisionRespond",
    "CommandExecutionApprovalDecisionRespondBody",
    "CommandExecutionOutputDeltaNotification",
    "CommandExecutionRequestApprovalParams",
    "CommandExecutionRequestApprovalResponse",
    "CommandExecutionRequestApprovalSkillMetadata",
    "CommandExecutionSource",
    "CommandExecutionStatus",
    "Config",
    "ConfigBatchWriteParams",
    "ConfigEdit",
    "ConfigLayer",
    "ConfigLayerMetadata",
    "ConfigLayerSource",
    "ConfigLayerSourceLegacyManagedConfigTomlFromFile",
    "ConfigLayerSourceLegacyManagedConfigTomlFromMdm",
    "ConfigLayerSourceMdm",
    "ConfigLayerSourceProject",
    "ConfigLayerSourceSessionFlags",
    "ConfigLayerSourceSystem",
    "ConfigLayerSourceUser",
    "ConfigReadParams",
    "ConfigReadResponse",
    "ConfigRequirements",
    "ConfigRequirementsReadResponse",
    "ConfigValueWriteParams",
    "ConfigWarningNotification",
    "ConfigWriteResponse",
    "ContentItem",
    "ContentItemInputImage",
    "ContentItemInputText",
    "ContentItemOutputText",
    "ContextCompactedNotification",
    "ConversationGitInfo",
    "ConversationSummary",
    "CreditsSnapshot",
    "DecisionOrigin",
    "DecisionScope",
    "DelegatedHistory",
    "DelegatedHistoryLastTurns",
    "DelegatedHistoryName",
    "DelegatedProvider",
    "DelegatedStream",
    "DelegationCancelParams",
    "DelegationCancelResponse",
    "DelegationFeature",
    "DelegationHeartbeatNotification",
    "DelegationHints",
    "DelegationInputParams",
    "DelegationInputResponse",
    "DelegationLimits",
    "DelegationMode",
    "DelegationParent",
    "DelegationProgressNotification",
    "DelegationRequestParams",
    "DelegationRequestResponse",
    "DelegationRequestResponseHost",
    "DelegationRequestResponseRejected",
    "DelegationRequestResponseRuntime",
    "DelegationResultParams",
    "DelegationResultResponse",
    "DelegationStatus",
    "DeprecationNoticeNotification",
    "DynamicToolCallOutputContentItem",
    "DynamicToolCallOutputContentItemInputImage",
    "DynamicToolCallOutputContentItemInputText",
    "DynamicToolCallParams",
    "DynamicToolCallResponse",
    "DynamicToolCallStatus",
    "DynamicToolSpec",
    "EffectiveTool",
    "EnvironmentAddParams",
    "EnvironmentAddResponse",
    "EnvironmentId",
    "EnvironmentInfoParams",
    "EnvironmentInfoResponse",
    "EnvironmentSelection",
    "EnvironmentShell",
    "EnvironmentSpec",
    "EnvironmentSpecCommand",
    "EnvironmentSpecLocal",
    "EnvironmentStatus",
    "EnvironmentStatusParams",
    "EnvironmentStatusResponse",
    "ErrorDataCode",
    "ErrorNotification",
    "ExecCommandApprovalParams",
    "ExecCommandApprovalResponse",
    "ExperimentalFeature",
    "ExperimentalFeatureEnablementSetParams",
    "ExperimentalFeatureEnablementSetResponse",
    "ExperimentalFeatureListParams",
    "ExperimentalFeatureListResponse",
    "ExperimentalFeatureStage",
    "ExternalAgentConfigDetectParams",
    "ExternalAgentConfigDetectResponse",
    "ExternalAgentConfigImportParams",
    "ExternalAgentConfigImportResponse",
    "ExternalAgentConfigMigrationItem",
    "ExternalAgentConfigMigrationItemType",
    "FeedbackUploadParams",
    "FeedbackUploadResponse",
    "FileChange",
    "FileChangeAdd",
    "FileChangeApprovalDecision",
    "FileChangeApprovalDecisionAcceptWithArguments",
    "FileChangeApprovalDecisionAcceptWithArgumentsBody",
    "FileChangeApprovalDecisionName",
    "FileChangeApprovalDecisionRespond",
    "FileChangeApprovalDecisionRespondBody",
    "FileChangeDelete",
    "FileChangeOutputDeltaNotification",
    "FileChangeRequestApprovalParams",
    "FileChangeRequestApprovalResponse",
    "FileChangeUpdate",
    "FileUpdateChange",
    "ForcedLoginMethod",
    "FsChangedNotification",
    "FsCopyParams",
    "FsCopyResponse",
    "FsCreateDirectoryParams",
    "FsCreateDirectoryResponse",
    "FsGetMetadataParams",
    "FsGetMetadataResponse",
    "FsReadDirectoryEntry",
    "FsReadDirectoryParams",
    "FsReadDirectoryResponse",
    "FsReadFileParams",
    "FsReadFileResponse",
    "FsRemoveParams",
    "FsRemoveResponse",
    "FsUnwatchParams",
    "FsUnwatchResponse",
    "FsWatchParams",
    "FsWatchResponse",
    "FsWriteFileParams",
    "FsWriteFileResponse",
    "FunctionCallOutputBody",
    "FunctionCallOutputContentItem",
    "FunctionCallOutputContentItemInputImage",
    "FunctionCallOutputContentItemInputText",
    "FuzzyFileSearchMatchType",
    "FuzzyFileSearchParams",
    "FuzzyFileSearchResponse",
    "FuzzyFileSearchResult",
    "FuzzyFileSearchSessionCompletedNotification",
    "FuzzyFileSearchSessionStartParams",
    "FuzzyFileSearchSessionStartResponse",
    "FuzzyFileSearchSessionStopParams",
    "FuzzyFileSearchSessionStopResponse",
    "FuzzyFileSearchSessionUpdateParams",
    "FuzzyFileSearchSessionUpdateResponse",
    "FuzzyFileSearchSessionUpdatedNotification",
    "GetAccountParams",
    "GetAccountRateLimitsResponse",
    "GetAccountResponse",
    "GetAuthStatusParams",
    "GetAuthStatusResponse",
    "GetConversationSummaryParams",
    "GetConversationSummaryParamsConversationId",
    "GetConversationSummaryParamsRolloutPath",
    "GetConversationSummaryResponse",
    "GhostCommit",
    "GitDiffToRemoteParams",
    "GitDiffToRemoteResponse",
    "GitInfo",
    "GrantedPermissionProfile",
    "GuardianApprovalReview",
    "GuardianApprovalReviewStatus",
    "GuardianRiskLevel",
    "HistoryFidelity",
    "HistoryRef",
    "HookCompletedNotification",
    "HookErrorInfo",
    "HookEventName",
    "HookExecutionMode",
    "HookHandlerType",
    "HookMetadata",
    "HookOutputEntry",
    "HookOutputEntryKind",
    "HookPromptFragment",
    "HookRunStatus",
    "HookRunSummary",
    "HookScope",
    "HookSource",
    "HookStartedNotification",
    "HookTrustStatus",
    "HooksListEntry",
    "HooksListParams",
    "HooksListResponse",
    "HostAgreed",
    "HostDelegationAgreed",
    "HostDelegationOffer",
    "HostOffer",
    "HostStatus",
    "ImageDetail",
    "InitialItemsRef",
    "InitializeCapabilities",
    "InitializeParams",
    "InitializeResponse",
    "InputModality",
    "ItemCompletedNotification",
    "ItemGuardianApprovalReviewCompletedNotification",
    "ItemGuardianApprovalReviewStartedNotification",
    "ItemId",
    "ItemStartedNotification",
    "JSONRPCError",
    "JSONRPCErrorError",
    "JSONRPCMessage",
    "JSONRPCNotification",
    "JSONRPCRequest",
    "JSONRPCResponse",
    "LastTurn",
    "ListMcpServerStatusParams",
    "ListMcpServerStatusResponse",
    "LocalShellAction",
    "LocalShellActionExec",
    "LocalShellStatus",
    "LoginAccountParams",
    "LoginAccountParamsApiKey",
    "LoginAccountParamsChatgpt",
    "LoginAccountParamsChatgptAuthTokens",
    "LoginAccountParamsChatgptDeviceCode",
    "LoginAccountResponse",
    "LoginAccountResponseApiKey",
    "LoginAccountResponseChatgpt",
    "LoginAccountResponseChatgptAuthTokens",
    "LoginAccountResponseChatgptDeviceCode",
    "LogoutAccountResponse",
    "MacOsAutomationPermission",
    "MacOsAutomationPermissionBundleIds",
    "MacOsAutomationPermissionName",
    "MacOsContactsPermission",
    "MacOsPreferencesPermission",
    "MarketplaceInterface",
    "MarketplaceLoadErrorInfo",
    "McpAuthStatus",
    "McpElicitationArrayType",
    "McpElicitationBooleanSchema",
    "McpElicitationBooleanType",
    "McpElicitationConstOption",
    "McpElicitationEnumSchema",
    "McpElicitationLegacyTitledEnumSchema",
    "McpElicitationMultiSelectEnumSchema",
    "McpElicitationNumberSchema",
    "McpElicitationNumberType",
    "McpElicitationObjectType",
    "McpElicitationPrimitiveSchema",
    "McpElicitationSchema",
    "McpElicitationSingleSelectEnumSchema",
    "McpElicitationStringFormat",
    "McpElicitationStringSchema",
    "McpElicitationStringType",
    "McpElicitationTitledEnumItems",
    "McpElicitationTitledMultiSelectEnumSchema",
    "McpElicitationTitledSingleSelectEnumSchema",
    "McpElicitationUntitledEnumItems",
    "McpElicitationUntitledMultiSelectEnumSchema",
    "McpElicitationUntitledSingleSelectEnumSchema",
    "McpServerElicitationAction",
    "McpServerElicitationRequestParams",
    "McpServerElicitationRequestParamsForm",
    "McpServerElicitationRequestParamsUrl",
    "McpServerElicitationRequestResponse",
    "McpServerOauthLoginCompletedNotification",
    "McpServerOauthLoginParams",
    "McpServerOauthLoginResponse",
    "McpServerRefreshResponse",
    "McpServerStartupState",
    "McpServerStatus",
    "McpServerStatusUpdatedNotification",
    "McpToolCallError",
    "McpToolCallProgressNotification",
    "McpToolCallResult",
    "McpToolCallStatus",
    "MemoryCitation",
    "MemoryCitationEntry",
    "MergeStrategy",
    "MessagePhase",
    "MockExperimentalMethodParams",
    "MockExperimentalMethodResponse",
    "ModeKind",
    "Model",
    "ModelAvailabilityNux",
    "ModelCancelDisposition",
    "ModelCancelParams",
    "ModelCancelReason",
    "ModelCancelResponse",
    "ModelCapabilities",
    "ModelError",
    "ModelListParams",
    "ModelListResponse",
    "ModelRequestHint",
    "ModelRequestId",
    "ModelRequestParams",
    "ModelRequestPurpose",
    "ModelRequestRejectedParams",
    "ModelRequestRejectedResponse",
    "ModelRequestResponse",
    "ModelRequestResponseAccepted",
    "ModelRequestResponseRejected",
    "ModelRerouteReason",
    "ModelReroutedNotification",
    "ModelStreamAbortedParams",
    "ModelStreamAbortedResponse",
    "ModelStreamEventParams",
    "ModelStreamEventResponse",
    "ModelUpgradeInfo",
    "ModelWire",
    "NetworkAccess",
    "NetworkApprovalContext",
    "NetworkApprovalProtocol",
    "NetworkPolicyAmendment",
    "NetworkPolicyRuleAction",
    "NetworkRequirements",
    "NonSteerableTurnKind",
    "Operation",
    "OperationDecideParams",
    "OperationDecideResponse",
    "OperationDecision",
    "OperationDecisionApprove",
    "OperationDecisionReject",
    "OperationDecisionReplace",
    "OperationDecisionRespond",
    "OperationDecisionRetry",
    "OperationId",
    "OperationListParams",
    "OperationListResponse",
    "OperationResult",
    "OperationState",
    "OperationType",
    "OperationUpdatedNotification",
    "OverriddenMetadata",
    "ParsedCommand",
    "ParsedCommandListFiles",
    "ParsedCommandRead",
    "ParsedCommandSearch",
    "ParsedCommandUnknown",
    "PatchApplyStatus",
    "PatchChangeKind",
    "PatchChangeKindAdd",
    "PatchChangeKindDelete",
    "PatchChangeKindUpdate",
    "PendingOperation",
    "PendingOperationState",
    "PermissionGrantScope",
    "PermissionsRequestApprovalParams",
    "PermissionsRequestApprovalResponse",
    "Personality",
    "PlacementAbandonParams",
    "PlacementAbandonResponse",
    "PlacementChoice",
    "PlacementDeleteParams",
    "PlacementDeleteResponse",
    "PlacementGcParams",
    "PlacementGcResponse",
    "PlacementInfo",
    "PlacementListParams",
    "PlacementListResponse",
    "PlacementProgressNotification",
    "PlacementProgressStep",
    "PlacementReadParams",
    "PlacementReadResponse",
    "PlacementSeparation",
    "PlacementSnapshotParams",
    "PlacementSnapshotResponse",
    "PlacementSpec",
    "PlacementStatus",
    "PlacementStatusChangedNotification",
    "PlacementSuspendParams",
    "PlacementSuspendResponse",
    "PlanDeltaNotification",
    "PlanType",
    "PluginAuthPolicy",
    "PluginDetail",
    "PluginInstallParams",
    "PluginInstallPolicy",
    "PluginInstallResponse",
    "PluginInterface",
    "PluginListParams",
    "PluginListResponse",
    "PluginMarketplaceEntry",
    "PluginReadParams",
    "PluginReadResponse",
    "PluginSource",
    "PluginSourceLocal",
    "PluginSummary",
    "PluginUninstallParams",
    "PluginUninstallResponse",
    "ProfileV2",
    "PromptPiece",
    "PromptPieces",
    "ProvidedTool",
    "RateLimitSnapshot",
    "RateLimitWindow",
    "RawResponseItemCompletedNotification",
    "ReadOnlyAccess",
    "ReadOnlyAccessFullAccess",
    "ReadOnlyAccessRestricted",
    "RealtimeConversationVersion",
    "ReasoningEffort",
    "ReasoningEffortOption",
    "ReasoningItemContent",
    "ReasoningItemContentReasoningText",
    "ReasoningItemContentText",
    "ReasoningItemReasoningSummary",
    "ReasoningItemReasoningSummarySummaryText",
    "ReasoningReplay",
    "ReasoningSummary",
    "ReasoningSummaryPartAddedNotification",
    "ReasoningSummaryTextDeltaNotification",
    "ReasoningTextDeltaNotification",
    "RemovedPlacement",
    "ReplicaInfo",
    "ReplicaListParams",
    "ReplicaListResponse",
    "RequestId",
    "RequestPermissionProfile",
    "ResidencyRequirement",
    "ResolvedOperation",
    "Resource",
    "ResourceTemplate",
    "ResponseItem",
    "ResponseItemCompaction",
    "ResponseItemCustomToolCall",
    "ResponseItemCustomToolCallOutput",
    "ResponseItemFunctionCall",
    "ResponseItemFunctionCallOutput",
    "ResponseItemGhostSnapshot",
    "ResponseItemImageGenerationCall",
    "ResponseItemLocalShellCall",
    "ResponseItemMessage",
    "ResponseItemOther",
    "ResponseItemReasoning",
    "ResponseItemToolSearchCall",
    "ResponseItemToolSearchOutput",
    "ResponseItemWebSearchCall",
    "ResponsesApiWebSearchAction",
    "ResponsesApiWebSearchActionFindInPage",
    "ResponsesApiWebSearchActionOpenPage",
    "ResponsesApiWebSearchActionOther",
    "ResponsesApiWebSearchActionSearch",
    "ReviewDecision",
    "ReviewDecisionApprovedExecpolicyAmendment",
    "ReviewDecisionApprovedExecpolicyAmendmentBody",
    "ReviewDecisionName",
    "ReviewDecisionNetworkPolicyAmendment",
    "ReviewDecisionNetworkPolicyAmendmentBody",
    "ReviewDelivery",
    "ReviewStartParams",
    "ReviewStartResponse",
    "ReviewTarget",
    "ReviewTargetBaseBranch",
    "ReviewTargetCommit",
    "ReviewTargetCustom",
    "ReviewTargetUncommittedChanges",
    "RolloutAppendParams",
    "RolloutAppendResponse",
    "RolloutBarrier",
    "RolloutItem",
    "RolloutItemCompacted",
    "RolloutItemMetadata",
    "RolloutItemOperation",
    "RolloutItemOperationDecided",
    "RolloutItemOperationFinished",
    "RolloutItemOperationProposed",
    "RolloutItemOperationStarted",
    "RolloutItemOperationUnknown",
    "RolloutItemOperationWithdrawn",
    "RolloutItemResponseItem",
    "RolloutItemRolledBack",
    "RolloutItemSessionMeta",
    "RolloutItemThreadItem",
    "RolloutItemTokenUsage",
    "RolloutItemTurnContext",
    "RolloutItemTurnEnded",
    "RolloutItemTurnStarted",
    "RolloutLoadParams",
    "RolloutLoadResponse",
    "RolloutOwnership",
    "SandboxMode",
    "SandboxPolicy",
    "SandboxPolicyDangerFullAccess",
    "SandboxPolicyExternalSandbox",
    "SandboxPolicyReadOnly",
    "SandboxPolicyWorkspaceWrite",
    "SandboxStatus",
    "SandboxStatusLevel",
    "SandboxWorkspaceWrite",
    "SdkDelegationConfig",
    "SdkDelegationConfiguredNotification",
    "SegmentId",
    "ServerCapabilities",
    "ServerKind",
    "ServerRequestResolvedNotification",
    "ServerStatusResponse",
    "ServiceTier",
    "SessionMeta",
    "SessionSource",
    "SessionSourceCustom",
    "SessionSourceName",
    "SessionSourceSubAgent",
    "Settings",
    "SkillDependencies",
    "SkillErrorInfo",
    "SkillInterface",
    "SkillMetadata",
    "SkillScope",
    "SkillSummary",
    "SkillToolDependency",
    "SkillsChangedNotification",
    "SkillsConfigWriteParams",
    "SkillsConfigWriteResponse",
    "SkillsListEntry",
    "SkillsListExtraRootsForCwd",
    "SkillsListParams",
    "SkillsListResponse",
    "SortDirection",
    "StoredDecision",
    "StreamAbortReason",
    "StreamCredit",
    "SubAgentSource",
    "SubAgentSourceName",
    "SubAgentSourceOther",
    "SubAgentSourceThreadSpawn",
    "SubAgentSourceThreadSpawnBody",
    "SubagentPlacement",
    "Task",
    "TaskBudget",
    "TaskDeleteParams",
    "TaskDeleteResponse",
    "TaskListParams",
    "TaskListResponse",
    "TaskReadParams",
    "TaskReadResponse",
    "TaskResumeParams",
    "TaskResumeResponse",
    "TaskStatus",
    "TaskSuspendParams",
    "TaskSuspendResponse",
    "TaskUpdatedNotification",
    "TerminalInteractionNotification",
    "TextElement",
    "TextPosition",
    "TextRange",
    "Thread",
    "ThreadActiveFlag",
    "ThreadArchiveParams",
    "ThreadArchiveResponse",
    "ThreadArchivedNotification",
    "ThreadBackgroundTerminalsCleanParams",
    "ThreadBackgroundTerminalsCleanResponse",
    "ThreadClosedNotification",
    "ThreadCompactStartParams",
    "ThreadCompactStartResponse",
    "ThreadDecision",
    "ThreadDecrementElicitationParams",
    "ThreadDecrementElicitationResponse",
    "ThreadDelegation",
    "ThreadDeleteParams",
    "ThreadDeleteResponse",
    "ThreadDeletedNotification",
    "ThreadEnvironmentConnectedNotification",
    "ThreadEnvironmentDisconnectedNotification",
    "ThreadForkParams",
    "ThreadForkResponse",
    "ThreadGoal",
    "ThreadGoalClearParams",
    "ThreadGoalClearResponse",
    "ThreadGoalClearedNotification",
    "ThreadGoalGetParams",
    "ThreadGoalGetResponse",
    "ThreadGoalMutationOrigin",
    "ThreadGoalSetParams",
    "ThreadGoalSetResponse",
    "ThreadGoalStatus",
    "ThreadGoalUpdatedNotification",
    "ThreadId",
    "ThreadIncrementElicitationParams",
    "ThreadIncrementElicitationResponse",
    "ThreadItem",
    "ThreadItemAgentMessage",
    "ThreadItemCollabAgentToolCall",
    "ThreadItemCommandExecution",
    "ThreadItemContextCompaction",
    "ThreadItemDynamicToolCall",
    "ThreadItemEnteredReviewMode",
    "ThreadItemEntry",
    "ThreadItemExitedReviewMode",
    "ThreadItemFileChange",
    "ThreadItemFunctionCallOutput",
    "ThreadItemHookPrompt",
    "ThreadItemImageGeneration",
    "ThreadItemImageView",
    "ThreadItemMcpToolCall",
    "ThreadItemPlan",
    "ThreadItemReasoning",
    "ThreadItemUserMessage",
    "ThreadItemWebSearch",
    "ThreadItemsListParams",
    "ThreadItemsListResponse",
    "ThreadListParams",
    "ThreadListResponse",
    "ThreadLoadedListParams",
    "ThreadLoadedListResponse",
    "ThreadMetadataChange",
    "ThreadMetadataGitInfoUpdateParams",
    "ThreadMetadataUpdateParams",
    "ThreadMetadataUpdateResponse",
    "ThreadNameUpdatedNotification",
    "ThreadPromptReadParams",
    "ThreadPromptReadResponse",
    "ThreadReadParams",
    "ThreadReadResponse",
    "ThreadRealtimeAppendAudioParams",
    "ThreadRealtimeAppendAudioResponse",
    "ThreadRealtimeAppendTextParams",
    "ThreadRealtimeAppendTextResponse",
    "ThreadRealtimeAudioChunk",
    "ThreadRealtimeClosedNotification",
    "ThreadRealtimeErrorNotification",
    "ThreadRealtimeItemAddedNotification",
    "ThreadRealtimeOutputAudioDeltaNotification",
    "ThreadRealtimeStartParams",
    "ThreadRealtimeStartResponse",
    "ThreadRealtimeStartedNotification",
    "ThreadRealtimeStopParams",
    "ThreadRealtimeStopResponse",
    "ThreadRealtimeTranscriptUpdatedNotification",
    "ThreadRecordsListParams",
    "ThreadRecordsListResponse",
    "ThreadResumeParams",
    "ThreadResumeResponse",
    "ThreadResyncedNotification",
    "ThreadRollbackParams",
    "ThreadRollbackResponse",
    "ThreadSetNameParams",
    "ThreadSetNameResponse",
    "ThreadShellCommandParams",
    "ThreadShellCommandResponse",
    "ThreadSortKey",
    "ThreadSourceKind",
    "ThreadStartParams",
    "ThreadStartResponse",
    "ThreadStartedNotification",
    "ThreadStatus",
    "ThreadStatusActive",
    "ThreadStatusChangedNotification",
    "ThreadStatusIdle",
    "ThreadStatusNotLoaded",
    "ThreadStatusSystemError",
    "ThreadSuspendParams",
    "ThreadSuspendResponse",
    "ThreadTokenUsage",
    "ThreadTokenUsageUpdatedNotification",
    "ThreadTurnsListParams",
    "ThreadTurnsListResponse",
    "ThreadUnarchiveParams",
    "ThreadUnarchiveResponse",
    "ThreadUnarchivedNotification",
    "ThreadUnsubscribeParams",
    "ThreadUnsubscribeResponse",
    "ThreadUnsubscribeStatus",
    "TokenUsageBreakdown",
    "Tool",
    "ToolApprovalDecision",
    "ToolApprovalDecisionAcceptWithArguments",
    "ToolApprovalDecisionAcceptWithArgumentsBody",
    "ToolApprovalDecisionName",
    "ToolApprovalDecisionRespond",
    "ToolApprovalDecisionRespondBody",
    "ToolApprovalRule",
    "ToolApprovalRules",
    "ToolEffects",
    "ToolOrigin",
    "ToolRequestApprovalParams",
    "ToolRequestApprovalResponse",
    "ToolRequestUserInputAnswer",
    "ToolRequestUserInputOption",
    "ToolRequestUserInputParams",
    "ToolRequestUserInputQuestion",
    "ToolRequestUserInputResponse",
    "ToolSet",
    "ToolSetMode",
    "ToolSetTool",
    "ToolsV2",
    "Turn",
    "TurnCompletedNotification",
    "TurnCost",
    "TurnDiffUpdatedNotification",
    "TurnError",
    "TurnId",
    "TurnInterruptParams",
    "TurnInterruptResponse",
    "TurnItemsView",
    "TurnPlanStep",
    "TurnPlanStepStatus",
    "TurnPlanUpdatedNotification",
    "TurnStartParams",
    "TurnStartResponse",
    "TurnStartedNotification",
    "TurnStatus",
    "TurnSteerParams",
    "TurnSteerResponse",
    "TurnSuspendMode",
    "TurnSuspendParams",
    "TurnSuspendResponse",
    "TurnSuspendedNotification",
    "TurnToolOutput",
    "UnknownAccount",
    "UnknownAskForApproval",
    "UnknownCodexErrorInfo",
    "UnknownCommandAction",
    "UnknownCommandExecutionApprovalDecision",
    "UnknownConfigLayerSource",
    "UnknownContentItem",
    "UnknownDelegatedHistory",
    "UnknownDelegationRequestResponse",
    "UnknownDynamicToolCallOutputContentItem",
    "UnknownEnvironmentSpec",
    "UnknownFileChange",
    "UnknownFileChangeApprovalDecision",
    "UnknownFunctionCallOutputContentItem",
    "UnknownLocalShellAction",
    "UnknownLoginAccountParams",
    "UnknownLoginAccountResponse",
    "UnknownMacOsAutomationPermission",
    "UnknownMcpServerElicitationRequestParams",
    "UnknownModelRequestResponse",
    "UnknownOperationDecision",
    "UnknownParsedCommand",
    "UnknownPatchChangeKind",
    "UnknownPluginSource",
    "UnknownReadOnlyAccess",
    "UnknownReasoningItemContent",
    "UnknownReasoningItemReasoningSummary",
    "UnknownResponseItem",
    "UnknownResponsesApiWebSearchAction",
    "UnknownReviewDecision",
    "UnknownReviewTarget",
    "UnknownRolloutItem",
    "UnknownRolloutItemOperation",
    "UnknownSandboxPolicy",
    "UnknownSessionSource",
    "UnknownSubAgentSource",
    "UnknownThreadItem",
    "UnknownThreadStatus",
    "UnknownToolApprovalDecision",
    "UnknownUserInput",
    "UnknownWebSearchAction",
    "UsageGrouping",
    "UsageListParams",
    "UsageListResponse",
    "UsageSum",
    "UserInput",
    "UserInputImage",
    "UserInputLocalImage",
    "UserInputMention",
    "UserInputSkill",
    "UserInputText",
    "Verbosity",
    "W3cTraceContext",
    "WebSearchAction",
    "WebSearchActionFindInPage",
    "WebSearchActionOpenPage",
    "WebSearchActionOther",
    "WebSearchActionSearch",
    "WebSearchContextSize",
    "WebSearchLocation",
    "WebSearchMode",
    "WebSearchToolConfig",
    "WindowsSandboxSetupCompletedNotification",
    "WindowsSandboxSetupMode",
    "WindowsSandboxSetupStartParams",
    "WindowsSandboxSetupStartResponse",
    "WindowsWorldWritableWarningNotification",
    "WriteStatus",
]


AbsolutePathBuf: TypeAlias = str
"""An absolute path."""


PlanType: TypeAlias = Open[Literal["free", "go", "plus", "pro", "team", "business", "enterprise", "edu", "unknown"]]
"""The ChatGPT plan of an account.
`unknown`: The token names no plan, or one this release does not know.
"""


class AccountApiKey(Variant):
    """An API key, which is not shown."""

    type: Literal["apiKey"] = "apiKey"


class AccountChatgpt(Variant):
    type: Literal["chatgpt"] = "chatgpt"
    email: str
    plan_type: PlanType


class UnknownAccount(UnknownVariant):
    """A `type` that this version does not know."""

    type: str


Account: TypeAlias = Annotated[AccountApiKey | AccountChatgpt | UnknownAccount, Tagged("type")]
"""Who is logged in."""


class AccountLoginCompletedNotification(WireModel):
    """Sent to all connections when a login has succeeded, failed, timed out or been cancelled."""

    login_id: str | None = None
    """Null for a login that had nothing to wait for, as with an API key."""
    success: StrictBool
    error: str | None = None
    """Set when `success` is false."""


class RateLimitWindow(WireModel):
    """A stretch of time with a limit of its own."""

    used_percent: StrictInt
    """From 0 to 100."""
    window_duration_mins: StrictInt | None = None
    resets_at: StrictInt | None = None
    """Unix seconds."""


class CreditsSnapshot(WireModel):
    """The account's prepaid credits."""

    has_credits: StrictBool
    unlimited: StrictBool
    balance: str | None = None
    """For display."""


class RateLimitSnapshot(WireModel):
    """How much of one limit is used up."""

    limit_id: str | None = None
    limit_name: str | None = None
    primary: RateLimitWindow | None = None
    """The shorter window. Null where unknown."""
    secondary: RateLimitWindow | None = None
    """The longer window. Null where unknown."""
    credits: CreditsSnapshot | None = None
    plan_type: PlanType | None = None


class AccountRateLimitsUpdatedNotification(WireModel):
    """Sent when a response stream opens and after each model response."""

    rate_limits: RateLimitSnapshot


AuthMode: TypeAlias = Open[Literal["apikey", "chatgpt", "chatgptAuthTokens"]]
"""How requests to the provider are authenticated.
`chatgpt`: With tokens the server keeps and refreshes.
`chatgptAuthTokens`: With tokens the client keeps and refreshes.
"""


class AccountUpdatedNotification(WireModel):
    """Sent to all connections after a login or logout took effect."""

    auth_mode: AuthMode | None = None
    """Null after a logout."""
    plan_type: PlanType | None = None
    """Null without a ChatGPT account."""


AdditionalContextKind: TypeAlias = Open[Literal["untrusted", "application"]]
"""Decides the role the model sees the entry under.
`untrusted`: From outside: shown with the user role, marked as external.
`application`: From the application itself: shown with the developer role.
"""


class AdditionalContextEntry(WireModel):
    """One entry. The key beside it is the client's own and becomes the tag around the value."""

    value: str
    """Cut in the middle when longer than about 1,000 tokens."""
    kind: AdditionalContextKind


class AdditionalFileSystemPermissions(WireModel):
    """Paths, with all that is below them. Null for none."""

    read: list[AbsolutePathBuf] | None = None
    write: list[AbsolutePathBuf] | None = None


MacOsPreferencesPermission: TypeAlias = Open[Literal["none", "read_only", "read_write"]]
"""Access to the user's preferences."""


MacOsAutomationPermissionName: TypeAlias = Open[Literal["none", "all"]]


class MacOsAutomationPermissionBundleIds(WireModel):
    """Only these."""

    bundle_ids: Annotated[list[str], wire("bundle_ids")]


class UnknownMacOsAutomationPermission(UnknownVariant):
    """A key that this version does not know."""


MacOsAutomationPermission: TypeAlias = Annotated[
    MacOsAutomationPermissionName | MacOsAutomationPermissionBundleIds | UnknownMacOsAutomationPermission,
    Keyed(),
]
"""Which apps may be controlled."""


MacOsContactsPermission: TypeAlias = Open[Literal["none", "read_only", "read_write"]]
"""Access to the address book."""


class AdditionalMacOsPermissions(WireModel):
    """Permissions that exist on macOS alone."""

    preferences: MacOsPreferencesPermission
    automations: MacOsAutomationPermission
    """Which apps may be controlled."""
    launch_services: StrictBool
    accessibility: StrictBool
    calendar: StrictBool
    reminders: StrictBool
    contacts: MacOsContactsPermission


class AdditionalNetworkPermissions(WireModel):
    """Access to the network."""

    enabled: StrictBool | None = None


class AdditionalPermissionProfile(WireModel):
    """Permissions that one command would get beyond the sandbox. Null for nothing more."""

    network: AdditionalNetworkPermissions | None = None
    file_system: AdditionalFileSystemPermissions | None = None
    macos: AdditionalMacOsPermissions | None = None


ThreadId: TypeAlias = str
"""A thread, as a UUID."""


TurnId: TypeAlias = str
"""One turn of a thread."""


ItemId: TypeAlias = str
"""One item of a turn. Tool items carry the model's call id."""


class AgentMessageDeltaNotification(WireModel):
    """Sent as an agent message grows."""

    thread_id: ThreadId
    turn_id: TurnId
    item_id: ItemId
    delta: str
    """To be appended to the text so far."""


AgentPath: TypeAlias = str
"""The names of an agent's ancestors and its own, from the root, joined by `/`."""


class AnalyticsConfig(WireModel):
    """Whether usage statistics are collected."""

    enabled: StrictBool | None = None


class AppBranding(WireModel):
    """Who offers an app, for display."""

    category: str | None = None
    developer: str | None = None
    website: str | None = None
    privacy_policy: str | None = None
    terms_of_service: str | None = None
    is_discoverable_app: StrictBool


AppToolApproval: TypeAlias = Open[Literal["auto", "prompt", "approve"]]
"""When a call of the tool asks the user.
`auto`: When the tool's own hints say that it may change or reach something.
`prompt`: Always.
`approve`: Never.
"""


class AppToolConfig(WireModel):
    """Settings of one tool. Null falls back to those of the app."""

    approval_mode: Annotated[AppToolApproval | None, wire("approval_mode")] = None
    enabled: StrictBool | None = None


AppToolsConfig: TypeAlias = dict[str, AppToolConfig]
"""Settings by tool name."""


class AppConfig(WireModel):
    """Settings of one app."""

    default_tools_approval_mode: Annotated[AppToolApproval | None, wire("default_tools_approval_mode")] = None
    """For tools without a setting of their own."""
    default_tools_enabled: Annotated[StrictBool | None, wire("default_tools_enabled")] = None
    """For tools without a setting of their own."""
    destructive_enabled: Annotated[StrictBool | None, wire("destructive_enabled")] = None
    """Whether tools marked as destructive may be used."""
    enabled: StrictBool = True
    open_world_enabled: Annotated[StrictBool | None, wire("open_world_enabled")] = None
    """Whether tools marked as open-world may be used."""
    tools: AppToolsConfig | None = None


class AppReview(WireModel):
    """The directory's review of an app."""

    status: str


class AppScreenshot(WireModel):
    """A picture of an app in use."""

    url: str | None = None
    file_id: str | None = None
    user_prompt: str


class AppMetadata(WireModel):
    """Facts of the directory about an app. Null where it has none."""

    review: AppReview | None = None
    categories: list[str] | None = None
    sub_categories: list[str] | None = None
    seo_description: str | None = None
    screenshots: list[AppScreenshot] | None = None
    developer: str | None = None
    version: str | None = None
    version_id: str | None = None
    version_notes: str | None = None
    first_party_type: str | None = None
    first_party_requires_install: StrictBool | None = None
    show_in_composer_when_unlinked: StrictBool | None = None


class AppInfo(WireModel):
    """One app, merged from the directory and from what the account can reach."""

    id: str
    name: str
    description: str | None = None
    logo_url: str | None = None
    logo_url_dark: str | None = None
    """The logo for dark backgrounds."""
    distribution_channel: str | None = None
    branding: AppBranding | None = None
    app_metadata: AppMetadata | None = None
    labels: dict[str, str] | None = None
    install_url: str | None = None
    """The page where the user connects it."""
    is_accessible: StrictBool = False
    """Whether the account can use it now."""
    is_enabled: StrictBool = True
    """False when config switches the app off."""
    plugin_display_names: list[str] = []
    """The plugins that bring this app."""


class AppListUpdatedNotification(WireModel):
    """Sent to all connections whenever the merged list changes while apps are being loaded."""

    data: list[AppInfo]
    """The whole list so far, not a page of it."""


class AppSummary(WireModel):
    """An app as a plugin refers to it."""

    id: str
    name: str
    description: str | None = None
    install_url: str | None = None
    """The page where the user connects it."""
    needs_auth: StrictBool
    """Whether the user still has to connect it."""


class FileChangeAdd(Variant):
    type: Literal["add"] = "add"
    content: str
    """The whole file."""


class FileChangeDelete(Variant):
    type: Literal["delete"] = "delete"
    content: str
    """The whole file, as it was."""


class FileChangeUpdate(Variant):
    type: Literal["update"] = "update"
    unified_diff: Annotated[str, wire("unified_diff")]
    move_path: Annotated[str | None, wire("move_path")] = None
    """The new path when the file is also renamed."""


class UnknownFileChange(UnknownVariant):
    """A `type` that this version does not know."""

    type: str


FileChange: TypeAlias = Annotated[
    FileChangeAdd | FileChangeDelete | FileChangeUpdate | UnknownFileChange,
    Tagged("type"),
]
"""The kind of change to a file, in the older form."""


class ApplyPatchApprovalParams(WireModel):
    """Never sent; `item/fileChange/requestApproval` took its place."""

    conversation_id: ThreadId
    """The thread's id."""
    call_id: str
    file_changes: dict[str, FileChange]
    """By path."""
    reason: str | None = None
    grant_root: str | None = None


NetworkPolicyRuleAction: TypeAlias = Open[Literal["allow", "deny"]]
"""The rule's action for requests to the host."""


class NetworkPolicyAmendment(WireModel):
    """A lasting rule for one host."""

    host: str
    action: NetworkPolicyRuleAction


ReviewDecisionName: TypeAlias = Open[Literal["approved", "approved_for_session", "denied", "abort"]]
"""`approved`: Do it this once.
`approved_for_session`: Do it, and do not ask for the same again in this session.
`denied`: Do not do it. The turn continues.
`abort`: Do not do it, and interrupt the turn.
"""


class ReviewDecisionApprovedExecpolicyAmendmentBody(WireModel):
    proposed_execpolicy_amendment: Annotated[list[str], wire("proposed_execpolicy_amendment")]


class ReviewDecisionApprovedExecpolicyAmendment(WireModel):
    """Do it, and allow commands that begin like this for good."""

    approved_execpolicy_amendment: Annotated[
        ReviewDecisionApprovedExecpolicyAmendmentBody, wire("approved_execpolicy_amendment")
    ]


class ReviewDecisionNetworkPolicyAmendmentBody(WireModel):
    network_policy_amendment: Annotated[NetworkPolicyAmendment, wire("network_policy_amendment")]


class ReviewDecisionNetworkPolicyAmendment(WireModel):
    """Keep this rule for the host for good."""

    network_policy_amendment: Annotated[ReviewDecisionNetworkPolicyAmendmentBody, wire("network_policy_amendment")]


class UnknownReviewDecision(UnknownVariant):
    """A key that this version does not know."""


ReviewDecision: TypeAlias = Annotated[
    ReviewDecisionName
    | ReviewDecisionApprovedExecpolicyAmendment
    | ReviewDecisionNetworkPolicyAmendment
    | UnknownReviewDecision,
    Keyed(),
]
"""An approval decision, in the older form."""


class ApplyPatchApprovalResponse(WireModel):
    decision: ReviewDecision


ApprovalsReviewer: TypeAlias = Open[Literal["user", "guardian_subagent", "auto_review"]]
"""Who answers approval requests.
`user`: The client.
`guardian_subagent`: A reviewing agent, under the policy `on-request`.
`auto_review`: The newer word for `guardian_subagent`.
"""


class AppsDefaultConfig(WireModel):
    """Settings of apps without an entry of their own."""

    enabled: StrictBool = True
    destructive_enabled: Annotated[StrictBool, wire("destructive_enabled")] = True
    """Whether tools marked as destructive may be used."""
    open_world_enabled: Annotated[StrictBool, wire("open_world_enabled")] = True
    """Whether tools marked as open-world may be used."""


class AppsConfig(WireModel):
    """Settings by app id."""

    default: Annotated[AppsDefaultConfig | None, wire("_default")] = None
    """For apps without an entry of their own."""


class AppsListParams(WireModel):
    """Lists apps, a page at a time. Empty unless the apps feature is on and the login is a ChatGPT one."""

    cursor: str | None = None
    """`nextCursor` of the page before; unset for the first page."""
    limit: StrictInt | None = None
    """Most apps on one page."""
    thread_id: ThreadId | None = None
    """The thread whose configuration decides whether apps are on; the global one when unset."""
    force_refetch: StrictBool = False
    """Ask the sources again instead of the cache. A fetch that fails leaves the cache as it was."""


class AppsListResponse(WireModel):
    data: list[AppInfo]
    next_cursor: str | None = None
    """Null on the last page."""


AskForApprovalName: TypeAlias = Open[Literal["untrusted", "on-failure", "on-request", "never"]]
"""`untrusted`: For every command that is not known to be safe.
`on-failure`: When the sandbox stopped a command, to run it again without one.
`on-request`: When the agent asks to leave the sandbox.
`never`: Never. Anything that needs approval is refused.
"""


class AskForApprovalGranularBody(WireModel):
    sandbox_approval: Annotated[StrictBool, wire("sandbox_approval")]
    """Leaving the sandbox."""
    rules: StrictBool
    """Commands for which a rule says to ask."""
    skill_approval: Annotated[StrictBool, wire("skill_approval")] = False
    """Commands of skills."""
    request_permissions: Annotated[StrictBool, wire("request_permissions")] = False
    """Requests for more permissions."""
    mcp_elicitations: Annotated[StrictBool, wire("mcp_elicitations")]
    """Questions of MCP servers."""


class AskForApprovalGranular(WireModel):
    """Like `on-request`, with each kind of question enabled or disabled. Disabled kinds are refused without a
    question.
    """

    granular: AskForApprovalGranularBody


class UnknownAskForApproval(UnknownVariant):
    """A key that this version does not know."""


AskForApproval: TypeAlias = Annotated[AskForApprovalName | AskForApprovalGranular | UnknownAskForApproval, Keyed()]
"""When to ask before something runs."""


class AuditListParams(WireModel):
    """Lists the audit trail of a host, the newest entries first: who decided, started and stopped what."""

    thread_id: ThreadId | None = None
    """About this task, its threads, turns and operations."""
    since_ms: StrictInt | None = None
    """Not before this time, in Unix milliseconds."""
    cursor: str | None = None
    """From the page before."""
    limit: StrictInt | None = None
    """50 when unset."""


class AuditRecord(WireModel):
    """One entry of the audit trail. It is never changed."""

    number: StrictInt
    """Counts entries without a gap."""
    at_ms: StrictInt
    """Unix milliseconds, by the clock of the store."""
    who: str
    """The name of the connection; `host:NAME` for a host that acts by itself, `runtime` for what a runtime did."""
    action: str
    """What was done, mostly the method: `operation/decide`, `turn/start`, `task/adopt`."""
    subject: str
    """The id of the task, turn, operation or placement."""
    task_id: ThreadId | None = None
    """The task that it belongs to. The task itself may be gone."""
    details: Any
    """More about it, by action."""


class AuditListResponse(WireModel):
    data: list[AuditRecord]
    next_cursor: str | None = None
    """Null on the last page."""


class BuiltinToolFilter(WireModel):
    """Built-in tools by name."""

    allow: list[str] | None = None
    """For the modes `replace` and `additive`, where it adds tools that the runtime would not offer by itself."""
    deny: list[str] | None = None
    """For the mode `additive`."""


class ByteRange(WireModel):
    """Bytes of a UTF-8 text."""

    start: StrictInt
    end: StrictInt
    """Not included."""


class CancelLoginAccountParams(WireModel):
    """Gives up a login that still waits for the user."""

    login_id: str
    """A UUID from the answer to `account/login/start`."""


CancelLoginAccountStatus: TypeAlias = Open[Literal["canceled", "notFound"]]
"""The outcome of cancelling a login.
`notFound`: No login with this id waits any more.
"""


class CancelLoginAccountResponse(WireModel):
    status: CancelLoginAccountStatus


ChatgptAuthTokensRefreshReason: TypeAlias = Open[Literal["unauthorized"]]
"""Why the tokens are no longer good.
`unauthorized`: The provider answered 401.
"""


class ChatgptAuthTokensRefreshParams(WireModel):
    """Asks a client that keeps its own tokens for fresh ones. Without an answer in 10 seconds the model call
    fails.
    """

    reason: ChatgptAuthTokensRefreshReason
    previous_account_id: str | None = None
    """The workspace of the tokens that stopped working."""


class ChatgptAuthTokensRefreshResponse(WireModel):
    """Fresh tokens; the model call is tried again with them."""

    access_token: str
    """The bearer token, a JWT."""
    chatgpt_account_id: str
    """The workspace the token is for. Must be the forced one where config forces one."""
    chatgpt_plan_type: str | None = None


class ClientInfo(WireModel):
    """The client that connects."""

    name: str
    """Goes into `userAgent` and HTTP headers, so it must be a legal header value."""
    title: str | None = None
    """For display."""
    version: str


NonSteerableTurnKind: TypeAlias = Open[Literal["review", "compact"]]
"""A kind of turn that takes no input."""


CodexErrorInfoName: TypeAlias = Open[
    Literal[
        "internalServerError",
        "unauthorized",
        "badRequest",
        "threadRollbackFailed",
        "sandboxError",
        "contextWindowExceeded",
        "usageLimitExceeded",
        "serverOverloaded",
        "rateLimitExceeded",
        "sessionBudgetExceeded",
        "modelNotFound",
        "other",
    ]
]
"""`contextWindowExceeded`: The history no longer fits the model.
`usageLimitExceeded`: The account has used up its quota.
`serverOverloaded`: The provider has no room now.
`rateLimitExceeded`: Too many requests in too short a time.
`sessionBudgetExceeded`: The host's budget is spent.
`other`: None of the others.
"""


class CodexErrorInfoHttpConnectionFailedBody(WireModel):
    http_status_code: StrictInt | None = None
    """Null without an answer."""


class CodexErrorInfoHttpConnectionFailed(WireModel):
    """The provider could not be reached or answered with an error."""

    http_connection_failed: CodexErrorInfoHttpConnectionFailedBody


class CodexErrorInfoResponseStreamConnectionFailedBody(WireModel):
    http_status_code: StrictInt | None = None
    """Null without an answer."""


class CodexErrorInfoResponseStreamConnectionFailed(WireModel):
    """The stream could not be opened."""

    response_stream_connection_failed: CodexErrorInfoResponseStreamConnectionFailedBody


class CodexErrorInfoResponseStreamDisconnectedBody(WireModel):
    http_status_code: StrictInt | None = None
    """Null without an answer."""


class CodexErrorInfoResponseStreamDisconnected(WireModel):
    """The stream broke off."""

    response_stream_disconnected: CodexErrorInfoResponseStreamDisconnectedBody


class CodexErrorInfoResponseTooManyFailedAttemptsBody(WireModel):
    http_status_code: StrictInt | None = None
    """Of the last attempt; null without an answer."""


class CodexErrorInfoResponseTooManyFailedAttempts(WireModel):
    """Every attempt failed."""

    response_too_many_failed_attempts: CodexErrorInfoResponseTooManyFailedAttemptsBody


class CodexErrorInfoActiveTurnNotSteerableBody(WireModel):
    turn_kind: NonSteerableTurnKind


class CodexErrorInfoActiveTurnNotSteerable(WireModel):
    """The turn that runs takes no input."""

    active_turn_not_steerable: CodexErrorInfoActiveTurnNotSteerableBody


class UnknownCodexErrorInfo(UnknownVariant):
    """A key that this version does not know."""


CodexErrorInfo: TypeAlias = Annotated[
    CodexErrorInfoName
    | CodexErrorInfoHttpConnectionFailed
    | CodexErrorInfoResponseStreamConnectionFailed
    | CodexErrorInfoResponseStreamDisconnected
    | CodexErrorInfoResponseTooManyFailedAttempts
    | CodexErrorInfoActiveTurnNotSteerable
    | UnknownCodexErrorInfo,
    Keyed(),
]
"""The class of an error, for programs."""


CollabAgentStatus: TypeAlias = Open[
    Literal["running", "completed", "errored", "pendingInit", "interrupted", "shutdown", "notFound"]
]
"""The status of a child agent.
`pendingInit`: Not started yet.
`interrupted`: Its turn was stopped; it can continue.
`shutdown`: Closed.
`notFound`: No agent has this id.
"""


class CollabAgentState(WireModel):
    """A child agent as it was last seen."""

    status: CollabAgentStatus
    message: str | None = None
    """The last message of a completed agent, or why it failed."""


CollabAgentTool: TypeAlias = Open[Literal["spawnAgent", "sendInput", "resumeAgent", "wait", "closeAgent"]]
"""A tool call about child agents.
`resumeAgent`: Opens a closed one again.
`wait`: Waits until any of them is done.
`closeAgent`: Ends one and all its descendants.
"""


CollabAgentToolCallStatus: TypeAlias = Open[Literal["inProgress", "completed", "failed"]]
"""The status of the call."""


ModeKind: TypeAlias = Open[Literal["plan", "default"]]
"""How the agent treats a prompt.
`plan`: Work out a plan and propose it as a plan item; questions to the user are allowed.
`default`: Do the work. Older clients have other names for it.
"""


ReasoningEffort: TypeAlias = Open[
    Literal["none", "minimal", "low", "medium", "high", "xhigh", "max", "ultra", "persistent"]
]
"""How much the model thinks before it answers. `model/list` names only those from `none` to `xhigh`."""


class Settings(WireModel):
    """The settings of a mode. Field names are snake_case."""

    model: str
    reasoning_effort: Annotated[ReasoningEffort | None, wire("reasoning_effort")] = None
    developer_instructions: Annotated[str | None, wire("developer_instructions")] = None
    """Null uses the built-in text of the mode."""


class CollaborationMode(WireModel):
    """A mode with its settings. Wins over `model` and `effort` of the same request."""

    mode: ModeKind
    settings: Settings


class CollaborationModeListParams(WireModel):
    """Lists the built-in modes."""


class CollaborationModeMask(WireModel):
    """A preset. Null leaves that choice as it is. Field names are snake_case."""

    name: str
    """For display."""
    mode: ModeKind | None = None
    model: str | None = None
    reasoning_effort: Annotated[ReasoningEffort | None, wire("reasoning_effort")] = None


class CollaborationModeListResponse(WireModel):
    data: list[CollaborationModeMask]


class CommandActionRead(Variant):
    type: Literal["read"] = "read"
    command: str
    """The part of the command that does this."""
    name: str
    """The file's name alone."""
    path: str


class CommandActionListFiles(Variant):
    type: Literal["listFiles"] = "listFiles"
    command: str
    """The part of the command that does this."""
    path: str | None = None


class CommandActionSearch(Variant):
    type: Literal["search"] = "search"
    command: str
    """The part of the command that does this."""
    path: str | None = None
    query: str | None = None


class CommandActionUnknown(Variant):
    type: Literal["unknown"] = "unknown"
    command: str
    """The part of the command in question."""


class UnknownCommandAction(UnknownVariant):
    """A `type` that this version does not know."""

    type: str


CommandAction: TypeAlias = Annotated[
    CommandActionRead | CommandActionListFiles | CommandActionSearch | CommandActionUnknown | UnknownCommandAction,
    Tagged("type"),
]
"""The apparent action of a command, derived from its text. For display."""


CommandExecOutputStream: TypeAlias = Open[Literal["stderr", "stdout"]]
"""Which stream output came from.
`stdout`: Also everything a terminal shows.
"""


class CommandExecOutputDeltaNotification(WireModel):
    """Sent to the caller alone as output arrives. All of them come before the answer to `command/exec`."""

    process_id: str
    stream: CommandExecOutputStream
    delta_base64: str
    """Bytes in base64."""
    cap_reached: StrictBool
    """True on the last piece of a stream that hit its cap; what it writes after that is dropped."""


class CommandExecTerminalSize(WireModel):
    """In character cells. Both must be above 0."""

    rows: StrictInt
    cols: StrictInt


class ReadOnlyAccessRestricted(Variant):
    """Only what is listed."""

    type: Literal["restricted"] = "restricted"
    include_platform_defaults: StrictBool = True
    """Also the system folders that programs need."""
    readable_roots: list[AbsolutePathBuf] = []
    """Folders, with all that is below them."""


class ReadOnlyAccessFullAccess(Variant):
    """Everything."""

    type: Literal["fullAccess"] = "fullAccess"


class UnknownReadOnlyAccess(UnknownVariant):
    """A `type` that this version does not know."""

    type: str


ReadOnlyAccess: TypeAlias = Annotated[
    ReadOnlyAccessRestricted | ReadOnlyAccessFullAccess | UnknownReadOnlyAccess,
    Tagged("type"),
]
"""The readable part of the file system."""


NetworkAccess: TypeAlias = Open[Literal["restricted", "enabled"]]
"""Whether the network can be reached."""


class SandboxPolicyDangerFullAccess(Variant):
    """No sandbox."""

    type: Literal["dangerFullAccess"] = "dangerFullAccess"


class SandboxPolicyReadOnly(Variant):
    """Nothing can be written."""

    type: Literal["readOnly"] = "readOnly"
    access: ReadOnlyAccess = Field(default_factory=lambda: read(ReadOnlyAccess, {"type": "fullAccess"}))
    network_access: StrictBool = False


class SandboxPolicyExternalSandbox(Variant):
    """The server itself runs in a sandbox and adds none of its own."""

    type: Literal["externalSandbox"] = "externalSandbox"
    network_access: NetworkAccess = "restricted"
    """The network access described to the model; not enforced."""


class SandboxPolicyWorkspaceWrite(Variant):
    """The working directory, temporary folders and listed roots can be written to, except for `.git`,
    `.agents` and `.codex` in them.
    """

    type: Literal["workspaceWrite"] = "workspaceWrite"
    network_access: StrictBool = False
    writable_roots: list[AbsolutePathBuf] = []
    """More folders that may be written to."""
    read_only_access: ReadOnlyAccess = Field(default_factory=lambda: read(ReadOnlyAccess, {"type": "fullAccess"}))
    exclude_tmpdir_env_var: StrictBool = False
    """Do not make the folder in `TMPDIR` writable."""
    exclude_slash_tmp: StrictBool = False
    """Do not make `/tmp` writable."""


class UnknownSandboxPolicy(UnknownVariant):
    """A `type` that this version does not know."""

    type: str


SandboxPolicy: TypeAlias = Annotated[
    SandboxPolicyDangerFullAccess
    | SandboxPolicyReadOnly
    | SandboxPolicyExternalSandbox
    | SandboxPolicyWorkspaceWrite
    | UnknownSandboxPolicy,
    Tagged("type"),
]
"""A sandbox in full. Every member may be left out."""


class CommandExecParams(WireModel):
    """Runs a command outside any thread. The answer comes when it has ended; closing the connection kills it."""

    command: list[str]
    """Program and arguments. Must not be empty."""
    process_id: str | None = None
    """The caller's own name for the process, unique among its running ones on this connection. Required for
    `tty`, for streaming and to write, resize or terminate.
    """
    tty: StrictBool = False
    """Run in a terminal. Switches streaming on in both directions."""
    stream_stdin: StrictBool = False
    """Keep stdin open for `command/exec/write`."""
    stream_stdout_stderr: StrictBool = False
    """Send output as `command/exec/outputDelta` and not in the answer."""
    output_bytes_cap: StrictInt | None = None
    """Bytes kept of each stream; 1,048,576 when unset. Not together with `disableOutputCap`."""
    disable_output_cap: StrictBool = False
    """Keep all output."""
    disable_timeout: StrictBool = False
    """Let it run as long as it takes."""
    timeout_ms: StrictInt | None = None
    """10,000 when unset. Not together with `disableTimeout`."""
    cwd: str | None = None
    """The server's own when unset."""
    env: dict[str, str | None] | None = None
    """Laid over the environment the server gives; null removes a variable."""
    size: CommandExecTerminalSize | None = None
    """The terminal's first size. Only with `tty`."""
    sandbox_policy: SandboxPolicy | None = None
    """The configured policy when unset."""
    placement_id: str | None = None
    """The placement in which it is carried out; the host's own machine when unset. Only a host has placements."""


class CommandExecResizeParams(WireModel):
    """Resizes the terminal of a command started with `tty`."""

    process_id: str
    """As given to `command/exec`."""
    size: CommandExecTerminalSize
    placement_id: str | None = None
    """The placement in which it is carried out; the host's own machine when unset. Only a host has placements."""


class CommandExecResizeResponse(WireModel):
    pass


class CommandExecResponse(WireModel):
    """How the command ended."""

    exit_code: StrictInt
    """124 after a timeout. After `command/exec/terminate`, -1 or a code made from the signal."""
    stdout: str
    """Empty when output was streamed."""
    stderr: str
    """Empty when output was streamed."""


class CommandExecTerminateParams(WireModel):
    """Ends a running command. The answer to its `command/exec` follows."""

    process_id: str
    """As given to `command/exec`."""
    placement_id: str | None = None
    """The placement in which it is carried out; the host's own machine when unset. Only a host has placements."""


class CommandExecTerminateResponse(WireModel):
    pass


class CommandExecWriteParams(WireModel):
    """Writes to a running command, closes its stdin, or both in this order."""

    process_id: str
    """As given to `command/exec`."""
    delta_base64: str | None = None
    """Bytes in base64. Required unless `closeStdin` is true."""
    close_stdin: StrictBool = False
    placement_id: str | None = None
    """The placement in which it is carried out; the host's own machine when unset. Only a host has placements."""


class CommandExecWriteResponse(WireModel):
    pass


class DynamicToolCallOutputContentItemInputText(Variant):
    type: Literal["inputText"] = "inputText"
    text: str


class DynamicToolCallOutputContentItemInputImage(Variant):
    type: Literal["inputImage"] = "inputImage"
    image_url: str


class UnknownDynamicToolCallOutputContentItem(UnknownVariant):
    """A `type` that this version does not know."""

    type: str


DynamicToolCallOutputContentItem: TypeAlias = Annotated[
    DynamicToolCallOutputContentItemInputText
    | DynamicToolCallOutputContentItemInputImage
    | UnknownDynamicToolCallOutputContentItem,
    Tagged("type"),
]
"""One part of a tool's result, as the model gets it."""


CommandExecutionApprovalDecisionName: TypeAlias = Open[
    Literal["accept", "acceptForSession", "decline", "cancel", "defer"]
]
"""`accept`: Run it this once.
`acceptForSession`: Run it, and do not ask again in this session for the same command in the same place.
`decline`: Do not run it. The turn continues, and the model gets the decision.
`cancel`: Do not run it, and interrupt the turn.
`defer`: Not by this client and not now: the question stays open for others and for later.
"""


class CommandExecutionApprovalDecisionAcceptWithCommandOverrideBody(WireModel):
    command: list[str]
    """Program and arguments."""


class CommandExecutionApprovalDecisionAcceptWithCommandOverride(WireModel):
    """Run this command instead; it passes the policy and the sandbox again."""

    accept_with_command_override: CommandExecutionApprovalDecisionAcceptWithCommandOverrideBody


class CommandExecutionApprovalDecisionAcceptWithExecpolicyAmendmentBody(WireModel):
    execpolicy_amendment: Annotated[list[str], wire("execpolicy_amendment")]
    """The command prefix to allow, as in `proposedExecpolicyAmendment`."""


class CommandExecutionApprovalDecisionAcceptWithExecpolicyAmendment(WireModel):
    """Run it, and allow commands that begin like this for good."""

    accept_with_execpolicy_amendment: CommandExecutionApprovalDecisionAcceptWithExecpolicyAmendmentBody


class CommandExecutionApprovalDecisionApplyNetworkPolicyAmendmentBody(WireModel):
    network_policy_amendment: Annotated[NetworkPolicyAmendment, wire("network_policy_amendment")]


class CommandExecutionApprovalDecisionApplyNetworkPolicyAmendment(WireModel):
    """Keep this rule for the host for good; it also decides the request at hand."""

    apply_network_policy_amendment: CommandExecutionApprovalDecisionApplyNetworkPolicyAmendmentBody


class CommandExecutionApprovalDecisionAcceptWithArgumentsBody(WireModel):
    arguments: Any


class CommandExecutionApprovalDecisionAcceptWithArguments(WireModel):
    """Run with these arguments instead."""

    accept_with_arguments: CommandExecutionApprovalDecisionAcceptWithArgumentsBody


class CommandExecutionApprovalDecisionRespondBody(WireModel):
    content_items: list[DynamicToolCallOutputContentItem]
    success: StrictBool
    """Whether the call counts as successful."""


class CommandExecutionApprovalDecisionRespond(WireModel):
    """Do not run; this is the result."""

    respond: CommandExecutionApprovalDecisionRespondBody


class UnknownCommandExecutionApprovalDecision(UnknownVariant):
    """A key that this version does not know."""


CommandExecutionApprovalDecision: TypeAlias = Annotated[
    CommandExecutionApprovalDecisionName
    | CommandExecutionApprovalDecisionAcceptWithCommandOverride
    | CommandExecutionApprovalDecisionAcceptWithExecpolicyAmendment
    | CommandExecutionApprovalDecisionApplyNetworkPolicyAmendment
    | CommandExecutionApprovalDecisionAcceptWithArguments
    | CommandExecutionApprovalDecisionRespond
    | UnknownCommandExecutionApprovalDecision,
    Keyed(),
]
"""A decision about a command. `decline` is accepted even when `availableDecisions` does not list it."""


class CommandExecutionOutputDeltaNotification(WireModel):
    """Sent as a command writes output."""

    thread_id: ThreadId
    turn_id: TurnId
    item_id: ItemId
    delta: str
    """Standard output and error, to be appended to the output so far."""


NetworkApprovalProtocol: TypeAlias = Open[Literal["http", "https", "socks5Tcp", "socks5Udp"]]
"""How the host would be reached."""


class NetworkApprovalContext(WireModel):
    """The network access a command asks for."""

    host: str
    """The host alone, without scheme and port."""
    protocol: NetworkApprovalProtocol


class CommandExecutionRequestApprovalSkillMetadata(WireModel):
    """A skill whose command asks for approval."""

    path_to_skills_md: str
    """Path of its `SKILL.md`."""


OperationId: TypeAlias = str
"""Anything that waits for the host or has an effect: `threadId:turnId:callId[:approvalId]`. Stable across restarts."""


class CommandExecutionRequestApprovalParams(WireModel):
    """Asks whether a command may run, or whether it may reach a network host."""

    thread_id: ThreadId
    turn_id: TurnId
    item_id: ItemId
    """The command item; with `approvalId`, the command the asking one is part of."""
    started_at_ms: StrictInt = 0
    """Unix milliseconds."""
    approval_id: str | None = None
    """Set when a command inside a script asks on its own. Tells the requests of one item apart."""
    reason: str | None = None
    """Why approval is needed, for display."""
    network_approval_context: NetworkApprovalContext | None = None
    """Set when the question is about a network host. `command`, `cwd` and `commandActions` are then left
    out.
    """
    command: str | None = None
    """One shell-quoted line."""
    cwd: str | None = None
    command_actions: list[CommandAction] | None = None
    """The command's apparent actions, for display."""
    additional_permissions: AdditionalPermissionProfile | None = None
    """Sandbox access this command alone would get on top."""
    skill_metadata: CommandExecutionRequestApprovalSkillMetadata | None = None
    """The skill the command comes from."""
    proposed_execpolicy_amendment: list[str] | None = None
    """The command prefix that `acceptWithExecpolicyAmendment` would allow."""
    proposed_network_policy_amendments: list[NetworkPolicyAmendment] | None = None
    """The rules `applyNetworkPolicyAmendment` may choose from."""
    available_decisions: list[CommandExecutionApprovalDecision] | None = None
    """The decisions to offer to the user."""
    operation_id: OperationId | None = None
    """The same when the request is sent again, also after a restart."""
    arguments_digest: str | None = None
    """Binds a decision to exactly what was shown."""


class DecisionOrigin(WireModel):
    """Who took the decision in an answer, and when. The record keeps both."""

    by: str
    """Such as `user:ana`."""
    decided_at_ms: StrictInt
    """Unix milliseconds."""


class CommandExecutionRequestApprovalResponse(WireModel):
    decision: CommandExecutionApprovalDecision
    origin: DecisionOrigin | None = None
    """From a host alone: who decided."""


CommandExecutionSource: TypeAlias = Open[Literal["agent", "userShell", "unifiedExecStartup", "unifiedExecInteraction"]]
"""Who started a command.
`agent`: The agent.
`userShell`: The user, by `thread/shellCommand`.
`unifiedExecStartup`: The agent, in a terminal that may outlive the turn.
`unifiedExecInteraction`: The agent, by typing into such a terminal.
"""


CommandExecutionStatus: TypeAlias = Open[Literal["inProgress", "completed", "failed", "declined"]]
"""The status of a command.
`declined`: Approval was refused, so it did not run.
"""


SandboxMode: TypeAlias = Open[Literal["read-only", "workspace-write", "danger-full-access"]]
"""A sandbox by name. The details come from the configuration.
`read-only`: Files can be read, none written; no network.
`workspace-write`: The working directory and temporary folders can be written to.
`danger-full-access`: No sandbox.
"""


class SandboxWorkspaceWrite(WireModel):
    """Permissions of the `workspace-write` mode beside the working directory."""

    writable_roots: Annotated[list[str], wire("writable_roots")] = []
    """More folders that may be written to."""
    network_access: Annotated[StrictBool, wire("network_access")] = False
    exclude_tmpdir_env_var: Annotated[StrictBool, wire("exclude_tmpdir_env_var")] = False
    """Do not make the folder in `TMPDIR` writable."""
    exclude_slash_tmp: Annotated[StrictBool, wire("exclude_slash_tmp")] = False
    """Do not make `/tmp` writable."""


ForcedLoginMethod: TypeAlias = Open[Literal["chatgpt", "api"]]
"""The only kind of login that is accepted."""


WebSearchMode: TypeAlias = Open[Literal["disabled", "cached", "live"]]
"""Whether the model may search the web, and how fresh the results are."""


WebSearchContextSize: TypeAlias = Open[Literal["low", "medium", "high"]]
"""How much of what was found the model gets to read."""


class WebSearchLocation(WireModel):
    """Where the user is, roughly, so that results fit."""

    country: str | None = None
    region: str | None = None
    city: str | None = None
    timezone: str | None = None


class WebSearchToolConfig(WireModel):
    """Settings of the web search tool."""

    context_size: Annotated[WebSearchContextSize | None, wire("context_size")] = None
    allowed_domains: Annotated[list[str] | None, wire("allowed_domains")] = None
    """Only these domains are searched; null for all."""
    location: WebSearchLocation | None = None


class ToolsV2(WireModel):
    """Settings of built-in tools."""

    web_search: Annotated[WebSearchToolConfig | None, wire("web_search")] = None
    view_image: Annotated[StrictBool | None, wire("view_image")] = None
    """Whether the model may look at image files."""


ServiceTier: TypeAlias = Open[Literal["fast", "flex"]]
"""How a provider serves requests.
`fast`: With priority.
`flex`: When there is room for it.
"""


ReasoningSummary: TypeAlias = Open[Literal["concise", "detailed", "auto", "none"]]
"""How the model's reasoning is summed up for readers.
`auto`: As the model sees fit.
`none`: Not at all.
"""


Verbosity: TypeAlias = Open[Literal["low", "medium", "high"]]
"""How long the model's answers are to be."""


class ProfileV2(WireModel):
    """A named set of values that win over the top-level ones while the profile is in use."""

    model: str | None = None
    model_provider: Annotated[str | None, wire("model_provider")] = None
    approval_policy: Annotated[AskForApproval | None, wire("approval_policy")] = None
    approvals_reviewer: Annotated[ApprovalsReviewer | None, wire("approvals_reviewer")] = None
    service_tier: Annotated[ServiceTier | None, wire("service_tier")] = None
    model_reasoning_effort: Annotated[ReasoningEffort | None, wire("model_reasoning_effort")] = None
    model_reasoning_summary: Annotated[ReasoningSummary | None, wire("model_reasoning_summary")] = None
    model_verbosity: Annotated[Verbosity | None, wire("model_verbosity")] = None
    web_search: Annotated[WebSearchMode | None, wire("web_search")] = None
    tools: ToolsV2 | None = None
    chatgpt_base_url: Annotated[str | None, wire("chatgpt_base_url")] = None


class Config(WireModel):
    """The effective configuration under the snake_case keys of the config file. A key that is not set is null."""

    model: str | None = None
    review_model: Annotated[str | None, wire("review_model")] = None
    """The model for reviews."""
    model_context_window: Annotated[StrictInt | None, wire("model_context_window")] = None
    """In tokens. Overrides the model catalogue."""
    model_auto_compact_token_limit: Annotated[StrictInt | None, wire("model_auto_compact_token_limit")] = None
    """Tokens at which the history is compacted. At most 90 % of the context window, which is also the
    default.
    """
    model_provider: Annotated[str | None, wire("model_provider")] = None
    """Id of the provider."""
    approval_policy: Annotated[AskForApproval | None, wire("approval_policy")] = None
    """When null, an untrusted project gets `untrusted` and any other `on-request`."""
    approvals_reviewer: Annotated[ApprovalsReviewer | None, wire("approvals_reviewer")] = None
    sandbox_mode: Annotated[SandboxMode | None, wire("sandbox_mode")] = None
    """When null, a project whose trust was decided gets `workspace-write` and any other `read-only`."""
    sandbox_workspace_write: Annotated[SandboxWorkspaceWrite | None, wire("sandbox_workspace_write")] = None
    """Details of the `workspace-write` mode."""
    forced_chatgpt_workspace_id: Annotated[str | None, wire("forced_chatgpt_workspace_id")] = None
    """Only logins to this workspace are accepted."""
    forced_login_method: Annotated[ForcedLoginMethod | None, wire("forced_login_method")] = None
    """Only this kind of login is accepted."""
    web_search: Annotated[WebSearchMode | None, wire("web_search")] = None
    tools: ToolsV2 | None = None
    profile: str | None = None
    """The profile in use, a key of `profiles`."""
    profiles: dict[str, ProfileV2] = {}
    instructions: str | None = None
    """Read, but not used in prompts."""
    developer_instructions: Annotated[str | None, wire("developer_instructions")] = None
    """Given to the model in a developer message of its own."""
    compact_prompt: Annotated[str | None, wire("compact_prompt")] = None
    """Replaces the built-in prompt for compaction."""
    model_reasoning_effort: Annotated[ReasoningEffort | None, wire("model_reasoning_effort")] = None
    model_reasoning_summary: Annotated[ReasoningSummary | None, wire("model_reasoning_summary")] = None
    model_verbosity: Annotated[Verbosity | None, wire("model_verbosity")] = None
    """Sent only to models that support it."""
    service_tier: Annotated[ServiceTier | None, wire("service_tier")] = None
    analytics: AnalyticsConfig | None = None
    apps: AppsConfig | None = None


MergeStrategy: TypeAlias = Open[Literal["replace", "upsert"]]
"""How a written value meets the one in the file.
`replace`: It takes the old value's place.
`upsert`: Tables are merged key by key; anything else takes the old value's place.
"""


class ConfigEdit(WireModel):
    """One value to write. A null `value` removes the key."""

    key_path: str
    """Keys joined by dots. There is no quoting, so a key with a dot in it cannot be reached."""
    value: Any
    merge_strategy: MergeStrategy


class ConfigBatchWriteParams(WireModel):
    """Writes several values to the user's config file, all or none."""

    edits: list[ConfigEdit]
    file_path: str | None = None
    """The user's config file, which is also meant when unset. Others are refused."""
    expected_version: str | None = None
    """The user layer's `version` as last read. The write fails when the file has changed since."""
    reload_user_config: StrictBool = False
    """Also hand the new values to the threads that are loaded."""


class ConfigLayerSourceMdm(Variant):
    """Device management."""

    type: Literal["mdm"] = "mdm"
    domain: str
    key: str


class ConfigLayerSourceSystem(Variant):
    """The machine's config file."""

    type: Literal["system"] = "system"
    file: AbsolutePathBuf


class ConfigLayerSourceUser(Variant):
    """The user's config file, the only one that can be written through the server."""

    type: Literal["user"] = "user"
    file: AbsolutePathBuf


class ConfigLayerSourceProject(Variant):
    """A folder between the project's root and the working directory; the nearer one wins."""

    type: Literal["project"] = "project"
    dot_codex_folder: AbsolutePathBuf


class ConfigLayerSourceSessionFlags(Variant):
    """Flags of the command line and the `config` of a request."""

    type: Literal["sessionFlags"] = "sessionFlags"


class ConfigLayerSourceLegacyManagedConfigTomlFromFile(Variant):
    """A managed config file of the machine."""

    type: Literal["legacyManagedConfigTomlFromFile"] = "legacyManagedConfigTomlFromFile"
    file: AbsolutePathBuf


class ConfigLayerSourceLegacyManagedConfigTomlFromMdm(Variant):
    """A managed config file that comes by device management."""

    type: Literal["legacyManagedConfigTomlFromMdm"] = "legacyManagedConfigTomlFromMdm"


class UnknownConfigLayerSource(UnknownVariant):
    """A `type` that this version does not know."""

    type: str


ConfigLayerSource: TypeAlias = Annotated[
    ConfigLayerSourceMdm
    | ConfigLayerSourceSystem
    | ConfigLayerSourceUser
    | ConfigLayerSourceProject
    | ConfigLayerSourceSessionFlags
    | ConfigLayerSourceLegacyManagedConfigTomlFromFile
    | ConfigLayerSourceLegacyManagedConfigTomlFromMdm
    | UnknownConfigLayerSource,
    Tagged("type"),
]
"""Where a layer comes from. Later ones in this list win over earlier ones."""


class ConfigLayer(WireModel):
    """One source of configuration. `config` holds its own values, before any merging."""

    name: ConfigLayerSource
    version: str
    """`sha256:` and the hash of the layer's content."""
    config: Any
    disabled_reason: str | None = None
    """Set when the layer is listed without counting, as for an untrusted project."""


class ConfigLayerMetadata(WireModel):
    """Names the layer a value comes from."""

    name: ConfigLayerSource
    version: str
    """`sha256:` and the hash of the layer's content."""


class ConfigReadParams(WireModel):
    """Reads the effective configuration, fresh from disk."""

    include_layers: StrictBool = False
    """Also return every layer."""
    cwd: str | None = None
    """The folder whose project layers count; none count when unset."""


class ConfigReadResponse(WireModel):
    config: Config
    origins: dict[str, ConfigLayerMetadata]
    """The layer each value comes from, by dotted path. Positions in arrays are numbers."""
    layers: list[ConfigLayer] | None = None
    """Left out unless asked for. Highest precedence first, disabled ones included."""


ResidencyRequirement: TypeAlias = Open[Literal["us"]]
"""A region that data must stay in."""


class NetworkRequirements(WireModel):
    """Requirements and permissions of the managed network proxy."""

    enabled: StrictBool | None = None
    http_port: StrictInt | None = None
    """Port of its HTTP side."""
    socks_port: StrictInt | None = None
    """Port of its SOCKS side."""
    allow_upstream_proxy: StrictBool | None = None
    dangerously_allow_non_loopback_proxy: StrictBool | None = None
    """Whether it may listen beyond loopback."""
    dangerously_allow_all_unix_sockets: StrictBool | None = None
    allowed_domains: list[str] | None = None
    denied_domains: list[str] | None = None
    allow_unix_sockets: list[str] | None = None
    """Paths of the sockets that may be reached."""
    allow_local_binding: StrictBool | None = None


class ConfigRequirements(WireModel):
    """Limits set by an administrator. A null field restricts nothing."""

    allowed_approval_policies: list[AskForApproval] | None = None
    allowed_sandbox_modes: list[SandboxMode] | None = None
    allowed_web_search_modes: list[WebSearchMode] | None = None
    """Always contains `disabled`."""
    feature_requirements: dict[str, StrictBool] | None = None
    """Feature flags that are fixed, by name."""
    enforce_residency: ResidencyRequirement | None = None
    """The region that data must stay in."""
    network: NetworkRequirements | None = None


class ConfigRequirementsReadResponse(WireModel):
    requirements: ConfigRequirements | None = None
    """Null when nothing is required."""


class ConfigValueWriteParams(WireModel):
    """Writes one value to the user's config file; a null `value` removes the key. Comments in the file stay."""

    key_path: str
    """Keys joined by dots. There is no quoting, so a key with a dot in it cannot be reached."""
    value: Any
    merge_strategy: MergeStrategy
    file_path: str | None = None
    """The user's config file, which is also meant when unset. Others are refused."""
    expected_version: str | None = None
    """The user layer's `version` as last read. The write fails when the file has changed since."""


class TextPosition(WireModel):
    """A place in a text file. Both count from 1."""

    line: StrictInt
    column: StrictInt


class TextRange(WireModel):
    """A piece of a text file."""

    start: TextPosition
    end: TextPosition


class ConfigWarningNotification(WireModel):
    """Sent to a connection right after `initialize`, once for each thing that is wrong with the configuration."""

    summary: str
    details: str | None = None
    path: str | None = None
    """The file in question."""
    range: TextRange | None = None
    """The place in that file."""


WriteStatus: TypeAlias = Open[Literal["ok", "okOverridden"]]
"""Whether what was written counts.
`okOverridden`: Written, but a higher layer sets another value.
"""


class OverriddenMetadata(WireModel):
    """Why a value that was written has no effect. `effectiveValue` is what counts instead."""

    message: str
    """For display."""
    overriding_layer: ConfigLayerMetadata
    effective_value: Any


class ConfigWriteResponse(WireModel):
    status: WriteStatus
    version: str
    """Of the user layer after the write, for the next `expectedVersion`."""
    file_path: AbsolutePathBuf
    """The file that was written."""
    overridden_metadata: OverriddenMetadata | None = None
    """Set with `okOverridden`."""


class ContentItemInputText(Variant):
    """From the user or the developer."""

    type: Literal["input_text"] = "input_text"
    text: str


class ContentItemInputImage(Variant):
    type: Literal["input_image"] = "input_image"
    image_url: Annotated[str, wire("image_url")]


class ContentItemOutputText(Variant):
    """From the model."""

    type: Literal["output_text"] = "output_text"
    text: str


class UnknownContentItem(UnknownVariant):
    """A `type` that this version does not know."""

    type: str


ContentItem: TypeAlias = Annotated[
    ContentItemInputText | ContentItemInputImage | ContentItemOutputText | UnknownContentItem,
    Tagged("type"),
]
"""One part of a message."""


class ContextCompactedNotification(WireModel):
    """Sent after a compaction. Deprecated: the `contextCompaction` item says the same."""

    thread_id: ThreadId
    turn_id: TurnId


class ConversationGitInfo(WireModel):
    """The state of the git repository. Field names are snake_case."""

    sha: str | None = None
    branch: str | None = None
    origin_url: Annotated[str | None, wire("origin_url")] = None


SubAgentSourceName: TypeAlias = Open[Literal["review", "compact", "memory_consolidation"]]
"""`memory_consolidation`: Putting memories in order."""


class SubAgentSourceThreadSpawnBody(WireModel):
    parent_thread_id: Annotated[ThreadId, wire("parent_thread_id")]
    depth: StrictInt
    """1 for a child of the root."""
    agent_path: Annotated[AgentPath | None, wire("agent_path")] = None
    agent_nickname: Annotated[str | None, wire("agent_nickname")] = None
    agent_role: Annotated[str | None, wire("agent_role")] = None


class SubAgentSourceThreadSpawn(WireModel):
    """Another agent asked for it."""

    thread_spawn: Annotated[SubAgentSourceThreadSpawnBody, wire("thread_spawn")]


class SubAgentSourceOther(WireModel):
    other: str


class UnknownSubAgentSource(UnknownVariant):
    """A key that this version does not know."""


SubAgentSource: TypeAlias = Annotated[
    SubAgentSourceName | SubAgentSourceThreadSpawn | SubAgentSourceOther | UnknownSubAgentSource,
    Keyed(),
]
"""The purpose of a child agent."""


SessionSourceName: TypeAlias = Open[Literal["cli", "appServer", "unknown", "vscode", "exec"]]
"""`vscode`: An editor or any other client of this server.
`exec`: A run without a user present.
"""


class SessionSourceCustom(WireModel):
    """A client with a name of its own."""

    custom: str


class SessionSourceSubAgent(WireModel):
    """Another agent."""

    sub_agent: SubAgentSource


class UnknownSessionSource(UnknownVariant):
    """A key that this version does not know."""


SessionSource: TypeAlias = Annotated[
    SessionSourceName | SessionSourceCustom | SessionSourceSubAgent | UnknownSessionSource,
    Keyed(),
]
"""The origin of a thread."""


class ConversationSummary(WireModel):
    """A stored conversation in brief."""

    conversation_id: ThreadId
    """The thread's id."""
    path: str
    """The record's file."""
    preview: str
    """Text of the first user message."""
    timestamp: str | None = None
    """When it began, in RFC 3339."""
    updated_at: str | None = None
    """In RFC 3339."""
    model_provider: str
    cwd: str
    cli_version: str
    """The version that made it."""
    source: SessionSource
    git_info: ConversationGitInfo | None = None


DecisionScope: TypeAlias = Open[Literal["call", "session"]]
"""How far an approval reaches.
`call`: This call alone.
`session`: The same thing again too, for as long as the session lasts.
"""


DelegatedHistoryName: TypeAlias = Open[Literal["none", "full"]]


class DelegatedHistoryLastTurns(WireModel):
    """This many turns, counted from the end."""

    last_turns: StrictInt


class UnknownDelegatedHistory(UnknownVariant):
    """A key that this version does not know."""


DelegatedHistory: TypeAlias = Annotated[
    DelegatedHistoryName | DelegatedHistoryLastTurns | UnknownDelegatedHistory,
    Keyed(),
]
"""How much of the parent's history the child is to see."""


ModelWire: TypeAlias = Open[Literal["other", "responses", "chat", "messages"]]
"""The API the provider speaks.
`responses`: OpenAI Responses.
`chat`: OpenAI-compatible chat completions.
`messages`: Anthropic Messages.
"""


ReasoningReplay: TypeAlias = Open[Literal["none", "opaque", "signed"]]
"""How earlier reasoning may be sent back.
`none`: Not at all.
`opaque`: As a blob only the provider can read.
`signed`: As text with the provider's signature.
"""


class ModelCapabilities(WireModel):
    """Capabilities of a provider. Requests stay within them."""

    wire: ModelWire
    tools: StrictBool = True
    """Calling functions at all."""
    parallel_tool_calls: StrictBool = True
    """Several calls in one response."""
    freeform_tools: StrictBool = False
    """Tools that take plain text instead of JSON."""
    namespaced_tools: StrictBool = False
    """Tools grouped under a namespace."""
    hosted_tools: list[str] = []
    """Tools the provider runs itself, such as `web_search`."""
    images_in: StrictBool = True
    """Images in the input."""
    reasoning_replay: ReasoningReplay = "none"
    json_schema_output: StrictBool = True
    """Answers that follow a JSON Schema."""
    server_state: StrictBool = False
    """Going on from a response the provider has stored."""
    context_window: StrictInt | None = None
    """In tokens; unset when unknown."""
    max_output_tokens: StrictInt | None = None


class DelegatedProvider(WireModel):
    """The host's provider, so that requests are shaped for it."""

    id: str
    """The host's own name for the provider."""
    capabilities: ModelCapabilities


class DelegatedStream(WireModel):
    """Flow control and liveness of delegated streams."""

    window_events: StrictInt | None = None
    """Events the host may send before they are acknowledged; 256 when unset."""
    window_bytes: StrictInt | None = None
    """Bytes the host may send before they are acknowledged; 1,048,576 when unset."""
    first_event_timeout_ms: StrictInt | None = None
    """How long the runtime waits for the first event."""
    idle_timeout_ms: StrictInt | None = None
    """How long the runtime waits for the next event before it cancels and tries again."""


class DelegationCancelParams(WireModel):
    """Stops a child the host runs."""

    delegation_id: OperationId
    child_ref: str
    """As in the answer to `delegation/request`."""
    reason: str | None = None


ModelCancelDisposition: TypeAlias = Open[Literal["canceled", "alreadyTerminal", "unknown"]]
"""The outcome of a cancellation.
`alreadyTerminal`: It had ended before.
`unknown`: Nothing has this id.
"""


class DelegationCancelResponse(WireModel):
    disposition: ModelCancelDisposition


DelegationFeature: TypeAlias = Open[
    Literal["modelTransport", "clientRollout", "operations", "subagents", "toolSet", "suspend", "commandUser"]
]
"""Parts of delegation that are agreed one by one.
`modelTransport`: The host carries model requests.
`clientRollout`: The host keeps the record of a thread.
`operations`: Everything that waits or has an effect is recorded under a durable id.
`subagents`: The host decides where child agents run.
`toolSet`: The host chooses the tools and who approves their calls.
`suspend`: A turn can be suspended with `turn/suspend`.
`commandUser`: Agreed by a runtime whose commands run as another user than itself, so that none can speak for it.
"""


class DelegationHeartbeatNotification(WireModel):
    """Sent by a host whose lease on its tasks expires, each time it was renewed. A runtime that has heard one exits
    when the
    lease is over before the next one comes: another host may have its threads by then.
    """

    valid_for_ms: StrictInt
    """Milliseconds that are left of the lease."""


EnvironmentId: TypeAlias = str
"""A place where tools run."""


class DelegationHints(WireModel):
    """Suggested settings of the child; never more than its parent has."""

    cwd: str | None = None
    sandbox: SandboxPolicy | None = None
    model: str | None = None
    effort: ReasoningEffort | None = None
    environment_id: EnvironmentId | None = None


class TextElement(WireModel):
    """A piece of a text that the client shows in a special way."""

    byte_range: ByteRange
    placeholder: str | None = None
    """The text that the client shows in its place; null for the text itself."""


class UserInputText(Variant):
    type: Literal["text"] = "text"
    text: str
    text_elements: Annotated[list[TextElement], wire("text_elements")] = []
    """Pieces of `text` that the client shows in a special way. Kept for display."""


class UserInputImage(Variant):
    type: Literal["image"] = "image"
    url: str
    """A web address or a data URL."""


class UserInputLocalImage(Variant):
    """An image file on the server's machine."""

    type: Literal["localImage"] = "localImage"
    path: str


class UserInputSkill(Variant):
    """Use this skill."""

    type: Literal["skill"] = "skill"
    path: str
    """Its `SKILL.md`."""
    name: str


class UserInputMention(Variant):
    """An app or plugin the text names."""

    type: Literal["mention"] = "mention"
    path: str
    """`app://<id>` or `plugin://<plugin>@<marketplace>`."""
    name: str


class UnknownUserInput(UnknownVariant):
    """A `type` that this version does not know."""

    type: str


UserInput: TypeAlias = Annotated[
    UserInputText | UserInputImage | UserInputLocalImage | UserInputSkill | UserInputMention | UnknownUserInput,
    Tagged("type"),
]
"""One part of what the user sends."""


class DelegationInputParams(WireModel):
    """Sends more input to a child the host runs."""

    delegation_id: OperationId
    child_ref: str
    """As in the answer to `delegation/request`."""
    input: list[UserInput]


class DelegationInputResponse(WireModel):
    pass


class DelegationLimits(WireModel):
    """Limits of the child. Unset for no limit of that kind."""

    tokens: StrictInt | None = None
    """In all, input and output."""
    usd: Number | None = None
    deadline_ms: StrictInt | None = None
    """How long the child may take."""
    max_depth: StrictInt
    """How deep its own children may go."""


DelegationMode: TypeAlias = Open[Literal["direct", "full"]]
"""Who talks to the provider.
`direct`: The runtime calls the provider itself.
`full`: Every model request goes to the host.
"""


class DelegationParent(WireModel):
    """The agent that spawns a child."""

    thread_id: ThreadId
    turn_id: TurnId
    call_id: str
    """The model's call that spawns the child."""
    agent_path: list[str]
    """From the root agent to this one."""
    depth: StrictInt
    """How deep this agent is below the root."""


class TokenUsageBreakdown(WireModel):
    """Tokens by kind."""

    total_tokens: StrictInt
    input_tokens: StrictInt
    cached_input_tokens: StrictInt
    """The part of `inputTokens` the provider had cached."""
    output_tokens: StrictInt
    reasoning_output_tokens: StrictInt
    """The part of `outputTokens` that is reasoning."""
    cache_write_input_tokens: StrictInt | None = None
    """The part of `inputTokens` the provider wrote into its cache. Only from providers that count it."""
    is_estimated: StrictBool = False
    """The provider gave no count, for some of it at least: about four bytes are taken for a token."""


class DelegationProgressNotification(WireModel):
    """Sent by the host while a child runs, as often as it likes."""

    delegation_id: OperationId
    message: str | None = None
    """For display."""
    usage: TokenUsageBreakdown | None = None
    """Tokens used so far."""


class HistoryRef(WireModel):
    """Ordinals of the parent's record, both included."""

    from_ordinal: StrictInt
    to_ordinal: StrictInt


ToolSetMode: TypeAlias = Open[Literal["default", "additive", "replace"]]
"""How the host's choice meets the runtime's.
`default`: The runtime's choice; `allow` and `dynamic` are not permitted.
`additive`: The runtime's choice without `deny`, and `allow` and `dynamic` added.
`replace`: Exactly `allow` and `dynamic`. A newer runtime adds nothing by itself, and an unknown name is refused.
"""


ToolEffects: TypeAlias = Open[Literal["readonly", "idempotent", "once"]]
"""Whether a tool may run again, and with which consequence.
`readonly`: Nothing; the tool only looks.
`idempotent`: No second effect, if it is given the same operation id.
`once`: Possibly a second effect, so it is never run again when the outcome is unknown.
"""


class ToolSetTool(WireModel):
    """A tool that the host runs."""

    name: str
    """The same rules as for dynamic tools."""
    description: str
    """For the model to read."""
    input_schema: Any
    """JSON Schema of the arguments."""
    defer_loading: StrictBool = False
    """Leave the tool out of what the model is offered at first."""
    override: StrictBool = False
    """Take the place of a built-in of the same name, which is refused otherwise."""
    effects: ToolEffects | None = None
    """`once` when unset."""


ToolApprovalRule: TypeAlias = Open[Literal["runtime", "host", "never"]]
"""When a call asks the host.
`runtime`: The runtime's policy decides when to ask.
`host`: Every call asks.
`never`: Every call is refused.
"""


class ToolApprovalRules(WireModel):
    """Who decides about calls."""

    default: ToolApprovalRule
    """For tools without a rule of their own."""
    per_tool: dict[str, ToolApprovalRule] = {}
    """By tool name."""


class ToolSet(WireModel):
    """The tools of a thread."""

    mode: ToolSetMode
    builtin: BuiltinToolFilter | None = None
    """Which of the runtime's own tools to keep."""
    dynamic: list[ToolSetTool] = []
    """The host's own tools."""
    approval: ToolApprovalRules | None = None


class DelegationRequestParams(WireModel):
    """Asks the host where to run a child agent."""

    delegation_id: OperationId
    """The operation id of the call that spawns the child."""
    parent: DelegationParent
    role: str | None = None
    """As the model asked for it."""
    nickname: str | None = None
    """The child's name, for display."""
    instructions: str | None = None
    input: list[UserInput]
    """The child's first input."""
    history: DelegatedHistory
    history_ref: HistoryRef | None = None
    """Where that history is in the record, so that the host can build `initialItems`."""
    tool_set: ToolSet | None = None
    """Already narrowed: a child never gets more than its parent."""
    hints: DelegationHints
    limits: DelegationLimits


class DelegationRequestResponseRuntime(Variant):
    """In this runtime. Its model requests still come to the host."""

    disposition: Literal["runtime"] = "runtime"
    child_thread_id: ThreadId


class DelegationRequestResponseHost(Variant):
    """Somewhere else; `delegation/result` follows."""

    disposition: Literal["host"] = "host"
    child_ref: str
    """The host's own name for the child."""


class DelegationRequestResponseRejected(Variant):
    """There will be no child."""

    disposition: Literal["rejected"] = "rejected"
    message: str
    """Shown to the model."""


class UnknownDelegationRequestResponse(UnknownVariant):
    """A `disposition` that this version does not know."""

    disposition: str


DelegationRequestResponse: TypeAlias = Annotated[
    DelegationRequestResponseRuntime
    | DelegationRequestResponseHost
    | DelegationRequestResponseRejected
    | UnknownDelegationRequestResponse,
    Tagged("disposition"),
]
"""Where the child runs; sent at once."""


DelegationStatus: TypeAlias = Open[Literal["completed", "failed", "canceled", "timedOut"]]
"""How a child ended."""


class DelegationResultParams(WireModel):
    """The result of a child that the host ran. Sending it again does no harm."""

    delegation_id: OperationId
    status: DelegationStatus
    output: list[DynamicToolCallOutputContentItem]
    """Goes to the parent as the output of a tool, not to be trusted more than that."""
    final_message: str | None = None
    """Only the child's last message."""
    usage: TokenUsageBreakdown | None = None
    """Tokens the child used."""
    child_ref: str | None = None
    """As in the answer to `delegation/request`."""
    artifacts: list[Any] | None = None


class DelegationResultResponse(WireModel):
    duplicate: StrictBool = False
    """The result had been delivered before."""


class DeprecationNoticeNotification(WireModel):
    """Sent when something in use will go away."""

    summary: str
    details: str | None = None
    """Advice on how to handle it."""


class DynamicToolCallParams(WireModel):
    """Asks the client to run one of its tools. `arguments` are as the model wrote them, which may break the
    tool's schema.
    """

    thread_id: ThreadId
    turn_id: TurnId
    call_id: str
    """The model's call id, which is also the id of the tool's item."""
    namespace: str | None = None
    """The group of the tool, if it has one."""
    tool: str
    arguments: Any
    operation_id: OperationId | None = None
    """The same when the request is sent again, also after a restart. Fit as an idempotency key."""
    arguments_digest: str | None = None
    """Binds a decision to exactly what was shown."""


class DynamicToolCallResponse(WireModel):
    """The result of the tool."""

    content_items: list[DynamicToolCallOutputContentItem]
    success: StrictBool
    """False makes the item `failed`; the model gets the content either way."""


DynamicToolCallStatus: TypeAlias = Open[Literal["inProgress", "completed", "failed"]]
"""The status of the call.
`failed`: The client reported a failure, responded with an error, or sent an invalid response.
"""


class DynamicToolSpec(WireModel):
    """A tool the client runs for the model. `inputSchema` is the JSON Schema of its arguments."""

    name: str
    """Unique in the thread, not empty, without space around it. `mcp` and names that begin with `mcp__` are
    reserved.
    """
    description: str
    """For the model to read."""
    input_schema: Any
    defer_loading: StrictBool = False
    """Leave the tool out of what the model is offered at first."""
    namespace: str | None = None
    """The tool belongs to this group and is called with it. Names are unique within a group."""
    namespace_description: str | None = None
    """The purpose of the group. The first tool of a group with this field counts."""


ToolOrigin: TypeAlias = Open[Literal["builtin", "dynamic", "mcp"]]
"""Where a tool comes from."""


class EffectiveTool(WireModel):
    """A tool as the model is offered it."""

    name: str
    origin: ToolOrigin
    approval: ToolApprovalRule


class EnvironmentSpecLocal(Variant):
    """A folder on this machine."""

    type: Literal["local"] = "local"
    cwd: AbsolutePathBuf


class EnvironmentSpecCommand(Variant):
    """Through a command prefix such as `ssh host` or `docker exec -i box`."""

    type: Literal["command"] = "command"
    argv: list[str]
    """The prefix; what is to run there comes after it."""
    cwd: str
    """A folder of that environment, in its own path syntax."""
    probe: list[str] | None = None
    """A command that succeeds once the environment can be used; `true` when unset."""


class UnknownEnvironmentSpec(UnknownVariant):
    """A `type` that this version does not know."""

    type: str


EnvironmentSpec: TypeAlias = Annotated[
    EnvironmentSpecLocal | EnvironmentSpecCommand | UnknownEnvironmentSpec,
    Tagged("type"),
]
"""How an environment is reached."""


class EnvironmentAddParams(WireModel):
    """Makes an environment known under an id of the client's choice."""

    environment_id: EnvironmentId
    environment: EnvironmentSpec
    connect_timeout_ms: StrictInt | None = None
    """How long it may take to become usable."""


class EnvironmentAddResponse(WireModel):
    pass


class EnvironmentInfoParams(WireModel):
    """Asks how an environment is reached and what was found there."""

    environment_id: EnvironmentId


class EnvironmentShell(WireModel):
    """The shell commands run in."""

    name: str
    path: str


class EnvironmentInfoResponse(WireModel):
    environment_id: EnvironmentId
    environment: EnvironmentSpec
    shell: EnvironmentShell | None = None
    """Unknown until the environment was reached once."""
    cwd: str | None = None
    """The folder commands start in, once known."""


class EnvironmentSelection(WireModel):
    """An environment chosen for a thread or a turn, and the folder to work in there."""

    environment_id: EnvironmentId
    cwd: str
    """A folder of that environment, in its own path syntax."""


EnvironmentStatus: TypeAlias = Open[Literal["starting", "attached", "disconnected", "unknown"]]
"""Whether an environment can be used.
`starting`: Not yet: it may be mentioned to the model, but its tools are not offered.
`attached`: It can.
`disconnected`: No longer, or it could not be reached.
`unknown`: No environment has this id.
"""


class EnvironmentStatusParams(WireModel):
    """Asks whether an environment can be used now."""

    environment_id: EnvironmentId


class EnvironmentStatusResponse(WireModel):
    status: EnvironmentStatus
    error: str | None = None
    """Why the environment cannot be used."""


ErrorDataCode: TypeAlias = Open[
    Literal[
        "stopping",
        "forbidden",
        "notSupported",
        "unknownOperation",
        "alreadyDecided",
        "digestMismatch",
        "decisionNotAvailable",
        "notWaiting",
        "unknownPlacement",
        "placementInUse",
        "placementFailed",
        "placementUnreachable",
        "sandboxUnavailable",
        "ownedElsewhere",
        "runtimeGone",
        "ownerLost",
        "runtimeMismatch",
        "tooManyOperations",
        "tooManyChildren",
        "fenced",
        "ordinalConflict",
        "unknownThread",
        "recordTooLarge",
        "badRecord",
        "storeFailed",
        "delegationUnsupported",
        "unknownRequest",
        "staleRequest",
        "notTheHost",
        "carrierTaken",
        "hostGone",
        "sequenceGap",
        "streamClosed",
        "eventMismatch",
        "badEvent",
        "creditExceeded",
        "batchTooLarge",
        "schemaTooNew",
        "invalidHistory",
        "orphanOutput",
        "missingPart",
        "invalidToolSet",
        "toolConflict",
        "unknownTool",
        "unknownDelegation",
        "invalidResolution",
        "decisionConflict",
    ]
]
"""A value of `data.code` in an error. The text after `Do:` is advice for the receiver.
`stopping`: The server was asked to stop and begins nothing new. Do: connect again and ask again, when it is back or
at
another host.
`forbidden`: The role of the connection does not allow it, or only this machine may say it. Do: use a token with the
role
that the message names.
`notSupported`: A host does not support the method. Do: follow the message.
`unknownOperation`: No operation has this id. Do: list the operations.
`alreadyDecided`: Somebody decided first; `decision` and `by` say how and who. Do: take that decision as it is.
`digestMismatch`: The operation is not the one that was shown; or uploaded items are not those that were announced.
Do: read the
operation again and decide anew; or upload again.
`decisionNotAvailable`: The operation cannot be answered like that; `available` has what can. Do: choose one of
these.
`notWaiting`: The operation waits for nothing. Do: list the operations.
`unknownPlacement`: No placement has this id. Do: list the placements.
`placementInUse`: Tasks use the placement. Do: suspend or delete them first.
`placementFailed`: The place could not be made or reached. Do: read the message; `oarlock doctor --placement NAME`
tries every
step.
`placementUnreachable`: This host cannot reach the task's placement, at `site`. Do: send the request to a host there.
`sandboxUnavailable`: Commands could not be held in a sandbox in that place. Do: see the message; choose another
place or another
sandbox mode.
`ownedElsewhere`: Another host has the task, at `address`. Do: send the request there.
`runtimeGone`: The runtime ended before it responded. Do: send the request again; a running turn is resumed
automatically.
`ownerLost`: Another host took the task over before this was answered. Do: ask again: it may have been carried out.
`runtimeMismatch`: The runtime in the place is of another release than the host. Do: give the host the runtime of its
own release.
`tooManyOperations`: A task has more open operations than a host keeps. Do: decide some.
`tooManyChildren`: A task has more children than a host keeps. Do: end some.
`fenced`: A newer host has the thread; `hostEpoch` is its number. Do: stop: the thread is not yours any more.
`ordinalConflict`: Another runtime has appended; the next ordinal is `nextOrdinal`. Do: read the record again before
you append.
`unknownThread`: The thread is not one of this task. Do: open it first.
`recordTooLarge`: One record has more bytes than a host keeps. Do: split what it holds.
`badRecord`: A record is invalid; the message says which. Do: send it according to the schema.
`storeFailed`: The store did not take the record. Do: send it again: nothing was kept.
`delegationUnsupported`: A feature was used that was not agreed on in `initialize`. Do: ask for it there, or do
without.
`unknownRequest`: No model request has this id. Do: drop the stream.
`staleRequest`: The model request has ended. Do: drop the stream.
`notTheHost`: Another connection is the host of the thread. Do: resume the thread to become its host.
`carrierTaken`: Another connection carries the model requests of the task. Do: wait until that one is gone, or open
the task
without `delegation`.
`hostGone`: The host of the thread is away. Do: wait for it, or resume the thread as its host.
`sequenceGap`: Events are missing; `expected` is the next number. Do: send them again from there.
`streamClosed`: The stream has ended; `nextSeq` says after what. Do: send no more of it.
`eventMismatch`: A repeated event differs from the first one; `seq` says which. Do: abort the stream.
`badEvent`: An event is invalid; `seq` says which. Do: abort the stream.
`creditExceeded`: More events than there was credit for. Do: wait for the credit of the next answer and send them
again.
`batchTooLarge`: More events at once than `windowEvents`. Do: send smaller batches.
`schemaTooNew`: The history was written by a newer release. Do: use a runtime of that release.
`invalidHistory`: The history is inconsistent; the message says where. Do: send the whole record, in order.
`orphanOutput`: The history has an output without its call. Do: send the whole record, in order.
`missingPart`: A part of an upload is not there. Do: upload it, and ask again.
`invalidToolSet`: The set of tools contradicts itself; `field` says where. Do: correct it.
`toolConflict`: Two tools have the same name. Do: rename one.
`unknownTool`: There is no such tool. Do: see docs/tools.md for the names.
`unknownDelegation`: No operation of a child has this id. Do: read the list of operations again.
`invalidResolution`: An operation is resolved in a way that does not fit its state. Do: see the message; decide or
give a result, not both.
`decisionConflict`: The operation was decided otherwise before. Do: take that decision as it is.
"""


class TurnError(WireModel):
    """The failure."""

    message: str
    """For people."""
    codex_error_info: CodexErrorInfo | None = None
    """The class of the error, for programs."""
    additional_details: str | None = None
    """More for people, such as the error behind this one."""


class ErrorNotification(WireModel):
    """Sent when something goes wrong in a turn."""

    error: TurnError
    will_retry: StrictBool
    """True when the server tries again and the turn goes on. False when the turn fails; `turn/completed`
    repeats the error.
    """
    thread_id: ThreadId
    turn_id: TurnId


class ParsedCommandRead(Variant):
    type: Literal["read"] = "read"
    cmd: str
    name: str
    path: str


class ParsedCommandListFiles(Variant):
    type: Literal["list_files"] = "list_files"
    cmd: str
    path: str | None = None


class ParsedCommandSearch(Variant):
    type: Literal["search"] = "search"
    cmd: str
    path: str | None = None
    query: str | None = None


class ParsedCommandUnknown(Variant):
    type: Literal["unknown"] = "unknown"
    cmd: str


class UnknownParsedCommand(UnknownVariant):
    """A `type` that this version does not know."""

    type: str


ParsedCommand: TypeAlias = Annotated[
    ParsedCommandRead | ParsedCommandListFiles | ParsedCommandSearch | ParsedCommandUnknown | UnknownParsedCommand,
    Tagged("type"),
]
"""The apparent action of a command, in the older form."""


class ExecCommandApprovalParams(WireModel):
    """Never sent; `item/commandExecution/requestApproval` took its place."""

    conversation_id: ThreadId
    """The thread's id."""
    call_id: str
    approval_id: str | None = None
    command: list[str]
    """Program and arguments."""
    cwd: str
    reason: str | None = None
    parsed_cmd: list[ParsedCommand]


class ExecCommandApprovalResponse(WireModel):
    decision: ReviewDecision


ExperimentalFeatureStage: TypeAlias = Open[Literal["beta", "underDevelopment", "stable", "deprecated", "removed"]]
"""How finished a feature is.
`beta`: Users may try it.
`underDevelopment`: Not meant for use yet.
`stable`: Finished.
`deprecated`: Will go away.
`removed`: The name is kept; the flag has no effect.
"""


class ExperimentalFeature(WireModel):
    """One feature flag."""

    name: str
    """Its key under `features` in the configuration."""
    stage: ExperimentalFeatureStage
    display_name: str | None = None
    """Set for `beta` flags only."""
    description: str | None = None
    """Set for `beta` flags only."""
    announcement: str | None = None
    """Set for `beta` flags only."""
    enabled: StrictBool
    """The value in effect."""
    default_enabled: StrictBool
    """The value when nothing is configured."""


class ExperimentalFeatureEnablementSetParams(WireModel):
    """Switches flags for this process. Not stored, and never stronger than config or requirements."""

    enablement: dict[str, StrictBool]
    """By flag name; other flags stay as they are. Only `apps`, `plugins`, `tool_search`, `tool_suggest` and
    `tool_call_mcp_elicitation` can be set.
    """


class ExperimentalFeatureEnablementSetResponse(WireModel):
    enablement: dict[str, StrictBool]
    """The flags of the request."""


class ExperimentalFeatureListParams(WireModel):
    """Lists all feature flags, a page at a time."""

    cursor: str | None = None
    """`nextCursor` of the page before; unset for the first page."""
    limit: StrictInt | None = None
    """Most flags on one page."""


class ExperimentalFeatureListResponse(WireModel):
    data: list[ExperimentalFeature]
    next_cursor: str | None = None
    """Null on the last page."""


class ExternalAgentConfigDetectParams(WireModel):
    """Finds what could be taken over and is not here yet."""

    include_home: StrictBool = False
    """Also look in the user's home."""
    cwds: list[str] | None = None
    """Folders to look in. Each stands for the git repository it is in."""


ExternalAgentConfigMigrationItemType: TypeAlias = Open[Literal["AGENTS_MD", "CONFIG", "SKILLS", "MCP_SERVER_CONFIG"]]
"""The kind of thing that is imported.
`AGENTS_MD`: Instructions, into `AGENTS.md`.
`CONFIG`: Settings, into the config file.
`SKILLS`: Skill folders.
`MCP_SERVER_CONFIG`: Never found, and importing it does nothing.
"""


class ExternalAgentConfigMigrationItem(WireModel):
    """One thing to take over."""

    item_type: ExternalAgentConfigMigrationItemType
    description: str
    """For display."""
    cwd: str | None = None
    """The repository; null for the user's home."""


class ExternalAgentConfigDetectResponse(WireModel):
    items: list[ExternalAgentConfigMigrationItem]


class ExternalAgentConfigImportParams(WireModel):
    """Takes things over. Adds what is missing and overwrites nothing."""

    migration_items: list[ExternalAgentConfigMigrationItem]
    """As `externalAgentConfig/detect` returned them."""


class ExternalAgentConfigImportResponse(WireModel):
    pass


class FeedbackUploadParams(WireModel):
    """Saves feedback as a folder on the server's machine, without credentials. Fails where config forbids it."""

    classification: str
    """The kind of feedback."""
    reason: str | None = None
    """The user's text."""
    thread_id: ThreadId | None = None
    """The thread it is about."""
    include_logs: StrictBool
    extra_log_files: list[str] | None = None
    """Paths of more files to put in, at most 16. Only with `includeLogs`."""


class FeedbackUploadResponse(WireModel):
    thread_id: ThreadId
    """The id the feedback is filed under."""
    path: str | None = None
    """The folder that holds it."""


FileChangeApprovalDecisionName: TypeAlias = Open[Literal["accept", "acceptForSession", "decline", "cancel", "defer"]]
"""`accept`: Apply it.
`acceptForSession`: Apply it, and do not ask again in this session for patches of the same files.
`decline`: Do not apply it. The turn continues, and the model gets the decision.
`cancel`: Do not apply it, and interrupt the turn.
`defer`: Not by this client and not now: the question stays open for others and for later.
"""


class FileChangeApprovalDecisionAcceptWithArgumentsBody(WireModel):
    arguments: Any


class FileChangeApprovalDecisionAcceptWithArguments(WireModel):
    """Apply these changes instead."""

    accept_with_arguments: FileChangeApprovalDecisionAcceptWithArgumentsBody


class FileChangeApprovalDecisionRespondBody(WireModel):
    content_items: list[DynamicToolCallOutputContentItem]
    success: StrictBool
    """Whether the call counts as successful."""


class FileChangeApprovalDecisionRespond(WireModel):
    """Apply nothing; this is the result."""

    respond: FileChangeApprovalDecisionRespondBody


class UnknownFileChangeApprovalDecision(UnknownVariant):
    """A key that this version does not know."""


FileChangeApprovalDecision: TypeAlias = Annotated[
    FileChangeApprovalDecisionName
    | FileChangeApprovalDecisionAcceptWithArguments
    | FileChangeApprovalDecisionRespond
    | UnknownFileChangeApprovalDecision,
    Keyed(),
]
"""A decision about a patch."""


class FileChangeOutputDeltaNotification(WireModel):
    """Sent as a patch is applied."""

    thread_id: ThreadId
    turn_id: TurnId
    item_id: ItemId
    delta: str
    """Output of the patch tool."""


class FileChangeRequestApprovalParams(WireModel):
    """Asks whether a patch may be applied. The changes themselves are in the file-change item."""

    thread_id: ThreadId
    turn_id: TurnId
    item_id: ItemId
    """The file-change item, already announced by `item/started`."""
    started_at_ms: StrictInt = 0
    """Unix milliseconds."""
    reason: str | None = None
    """Why approval is needed, for display."""
    grant_root: str | None = None
    """A folder the agent asks to write to for the rest of the session. Unstable."""
    operation_id: OperationId | None = None
    """The same when the request is sent again, also after a restart."""
    arguments_digest: str | None = None
    """Binds a decision to exactly what was shown."""


class FileChangeRequestApprovalResponse(WireModel):
    decision: FileChangeApprovalDecision
    origin: DecisionOrigin | None = None
    """From a host alone: who decided."""


class PatchChangeKindAdd(Variant):
    type: Literal["add"] = "add"


class PatchChangeKindDelete(Variant):
    type: Literal["delete"] = "delete"


class PatchChangeKindUpdate(Variant):
    type: Literal["update"] = "update"
    move_path: Annotated[str | None, wire("move_path")] = None
    """The new path when the file is also renamed."""


class UnknownPatchChangeKind(UnknownVariant):
    """A `type` that this version does not know."""

    type: str


PatchChangeKind: TypeAlias = Annotated[
    PatchChangeKindAdd | PatchChangeKindDelete | PatchChangeKindUpdate | UnknownPatchChangeKind,
    Tagged("type"),
]
"""The kind of change to a file."""


class FileUpdateChange(WireModel):
    """One changed file."""

    path: str
    kind: PatchChangeKind
    diff: str
    """The file's content when added or deleted, else a unified diff. A rename is noted at its end."""


class FsChangedNotification(WireModel):
    """Sent to the watching connection. Changes close in time, about 200 ms, come together."""

    watch_id: str
    changed_paths: list[AbsolutePathBuf]
    """Sorted."""


class FsCopyParams(WireModel):
    """Copies a file or folder. Symbolic links stay links."""

    source_path: AbsolutePathBuf
    destination_path: AbsolutePathBuf
    recursive: StrictBool = False
    """Required for a folder. Special files in it are skipped."""
    placement_id: str | None = None
    """The placement in which it is carried out; the host's own machine when unset. Only a host has placements."""


class FsCopyResponse(WireModel):
    pass


class FsCreateDirectoryParams(WireModel):
    """Creates a folder."""

    path: AbsolutePathBuf
    recursive: StrictBool | None = None
    """Also create missing parents. True when unset."""
    placement_id: str | None = None
    """The placement whose workspace holds it; the host's own machine when unset. Only a host has placements."""


class FsCreateDirectoryResponse(WireModel):
    pass


class FsGetMetadataParams(WireModel):
    """Tells what a path is and when it was made and changed."""

    path: AbsolutePathBuf
    placement_id: str | None = None
    """The placement in which it is carried out; the host's own machine when unset. Only a host has placements."""


class FsGetMetadataResponse(WireModel):
    is_directory: StrictBool
    is_file: StrictBool
    """Whether it is a regular file."""
    is_symlink: StrictBool = False
    """Whether the path itself is a symbolic link."""
    created_at_ms: StrictInt
    """Unix milliseconds; 0 where the platform does not tell."""
    modified_at_ms: StrictInt
    """Unix milliseconds; 0 where the platform does not tell."""


class FsReadDirectoryEntry(WireModel):
    """One child of a folder."""

    file_name: str
    """The name alone."""
    is_directory: StrictBool
    is_file: StrictBool


class FsReadDirectoryParams(WireModel):
    """Lists the direct children of a folder."""

    path: AbsolutePathBuf
    placement_id: str | None = None
    """The placement whose workspace holds it; the host's own machine when unset. Only a host has placements."""


class FsReadDirectoryResponse(WireModel):
    entries: list[FsReadDirectoryEntry]


class FsReadFileParams(WireModel):
    """Reads a whole file."""

    path: AbsolutePathBuf
    placement_id: str | None = None
    """The placement whose workspace holds it; the host's own machine when unset. Only a host has placements."""


class FsReadFileResponse(WireModel):
    data_base64: str
    """The content in base64."""


class FsRemoveParams(WireModel):
    """Removes a file or folder."""

    path: AbsolutePathBuf
    recursive: StrictBool | None = None
    """Also remove what a folder holds. True when unset."""
    force: StrictBool | None = None
    """Do not fail when there is nothing to remove. True when unset."""
    placement_id: str | None = None
    """The placement in which it is carried out; the host's own machine when unset. Only a host has placements."""


class FsRemoveResponse(WireModel):
    pass


class FsUnwatchParams(WireModel):
    """Ends a watch. An id that is not known is fine."""

    watch_id: str
    """From the answer to `fs/watch`."""
    placement_id: str | None = None
    """The placement in which it is carried out; the host's own machine when unset. Only a host has placements."""


class FsUnwatchResponse(WireModel):
    pass


class FsWatchParams(WireModel):
    """Reports changes of a path to this connection until `fs/unwatch`. Folders are not watched in depth."""

    path: AbsolutePathBuf
    """Need not exist yet."""
    placement_id: str | None = None
    """The placement in which it is carried out; the host's own machine when unset. Only a host has placements."""


class FsWatchResponse(WireModel):
    watch_id: str
    """Made by the server; found again in `fs/changed`."""
    path: AbsolutePathBuf


class FsWriteFileParams(WireModel):
    """Writes a whole file."""

    path: AbsolutePathBuf
    data_base64: str
    """The content in base64."""
    placement_id: str | None = None
    """The placement whose workspace holds it; the host's own machine when unset. Only a host has placements."""


class FsWriteFileResponse(WireModel):
    pass


ImageDetail: TypeAlias = Open[Literal["auto", "low", "high", "original"]]
"""The level of detail of an image for the model."""


class FunctionCallOutputContentItemInputText(Variant):
    type: Literal["input_text"] = "input_text"
    text: str


class FunctionCallOutputContentItemInputImage(Variant):
    type: Literal["input_image"] = "input_image"
    image_url: Annotated[str, wire("image_url")]
    detail: ImageDetail | None = None


class UnknownFunctionCallOutputContentItem(UnknownVariant):
    """A `type` that this version does not know."""

    type: str


FunctionCallOutputContentItem: TypeAlias = Annotated[
    FunctionCallOutputContentItemInputText
    | FunctionCallOutputContentItemInputImage
    | UnknownFunctionCallOutputContentItem,
    Tagged("type"),
]
"""One part of a tool's result."""


FunctionCallOutputBody: TypeAlias = str | list[FunctionCallOutputContentItem]
"""The output of a tool: one text, or several parts."""


FuzzyFileSearchMatchType: TypeAlias = Open[Literal["file", "directory"]]
"""The matches."""


class FuzzyFileSearchParams(WireModel):
    """Finds files and folders by a fuzzy query: at most 50, the best first. Ignored files are left out."""

    query: str
    """Case counts only if it has an upper-case letter. An empty one finds nothing."""
    roots: list[str]
    """Folders to search."""
    cancellation_token: str | None = None
    """A later search with the same token cancels this one."""
    placement_id: str | None = None
    """The placement in which it is carried out; the host's own machine when unset. Only a host has placements."""


class FuzzyFileSearchResult(WireModel):
    """One match. Field names are snake_case."""

    root: str
    """The folder of `roots` it is in."""
    path: str
    """Relative to `root`."""
    match_type: Annotated[FuzzyFileSearchMatchType, wire("match_type")]
    file_name: Annotated[str, wire("file_name")]
    """The last part of `path`."""
    score: StrictInt
    """Higher is better. Results are in this order, then by path."""
    indices: list[StrictInt] | None = None
    """Positions of the matching characters in `path`, ascending."""


class FuzzyFileSearchResponse(WireModel):
    files: list[FuzzyFileSearchResult]


class FuzzyFileSearchSessionCompletedNotification(WireModel):
    """Sent to all connections when a session has found everything for its query."""

    session_id: str


class FuzzyFileSearchSessionStartParams(WireModel):
    """Opens a session: reads the folders once and then matches one query after the other."""

    session_id: str
    """Chosen by the client. Must not be empty."""
    roots: list[str]
    """Folders to search."""
    placement_id: str | None = None
    """The placement in which it is carried out; the host's own machine when unset. Only a host has placements."""


class FuzzyFileSearchSessionStartResponse(WireModel):
    pass


class FuzzyFileSearchSessionStopParams(WireModel):
    """Closes a session. An id that is not known is fine."""

    session_id: str
    placement_id: str | None = None
    """The placement in which it is carried out; the host's own machine when unset. Only a host has placements."""


class FuzzyFileSearchSessionStopResponse(WireModel):
    pass


class FuzzyFileSearchSessionUpdateParams(WireModel):
    """Changes the query. The results come as notifications."""

    session_id: str
    query: str
    """An empty one gives an empty list."""
    placement_id: str | None = None
    """The placement in which it is carried out; the host's own machine when unset. Only a host has placements."""


class FuzzyFileSearchSessionUpdateResponse(WireModel):
    pass


class FuzzyFileSearchSessionUpdatedNotification(WireModel):
    """Sent to all connections when the results for a session's latest query change."""

    session_id: str
    query: str
    """The query the files answer."""
    files: list[FuzzyFileSearchResult]
    """All results so far, not only the new ones."""


class GetAccountParams(WireModel):
    """Reads who is logged in."""

    refresh_token: StrictBool = False
    """Refresh the stored tokens first. No effect on tokens the client keeps."""


class GetAccountRateLimitsResponse(WireModel):
    rate_limits: RateLimitSnapshot
    """The limit that counts for the agent."""
    rate_limits_by_limit_id: dict[str, RateLimitSnapshot] | None = None
    """All limits of the account."""


class GetAccountResponse(WireModel):
    account: Account | None = None
    """Null when nobody is logged in, and always when the provider needs no OpenAI login."""
    requires_openai_auth: StrictBool
    """Whether the configured provider needs an OpenAI login."""


class GetAuthStatusParams(WireModel):
    """Reads the login method. `account/read` took its place."""

    include_token: StrictBool | None = None
    """Also return the token. False when unset."""
    refresh_token: StrictBool | None = None
    """Refresh the token first. False when unset."""


class GetAuthStatusResponse(WireModel):
    """The first two fields are null without a login, or if the provider needs no OpenAI login."""

    auth_method: AuthMode | None = None
    auth_token: str | None = None
    """Null unless asked for."""
    requires_openai_auth: StrictBool | None = None
    """Whether the configured provider needs an OpenAI login."""


class GetConversationSummaryParamsRolloutPath(WireModel):
    rollout_path: str
    """The record's file. A relative path starts at the server's home folder."""


class GetConversationSummaryParamsConversationId(WireModel):
    conversation_id: ThreadId
    """The thread's id."""


GetConversationSummaryParams: TypeAlias = Annotated[
    GetConversationSummaryParamsRolloutPath | GetConversationSummaryParamsConversationId,
    FIRST_MATCH,
]
"""Which stored conversation to describe."""


class GetConversationSummaryResponse(WireModel):
    summary: ConversationSummary


class GhostCommit(WireModel):
    """A snapshot of the working copy, as a commit no branch leads to."""

    id: str
    """The commit."""
    parent: str | None = None
    preexisting_untracked_files: Annotated[list[str], wire("preexisting_untracked_files")]
    """Were not tracked when the snapshot was taken."""
    preexisting_untracked_dirs: Annotated[list[str], wire("preexisting_untracked_dirs")]
    """Were not tracked when the snapshot was taken."""


class GitDiffToRemoteParams(WireModel):
    """Compares a working copy with its remote."""

    cwd: str
    placement_id: str | None = None
    """The placement in which it is carried out; the host's own machine when unset. Only a host has placements."""


class GitDiffToRemoteResponse(WireModel):
    sha: str
    """The remote's commit the diff starts from."""
    diff: str
    """Unified diff."""


class GitInfo(WireModel):
    """The state of the git repository. Null where unknown."""

    sha: str | None = None
    """The commit checked out."""
    branch: str | None = None
    origin_url: str | None = None


class GrantedPermissionProfile(WireModel):
    """The granted permissions. Those left out are refused; those not asked for are ignored."""

    network: AdditionalNetworkPermissions | None = None
    file_system: AdditionalFileSystemPermissions | None = None


GuardianApprovalReviewStatus: TypeAlias = Open[Literal["inProgress", "approved", "denied", "aborted"]]
"""How far the review has come.
`denied`: The risk is too high, or no usable verdict came in time.
`aborted`: The review ended without a verdict.
"""


GuardianRiskLevel: TypeAlias = Open[Literal["low", "medium", "high"]]
"""The risk in one word."""


class GuardianApprovalReview(WireModel):
    """The finding of the automatic reviewer. Unstable: the shape may change."""

    status: GuardianApprovalReviewStatus
    risk_score: StrictInt | None = None
    """Below 80 is approved. Null until there is a verdict."""
    risk_level: GuardianRiskLevel | None = None
    rationale: str | None = None
    """The reviewer's reason."""


HistoryFidelity: TypeAlias = Open[Literal["exact", "lossy"]]
"""How well a supplied history reproduces the prompt.
`exact`: Fully: it was given as `initialItems`.
`lossy`: In part: it was rebuilt from `turnHistory`.
"""


HookEventName: TypeAlias = Open[Literal["preToolUse", "postToolUse", "sessionStart", "userPromptSubmit", "stop"]]
"""When a hook runs.
`preToolUse`: Before a command; it may block it.
`postToolUse`: After a command; it may replace the output the model gets.
`sessionStart`: In the first turn after a thread was started or resumed.
`userPromptSubmit`: Before a prompt is recorded; it may drop it.
`stop`: Before a turn ends; it may make the agent continue.
"""


HookHandlerType: TypeAlias = Open[Literal["command", "prompt", "agent"]]
"""The kind of a hook. Only commands run; the others are skipped with a warning."""


HookExecutionMode: TypeAlias = Open[Literal["sync", "async"]]
"""Whether the turn waits for the hook."""


HookScope: TypeAlias = Open[Literal["thread", "turn"]]
"""The scope of a run."""


HookRunStatus: TypeAlias = Open[Literal["running", "completed", "failed", "blocked", "stopped"]]
"""The status of a run.
`failed`: It failed. The turn continues as if it had not run.
`blocked`: It blocked what it was asked about.
`stopped`: It ended the turn.
"""


HookOutputEntryKind: TypeAlias = Open[Literal["warning", "stop", "feedback", "context", "error"]]
"""The purpose of a hook's output.
`warning`: For the user.
`stop`: Why it ended the turn.
`feedback`: Why it blocked, for the model.
`context`: Something for the model to know.
`error`: Why the run failed.
"""


class HookOutputEntry(WireModel):
    """One thing a hook had to say."""

    kind: HookOutputEntryKind
    text: str


class HookRunSummary(WireModel):
    """One run of one hook."""

    id: str
    """The same in `hook/started` and `hook/completed`."""
    event_name: HookEventName
    handler_type: HookHandlerType
    execution_mode: HookExecutionMode
    scope: HookScope
    source_path: str
    """The file the hook is configured in."""
    display_order: StrictInt
    """Its place among the hooks."""
    status: HookRunStatus
    status_message: str | None = None
    """The configured text to show while it runs."""
    started_at: StrictInt
    """Unix seconds."""
    completed_at: StrictInt | None = None
    """Unix seconds; null while it runs."""
    duration_ms: StrictInt | None = None
    """Null while it runs."""
    entries: list[HookOutputEntry]


class HookCompletedNotification(WireModel):
    """Sent when a hook has ended."""

    thread_id: ThreadId
    turn_id: TurnId | None = None
    """Null outside any turn."""
    run: HookRunSummary


class HookErrorInfo(WireModel):
    """A file of hooks that could not be read."""

    path: str
    message: str


HookSource: TypeAlias = Open[
    Literal["system", "user", "project", "mdm", "sessionFlags", "plugin", "legacyManagedConfigFile", "unknown"]
]
"""Where a hook is configured."""


HookTrustStatus: TypeAlias = Open[Literal["trusted", "managed", "untrusted", "modified"]]
"""Whether the user has agreed to a hook.
`managed`: An administrator's.
`untrusted`: Not agreed to, so it does not run.
`modified`: Changed since it was agreed to, so it does not run.
"""


class HookMetadata(WireModel):
    """One hook as it is configured."""

    key: str
    """Its name among all hooks: the file, the event and the place in it."""
    event_name: HookEventName
    handler_type: HookHandlerType
    matcher: str | None = None
    command: str | None = None
    timeout_sec: StrictInt
    status_message: str | None = None
    source_path: AbsolutePathBuf
    source: HookSource
    plugin_id: str | None = None
    display_order: StrictInt
    enabled: StrictBool
    """Whether it runs."""
    is_managed: StrictBool
    """Whether an administrator configured it."""
    current_hash: str
    """Over the event and the handler. Another one means another hook."""
    trust_status: HookTrustStatus


class HookPromptFragment(WireModel):
    """A part of a prompt from a hook."""

    text: str
    hook_run_id: str
    """Id of the hook's run."""


class HookStartedNotification(WireModel):
    """Sent when a hook begins."""

    thread_id: ThreadId
    turn_id: TurnId | None = None
    """Null outside any turn."""
    run: HookRunSummary


class HooksListEntry(WireModel):
    """The hooks of one working directory."""

    cwd: str
    hooks: list[HookMetadata]
    warnings: list[str]
    """Hooks that are skipped, and why."""
    errors: list[HookErrorInfo]


class HooksListParams(WireModel):
    """Lists the hooks for each working directory."""

    cwds: list[str] = []
    """The server's own when empty."""


class HooksListResponse(WireModel):
    data: list[HooksListEntry]


class HostAgreed(WireModel):
    """The version and features of the host."""

    version: StrictInt
    features: list[str]
    role: str
    """The role of this connection: `viewer`, `approver`, `operator` or `admin`."""


class HostDelegationAgreed(WireModel):
    """The agreed version and features. A host that made an offer and finds no such member must stop."""

    version: StrictInt
    features: list[DelegationFeature]
    """Those of the offer that the runtime supports too."""
    runtime_instance_id: str
    """New for every process, for fencing and logs."""


class HostDelegationOffer(WireModel):
    """A host's offer in `initialize`."""

    versions: list[StrictInt]
    """Versions of the delegation wire the host speaks."""
    features: list[DelegationFeature] = []


class HostOffer(WireModel):
    """Features of a host that a client wants to use."""

    versions: list[StrictInt]
    """Versions of the host's methods the client knows."""
    all_tasks: StrictBool = False
    """Send `task/updated`, and `operation/updated` of tasks this connection does not follow too."""


class HostStatus(WireModel):
    """The part of the status that only a host has."""

    tasks: dict[str, StrictInt]
    """Tasks that are not archived, by state."""
    runtimes: StrictInt
    queued: StrictInt
    """Tasks that wait for room among the runtimes."""


class InitialItemsRef(WireModel):
    """Announces a history that comes in parts by `rollout/load`. Meant for histories above 1 MB."""

    parts: StrictInt
    """How many parts there are."""
    digest: str
    """SHA-256 over the canonical JSON of all items in order."""


class InitializeCapabilities(WireModel):
    """Capabilities and wishes of the client."""

    experimental_api: StrictBool = False
    """Allows this connection to use experimental methods and fields."""
    opt_out_notification_methods: list[str] | None = None
    """Exact method names of notifications this connection does not want. Unknown names are ignored; requests
    and answers are not affected.
    """
    host_delegation: HostDelegationOffer | None = None
    host: HostOffer | None = None
    """Asks for what a host can do beyond an app-server. An app-server does not answer it."""


class InitializeParams(WireModel):
    """Opens the connection. Must be the first request, and is accepted once."""

    client_info: ClientInfo
    capabilities: InitializeCapabilities | None = None


class ServerCapabilities(WireModel):
    """Features beyond the stock protocol that the server agreed to."""

    host_delegation: HostDelegationAgreed | None = None
    host: HostAgreed | None = None
    """Set by a host."""


class InitializeResponse(WireModel):
    """The server, as told to the client."""

    user_agent: str
    """As sent to providers: `{originator}/{version}`, then the system, the terminal and the client. The
    version is a protocol level.
    """
    codex_home: AbsolutePathBuf
    """The folder with the server's configuration and stored threads."""
    platform_family: str
    """`unix` or `windows`."""
    platform_os: str
    """`linux`, `macos` or `windows`."""
    capabilities: ServerCapabilities | None = None
    """Left out when the client asked for nothing beyond the stock protocol."""


InputModality: TypeAlias = Open[Literal["text", "image"]]
"""A kind of input that a model takes."""


MessagePhase: TypeAlias = Open[Literal["commentary", "final_answer"]]
"""Which part of a turn a message belongs to.
`commentary`: Said along the way.
`final_answer`: The answer the turn ends with.
"""


class MemoryCitationEntry(WireModel):
    """A place in a memory file."""

    path: str
    line_start: StrictInt
    line_end: StrictInt
    note: str


class MemoryCitation(WireModel):
    """The memories a message rests on."""

    entries: list[MemoryCitationEntry]
    thread_ids: list[str]
    """The threads those memories come from."""


PatchApplyStatus: TypeAlias = Open[Literal["inProgress", "completed", "failed", "declined"]]
"""The status of a patch.
`declined`: Approval was refused, so nothing was changed.
"""


McpToolCallStatus: TypeAlias = Open[Literal["inProgress", "completed", "failed"]]
"""The status of the call."""


class McpToolCallResult(WireModel):
    """The MCP server's result, unchanged."""

    content: list[Any]
    """MCP content blocks."""
    structured_content: Any = None


class McpToolCallError(WireModel):
    """Why a call failed."""

    message: str


class WebSearchActionSearch(Variant):
    type: Literal["search"] = "search"
    query: str | None = None
    queries: list[str] | None = None


class WebSearchActionOpenPage(Variant):
    type: Literal["openPage"] = "openPage"
    url: str | None = None


class WebSearchActionFindInPage(Variant):
    type: Literal["findInPage"] = "findInPage"
    url: str | None = None
    pattern: str | None = None


class WebSearchActionOther(Variant):
    type: Literal["other"] = "other"


class UnknownWebSearchAction(UnknownVariant):
    """A `type` that this version does not know."""

    type: str


WebSearchAction: TypeAlias = Annotated[
    WebSearchActionSearch
    | WebSearchActionOpenPage
    | WebSearchActionFindInPage
    | WebSearchActionOther
    | UnknownWebSearchAction,
    Tagged("type"),
]
"""An action of a web search."""


class ThreadItemUserMessage(Variant):
    """A message of the user."""

    type: Literal["userMessage"] = "userMessage"
    id: ItemId
    content: list[UserInput]


class ThreadItemHookPrompt(Variant):
    """A prompt from a hook for the agent to go on with. Shown live only in threads with raw events, and always in
    history.
    """

    type: Literal["hookPrompt"] = "hookPrompt"
    id: ItemId
    fragments: list[HookPromptFragment]


class ThreadItemAgentMessage(Variant):
    """A message of the agent."""

    type: Literal["agentMessage"] = "agentMessage"
    id: ItemId
    text: str
    """Empty in `item/started`."""
    phase: MessagePhase | None = None
    """Null when the model does not tell."""
    memory_citation: MemoryCitation | None = None


class ThreadItemPlan(Variant):
    """A plan the agent proposes in plan mode. Its id is the turn's id and `-plan`."""

    type: Literal["plan"] = "plan"
    id: ItemId
    text: str
    """Empty in `item/started`."""


class ThreadItemReasoning(Variant):
    """The model's reasoning."""

    type: Literal["reasoning"] = "reasoning"
    id: ItemId
    summary: list[str] = []
    """Readable summaries, one per part."""
    content: list[str] = []
    """Raw reasoning, from models that show it."""


class ThreadItemCommandExecution(Variant):
    """A command in a shell."""

    type: Literal["commandExecution"] = "commandExecution"
    id: ItemId
    command: str
    """One shell-quoted line."""
    cwd: str
    process_id: str | None = None
    """The terminal it runs in; null for a plain shell call."""
    source: CommandExecutionSource = "agent"
    status: CommandExecutionStatus
    command_actions: list[CommandAction]
    """Its apparent actions, for display."""
    aggregated_output: str | None = None
    """Standard output and error together; null when there is none."""
    exit_code: StrictInt | None = None
    """Null while it runs; -1 when it was aborted."""
    duration_ms: StrictInt | None = None
    """Null while it runs."""


class ThreadItemFileChange(Variant):
    """A patch to files."""

    type: Literal["fileChange"] = "fileChange"
    id: ItemId
    changes: list[FileUpdateChange]
    """Sorted by path."""
    status: PatchApplyStatus
    reason: str | None = None
    """Why it was refused, or was not applied, as the model gets it."""


class ThreadItemMcpToolCall(Variant):
    """A call to an MCP server."""

    type: Literal["mcpToolCall"] = "mcpToolCall"
    id: ItemId
    server: str
    """The server's name in the configuration."""
    tool: str
    status: McpToolCallStatus
    arguments: Any
    result: McpToolCallResult | None = None
    """Null while it runs and when it failed."""
    error: McpToolCallError | None = None
    """Set when the call failed."""
    duration_ms: StrictInt | None = None
    """Null while it runs."""


class ThreadItemDynamicToolCall(Variant):
    """A call to a tool the client runs."""

    type: Literal["dynamicToolCall"] = "dynamicToolCall"
    id: ItemId
    namespace: str | None = None
    """The group of the tool, if it has one."""
    tool: str
    arguments: Any
    status: DynamicToolCallStatus
    content_items: list[DynamicToolCallOutputContentItem] | None = None
    """The client's result; null until it is there."""
    success: StrictBool | None = None
    """Null while it runs."""
    duration_ms: StrictInt | None = None
    """Null while it runs."""


class ThreadItemCollabAgentToolCall(Variant):
    """A step in the work with child agents."""

    type: Literal["collabAgentToolCall"] = "collabAgentToolCall"
    id: ItemId
    tool: CollabAgentTool
    status: CollabAgentToolCallStatus
    sender_thread_id: ThreadId
    """The thread that acts."""
    receiver_thread_ids: list[ThreadId]
    """The children's threads. A new child is listed once it exists."""
    prompt: str | None = None
    """The message to the children, where there is one."""
    model: str | None = None
    """The model of a new child."""
    reasoning_effort: ReasoningEffort | None = None
    """The effort of a new child."""
    agents_states: dict[str, CollabAgentState]
    """By thread id."""


class ThreadItemWebSearch(Variant):
    """A search the provider ran."""

    type: Literal["webSearch"] = "webSearch"
    id: ItemId
    query: str
    action: WebSearchAction | None = None
    """Null until it is known."""


class ThreadItemImageView(Variant):
    """The agent looked at an image file."""

    type: Literal["imageView"] = "imageView"
    id: ItemId
    path: str


class ThreadItemImageGeneration(Variant):
    """An image the provider made."""

    type: Literal["imageGeneration"] = "imageGeneration"
    id: ItemId
    status: str
    """In the provider's terms."""
    revised_prompt: str | None = None
    """The prompt the provider used instead of the model's."""
    result: str
    """The image in base64."""
    saved_path: str | None = None
    """The file it was saved to."""


class ThreadItemFunctionCallOutput(Variant):
    """A message from outside that the model got as the output of a tool."""

    type: Literal["functionCallOutput"] = "functionCallOutput"
    id: ItemId
    name: str
    """The tool that delivered it."""
    namespace: str | None = None
    output: FunctionCallOutputBody


class ThreadItemEnteredReviewMode(Variant):
    """A review began. Its id is the turn's id."""

    type: Literal["enteredReviewMode"] = "enteredReviewMode"
    id: ItemId
    review: str
    """A short description of the target."""


class ThreadItemExitedReviewMode(Variant):
    """A review ended. Its id is the turn's id."""

    type: Literal["exitedReviewMode"] = "exitedReviewMode"
    id: ItemId
    review: str
    """The review as plain text, findings included."""


class ThreadItemContextCompaction(Variant):
    """The history before this point was replaced by a summary."""

    type: Literal["contextCompaction"] = "contextCompaction"
    id: ItemId


class UnknownThreadItem(UnknownVariant):
    """A `type` that this version does not know."""

    type: str


ThreadItem: TypeAlias = Annotated[
    ThreadItemUserMessage
    | ThreadItemHookPrompt
    | ThreadItemAgentMessage
    | ThreadItemPlan
    | ThreadItemReasoning
    | ThreadItemCommandExecution
    | ThreadItemFileChange
    | ThreadItemMcpToolCall
    | ThreadItemDynamicToolCall
    | ThreadItemCollabAgentToolCall
    | ThreadItemWebSearch
    | ThreadItemImageView
    | ThreadItemImageGeneration
    | ThreadItemFunctionCallOutput
    | ThreadItemEnteredReviewMode
    | ThreadItemExitedReviewMode
    | ThreadItemContextCompaction
    | UnknownThreadItem,
    Tagged("type"),
]
"""One piece of a turn. Tool items keep the model's call id; others may get ids such as `item-1` once the
thread is read back from its record.
"""


class ItemCompletedNotification(WireModel):
    """Sent when an item has ended. A terminal that outlives its turn sends it after `turn/completed`, with the
    id of that turn.
    """

    item: ThreadItem
    """Final."""
    thread_id: ThreadId
    turn_id: TurnId
    completed_at_ms: StrictInt = 0
    """Unix milliseconds."""


class ItemGuardianApprovalReviewCompletedNotification(WireModel):
    """Sent when the reviewer is done. `action` says what it looked at, for display; its shape is not fixed. The
    item's own `item/completed` is sent separately.
    """

    thread_id: ThreadId
    turn_id: TurnId
    target_item_id: ItemId
    """The item that waited for the verdict."""
    review: GuardianApprovalReview
    action: Any = None


class ItemGuardianApprovalReviewStartedNotification(WireModel):
    """Sent when the automatic reviewer begins to look at something that needs approval. `action` says what, for
    display; its shape is not fixed.
    """

    thread_id: ThreadId
    turn_id: TurnId
    target_item_id: ItemId
    """The item that waits for the verdict."""
    review: GuardianApprovalReview
    action: Any = None


class ItemStartedNotification(WireModel):
    """Sent when an item begins. Later notifications refer to it by its id."""

    item: ThreadItem
    """The item as far as it is known."""
    thread_id: ThreadId
    turn_id: TurnId
    started_at_ms: StrictInt = 0
    """Unix milliseconds."""


class JSONRPCErrorError(WireModel):
    """Why a request failed."""

    code: StrictInt
    data: Any = None
    message: str


RequestId: TypeAlias = str | StrictInt
"""Pairs a response with its request on one connection."""


class JSONRPCError(WireModel):
    """The answer to a request that failed."""

    error: JSONRPCErrorError
    id: RequestId


class W3cTraceContext(WireModel):
    """Trace context of a request, as W3C defines it. Accepted and passed on, never required."""

    traceparent: str | None = None
    tracestate: str | None = None


class JSONRPCRequest(WireModel):
    """A request that expects a response."""

    id: RequestId
    method: str
    params: Any = None
    trace: W3cTraceContext | None = None


class JSONRPCNotification(WireModel):
    """A message that expects no response."""

    method: str
    params: Any = None


class JSONRPCResponse(WireModel):
    """The successful answer to a request."""

    id: RequestId
    result: Any


JSONRPCMessage: TypeAlias = Annotated[
    JSONRPCRequest | JSONRPCNotification | JSONRPCResponse | JSONRPCError,
    FIRST_MATCH,
]
"""Any message. The first shape that fits wins."""


TurnStatus: TypeAlias = Open[Literal["completed", "failed", "inProgress", "interrupted"]]
"""The status of a turn.
`interrupted`: Stopped by a client, or cut off by the end of the server.
"""


class LastTurn(WireModel):
    """The turn of a thread that ended last."""

    id: TurnId
    status: TurnStatus
    error: str | None = None
    """For people; set when `status` is `failed`."""


class ListMcpServerStatusParams(WireModel):
    """Lists MCP servers by name, a page at a time. Connects to each of them to ask."""

    cursor: str | None = None
    """`nextCursor` of the page before; unset for the first page."""
    limit: StrictInt | None = None
    """Most servers on one page; all when unset."""


class Tool(WireModel):
    """A tool of an MCP server, in its own words. `inputSchema` and `outputSchema` are JSON Schemas of its
    arguments and its structured result; `annotations` are hints, such as whether it only reads.
    """

    name: str
    title: str | None = None
    description: str | None = None
    input_schema: Any
    output_schema: Any = None
    annotations: Any = None
    icons: list[Any] | None = None
    meta: Annotated[Any, wire("_meta")] = None


class Resource(WireModel):
    """A resource that an MCP server lets clients read, in the form of MCP."""

    annotations: Any = None
    description: str | None = None
    mime_type: str | None = None
    name: str
    size: StrictInt | None = None
    """In bytes."""
    title: str | None = None
    uri: str
    icons: list[Any] | None = None
    meta: Annotated[Any, wire("_meta")] = None


class ResourceTemplate(WireModel):
    """A template for resources, in the form of MCP."""

    annotations: Any = None
    uri_template: str
    """A URI with places to fill in."""
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None


McpAuthStatus: TypeAlias = Open[Literal["unsupported", "notLoggedIn", "bearerToken", "oAuth"]]
"""How the connection to an MCP server is authenticated.
`unsupported`: There is nothing to log in to, as with a server started as a command.
`notLoggedIn`: The server offers OAuth; there is no login yet.
`bearerToken`: With a token or header from the configuration.
`oAuth`: With stored OAuth tokens.
"""


class McpServerStatus(WireModel):
    """One MCP server and what it offers."""

    name: str
    """Its name in the configuration."""
    tools: dict[str, Tool]
    """By tool name."""
    resources: list[Resource]
    resource_templates: list[ResourceTemplate]
    auth_status: McpAuthStatus


class ListMcpServerStatusResponse(WireModel):
    data: list[McpServerStatus]
    """Sorted by name."""
    next_cursor: str | None = None
    """Null on the last page."""


class LocalShellActionExec(Variant):
    type: Literal["exec"] = "exec"
    command: list[str]
    """Program and arguments."""
    env: dict[str, str] | None = None
    timeout_ms: Annotated[StrictInt | None, wire("timeout_ms")] = None
    user: str | None = None
    working_directory: Annotated[str | None, wire("working_directory")] = None


class UnknownLocalShellAction(UnknownVariant):
    """A `type` that this version does not know."""

    type: str


LocalShellAction: TypeAlias = Annotated[LocalShellActionExec | UnknownLocalShellAction, Tagged("type")]
"""The action of a local shell call."""


LocalShellStatus: TypeAlias = Open[Literal["completed", "in_progress", "incomplete"]]
"""The status of a local shell call."""


class LoginAccountParamsApiKey(Variant):
    """With an API key, which is stored. Takes effect at once."""

    type: Literal["apiKey"] = "apiKey"
    api_key: str


class LoginAccountParamsChatgpt(Variant):
    """In the browser, at the page the answer names. Times out after ten minutes."""

    type: Literal["chatgpt"] = "chatgpt"


class LoginAccountParamsChatgptDeviceCode(Variant):
    """On any device, with a code the answer holds."""

    type: Literal["chatgptDeviceCode"] = "chatgptDeviceCode"


class LoginAccountParamsChatgptAuthTokens(Variant):
    """With tokens the client obtains and refreshes itself. Kept in memory only."""

    type: Literal["chatgptAuthTokens"] = "chatgptAuthTokens"
    access_token: str
    """The bearer token, a JWT."""
    chatgpt_account_id: str
    """The workspace the token is for. Must be the forced one where config forces one."""
    chatgpt_plan_type: str | None = None
    """The plan to report for the account."""


class UnknownLoginAccountParams(UnknownVariant):
    """A `type` that this version does not know."""

    type: str


LoginAccountParams: TypeAlias = Annotated[
    LoginAccountParamsApiKey
    | LoginAccountParamsChatgpt
    | LoginAccountParamsChatgptDeviceCode
    | LoginAccountParamsChatgptAuthTokens
    | UnknownLoginAccountParams,
    Tagged("type"),
]
"""Starts a login in one of these ways. `account/login/completed` reports the result."""


class LoginAccountResponseApiKey(Variant):
    type: Literal["apiKey"] = "apiKey"


class LoginAccountResponseChatgpt(Variant):
    """The user opens `authUrl` in a browser on the server's machine."""

    type: Literal["chatgpt"] = "chatgpt"
    login_id: str
    """Repeated in `account/login/completed`, and used to cancel."""
    auth_url: str


class LoginAccountResponseChatgptDeviceCode(Variant):
    """The user opens `verificationUrl` on any device and enters `userCode`."""

    type: Literal["chatgptDeviceCode"] = "chatgptDeviceCode"
    login_id: str
    """Repeated in `account/login/completed`, and used to cancel."""
    verification_url: str
    user_code: str


class LoginAccountResponseChatgptAuthTokens(Variant):
    type: Literal["chatgptAuthTokens"] = "chatgptAuthTokens"


class UnknownLoginAccountResponse(UnknownVariant):
    """A `type` that this version does not know."""

    type: str


LoginAccountResponse: TypeAlias = Annotated[
    LoginAccountResponseApiKey
    | LoginAccountResponseChatgpt
    | LoginAccountResponseChatgptDeviceCode
    | LoginAccountResponseChatgptAuthTokens
    | UnknownLoginAccountResponse,
    Tagged("type"),
]
"""Data for the client to continue the login. `type` is the requested one."""


class LogoutAccountResponse(WireModel):
    pass


class MarketplaceInterface(WireModel):
    """How to show a marketplace."""

    display_name: str | None = None


class MarketplaceLoadErrorInfo(WireModel):
    """A marketplace that could not be read."""

    marketplace_path: AbsolutePathBuf
    message: str


McpElicitationArrayType: TypeAlias = Literal["array"]


McpElicitationBooleanType: TypeAlias = Literal["boolean"]


class McpElicitationBooleanSchema(ClosedModel):
    """A field to answer with yes or no."""

    type: McpElicitationBooleanType
    title: str | None = None
    description: str | None = None
    default: StrictBool | None = None


class McpElicitationConstOption(WireModel):
    """One choice with its label."""

    const: str
    """The value to send back."""
    title: str
    """The label to show."""


McpElicitationStringType: TypeAlias = Literal["string"]


class McpElicitationUntitledSingleSelectEnumSchema(ClosedModel):
    """One choice out of a list without labels."""

    type: McpElicitationStringType
    title: str | None = None
    description: str | None = None
    enum: list[str]
    default: str | None = None


class McpElicitationTitledSingleSelectEnumSchema(ClosedModel):
    """One choice out of a list with labels."""

    type: McpElicitationStringType
    title: str | None = None
    description: str | None = None
    one_of: list[McpElicitationConstOption]
    default: str | None = None


McpElicitationSingleSelectEnumSchema: TypeAlias = Annotated[
    McpElicitationUntitledSingleSelectEnumSchema | McpElicitationTitledSingleSelectEnumSchema,
    FIRST_MATCH,
]
"""A field that takes one of its choices."""


class McpElicitationUntitledEnumItems(WireModel):
    """Choices without labels."""

    type: McpElicitationStringType
    enum: list[str]


class McpElicitationUntitledMultiSelectEnumSchema(ClosedModel):
    """Several choices out of a list without labels."""

    type: McpElicitationArrayType
    title: str | None = None
    description: str | None = None
    min_items: StrictInt | None = None
    """Fewest choices to make."""
    max_items: StrictInt | None = None
    """Most choices to make."""
    items: McpElicitationUntitledEnumItems
    default: list[str] | None = None


class McpElicitationTitledEnumItems(WireModel):
    """Choices with labels."""

    any_of: list[McpElicitationConstOption]


class McpElicitationTitledMultiSelectEnumSchema(ClosedModel):
    """Several choices out of a list with labels."""

    type: McpElicitationArrayType
    title: str | None = None
    description: str | None = None
    min_items: StrictInt | None = None
    """Fewest choices to make."""
    max_items: StrictInt | None = None
    """Most choices to make."""
    items: McpElicitationTitledEnumItems
    default: list[str] | None = None


McpElicitationMultiSelectEnumSchema: TypeAlias = Annotated[
    McpElicitationUntitledMultiSelectEnumSchema | McpElicitationTitledMultiSelectEnumSchema,
    FIRST_MATCH,
]
"""A field that takes several of its choices."""


class McpElicitationLegacyTitledEnumSchema(ClosedModel):
    """One choice out of `enum`, with the labels in a second list. Older than the other ways."""

    type: McpElicitationStringType
    title: str | None = None
    description: str | None = None
    enum: list[str]
    enum_names: list[str] | None = None
    """Labels in the order of `enum`."""
    default: str | None = None


McpElicitationEnumSchema: TypeAlias = Annotated[
    McpElicitationSingleSelectEnumSchema | McpElicitationMultiSelectEnumSchema | McpElicitationLegacyTitledEnumSchema,
    FIRST_MATCH,
]
"""A field with a list of choices."""


McpElicitationNumberType: TypeAlias = Literal["number", "integer"]


class McpElicitationNumberSchema(ClosedModel):
    """A field for a number."""

    type: McpElicitationNumberType
    title: str | None = None
    description: str | None = None
    minimum: Number | None = None
    maximum: Number | None = None
    default: Number | None = None


McpElicitationObjectType: TypeAlias = Open[Literal["object"]]


McpElicitationStringFormat: TypeAlias = Open[Literal["email", "uri", "date", "date-time"]]
"""The required format of a text."""


class McpElicitationStringSchema(ClosedModel):
    """A field for a text."""

    type: McpElicitationStringType
    title: str | None = None
    description: str | None = None
    min_length: StrictInt | None = None
    """In characters."""
    max_length: StrictInt | None = None
    """In characters."""
    format: McpElicitationStringFormat | None = None
    default: str | None = None


McpElicitationPrimitiveSchema: TypeAlias = Annotated[
    McpElicitationEnumSchema | McpElicitationStringSchema | McpElicitationNumberSchema | McpElicitationBooleanSchema,
    FIRST_MATCH,
]
"""One field of a form."""


class McpElicitationSchema(WireModel):
    """A form: an object whose properties are its fields."""

    schema_: Annotated[str | None, wire("$schema")] = None
    """The JSON Schema dialect."""
    type: McpElicitationObjectType
    properties: dict[str, McpElicitationPrimitiveSchema]
    """The fields by name."""
    required: list[str] | None = None
    """Names of the fields that must be filled in."""


McpServerElicitationAction: TypeAlias = Open[Literal["accept", "decline", "cancel"]]
"""The user's reaction to the question.
`accept`: Answered it, or agreed to open the page.
`decline`: Said no.
`cancel`: Closed it without an answer.
"""


class McpServerElicitationRequestParamsForm(Variant):
    """As a form. The approval of an MCP tool call is one without fields."""

    mode: Literal["form"] = "form"
    thread_id: ThreadId
    turn_id: TurnId | None = None
    """Unset when the server asks outside any turn."""
    operation_id: OperationId | None = None
    """The same when the request is sent again, also after a restart."""
    arguments_digest: str | None = None
    """Binds a decision to exactly what was shown."""
    server_name: str
    """The MCP server's name in the configuration."""
    meta: Annotated[Any, wire("_meta")] = None
    message: str
    """The question, for display."""
    requested_schema: McpElicitationSchema


class McpServerElicitationRequestParamsUrl(Variant):
    """As a page the user opens."""

    mode: Literal["url"] = "url"
    thread_id: ThreadId
    turn_id: TurnId | None = None
    """Unset when the server asks outside any turn."""
    operation_id: OperationId | None = None
    """The same when the request is sent again, also after a restart."""
    arguments_digest: str | None = None
    """Binds a decision to exactly what was shown."""
    server_name: str
    """The MCP server's name in the configuration."""
    meta: Annotated[Any, wire("_meta")] = None
    message: str
    """The question, for display."""
    url: str
    elicitation_id: str
    """The MCP server's own id for the question."""


class UnknownMcpServerElicitationRequestParams(UnknownVariant):
    """A `mode` that this version does not know."""

    mode: str


McpServerElicitationRequestParams: TypeAlias = Annotated[
    McpServerElicitationRequestParamsForm
    | McpServerElicitationRequestParamsUrl
    | UnknownMcpServerElicitationRequestParams,
    Tagged("mode"),
]
"""A question an MCP server puts to the user, as a form or as a page to open."""


class McpServerElicitationRequestResponse(WireModel):
    """The user's answer."""

    action: McpServerElicitationAction
    content: Any = None
    """The filled-in form, by field name. Null unless a form was accepted."""
    meta: Annotated[Any, wire("_meta")] = None
    """Extra data for the asker. In the approval of a tool call, `persist` asks to remember it."""
    origin: DecisionOrigin | None = None
    """From a host alone: who answered."""


class McpServerOauthLoginCompletedNotification(WireModel):
    """Sent to all connections when an OAuth login has ended."""

    name: str
    """The server's name in the configuration."""
    success: StrictBool
    error: str | None = None
    """Set when `success` is false."""


class McpServerOauthLoginParams(WireModel):
    """Starts the OAuth login to an MCP server that is reached by HTTP."""

    name: str
    """Its name in the configuration."""
    scopes: list[str] | None = None
    """When unset, those of the configuration, else those the server announces."""
    timeout_secs: StrictInt | None = None
    """300 when unset."""


class McpServerOauthLoginResponse(WireModel):
    """Sent at once; `mcpServer/oauthLogin/completed` follows."""

    authorization_url: str
    """The page for the user to open."""


class McpServerRefreshResponse(WireModel):
    """Each loaded thread connects anew at its next turn."""


McpServerStartupState: TypeAlias = Open[Literal["starting", "ready", "failed", "cancelled"]]
"""How far an MCP server has come.
`cancelled`: It was given up before it was ready.
"""


class McpServerStatusUpdatedNotification(WireModel):
    """Sent as an MCP server of a thread starts up."""

    name: str
    """The server's name in the configuration."""
    status: McpServerStartupState
    error: str | None = None
    """Set with `failed`."""


class McpToolCallProgressNotification(WireModel):
    """Progress of an MCP tool call. Declared for clients that know it; not sent."""

    thread_id: ThreadId
    turn_id: TurnId
    item_id: ItemId
    message: str


class MockExperimentalMethodParams(WireModel):
    """Echoes a value. Exists to test the experimental gate."""

    value: str | None = None


class MockExperimentalMethodResponse(WireModel):
    echoed: str | None = None
    """`value` of the request."""


class ModelUpgradeInfo(WireModel):
    """How to suggest a newer model."""

    model: str
    """The newer model."""
    upgrade_copy: str | None = None
    """The text to show."""
    model_link: str | None = None
    """A page about the newer model."""
    migration_markdown: str | None = None
    """The changes for the user, in Markdown."""


class ModelAvailabilityNux(WireModel):
    """A note for users to whom a model is new."""

    message: str


class ReasoningEffortOption(WireModel):
    """An effort a model offers."""

    reasoning_effort: ReasoningEffort
    description: str
    """For display."""


class Model(WireModel):
    """One model of the catalogue."""

    id: str
    model: str
    """The name to use in requests."""
    upgrade: str | None = None
    """A newer model to suggest instead."""
    upgrade_info: ModelUpgradeInfo | None = None
    """How to suggest it."""
    availability_nux: ModelAvailabilityNux | None = None
    """A note for users to whom the model is new."""
    display_name: str
    description: str
    hidden: StrictBool
    """Clients do not offer it; listed only with `includeHidden`."""
    supported_reasoning_efforts: list[ReasoningEffortOption]
    default_reasoning_effort: ReasoningEffort
    input_modalities: list[InputModality] = []
    supports_personality: StrictBool = False
    """Whether `personality` has an effect."""
    is_default: StrictBool
    """True for exactly one model."""


ModelRequestId: TypeAlias = str
"""One attempt at one model call: `turnId:n:aN`."""


ModelCancelReason: TypeAlias = Open[
    Literal["turnInterrupted", "approvalDenied", "threadClosed", "superseded", "protocolError"]
]
"""Why a request is no longer wanted.
`superseded`: Another attempt takes its place.
`protocolError`: An event made no sense to the runtime.
"""


class ModelCancelParams(WireModel):
    """Asks the host to stop carrying a request. Events that still come are dropped."""

    thread_id: ThreadId
    model_request_id: ModelRequestId
    reason: ModelCancelReason


class ModelCancelResponse(WireModel):
    """Sent at once; the host still ends the stream with `model/streamAborted`."""

    disposition: ModelCancelDisposition


class ModelError(WireModel):
    """Why the host could not, or could no longer, carry a request."""

    code: str
    """A word for programs. `unsupportedFeature` comes with `feature`. After `paused`, the runtime asks the model to go
    on from the items that came.
    """
    message: str
    """For people."""
    codex_error_info: CodexErrorInfo | None = None
    """The class of error that clients know."""
    http_status: StrictInt | None = None
    provider_request_id: str | None = None
    """The provider's own id for the request."""
    retry_after_ms: StrictInt | None = None
    """How long the provider asks to wait."""
    replay_safe: StrictBool = False
    """Sending the request again does no harm."""
    feature: str | None = None
    """The feature in question when `code` is `unsupportedFeature`."""


class ModelListParams(WireModel):
    """Lists models, a page at a time."""

    cursor: str | None = None
    """`nextCursor` of the page before; unset for the first page."""
    limit: StrictInt | None = None
    """Most models on one page."""
    include_hidden: StrictBool | None = None
    """Also list models that clients do not offer. False when unset."""


class ModelListResponse(WireModel):
    data: list[Model]
    next_cursor: str | None = None
    """Null on the last page."""


class ModelRequestHint(WireModel):
    """Advice the host may ignore."""

    replay_safe: StrictBool
    """Sending the request again does no harm."""
    cache_prefix_items: StrictInt
    """How many leading items of `input` are worth caching."""


SegmentId: TypeAlias = str
"""One model call of a turn: `turnId:n`. The unit of single flight."""


ModelRequestPurpose: TypeAlias = Open[Literal["turn", "compaction", "review", "memory", "title"]]
"""The purpose of a model request. `memory` and `title` may run beside the others.
`turn`: A step of a turn.
`compaction`: Summing up the history.
`review`: A step of a review.
`memory`: Making memories.
`title`: Naming the thread.
"""


class StreamCredit(WireModel):
    """How much more the receiver takes."""

    events: StrictInt
    bytes: StrictInt


class ModelRequestParams(WireModel):
    """One model request, written by the runtime for the host to send."""

    thread_id: ThreadId
    turn_id: TurnId
    segment_id: SegmentId
    model_request_id: ModelRequestId
    attempt: StrictInt
    """Counts the attempts at this segment."""
    retry_of: ModelRequestId | None = None
    """The previous attempt at this segment."""
    agent_path: list[str]
    """From the root agent to the one that asks."""
    purpose: ModelRequestPurpose
    body: Any
    """A Responses create body. Never holds credentials, URLs or headers."""
    request_digest: str
    """SHA-256 of the canonical JSON (RFC 8785) of `body`. Differs when a replay is not of the same prompt."""
    tool_set_digest: str
    """Digest of the tools the body offers."""
    requires: list[str]
    """Features the body uses, such as `freeformTools` or `imageInput`."""
    window: StreamCredit
    """The credit this stream begins with."""
    deadline_ms: StrictInt | None = None
    """How long the whole request may take; no limit when unset."""
    hint: ModelRequestHint | None = None


class ModelRequestRejectedParams(WireModel):
    """A refusal found after the request was accepted and before its first event."""

    thread_id: ThreadId
    model_request_id: ModelRequestId
    error: ModelError


class ModelRequestRejectedResponse(WireModel):
    pass


class ModelRequestResponseAccepted(Variant):
    """The host carries the request."""

    disposition: Literal["accepted"] = "accepted"
    provider: str
    model: str
    """The model in fact used, where the host maps names."""
    replayed: StrictBool = False
    """The host answers from its record instead of calling the provider again."""


class ModelRequestResponseRejected(Variant):
    """The host does not carry the request."""

    disposition: Literal["rejected"] = "rejected"
    error: ModelError


class UnknownModelRequestResponse(UnknownVariant):
    """A `disposition` that this version does not know."""

    disposition: str


ModelRequestResponse: TypeAlias = Annotated[
    ModelRequestResponseAccepted | ModelRequestResponseRejected | UnknownModelRequestResponse,
    Tagged("disposition"),
]
"""Sent at once, before any event."""


ModelRerouteReason: TypeAlias = Open[Literal["highRiskCyberActivity"]]
"""Why another model answers.
`highRiskCyberActivity`: The provider took the task for a risky one in computer security.
"""


class ModelReroutedNotification(WireModel):
    """Sent when another model than the requested one answers, at most once a turn. The turn continues."""

    thread_id: ThreadId
    turn_id: TurnId
    from_model: str
    to_model: str
    reason: ModelRerouteReason


StreamAbortReason: TypeAlias = Open[
    Literal["canceled", "disconnected", "timeout", "budget", "hostShutdown", "protocolError"]
]
"""Why a stream ended early.
`canceled`: After `model/cancel`.
`disconnected`: The provider was lost.
`timeout`: The provider was too slow.
`budget`: The host's budget is spent.
`hostShutdown`: The host is going away.
`protocolError`: The provider sent something that makes no sense.
"""


class ModelStreamAbortedParams(WireModel):
    """The end of a stream that had no terminal event."""

    thread_id: ThreadId
    model_request_id: ModelRequestId
    seq: StrictInt
    """How many events were delivered."""
    reason: StreamAbortReason
    error: ModelError | None = None
    """Details of the failure, where there is more to say than `reason`."""
    usage: TokenUsageBreakdown | None = None
    """Tokens used up to then, where known."""
    replay_safe: StrictBool = False
    """Sending the request again does no harm."""


class ModelStreamAbortedResponse(WireModel):
    pass


class ModelStreamEventParams(WireModel):
    """A batch of stream events. Batches are contiguous; a batch that was already taken is acknowledged again."""

    thread_id: ThreadId
    model_request_id: ModelRequestId
    seq: StrictInt
    """Index of the first event of the batch, from 0."""
    events: list[Any]
    """Responses stream events as the provider sent them."""
    host_time_ms: StrictInt | None = None
    """When the host sent the batch, in Unix milliseconds. For measuring only."""


class ModelStreamEventResponse(WireModel):
    """Acknowledges a batch."""

    next_seq: StrictInt
    """The `seq` expected next."""
    credit: StreamCredit
    """How much more may be sent."""
    duplicate: StrictBool = False
    """The batch had been taken before."""


OperationState: TypeAlias = Open[Literal["started", "finished", "proposed", "decided", "unknown", "withdrawn"]]
"""How far an operation has come.
`proposed`: Not decided.
`decided`: Decided, not started.
`unknown`: Started before a crash and never seen to finish. Waits for `retry`, `respond` or `reject`.
`withdrawn`: Given up before it started.
"""


OperationType: TypeAlias = Open[
    Literal["command", "fileChange", "permission", "function", "mcp", "elicitation", "userInput", "delegation"]
]
"""The kind of an operation.
`function`: A tool the host runs.
`mcp`: A call to an MCP server.
`elicitation`: A question of an MCP server.
`userInput`: A question of the agent.
`delegation`: A child agent.
"""


class OperationDecisionApprove(Variant):
    """Run it."""

    type: Literal["approve"] = "approve"
    scope: DecisionScope | None = None
    """`call` when unset."""
    execpolicy_amendment: list[str] | None = None
    """Also save a rule that allows commands with this prefix, as the question offered it."""


class OperationDecisionReject(Variant):
    """Do not run it."""

    type: Literal["reject"] = "reject"
    message: str | None = None
    """Shown to the model."""
    end_turn: StrictBool = False
    """Also end the turn."""


class OperationDecisionReplace(Variant):
    """Run something else instead, which passes the policy and the sandbox again."""

    type: Literal["replace"] = "replace"
    command: list[str] | None = None
    """Program and arguments, for a command."""
    arguments: Any = None
    """For any other tool."""


class OperationDecisionRespond(Variant):
    """Run nothing and give this result."""

    type: Literal["respond"] = "respond"
    content_items: list[DynamicToolCallOutputContentItem]
    success: StrictBool
    """Whether the call counts as successful."""


class OperationDecisionRetry(Variant):
    """Run again; only for an unknown outcome."""

    type: Literal["retry"] = "retry"


class UnknownOperationDecision(UnknownVariant):
    """A `type` that this version does not know."""

    type: str


OperationDecision: TypeAlias = Annotated[
    OperationDecisionApprove
    | OperationDecisionReject
    | OperationDecisionReplace
    | OperationDecisionRespond
    | OperationDecisionRetry
    | UnknownOperationDecision,
    Tagged("type"),
]
"""The decision of a person or a policy."""


class StoredDecision(WireModel):
    """A decision as the host's store has it."""

    decision: OperationDecision
    by: str
    """The name the deciding connection has."""
    on_behalf_of: str | None = None
    """The name it gave for somebody else."""
    decided_at_ms: StrictInt
    """Unix milliseconds."""


class Operation(WireModel):
    """An operation as the host's store has it."""

    operation_id: OperationId
    thread_id: ThreadId
    task_id: ThreadId
    """The root of the task the thread belongs to."""
    state: OperationState
    type: OperationType
    tool: str
    """The tool's name, as the model knows it."""
    namespace: str | None = None
    item_id: ItemId
    agent_path: list[str]
    """From the root agent to the one that asks."""
    arguments: Any
    arguments_digest: str
    """To be repeated with the decision."""
    effects: ToolEffects
    available_decisions: list[str]
    """The decisions that can be carried out now; empty once it is decided."""
    reason: str | None = None
    """Why it waits, for display."""
    attempt: StrictInt
    """Attempts that were started so far."""
    decision: StoredDecision | None = None
    policy: str | None = None
    """The policy of the runtime that decided, as its record says: `policy:reviewer`. Unset where somebody else did."""
    unbacked_decision: StrictBool = False
    """The record of its runtime has a decision that neither anybody here nor a policy took."""
    changes: list[FileUpdateChange] | None = None
    """The changes of a patch. Unset for anything else, and beyond 1 MiB: then the item alone has them."""
    created_at_ms: StrictInt
    """Unix milliseconds."""
    updated_at_ms: StrictInt
    """Unix milliseconds."""


class OperationDecideParams(WireModel):
    """Decides an operation. The first decision counts, and is stored before the runtime hears of it. Works with no
    runtime
    alive: the host brings the task back and the turn goes on.
    """

    operation_id: OperationId
    arguments_digest: str
    """As the operation showed it; another one is refused with `digestMismatch`."""
    decision: OperationDecision
    on_behalf_of: str | None = None
    """Who in fact decided, where this client only passes it on."""


class OperationDecideResponse(WireModel):
    operation: Operation


class OperationListParams(WireModel):
    """Lists operations, the oldest first. Works with no runtime alive."""

    thread_id: ThreadId | None = None
    """Of this thread; of a root, with those of its children."""
    state: OperationState | None = None
    """Those that wait for a decision when unset."""
    cursor: str | None = None
    """From the page before."""
    limit: StrictInt | None = None
    """50 when unset."""


class OperationListResponse(WireModel):
    data: list[Operation]
    next_cursor: str | None = None
    """Null on the last page."""


class OperationResult(WireModel):
    """The result of an operation."""

    content_items: list[DynamicToolCallOutputContentItem]
    success: StrictBool


class OperationUpdatedNotification(WireModel):
    """Sent to followers of the task, and to connections that asked for all tasks, whenever an operation is proposed,
    decided
    or over.
    """

    operation: Operation


PendingOperationState: TypeAlias = Open[Literal["proposed", "decided", "unknown"]]
"""How far a waiting operation has come.
`proposed`: Not decided.
`decided`: Decided, not started.
`unknown`: Started and never seen to finish.
"""


class PendingOperation(WireModel):
    """An operation that still waits."""

    operation_id: OperationId
    turn_id: TurnId
    item_id: ItemId
    type: OperationType
    state: PendingOperationState
    tool: str
    """The tool's name, as the model knows it."""
    namespace: str | None = None
    agent_path: list[str]
    """From the root agent to the one that asks."""
    arguments: Any
    arguments_digest: str
    """To be repeated with the decision."""
    effects: ToolEffects = "once"
    """Whether it may run again, and with which consequence."""
    available_decisions: list[str]
    """The decisions that can be carried out."""
    reason: str | None = None
    """Why it waits, for display."""
    created_at_ms: StrictInt
    """Unix milliseconds."""


PermissionGrantScope: TypeAlias = Open[Literal["turn", "session"]]
"""How long a grant lasts.
`turn`: Until the turn ends.
`session`: For later turns too.
"""


class RequestPermissionProfile(WireModel):
    """The requested permissions. Null for none of that kind."""

    network: AdditionalNetworkPermissions | None = None
    file_system: AdditionalFileSystemPermissions | None = None


class PermissionsRequestApprovalParams(WireModel):
    """Asks for more access for the commands to come."""

    thread_id: ThreadId
    turn_id: TurnId
    item_id: ItemId
    """The model's call. No item is shown for it."""
    started_at_ms: StrictInt = 0
    """Unix milliseconds."""
    cwd: str = ""
    """The folder the agent works in."""
    reason: str | None = None
    """The agent's reason, for display."""
    permissions: RequestPermissionProfile
    operation_id: OperationId | None = None
    """The same when the request is sent again, also after a restart."""
    arguments_digest: str | None = None
    """Binds a decision to exactly what was shown."""


class PermissionsRequestApprovalResponse(WireModel):
    permissions: GrantedPermissionProfile
    scope: PermissionGrantScope = "turn"
    origin: DecisionOrigin | None = None
    """From a host alone: who decided."""


Personality: TypeAlias = Open[Literal["friendly", "pragmatic", "none"]]
"""The tone the agent takes.
`none`: No tone is asked for.
"""


class PlacementAbandonParams(WireModel):
    """Gives a placement up that cannot be reached: the next use makes it again, from the last snapshot or from its
    manifest.
    """

    placement_id: str


PlacementStatus: TypeAlias = Open[Literal["creating", "ready", "suspended", "lost"]]
"""How far a placement is.
`lost`: It is gone. The next use makes it again, from the last snapshot or from its manifest.
"""


PlacementSeparation: TypeAlias = Open[Literal["user", "none"]]
"""The barrier between the commands of a placement and its runtime.
`user`: Commands run under another user.
`none`: Nothing: a command can speak for the runtime, so approvals are advice.
"""


class PlacementInfo(WireModel):
    """A placement as the host's store has it."""

    id: str
    name: str
    """As it was asked for."""
    backend: str
    site: str
    """Only hosts that serve it can reach the placement."""
    status: PlacementStatus
    workspace: str | None = None
    """The workspace's path there; null until it is made."""
    snapshot: str | None = None
    """Digest of the last snapshot of the workspace."""
    snapshot_at_ms: StrictInt | None = None
    """Unix milliseconds."""
    separation: PlacementSeparation | None = None
    """Whether commands there run under another user than the runtime, so that none can speak for it. Null where the
    runtime's own sandbox keeps them apart, or before anything ran.
    """
    thread_ids: list[ThreadId]
    """The tasks that use it."""
    created_at_ms: StrictInt
    """Unix milliseconds."""
    used_at_ms: StrictInt
    """Unix milliseconds."""


class PlacementAbandonResponse(WireModel):
    placement: PlacementInfo


class PlacementSpec(WireModel):
    """A placement with a workspace of its own."""

    backend: str
    """As `placement` alone would be."""
    workspace: str | None = None
    """The workspace's path there."""
    manifest: Any = None
    """The content of the workspace: entries, environment, setup commands. docs/placements.md describes it."""


PlacementChoice: TypeAlias = Annotated[str | PlacementSpec, FIRST_MATCH]
"""Where a new thread's runtime runs: the name of a placement of the configuration, `BACKEND:WHAT` (`docker:debian:12`,
`podman:IMAGE`, `ssh:HOST`, `kubernetes:IMAGE`, `local`), or one of these with a workspace.
"""


class PlacementDeleteParams(WireModel):
    """Removes a placement that no task uses, with its workspace."""

    placement_id: str


class PlacementDeleteResponse(WireModel):
    pass


class PlacementGcParams(WireModel):
    """Removes placements that no task uses, and what the host made and no longer knows of."""

    dry_run: StrictBool = False
    """Only say what would be removed."""
    unused_for_seconds: StrictInt | None = None
    """Spares what was used within this time. The host's `--placement-ttl` when unset."""


class RemovedPlacement(WireModel):
    """Something that was removed, or would be."""

    id: str
    """Of a placement. For a snapshot that no placement has, the name of its file."""
    backend: str
    """`snapshot` for a snapshot."""
    problem: str | None = None
    """Why it could not be removed."""


class PlacementGcResponse(WireModel):
    data: list[RemovedPlacement]


class PlacementListParams(WireModel):
    """Lists the placements of a host, the oldest first."""


class PlacementListResponse(WireModel):
    data: list[PlacementInfo]


PlacementProgressStep: TypeAlias = Open[Literal["pulling", "creating", "staging", "workspace", "setup"]]


class PlacementProgressNotification(WireModel):
    """How far the making of a placement is. Sent to whoever starts the thread, its followers, and connections that
    asked for
    all tasks.
    """

    placement_id: str
    thread_id: ThreadId
    step: PlacementProgressStep
    done: StrictInt
    """Bytes, or commands of the setup."""
    total: StrictInt | None = None
    line: str | None = None
    """A line that a setup command printed."""


class PlacementReadParams(WireModel):
    placement_id: str


class PlacementReadResponse(WireModel):
    placement: PlacementInfo


class PlacementSnapshotParams(WireModel):
    """Keeps the workspace as it is now. A placement that is lost later is made again from there."""

    placement_id: str


class PlacementSnapshotResponse(WireModel):
    placement: PlacementInfo


class PlacementStatusChangedNotification(WireModel):
    """A placement was created, lost, suspended or resumed."""

    placement: PlacementInfo


class PlacementSuspendParams(WireModel):
    """Suspends the tasks of a placement, then frees what it need not hold. The next use wakes it."""

    placement_id: str


class PlacementSuspendResponse(WireModel):
    placement: PlacementInfo


class PlanDeltaNotification(WireModel):
    """Sent as a proposed plan grows."""

    thread_id: ThreadId
    turn_id: TurnId
    item_id: ItemId
    delta: str
    """To be appended to the text so far."""


PluginAuthPolicy: TypeAlias = Open[Literal["ON_INSTALL", "ON_USE"]]
"""When the user connects the plugin's apps."""


class PluginSourceLocal(Variant):
    type: Literal["local"] = "local"
    path: AbsolutePathBuf


class UnknownPluginSource(UnknownVariant):
    """A `type` that this version does not know."""

    type: str


PluginSource: TypeAlias = Annotated[PluginSourceLocal | UnknownPluginSource, Tagged("type")]
"""Where a plugin is copied from."""


PluginInstallPolicy: TypeAlias = Open[Literal["NOT_AVAILABLE", "AVAILABLE", "INSTALLED_BY_DEFAULT"]]
"""Whether a plugin can be installed."""


class PluginInterface(WireModel):
    """How to show a plugin."""

    display_name: str | None = None
    short_description: str | None = None
    long_description: str | None = None
    developer_name: str | None = None
    category: str | None = None
    capabilities: list[str]
    website_url: str | None = None
    privacy_policy_url: str | None = None
    terms_of_service_url: str | None = None
    default_prompt: list[str] | None = None
    """Prompts to suggest: at most three, of 128 characters each."""
    brand_color: str | None = None
    composer_icon: AbsolutePathBuf | None = None
    logo: AbsolutePathBuf | None = None
    screenshots: list[AbsolutePathBuf]


class PluginSummary(WireModel):
    """A plugin in brief."""

    id: str
    """`<plugin>@<marketplace>`."""
    name: str
    source: PluginSource
    installed: StrictBool
    enabled: StrictBool
    """As the user's config file says; project files have no say."""
    install_policy: PluginInstallPolicy
    auth_policy: PluginAuthPolicy
    interface: PluginInterface | None = None


class SkillInterface(WireModel):
    """How to show a skill."""

    display_name: str | None = None
    short_description: str | None = None
    icon_small: str | None = None
    """Path of an image."""
    icon_large: str | None = None
    """Path of an image."""
    brand_color: str | None = None
    """As `#RRGGBB`."""
    default_prompt: str | None = None
    """A prompt to suggest."""


class SkillSummary(WireModel):
    """A skill as part of a plugin."""

    name: str
    """`<plugin>:<skill>`."""
    description: str
    short_description: str | None = None
    interface: SkillInterface | None = None
    path: str
    """Its `SKILL.md`."""
    enabled: StrictBool


class PluginDetail(WireModel):
    """A plugin with all it contains."""

    marketplace_name: str
    marketplace_path: AbsolutePathBuf
    summary: PluginSummary
    description: str | None = None
    skills: list[SkillSummary]
    """Named `<plugin>:<skill>`."""
    apps: list[AppSummary]
    mcp_servers: list[str]
    """Names of its MCP servers."""


class PluginInstallParams(WireModel):
    """Copies a plugin into place and switches it on."""

    marketplace_path: AbsolutePathBuf
    """The marketplace's file, as in `plugin/list`."""
    plugin_name: str
    force_remote_sync: StrictBool = False
    """Switch it on at the remote service first."""


class PluginInstallResponse(WireModel):
    auth_policy: PluginAuthPolicy
    apps_needing_auth: list[AppSummary]
    """Apps the user still has to connect."""


class PluginListParams(WireModel):
    """Lists the plugins of every marketplace found. One that cannot be read does not hide the others."""

    cwds: list[AbsolutePathBuf] | None = None
    """Folders whose own marketplaces count too."""
    force_remote_sync: StrictBool = False
    """First bring the local state in line with the remote one."""


class PluginMarketplaceEntry(WireModel):
    """One marketplace with its plugins."""

    name: str
    path: AbsolutePathBuf
    """Its file."""
    interface: MarketplaceInterface | None = None
    plugins: list[PluginSummary]


class PluginListResponse(WireModel):
    marketplaces: list[PluginMarketplaceEntry]
    marketplace_load_errors: list[MarketplaceLoadErrorInfo] = []
    remote_sync_error: str | None = None
    """Set when the sync failed; the lists are then the local ones."""
    featured_plugin_ids: list[str] = []
    """Plugins to point out."""


class PluginReadParams(WireModel):
    """Reads one plugin with all it contains."""

    marketplace_path: AbsolutePathBuf
    """The marketplace's file, as in `plugin/list`."""
    plugin_name: str


class PluginReadResponse(WireModel):
    plugin: PluginDetail


class PluginUninstallParams(WireModel):
    """Removes a plugin. One that is not there is fine."""

    plugin_id: str
    """`<plugin>@<marketplace>`."""
    force_remote_sync: StrictBool = False
    """Remove it at the remote service first."""


class PluginUninstallResponse(WireModel):
    pass


class PromptPiece(WireModel):
    """One piece of a request."""

    role: str
    """`system`, `developer`, `user`, `assistant` or `tool`."""
    name: str
    text: str
    """Its beginning, where it is long."""
    bytes: StrictInt
    """The length of the whole text."""
    tokens: StrictInt
    """About how many tokens the whole text has."""
    is_message: StrictBool
    """Something that was said or done in the thread, which its name does not tell."""


class PromptPieces(WireModel):
    """The pieces of a request, in the order in which the model reads them."""

    instructions: list[PromptPiece]
    """The base instructions by section."""
    tools: list[PromptPiece]
    """The tools that are offered."""
    history: list[PromptPiece]
    """What was said and done before."""
    next: list[PromptPiece]
    """What the model is going to be told of its surroundings, before the user's words."""


class ProvidedTool(WireModel):
    """A tool that a connection runs for a thread."""

    name: str
    namespace: str | None = None
    """The group of the tool, if it has one."""
    schema_digest: str | None = None
    """Digest of the tool's input schema, in a form of the client's own. A connection that gives another one than the
    thread was started with is not called.
    """


class ReasoningItemReasoningSummarySummaryText(Variant):
    type: Literal["summary_text"] = "summary_text"
    text: str


class UnknownReasoningItemReasoningSummary(UnknownVariant):
    """A `type` that this version does not know."""

    type: str


ReasoningItemReasoningSummary: TypeAlias = Annotated[
    ReasoningItemReasoningSummarySummaryText | UnknownReasoningItemReasoningSummary,
    Tagged("type"),
]
"""A piece of a reasoning summary."""


class ReasoningItemContentReasoningText(Variant):
    type: Literal["reasoning_text"] = "reasoning_text"
    text: str


class ReasoningItemContentText(Variant):
    type: Literal["text"] = "text"
    text: str


class UnknownReasoningItemContent(UnknownVariant):
    """A `type` that this version does not know."""

    type: str


ReasoningItemContent: TypeAlias = Annotated[
    ReasoningItemContentReasoningText | ReasoningItemContentText | UnknownReasoningItemContent,
    Tagged("type"),
]
"""A piece of raw reasoning."""


class ResponsesApiWebSearchActionSearch(Variant):
    type: Literal["search"] = "search"
    queries: list[str] | None = None
    query: str | None = None


class ResponsesApiWebSearchActionOpenPage(Variant):
    type: Literal["open_page"] = "open_page"
    url: str | None = None


class ResponsesApiWebSearchActionFindInPage(Variant):
    type: Literal["find_in_page"] = "find_in_page"
    pattern: str | None = None
    url: str | None = None


class ResponsesApiWebSearchActionOther(Variant):
    """Something newer than this release."""

    type: Literal["other"] = "other"


class UnknownResponsesApiWebSearchAction(UnknownVariant):
    """A `type` that this version does not know."""

    type: str


ResponsesApiWebSearchAction: TypeAlias = Annotated[
    ResponsesApiWebSearchActionSearch
    | ResponsesApiWebSearchActionOpenPage
    | ResponsesApiWebSearchActionFindInPage
    | ResponsesApiWebSearchActionOther
    | UnknownResponsesApiWebSearchAction,
    Tagged("type"),
]
"""An action of a web search."""


class ResponseItemMessage(Variant):
    type: Literal["message"] = "message"
    id: str | None = None
    role: str
    """`user`, `assistant` or `developer`."""
    content: list[ContentItem]
    end_turn: Annotated[StrictBool | None, wire("end_turn")] = None
    phase: MessagePhase | None = None


class ResponseItemReasoning(Variant):
    type: Literal["reasoning"] = "reasoning"
    id: str | None = None
    summary: list[ReasoningItemReasoningSummary]
    content: list[ReasoningItemContent] | None = None
    encrypted_content: Annotated[str | None, wire("encrypted_content")] = None
    """Only the provider can read it; sent back unchanged."""


class ResponseItemLocalShellCall(Variant):
    """A call to the shell tool the provider defines."""

    type: Literal["local_shell_call"] = "local_shell_call"
    id: str | None = None
    call_id: Annotated[str | None, wire("call_id")] = None
    status: LocalShellStatus
    action: LocalShellAction


class ResponseItemFunctionCall(Variant):
    """A call to a tool that takes JSON."""

    type: Literal["function_call"] = "function_call"
    id: str | None = None
    name: str
    namespace: str | None = None
    arguments: str
    """JSON as text, as the model wrote it."""
    call_id: Annotated[str, wire("call_id")]
    """Ties the call to its output."""


class ResponseItemToolSearchCall(Variant):
    """A search for tools that were not offered at first."""

    type: Literal["tool_search_call"] = "tool_search_call"
    id: str | None = None
    call_id: Annotated[str | None, wire("call_id")] = None
    status: str | None = None
    execution: str
    """Who searches: `client` or `server`."""
    arguments: Any


class ResponseItemFunctionCallOutput(Variant):
    type: Literal["function_call_output"] = "function_call_output"
    call_id: Annotated[str, wire("call_id")]
    output: FunctionCallOutputBody


class ResponseItemCustomToolCall(Variant):
    """A call to a tool that takes plain text."""

    type: Literal["custom_tool_call"] = "custom_tool_call"
    id: str | None = None
    status: str | None = None
    call_id: Annotated[str, wire("call_id")]
    """Ties the call to its output."""
    name: str
    input: str


class ResponseItemCustomToolCallOutput(Variant):
    type: Literal["custom_tool_call_output"] = "custom_tool_call_output"
    call_id: Annotated[str, wire("call_id")]
    name: str | None = None
    output: FunctionCallOutputBody


class ResponseItemToolSearchOutput(Variant):
    type: Literal["tool_search_output"] = "tool_search_output"
    call_id: Annotated[str | None, wire("call_id")] = None
    status: str
    execution: str
    """Who searched: `client` or `server`."""
    tools: list[Any]
    """Definitions of the tools found."""


class ResponseItemWebSearchCall(Variant):
    """A search the provider ran."""

    type: Literal["web_search_call"] = "web_search_call"
    id: str | None = None
    status: str | None = None
    action: ResponsesApiWebSearchAction | None = None


class ResponseItemImageGenerationCall(Variant):
    """An image the provider made."""

    type: Literal["image_generation_call"] = "image_generation_call"
    id: str
    status: str
    revised_prompt: Annotated[str | None, wire("revised_prompt")] = None
    """The prompt the provider used instead of the model's."""
    result: str
    """The image in base64."""


class ResponseItemGhostSnapshot(Variant):
    """Kept in the record for undo; the model does not see it."""

    type: Literal["ghost_snapshot"] = "ghost_snapshot"
    ghost_commit: Annotated[GhostCommit, wire("ghost_commit")]


class ResponseItemCompaction(Variant):
    """A summary of earlier history, made by the provider."""

    type: Literal["compaction"] = "compaction"
    encrypted_content: Annotated[str, wire("encrypted_content")]
    """Only the provider can read it; sent back unchanged."""


class ResponseItemOther(Variant):
    """Something newer than this release."""

    type: Literal["other"] = "other"


class UnknownResponseItem(UnknownVariant):
    """A `type` that this version does not know."""

    type: str


ResponseItem: TypeAlias = Annotated[
    ResponseItemMessage
    | ResponseItemReasoning
    | ResponseItemLocalShellCall
    | ResponseItemFunctionCall
    | ResponseItemToolSearchCall
    | ResponseItemFunctionCallOutput
    | ResponseItemCustomToolCall
    | ResponseItemCustomToolCallOutput
    | ResponseItemToolSearchOutput
    | ResponseItemWebSearchCall
    | ResponseItemImageGenerationCall
    | ResponseItemGhostSnapshot
    | ResponseItemCompaction
    | ResponseItemOther
    | UnknownResponseItem,
    Tagged("type"),
]
"""One entry of what a model is sent and gives back. Field names are snake_case."""


class RawResponseItemCompletedNotification(WireModel):
    """Sent for each item the model gives, in threads started with `experimentalRawEvents`."""

    thread_id: ThreadId
    turn_id: TurnId
    item: ResponseItem


RealtimeConversationVersion: TypeAlias = Open[Literal["v1", "v2"]]
"""Which version of the remote service is spoken to."""


class ReasoningSummaryPartAddedNotification(WireModel):
    """Sent when a new part of a reasoning summary begins."""

    thread_id: ThreadId
    turn_id: TurnId
    item_id: ItemId
    summary_index: StrictInt
    """Position of the new part in the item's `summary`."""


class ReasoningSummaryTextDeltaNotification(WireModel):
    """Sent as a reasoning summary grows."""

    thread_id: ThreadId
    turn_id: TurnId
    item_id: ItemId
    delta: str
    """To be appended to that part of the summary."""
    summary_index: StrictInt
    """Position in the item's `summary`."""


class ReasoningTextDeltaNotification(WireModel):
    """Sent as raw reasoning grows, with models that show it."""

    thread_id: ThreadId
    turn_id: TurnId
    item_id: ItemId
    delta: str
    """To be appended to that part of the reasoning."""
    content_index: StrictInt
    """Position in the item's `content`."""


class ReplicaInfo(WireModel):
    """A host among those that share a store."""

    id: str
    is_this: StrictBool
    """The one that answers."""
    address: str
    """Where other hosts reach it; empty where none does."""
    sites: list[str]
    """The sites whose placements it reaches."""
    lease_ends_at_ms: StrictInt | None = None
    """Unix milliseconds by the clock of the store. Null where leases do not expire."""
    is_alive: StrictBool
    """Its lease holds."""
    tasks: StrictInt
    """How many tasks it owns."""


class ReplicaListParams(WireModel):
    """Lists the hosts that share a store."""


class ReplicaListResponse(WireModel):
    data: list[ReplicaInfo]


class ResolvedOperation(WireModel):
    """An operation that was decided or run while no runtime was alive."""

    operation_id: OperationId
    arguments_digest: str
    """Must match what the runtime proposed."""
    decision: OperationDecision | None = None
    """Either this or `result`."""
    result: OperationResult | None = None
    """Its result, if it was run."""
    by: str | None = None
    """Who decided. The record keeps it."""
    decided_at_ms: StrictInt | None = None
    """When, in Unix milliseconds. Now if unset."""


ReviewDelivery: TypeAlias = Open[Literal["inline", "detached"]]
"""Where a review runs.
`inline`: As a turn of the thread.
`detached`: In a new thread with a copy of the history.
"""


class ReviewTargetUncommittedChanges(Variant):
    """Staged, unstaged and untracked files."""

    type: Literal["uncommittedChanges"] = "uncommittedChanges"


class ReviewTargetBaseBranch(Variant):
    """The changes since the branch."""

    type: Literal["baseBranch"] = "baseBranch"
    branch: str


class ReviewTargetCommit(Variant):
    """One commit."""

    type: Literal["commit"] = "commit"
    sha: str
    title: str | None = None
    """Its subject, for display."""


class ReviewTargetCustom(Variant):
    """Whatever the instructions say."""

    type: Literal["custom"] = "custom"
    instructions: str


class UnknownReviewTarget(UnknownVariant):
    """A `type` that this version does not know."""

    type: str


ReviewTarget: TypeAlias = Annotated[
    ReviewTargetUncommittedChanges
    | ReviewTargetBaseBranch
    | ReviewTargetCommit
    | ReviewTargetCustom
    | UnknownReviewTarget,
    Tagged("type"),
]
"""The target of a review."""


class ReviewStartParams(WireModel):
    """Starts a review. An inline one interrupts the turn that runs."""

    thread_id: ThreadId
    target: ReviewTarget
    delivery: ReviewDelivery | None = None
    """`inline` when unset."""


TurnPlanStepStatus: TypeAlias = Open[Literal["pending", "inProgress", "completed"]]


class TurnPlanStep(WireModel):
    """One step of the agent's plan."""

    step: str
    status: TurnPlanStepStatus


class Turn(WireModel):
    """One piece of user input and all that came of it."""

    id: TurnId
    items: list[ThreadItem]
    """Filled where a thread comes with its history and by `review/start`; else empty, as items come in
    notifications.
    """
    status: TurnStatus
    error: TurnError | None = None
    """Set when `status` is `failed`."""
    started_at: StrictInt | None = None
    """Unix seconds."""
    completed_at: StrictInt | None = None
    """Unix seconds."""
    duration_ms: StrictInt | None = None
    """Null while the turn runs."""
    plan: list[TurnPlanStep] | None = None
    """The agent's plan as it last was, where a turn is read from its record."""


class ReviewStartResponse(WireModel):
    turn: Turn
    """Contains one user message that describes the subject of the review."""
    review_thread_id: ThreadId
    """The thread itself, or the new one of a detached review."""


class SessionMeta(WireModel):
    """Who a thread is: written once, first."""

    thread_id: ThreadId
    session_id: str
    created_at_ms: StrictInt
    cwd: str
    originator: str
    """The client that asked for the thread."""
    cli_version: str
    source: SessionSource
    model_provider: str
    model: str | None = None
    base_instructions: str | None = None
    """The instructions the thread was started with and keeps."""
    developer_instructions: str | None = None
    forked_from_id: ThreadId | None = None
    thread_source: str | None = None
    agent_nickname: str | None = None
    agent_role: str | None = None
    git_info: GitInfo | None = None
    dynamic_tools: list[DynamicToolSpec] | None = None
    memory_mode: str | None = None
    """`disabled` for a thread that leaves no memories."""


class ThreadTokenUsage(WireModel):
    """Tokens a thread has used."""

    total: TokenUsageBreakdown
    """Since the thread began."""
    last: TokenUsageBreakdown
    """By the latest model response."""
    model_context_window: StrictInt | None = None
    """In tokens; null when unknown."""


ThreadGoalStatus: TypeAlias = Open[Literal["active", "paused", "blocked", "usageLimited", "budgetLimited", "complete"]]
"""The status of the goal.
`active`: It is being worked on.
`paused`: It was put aside.
`blocked`: The agent cannot continue without help.
`usageLimited`: The account's usage limit stopped it.
`budgetLimited`: `tokenBudget` is spent.
`complete`: It is reached.
"""


class ThreadGoal(WireModel):
    """A thread's goal and what went into it so far."""

    thread_id: ThreadId
    objective: str
    """The objective, as a text for the agent."""
    status: ThreadGoalStatus
    token_budget: StrictInt | None = None
    """Null for no limit."""
    tokens_used: StrictInt
    time_used_seconds: StrictInt
    created_at: StrictInt
    """Unix seconds."""
    updated_at: StrictInt
    """Unix seconds."""


class ThreadMetadataChange(WireModel):
    """Missing keeps a fact, null clears it."""

    name: str | None = None
    git_info: GitInfo | None = None
    model: str | None = None
    reasoning_effort: ReasoningEffort | None = None
    goal: ThreadGoal | None = None
    """The thread's goal and its cost so far."""


class RolloutItemSessionMeta(Variant):
    """The thread's identity and first settings."""

    kind: Literal["sessionMeta"] = "sessionMeta"
    ordinal: StrictInt
    """Its position in the record. Never changes."""
    schema_: StrictInt = 1
    """Format of this kind of record. A reader refuses one newer than it knows."""
    meta: SessionMeta


class RolloutItemTurnContext(Variant):
    """The settings a turn runs with, from which its context is rebuilt."""

    kind: Literal["turnContext"] = "turnContext"
    ordinal: StrictInt
    """Its position in the record. Never changes."""
    schema_: StrictInt = 1
    """Format of this kind of record. A reader refuses one newer than it knows."""
    turn_id: TurnId
    context: Any


class RolloutItemTurnStarted(Variant):
    kind: Literal["turnStarted"] = "turnStarted"
    ordinal: StrictInt
    """Its position in the record. Never changes."""
    schema_: StrictInt = 1
    """Format of this kind of record. A reader refuses one newer than it knows."""
    turn_id: TurnId
    at_ms: StrictInt
    """Unix milliseconds."""


class RolloutItemResponseItem(Variant):
    """Something the model sees: input, output, reasoning, calls and their results."""

    kind: Literal["responseItem"] = "responseItem"
    ordinal: StrictInt
    """Its position in the record. Never changes."""
    schema_: StrictInt = 1
    """Format of this kind of record. A reader refuses one newer than it knows."""
    turn_id: TurnId | None = None
    """Null for what belongs to no turn."""
    item: ResponseItem


class RolloutItemThreadItem(Variant):
    """Something clients see."""

    kind: Literal["threadItem"] = "threadItem"
    ordinal: StrictInt
    """Its position in the record. Never changes."""
    schema_: StrictInt = 1
    """Format of this kind of record. A reader refuses one newer than it knows."""
    turn_id: TurnId
    item: ThreadItem


class RolloutItemCompacted(Variant):
    """Everything before is replaced by these items."""

    kind: Literal["compacted"] = "compacted"
    ordinal: StrictInt
    """Its position in the record. Never changes."""
    schema_: StrictInt = 1
    """Format of this kind of record. A reader refuses one newer than it knows."""
    turn_id: TurnId
    summary: str
    replacement: list[ResponseItem]


class RolloutItemTokenUsage(Variant):
    """Tokens used so far, after a model response."""

    kind: Literal["tokenUsage"] = "tokenUsage"
    ordinal: StrictInt
    """Its position in the record. Never changes."""
    schema_: StrictInt = 1
    """Format of this kind of record. A reader refuses one newer than it knows."""
    turn_id: TurnId
    usage: ThreadTokenUsage


class RolloutItemMetadata(Variant):
    """A change of the thread's metadata, not of its conversation."""

    kind: Literal["metadata"] = "metadata"
    ordinal: StrictInt
    """Its position in the record. Never changes."""
    schema_: StrictInt = 1
    """Format of this kind of record. A reader refuses one newer than it knows."""
    change: ThreadMetadataChange


class RolloutItemRolledBack(Variant):
    """The last turns no longer count."""

    kind: Literal["rolledBack"] = "rolledBack"
    ordinal: StrictInt
    """Its position in the record. Never changes."""
    schema_: StrictInt = 1
    """Format of this kind of record. A reader refuses one newer than it knows."""
    num_turns: StrictInt


class RolloutItemTurnEnded(Variant):
    kind: Literal["turnEnded"] = "turnEnded"
    ordinal: StrictInt
    """Its position in the record. Never changes."""
    schema_: StrictInt = 1
    """Format of this kind of record. A reader refuses one newer than it knows."""
    turn_id: TurnId
    status: TurnStatus
    error: TurnError | None = None
    """Set with the status `failed`."""
    at_ms: StrictInt
    """Unix milliseconds."""


class RolloutItemOperationProposed(Variant):
    """Asked for, not yet decided."""

    state: Literal["proposed"] = "proposed"
    ordinal: StrictInt
    """Its position in the record. Never changes."""
    schema_: StrictInt = 1
    """Format of this kind of record. A reader refuses one newer than it knows."""
    kind: Literal["operation"] = "operation"
    operation_id: OperationId
    type: OperationType
    tool: str
    """The tool's name, as the model knows it."""
    namespace: str | None = None
    item_id: ItemId
    agent_path: list[str]
    """From the root agent to the one that asks."""
    arguments: Any
    arguments_digest: str
    """Binds a decision to exactly these arguments."""
    effects: ToolEffects
    """Decides what happens when the outcome is unknown."""
    available_decisions: list[str] = []
    """The decisions that can be carried out."""
    reason: str | None = None
    """Why it waits, for display."""
    tool_set_digest: str | None = None
    """Digest of the tools the model was offered."""
    agent_digest: str | None = None
    """Digest of the agent's definition. After a change the operation has to be decided again."""
    session_keys: list[str] | None = None
    """Approved for the session, the operation is one with all others that have these keys only."""
    changes: list[FileUpdateChange] | None = None
    """The changes of a patch, for deciding it while no runtime is running. Unset beyond 1 MiB, and without a host."""
    created_at_ms: StrictInt
    """Unix milliseconds."""


class RolloutItemOperationDecided(Variant):
    """Decided once; a second, different decision is a conflict."""

    state: Literal["decided"] = "decided"
    ordinal: StrictInt
    """Its position in the record. Never changes."""
    schema_: StrictInt = 1
    """Format of this kind of record. A reader refuses one newer than it knows."""
    kind: Literal["operation"] = "operation"
    operation_id: OperationId
    decision: OperationDecision
    attempt: StrictInt | None = None
    """The attempt this decision is about, where an unknown outcome was decided anew."""
    by: str | None = None
    """Who decided: the name a host gave, such as `user:ana`, or `policy:NAME` for a policy of the runtime."""
    arguments_digest: str
    """Must be the proposed one."""
    session_keys: list[str] | None = None
    """Approved for the session, also by the next runtime: operations with these keys are not asked about again."""
    decided_at_ms: StrictInt
    """Unix milliseconds."""


class RolloutItemOperationStarted(Variant):
    """Written before the effect. Without `finished` after a crash, the outcome is unknown."""

    state: Literal["started"] = "started"
    ordinal: StrictInt
    """Its position in the record. Never changes."""
    schema_: StrictInt = 1
    """Format of this kind of record. A reader refuses one newer than it knows."""
    kind: Literal["operation"] = "operation"
    operation_id: OperationId
    attempt: StrictInt
    """From 1."""
    executor: str
    """Who performs the effect: the host for its own tools and children, else the runtime."""
    epoch: StrictInt | None = None
    """The executor's lease. A stale one can start nothing."""


class RolloutItemOperationFinished(Variant):
    """Over, with its output."""

    state: Literal["finished"] = "finished"
    ordinal: StrictInt
    """Its position in the record. Never changes."""
    schema_: StrictInt = 1
    """Format of this kind of record. A reader refuses one newer than it knows."""
    kind: Literal["operation"] = "operation"
    operation_id: OperationId
    attempt: StrictInt
    """The attempt that was started."""
    success: StrictBool
    output: list[DynamicToolCallOutputContentItem]
    output_digest: str | None = None


class RolloutItemOperationUnknown(Variant):
    """Started before a crash and never seen to finish. Not run again by itself."""

    state: Literal["unknown"] = "unknown"
    ordinal: StrictInt
    """Its position in the record. Never changes."""
    schema_: StrictInt = 1
    """Format of this kind of record. A reader refuses one newer than it knows."""
    kind: Literal["operation"] = "operation"
    operation_id: OperationId
    attempt: StrictInt
    """The attempt that was started."""


class RolloutItemOperationWithdrawn(Variant):
    """Given up before it started."""

    state: Literal["withdrawn"] = "withdrawn"
    ordinal: StrictInt
    """Its position in the record. Never changes."""
    schema_: StrictInt = 1
    """Format of this kind of record. A reader refuses one newer than it knows."""
    kind: Literal["operation"] = "operation"
    operation_id: OperationId
    reason: str | None = None


class UnknownRolloutItemOperation(UnknownVariant):
    """A `state` that this version does not know."""

    state: str
    kind: Literal["operation"] = "operation"


RolloutItemOperation: TypeAlias = Annotated[
    RolloutItemOperationProposed
    | RolloutItemOperationDecided
    | RolloutItemOperationStarted
    | RolloutItemOperationFinished
    | RolloutItemOperationUnknown
    | RolloutItemOperationWithdrawn
    | UnknownRolloutItemOperation,
    Tagged("state"),
]
"""A step in the life of an operation."""


class UnknownRolloutItem(UnknownVariant):
    """A `kind` that this version does not know."""

    kind: str


RolloutItem: TypeAlias = Annotated[
    RolloutItemSessionMeta
    | RolloutItemTurnContext
    | RolloutItemTurnStarted
    | RolloutItemResponseItem
    | RolloutItemThreadItem
    | RolloutItemCompacted
    | RolloutItemTokenUsage
    | RolloutItemMetadata
    | RolloutItemRolledBack
    | RolloutItemTurnEnded
    | RolloutItemOperation
    | UnknownRolloutItem,
    Tagged("kind"),
]
"""One record with its place in the thread."""


RolloutBarrier: TypeAlias = Open[Literal["operationProposed", "operationStarted", "operationFinished", "userInput"]]
"""The step that waits for the append to be committed.
`operationProposed`: The request for a decision.
`operationStarted`: The effect.
`operationFinished`: The next model request.
`userInput`: The start of the turn.
"""


class RolloutAppendParams(WireModel):
    """Gives the host records to commit. Sent only when the client owns the record."""

    thread_id: ThreadId
    host_epoch: StrictInt
    """The lease the runtime works under. A stale one is refused with `fenced`, and the runtime stops."""
    from_ordinal: StrictInt
    """Ordinal of the first item. Must be the store's next, or the append is refused with `ordinalConflict`."""
    items: list[RolloutItem]
    barrier: RolloutBarrier | None = None
    """Set when the runtime waits for this append before it continues."""


class RolloutAppendResponse(WireModel):
    """Sent when the host's store has committed."""

    next_ordinal: StrictInt
    """The first one that is free now."""
    valid_for_ms: StrictInt | None = None
    """Milliseconds that were left of the host's lease when the append arrived. The effect behind the barrier may begin
    only within that time of sending the append.
    """


class RolloutLoadParams(WireModel):
    """Uploads one part of a history announced by `initialItemsRef`."""

    thread_id: ThreadId
    part: StrictInt
    """From 0."""
    items: list[RolloutItem]


class RolloutLoadResponse(WireModel):
    received: StrictInt
    """How many parts have arrived."""


RolloutOwnership: TypeAlias = Open[Literal["server", "client"]]
"""Who keeps the authoritative record.
`server`: The runtime, in a file.
`client`: The host, which gets it by `rollout/append`.
"""


SandboxStatusLevel: TypeAlias = Open[Literal["full", "landlockOnly", "none"]]
"""From the strongest to none.
`full`: Every layer was tried and works.
`landlockOnly`: Files are not hidden, and processes are not kept apart.
`none`: Commands that ask for a sandbox are refused.
"""


class SandboxStatus(WireModel):
    """The sandbox of commands on the machine that the server runs on."""

    level: SandboxStatusLevel
    reason: str | None = None
    """Why it is not the full one."""


class SdkDelegationConfig(WireModel):
    """The bridge: model requests of one thread go to an endpoint the host runs."""

    bridge_url: str
    """Base URL of the host's Responses endpoint, absolute, http or https."""
    model_provider_id: str | None = None
    """The provider id registered for this thread; `codex-sdk-v2` when unset."""
    stream_idle_timeout_ms: StrictInt | None = None
    """How long a stream may be silent before it counts as broken."""


class SdkDelegationConfiguredNotification(WireModel):
    """Sent after `thread/started`, once the thread's provider points at the bridge."""

    thread_id: ThreadId
    model_provider: str
    """The provider id registered for this thread."""
    bridge_url: str


ServerKind: TypeAlias = Open[Literal["appServer", "host"]]
"""The kind of program that answers."""


class ServerRequestResolvedNotification(WireModel):
    """Sent once for every approval, question and elicitation: when it is answered, or when the start or end of a
    turn withdraws it. Comes before the item events the answer causes. Not sent for `item/tool/call` or token
    refreshes.
    """

    thread_id: ThreadId
    request_id: RequestId
    """The `id` of the server's request."""
    reason: str | None = None
    """`suspended` when the turn was suspended with the request still open."""


class ServerStatusResponse(WireModel):
    """An app-server or a host at one moment."""

    kind: ServerKind
    version: str
    process_id: StrictInt
    uptime_seconds: StrictInt
    is_stopping: StrictBool
    """It was asked to stop: turns that run may end, and no new one begins."""
    connections: StrictInt
    """Open now, the one that asks among them."""
    threads_loaded: StrictInt
    """In memory; at a host, those that have a runtime."""
    turns_running: StrictInt
    waiting: StrictInt
    """Approvals and questions without an answer."""
    oldest_waiting_ms: StrictInt | None = None
    """The age of the oldest of them, where it is known."""
    memory_bytes: StrictInt | None = None
    """Of this process alone, without its commands and runtimes. Null where the system does not tell."""
    sandbox: SandboxStatus
    host: HostStatus | None = None
    """Null at an app-server."""


class SkillToolDependency(WireModel):
    """A tool a skill needs."""

    type: str
    """The kind of tool."""
    value: str
    """The tool's name."""
    description: str | None = None
    transport: str | None = None
    """How an MCP server is reached."""
    command: str | None = None
    """The command that starts an MCP server."""
    url: str | None = None
    """Where an MCP server is."""


class SkillDependencies(WireModel):
    """The dependencies of a skill."""

    tools: list[SkillToolDependency]


class SkillErrorInfo(WireModel):
    """A skill that could not be read."""

    path: str
    message: str


SkillScope: TypeAlias = Open[Literal["user", "repo", "system", "admin"]]
"""The level that a skill belongs to.
`user`: The user's, or a plugin's.
`repo`: The project's.
`system`: Comes with the server.
`admin`: The machine's.
"""


class SkillMetadata(WireModel):
    """One skill."""

    name: str
    """At most 64 characters; not always unique."""
    description: str
    """For the model to tell when to use it. At most 1,024 characters."""
    short_description: str | None = None
    interface: SkillInterface | None = None
    dependencies: SkillDependencies | None = None
    path: str
    """Its `SKILL.md`."""
    scope: SkillScope
    enabled: StrictBool
    """False when config switches it off."""


class SkillsChangedNotification(WireModel):
    """Sent when skill files changed on disk. `skills/list` tells how."""


class SkillsConfigWriteParams(WireModel):
    """Switches a skill on or off in the user's config file. Takes either `path` or `name`."""

    path: AbsolutePathBuf | None = None
    """Its `SKILL.md`."""
    name: str | None = None
    enabled: StrictBool


class SkillsConfigWriteResponse(WireModel):
    effective_enabled: StrictBool
    """Whether the skill is enabled after the write."""


class SkillsListEntry(WireModel):
    """The skills of one working directory."""

    cwd: str
    skills: list[SkillMetadata]
    """Those of the project first, then the user's, the system's and the machine's; by name in each."""
    errors: list[SkillErrorInfo]


class SkillsListExtraRootsForCwd(WireModel):
    """More folders to search for one working directory."""

    cwd: str
    """One of `cwds`; otherwise this entry is ignored."""
    extra_user_roots: list[str]
    """Absolute paths. Skills found there have the scope `user`."""


class SkillsListParams(WireModel):
    """Lists the skills for each working directory."""

    cwds: list[str] = []
    """The server's own when empty."""
    force_reload: StrictBool = False
    """Read from disk again instead of using what was found before."""
    per_cwd_extra_user_roots: list[SkillsListExtraRootsForCwd] | None = None
    placement_id: str | None = None
    """The placement in which it is carried out; the host's own machine when unset. Only a host has placements."""


class SkillsListResponse(WireModel):
    data: list[SkillsListEntry]


SortDirection: TypeAlias = Open[Literal["asc", "desc"]]


SubagentPlacement: TypeAlias = Open[Literal["runtime", "host"]]
"""Who decides where child agents run."""


TaskStatus: TypeAlias = Open[
    Literal["running", "creating", "queued", "idle", "waiting", "waitingForCarrier", "suspended", "failed"]
]
"""How far a task has come.
`creating`: Its runtime starts for the first time.
`queued`: Waits for room among the running ones.
`idle`: No turn runs.
`waiting`: Its turn waits for a decision.
`waitingForCarrier`: Its turn waits for a client that carries its model requests.
`suspended`: Its turn waits, and no process is kept for it.
`failed`: Its runtime could not be brought back. `task/resume` tries again.
"""


class Task(WireModel):
    """A root thread with its children, or one of these, as the host's store has it."""

    id: ThreadId
    parent_id: ThreadId | None = None
    """The thread that started it; null for a task."""
    children: StrictInt
    """How many threads it has beside its root, its agents with theirs; 0 for a child."""
    name: str | None = None
    preview: str
    """Text of the first user message; empty until there is one."""
    state: TaskStatus
    has_runtime: StrictBool
    """A runtime process holds the thread now."""
    cwd: str | None = None
    model: str | None = None
    """As it was last opened; null before that, and for a child."""
    placement_id: str | None = None
    """Null where it works on the host's own machine, in its `cwd`."""
    labels: dict[str, str]
    agent: str | None = None
    """The name of the agent: the `threadSource` that the task was started with, or the nickname of a child."""
    agent_digest: str | None = None
    """The definition of the agent, as named when the task was last opened."""
    is_archived: StrictBool
    epoch: StrictInt
    """The host's lease: greater after each restart of the host."""
    waiting_operations: StrictInt
    """Operations that wait for a decision."""
    last_turn: LastTurn | None = None
    """How its last turn ended; unset before one did."""
    created_at_ms: StrictInt
    """Unix milliseconds."""
    updated_at_ms: StrictInt
    """Unix milliseconds."""


class TaskBudget(WireModel):
    """How much a task may use. Beyond it, its model requests are refused."""

    usd: Number | None = None
    """By the host's table of prices, in US dollars or whatever it counts in."""
    tokens: StrictInt | None = None
    """Input and output together."""


class TaskDeleteParams(WireModel):
    """Removes a task with its records, for good."""

    thread_id: ThreadId


class TaskDeleteResponse(WireModel):
    pass


class TaskListParams(WireModel):
    """Lists tasks, the last changed first."""

    children_of: ThreadId | None = None
    """The children of this task, instead of tasks."""
    state: TaskStatus | None = None
    labels: dict[str, str] | None = None
    """Tasks that have all of these."""
    archived: StrictBool = False
    cursor: str | None = None
    """From the page before."""
    limit: StrictInt | None = None
    """50 when unset."""


class TaskListResponse(WireModel):
    data: list[Task]
    next_cursor: str | None = None
    """Null on the last page."""


class TaskReadParams(WireModel):
    thread_id: ThreadId


class TaskReadResponse(WireModel):
    task: Task
    operations: list[Operation]
    """Those that wait for a decision."""


class TaskResumeParams(WireModel):
    """Starts a runtime for a task; an unfinished turn continues."""

    thread_id: ThreadId


class TaskResumeResponse(WireModel):
    task: Task


class TaskSuspendParams(WireModel):
    """Ends the runtime of a task and leaves its turn where it is."""

    thread_id: ThreadId


class TaskSuspendResponse(WireModel):
    task: Task


class TaskUpdatedNotification(WireModel):
    """A task is in another state than before. Only for connections that follow all tasks."""

    task: Task


class TerminalInteractionNotification(WireModel):
    """Sent when the agent types into a running terminal."""

    thread_id: ThreadId
    turn_id: TurnId
    item_id: ItemId
    process_id: str
    """The terminal, as in the command item."""
    stdin: str
    """The typed text."""


ThreadActiveFlag: TypeAlias = Open[Literal["waitingOnApproval", "waitingOnUserInput"]]
"""The kind of answer an active thread waits for.
`waitingOnApproval`: An approval, a permission, or the answer to an MCP server's question.
`waitingOnUserInput`: The answer to a question of the agent.
"""


class ThreadStatusNotLoaded(Variant):
    """Stored only; `thread/resume` loads it."""

    type: Literal["notLoaded"] = "notLoaded"


class ThreadStatusIdle(Variant):
    """In memory, with no turn running."""

    type: Literal["idle"] = "idle"


class ThreadStatusSystemError(Variant):
    """Something went wrong. Stays so until the next turn begins."""

    type: Literal["systemError"] = "systemError"


class ThreadStatusActive(Variant):
    """A turn runs or a request waits."""

    type: Literal["active"] = "active"
    active_flags: list[ThreadActiveFlag]
    """Empty when it waits for nothing."""


class UnknownThreadStatus(UnknownVariant):
    """A `type` that this version does not know."""

    type: str


ThreadStatus: TypeAlias = Annotated[
    ThreadStatusNotLoaded | ThreadStatusIdle | ThreadStatusSystemError | ThreadStatusActive | UnknownThreadStatus,
    Tagged("type"),
]
"""The status of a thread."""


class Thread(WireModel):
    """A conversation with the agent."""

    id: ThreadId
    session_id: str = ""
    """Shared by a thread and its children."""
    forked_from_id: ThreadId | None = None
    """The thread whose history this one began with."""
    preview: str
    """Text of the first user message; empty until there is one."""
    ephemeral: StrictBool
    """Kept in memory only and never listed."""
    project_id: str | None = None
    model_provider: str
    """Id of the provider."""
    created_at: StrictInt
    """Unix seconds."""
    updated_at: StrictInt
    """Unix seconds."""
    status: ThreadStatus
    path: str | None = None
    """The record's file; null for an ephemeral thread. The file is written from the first user message on."""
    cwd: str
    cli_version: str
    """The version that made the thread."""
    source: SessionSource
    thread_source: str | None = None
    """A word of the client's own for where the thread came from."""
    agent_nickname: str | None = None
    """Set for a child another agent spawned."""
    agent_role: str | None = None
    """Set for a child another agent spawned."""
    git_info: GitInfo | None = None
    name: str | None = None
    """Null until `thread/name/set` gives one."""
    turns: list[Turn]
    """Oldest first. Filled by `thread/read` with `includeTurns`, `thread/resume`, `thread/fork` and its
    `thread/started`, and `thread/rollback`; else empty.
    """


class ThreadArchiveParams(WireModel):
    """Unloads a thread, ends all subscriptions to it and moves its record to the archive."""

    thread_id: ThreadId


class ThreadArchiveResponse(WireModel):
    pass


class ThreadArchivedNotification(WireModel):
    """Sent to all connections when a thread was moved to the archive."""

    thread_id: ThreadId


class ThreadBackgroundTerminalsCleanParams(WireModel):
    """Ends the terminals that outlived their turns."""

    thread_id: ThreadId


class ThreadBackgroundTerminalsCleanResponse(WireModel):
    pass


class ThreadClosedNotification(WireModel):
    """Sent to all connections when a thread is no longer in memory."""

    thread_id: ThreadId


class ThreadCompactStartParams(WireModel):
    """Starts a turn that replaces the history by a summary. Interrupts the turn that runs."""

    thread_id: ThreadId


class ThreadCompactStartResponse(WireModel):
    pass


class ThreadDecision(WireModel):
    """A decision about something that a thread did."""

    operation_id: OperationId
    item_id: ItemId
    decision: StoredDecision | None = None
    """Null where nobody here decided: then `policy` or `unbackedDecision` is set."""
    policy: str | None = None
    """The policy of the runtime that decided, as its record says."""
    unbacked_decision: StrictBool = False
    """The record of its runtime has a decision that neither anybody here nor a policy took."""


class ThreadDecrementElicitationParams(WireModel):
    """Counts one such question less. Fails when none is open."""

    thread_id: ThreadId


class ThreadDecrementElicitationResponse(WireModel):
    count: StrictInt
    """Questions still open."""
    paused: StrictBool
    """Whether command timeouts stand still."""


class ThreadDelegation(WireModel):
    """Who carries this thread's model requests, and how. At `oarlock host`, `mode` `full` makes the connection the one
    that
    carries those of the task, and `direct` gives them back to the host's own provider; beside `mode`, `version` and
    `provider`, a host takes none of the fields.
    """

    mode: DelegationMode = "direct"
    version: StrictInt
    """Must equal the version agreed in `initialize`."""
    provider: DelegatedProvider | None = None
    stream: DelegatedStream | None = None
    subagents: SubagentPlacement | None = None
    host_epoch: StrictInt | None = None
    """Fencing token of the host's lease. Must not be lower than any seen for this thread."""


class ThreadDeleteParams(WireModel):
    """Deletes the record of a thread and of all threads that its agents started. Refused while a turn runs in it, or
    while
    another process has one of them open.
    """

    thread_id: ThreadId


class ThreadDeleteResponse(WireModel):
    deleted_thread_ids: list[ThreadId]
    """The thread, and then the threads below it."""


class ThreadDeletedNotification(WireModel):
    """Sent to all connections when a thread was deleted for good."""

    thread_id: ThreadId


class ThreadEnvironmentConnectedNotification(WireModel):
    """Sent when an environment of the thread can be used. The next model request sees it."""

    thread_id: ThreadId
    environment_id: EnvironmentId


class ThreadEnvironmentDisconnectedNotification(WireModel):
    """Sent when an environment of the thread can no longer be used."""

    thread_id: ThreadId
    environment_id: EnvironmentId
    reason: str | None = None


class ThreadForkParams(WireModel):
    """Starts a thread with a copy of another's history and subscribes the caller to it. A turn still running in
    the other is cut off in the copy. The name is not copied.
    """

    thread_id: ThreadId
    """The thread to copy from. Not used when `path` is given."""
    path: str | None = None
    """The record's file to copy from. Wins over `threadId`."""
    model: str | None = None
    model_provider: str | None = None
    """Id of a configured provider."""
    service_tier: ServiceTier | None = None
    """Missing keeps the tier, null clears it."""
    cwd: str | None = None
    approval_policy: AskForApproval | None = None
    approvals_reviewer: ApprovalsReviewer | None = None
    sandbox: SandboxMode | None = None
    config: dict[str, Any] | None = None
    """Configuration for this thread by dotted key: over the files, under the other fields here. Unknown keys
    are accepted.
    """
    base_instructions: str | None = None
    """Replaces the built-in instructions."""
    developer_instructions: str | None = None
    """Adds to the built-in instructions."""
    ephemeral: StrictBool = False
    """Keep the copy in memory only."""
    persist_extended_history: StrictBool = False
    """Record tool items too. Without it, those of the other thread are not copied."""
    delegation: ThreadDelegation | None = None
    rollout_ownership: RolloutOwnership | None = None
    """`server` when unset."""
    initial_items: list[RolloutItem] | None = None
    """The exact history. Not together with `turnHistory`."""
    turn_history: list[Turn] | None = None
    """A display-level history, for when the exact one is gone."""
    initial_items_ref: InitialItemsRef | None = None
    """The exact history follows by `rollout/load`."""
    resolved_operations: list[ResolvedOperation] | None = None
    """Decisions made while no runtime was alive."""
    resume_turn: StrictBool = False
    """Continue the unfinished turn instead of marking it interrupted."""
    tool_set: ToolSet | None = None
    thread_source: str | None = None
    """A word of the client's own for where the thread came from."""
    exclude_turns: StrictBool = False
    """Answer without the turns."""


class ThreadForkResponse(WireModel):
    """The copy with its turns and the settings it starts with."""

    thread: Thread
    """Also sent as `thread/started`, except by `thread/resume`."""
    model: str
    model_provider: str
    """Id of the provider."""
    service_tier: ServiceTier | None = None
    cwd: str
    approval_policy: AskForApproval
    approvals_reviewer: ApprovalsReviewer
    sandbox: SandboxPolicy
    """The sandbox in full."""
    reasoning_effort: ReasoningEffort | None = None
    """Null for the model's default."""
    delegation: ThreadDelegation | None = None
    """The effective values of what the host asked for. The host compares them and closes the thread
    on a difference.
    """
    rollout_ownership: RolloutOwnership | None = None
    fidelity: HistoryFidelity | None = None
    """Set when the request contained a history."""
    rebuilt: list[str] | None = None
    """The parts that the runtime rebuilt from a lossy history."""
    rollout_ordinal: StrictInt | None = None
    """The next ordinal to be written."""
    items_digest: str | None = None
    """Digest of the history in the request, which is not sent back."""
    effective_tools: list[EffectiveTool] | None = None
    """The tools the model is offered."""
    tool_set_digest: str | None = None
    """Digest of `effectiveTools`; repeated in each model request."""
    pending_operations: list[PendingOperation] | None = None
    """Operations that wait for the host."""


ThreadGoalMutationOrigin: TypeAlias = Open[Literal["user", "automatic"]]
"""Who changed the goal.
`user`: The user asked for it.
`automatic`: It happened by itself.
"""


class ThreadGoalClearParams(WireModel):
    """Removes the goal."""

    thread_id: ThreadId
    origin: ThreadGoalMutationOrigin | None = None


class ThreadGoalClearResponse(WireModel):
    cleared: StrictBool
    """Whether there was a goal to remove."""


class ThreadGoalClearedNotification(WireModel):
    """Sent when a goal is removed."""

    thread_id: ThreadId


class ThreadGoalGetParams(WireModel):
    """Reads the goal."""

    thread_id: ThreadId


class ThreadGoalGetResponse(WireModel):
    goal: ThreadGoal | None = None
    """Null when there is none."""


class ThreadGoalSetParams(WireModel):
    """Sets a goal or changes the one there is. An unset field keeps its value."""

    thread_id: ThreadId
    origin: ThreadGoalMutationOrigin | None = None
    objective: str | None = None
    status: ThreadGoalStatus | None = None
    token_budget: StrictInt | None = None
    """Missing keeps the budget, null removes it."""


class ThreadGoalSetResponse(WireModel):
    goal: ThreadGoal


class ThreadGoalUpdatedNotification(WireModel):
    """Sent when a goal is set or changes."""

    thread_id: ThreadId
    turn_id: TurnId | None = None
    """The turn in which it changed; null outside any turn."""
    goal: ThreadGoal


class ThreadIncrementElicitationParams(WireModel):
    """Counts one more question the client puts to the user outside the protocol. Command timeouts stand still
    while any is open.
    """

    thread_id: ThreadId


class ThreadIncrementElicitationResponse(WireModel):
    count: StrictInt
    """Questions open now."""
    paused: StrictBool
    """Whether command timeouts stand still."""


class ThreadItemEntry(WireModel):
    """An item and the turn it belongs to."""

    turn_id: TurnId
    item: ThreadItem


class ThreadItemsListParams(WireModel):
    """Lists the items of a thread, or of one of its turns."""

    thread_id: ThreadId
    turn_id: TurnId | None = None
    """Only items of this turn."""
    cursor: str | None = None
    """`nextCursor` of the page before; unset for the first page. `backwardsCursor` goes the other way."""
    limit: StrictInt | None = None
    """Most items on one page: 25 when unset, never more than 100."""
    sort_direction: SortDirection | None = None
    """Newest first when unset."""


class ThreadItemsListResponse(WireModel):
    data: list[ThreadItemEntry]
    next_cursor: str | None = None
    """Null on the last page."""
    backwards_cursor: str | None = None
    """For the other `sortDirection`: begins with the first item of this page. Null when the page is empty."""


ThreadSortKey: TypeAlias = Open[Literal["created_at", "updated_at", "recency_at", "section_position"]]
"""The sort key of a list of threads.
`recency_at`: The same as `updated_at` here.
`section_position`: Sections are the client's own: the same as `updated_at` here.
"""


ThreadSourceKind: TypeAlias = Open[
    Literal[
        "cli",
        "vscode",
        "exec",
        "appServer",
        "subAgentReview",
        "subAgentCompact",
        "subAgentOther",
        "unknown",
        "subAgent",
        "subAgentThreadSpawn",
    ]
]
"""Kinds of `source` to filter by.
`subAgent`: A child agent of any kind.
`subAgentThreadSpawn`: A child another agent spawned.
"""


class ThreadListParams(WireModel):
    """Lists stored threads, a page at a time."""

    cursor: str | None = None
    """`nextCursor` of the page before; unset for the first page."""
    limit: StrictInt | None = None
    """Most threads on one page: 25 when unset, never more than 100."""
    sort_key: ThreadSortKey | None = None
    """`created_at` when unset."""
    sort_direction: SortDirection | None = None
    """Newest first when unset."""
    model_providers: list[str] | None = None
    """Only threads of these providers. Unset means the current one, an empty list means all."""
    source_kinds: list[ThreadSourceKind] | None = None
    """Only threads of these kinds. Unset or empty means those a user started by hand."""
    archived: StrictBool | None = None
    """List the archive instead. False when unset."""
    cwd: str | list[str] | None = None
    """Exact match."""
    search_term: str | None = None
    """Only threads whose first user message contains this. Case counts."""


class ThreadListResponse(WireModel):
    data: list[Thread]
    """Without turns. Loaded threads have their live status."""
    next_cursor: str | None = None
    """Null on the last page."""


class ThreadLoadedListParams(WireModel):
    """Lists the ids of the threads in memory."""

    cursor: str | None = None
    """`nextCursor` of the page before; unset for the first page."""
    limit: StrictInt | None = None
    """Most ids on one page; all when unset."""


class ThreadLoadedListResponse(WireModel):
    data: list[str]
    """Thread ids, ascending."""
    next_cursor: str | None = None
    """Null on the last page."""


class ThreadMetadataGitInfoUpdateParams(WireModel):
    """Missing keeps a fact, null clears it. At least one must be there."""

    sha: str | None = None
    branch: str | None = None
    origin_url: str | None = None


class ThreadMetadataUpdateParams(WireModel):
    """Changes what is stored about a thread, loaded, unloaded or archived. Not for ephemeral ones."""

    thread_id: ThreadId
    git_info: ThreadMetadataGitInfoUpdateParams | None = None


class ThreadMetadataUpdateResponse(WireModel):
    thread: Thread
    """Without turns."""


class ThreadNameUpdatedNotification(WireModel):
    """Sent to all connections when a thread has a new name."""

    thread_id: ThreadId
    thread_name: str | None = None


class ThreadPromptReadParams(WireModel):
    """Describes the next request of a thread, as `oarlock debug prompt` does. Nothing is asked or recorded."""

    thread_id: ThreadId
    history_limit: StrictInt | None = None
    """Most pieces of the history, the newest: 100 when unset, never more than 1,000."""


class ThreadPromptReadResponse(WireModel):
    model: str
    model_provider: str
    cwd: str
    context_window: StrictInt | None = None
    """Tokens that the model has room for. Null where unknown."""
    tokens: StrictInt
    """About how many tokens all of it has, with the pieces that are left out."""
    omitted_history: StrictInt
    """Pieces of the history before the first that is given."""
    pieces: PromptPieces


class ThreadReadParams(WireModel):
    """Reads a thread without loading it or subscribing to it."""

    thread_id: ThreadId
    include_turns: StrictBool = False
    """Fill in `turns`. Not for ephemeral threads, nor before the first user message."""
    exclude_turns: StrictBool = False
    """Answer without the turns even where they would be included."""


class ThreadReadResponse(WireModel):
    thread: Thread
    decisions: Annotated[list[ThreadDecision] | None, NOT_NULL] = None
    """Of a host, with `includeTurns`: who decided about what the thread did, oldest first."""


class ThreadRealtimeAudioChunk(WireModel):
    """A piece of sound."""

    data: str
    """The samples in base64."""
    sample_rate: StrictInt
    """In hertz."""
    num_channels: StrictInt
    samples_per_channel: StrictInt | None = None
    item_id: ItemId | None = None
    """The conversation's item it belongs to."""


class ThreadRealtimeAppendAudioParams(WireModel):
    """Sends sound to the conversation."""

    thread_id: ThreadId
    audio: ThreadRealtimeAudioChunk


class ThreadRealtimeAppendAudioResponse(WireModel):
    pass


class ThreadRealtimeAppendTextParams(WireModel):
    """Sends text to the conversation."""

    thread_id: ThreadId
    text: str


class ThreadRealtimeAppendTextResponse(WireModel):
    pass


class ThreadRealtimeClosedNotification(WireModel):
    """Sent when the conversation has ended."""

    thread_id: ThreadId
    reason: str | None = None
    """Such as `requested` or `transport_closed`."""


class ThreadRealtimeErrorNotification(WireModel):
    """Sent when the conversation fails."""

    thread_id: ThreadId
    message: str


class ThreadRealtimeItemAddedNotification(WireModel):
    """Sent when the conversation has something that no other notification carries. `item` is as the remote
    service sent it.
    """

    thread_id: ThreadId
    item: Any


class ThreadRealtimeOutputAudioDeltaNotification(WireModel):
    """Sent as the voice speaks."""

    thread_id: ThreadId
    audio: ThreadRealtimeAudioChunk


class ThreadRealtimeStartParams(WireModel):
    """Opens a voice conversation and subscribes the caller to the thread."""

    thread_id: ThreadId
    prompt: str
    """Instructions for the voice."""
    session_id: str | None = None


class ThreadRealtimeStartResponse(WireModel):
    pass


class ThreadRealtimeStartedNotification(WireModel):
    """Sent when a voice conversation is open."""

    thread_id: ThreadId
    session_id: str | None = None
    version: RealtimeConversationVersion


class ThreadRealtimeStopParams(WireModel):
    """Closes the conversation. `thread/realtime/closed` follows."""

    thread_id: ThreadId


class ThreadRealtimeStopResponse(WireModel):
    pass


class ThreadRealtimeTranscriptUpdatedNotification(WireModel):
    """Sent as speech is written down."""

    thread_id: ThreadId
    role: str
    """Who speaks."""
    text: str
    """The new piece, not the whole."""


class ThreadRecordsListParams(WireModel):
    """Lists the records of a thread as they are stored: the whole of what is known about it."""

    thread_id: ThreadId
    cursor: str | None = None
    """`nextCursor` of the page before; unset for the first page."""
    limit: StrictInt | None = None
    """Most records on one page: 25 when unset, never more than 100. A page of large records holds fewer."""
    sort_direction: SortDirection | None = None
    """Newest first when unset."""


class ThreadRecordsListResponse(WireModel):
    data: list[Any]
    """Each as `rollout/append` has it, with its `ordinal` and its `kind`; also those of a newer release."""
    next_cursor: str | None = None
    """Null on the last page."""


class ThreadResumeParams(WireModel):
    """Loads a stored thread, or joins a loaded one, and subscribes the caller. Overrides have no effect on a
    loaded thread; its pending requests are sent again after the answer.
    """

    thread_id: ThreadId
    """Not used when `history` or `path` is given."""
    history: list[ResponseItem] | None = None
    """Start a new thread with this history instead. Wins over `path`."""
    path: str | None = None
    """The record's file. Wins over `threadId`."""
    model: str | None = None
    """When this, `modelProvider` and the model keys of `config` are all unset, the thread goes on with the
    model and effort it had.
    """
    model_provider: str | None = None
    """Id of a configured provider."""
    service_tier: ServiceTier | None = None
    """Missing keeps the tier, null clears it."""
    cwd: str | None = None
    approval_policy: AskForApproval | None = None
    approvals_reviewer: ApprovalsReviewer | None = None
    sandbox: SandboxMode | None = None
    config: dict[str, Any] | None = None
    """Configuration for this thread by dotted key: over the files, under the other fields here. Unknown keys
    are accepted.
    """
    base_instructions: str | None = None
    """Replaces the built-in instructions."""
    developer_instructions: str | None = None
    """Adds to the built-in instructions."""
    personality: Personality | None = None
    persist_extended_history: StrictBool = False
    """Record tool items too from now on. Earlier ones stay missing."""
    delegation: ThreadDelegation | None = None
    rollout_ownership: RolloutOwnership | None = None
    """`server` when unset."""
    initial_items: list[RolloutItem] | None = None
    """The exact history. Not together with `turnHistory`."""
    turn_history: list[Turn] | None = None
    """A display-level history, for when the exact one is gone."""
    initial_items_ref: InitialItemsRef | None = None
    """The exact history follows by `rollout/load`."""
    resolved_operations: list[ResolvedOperation] | None = None
    """Decisions made while no runtime was alive."""
    resume_turn: StrictBool = False
    """Continue the unfinished turn instead of marking it interrupted."""
    tool_set: ToolSet | None = None
    provides: list[ProvidedTool] | None = None
    """Tools of the thread that this connection runs, for a host: a call goes to one such connection. Unset means none;
    an app-server asks every subscriber and does not read this.
    """
    after: StrictInt | None = None
    """For a host: the last `ordinal` that the client has seen. Only turns that changed since are answered with, and
    `rolloutOrdinal` of the answer is the one after the last. An app-server does not read this.
    """
    labels: dict[str, str] | None = None
    """For a host: takes the place of the labels that the task has. An app-server does not read this."""
    agent_digest: str | None = None
    """For a host: takes the place of the digest that the task has. An app-server does not read this."""
    exclude_turns: StrictBool = False
    """Answer without the turns."""
    include_open_items: StrictBool = False
    """After the answer, `item/started` is sent again for each item that has begun and not ended, with what it holds so
    far
    (of a long one its end), and `turn/plan/updated` for the plan.
    """
    resync: StrictBool = False
    """For a host: `thread/resynced` follows the answer, for the thread and its agents, as when another host takes the
    task
    over. Hosts ask for it on behalf of their clients. An app-server does not read this.
    """


class ThreadResumeResponse(WireModel):
    """The thread with its turns and settings."""

    thread: Thread
    """Also sent as `thread/started`, except by `thread/resume`."""
    model: str
    model_provider: str
    """Id of the provider."""
    service_tier: ServiceTier | None = None
    cwd: str
    approval_policy: AskForApproval
    approvals_reviewer: ApprovalsReviewer
    sandbox: SandboxPolicy
    """The sandbox in full."""
    reasoning_effort: ReasoningEffort | None = None
    """Null for the model's default."""
    delegation: ThreadDelegation | None = None
    """The effective values of what the host asked for. The host compares them and closes the thread
    on a difference.
    """
    rollout_ownership: RolloutOwnership | None = None
    fidelity: HistoryFidelity | None = None
    """Set when the request contained a history."""
    rebuilt: list[str] | None = None
    """The parts that the runtime rebuilt from a lossy history."""
    rollout_ordinal: StrictInt | None = None
    """The next ordinal to be written."""
    items_digest: str | None = None
    """Digest of the history in the request, which is not sent back."""
    effective_tools: list[EffectiveTool] | None = None
    """The tools the model is offered."""
    tool_set_digest: str | None = None
    """Digest of `effectiveTools`; repeated in each model request."""
    pending_operations: list[PendingOperation] | None = None
    """Operations that wait for the host."""


class ThreadResyncedNotification(WireModel):
    """Sent to followers of a thread when another host has taken its task over, before anything that this one has to
    say. A
    client that agreed on no methods of a host gets `item/started` again for each open item instead.
    """

    thread_id: ThreadId
    ordinal: StrictInt | None = None
    """Its last record, null while there is none. What changed since the last one that the client has seen is in
    `thread/resume` with `after`.
    """
    open_items: list[ItemStartedNotification]
    """Items that have begun and not ended, as `item/started` has them, with what they hold so far. Others that were
    open
    are not any more.
    """


class ThreadRollbackParams(WireModel):
    """Drops the last turns from the history. Files stay as they are. Not while a turn runs, and not for
    ephemeral threads.
    """

    thread_id: ThreadId
    num_turns: StrictInt
    """At least 1. As many as there are, or more, leaves none."""


class ThreadRollbackResponse(WireModel):
    thread: Thread
    """With the turns that are left."""


class ThreadSetNameParams(WireModel):
    """Names a thread, loaded or not."""

    thread_id: ThreadId
    name: str
    """Space around it is cut off. Must not be empty then."""


class ThreadSetNameResponse(WireModel):
    pass


class ThreadShellCommandParams(WireModel):
    """Runs a command of the user's own, without sandbox, for an hour at most. Joins the turn that runs or makes
    one; the model sees the output.
    """

    thread_id: ThreadId
    command: str
    """For the user's shell."""


class ThreadShellCommandResponse(WireModel):
    pass


class ThreadStartParams(WireModel):
    """Starts a thread and subscribes the caller to it. An unset field keeps the configured value."""

    model: str | None = None
    model_provider: str | None = None
    """Id of a configured provider."""
    service_tier: ServiceTier | None = None
    """Missing keeps the configured tier, null clears it."""
    cwd: str | None = None
    approval_policy: AskForApproval | None = None
    approvals_reviewer: ApprovalsReviewer | None = None
    sandbox: SandboxMode | None = None
    config: dict[str, Any] | None = None
    """Configuration for this thread by dotted key: over the files, under the other fields here. Unknown keys
    are accepted.
    """
    service_name: str | None = None
    """Names the client in metrics."""
    base_instructions: str | None = None
    """Replaces the built-in instructions."""
    developer_instructions: str | None = None
    """Adds to the built-in instructions."""
    personality: Personality | None = None
    thread_source: str | None = None
    """A word of the client's own for where the thread came from."""
    ephemeral: StrictBool | None = None
    """Keep the thread in memory only. False when unset."""
    dynamic_tools: list[DynamicToolSpec] | None = None
    """Tools the client runs for the model, one by one or in groups of type `namespace`."""
    mock_experimental_field: str | None = None
    """Exists to test the experimental gate."""
    experimental_raw_events: StrictBool = False
    """Also send `rawResponseItem/completed`, to every subscriber of the thread."""
    persist_extended_history: StrictBool = False
    """Record tool items too, so that turns read back later are complete."""
    environments: list[EnvironmentSelection] | None = None
    """Where tools run."""
    sdk_delegation: SdkDelegationConfig | None = None
    """Sends this thread's model requests to an endpoint the host runs."""
    builtin_tools: list[str] | None = None
    """Exactly these built-in tools are offered and can run. Unknown, empty, padded or repeated names are
    refused.
    """
    manual_tool_execution: StrictBool = False
    """Ask about every built-in execution that can be asked about, known-safe commands included."""
    delegation: ThreadDelegation | None = None
    rollout_ownership: RolloutOwnership | None = None
    """`server` when unset."""
    initial_items: list[RolloutItem] | None = None
    """The exact history. Not together with `turnHistory`."""
    turn_history: list[Turn] | None = None
    """A display-level history, for when the exact one is gone."""
    initial_items_ref: InitialItemsRef | None = None
    """The exact history follows by `rollout/load`."""
    resolved_operations: list[ResolvedOperation] | None = None
    """Decisions made while no runtime was alive."""
    resume_turn: StrictBool = False
    """Continue the unfinished turn instead of marking it interrupted."""
    tool_set: ToolSet | None = None
    provides: list[ProvidedTool] | None = None
    """Tools of the thread that this connection runs, for a host: a call goes to one such connection. Unset means every
    tool that the thread is started with;
    an app-server asks every subscriber and does not read this.
    """
    budget: TaskBudget | None = None
    """How much the task may use, for a host. Its own limits hold all the same; an app-server does not read this."""
    priority: StrictInt | None = None
    """For a host with more tasks than it may run at once: those with a higher number are started first. 0 when unset;
    an app-server does not read this.
    """
    labels: dict[str, str] | None = None
    """Words of the caller's own about the task, by name, for a host: `task/list` finds tasks by them. An app-server
    does
    not read this.
    """
    agent_digest: str | None = None
    """Names the definition of the agent that the task works by, for a host, which keeps it and shows it. An app-server
    does not read this.
    """
    thread_id: ThreadId | None = None
    """A fresh UUID chosen by the caller; made by the server when unset."""
    placement: PlacementChoice | None = None
    """Where the host runs the thread's runtime; its default placement when unset. Only for hosts."""


class ThreadStartResponse(WireModel):
    """The new thread and the settings it starts with."""

    thread: Thread
    """Also sent as `thread/started`, except by `thread/resume`."""
    model: str
    model_provider: str
    """Id of the provider."""
    service_tier: ServiceTier | None = None
    cwd: str
    approval_policy: AskForApproval
    approvals_reviewer: ApprovalsReviewer
    sandbox: SandboxPolicy
    """The sandbox in full."""
    reasoning_effort: ReasoningEffort | None = None
    """Null for the model's default."""
    delegation: ThreadDelegation | None = None
    """The effective values of what the host asked for. The host compares them and closes the thread
    on a difference.
    """
    rollout_ownership: RolloutOwnership | None = None
    fidelity: HistoryFidelity | None = None
    """Set when the request contained a history."""
    rebuilt: list[str] | None = None
    """The parts that the runtime rebuilt from a lossy history."""
    rollout_ordinal: StrictInt | None = None
    """The next ordinal to be written."""
    items_digest: str | None = None
    """Digest of the history in the request, which is not sent back."""
    effective_tools: list[EffectiveTool] | None = None
    """The tools the model is offered."""
    tool_set_digest: str | None = None
    """Digest of `effectiveTools`; repeated in each model request."""
    pending_operations: list[PendingOperation] | None = None
    """Operations that wait for the host."""


class ThreadStartedNotification(WireModel):
    """Sent to all connections when a thread was started or forked, also for a detached review."""

    thread: Thread


class ThreadStatusChangedNotification(WireModel):
    """Sent to all connections whenever a thread's status changes. Child agents announce themselves with it."""

    thread_id: ThreadId
    status: ThreadStatus


class ThreadSuspendParams(WireModel):
    """Brings the turns of a task to a safe point and ends its runtime."""

    thread_id: ThreadId
    """A thread of the task; all of them are suspended."""
    snapshot: StrictBool = False
    """Then also keep the workspace of its placement as it is. Refused, with nothing suspended, where it has none."""


class ThreadSuspendResponse(WireModel):
    task: Task
    placement: PlacementInfo | None = None
    """With the snapshot, if one was asked for."""


class ThreadTokenUsageUpdatedNotification(WireModel):
    """Sent after each model response, and after a rollback."""

    thread_id: ThreadId
    turn_id: TurnId
    token_usage: ThreadTokenUsage


TurnItemsView: TypeAlias = Open[Literal["notLoaded", "summary", "full"]]
"""The part of each turn that a page holds.
`notLoaded`: No items.
`summary`: The first message of the user and the last one of the agent.
`full`: All items.
"""


class ThreadTurnsListParams(WireModel):
    """Lists the turns of a thread, stored or loaded."""

    thread_id: ThreadId
    cursor: str | None = None
    """`nextCursor` of the page before; unset for the first page. `backwardsCursor` goes the other way."""
    limit: StrictInt | None = None
    """Most turns on one page: 25 when unset, never more than 100."""
    sort_direction: SortDirection | None = None
    """Newest first when unset."""
    items_view: TurnItemsView | None = None
    """`summary` when unset."""


class ThreadTurnsListResponse(WireModel):
    data: list[Turn]
    next_cursor: str | None = None
    """Null on the last page."""
    backwards_cursor: str | None = None
    """For the other `sortDirection`: begins with the first turn of this page. Null when the page is empty."""


class ThreadUnarchiveParams(WireModel):
    """Moves a thread out of the archive, without loading it."""

    thread_id: ThreadId


class ThreadUnarchiveResponse(WireModel):
    thread: Thread
    """Without turns."""


class ThreadUnarchivedNotification(WireModel):
    """Sent to all connections when a thread left the archive."""

    thread_id: ThreadId


class ThreadUnsubscribeParams(WireModel):
    """Ends the caller's subscription. The last subscriber to leave unloads the thread, which ends a turn that
    runs.
    """

    thread_id: ThreadId


ThreadUnsubscribeStatus: TypeAlias = Open[Literal["unsubscribed", "notLoaded", "notSubscribed"]]
"""The outcome of ending a subscription.
`notLoaded`: The thread is not in memory.
`notSubscribed`: There was none.
"""


class ThreadUnsubscribeResponse(WireModel):
    status: ThreadUnsubscribeStatus


ToolApprovalDecisionName: TypeAlias = Open[Literal["accept", "acceptForSession", "decline", "cancel", "defer"]]
"""`accept`: Make it this once.
`acceptForSession`: Make it, and do not ask again in this session for the same call.
`decline`: Do not make it. The turn continues, and the model gets the decision.
`cancel`: Do not make it, and interrupt the turn.
`defer`: Not by this client and not now: the question stays open for others and for later.
"""


class ToolApprovalDecisionAcceptWithArgumentsBody(WireModel):
    arguments: Any


class ToolApprovalDecisionAcceptWithArguments(WireModel):
    """Make it with these arguments instead."""

    accept_with_arguments: ToolApprovalDecisionAcceptWithArgumentsBody


class ToolApprovalDecisionRespondBody(WireModel):
    content_items: list[DynamicToolCallOutputContentItem]
    success: StrictBool
    """Whether the call counts as successful."""


class ToolApprovalDecisionRespond(WireModel):
    """Do not make it; this is its result."""

    respond: ToolApprovalDecisionRespondBody


class UnknownToolApprovalDecision(UnknownVariant):
    """A key that this version does not know."""


ToolApprovalDecision: TypeAlias = Annotated[
    ToolApprovalDecisionName
    | ToolApprovalDecisionAcceptWithArguments
    | ToolApprovalDecisionRespond
    | UnknownToolApprovalDecision,
    Keyed(),
]
"""A decision about a call."""


class ToolRequestApprovalParams(WireModel):
    """Asks whether a tool may be called. For tools that have no approval request of their own."""

    thread_id: ThreadId
    turn_id: TurnId
    item_id: ItemId
    operation_id: OperationId
    """The same when the request is sent again, also after a restart."""
    tool: str
    namespace: str | None = None
    arguments: Any
    arguments_digest: str
    """Binds a decision to exactly these arguments."""
    reason: str | None = None
    """Why approval is needed, for display."""
    available_decisions: list[ToolApprovalDecision]
    started_at_ms: StrictInt
    """Unix milliseconds."""


class ToolRequestApprovalResponse(WireModel):
    decision: ToolApprovalDecision
    origin: DecisionOrigin | None = None
    """From a host alone: who decided."""


class ToolRequestUserInputAnswer(WireModel):
    """The answer to one question."""

    answers: list[str]
    """The chosen labels, or the user's own text."""


class ToolRequestUserInputOption(WireModel):
    """An answer to choose."""

    label: str
    description: str


class ToolRequestUserInputQuestion(WireModel):
    """One question."""

    id: str
    """The key of its answer."""
    header: str
    """A short title."""
    question: str
    is_other: StrictBool = False
    """The user may write an answer of their own. True whenever there are options."""
    is_secret: StrictBool = False
    """The answer is not to be shown while it is typed."""
    options: list[ToolRequestUserInputOption] | None = None
    """Null for a free answer."""


class ToolRequestUserInputParams(WireModel):
    """Questions of the agent to the user."""

    thread_id: ThreadId
    turn_id: TurnId
    item_id: ItemId
    """The model's call. No item is shown for it."""
    questions: list[ToolRequestUserInputQuestion]
    is_blocking: StrictBool = True
    """Whether the turn waits for the answer."""
    operation_id: OperationId | None = None
    """The same when the request is sent again, also after a restart."""
    arguments_digest: str | None = None
    """Binds a decision to exactly what was shown."""


class ToolRequestUserInputResponse(WireModel):
    answers: dict[str, ToolRequestUserInputAnswer]
    """By question id."""
    origin: DecisionOrigin | None = None
    """From a host alone: who answered."""


class TurnCost(WireModel):
    """The cost of a turn's model requests, by the configured prices."""

    amount: Number
    """In the currency of the prices."""
    is_estimated: StrictBool = False
    """Some of the tokens were not counted by the provider but estimated."""


class TurnCompletedNotification(WireModel):
    """Sent when a turn has ended: completed, interrupted or failed."""

    thread_id: ThreadId
    turn: Turn
    """Without items."""
    cost: TurnCost | None = None
    """Only for models that `[prices]` names."""


class TurnDiffUpdatedNotification(WireModel):
    """Sent after each patch, and after each model response once files have changed."""

    thread_id: ThreadId
    turn_id: TurnId
    diff: str
    """All changes of the turn so far, as one unified diff."""


class TurnInterruptParams(WireModel):
    """Stops the turn that runs. Answered when it has stopped; fails when none runs. Terminals the agent left
    running go on.
    """

    thread_id: ThreadId
    turn_id: TurnId
    """The turn to stop; fails when another one runs. Empty for whatever runs."""


class TurnInterruptResponse(WireModel):
    pass


class TurnPlanUpdatedNotification(WireModel):
    """Sent when the agent makes or changes its plan."""

    thread_id: ThreadId
    turn_id: TurnId
    explanation: str | None = None
    plan: list[TurnPlanStep]
    """The whole plan, in order."""


class TurnToolOutput(WireModel):
    """A tool's result that the client adds without the model having called the tool."""

    name: str
    """The tool's name."""
    namespace: str | None = None
    output: FunctionCallOutputBody
    retain: StrictBool = False
    """Asks that it stay in the model's history. It does in any case, until a compaction replaces it by a summary."""


class TurnStartParams(WireModel):
    """Starts a turn; while one is running, the input joins it. What is set here holds for later turns too,
    unless a field says otherwise.
    """

    thread_id: ThreadId
    input: list[UserInput]
    """At most 1,048,576 characters of text in all."""
    tool_output: TurnToolOutput | None = None
    """A result for the model that no call asked for."""
    cwd: str | None = None
    approval_policy: AskForApproval | None = None
    approvals_reviewer: ApprovalsReviewer | None = None
    sandbox_policy: SandboxPolicy | None = None
    """Replaces the policy as a whole."""
    model: str | None = None
    service_tier: ServiceTier | None = None
    """Missing keeps the tier, null clears it."""
    service_tier_for_turn: str | None = None
    """Applies to this turn alone."""
    effort: ReasoningEffort | None = None
    summary: ReasoningSummary | None = None
    personality: Personality | None = None
    output_schema: Any = None
    """JSON Schema the final answer must follow. For this turn alone."""
    collaboration_mode: CollaborationMode | None = None
    """Wins over `model` and `effort`."""
    environments: list[EnvironmentSelection] | None = None
    """For this and later turns; an empty list leaves the thread without an environment."""
    additional_context: dict[str, AdditionalContextEntry] | None = None
    """The complete map; unset, null and empty all clear it."""
    input_id: str | None = None
    """Becomes the id of the user's message. To a host it also makes the request safe to repeat: an id that is known
    gets its first answer again.
    """
    turn_id: TurnId | None = None
    """The id of the turn that begins, where the caller chooses it."""


class TurnStartResponse(WireModel):
    """Sent before `turn/started`."""

    turn: Turn
    """Without items."""


class TurnStartedNotification(WireModel):
    """Sent when a turn begins."""

    thread_id: ThreadId
    turn: Turn
    """Without items."""


class TurnSteerParams(WireModel):
    """Adds input to the turn that runs. The model gets it after its current response."""

    thread_id: ThreadId
    input: list[UserInput]
    """At most 1,048,576 characters of text in all. Must not be empty."""
    expected_turn_id: TurnId
    """The turn that runs; fails when another one does."""
    additional_context: dict[str, AdditionalContextEntry] | None = None
    """The complete map; unset, null and empty all clear it."""
    input_id: str | None = None
    """Becomes the id of the user's message; see `turn/start`."""


class TurnSteerResponse(WireModel):
    turn_id: TurnId
    """The turn the input was added to."""


TurnSuspendMode: TypeAlias = Open[Literal["whenPending", "now"]]
"""When to put the turn away.
`whenPending`: Once something waits for a decision.
`now`: At the next safe point. Effects that can be cancelled are.
"""


class TurnSuspendParams(WireModel):
    """Brings a turn to a safe point, commits it and puts it away. The process may then end; `resumeTurn` takes
    the turn up again.
    """

    thread_id: ThreadId
    turn_id: TurnId
    mode: TurnSuspendMode
    deadline_ms: StrictInt | None = None
    """How long it may take to get there."""


class TurnSuspendResponse(WireModel):
    """Sent after `turn/suspended`."""

    pending_operations: list[PendingOperation]
    """Operations that wait for a decision."""


class TurnSuspendedNotification(WireModel):
    """Sent when a turn was suspended."""

    thread_id: ThreadId
    turn_id: TurnId
    pending_operations: list[PendingOperation]
    """Operations that wait for a decision."""


UsageGrouping: TypeAlias = Open[Literal["task", "model", "provider", "day", "minute"]]
"""By what usage is summed up.
`day`: Days of UTC; the key is the date.
`minute`: Minutes; the key is the time at which one begins, in UTC.
"""


class UsageListParams(WireModel):
    """Sums up what model requests of a host's tasks used."""

    thread_id: ThreadId | None = None
    """Of the task that this thread belongs to, with its children."""
    since_ms: StrictInt | None = None
    """Unix milliseconds."""
    group_by: UsageGrouping | None = None
    """One sum of all when unset."""


class UsageSum(WireModel):
    """The usage of a group of model requests."""

    key: str
    """The task, model, provider or date; empty for the sum of all."""
    requests: StrictInt
    input_tokens: StrictInt
    cached_input_tokens: StrictInt
    """The part of `inputTokens` the provider had cached."""
    output_tokens: StrictInt
    cost_micros: StrictInt
    """By the host's table of prices, in millionths of its currency; 0 where a model has no price."""


class UsageListResponse(WireModel):
    data: list[UsageSum]


WindowsSandboxSetupMode: TypeAlias = Open[Literal["elevated", "unelevated"]]
"""How the sandbox is set up.
`elevated`: With an administrator's rights.
`unelevated`: With the user's own rights.
"""


class WindowsSandboxSetupCompletedNotification(WireModel):
    """Sent to the caller alone when the setup has ended."""

    mode: WindowsSandboxSetupMode
    success: StrictBool
    error: str | None = None
    """Set when `success` is false, as on any other system."""


class WindowsSandboxSetupStartParams(WireModel):
    """Sets up the Windows sandbox. `windowsSandbox/setupCompleted` reports the result."""

    mode: WindowsSandboxSetupMode
    cwd: AbsolutePathBuf | None = None


class WindowsSandboxSetupStartResponse(WireModel):
    started: StrictBool
    """Always true."""


class WindowsWorldWritableWarningNotification(WireModel):
    """Folders anybody may write to, which weaken the sandbox. Declared for clients that know it; not sent."""

    sample_paths: list[str]
    """Some of them."""
    extra_count: StrictInt
    """How many more there are."""
    failed_scan: StrictBool
    """Whether the search for them failed."""
