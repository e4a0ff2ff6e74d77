//! A host for the tests of this folder, and the terms it asks for.

use std::sync::Mutex;

use protocol::{
    DelegationCancelParams, DelegationCancelResponse, DelegationInputParams, DelegationInputResponse,
    DelegationRequestParams, DelegationRequestResponse, HostDelegationAgreed, ModelCancelDisposition,
    ModelCancelParams, ModelCancelResponse, ModelRequestId, ModelRequestParams, ModelRequestResponse,
    RolloutAppendParams, RolloutAppendResponse, ThreadDelegation, ThreadId,
};
use serde_json::{Value, json};

use super::host::{Host, HostError, HostId};
use crate::audience::BoxFuture;
use crate::runtime::lock;

pub(super) const THREAD: &str = "0198f0a0-0000-7000-8000-00000000abcd";

/// Accepts every request, and cancels where asked to.
#[derive(Debug)]
pub(super) struct ScriptedHost {
    agreed: HostDelegationAgreed,
    pub(super) asked: Mutex<Vec<ModelRequestParams>>,
    pub(super) canceled: Mutex<Vec<ModelCancelParams>>,
    /// Unset: the host says nothing.
    pub(super) disposition: Mutex<Option<ModelRequestResponse>>,
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
        }
    }
}

impl ScriptedHost {
    pub(super) fn number(&self) -> HostId {
        HostId(7)
    }

    pub(super) fn requests(&self) -> u64 {
        lock(&self.asked).len() as u64
    }

    pub(super) fn last_request(&self) -> ModelRequestId {
        lock(&self.asked).last().expect("a request").model_request_id.clone()
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
        lock(&self.asked).push(params);
        match lock(&self.disposition).clone() {
            Some(answer) => Box::pin(std::future::ready(Ok(answer))),
            None => Box::pin(std::future::pending()),
        }
    }

    fn cancel_model(
        &self,
        params: ModelCancelParams,
    ) -> BoxFuture<'static, Result<ModelCancelResponse, HostError>> {
        lock(&self.canceled).push(params);
        let disposition = ModelCancelDisposition::Canceled;
        Box::pin(std::future::ready(Ok(ModelCancelResponse { disposition })))
    }

    fn append(&self, _: RolloutAppendParams) -> BoxFuture<'static, Result<RolloutAppendResponse, HostError>> {
        Box::pin(std::future::ready(Err(HostError::Gone)))
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

/// Full delegation to a provider that can do everything, with these stream options.
pub(super) fn terms(stream: &Value) -> ThreadDelegation {
    let capabilities = json!({
        "wire": "responses", "freeformTools": true, "hostedTools": ["web_search"], "reasoningReplay": "opaque",
    });
    serde_json::from_value(json!({
        "mode": "full", "version": 1, "provider": {"id": "p", "capabilities": capabilities}, "stream": stream,
    }))
    .expect("terms")
}
