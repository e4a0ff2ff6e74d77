//! Owns the places in which runtimes run: how each is made, reached and ended, its workspace, its snapshots, and the binary
//! in it. It must not know what a runtime is: it carries bytes to processes.

mod backend;
mod builds;
mod earlier;
mod error;
mod files;
#[doc(hidden)]
pub mod fuzzing;
mod gzip;
mod manifest;
mod owner;
mod placement;
mod process;
mod progress;
mod scratch;
mod script;
mod search;
mod settings;
mod staging;
mod stderr;
mod tar;
mod tool;
mod transfer;

pub use backend::PlaceState;
pub use builds::RuntimeBuilds;
pub use earlier::EarlierWorkspaces;
pub use error::PlacementError;
pub use files::FileRequest;
pub use manifest::{
    EnvValue, ManifestEntry, PreparedManifest, ResolvedEnv, SetupCommand, WorkspaceLimits, WorkspaceManifest,
};
pub use owner::{owner_has_ended, store_owner, temporary_owner};
pub use placement::{
    LeftoverPlacement, Placement, PlacementOrder, Placements, RunLimits, ShortOutput, WorkspaceStart,
};
pub use process::{AttachedProcess, ProcessEnd, SpawnOptions};
pub use progress::{PlaceProgress, PlacementStep, ProgressSink};
pub use search::{find_tool, search_no_tools_beneath, search_tools_in, tool_path};
pub use settings::{
    CommandPlaceSettings, CommandSeparation, ContainerSettings, KubernetesSettings, LocalSettings,
    PlacementReference, PlacementSettings, PullPolicy, SshSettings,
};
pub use staging::{RuntimeBuild, StagedRuntime};
pub use transfer::SnapshotFile;
