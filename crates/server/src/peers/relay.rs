//! One request that may belong to another replica: sent there once, or carried out here.

use std::sync::Arc;
use std::time::Duration;

use host::TaskError;
use protocol::{
    ModelRequestRejected, ModelStreamAborted, ModelStreamEvent, RequestMethod, ReviewStart, TaskDelete,
    TaskResume, TaskSuspend, ThreadArchive, ThreadBackgroundTerminalsClean, ThreadCompactStart, ThreadDelete,
    ThreadGoalClear, ThreadGoalGet, ThreadGoalSet, ThreadId, ThreadMetadataUpdate, ThreadPromptRead,
    ThreadResume, ThreadRollback, ThreadShellCommand, ThreadSuspend, TurnInterrupt, TurnStart, TurnSteer,
    TurnSuspend,
};
use runtime::BoxFuture;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::link::Unsent;
use crate::host_face::HostApp;
use crate::hub::Requester;
use crate::reply::ReplyTo;
use crate::router::Run;
use crate::wire_error::WireError;

/// Methods that need the driver of a thread, which one replica has. All others are answered from the store.
pub(crate) const RELAYED: &[&str] = &[
    ThreadResume::METHOD,
    TurnStart::METHOD,
    TurnSteer::METHOD,
    TurnInterrupt::METHOD,
    TurnSuspend::METHOD,
    ThreadCompactStart::METHOD,
    ThreadRollback::METHOD,
    ThreadShellCommand::METHOD,
    ThreadBackgroundTerminalsClean::METHOD,
    ThreadMetadataUpdate::METHOD,
    ThreadGoalSet::METHOD,
    ThreadGoalGet::METHOD,
    ThreadPromptRead::METHOD,
    ThreadGoalClear::METHOD,
    ThreadArchive::METHOD,
    ThreadDelete::METHOD,
    ReviewStart::METHOD,
    TaskSuspend::METHOD,
    ThreadSuspend::METHOD,
    TaskResume::METHOD,
    TaskDelete::METHOD,
    ModelStreamEvent::METHOD,
    ModelStreamAborted::METHOD,
    ModelRequestRejected::METHOD,
];

/// The pause before an owner that could not be reached is looked for again.
const AGAIN_AFTER: Duration = Duration::from_millis(300);
/// How much longer than a lease it is looked for.
const SLACK: Duration = Duration::from_secs(5);

/// A request, as it came and as this replica would carry it out.
pub(super) struct RelayedCall {
    pub(super) method: &'static str,
    pub(super) thread: ThreadId,
    pub(super) params: Box<RawValue>,
    pub(super) run: Run<HostApp>,
}

/// A call that goes to the replica that has the thread, if that is another one.
pub(crate) fn relaying(
    method: &'static str,
    thread: Option<&str>,
    params: &RawValue,
    run: Run<HostApp>,
) -> Run<HostApp> {
    let Some(thread) = thread else { return run };
    let call = RelayedCall { method, thread: ThreadId::new(thread), params: params.to_owned(), run };
    Box::new(move |app, caller, to| relay(app, caller, to, call))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InputHead {
    #[serde(default)]
    input_id: Option<IgnoredAny>,
}

impl RelayedCall {
    /// Whether it may be sent twice: whoever has seen its `inputId` gives the first answer again.
    pub(super) fn is_repeatable(&self) -> bool {
        [TurnStart::METHOD, TurnSteer::METHOD].contains(&self.method)
            && serde_json::from_str::<InputHead>(self.params.get()).is_ok_and(|head| head.input_id.is_some())
    }
}

/// Sends the request to the replica that has its thread, or carries it out here. Returns when it is sent: the answer comes
/// in order with all that the other replica says.
pub(super) fn relay(
    app: Arc<HostApp>,
    caller: Requester,
    mut to: ReplyTo,
    mut call: RelayedCall,
) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let Some(peers) = app.peers.get().filter(|_| !caller.identity().is_relayed).cloned() else {
            return (call.run)(app, caller, to).await;
        };
        let give_up = Instant::now() + app.host.lease_time() + SLACK;
        loop {
            let Some(owner) = peers.owner(&call.thread).await else {
                return (call.run)(app, caller, to).await;
            };
            match peers.link(&caller.connection, &owner).await {
                Ok(link) => match link.pass(app.clone(), caller.clone(), to, call) {
                    Ok(()) => return,
                    Err(Unsent { to: back, call: unsent }) => (to, call) = (back, *unsent),
                },
                Err(error) => {
                    tracing::warn!(%error, replica = owner.replica, "another host cannot be reached");
                }
            }
            // Nothing was sent. Until its lease is over, nobody else may have the thread.
            if Instant::now() >= give_up {
                let error = TaskError::OwnedElsewhere { thread: call.thread, address: owner.address };
                return to.refuse(&WireError::from(error));
            }
            tokio::time::sleep(AGAIN_AFTER).await;
        }
    })
}
