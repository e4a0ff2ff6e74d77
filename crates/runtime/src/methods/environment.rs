//! Environments, as clients add and list them.

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

/// The clients of this process, to be notified of changes of environments.
#[derive(Debug)]
pub(crate) struct Clients(pub(crate) Arc<dyn Audience>);

impl Subscribers for Clients {
    fn notify<'a>(&'a self, thread: &'a ThreadId, notification: ServerNotification) -> BoxFuture<'a, ()> {
        self.0.notify(thread, notification)
    }
}

impl Runtime {
    /// Registers an environment. Returns at once; whether it is usable is checked in the background.
    pub async fn add_environment(&self, params: EnvironmentAddParams) -> Result<(), RuntimeError> {
        let env = match &params.environment {
            EnvironmentSpec::Local { .. } => Default::default(),
            // The variables that a model's commands get too, so that the command prefix sees no secret of this process.
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
