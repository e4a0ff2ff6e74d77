//! Which handler carries out which method.

use std::sync::Arc;

use host::{PLACED, names_placement};
use protocol::{
    AppsList, CancelLoginAccount, CollaborationModeList, CommandExec, CommandExecResize,
    CommandExecTerminate, CommandExecWrite, ConfigBatchWrite, ConfigRead, ConfigRequirementsRead,
    ConfigValueWrite, DelegationHeartbeat, DelegationProgress, DelegationResult, EnvironmentAdd,
    EnvironmentInfo, EnvironmentStatusRead, ExperimentalFeatureEnablementSet, ExperimentalFeatureList,
    ExternalAgentConfigDetect, ExternalAgentConfigImport, FeedbackUpload, FsCopy, FsCreateDirectory,
    FsGetMetadata, FsReadDirectory, FsReadFile, FsRemove, FsUnwatch, FsWatch, FsWriteFile, FuzzyFileSearch,
    FuzzyFileSearchSessionStart, FuzzyFileSearchSessionStop, FuzzyFileSearchSessionUpdate, GetAccount,
    GetAccountRateLimits, GetAuthStatus, GetConversationSummary, GitDiffToRemote, HooksList, LoginAccount,
    LogoutAccount, McpServerOauthLogin, McpServerRefresh, McpServerStatusList, MockExperimentalMethod,
    ModelList, ModelRequestRejected, ModelStreamAborted, ModelStreamEvent, ModelStreamEventUnacknowledged,
    PluginInstall, PluginList, PluginRead, PluginUninstall, ReviewStart, RolloutLoad, ServerStatus,
    SkillsConfigWrite, SkillsList, ThreadArchive, ThreadBackgroundTerminalsClean, ThreadCompactStart,
    ThreadDecrementElicitation, ThreadDelete, ThreadFork, ThreadGoalClear, ThreadGoalGet, ThreadGoalSet,
    ThreadIncrementElicitation, ThreadItemsList, ThreadList, ThreadLoadedList, ThreadMetadataUpdate,
    ThreadPromptRead, ThreadRead, ThreadRealtimeAppendAudio, ThreadRealtimeAppendText, ThreadRealtimeStart,
    ThreadRealtimeStop, ThreadRecordsList, ThreadResume, ThreadRollback, ThreadSetName, ThreadShellCommand,
    ThreadStart, ThreadTurnsList, ThreadUnarchive, ThreadUnsubscribe, TurnInterrupt, TurnStart, TurnSteer,
    TurnSuspend, WindowsSandboxSetupStart,
};

use runtime::RuntimeError;
use serde_json::value::RawValue;

use crate::app::App;
use crate::handlers::{
    account, catalogue, command_exec, config, delegation, environment, external_agent, fs, fuzzy_file_search,
    goal, legacy, mcp, plugin, realtime, review, server_status, skills, thread, thread_open, turn, windows,
};
use crate::router::{Router, Run};
use crate::wire_error::WireError;

/// Every method that this server carries out. `initialize` belongs to the connection.
pub fn routes() -> Router<App> {
    beside_threads(about_threads(Router::new())).wrapped(PLACED, on_this_machine)
}

/// Only a host has placements: what is meant for one is not done here instead.
fn on_this_machine(method: &'static str, _: Option<&str>, params: &RawValue, run: Run<App>) -> Run<App> {
    if !names_placement(method, Some(params.get())) {
        return run;
    }
    let problem = "is for hosts; leave it out for what is on this machine".to_owned();
    let refused = WireError::from(RuntimeError::Field { field: "placementId", problem });
    Box::new(move |_, _, to| Box::pin(async move { to.refuse(&refused) }))
}

/// Threads, their turns, and the host that works for them.
fn about_threads(router: Router<App>) -> Router<App> {
    router
        .deferred(ThreadStart, thread_open::start)
        .deferred(ThreadResume, thread_open::resume)
        .deferred(ThreadFork, thread_open::fork)
        .deferred(ThreadArchive, thread::archive)
        .deferred(ThreadDelete, thread::delete)
        .deferred(ThreadUnarchive, thread::unarchive)
        .deferred(ThreadUnsubscribe, thread::unsubscribe)
        .deferred(ThreadSetName, thread::name_set)
        .deferred(ThreadCompactStart, thread::compact_start)
        .on(ThreadMetadataUpdate, thread::metadata_update)
        .on(ThreadRollback, thread::rollback)
        .on(ThreadList, thread::list)
        .on(ThreadLoadedList, thread::loaded_list)
        .deferred(ThreadRead, thread::read)
        .deferred(ThreadGoalSet, goal::set)
        .on(ThreadGoalGet, goal::get)
        .deferred(ThreadGoalClear, goal::clear)
        .deferred(ReviewStart, review::start)
        .large(ThreadTurnsList, |app: Arc<App>, params| async move { app.runtime.list_turns(params).await })
        .large(ThreadItemsList, |app: Arc<App>, params| async move { app.runtime.list_items(params).await })
        .large(
            ThreadRecordsList,
            |app: Arc<App>, params| async move { app.runtime.list_records(params).await },
        )
        .large(
            ThreadPromptRead,
            |app: Arc<App>, params| async move { app.runtime.read_prompt(&params).await },
        )
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
        .hear(DelegationHeartbeat, |_| None, delegation::heartbeat)
        .hear(DelegationProgress, |_| None, delegation::progress)
        .deferred(ModelStreamEvent, delegation::stream_event)
        .hear(
            ModelStreamEventUnacknowledged,
            |params| Some(params.thread_id.as_str()),
            delegation::stream_event_unacknowledged,
        )
        .on(ModelStreamAborted, delegation::stream_aborted)
        .on(ModelRequestRejected, delegation::request_rejected)
        .deferred(ThreadRealtimeStart, realtime::start)
        .on(ThreadRealtimeAppendAudio, realtime::append_audio)
        .on(ThreadRealtimeAppendText, realtime::append_text)
        .deferred(ThreadRealtimeStop, realtime::stop)
}

/// Commands, files, settings and accounts: they belong to the connection or to the process.
fn beside_threads(router: Router<App>) -> Router<App> {
    router
        .deferred(CommandExec, command_exec::start)
        .deferred(CommandExecWrite, command_exec::write)
        .deferred(CommandExecTerminate, command_exec::terminate)
        .deferred(CommandExecResize, command_exec::resize)
        .on(EnvironmentAdd, environment::add)
        .on(EnvironmentInfo, environment::info)
        .on(EnvironmentStatusRead, environment::status)
        .on(ModelList, catalogue::models)
        .on(CollaborationModeList, catalogue::collaboration_modes)
        .on(AppsList, catalogue::apps)
        .on(ExperimentalFeatureList, catalogue::features)
        .on(ConfigRead, catalogue::config_read)
        .on(ConfigValueWrite, config::value_write)
        .on(ConfigBatchWrite, config::batch_write)
        .on(ExperimentalFeatureEnablementSet, config::enablement_set)
        .on(ConfigRequirementsRead, catalogue::requirements_read)
        .on(McpServerStatusList, mcp::status_list)
        .on(McpServerRefresh, mcp::reload)
        .deferred(McpServerOauthLogin, mcp::oauth_login)
        .on(PluginList, plugin::list)
        .on(PluginRead, plugin::read)
        .on(PluginInstall, plugin::install)
        .on(PluginUninstall, plugin::uninstall)
        .deferred(FsReadFile, fs::read_file)
        .on(FsWriteFile, fs::write_file)
        .on(FsCreateDirectory, fs::create_directory)
        .on(FsGetMetadata, fs::metadata)
        .on(FsReadDirectory, fs::read_directory)
        .on(FsRemove, fs::remove)
        .on(FsCopy, fs::copy)
        .deferred(FsWatch, fs::watch)
        .on(FsUnwatch, fs::unwatch)
        .deferred(FuzzyFileSearch, fuzzy_file_search::search)
        .deferred(FuzzyFileSearchSessionStart, fuzzy_file_search::session_start)
        .on(FuzzyFileSearchSessionUpdate, fuzzy_file_search::session_update)
        .on(FuzzyFileSearchSessionStop, fuzzy_file_search::session_stop)
        .deferred(WindowsSandboxSetupStart, windows::setup_start)
        .on(FeedbackUpload, legacy::feedback_upload)
        .on(GetConversationSummary, legacy::conversation_summary)
        .on(GitDiffToRemote, legacy::git_diff_to_remote)
        .on(ServerStatus, server_status::read)
        .on(SkillsList, skills::list)
        .on(HooksList, config::hooks_list)
        .on(SkillsConfigWrite, skills::config_write)
        .on(ExternalAgentConfigDetect, external_agent::detect)
        .on(ExternalAgentConfigImport, external_agent::import)
        .on(MockExperimentalMethod, catalogue::mock)
        .on(GetAccount, account::read)
        .deferred(LoginAccount, account::login)
        .deferred(LogoutAccount, account::logout)
        .deferred(CancelLoginAccount, account::cancel_login)
        .on(GetAccountRateLimits, account::rate_limits)
        .on(GetAuthStatus, account::auth_status)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use protocol::{CLIENT_REQUESTS, Initialize, RequestMethod};

    use super::*;
    use crate::router::HOST_ONLY;

    #[test]
    fn every_method_has_a_route() {
        let mut covered: Vec<&str> = routes().names();
        covered.push(Initialize::METHOD);
        covered.extend(HOST_ONLY);
        let listed: BTreeSet<&str> = CLIENT_REQUESTS.iter().map(|row| row.name).collect();
        let distinct: BTreeSet<&str> = covered.iter().copied().collect();
        assert_eq!(distinct, listed);
        assert_eq!(distinct.len(), covered.len(), "a method has two routes");
    }
}
