//! Files that a shell runs before its script. Where the sandbox lets commands write to them, a command that runs outside
//! of it goes without: whoever agreed to the script did not agree to what a sandboxed command has put there.

use std::path::{Path, PathBuf};

use policy::shell_script;
use sandbox::Order;

use super::confine;
use super::setting::Setting;

/// Beneath the home folder, or the folder that `ZDOTDIR` names.
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
/// Variables that name such files, or the folder they are in.
const VARIABLES: &[&str] = &["BASH_ENV", "ENV", "ZDOTDIR"];

/// Takes the start files out of a command that is to run outside of the sandbox, where sandboxed ones can write to them.
/// The variables that name some are gone by then.
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

/// Whether anything sandboxed could have written what a shell of the user's runs first.
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

/// Whether the file, or what would become of a file of that name, lies beneath one of these.
pub(super) fn is_beneath(file: &Path, roots: &[PathBuf]) -> bool {
    let file = real(file);
    roots.iter().any(|root| file.starts_with(root))
}

/// Without links, as far as it is there.
pub(super) fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => parent.canonicalize().unwrap_or_else(|_| parent.to_owned()).join(name),
        _ => path.to_owned(),
    })
}
