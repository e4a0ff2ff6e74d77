//! Which handler carries out which method.

use protocol::{
    ConfigRead, ExperimentalFeatureList, GetAccount, LoginAccount, LogoutAccount, MockExperimentalMethod,
    ModelList, ThreadArchive, ThreadCompactStart, ThreadFork, ThreadList, ThreadLoadedList,
    ThreadMetadataUpdate, ThreadRead, ThreadResume, ThreadRollback, ThreadSetName, ThreadStart,
    ThreadUnarchive, ThreadUnsubscribe, TurnInterrupt, TurnStart, TurnSteer,
};

use crate::app::App;
use crate::handlers::{account, catalogue, thread, thread_open, turn};
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
        .on(TurnSteer, turn::steer)
        .deferred(TurnInterrupt, turn::interrupt)
        .on(ModelList, catalogue::models)
        .on(ExperimentalFeatureList, catalogue::features)
        .on(ConfigRead, catalogue::config_read)
        .on(MockExperimentalMethod, catalogue::mock)
        .on(GetAccount, account::read)
        .deferred(LoginAccount, account::login)
        .deferred(LogoutAccount, account::logout)
}

/// Methods of the protocol that answer that they are not supported yet.
#[cfg(test)]
const UNSUPPORTED: &[&str] = &[
    "thread/increment_elicitation",
    "thread/decrement_elicitation",
    "thread/goal/set",
    "thread/goal/get",
    "thread/goal/clear",
    "thread/shellCommand",
    "thread/backgroundTerminals/clean",
    "skills/list",
    "plugin/list",
    "plugin/read",
    "app/list",
    "fs/readFile",
    "fs/writeFile",
    "fs/createDirectory",
    "fs/getMetadata",
    "fs/readDirectory",
    "fs/remove",
    "fs/copy",
    "fs/watch",
    "fs/unwatch",
    "skills/config/write",
    "plugin/install",
    "plugin/uninstall",
    "turn/suspend",
    "thread/realtime/start",
    "thread/realtime/appendAudio",
    "thread/realtime/appendText",
    "thread/realtime/stop",
    "review/start",
    "model/streamEvent",
    "model/streamAborted",
    "model/requestRejected",
    "rollout/load",
    "delegation/result",
    "environment/add",
    "environment/info",
    "environment/status",
    "experimentalFeature/enablement/set",
    "collaborationMode/list",
    "mcpServer/oauth/login",
    "config/mcpServer/reload",
    "mcpServerStatus/list",
    "windowsSandbox/setupStart",
    "account/login/cancel",
    "account/rateLimits/read",
    "feedback/upload",
    "command/exec",
    "command/exec/write",
    "command/exec/terminate",
    "command/exec/resize",
    "externalAgentConfig/detect",
    "externalAgentConfig/import",
    "config/value/write",
    "config/batchWrite",
    "configRequirements/read",
    "getConversationSummary",
    "gitDiffToRemote",
    "getAuthStatus",
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
