//! Variables with paths to folders that sandboxed commands can write. They come from the server's environment, so the
//! user chose them; but the model may have written the libraries, interpreter options, settings and helpers there. A
//! command outside the sandbox runs without such variables, and without user settings that the model could have
//! written.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use policy::Executables;
use protocol::SandboxPolicy;
use sandbox::{Confinement, OffLimits, Order};

use super::confine;
use super::setting::Setting;
use super::start_files::{is_beneath, real, writable};

/// Variables that are always kept: working folders and sockets, from which nothing is executed. `PATH` has its own
/// rules.
const HARMLESS: &[&str] = &[
    "CARGO_TARGET_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
    "HOME",
    "KRB5CCNAME",
    "OLDPWD",
    "PATH",
    "PWD",
    "SSH_AUTH_SOCK",
    "TEMP",
    "TMP",
    "TMPDIR",
    "VIRTUAL_ENV",
    "XAUTHORITY",
    "XDG_RUNTIME_DIR",
];

/// Variables of programs (`*` marks a prefix) in which `lib/x` is a path in the working folder. In other variables it
/// may be anything, such as `text/plain`.
const LOADING: &[&str] = &[
    "_JAVA_OPTIONS",
    "BROWSER",
    "CARGO_*",
    "CLASSPATH",
    "DOTNET_STARTUP_HOOKS",
    "EDITOR",
    "GIT_*",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "LD_*",
    "LESSCLOSE",
    "LESSOPEN",
    "LUA_*",
    "MAKE*",
    "MANPAGER",
    "NODE_*",
    "OPENSSL_*",
    "PAGER",
    "PERL*",
    "PROMPT_COMMAND",
    "PYTHON*",
    "RUBY*",
    "RUSTC*",
    "SSH_ASKPASS",
    "SUDO_ASKPASS",
    "VISUAL",
];

/// Lists of folders: in these, a plain word is a folder in the working directory.
const SEARCHED: &[&str] =
    &["CLASSPATH", "LD_LIBRARY_PATH", "NODE_PATH", "PERL5LIB", "PERLLIB", "PYTHONPATH", "RUBYLIB"];

const NOTHING: &str = "/dev/null";

/// The environment of a user's program that runs outside the sandbox and is no command: without variables that point to
/// folders that sandboxed commands can write.
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
    let mut env = env.clone();
    env.retain(|name, value| !leads_into(name, value, &writable));
    if let Some(path) = env.get_mut("PATH") {
        let closed = Executables::new(OsStr::new(path), cwd, &writable).closed_search();
        *path = closed.to_string_lossy().into_owned();
    }
    env
}

/// Removes such variables from a command outside the sandbox, and user settings in files that sandboxed commands can
/// write.
pub(super) fn leave_out(order: &mut Order, setting: &Setting) {
    if setting.elsewhere.is_some() || !confine::is_sandboxed(setting) {
        return;
    }
    let writable = writable(setting);
    order.env.retain(|name, value| !leads_into(name, value, &writable));
    leave_out_settings(order, setting, &writable);
}

/// The settings of git, curl and wget can name programs to run and files to write.
fn leave_out_settings(order: &mut Order, setting: &Setting, writable: &[PathBuf]) {
    let git = Executables::new(OsStr::new(""), &order.cwd, writable);
    for name in ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"] {
        if git.clone().with_environment(&order.env).git_settings_are_open() {
            order.env.insert(name.to_owned(), NOTHING.to_owned());
        }
    }
    let Some(home) = order.env.get("HOME").map(PathBuf::from) else { return };
    let is_open = |name: &str| is_beneath(&home.join(name), writable);
    if is_open(".wgetrc") {
        order.env.entry("WGETRC".to_owned()).or_insert_with(|| NOTHING.to_owned());
    }
    if is_open(".curlrc") || is_open(".config/curlrc") {
        let Some(folder) = settings_for_curl(setting).filter(|folder| !is_beneath(folder, writable)) else {
            tracing::warn!("curl may obey settings that a command wrote: no others can be made for it");
            return;
        };
        order.env.insert("CURL_HOME".to_owned(), folder.display().to_string());
    }
}

/// A folder with an empty curl configuration. Without one, curl falls back to the home folder.
fn settings_for_curl(setting: &Setting) -> Option<PathBuf> {
    let folder = setting.options.outputs.as_deref()?.parent()?;
    let make = || -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        fs::write(folder.join(".curlrc"), "")
    };
    make().ok().map(|()| folder.to_owned())
}

fn is_listed(name: &str, list: &[&str]) -> bool {
    list.iter().any(|listed| match listed.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == *listed,
    })
}

/// Whether any path in the value is relative to the working directory or in a writable folder.
fn leads_into(name: &str, value: &str, writable: &[PathBuf]) -> bool {
    if is_listed(name, HARMLESS) {
        return false;
    }
    let (is_loading, is_searched) = (is_listed(name, LOADING), is_listed(name, SEARCHED));
    let separators = |c: char| c.is_whitespace() || ":;,='\"()".contains(c);
    value.split(separators).any(|word| {
        // `-I./include`
        let option = word
            .strip_prefix('-')
            .map(|rest| rest.trim_start_matches(|c: char| c == '-' || c.is_alphanumeric()));
        let path = option.unwrap_or_else(|| word.strip_prefix('@').unwrap_or(word));
        match path {
            "." | ".." => is_loading || word == value,
            path if path.starts_with('/') => is_beneath(Path::new(path), writable),
            path if path.starts_with("./") || path.starts_with("../") => true,
            // A plain word is a name that is looked up elsewhere.
            path => is_loading && path.contains('/') || is_searched && !path.is_empty(),
        }
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
        let all: &[(&str, String, bool)] = &[
            ("LD_PRELOAD", inside.clone(), true),
            ("MAKEFILES", inside.clone(), true),
            ("RIPGREP_CONFIG_PATH", inside.clone(), true),
            ("KUBECONFIG", format!("/etc/kube:{inside}"), true),
            ("NODE_OPTIONS", format!("--require={inside}"), true),
            ("MAVEN_OPTS", format!("-javaagent:{inside}=x"), true),
            ("GOFLAGS", format!("-toolexec={inside}"), true),
            ("CFLAGS", format!("-O2 -I{inside}"), true),
            ("PAGER", format!("sh -c '{inside}'"), true),
            ("PIP_CONFIG_FILE", "./x".to_owned(), true),
            ("JULIA_PROJECT", "@.".to_owned(), true),
            ("JULIA_PROJECT", ".".to_owned(), true),
            ("PERL5LIB", "lib/x".to_owned(), true),
            ("PERL5LIB", "lib".to_owned(), true),
            ("PYTHONPATH", "/usr/lib:.".to_owned(), true),
            ("LD_PRELOAD", "x.so".to_owned(), false),
            ("LD_PRELOAD", "/usr/lib/x.so".to_owned(), false),
            ("NODE_OPTIONS", "--max-old-space-size=4096".to_owned(), false),
            ("PAGER", "less -R".to_owned(), false),
            ("ACCEPT", "text/plain".to_owned(), false),
            ("PS1", "\\w . ".to_owned(), false),
            ("HOME", inside.clone(), false),
            ("PATH", inside.clone(), false),
            ("SSH_AUTH_SOCK", inside, false),
            ("EMPTY", String::new(), false),
        ];
        for (name, value, expected) in all {
            assert_eq!(leads_into(name, value, &writable), *expected, "{name}={value}");
        }
    }
}
