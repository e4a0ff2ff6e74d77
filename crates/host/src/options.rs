//! The choices a host is started with.

use std::sync::Arc;

use model::ModelTransport;
use protocol::{DelegatedProvider, ModelCapabilities, ModelWire, ReasoningReplay};

use crate::launcher::RuntimeLauncher;
use crate::lease::ReplicaOptions;
use crate::placing::PlaceOptions;
use crate::task::TaskTimes;

/// The id under which runtimes know the host's provider. Not one of the built-in providers.
pub(crate) const PROVIDER_ID: &str = "host";

/// The provider that the host carries model requests to.
#[derive(Debug, Clone)]
pub struct CarriedProvider {
    /// As the configuration calls it, and as clients see it.
    pub id: String,
    pub transport: Arc<dyn ModelTransport>,
    /// The model of threads that choose none. Unset leaves it to the runtime.
    pub default_model: Option<String>,
    /// Tools that the provider runs itself.
    pub hosted_tools: Vec<String>,
    /// Whether it takes its own reasoning back.
    pub replays_reasoning: bool,
}

impl CarriedProvider {
    /// Requests are shaped as Responses requests; the transport translates them.
    pub(crate) fn delegated(&self) -> DelegatedProvider {
        DelegatedProvider {
            id: PROVIDER_ID.to_owned(),
            capabilities: ModelCapabilities {
                wire: ModelWire::Responses,
                tools: true,
                parallel_tool_calls: true,
                freeform_tools: true,
                namespaced_tools: true,
                hosted_tools: self.hosted_tools.clone(),
                images_in: true,
                reasoning_replay: match self.replays_reasoning {
                    true => ReasoningReplay::Opaque,
                    false => ReasoningReplay::None,
                },
                json_schema_output: true,
                server_state: false,
                context_window: None,
                max_output_tokens: None,
            },
        }
    }
}

#[derive(Debug, Clone)]
pub struct HostOptions {
    pub replica: ReplicaOptions,
    pub times: TaskTimes,
    pub provider: CarriedProvider,
    /// Of tasks that run on this machine as it is.
    pub launcher: Arc<dyn RuntimeLauncher>,
    pub places: PlaceOptions,
    /// Where other processes reach this host.
    pub address: String,
    /// The version told to runtimes.
    pub version: String,
}
