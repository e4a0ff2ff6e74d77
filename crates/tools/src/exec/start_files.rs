//! Files that a shell runs before its script. If sandboxed commands can write them, a command outside the sandbox runs
//! without: approving the script does not approve those files.

use std::path::{Path, PathBuf};

use policy::shell_script;
use sandbox::Order;

use super::confine;
use super::setting::Setting;

/// In the home folder, or the folder in `ZDOTDIR`.
const NAMES: &[&str] = &[
    ".profile",
    ".bash_profile",
    ".bash_login",
    ".bashrc",
    ".bash_aliases",
    ".zshenv",
    ".zprofile",
    ".zshrc",
    ".zlogin",
    ".kshrc",
    ".shrc",
    ".mkshrc",
];
/// Variables that name such files or their folder.
const VARIABLES: &[&str] = &["BASH_ENV", "ENV", "ZDOTDIR"];

/// Disables the start files of a command outside the sandbox if sandboxed commands can write them. Variables that name
/// such files are removed already.
pub(super) fn leave_out(order: &mut Order) {
    let Some(call) = shell_script(&order.argv) else { return };
    let name = Path::new(call.shell).file_name().and_then(|name| name.to_str());
    let options: &[&str] = match name {
        Some("bash") => &["--noprofile", "--norc", "-c"],
        Some("zsh") => &["-f", "-c"],
        _ => &["-c"],
    };
    let words = [call.shell].into_iter().chain(options.iter().copied()).chain([call.script]);
    order.argv = words.map(str::to_owned).collect();
}

/// Whether a sandboxed process could have written the user's start files.
pub(super) fn are_writable(setting: &Setting) -> bool {
    if setting.elsewhere.is_some() || !confine::is_sandboxed(setting) {
        return false;
    }
    let (env, writable) = (&setting.options.env, writable(setting));
    let folders = ["HOME", "ZDOTDIR"].into_iter().filter_map(|name| env.get(name)).map(Path::new);
    let of_folders = folders.flat_map(|folder| NAMES.iter().map(|name| folder.join(name)));
    let named = VARIABLES.iter().filter_map(|name| env.get(*name)).map(PathBuf::from);
    of_folders.chain(named).any(|file| is_beneath(&file, &writable))
}

pub(super) fn writable(setting: &Setting) -> Vec<PathBuf> {
    confine::writable(setting).iter().map(|root| real(root)).collect()
}

/// Whether the file, or a new file of that name, is inside one of these roots.
pub(super) fn is_beneath(file: &Path, roots: &[PathBuf]) -> bool {
    let file = real(file);
    roots.iter().any(|root| file.starts_with(root))
}

/// The resolved path, as far as it exists.
pub(super) fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => parent.canonicalize().unwrap_or_else(|_| parent.to_owned()).join(name),
        _ => path.to_owned(),
    })
}
