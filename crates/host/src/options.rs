//! The choices a host is started with.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use model::ModelTransport;
use protocol::{DelegatedProvider, ModelCapabilities};
use support::Clock;
use traces::Tracer;

use crate::lease::ReplicaOptions;
use crate::placing::PlaceOptions;
use host_limits::HostLimits;
use runtime_link::RuntimeLauncher;
use task::TaskTimes;

/// The id under which runtimes know the host's provider. Not one of the built-in providers.
pub(crate) const PROVIDER_ID: &str = "host";

/// Ways to the provider. Providers are told which client a request is for.
pub trait ClientTransports: Send + Sync {
    /// `user_agent` is that of the client that started the task; empty where none is known.
    fn transport(&self, user_agent: &str) -> Arc<dyn ModelTransport>;
}

/// The name alone: to print the values behind it, the program would carry the `Debug` code of all their types.
impl fmt::Debug for dyn ClientTransports + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientTransports")
    }
}

/// The provider that the host carries model requests to.
#[derive(Debug, Clone)]
pub struct CarriedProvider {
    /// As the configuration calls it, and as clients see it.
    pub id: String,
    pub transports: Arc<dyn ClientTransports>,
    /// How often a stream that broke is asked for again.
    pub stream_max_retries: u32,
    /// The model of threads that choose none. Unset leaves it to the runtime.
    pub default_model: Option<String>,
    /// Requests of runtimes stay within them. They are Responses requests on every wire; the transport translates them.
    pub capabilities: ModelCapabilities,
}

impl CarriedProvider {
    pub(crate) fn delegated(&self) -> DelegatedProvider {
        DelegatedProvider { id: PROVIDER_ID.to_owned(), capabilities: self.capabilities.clone() }
    }
}

impl HostOptions {
    /// Clients take a thread without a path for one that is not kept.
    pub(crate) fn path_of(&self, thread: &str) -> String {
        self.records.join(format!("{thread}.jsonl")).display().to_string()
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
    pub limits: HostLimits,
    /// The folder of the paths that clients see. Threads are in the store, and no file is there.
    pub records: PathBuf,
    /// The version told to runtimes.
    pub version: String,
    pub clock: Arc<dyn Clock>,
    pub tracer: Tracer,
}
