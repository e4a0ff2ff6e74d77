//! Placements of a host: where the runtimes of its tasks run.

use super::prelude::*;

/// Where a new thread's runtime runs: the name of a placement of the configuration, `BACKEND:WHAT` (`docker:debian:12`,
/// `podman:IMAGE`, `ssh:HOST`, `kubernetes:IMAGE`, `local`), or one of these with a workspace.
#[wire(untagged)]
pub enum PlacementChoice {
    Named(String),
    Described(PlacementSpec),
}

/// A placement with a workspace of its own.
#[wire(omit_null)]
pub struct PlacementSpec {
    /// As `placement` alone would be.
    pub backend: String,
    /// The workspace's path there.
    pub workspace: Option<String>,
    /// The content of the workspace: entries, environment, setup commands. docs/placements.md describes it.
    pub manifest: Option<Value>,
}

/// A placement as the host's store has it.
#[wire]
pub struct PlacementInfo {
    pub id: String,
    /// As it was asked for.
    pub name: String,
    pub backend: String,
    /// Only hosts that serve it can reach the placement.
    pub site: String,
    pub status: PlacementStatus,
    /// The workspace's path there; null until it is made.
    pub workspace: Option<String>,
    /// Digest of the last snapshot of the workspace.
    pub snapshot: Option<String>,
    /// Unix milliseconds.
    pub snapshot_at_ms: Option<i64>,
    /// Whether commands there run under another user than the runtime, so that none can speak for it. Null where the
    /// runtime's own sandbox keeps them apart, or before anything ran.
    pub separation: Option<PlacementSeparation>,
    /// The tasks that use it.
    pub thread_ids: Vec<ThreadId>,
    /// Unix milliseconds.
    pub created_at_ms: i64,
    /// Unix milliseconds.
    pub used_at_ms: i64,
}

/// How far a placement is.
#[wire]
pub enum PlacementStatus {
    Creating,
    Ready,
    Suspended,
    /// It is gone. The next use makes it again, from the last snapshot or from its manifest.
    Lost,
}

/// The barrier between the commands of a placement and its runtime.
#[wire]
pub enum PlacementSeparation {
    /// Commands run under another user.
    User,
    /// Nothing: a command can speak for the runtime, so approvals are advice.
    None,
}

/// Lists the placements of a host, the oldest first.
#[wire]
#[derive(Default)]
pub struct PlacementListParams {}

#[wire]
pub struct PlacementListResponse {
    pub data: Vec<PlacementInfo>,
}

#[wire]
pub struct PlacementReadParams {
    pub placement_id: String,
}

#[wire]
pub struct PlacementReadResponse {
    pub placement: PlacementInfo,
}

/// Keeps the workspace as it is now. A placement that is lost later is made again from there.
#[wire]
pub struct PlacementSnapshotParams {
    pub placement_id: String,
}

#[wire]
pub struct PlacementSnapshotResponse {
    pub placement: PlacementInfo,
}

/// Suspends the tasks of a placement, then frees what it need not hold. The next use wakes it.
#[wire]
pub struct PlacementSuspendParams {
    pub placement_id: String,
}

#[wire]
pub struct PlacementSuspendResponse {
    pub placement: PlacementInfo,
}

/// Gives a placement up that cannot be reached: the next use makes it again, from the last snapshot or from its manifest.
#[wire]
pub struct PlacementAbandonParams {
    pub placement_id: String,
}

#[wire]
pub struct PlacementAbandonResponse {
    pub placement: PlacementInfo,
}

/// Removes a placement that no task uses, with its workspace.
#[wire]
pub struct PlacementDeleteParams {
    pub placement_id: String,
}

#[wire]
pub struct PlacementDeleteResponse {}

/// Removes placements that no task uses, and what the host made and no longer knows of.
#[wire(omit_null)]
#[derive(Default)]
pub struct PlacementGcParams {
    /// Only say what would be removed.
    #[serde(default)]
    pub dry_run: bool,
    /// Spares what was used within this time. The host's `--placement-ttl` when unset.
    pub unused_for_seconds: Option<u64>,
}

#[wire]
pub struct PlacementGcResponse {
    pub data: Vec<RemovedPlacement>,
}

/// Something that was removed, or would be.
#[wire]
pub struct RemovedPlacement {
    /// Of a placement. For a snapshot that no placement has, the name of its file.
    pub id: String,
    /// `snapshot` for a snapshot.
    pub backend: String,
    /// Why it could not be removed.
    pub problem: Option<String>,
}

/// How far the making of a placement is. Sent to whoever starts the thread, its followers, and connections that asked for
/// all tasks.
#[wire]
pub struct PlacementProgressNotification {
    pub placement_id: String,
    pub thread_id: ThreadId,
    pub step: PlacementProgressStep,
    /// Bytes, or commands of the setup.
    pub done: u64,
    pub total: Option<u64>,
    /// A line that a setup command printed.
    pub line: Option<String>,
}

#[wire]
pub enum PlacementProgressStep {
    Pulling,
    Creating,
    Staging,
    Workspace,
    Setup,
}

/// A placement was created, lost, suspended or resumed.
#[wire]
pub struct PlacementStatusChangedNotification {
    pub placement: PlacementInfo,
}
