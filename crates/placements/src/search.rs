//! Where tools are looked for that run without a sandbox: PATH without folders that commands can write, or a command could
//! put a `docker` of its own there. Kept for the whole process, as PATH is.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use parking_lot::RwLock;

/// None for as long as nobody has said where to look: then PATH holds as it is.
static FOLDERS: RwLock<Option<Vec<PathBuf>>> = RwLock::new(None);

/// From now on tools are looked for in these folders alone. Written as PATH is.
pub fn search_tools_in(path: &str) {
    let folders = std::env::split_paths(path).filter(|folder| folder.is_absolute()).collect();
    *FOLDERS.write() = Some(folders);
}

/// Leaves out the folders in or beneath this one, as commands can write there from now on.
pub fn search_no_tools_beneath(folder: &Path) {
    let mut folders = FOLDERS.write();
    if let Some(folders) = folders.as_mut() {
        folders.retain(|own| !lies_in(own, folder));
    }
}

/// The PATH of programs that run without a sandbox.
pub fn tool_path() -> Option<OsString> {
    let folders = FOLDERS.read();
    folders.as_ref().map(|folders| std::env::join_paths(folders).unwrap_or_default())
}

/// The program behind a name. A path stays what it is, and so does every name while PATH holds as it is.
pub fn find_tool(name: &str) -> std::io::Result<PathBuf> {
    let folders = FOLDERS.read();
    let Some(folders) = folders.as_ref().filter(|_| !name.contains('/')) else { return Ok(name.into()) };
    let is_program = |path: &PathBuf| {
        path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    let found = folders.iter().map(|folder| folder.join(name)).find(is_program);
    found.ok_or_else(|| std::io::ErrorKind::NotFound.into())
}

fn lies_in(path: &Path, folder: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    path.starts_with(folder) || real(path).starts_with(real(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_commands_can_write_is_no_longer_searched() {
        let root = tempfile::tempdir().expect("a folder");
        let at = |name: &str| root.path().join(name);
        for folder in ["work/bin", "own"] {
            std::fs::create_dir_all(at(folder)).expect("made");
            std::fs::write(at(folder).join("tool"), "").expect("written");
            let executable = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(at(folder).join("tool"), executable).expect("set");
        }
        std::os::unix::fs::symlink(at("work/bin"), at("link")).expect("linked");
        assert_eq!(find_tool("tool").expect("as it is"), Path::new("tool"));
        let path = ["link", "work/bin", "own"].map(|name| at(name).display().to_string()).join(":");
        search_tools_in(&format!("{path}:relative:"));
        assert_eq!(find_tool("tool").expect("found"), at("link/tool"));
        search_no_tools_beneath(&at("work"));
        assert_eq!(find_tool("tool").expect("found"), at("own/tool"));
        assert_eq!(tool_path(), Some(at("own").into()));
        assert_eq!(find_tool("./tool").expect("a path"), Path::new("./tool"));
        assert!(find_tool("missing").is_err());
    }
}
