//! What is read on behalf of a thread: within the limits its commands have, and never on a worker of the async runtime.

use std::path::{Path, PathBuf};

use protocol::{GitInfo, ReadOnlyAccess, SandboxPolicy};
use sandbox::{Confinement, OffLimits, Strength};
use tokio::runtime::{Handle, RuntimeFlavor};
use workspace::{Access, READ_LIMIT, ReadError, Reader, within};

use crate::git::git_info;
use crate::settings::ThreadSettings;

/// The reader of a thread: what a command of it could not read, the server does not read for it.
pub(crate) fn reader_of(settings: &ThreadSettings, cwd: &Path) -> Reader {
    Reader::new(access(&settings.sandbox, cwd, &settings.off_limits))
}

fn access(policy: &SandboxPolicy, cwd: &Path, off_limits: &OffLimits) -> Access {
    let readable = confinement(policy, cwd, off_limits).and_then(|confined| tools::roots_of(confined.read));
    Access { readable, ..hidden_in(cwd, off_limits) }
}

/// What is hidden from whoever works in a folder. It stays hidden from the server's own reading also where commands have
/// no sandbox.
pub(crate) fn hidden_in(cwd: &Path, off_limits: &OffLimits) -> Access {
    let policy = SandboxPolicy::ReadOnly { access: ReadOnlyAccess::FullAccess, network_access: false };
    let (hidden, shown) = match confinement(&policy, cwd, off_limits) {
        Some(confined) => (confined.hidden, confined.shown),
        None => (off_limits.hidden(), off_limits.shown.clone()),
    };
    Access { readable: None, hidden, shown }
}

fn confinement(policy: &SandboxPolicy, cwd: &Path, off_limits: &OffLimits) -> Option<Confinement> {
    let tmpdir = std::env::var_os("TMPDIR").map(PathBuf::from);
    Confinement::for_policy(policy, cwd, tmpdir.as_deref(), Strength::Full, off_limits)
}

/// Whether the thread's reads are limited to some folders at all.
pub(crate) fn is_restricted(settings: &ThreadSettings) -> bool {
    use ReadOnlyAccess::Restricted;
    matches!(
        &settings.sandbox,
        SandboxPolicy::ReadOnly { access: Restricted { .. }, .. }
            | SandboxPolicy::WorkspaceWrite { read_only_access: Restricted { .. }, .. }
    )
}

/// Reads something beneath a folder, and gives up on it after a while, which the log says.
pub(crate) fn in_time<T: Send + 'static>(
    folder: &Path,
    read: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ReadError> {
    within(folder, READ_LIMIT, read).inspect_err(|error| tracing::warn!(%error, "not read"))
}

/// The commit, branch and origin of a thread's folder.
pub(crate) fn git_facts(settings: &ThreadSettings) -> Option<GitInfo> {
    let cwd = PathBuf::from(&settings.cwd);
    let (folder, reader) = (cwd.clone(), reader_of(settings, &cwd));
    off_worker(|| in_time(&cwd, move || git_info(&folder, &reader))).ok()?
}

/// Does work that may wait for the disk, without keeping other tasks from this worker.
pub(crate) fn off_worker<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        // Alone on its thread: an async runtime for one session, or none.
        _ => work(),
    }
}
