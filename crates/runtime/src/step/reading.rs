//! Reads files for a thread: within the limits of its commands, and never on an async worker.

use std::path::{Path, PathBuf};

use protocol::{GitInfo, ReadOnlyAccess, SandboxPolicy};
use sandbox::OffLimits;
use workspace::{Access, Reader, in_time};

use driver::ThreadSettings;
use workspace::git_info;

/// The reader of a thread: refuses files that the thread's commands could not read.
pub(crate) fn reader_of(settings: &ThreadSettings, cwd: &Path) -> Reader {
    Reader::new(access(&settings.sandbox, cwd, &settings.off_limits))
}

fn access(policy: &SandboxPolicy, cwd: &Path, off_limits: &OffLimits) -> Access {
    let readable = restricts(policy).then(|| config::confinement(policy, cwd, off_limits)).flatten();
    let readable = readable.and_then(|confined| tools::roots_of(confined.read));
    Access { readable, ..config::hidden_in(cwd, off_limits) }
}

/// Whether the thread may read only some folders.
pub(crate) fn is_restricted(settings: &ThreadSettings) -> bool {
    restricts(&settings.sandbox)
}

fn restricts(policy: &SandboxPolicy) -> bool {
    use ReadOnlyAccess::Restricted;
    matches!(
        policy,
        SandboxPolicy::ReadOnly { access: Restricted { .. }, .. }
            | SandboxPolicy::WorkspaceWrite { read_only_access: Restricted { .. }, .. }
    )
}

/// The commit, branch and origin of a thread's folder. Blocking.
pub(crate) fn git_facts(settings: &ThreadSettings) -> Option<GitInfo> {
    let cwd = PathBuf::from(&settings.cwd);
    let (folder, reader) = (cwd.clone(), reader_of(settings, &cwd));
    in_time(&cwd, move || git_info(&folder, &reader)).ok()?
}
