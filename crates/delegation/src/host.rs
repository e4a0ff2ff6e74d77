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

/// Tells one host from another for as long as the process lives. A host that comes back is another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HostId(pub u64);

/// Whoever opened a thread over a connection on which delegation was agreed. Dropping a future takes its question
/// back; none of them waits for ever once the host is gone.
pub trait Host: Send + Sync {
    fn id(&self) -> HostId;

    /// The features that `initialize` agreed on.
    fn agreed(&self) -> &HostDelegationAgreed;

    /// Asks the host to carry a model request. The answer is its disposition; events follow on their own.
    fn request_model(
        &self,
        params: ModelRequestParams,
    ) -> BoxFuture<'static, Result<ModelRequestResponse, HostError>>;

    /// Asks the host to stop carrying a model request.
    fn cancel_model(
        &self,
        params: ModelCancelParams,
    ) -> BoxFuture<'static, Result<ModelCancelResponse, HostError>>;

    /// Gives the host records to commit. Appends of one thread arrive in the order of the calls, not of the polls.
    fn append(
        &self,
        params: RolloutAppendParams,
    ) -> BoxFuture<'static, Result<RolloutAppendResponse, HostError>>;

    /// Asks where a child agent is to run.
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

/// The name alone: to print the values behind it, the program would carry the `Debug` code of all their types.
impl fmt::Debug for dyn Host + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Host")
    }
}

/// Why a host gave no usable answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum HostError {
    /// It answered with an error, or with something that cannot be read.
    #[error("the host refused: {message}")]
    Refused { code: i64, message: String, data: Option<Value> },
    /// Its connection ended, or the thread was unloaded.
    #[error("the host is gone")]
    Gone,
}

impl HostError {
    /// The word for programs in the error's `data`, such as `fenced`.
    pub fn data_code(&self) -> Option<&str> {
        match self {
            Self::Refused { data, .. } => data.as_ref()?.get("code")?.as_str(),
            Self::Gone => None,
        }
    }
}
