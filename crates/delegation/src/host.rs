//! The host of a thread, as the runtime sees it.

use std::fmt;

use protocol::{
    DelegationCancelParams, DelegationCancelResponse, DelegationInputParams, DelegationInputResponse,
    DelegationRequestParams, DelegationRequestResponse, HostDelegationAgreed, ModelCancelParams,
    ModelCancelResponse, ModelRequestParams, ModelRequestResponse, RolloutAppendParams,
    RolloutAppendResponse, ThreadId,
};
use serde_json::Value;

use futures_util::future::BoxFuture;

/// Identifies a host within the process. A host that reconnects gets a new id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HostId(pub u64);

/// A client that opened a thread over a connection with the delegation capability. Dropping a future cancels its
/// request; none waits for ever after the host is gone.
pub trait Host: Send + Sync {
    fn id(&self) -> HostId;

    /// The features agreed in `initialize`.
    fn agreed(&self) -> &HostDelegationAgreed;

    /// Asks the host to carry a model request. The response is its disposition; events follow separately.
    fn request_model(
        &self,
        params: ModelRequestParams,
    ) -> BoxFuture<'static, Result<ModelRequestResponse, HostError>>;

    /// Asks the host to stop carrying a model request.
    fn cancel_model(
        &self,
        params: ModelCancelParams,
    ) -> BoxFuture<'static, Result<ModelCancelResponse, HostError>>;

    /// Sends records to the host. The appends of one thread arrive in the order of the calls, not of the polls.
    fn append(
        &self,
        params: RolloutAppendParams,
    ) -> BoxFuture<'static, Result<RolloutAppendResponse, HostError>>;

    /// Asks the host where to run a child agent.
    fn delegate(
        &self,
        params: DelegationRequestParams,
    ) -> BoxFuture<'static, Result<DelegationRequestResponse, HostError>>;

    /// Sends more input to a child that the host runs.
    fn delegate_input(
        &self,
        parent: ThreadId,
        params: DelegationInputParams,
    ) -> BoxFuture<'static, Result<DelegationInputResponse, HostError>>;

    /// Asks the host to stop a child.
    fn delegate_cancel(
        &self,
        parent: ThreadId,
        params: DelegationCancelParams,
    ) -> BoxFuture<'static, Result<DelegationCancelResponse, HostError>>;
}

/// Prints only the name: printing the fields would add the `Debug` code of all their types to the program.
impl fmt::Debug for dyn Host + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Host")
    }
}

/// Why a host gave no usable response.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum HostError {
    /// It responded with an error, or with something unreadable.
    #[error("the host refused: {message}")]
    Refused { code: i64, message: String, data: Option<Value> },
    /// Its connection ended, or the thread was unloaded.
    #[error("the host is gone")]
    Gone,
}

impl HostError {
    /// The error code in the error's `data`, such as `fenced`.
    pub fn data_code(&self) -> Option<&str> {
        match self {
            Self::Refused { data, .. } => data.as_ref()?.get("code")?.as_str(),
            Self::Gone => None,
        }
    }
}
