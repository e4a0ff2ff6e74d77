//! Variables that make a program run code before or beside its own: libraries to load, options of interpreters, helpers
//! of git. They come from the server's environment, so the user chose them; but where one leads to a place that sandboxed
//! commands can write to, what it loads may be the model's. A command that leaves the sandbox goes without it.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use policy::Executables;
use protocol::SandboxPolicy;
use sandbox::{Confinement, OffLimits, Order};

use super::confine;
use super::setting::Setting;
use super::start_files::{VARIABLES, is_beneath, real, writable};

/// Whole names, and beginnings that end with `*`.
const NAMES: &[&str] = &[
    "LD_*",
    "GIT_*",
    "PYTHON*",
    "PERL5*",
    "RUBYLIB",
    "RUBYOPT",
    "NODE_OPTIONS",
    "NODE_PATH",
    "JAVA_TOOL_OPTIONS",
    "_JAVA_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "CLASSPATH",
    "DOTNET_STARTUP_HOOKS",
    "LUA_*",
    "PROMPT_COMMAND",
    "EDITOR",
    "VISUAL",
    "PAGER",
    "MANPAGER",
    "LESSOPEN",
    "LESSCLOSE",
    "BROWSER",
    "SSH_ASKPASS",
    "SUDO_ASKPASS",
    "CARGO_*",
    "RUSTC*",
    "MAKEFLAGS",
    "GCONV_PATH",
    "TERMINFO*",
    "OPENSSL_CONF",
    "OPENSSL_MODULES",
];

/// The environment of a program of the user's that runs outside of the sandbox without being a command: nothing in it
/// leads to what sandboxed commands of this place can write to.
pub fn environment_outside(
    env: &BTreeMap<String, String>,
    sandbox: &SandboxPolicy,
    cwd: &Path,
    off_limits: &OffLimits,
) -> BTreeMap<String, String> {
    let temporary = env.get("TMPDIR").map(Path::new).filter(|folder| folder.is_absolute());
    let mut writable = Confinement::writable_under(sandbox, cwd, temporary, off_limits);
    writable.extend([cwd, Path::new("/tmp"), &std::env::temp_dir()].map(Path::to_owned));
    let writable: Vec<PathBuf> = writable.iter().map(|root| real(root)).collect();
    let is_listed = |name: &str| is_listed(name) || VARIABLES.contains(&name);
    let mut env = env.clone();
    env.retain(|name, value| !is_listed(name) || !leads_into(value, &writable));
    if let Some(path) = env.get_mut("PATH") {
        let closed = Executables::new(OsStr::new(path), cwd, &writable).closed_search();
        *path = closed.to_string_lossy().into_owned();
    }
    env
}

/// Takes such variables out of a command that is to run outside of the sandbox, where sandboxed ones can write to what
/// they name.
pub(super) fn leave_out(order: &mut Order, setting: &Setting) {
    if setting.elsewhere.is_some() || !confine::is_sandboxed(setting) {
        return;
    }
    if !order.env.keys().any(|name| is_listed(name)) {
        return;
    }
    let writable = writable(setting);
    order.env.retain(|name, value| !is_listed(name) || !leads_into(value, &writable));
}

fn is_listed(name: &str) -> bool {
    NAMES.iter().any(|listed| match listed.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == *listed,
    })
}

/// Whether any path in the value is relative to the working directory or lies in a writable folder.
fn leads_into(value: &str, writable: &[PathBuf]) -> bool {
    let separators = |c: char| c.is_whitespace() || ":;,='\"()".contains(c);
    let mut words = value.split(separators);
    words.any(|word| match word.strip_prefix("@").unwrap_or(word) {
        "." | ".." => true,
        path if path.starts_with('/') => is_beneath(Path::new(path), writable),
        // A file of the working directory; a plain word is a name that is looked up elsewhere.
        path => path.contains('/'),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found_in_every_form() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("a folder");
        let inside = root.join("x.so").display().to_string();
        let writable = [root];
        for (value, expected) in [
            (inside.clone(), true),
            (format!("/usr/lib:{inside}"), true),
            (format!("--require={inside}"), true),
            (format!("-javaagent:{inside}=x"), true),
            (format!("sh -c '{inside}'"), true),
            ("./x.so".to_owned(), true),
            ("lib/x.so".to_owned(), true),
            (".".to_owned(), true),
            ("/usr/lib/x.so".to_owned(), false),
            ("--max-old-space-size=4096".to_owned(), false),
            ("less -R".to_owned(), false),
            (String::new(), false),
        ] {
            assert_eq!(leads_into(&value, &writable), expected, "{value}");
        }
        assert!(is_listed("LD_PRELOAD") && is_listed("GIT_SSH_COMMAND") && is_listed("PYTHONPATH"));
        assert!(!is_listed("PATH") && !is_listed("JAVA_HOME") && !is_listed("XGIT_DIR"));
    }
}
