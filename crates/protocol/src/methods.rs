//! Every method on the wire. Routes, schemas, TypeScript, Python and the method page all come from these four tables:
//! adding a method is one row here and its types in `types/`.

use serde::{Serialize, Serializer};

use crate::gate::ExperimentalGate;
use crate::method::{Method, NoParams, NotificationMethod, RequestMethod};
use crate::types::*;

macro_rules! requests {
    ($(#[$table_doc:meta])* $table:ident as $message:ident { $($rows:tt)* }) => {
        messages! { $message { $($rows)* } }
        requests! { $(#[$table_doc])* $table { $($rows)* } }
    };
    ($(#[$table_doc:meta])* $table:ident {
        $($(#[doc = $doc:literal])+ $name:ident = $method:literal ($params:ty) -> $response:ty
            $([$($flag:ident),+])? $(, in_order_of $order:ident)? $(, for $role:ident)?;)*
    }) => {
        $(
            $(#[doc = $doc])+
            #[derive(Debug, Clone, Copy)]
            pub struct $name;
            impl RequestMethod for $name {
                const METHOD: &'static str = $method;
                type Params = $params;
                type Response = $response;
                $(fn order_key(params: &Self::Params) -> Option<&str> {
                    Some(params.$order.as_ref())
                })?
            }
        )*
        $(#[$table_doc])*
        pub static $table: &[Method] = &[
            $(Method::request::<$name>(concat!($($doc),+))$($(.$flag())+)?$(.in_order_of(stringify!($order)))?$(.$role())?,)*
        ];
    };
}

/// All messages of the server as one type: the runtime speaks it, and a connection writes it.
macro_rules! messages {
    ($message:ident {
        $($(#[doc = $doc:literal])+ $name:ident = $method:literal ($params:ty) $(-> $response:ty)?
            $([$($flag:ident),+])? $(, in_order_of $order:ident)?;)*
    }) => {
        #[doc = concat!("Any ", stringify!($message), " with its params.")]
        #[derive(Debug, Clone, PartialEq)]
        #[allow(clippy::large_enum_variant, reason = "moved a few times each, and most are small")]
        pub enum $message {
            $($(#[doc = $doc])+ $name($params),)*
        }

        impl $message {
            /// The method on the wire.
            pub fn method(&self) -> &'static str {
                match self {
                    $(Self::$name(_) => $method,)*
                }
            }

            /// Removes experimental parts, for a connection without that capability.
            pub fn strip_experimental(&mut self) {
                match self {
                    $(Self::$name(params) => params.strip_experimental(),)*
                }
            }
        }

        /// Writes only the params; the sender adds the envelope.
        impl Serialize for $message {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self {
                    $(Self::$name(params) => params.serialize(serializer),)*
                }
            }
        }
    };
}

macro_rules! notifications {
    ($(#[$table_doc:meta])* $table:ident as $message:ident { $($rows:tt)* }) => {
        messages! { $message { $($rows)* } }
        notifications! { $(#[$table_doc])* $table { $($rows)* } }
    };
    ($(#[$table_doc:meta])* $table:ident {
        $($(#[doc = $doc:literal])+ $name:ident = $method:literal ($params:ty) $([$($flag:ident),+])?;)*
    }) => {
        $(
            $(#[doc = $doc])+
            #[derive(Debug, Clone, Copy)]
            pub struct $name;
            impl NotificationMethod for $name {
                const METHOD: &'static str = $method;
                type Params = $params;
            }
        )*
        $(#[$table_doc])*
        pub static $table: &[Method] = &[
            $(Method::notification::<$name>(concat!($($doc),+))$($(.$flag())+)?,)*
        ];
    };
}

requests! {
    /// Requests from clients, in the order unknown-method errors list them.
    CLIENT_REQUESTS {
        /// Opens the connection: who the client is and what it can do. Must be the first request.
        Initialize = "initialize" (InitializeParams) -> InitializeResponse [v1], for viewer;
        /// Creates a thread and subscribes the caller to it.
        ThreadStart = "thread/start" (ThreadStartParams) -> ThreadStartResponse, for operator;
        /// Loads a stored thread, or joins a loaded one, and subscribes the caller to it.
        ThreadResume = "thread/resume" (ThreadResumeParams) -> ThreadResumeResponse, in_order_of thread_id, for viewer;
        /// Creates a new thread with the history of another.
        ThreadFork = "thread/fork" (ThreadForkParams) -> ThreadForkResponse, in_order_of thread_id, for operator;
        /// Unloads a thread and moves its record to the archive.
        ThreadArchive = "thread/archive" (ThreadArchiveParams) -> ThreadArchiveResponse, in_order_of thread_id, for operator;
        /// Deletes a thread for good, with the threads below it.
        ThreadDelete = "thread/delete" (ThreadDeleteParams) -> ThreadDeleteResponse [experimental], in_order_of thread_id, for operator;
        /// Ends the caller's subscription; the last subscriber to leave unloads the thread.
        ThreadUnsubscribe = "thread/unsubscribe" (ThreadUnsubscribeParams) -> ThreadUnsubscribeResponse, in_order_of thread_id, for viewer;
        /// Adds one open question outside the protocol; command timeouts pause while there are any.
        ThreadIncrementElicitation = "thread/increment_elicitation" (ThreadIncrementElicitationParams) -> ThreadIncrementElicitationResponse [experimental], in_order_of thread_id, for operator;
        /// Removes one such question.
        ThreadDecrementElicitation = "thread/decrement_elicitation" (ThreadDecrementElicitationParams) -> ThreadDecrementElicitationResponse [experimental], in_order_of thread_id, for operator;
        /// Gives a thread a name.
        ThreadSetName = "thread/name/set" (ThreadSetNameParams) -> ThreadSetNameResponse, in_order_of thread_id, for operator;
        /// Changes the git facts stored with a thread.
        ThreadMetadataUpdate = "thread/metadata/update" (ThreadMetadataUpdateParams) -> ThreadMetadataUpdateResponse, in_order_of thread_id, for operator;
        /// Sets the thread's goal, and its token budget.
        ThreadGoalSet = "thread/goal/set" (ThreadGoalSetParams) -> ThreadGoalSetResponse, in_order_of thread_id, for operator;
        /// Reads the thread's goal.
        ThreadGoalGet = "thread/goal/get" (ThreadGoalGetParams) -> ThreadGoalGetResponse, in_order_of thread_id, for viewer;
        /// Removes the thread's goal.
        ThreadGoalClear = "thread/goal/clear" (ThreadGoalClearParams) -> ThreadGoalClearResponse, in_order_of thread_id, for operator;
        /// Moves an archived thread back among the others.
        ThreadUnarchive = "thread/unarchive" (ThreadUnarchiveParams) -> ThreadUnarchiveResponse, in_order_of thread_id, for operator;
        /// Starts a turn that replaces the history by a summary.
        ThreadCompactStart = "thread/compact/start" (ThreadCompactStartParams) -> ThreadCompactStartResponse, in_order_of thread_id, for operator;
        /// Runs a command of the user outside the sandbox, and shows it to the model.
        ThreadShellCommand = "thread/shellCommand" (ThreadShellCommandParams) -> ThreadShellCommandResponse, in_order_of thread_id, for operator;
        /// Ends the terminals the thread left running.
        ThreadBackgroundTerminalsClean = "thread/backgroundTerminals/clean" (ThreadBackgroundTerminalsCleanParams) -> ThreadBackgroundTerminalsCleanResponse [experimental], in_order_of thread_id, for operator;
        /// Drops the last turns from the model's history. Files stay as they are.
        ThreadRollback = "thread/rollback" (ThreadRollbackParams) -> ThreadRollbackResponse, in_order_of thread_id, for operator;
        /// Lists stored threads, a page at a time.
        ThreadList = "thread/list" (ThreadListParams) -> ThreadListResponse, for viewer;
        /// Lists the ids of the threads in memory.
        ThreadLoadedList = "thread/loaded/list" (ThreadLoadedListParams) -> ThreadLoadedListResponse, for viewer;
        /// Reads a thread without loading it.
        ThreadRead = "thread/read" (ThreadReadParams) -> ThreadReadResponse, in_order_of thread_id, for viewer;
        /// Lists the turns of a thread, a page at a time.
        ThreadTurnsList = "thread/turns/list" (ThreadTurnsListParams) -> ThreadTurnsListResponse [experimental], in_order_of thread_id, for viewer;
        /// Lists the items of a thread or of one turn, a page at a time.
        ThreadItemsList = "thread/items/list" (ThreadItemsListParams) -> ThreadItemsListResponse [experimental], in_order_of thread_id, for viewer;
        /// Lists the records of a thread as they are stored, a page at a time.
        ThreadRecordsList = "thread/records/list" (ThreadRecordsListParams) -> ThreadRecordsListResponse [experimental], in_order_of thread_id, for operator;
        /// Describes the next request of a thread to its model, without making it.
        ThreadPromptRead = "thread/prompt/read" (ThreadPromptReadParams) -> ThreadPromptReadResponse [experimental], in_order_of thread_id, for operator;
        /// Lists the tasks of a host.
        TaskList = "task/list" (TaskListParams) -> TaskListResponse [experimental], for viewer;
        /// Reads one task of a host, with the operations that wait.
        TaskRead = "task/read" (TaskReadParams) -> TaskReadResponse [experimental], in_order_of thread_id, for viewer;
        /// Ends the runtime of a task; its turn stays resumable.
        TaskSuspend = "task/suspend" (TaskSuspendParams) -> TaskSuspendResponse [experimental], in_order_of thread_id, for operator;
        /// Suspends the turns of a task at a safe point and ends its runtime; on request its workspace is kept, too.
        ThreadSuspend = "thread/suspend" (ThreadSuspendParams) -> ThreadSuspendResponse [experimental], in_order_of thread_id, for operator;
        /// Starts a runtime for a task; its turn continues.
        TaskResume = "task/resume" (TaskResumeParams) -> TaskResumeResponse [experimental], in_order_of thread_id, for operator;
        /// Removes a task with its records.
        TaskDelete = "task/delete" (TaskDeleteParams) -> TaskDeleteResponse [experimental], in_order_of thread_id, for operator;
        /// Lists operations of a host's tasks, by default those that wait for a decision.
        OperationList = "operation/list" (OperationListParams) -> OperationListResponse [experimental], for viewer;
        /// Decides an operation, whether or not a runtime is alive.
        OperationDecide = "operation/decide" (OperationDecideParams) -> OperationDecideResponse [experimental], for approver;
        /// Lists the placements of a host.
        PlacementList = "placement/list" (PlacementListParams) -> PlacementListResponse [experimental], for viewer;
        /// Reads one placement of a host.
        PlacementRead = "placement/read" (PlacementReadParams) -> PlacementReadResponse [experimental], for viewer;
        /// Keeps the workspace of a placement as it is now.
        PlacementSnapshot = "placement/snapshot" (PlacementSnapshotParams) -> PlacementSnapshotResponse [experimental], for operator;
        /// Suspends a placement and its tasks.
        PlacementSuspend = "placement/suspend" (PlacementSuspendParams) -> PlacementSuspendResponse [experimental], for operator;
        /// Gives a placement up that cannot be reached.
        PlacementAbandon = "placement/abandon" (PlacementAbandonParams) -> PlacementAbandonResponse [experimental], for operator;
        /// Removes a placement that no task uses.
        PlacementDelete = "placement/delete" (PlacementDeleteParams) -> PlacementDeleteResponse [experimental], for operator;
        /// Removes unused placements.
        PlacementGc = "placement/gc" (PlacementGcParams) -> PlacementGcResponse [experimental], for operator;
        /// Sums up the tokens and the cost of model requests, by task, model, provider, day or minute.
        UsageList = "usage/list" (UsageListParams) -> UsageListResponse [experimental], for viewer;
        /// Lists who decided, started and stopped what at a host.
        AuditList = "audit/list" (AuditListParams) -> AuditListResponse [experimental], for operator;
        /// Lists the hosts that share the store, with their leases.
        ReplicaList = "replica/list" (ReplicaListParams) -> ReplicaListResponse [experimental], for viewer;
        /// Says what a running server does: connections, threads, turns, what waits, memory, sandbox.
        ServerStatus = "server/status" (NoParams) -> ServerStatusResponse [experimental], for viewer;
        /// Lists the skills found for each folder.
        SkillsList = "skills/list" (SkillsListParams) -> SkillsListResponse, for operator;
        /// Lists the hooks configured for each folder.
        HooksList = "hooks/list" (HooksListParams) -> HooksListResponse, for operator;
        /// Lists plugins by marketplace.
        PluginList = "plugin/list" (PluginListParams) -> PluginListResponse, for operator;
        /// Reads one plugin with what it contains.
        PluginRead = "plugin/read" (PluginReadParams) -> PluginReadResponse, for operator;
        /// Lists apps.
        AppsList = "app/list" (AppsListParams) -> AppsListResponse, for operator;
        /// Reads a file whole.
        FsReadFile = "fs/readFile" (FsReadFileParams) -> FsReadFileResponse, for operator;
        /// Writes a file whole.
        FsWriteFile = "fs/writeFile" (FsWriteFileParams) -> FsWriteFileResponse, for operator;
        /// Creates a folder.
        FsCreateDirectory = "fs/createDirectory" (FsCreateDirectoryParams) -> FsCreateDirectoryResponse, for operator;
        /// Reads the type of a path and when it changed.
        FsGetMetadata = "fs/getMetadata" (FsGetMetadataParams) -> FsGetMetadataResponse, for operator;
        /// Lists the direct children of a folder.
        FsReadDirectory = "fs/readDirectory" (FsReadDirectoryParams) -> FsReadDirectoryResponse, for operator;
        /// Removes a file or folder.
        FsRemove = "fs/remove" (FsRemoveParams) -> FsRemoveResponse, for operator;
        /// Copies a file or folder.
        FsCopy = "fs/copy" (FsCopyParams) -> FsCopyResponse, for operator;
        /// Reports changes of a path to the caller until `fs/unwatch`.
        FsWatch = "fs/watch" (FsWatchParams) -> FsWatchResponse, for operator;
        /// Ends a watch.
        FsUnwatch = "fs/unwatch" (FsUnwatchParams) -> FsUnwatchResponse, for operator;
        /// Switches a skill on or off.
        SkillsConfigWrite = "skills/config/write" (SkillsConfigWriteParams) -> SkillsConfigWriteResponse, for admin;
        /// Installs a plugin from a marketplace.
        PluginInstall = "plugin/install" (PluginInstallParams) -> PluginInstallResponse, for admin;
        /// Removes an installed plugin.
        PluginUninstall = "plugin/uninstall" (PluginUninstallParams) -> PluginUninstallResponse, for admin;
        /// Starts a turn. The answer comes as soon as it is accepted; its items follow as notifications.
        TurnStart = "turn/start" (TurnStartParams) -> TurnStartResponse, in_order_of thread_id, for operator;
        /// Adds input to the running turn.
        TurnSteer = "turn/steer" (TurnSteerParams) -> TurnSteerResponse, in_order_of thread_id, for operator;
        /// Stops the running turn.
        TurnInterrupt = "turn/interrupt" (TurnInterruptParams) -> TurnInterruptResponse, in_order_of thread_id, for operator;
        /// Suspends the running turn, so that the process may end and the turn can be resumed.
        TurnSuspend = "turn/suspend" (TurnSuspendParams) -> TurnSuspendResponse [experimental], in_order_of thread_id, for operator;
        /// Opens a live voice conversation.
        ThreadRealtimeStart = "thread/realtime/start" (ThreadRealtimeStartParams) -> ThreadRealtimeStartResponse [experimental], in_order_of thread_id, for operator;
        /// Sends audio to it.
        ThreadRealtimeAppendAudio = "thread/realtime/appendAudio" (ThreadRealtimeAppendAudioParams) -> ThreadRealtimeAppendAudioResponse [experimental], in_order_of thread_id, for operator;
        /// Sends text to it.
        ThreadRealtimeAppendText = "thread/realtime/appendText" (ThreadRealtimeAppendTextParams) -> ThreadRealtimeAppendTextResponse [experimental], in_order_of thread_id, for operator;
        /// Closes it.
        ThreadRealtimeStop = "thread/realtime/stop" (ThreadRealtimeStopParams) -> ThreadRealtimeStopResponse [experimental], in_order_of thread_id, for operator;
        /// Starts a review of changes, in this thread or in a new one.
        ReviewStart = "review/start" (ReviewStartParams) -> ReviewStartResponse, in_order_of thread_id, for operator;
        /// Lists the models a client may offer.
        ModelList = "model/list" (ModelListParams) -> ModelListResponse, for viewer;
        /// Sends the runtime a batch of stream events of a model request that the host carries.
        ModelStreamEvent = "model/streamEvent" (ModelStreamEventParams) -> ModelStreamEventResponse [experimental], in_order_of thread_id, for operator;
        /// Reports that such a stream ended without a terminal event.
        ModelStreamAborted = "model/streamAborted" (ModelStreamAbortedParams) -> ModelStreamAbortedResponse [experimental], in_order_of thread_id, for operator;
        /// Refuses an accepted model request before its first event.
        ModelRequestRejected = "model/requestRejected" (ModelRequestRejectedParams) -> ModelRequestRejectedResponse [experimental], in_order_of thread_id, for operator;
        /// Uploads one part of a long history announced by `initialItemsRef`.
        RolloutLoad = "rollout/load" (RolloutLoadParams) -> RolloutLoadResponse [experimental], in_order_of thread_id, for operator;
        /// Reports the result of a child that the host ran. Idempotent by delegation id.
        DelegationResult = "delegation/result" (DelegationResultParams) -> DelegationResultResponse [experimental], for operator;
        /// Registers an environment.
        EnvironmentAdd = "environment/add" (EnvironmentAddParams) -> EnvironmentAddResponse [experimental], for admin;
        /// Describes one environment.
        EnvironmentInfo = "environment/info" (EnvironmentInfoParams) -> EnvironmentInfoResponse [experimental], for operator;
        /// Reads whether an environment can be used now.
        EnvironmentStatusRead = "environment/status" (EnvironmentStatusParams) -> EnvironmentStatusResponse [experimental], for operator;
        /// Lists feature flags with their stage and value.
        ExperimentalFeatureList = "experimentalFeature/list" (ExperimentalFeatureListParams) -> ExperimentalFeatureListResponse, for viewer;
        /// Switches feature flags for this process.
        ExperimentalFeatureEnablementSet = "experimentalFeature/enablement/set" (ExperimentalFeatureEnablementSetParams) -> ExperimentalFeatureEnablementSetResponse, for admin;
        /// Lists the collaboration modes.
        CollaborationModeList = "collaborationMode/list" (CollaborationModeListParams) -> CollaborationModeListResponse [experimental], for viewer;
        /// Echoes a value; exists to test the experimental gate.
        MockExperimentalMethod = "mock/experimentalMethod" (MockExperimentalMethodParams) -> MockExperimentalMethodResponse [experimental], for viewer;
        /// Starts the OAuth login of an MCP server.
        McpServerOauthLogin = "mcpServer/oauth/login" (McpServerOauthLoginParams) -> McpServerOauthLoginResponse, for admin;
        /// Reads the MCP servers from config again.
        McpServerRefresh = "config/mcpServer/reload" (NoParams) -> McpServerRefreshResponse, for admin;
        /// Lists MCP servers with their tools and resources.
        McpServerStatusList = "mcpServerStatus/list" (ListMcpServerStatusParams) -> ListMcpServerStatusResponse, for operator;
        /// Sets up the Windows sandbox.
        WindowsSandboxSetupStart = "windowsSandbox/setupStart" (WindowsSandboxSetupStartParams) -> WindowsSandboxSetupStartResponse, for admin;
        /// Logs in.
        LoginAccount = "account/login/start" (LoginAccountParams) -> LoginAccountResponse, for admin;
        /// Cancels a login that waits for the user.
        CancelLoginAccount = "account/login/cancel" (CancelLoginAccountParams) -> CancelLoginAccountResponse, for admin;
        /// Logs out.
        LogoutAccount = "account/logout" (NoParams) -> LogoutAccountResponse, for admin;
        /// Reads the account's rate limits.
        GetAccountRateLimits = "account/rateLimits/read" (NoParams) -> GetAccountRateLimitsResponse, for viewer;
        /// Sends feedback.
        FeedbackUpload = "feedback/upload" (FeedbackUploadParams) -> FeedbackUploadResponse, for admin;
        /// Runs a command outside any thread; the answer comes when it ends.
        CommandExec = "command/exec" (CommandExecParams) -> CommandExecResponse, for operator;
        /// Writes to such a command.
        CommandExecWrite = "command/exec/write" (CommandExecWriteParams) -> CommandExecWriteResponse, for operator;
        /// Ends such a command.
        CommandExecTerminate = "command/exec/terminate" (CommandExecTerminateParams) -> CommandExecTerminateResponse, for operator;
        /// Changes the size of its terminal.
        CommandExecResize = "command/exec/resize" (CommandExecResizeParams) -> CommandExecResizeResponse, for operator;
        /// Reads the effective configuration, and its layers on demand.
        ConfigRead = "config/read" (ConfigReadParams) -> ConfigReadResponse, for operator;
        /// Lists what can be imported from another agent's configuration.
        ExternalAgentConfigDetect = "externalAgentConfig/detect" (ExternalAgentConfigDetectParams) -> ExternalAgentConfigDetectResponse, for admin;
        /// Imports it.
        ExternalAgentConfigImport = "externalAgentConfig/import" (ExternalAgentConfigImportParams) -> ExternalAgentConfigImportResponse, for admin;
        /// Writes one value to the user's config file.
        ConfigValueWrite = "config/value/write" (ConfigValueWriteParams) -> ConfigWriteResponse, for admin;
        /// Writes several values, all or none.
        ConfigBatchWrite = "config/batchWrite" (ConfigBatchWriteParams) -> ConfigWriteResponse, for admin;
        /// Reads the administrator's requirements.
        ConfigRequirementsRead = "configRequirements/read" (NoParams) -> ConfigRequirementsReadResponse, for operator;
        /// Reads who is logged in.
        GetAccount = "account/read" (GetAccountParams) -> GetAccountResponse, for viewer;
        /// Describes a stored conversation. Older than threads; use `thread/read`.
        GetConversationSummary = "getConversationSummary" (GetConversationSummaryParams) -> GetConversationSummaryResponse [root], for viewer;
        /// Compares a folder with its remote.
        GitDiffToRemote = "gitDiffToRemote" (GitDiffToRemoteParams) -> GitDiffToRemoteResponse [root], for operator;
        /// Reads the login method. Older than accounts; use `account/read`.
        GetAuthStatus = "getAuthStatus" (GetAuthStatusParams) -> GetAuthStatusResponse [root], for admin;
        /// Finds files by a fuzzy query.
        FuzzyFileSearch = "fuzzyFileSearch" (FuzzyFileSearchParams) -> FuzzyFileSearchResponse [root], for operator;
        /// Opens a search session that follows a changing query.
        FuzzyFileSearchSessionStart = "fuzzyFileSearch/sessionStart" (FuzzyFileSearchSessionStartParams) -> FuzzyFileSearchSessionStartResponse [experimental, root], for operator;
        /// Changes the query.
        FuzzyFileSearchSessionUpdate = "fuzzyFileSearch/sessionUpdate" (FuzzyFileSearchSessionUpdateParams) -> FuzzyFileSearchSessionUpdateResponse [experimental, root], for operator;
        /// Closes the session.
        FuzzyFileSearchSessionStop = "fuzzyFileSearch/sessionStop" (FuzzyFileSearchSessionStopParams) -> FuzzyFileSearchSessionStopResponse [experimental, root], for operator;
    }
}

const _: () = {
    let mut at = 0;
    while at < CLIENT_REQUESTS.len() {
        assert!(
            CLIENT_REQUESTS[at].role.is_some(),
            "a request of clients has no role: end its row with `, for ROLE`"
        );
        at += 1;
    }
};

requests! {
    /// Requests from the server to a client.
    SERVER_REQUESTS as ServerRequest {
        /// May this command run?
        CommandExecutionRequestApproval = "item/commandExecution/requestApproval" (CommandExecutionRequestApprovalParams) -> CommandExecutionRequestApprovalResponse [root], in_order_of thread_id;
        /// May these files be changed?
        FileChangeRequestApproval = "item/fileChange/requestApproval" (FileChangeRequestApprovalParams) -> FileChangeRequestApprovalResponse [root], in_order_of thread_id;
        /// May this tool be called? For tools without an approval request of their own.
        ToolRequestApproval = "item/tool/requestApproval" (ToolRequestApprovalParams) -> ToolRequestApprovalResponse [experimental, root], in_order_of thread_id;
        /// Questions from the agent to the user.
        ToolRequestUserInput = "item/tool/requestUserInput" (ToolRequestUserInputParams) -> ToolRequestUserInputResponse [root], in_order_of thread_id;
        /// A question from an MCP server to the user.
        McpServerElicitationAsk = "mcpServer/elicitation/request" (McpServerElicitationRequestParams) -> McpServerElicitationRequestResponse [root], in_order_of thread_id;
        /// May the agent have these permissions?
        PermissionsRequestApproval = "item/permissions/requestApproval" (PermissionsRequestApprovalParams) -> PermissionsRequestApprovalResponse [root], in_order_of thread_id;
        /// Runs a tool that the client registered.
        DynamicToolCall = "item/tool/call" (DynamicToolCallParams) -> DynamicToolCallResponse [root], in_order_of thread_id;
        /// Asks for fresh tokens after the provider refused the old ones.
        ChatgptAuthTokensRefresh = "account/chatgptAuthTokens/refresh" (ChatgptAuthTokensRefreshParams) -> ChatgptAuthTokensRefreshResponse [root];
        /// Asks the host to carry one model request.
        ModelRequest = "model/request" (ModelRequestParams) -> ModelRequestResponse [experimental, root], in_order_of thread_id;
        /// Asks the host to stop carrying it.
        ModelCancel = "model/cancel" (ModelCancelParams) -> ModelCancelResponse [experimental, root], in_order_of thread_id;
        /// Sends the host records to store; answered when they are committed.
        RolloutAppend = "rollout/append" (RolloutAppendParams) -> RolloutAppendResponse [experimental, root], in_order_of thread_id;
        /// Asks the host where to run a child agent.
        DelegationRequest = "delegation/request" (DelegationRequestParams) -> DelegationRequestResponse [experimental, root];
        /// Sends input to a child the host runs.
        DelegationInput = "delegation/input" (DelegationInputParams) -> DelegationInputResponse [experimental, root];
        /// Stops a child the host runs.
        DelegationCancel = "delegation/cancel" (DelegationCancelParams) -> DelegationCancelResponse [experimental, root];
        /// May this patch be applied? Never sent; declared for clients that still know it.
        ApplyPatchApproval = "applyPatchApproval" (ApplyPatchApprovalParams) -> ApplyPatchApprovalResponse [root], in_order_of conversation_id;
        /// May this command run? Never sent; declared for clients that still know it.
        ExecCommandApproval = "execCommandApproval" (ExecCommandApprovalParams) -> ExecCommandApprovalResponse [root], in_order_of conversation_id;
    }
}

notifications! {
    /// Notifications from the server.
    SERVER_NOTIFICATIONS as ServerNotification {
        /// Something went wrong in a turn.
        Error = "error" (ErrorNotification);
        /// A thread exists.
        ThreadStarted = "thread/started" (ThreadStartedNotification);
        /// A thread became idle, active, broken or unloaded.
        ThreadStatusChanged = "thread/status/changed" (ThreadStatusChangedNotification);
        /// A thread was archived.
        ThreadArchived = "thread/archived" (ThreadArchivedNotification);
        /// A thread left the archive.
        ThreadUnarchived = "thread/unarchived" (ThreadUnarchivedNotification);
        /// A thread was deleted.
        ThreadDeleted = "thread/deleted" (ThreadDeletedNotification) [experimental];
        /// A thread was unloaded.
        ThreadClosed = "thread/closed" (ThreadClosedNotification);
        /// Skill files changed on disk.
        SkillsChanged = "skills/changed" (SkillsChangedNotification);
        /// A thread has a new name.
        ThreadNameUpdated = "thread/name/updated" (ThreadNameUpdatedNotification);
        /// A thread's goal changed.
        ThreadGoalUpdated = "thread/goal/updated" (ThreadGoalUpdatedNotification);
        /// A thread's goal was removed.
        ThreadGoalCleared = "thread/goal/cleared" (ThreadGoalClearedNotification);
        /// Tokens used by a thread.
        ThreadTokenUsageUpdated = "thread/tokenUsage/updated" (ThreadTokenUsageUpdatedNotification);
        /// An environment of a thread can be used.
        ThreadEnvironmentConnected = "thread/environment/connected" (ThreadEnvironmentConnectedNotification) [experimental];
        /// An environment of a thread can no longer be used.
        ThreadEnvironmentDisconnected = "thread/environment/disconnected" (ThreadEnvironmentDisconnectedNotification) [experimental];
        /// A turn began.
        TurnStarted = "turn/started" (TurnStartedNotification);
        /// A hook began.
        HookStarted = "hook/started" (HookStartedNotification);
        /// A turn ended.
        TurnCompleted = "turn/completed" (TurnCompletedNotification);
        /// A turn was suspended and can be resumed.
        TurnSuspended = "turn/suspended" (TurnSuspendedNotification) [experimental];
        /// An operation of a host's task was proposed, decided or finished.
        OperationUpdated = "operation/updated" (OperationUpdatedNotification) [experimental];
        /// A task of a host is in another state; for connections that follow all tasks.
        TaskUpdated = "task/updated" (TaskUpdatedNotification) [experimental];
        /// Another host has the thread now; this is its state there.
        ThreadResynced = "thread/resynced" (ThreadResyncedNotification) [experimental];
        /// The progress of creating a placement.
        PlacementProgress = "placement/progress" (PlacementProgressNotification) [experimental];
        /// A placement was created, lost, suspended or resumed.
        PlacementStatusChanged = "placement/status/changed" (PlacementStatusChangedNotification) [experimental];
        /// A hook ended.
        HookCompleted = "hook/completed" (HookCompletedNotification);
        /// All file changes of the turn so far, as one diff.
        TurnDiffUpdated = "turn/diff/updated" (TurnDiffUpdatedNotification);
        /// The agent's plan changed.
        TurnPlanUpdated = "turn/plan/updated" (TurnPlanUpdatedNotification);
        /// An item began.
        ItemStarted = "item/started" (ItemStartedNotification);
        /// An automatic approval review began.
        ItemGuardianApprovalReviewStarted = "item/autoApprovalReview/started" (ItemGuardianApprovalReviewStartedNotification);
        /// An automatic approval review ended.
        ItemGuardianApprovalReviewCompleted = "item/autoApprovalReview/completed" (ItemGuardianApprovalReviewCompletedNotification);
        /// An item ended; its content is final.
        ItemCompleted = "item/completed" (ItemCompletedNotification);
        /// A Responses item as the model sent it, for threads that asked for raw events.
        RawResponseItemCompleted = "rawResponseItem/completed" (RawResponseItemCompletedNotification);
        /// More text of an agent message.
        AgentMessageDelta = "item/agentMessage/delta" (AgentMessageDeltaNotification);
        /// More text of a proposed plan.
        PlanDelta = "item/plan/delta" (PlanDeltaNotification);
        /// More output of a `command/exec`.
        CommandExecOutputDelta = "command/exec/outputDelta" (CommandExecOutputDeltaNotification);
        /// More output of a command item.
        CommandExecutionOutputDelta = "item/commandExecution/outputDelta" (CommandExecutionOutputDeltaNotification);
        /// The agent typed into a terminal.
        TerminalInteraction = "item/commandExecution/terminalInteraction" (TerminalInteractionNotification);
        /// More output of a patch.
        FileChangeOutputDelta = "item/fileChange/outputDelta" (FileChangeOutputDeltaNotification);
        /// A server request was answered or is no longer waiting.
        ServerRequestResolved = "serverRequest/resolved" (ServerRequestResolvedNotification);
        /// Progress of an MCP tool call.
        McpToolCallProgress = "item/mcpToolCall/progress" (McpToolCallProgressNotification);
        /// An MCP login ended.
        McpServerOauthLoginCompleted = "mcpServer/oauthLogin/completed" (McpServerOauthLoginCompletedNotification);
        /// An MCP server is starting, ready or failed.
        McpServerStatusUpdated = "mcpServer/startupStatus/updated" (McpServerStatusUpdatedNotification);
        /// The login changed.
        AccountUpdated = "account/updated" (AccountUpdatedNotification);
        /// The rate limits changed.
        AccountRateLimitsUpdated = "account/rateLimits/updated" (AccountRateLimitsUpdatedNotification);
        /// The list of apps changed.
        AppListUpdated = "app/list/updated" (AppListUpdatedNotification);
        /// A thread's model traffic goes to the host's bridge.
        SdkDelegationConfigured = "codexSdk/delegationConfigured" (SdkDelegationConfiguredNotification) [experimental];
        /// A watched path changed.
        FsChanged = "fs/changed" (FsChangedNotification);
        /// More text of a reasoning summary.
        ReasoningSummaryTextDelta = "item/reasoning/summaryTextDelta" (ReasoningSummaryTextDeltaNotification);
        /// A reasoning summary has a new part.
        ReasoningSummaryPartAdded = "item/reasoning/summaryPartAdded" (ReasoningSummaryPartAddedNotification);
        /// More raw reasoning text.
        ReasoningTextDelta = "item/reasoning/textDelta" (ReasoningTextDeltaNotification);
        /// The history was compacted. Deprecated; the contextCompaction item says the same.
        ContextCompacted = "thread/compacted" (ContextCompactedNotification);
        /// The provider answered with another model.
        ModelRerouted = "model/rerouted" (ModelReroutedNotification);
        /// Something the client uses will go away.
        DeprecationNotice = "deprecationNotice" (DeprecationNoticeNotification);
        /// Something in the configuration is wrong or was left out.
        ConfigWarning = "configWarning" (ConfigWarningNotification);
        /// New results of a search session.
        FuzzyFileSearchSessionUpdated = "fuzzyFileSearch/sessionUpdated" (FuzzyFileSearchSessionUpdatedNotification) [root];
        /// A search session has all results for its query.
        FuzzyFileSearchSessionCompleted = "fuzzyFileSearch/sessionCompleted" (FuzzyFileSearchSessionCompletedNotification) [root];
        /// A voice conversation is open.
        ThreadRealtimeStarted = "thread/realtime/started" (ThreadRealtimeStartedNotification) [experimental_listed];
        /// It has a new item.
        ThreadRealtimeItemAdded = "thread/realtime/itemAdded" (ThreadRealtimeItemAddedNotification) [experimental_listed];
        /// More of its transcript.
        ThreadRealtimeTranscriptUpdated = "thread/realtime/transcriptUpdated" (ThreadRealtimeTranscriptUpdatedNotification) [experimental_listed];
        /// More audio of it.
        ThreadRealtimeOutputAudioDelta = "thread/realtime/outputAudio/delta" (ThreadRealtimeOutputAudioDeltaNotification) [experimental_listed];
        /// It failed.
        ThreadRealtimeError = "thread/realtime/error" (ThreadRealtimeErrorNotification) [experimental_listed];
        /// It is closed.
        ThreadRealtimeClosed = "thread/realtime/closed" (ThreadRealtimeClosedNotification) [experimental_listed];
        /// Folders anybody may write to weaken the Windows sandbox.
        WindowsWorldWritableWarning = "windows/worldWritableWarning" (WindowsWorldWritableWarningNotification);
        /// The Windows sandbox is set up, or why not.
        WindowsSandboxSetupCompleted = "windowsSandbox/setupCompleted" (WindowsSandboxSetupCompletedNotification);
        /// A login ended.
        AccountLoginCompleted = "account/login/completed" (AccountLoginCompletedNotification);
    }
}

notifications! {
    /// Notifications from clients.
    CLIENT_NOTIFICATIONS {
        /// The client has read the answer to `initialize`. Not required.
        Initialized = "initialized" (NoParams);
        /// The lease of the host that opened the threads holds.
        DelegationHeartbeat = "delegation/heartbeat" (DelegationHeartbeatNotification) [experimental, root];
        /// Progress of a child the host runs.
        DelegationProgress = "delegation/progress" (DelegationProgressNotification) [experimental, root];
        /// The notification form of `model/streamEvent`: no acknowledgement, no flow control.
        ModelStreamEventUnacknowledged = "model/streamEvent" (ModelStreamEventParams) [experimental];
    }
}
