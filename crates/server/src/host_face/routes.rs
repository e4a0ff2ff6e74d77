//! Which handler of a host carries out which method.

use std::sync::Arc;

use host::PLACED;
use protocol::{
    AppsList, AuditList, CollaborationModeList, CommandExec, CommandExecResize, CommandExecTerminate,
    CommandExecWrite, ConfigRead, ConfigRequirementsRead, ExperimentalFeatureList, ExternalAgentConfigDetect,
    FsCopy, FsCreateDirectory, FsGetMetadata, FsReadDirectory, FsReadFile, FsRemove, FsUnwatch, FsWatch,
    FsWriteFile, FuzzyFileSearch, FuzzyFileSearchSessionStart, FuzzyFileSearchSessionStop,
    FuzzyFileSearchSessionUpdate, GetAccount, GetAccountRateLimits, GetAuthStatus, GitDiffToRemote,
    HooksList, McpServerRefresh, McpServerStatusList, MockExperimentalMethod, ModelList,
    ModelRequestRejected, ModelStreamAborted, ModelStreamEvent, ModelStreamEventUnacknowledged,
    OperationDecide, OperationList, PlacementAbandon, PlacementDelete, PlacementGc, PlacementList,
    PlacementRead, PlacementSnapshot, PlacementSuspend, PluginList, PluginRead, ReplicaList, RequestMethod,
    ReviewStart, ServerStatus, SkillsList, TaskDelete, TaskList, TaskRead, TaskResume, TaskSuspend,
    ThreadArchive, ThreadBackgroundTerminalsClean, ThreadCompactStart, ThreadDelete, ThreadFork,
    ThreadGoalClear, ThreadGoalGet, ThreadGoalSet, ThreadItemsList, ThreadList, ThreadLoadedList,
    ThreadMetadataUpdate, ThreadPromptRead, ThreadRead, ThreadRecordsList, ThreadResume, ThreadRollback,
    ThreadSetName, ThreadShellCommand, ThreadStart, ThreadSuspend, ThreadTurnsList, ThreadUnarchive,
    ThreadUnsubscribe, TurnInterrupt, TurnStart, TurnSteer, TurnSuspend, UsageList,
};

use super::handlers::{self as on, forward};
use super::placed::placed;
use super::{carriers, pages, placements};
use crate::host_face::HostApp;
use crate::peers::{RELAYED, relaying};
use crate::router::Router;
use crate::routes::routes;

/// Methods about this machine and this configuration, which need no thread. Those that change the configuration or an
/// account are not among them: that is for the command line of the host's machine.
pub(crate) const LOCAL: &[&str] = &[
    ModelList::METHOD,
    CollaborationModeList::METHOD,
    AppsList::METHOD,
    ExperimentalFeatureList::METHOD,
    ConfigRead::METHOD,
    ConfigRequirementsRead::METHOD,
    GetAccount::METHOD,
    GetAccountRateLimits::METHOD,
    GetAuthStatus::METHOD,
    McpServerStatusList::METHOD,
    SkillsList::METHOD,
    HooksList::METHOD,
    PluginList::METHOD,
    PluginRead::METHOD,
    GitDiffToRemote::METHOD,
    ExternalAgentConfigDetect::METHOD,
    MockExperimentalMethod::METHOD,
    CommandExec::METHOD,
    CommandExecWrite::METHOD,
    CommandExecTerminate::METHOD,
    CommandExecResize::METHOD,
    FsReadFile::METHOD,
    FsWriteFile::METHOD,
    FsCreateDirectory::METHOD,
    FsGetMetadata::METHOD,
    FsReadDirectory::METHOD,
    FsRemove::METHOD,
    FsCopy::METHOD,
    FsWatch::METHOD,
    FsUnwatch::METHOD,
    FuzzyFileSearch::METHOD,
    FuzzyFileSearchSessionStart::METHOD,
    FuzzyFileSearchSessionUpdate::METHOD,
    FuzzyFileSearchSessionStop::METHOD,
];

/// Every method that a host carries out. `initialize` belongs to the connection.
pub fn host_routes() -> Router<HostApp> {
    routes()
        .inside(LOCAL, |app: &HostApp| &app.local)
        .deferred(ThreadStart, on::start)
        .deferred(ThreadResume, on::resume)
        .deferred(ThreadFork, on::fork)
        .on(ThreadList, on::list)
        .on(ThreadLoadedList, on::loaded_list)
        .on(ThreadRead, on::read_thread)
        .deferred(ThreadSetName, on::name_set)
        .deferred(ThreadArchive, on::archive)
        .deferred(ThreadDelete, on::delete)
        .deferred(ThreadUnarchive, on::unarchive)
        .on(ThreadUnsubscribe, on::unsubscribe)
        .deferred(TurnStart, on::turn_start)
        .deferred(TurnSteer, on::turn_steer)
        .deferred(TurnInterrupt, on::turn_interrupt)
        .deferred(TurnSuspend, forward::<TurnSuspend>)
        .deferred(ThreadCompactStart, forward::<ThreadCompactStart>)
        .deferred(ThreadRollback, forward::<ThreadRollback>)
        .deferred(ThreadShellCommand, forward::<ThreadShellCommand>)
        .deferred(ThreadBackgroundTerminalsClean, forward::<ThreadBackgroundTerminalsClean>)
        .deferred(ThreadMetadataUpdate, forward::<ThreadMetadataUpdate>)
        .deferred(ThreadTurnsList, pages::turns)
        .deferred(ThreadItemsList, pages::items)
        .large(
            ThreadRecordsList,
            |app: Arc<HostApp>, params| async move { app.host.list_records(&params).await },
        )
        .deferred(ThreadPromptRead, forward::<ThreadPromptRead>)
        .deferred(ThreadGoalSet, forward::<ThreadGoalSet>)
        .deferred(ThreadGoalGet, on::goal_get)
        .deferred(ThreadGoalClear, forward::<ThreadGoalClear>)
        .deferred(ReviewStart, on::review)
        .on(McpServerRefresh, on::reload_servers)
        .on(TaskList, on::task_list)
        .on(TaskRead, on::task_read)
        .on(TaskSuspend, on::task_suspend)
        .on(ThreadSuspend, on::thread_suspend)
        .on(TaskResume, on::task_resume)
        .on(TaskDelete, on::task_delete)
        .on(PlacementList, placements::list)
        .on(PlacementRead, placements::read)
        .on(PlacementSnapshot, placements::snapshot)
        .on(PlacementSuspend, placements::suspend)
        .on(PlacementAbandon, placements::abandon)
        .on(PlacementDelete, placements::delete)
        .on(PlacementGc, placements::gc)
        .on(OperationList, on::operation_list)
        .on(OperationDecide, on::operation_decide)
        .on(UsageList, on::usage_list)
        .on(AuditList, on::audit_list)
        .on(ReplicaList, on::replica_list)
        .deferred(ModelStreamEvent, carriers::stream_event)
        .hear(
            ModelStreamEventUnacknowledged,
            |params| Some(params.thread_id.as_str()),
            carriers::stream_event_unacknowledged,
        )
        .on(ModelStreamAborted, carriers::stream_aborted)
        .on(ModelRequestRejected, carriers::request_rejected)
        .on(ServerStatus, on::server_status)
        .wrapped(RELAYED, relaying)
        .wrapped(PLACED, placed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::router::HOST_ONLY;

    /// Whoever adds a method of a host adds its route, and no method is taken from the app-server by mistake.
    #[test]
    fn a_host_has_its_own_methods_and_none_that_change_its_machine() {
        let names = host_routes().names();
        assert!(HOST_ONLY.iter().all(|name| names.contains(name)), "{names:?}");
        for name in ["config/value/write", "account/login/start", "plugin/install", "rollout/load"] {
            assert!(!names.contains(&name), "{name}");
        }
        assert!(LOCAL.iter().all(|name| routes().names().contains(name)));
    }

    #[test]
    fn what_a_host_does_not_do_is_refused_with_the_place_to_do_it() {
        for (name, place) in [
            ("config/value/write", "on its machine"),
            ("account/login/start", "on its machine"),
            ("thread/realtime/start", "an app-server"),
        ] {
            let refusal = host_routes().refusal(name);
            assert!(refusal.message.contains(place), "{refusal:?}");
            assert_eq!(refusal.data, Some(serde_json::json!({"code": "notSupported"})));
        }
    }
}
