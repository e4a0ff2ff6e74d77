//! Where runtimes run: the placements of the configuration, those that were made, and how a runtime is started in one.

mod bring_up;
mod choice;
mod for_clients;
mod home;
mod launch;
mod removal;
mod row;
mod snapshots;
mod terms;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex as SyncMutex;
use placements::{PlacementError, PlacementSettings, Placements, RuntimeBuilds, StagedRuntime};
use protocol::{SandboxMode, ThreadId};
use support::Clock;
use tokio::sync::{Mutex, RwLock};

use crate::link::ClientRuntimes;
use crate::shared::HostShared;

pub use for_clients::{PLACED, names_placement};
pub use home::ProjectedHome;

pub(crate) use choice::{AskedSandbox, ChosenPlace, boundary_sandbox, check_sandbox};
pub(crate) use launch::{LaunchFailure, LaunchOrder, LaunchedRuntime};
pub(crate) use removal::LabelSearch;
pub(crate) use row::{PlaceRecord, PlaceRow, PlaceStage};
pub(crate) use terms::{PlaceTerms, unholdable};

type FindSecret = dyn Fn(&str) -> Option<String> + Send + Sync;

/// Looks up the secrets that manifests name.
#[derive(Clone)]
pub struct SecretLookup(pub Arc<FindSecret>);

impl fmt::Debug for SecretLookup {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SecretLookup")
    }
}

/// The choices about placements that a host is started with.
#[derive(Debug, Clone)]
pub struct PlaceOptions {
    /// Names this host in the labels of what it makes.
    pub owner: String,
    /// `[placements.NAME]`.
    pub configured: BTreeMap<String, PlacementSettings>,
    /// Of threads that choose none; `local` unless set.
    pub default: Option<String>,
    /// The sandbox that the host's configuration asks for by name.
    pub sandbox_mode: Option<SandboxMode>,
    /// Where snapshots are kept.
    pub blobs: PathBuf,
    /// No other store keeps snapshots there.
    pub owns_blobs: bool,
    /// This program, for runtimes on this machine.
    pub program: PathBuf,
    /// After the program, there as here.
    pub arguments: Vec<String>,
    /// More arguments, for this machine alone.
    pub local_arguments: Vec<String>,
    /// More variables of runtimes on this machine.
    pub local_environment: Vec<(String, String)>,
    pub builds: RuntimeBuilds,
    pub home: ProjectedHome,
    pub secrets: SecretLookup,
    /// How long a placement without a task is kept.
    pub unused_for_ms: i64,
    /// How long a placement whose tasks have no runtime runs on before it is suspended.
    pub idle_for_ms: i64,
}

impl PlaceOptions {
    /// The sites of the configuration that are no part of one machine: every host that is configured alike reaches them.
    pub(crate) fn shared_sites(&self) -> Vec<String> {
        let mut sites: Vec<String> = self.configured.values().filter_map(shared_site).collect();
        sites.sort();
        sites.dedup();
        sites
    }
}

fn shared_site(settings: &PlacementSettings) -> Option<String> {
    match settings {
        PlacementSettings::Ssh(settings) => Some(format!("ssh:{}", settings.host)),
        PlacementSettings::Kubernetes(settings) => {
            Some(format!("kubernetes:{}", settings.context.as_deref().unwrap_or_default()))
        }
        _ => None,
    }
}

impl HostShared {
    /// The site of a place with these settings: this host's own, unless all hosts that are configured alike reach it.
    pub(crate) fn site_of(&self, settings: &PlacementSettings) -> String {
        let known = self.options.places.shared_sites();
        shared_site(settings).filter(|site| known.contains(site)).unwrap_or_else(|| self.site().to_owned())
    }
}

#[derive(Debug)]
struct LastSpawn {
    name: String,
    is_over: bool,
}

/// All placements of a host.
#[derive(Debug)]
pub(crate) struct HostPlaces {
    pub(crate) options: PlaceOptions,
    pub(crate) placements: Placements,
    /// The last runtime of each task that was started here, and whether it is known to be over with all it started.
    last: Arc<SyncMutex<HashMap<ThreadId, LastSpawn>>>,
    /// The binary in a placement, by the placement's id.
    staged: SyncMutex<HashMap<String, StagedRuntime>>,
    /// Held while a placement is made or changed: one after the other for each.
    changing: SyncMutex<HashMap<String, Arc<Mutex<()>>>>,
    /// Runtimes that work for clients, and for no task.
    pub(crate) for_clients: Arc<ClientRuntimes>,
    /// Read by whoever takes a snapshot until a row names it; written by whoever removes those that no row names.
    snapshots: RwLock<()>,
}

impl HostPlaces {
    pub(crate) fn new(options: PlaceOptions, clock: Arc<dyn Clock>) -> Result<Self, PlacementError> {
        Ok(Self {
            placements: Placements::new(&options.owner, clock)?,
            options,
            last: Arc::default(),
            staged: SyncMutex::default(),
            changing: SyncMutex::default(),
            for_clients: Arc::default(),
            snapshots: RwLock::default(),
        })
    }

    pub(crate) fn change_lock(&self, placement: &str) -> Arc<Mutex<()>> {
        self.changing.lock().entry(placement.to_owned()).or_default().clone()
    }

    /// The place is another one from now on.
    pub(crate) fn forget(&self, placement: &str) {
        self.staged.lock().remove(placement);
    }
}
