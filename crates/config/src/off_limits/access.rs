//! Which files the server may read for a thread that works in a folder.

use std::path::{Path, PathBuf};

use protocol::{ReadOnlyAccess, SandboxPolicy};
use sandbox::{Confinement, OffLimits, Strength};
use workspace::Access;

/// Paths hidden from readers in a folder. The server does not read them either, even if commands have no sandbox.
pub fn hidden_in(cwd: &Path, off_limits: &OffLimits) -> Access {
    let policy = SandboxPolicy::ReadOnly { access: ReadOnlyAccess::FullAccess, network_access: false };
    let (hidden, shown) = match confinement(&policy, cwd, off_limits) {
        Some(confined) => (confined.hidden, confined.shown),
        None => (off_limits.hidden(), off_limits.shown.clone()),
    };
    Access { readable: None, hidden, shown }
}

/// The sandbox of a command under this policy in this folder; none if it would run without one.
pub fn confinement(policy: &SandboxPolicy, cwd: &Path, off_limits: &OffLimits) -> Option<Confinement> {
    let tmpdir = std::env::var_os("TMPDIR").map(PathBuf::from);
    Confinement::for_policy(policy, cwd, tmpdir.as_deref(), Strength::Full, off_limits)
}
