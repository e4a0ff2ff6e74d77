//! `model/*` and `rollout/load`: a host that carries a thread's requests.

use std::time::Duration;

use delegation::HostId;
use protocol::{
    DelegationProgressNotification, DelegationResultParams, DelegationResultResponse,
    ModelRequestRejectedParams, ModelStreamAbortedParams, ModelStreamEventParams, ModelStreamEventResponse,
    RolloutLoadParams, RolloutLoadResponse,
};
use support::Responder;

use crate::agents::AgentControl;
use crate::error::RuntimeError;
use crate::runtime::Runtime;
use driver::check_thread_id;

impl Runtime {
    /// Takes a batch of events. Responds before the turn gets any of them, and later when there is no credit to grant.
    pub fn stream_event(
        &self,
        from: HostId,
        params: &ModelStreamEventParams,
        responder: Responder<ModelStreamEventResponse, RuntimeError>,
    ) {
        match check_thread_id(&params.thread_id) {
            Ok(thread) => {
                self.state.delegation.stream_event(from, &thread, params, responder.from_error());
            }
            Err(error) => responder.respond(Err(error.into())),
        }
    }

    /// Like [`Runtime::stream_event`], for a host that wants no responses.
    pub fn stream_event_unacknowledged(
        &self,
        from: HostId,
        params: &ModelStreamEventParams,
    ) -> Result<(), RuntimeError> {
        let thread = check_thread_id(&params.thread_id)?;
        Ok(self.state.delegation.stream_event_unacknowledged(from, &thread, params)?)
    }

    /// A stream ended without a terminal event. No effect on a stream that has ended.
    pub fn stream_aborted(
        &self,
        from: HostId,
        params: &ModelStreamAbortedParams,
    ) -> Result<(), RuntimeError> {
        let thread = check_thread_id(&params.thread_id)?;
        Ok(self.state.delegation.stream_aborted(from, &thread, params)?)
    }

    /// The host reports late that it does not carry a request. No effect on a stream that has ended.
    pub fn request_rejected(
        &self,
        from: HostId,
        params: &ModelRequestRejectedParams,
    ) -> Result<(), RuntimeError> {
        let thread = check_thread_id(&params.thread_id)?;
        Ok(self.state.delegation.request_rejected(from, &thread, params)?)
    }

    /// The result of a child that the host ran. Responds when it is recorded; a repetition changes nothing.
    pub async fn delegation_result(
        &self,
        from: HostId,
        params: DelegationResultParams,
    ) -> Result<DelegationResultResponse, RuntimeError> {
        AgentControl::new(&self.state).delegation_result(from, params).await
    }

    /// Progress is only logged; the parent's model gets the result.
    pub fn delegation_progress(
        &self,
        from: HostId,
        params: &DelegationProgressNotification,
    ) -> Result<(), RuntimeError> {
        AgentControl::new(&self.state).delegation_progress(from, params)
    }

    /// One part of a history that is too long for one message.
    pub fn load_part(
        &self,
        host: HostId,
        params: RolloutLoadParams,
    ) -> Result<RolloutLoadResponse, RuntimeError> {
        Ok(self.state.uploads.add(host, params)?)
    }

    /// The host's lease is valid for this time.
    pub fn lease_renewed(&self, valid_for: Duration) {
        self.state.delegation.lease_renewed(valid_for);
    }

    /// Returns when the lease of a host that sends heartbeats has expired: this process must end, since another host
    /// may have its threads.
    pub async fn lease_over(&self) {
        self.state.delegation.lease_over().await;
    }

    /// A host disconnected: its streams will not continue.
    pub fn host_gone(&self, host: HostId) {
        self.state.delegation.host_gone(host);
        self.state.uploads.forget(host);
    }
}
