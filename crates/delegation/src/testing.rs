//! A host for the tests of this crate, and its terms.

use parking_lot::Mutex;

use protocol::{
    DelegationCancelParams, DelegationCancelResponse, DelegationInputParams, DelegationInputResponse,
    DelegationRequestParams, DelegationRequestResponse, HostDelegationAgreed, ModelCancelDisposition,
    ModelCancelParams, ModelCancelResponse, ModelRequestId, ModelRequestParams, ModelRequestResponse,
    RolloutAppendParams, RolloutAppendResponse, SessionMeta, ThreadDelegation, ThreadId,
};
use serde_json::{Value, json};

use super::host::{Host, HostError, HostId};
use futures_util::future::BoxFuture;

pub(super) const THREAD: &str = "0198f0a0-0000-7000-8000-00000000abcd";

/// Accepts every request, and cancels when asked to.
#[derive(Debug)]
pub(super) struct ScriptedHost {
    agreed: HostDelegationAgreed,
    pub(super) asked: Mutex<Vec<ModelRequestParams>>,
    pub(super) canceled: Mutex<Vec<ModelCancelParams>>,
    /// Unset: the host does not respond.
    pub(super) disposition: Mutex<Option<ModelRequestResponse>>,
    /// The remaining time of the lease when an append is acknowledged. Unset: the host is gone.
    pub(super) valid_for_ms: Mutex<Option<u64>>,
}

impl Default for ScriptedHost {
    fn default() -> Self {
        let agreed = HostDelegationAgreed {
            version: super::DELEGATION_VERSION,
            features: super::DELEGATION_FEATURES.to_vec(),
            runtime_instance_id: "this".to_owned(),
        };
        let accepted = ModelRequestResponse::Accepted {
            provider: "p".to_owned(),
            model: "m".to_owned(),
            replayed: false,
        };
        Self {
            agreed,
            asked: Mutex::default(),
            canceled: Mutex::default(),
            disposition: Mutex::new(Some(accepted)),
            valid_for_ms: Mutex::default(),
        }
    }
}

impl ScriptedHost {
    pub(super) fn number(&self) -> HostId {
        HostId(7)
    }

    pub(super) fn requests(&self) -> u64 {
        self.asked.lock().len() as u64
    }

    pub(super) fn last_request(&self) -> ModelRequestId {
        self.asked.lock().last().expect("a request").model_request_id.clone()
    }
}

impl Host for ScriptedHost {
    fn id(&self) -> HostId {
        self.number()
    }

    fn agreed(&self) -> &HostDelegationAgreed {
        &self.agreed
    }

    fn request_model(
        &self,
        params: ModelRequestParams,
    ) -> BoxFuture<'static, Result<ModelRequestResponse, HostError>> {
        self.asked.lock().push(params);
        match self.disposition.lock().clone() {
            Some(answer) => Box::pin(std::future::ready(Ok(answer))),
            None => Box::pin(std::future::pending()),
        }
    }

    fn cancel_model(
        &self,
        params: ModelCancelParams,
    ) -> BoxFuture<'static, Result<ModelCancelResponse, HostError>> {
        self.canceled.lock().push(params);
        let disposition = ModelCancelDisposition::Canceled;
        Box::pin(std::future::ready(Ok(ModelCancelResponse { disposition })))
    }

    fn append(
        &self,
        params: RolloutAppendParams,
    ) -> BoxFuture<'static, Result<RolloutAppendResponse, HostError>> {
        let next_ordinal = params.from_ordinal + params.items.len() as u64;
        let answer = match *self.valid_for_ms.lock() {
            Some(left) => Ok(RolloutAppendResponse { next_ordinal, valid_for_ms: Some(left) }),
            None => Err(HostError::Gone),
        };
        Box::pin(std::future::ready(answer))
    }

    fn delegate(
        &self,
        _: DelegationRequestParams,
    ) -> BoxFuture<'static, Result<DelegationRequestResponse, HostError>> {
        Box::pin(std::future::ready(Err(HostError::Gone)))
    }

    fn delegate_input(
        &self,
        _: ThreadId,
        _: DelegationInputParams,
    ) -> BoxFuture<'static, Result<DelegationInputResponse, HostError>> {
        Box::pin(std::future::ready(Err(HostError::Gone)))
    }

    fn delegate_cancel(
        &self,
        _: ThreadId,
        _: DelegationCancelParams,
    ) -> BoxFuture<'static, Result<DelegationCancelResponse, HostError>> {
        Box::pin(std::future::ready(Err(HostError::Gone)))
    }
}

/// Full delegation to a provider that supports everything, with these stream options.
pub(super) fn terms(stream: &Value) -> ThreadDelegation {
    let capabilities = json!({
        "wire": "responses", "freeformTools": true, "hostedTools": ["web_search"], "reasoningReplay": "opaque",
    });
    serde_json::from_value(json!({
        "mode": "full", "version": 1, "provider": {"id": "p", "capabilities": capabilities}, "stream": stream,
    }))
    .expect("terms")
}

pub(crate) fn meta(thread: &str) -> SessionMeta {
    let meta = json!({
        "threadId": thread, "sessionId": thread, "createdAtMs": 1, "cwd": "/w", "originator": "test",
        "cliVersion": "0", "source": "appServer", "modelProvider": "p",
    });
    protocol::from_value(&meta).expect("who a thread is")
}
