//! Which connection carries the model requests of which task, and what it says about them.

use std::collections::HashMap;
use std::sync::Arc;

use host::{ClientStreamError, TaskError};
use parking_lot::Mutex;
use protocol::{
    DelegationMode, ModelRequestRejectedParams, ModelRequestRejectedResponse, ModelStreamAbortedParams,
    ModelStreamAbortedResponse, ModelStreamEvent, ModelStreamEventParams, ThreadDelegation, ThreadId,
};
use tokio::sync::watch;

use crate::host_face::app::HostApp;
use crate::hub::{ConnectionId, Hub, Requester};
use crate::reply::MethodReply;

/// One connection for each task. Every change wakes the requests that wait for one.
#[derive(Debug, Default)]
pub(crate) struct ModelCarriers {
    held: Mutex<HashMap<ThreadId, HeldTask>>,
    version: watch::Sender<u64>,
}

#[derive(Debug)]
struct HeldTask {
    connection: ConnectionId,
    /// As it was asked for.
    delegation: ThreadDelegation,
    /// The connection has its answer, and is asked from now on.
    is_ready: bool,
}

/// A task that a connection is about to carry. Dropped before that is certain, it is free again.
#[derive(Debug)]
pub(crate) struct CarrierClaim {
    carriers: Arc<ModelCarriers>,
    task: ThreadId,
    connection: ConnectionId,
    /// Nothing to give up: no claim was made, or the connection has had the task before.
    is_kept: bool,
    is_full: bool,
}

impl ModelCarriers {
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    fn changed(&self) {
        self.version.send_modify(|version| *version += 1);
    }

    /// The task for this connection, unless another one has it. With mode `direct` nobody may have it.
    pub(crate) fn claim(
        self: &Arc<Self>,
        hub: &Hub,
        (task, connection): (&ThreadId, ConnectionId),
        asked: &ThreadDelegation,
    ) -> Result<CarrierClaim, TaskError> {
        let mut held = self.held.lock();
        let now = held.get(task).filter(|held| hub.is_connected(held.connection));
        if let Some(other) = now.filter(|held| held.connection != connection) {
            let by = hub.name_of(other.connection);
            return Err(TaskError::CarrierTaken { thread: task.clone(), by });
        }
        let is_full = asked.mode == DelegationMode::Full;
        let is_kept = !is_full || now.is_some();
        let is_ready = now.is_some_and(|held| held.is_ready);
        if is_full {
            held.insert(task.clone(), HeldTask { connection, delegation: asked.clone(), is_ready });
        }
        drop(held);
        Ok(CarrierClaim { carriers: self.clone(), task: task.clone(), connection, is_kept, is_full })
    }

    /// As this connection asked for it.
    pub(crate) fn carried_by(&self, task: &ThreadId, connection: ConnectionId) -> Option<ThreadDelegation> {
        let held = self.held.lock();
        held.get(task).filter(|held| held.connection == connection).map(|held| held.delegation.clone())
    }

    pub(crate) fn leave(&self, task: &ThreadId, connection: ConnectionId) {
        self.held.lock().retain(|held, by| held != task || by.connection != connection);
    }

    pub(crate) fn disconnect(&self, connection: ConnectionId) {
        self.held.lock().retain(|_, held| held.connection != connection);
    }

    pub(crate) fn find(&self, hub: &Hub, task: &ThreadId) -> Option<ConnectionId> {
        let held = self.held.lock();
        held.get(task)
            .filter(|held| held.is_ready && hub.is_connected(held.connection))
            .map(|held| held.connection)
    }
}

impl CarrierClaim {
    /// The connection knows that it carries the task, or that nobody does.
    pub(crate) fn settle(mut self) {
        self.is_kept = true;
        match self.is_full {
            true => {
                if let Some(held) = self.carriers.held.lock().get_mut(&self.task) {
                    held.is_ready = true;
                }
            }
            false => self.carriers.leave(&self.task, self.connection),
        }
        self.carriers.changed();
    }
}

impl Drop for CarrierClaim {
    fn drop(&mut self) {
        if !self.is_kept {
            self.carriers.leave(&self.task, self.connection);
        }
    }
}

/// The answer is given when there is credit for more, and holds up nothing else about the thread.
pub(super) async fn stream_event(
    app: Arc<HostApp>,
    caller: Requester,
    params: ModelStreamEventParams,
    reply: MethodReply<ModelStreamEvent>,
) {
    let answer = Box::new(move |taken: Result<_, ClientStreamError>| reply.send(taken.map_err(Into::into)));
    app.host.stream_event(caller.id().0, params, answer);
}

/// Nobody waits for an answer, so what is wrong can only be logged. The turn hears of it too.
pub(super) async fn stream_event_unacknowledged(
    app: Arc<HostApp>,
    caller: Requester,
    params: ModelStreamEventParams,
) {
    let request = params.model_request_id.clone();
    if let Err(error) = app.host.stream_event_unacknowledged(caller.id().0, params) {
        tracing::warn!(connection = %caller.id(), %request, "events were refused: {error}");
    }
}

pub(super) async fn stream_aborted(
    app: Arc<HostApp>,
    caller: Requester,
    params: ModelStreamAbortedParams,
) -> Result<ModelStreamAbortedResponse, TaskError> {
    app.host.stream_aborted(caller.id().0, params)?;
    Ok(ModelStreamAbortedResponse {})
}

pub(super) async fn request_rejected(
    app: Arc<HostApp>,
    caller: Requester,
    params: ModelRequestRejectedParams,
) -> Result<ModelRequestRejectedResponse, TaskError> {
    app.host.request_rejected(caller.id().0, params)?;
    Ok(ModelRequestRejectedResponse {})
}
