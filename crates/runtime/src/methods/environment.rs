//! Environments as clients ask for them.

use std::sync::Arc;

use environments::Subscribers;
use protocol::{
    EnvironmentAddParams, EnvironmentId, EnvironmentInfoResponse, EnvironmentSpec, EnvironmentStatusResponse,
    ServerNotification, ThreadId,
};

use crate::error::RuntimeError;
use crate::open::config_request::ConfigRequest;
use crate::runtime::Runtime;
use crate::step::tool_settings::variables;
use driver::{Audience, BoxFuture};
use support::blocking;

/// The clients of this process, to be notified of environments that come and go.
#[derive(Debug)]
pub(crate) struct Clients(pub(crate) Arc<dyn Audience>);

impl Subscribers for Clients {
    fn notify<'a>(&'a self, thread: &'a ThreadId, notification: ServerNotification) -> BoxFuture<'a, ()> {
        self.0.tell(thread, notification)
    }
}

impl Runtime {
    /// Makes an environment known. Returns at once; whether it can be used is found out behind this.
    pub async fn add_environment(&self, params: EnvironmentAddParams) -> Result<(), RuntimeError> {
        let env = match &params.environment {
            EnvironmentSpec::Local { .. } => Default::default(),
            // The variables that the calls of a model get as well, so that no secret of this process reaches the prefix.
            EnvironmentSpec::Command { .. } => {
                let loader = self.state.loader.clone();
                let config = blocking(move || ConfigRequest::default().load(&loader)).await??;
                tools::client_environment(&config.permissions.shell_environment.apply(variables()))
            }
        };
        Ok(self.state.environments.add(params, env)?)
    }

    pub fn environment_info(&self, id: &EnvironmentId) -> Result<EnvironmentInfoResponse, RuntimeError> {
        Ok(self.state.environments.info(id)?)
    }

    pub async fn environment_status(&self, id: &EnvironmentId) -> EnvironmentStatusResponse {
        self.state.environments.status(id).await
    }
}
