//! A connection as the host of threads.

use std::sync::Arc;
use std::task::{Context, Waker};

use protocol::{
    DelegationCancel, DelegationCancelParams, DelegationCancelResponse, DelegationInput,
    DelegationInputParams, DelegationInputResponse, DelegationRequest, DelegationRequestParams,
    DelegationRequestResponse, HostDelegationAgreed, ModelCancel, ModelCancelParams, ModelCancelResponse,
    ModelRequest, ModelRequestParams, ModelRequestResponse, RequestMethod, RolloutAppend,
    RolloutAppendParams, RolloutAppendResponse, ThreadId,
};
use runtime::{BoxFuture, ClientId, Host, HostError, HostId};

use super::questions::{AskError, AskTarget};
use super::{ConnectionId, Hub, Requester};
use crate::wire_error::WireError;

/// Asks one connection, and nobody else.
#[derive(Debug)]
pub(crate) struct HubHost {
    hub: Arc<Hub>,
    connection: ConnectionId,
    agreed: HostDelegationAgreed,
}

impl HubHost {
    /// Nothing, unless delegation was agreed on with the caller.
    pub(crate) fn of(hub: &Arc<Hub>, caller: &Requester) -> Option<Arc<dyn Host>> {
        let agreed = caller.agreed()?.host_delegation.clone()?;
        Some(Arc::new(Self { hub: hub.clone(), connection: caller.id(), agreed }))
    }

    fn ask<R: RequestMethod>(
        &self,
        thread: ThreadId,
        params: R::Params,
    ) -> BoxFuture<'static, Result<R::Response, HostError>> {
        let target = AskTarget::Connection { connection: self.connection, thread: Some(thread) };
        let answer = self.hub.ask::<R>(target, params);
        Box::pin(async move { answer.await.map_err(host_error) })
    }
}

impl From<ConnectionId> for HostId {
    fn from(connection: ConnectionId) -> Self {
        Self(connection.0)
    }
}

impl From<ConnectionId> for ClientId {
    fn from(connection: ConnectionId) -> Self {
        Self(HostId::from(connection).0)
    }
}

impl Host for HubHost {
    fn id(&self) -> HostId {
        self.connection.into()
    }

    fn agreed(&self) -> &HostDelegationAgreed {
        &self.agreed
    }

    fn request_model(
        &self,
        params: ModelRequestParams,
    ) -> BoxFuture<'static, Result<ModelRequestResponse, HostError>> {
        self.ask::<ModelRequest>(params.thread_id.clone(), params)
    }

    fn cancel_model(
        &self,
        params: ModelCancelParams,
    ) -> BoxFuture<'static, Result<ModelCancelResponse, HostError>> {
        self.ask::<ModelCancel>(params.thread_id.clone(), params)
    }

    fn append(
        &self,
        params: RolloutAppendParams,
    ) -> BoxFuture<'static, Result<RolloutAppendResponse, HostError>> {
        begun(self.ask::<RolloutAppend>(params.thread_id.clone(), params))
    }

    fn delegate(
        &self,
        params: DelegationRequestParams,
    ) -> BoxFuture<'static, Result<DelegationRequestResponse, HostError>> {
        self.ask::<DelegationRequest>(params.parent.thread_id.clone(), params)
    }

    fn delegate_input(
        &self,
        parent: ThreadId,
        params: DelegationInputParams,
    ) -> BoxFuture<'static, Result<DelegationInputResponse, HostError>> {
        self.ask::<DelegationInput>(parent, params)
    }

    fn delegate_cancel(
        &self,
        parent: ThreadId,
        params: DelegationCancelParams,
    ) -> BoxFuture<'static, Result<DelegationCancelResponse, HostError>> {
        self.ask::<DelegationCancel>(parent, params)
    }
}

/// Takes its place in the connection's queue now, so that what is asked first is sent first, whoever is polled first.
fn begun<T: Send + 'static>(mut future: BoxFuture<'static, T>) -> BoxFuture<'static, T> {
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        std::task::Poll::Ready(answer) => Box::pin(std::future::ready(answer)),
        // Whoever polls it next is woken.
        std::task::Poll::Pending => future,
    }
}

fn host_error(error: AskError) -> HostError {
    match error {
        AskError::Refused { error, .. } => {
            let data = error.data.as_ref().and_then(|data| serde_json::from_str(data.get()).ok());
            HostError::Refused { code: error.code, message: error.message, data }
        }
        AskError::Unreadable(error) => {
            let message = format!("its answer cannot be read: {error}");
            HostError::Refused { code: WireError::INVALID_REQUEST, message, data: None }
        }
        AskError::TurnEnded | AskError::Gone => HostError::Gone,
    }
}
