//! The search path of programs that run without a sandbox.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use policy::{Executables, TRUSTED_FOLDERS};
use protocol::SandboxPolicy;

use crate::ResolvedConfig;

/// Temporary folders, which every command can write.
const TEMPORARY: &[&str] = &["/tmp", "/dev/shm"];

/// The folders of a search path in which no command can have put a program: not in `writable`, not temporary, not
/// writable by everyone, and not reached through a link in such a folder.
pub fn closed_search_path(path: &str, writable: &[PathBuf]) -> String {
    let mut writable = writable.to_vec();
    writable.extend(TEMPORARY.iter().map(PathBuf::from));
    writable.push(std::env::temp_dir());
    let closed = Executables::new(OsStr::new(path), Path::new("/"), &writable).closed_search();
    closed.to_string_lossy().into_owned()
}

/// Like [`closed_search_path`], with the system's folders first.
pub fn system_search_path(path: &str, writable: &[PathBuf]) -> String {
    let closed = closed_search_path(path, writable);
    let of_system = closed_search_path(&TRUSTED_FOLDERS.join(":"), writable);
    [of_system, closed].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(":")
}

impl ResolvedConfig {
    /// The folders that commands with these settings can write, besides temporary ones. The project's folder counts
    /// even with a read-only sandbox: a turn may change that.
    pub fn writable_roots(&self) -> Vec<PathBuf> {
        let listed = match &self.permissions.sandbox_policy {
            SandboxPolicy::WorkspaceWrite { writable_roots, .. } => writable_roots.as_slice(),
            _ => &[],
        };
        self.cwd.iter().cloned().chain(listed.iter().map(|root| PathBuf::from(root.as_str()))).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn programs_are_not_looked_for_where_commands_can_write() {
        let folder = tempfile::tempdir_in("/var/tmp").expect("a folder");
        let at = |name: &str| folder.path().join(name);
        for name in ["ws/.venv/bin", "bin", "open", "more/bin"] {
            fs::create_dir_all(at(name)).expect("made");
        }
        fs::set_permissions(at("open"), fs::Permissions::from_mode(0o777)).expect("set");
        symlink(at("ws/.venv/bin"), at("into")).expect("linked");
        // Leads to a closed folder now, but the workspace can change it.
        symlink(at("bin"), at("ws/out")).expect("linked");
        let names = ["ws/.venv/bin", "bin", "into", "ws/out", "open", "missing", "more/bin"];
        let path = names.map(|name| at(name).display().to_string()).join(":");
        let path = format!("{path}:/usr/bin::.:node_modules/.bin:/tmp/x:/bin");
        let expected = [at("bin"), at("missing")].map(|folder| folder.display().to_string()).join(":");
        let writable = [at("ws"), at("more")];
        assert_eq!(closed_search_path(&path, &writable), format!("{expected}:/usr/bin:/bin"));
        let of_system = system_search_path(&path, &writable);
        assert!(of_system.starts_with("/usr/bin:"), "{of_system}");
        assert!(of_system.ends_with(&format!("{expected}:/usr/bin:/bin")), "{of_system}");
    }
}
