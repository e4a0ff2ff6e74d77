//! Which handler carries out which method.

use protocol::{
    AppsList, CancelLoginAccount, CollaborationModeList, CommandExec, CommandExecResize,
    CommandExecTerminate, CommandExecWrite, ConfigRead, ConfigRequirementsRead, DelegationProgress,
    DelegationResult, EnvironmentAdd, EnvironmentInfo, EnvironmentStatusRead, ExperimentalFeatureList,
    ExternalAgentConfigDetect, ExternalAgentConfigImport, GetAccount, GetAccountRateLimits, GetAuthStatus,
    LoginAccount, LogoutAccount, MockExperimentalMethod, ModelList, ModelRequestRejected, ModelStreamAborted,
    ModelStreamEvent, ModelStreamEventUnacknowledged, RolloutLoad, SkillsConfigWrite, SkillsList,
    ThreadArchive, ThreadBackgroundTerminalsClean, ThreadCompactStart, ThreadDecrementElicitation,
    ThreadFork, ThreadIncrementElicitation, ThreadList, ThreadLoadedList, ThreadMetadataUpdate, ThreadRead,
    ThreadResume, ThreadRollback, ThreadSetName, ThreadShellCommand, ThreadStart, ThreadUnarchive,
    ThreadUnsubscribe, TurnInterrupt, TurnStart, TurnSteer, TurnSuspend,
};

use crate::app::App;
use crate::handlers::{
    account, catalogue, command_exec, delegation, environment, external_agent, skills, thread, thread_open,
    turn,
};
use crate::router::Router;

/// Every method that this server carries out. `initialize` belongs to the connection.
pub fn routes() -> Router<App> {
    Router::new()
        .deferred(ThreadStart, thread_open::start)
        .deferred(ThreadResume, thread_open::resume)
        .deferred(ThreadFork, thread_open::fork)
        .deferred(ThreadArchive, thread::archive)
        .deferred(ThreadUnarchive, thread::unarchive)
        .deferred(ThreadUnsubscribe, thread::unsubscribe)
        .deferred(ThreadSetName, thread::name_set)
        .deferred(ThreadCompactStart, thread::compact_start)
        .on(ThreadMetadataUpdate, thread::metadata_update)
        .on(ThreadRollback, thread::rollback)
        .on(ThreadList, thread::list)
        .on(ThreadLoadedList, thread::loaded_list)
        .deferred(ThreadRead, thread::read)
        .deferred(TurnStart, turn::start)
        .deferred(ThreadShellCommand, turn::shell_command)
        .on(ThreadBackgroundTerminalsClean, turn::clean_terminals)
        .on(ThreadIncrementElicitation, turn::open_elicitation)
        .on(ThreadDecrementElicitation, turn::close_elicitation)
        .on(TurnSteer, turn::steer)
        .deferred(TurnInterrupt, turn::interrupt)
        .deferred(TurnSuspend, turn::suspend)
        .on(RolloutLoad, delegation::load)
        .on(DelegationResult, delegation::result)
        .hear(DelegationProgress, |_| None, delegation::progress)
        .deferred(CommandExec, command_exec::start)
        .deferred(CommandExecWrite, command_exec::write)
        .deferred(CommandExecTerminate, command_exec::terminate)
        .deferred(CommandExecResize, command_exec::resize)
        .on(EnvironmentAdd, environment::add)
        .on(EnvironmentInfo, environment::info)
        .on(EnvironmentStatusRead, environment::status)
        .on(ModelList, catalogue::models)
        .deferred(ModelStreamEvent, delegation::stream_event)
        .hear(
            ModelStreamEventUnacknowledged,
            |params| Some(params.thread_id.as_str()),
            delegation::stream_event_unacknowledged,
        )
        .on(ModelStreamAborted, delegation::stream_aborted)
        .on(ModelRequestRejected, delegation::request_rejected)
        .on(CollaborationModeList, catalogue::collaboration_modes)
        .on(AppsList, catalogue::apps)
        .on(ExperimentalFeatureList, catalogue::features)
        .on(ConfigRead, catalogue::config_read)
        .on(ConfigRequirementsRead, catalogue::requirements_read)
        .on(SkillsList, skills::list)
        .on(SkillsConfigWrite, skills::config_write)
        .on(ExternalAgentConfigDetect, external_agent::detect)
        .on(ExternalAgentConfigImport, external_agent::import)
        .on(MockExperimentalMethod, catalogue::mock)
        .on(GetAccount, account::read)
        .deferred(LoginAccount, account::login)
        .deferred(LogoutAccount, account::logout)
        .on(CancelLoginAccount, account::cancel_login)
        .on(GetAccountRateLimits, account::rate_limits)
        .on(GetAuthStatus, account::auth_status)
}

/// Methods of the protocol that answer that they are not supported yet.
#[cfg(test)]
const UNSUPPORTED: &[&str] = &[
    "thread/goal/set",
    "thread/goal/get",
    "thread/goal/clear",
    "plugin/list",
    "plugin/read",
    "fs/readFile",
    "fs/writeFile",
    "fs/createDirectory",
    "fs/getMetadata",
    "fs/readDirectory",
    "fs/remove",
    "fs/copy",
    "fs/watch",
    "fs/unwatch",
    "plugin/install",
    "plugin/uninstall",
    "thread/realtime/start",
    "thread/realtime/appendAudio",
    "thread/realtime/appendText",
    "thread/realtime/stop",
    "review/start",
    "experimentalFeature/enablement/set",
    "mcpServer/oauth/login",
    "config/mcpServer/reload",
    "mcpServerStatus/list",
    "windowsSandbox/setupStart",
    "feedback/upload",
    "config/value/write",
    "config/batchWrite",
    "getConversationSummary",
    "gitDiffToRemote",
    "fuzzyFileSearch",
    "fuzzyFileSearch/sessionStart",
    "fuzzyFileSearch/sessionUpdate",
    "fuzzyFileSearch/sessionStop",
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use protocol::{CLIENT_REQUESTS, Initialize, Request};

    use super::*;

    #[test]
    fn every_method_has_a_route_or_is_known_to_have_none() {
        let mut covered: Vec<&str> = routes().names();
        covered.extend(UNSUPPORTED);
        covered.push(Initialize::METHOD);
        let listed: BTreeSet<&str> = CLIENT_REQUESTS.iter().map(|row| row.name).collect();
        let distinct: BTreeSet<&str> = covered.iter().copied().collect();
        assert_eq!(distinct, listed);
        assert_eq!(distinct.len(), covered.len(), "a method stands in both lists");
    }
}
