//! Escape attempts made from inside the sandbox by this same program: the self-test relies on what really happened.

pub(super) mod separation;

use std::fs;
use std::io;
use std::net::TcpListener;
use std::path::Path;

use rustix::process::{Pid, test_kill_process};
use serde::{Deserialize, Serialize};

use super::sys;

/// The second argument, after [`SELF`], of a probing process.
pub(crate) const NAME: &str = "oarlock-sandbox-probe";
/// The second argument of a process that attempts to reach its parent.
pub(crate) const SEPARATION: &str = "oarlock-separation-probe";
/// Its variables: that process's id and home.
pub(crate) const TARGET: &str = "OARLOCK_PROBE_TARGET";
pub(crate) const TARGET_HOME: &str = "OARLOCK_PROBE_HOME";
/// The path by which the command executes the program it already is.
pub(crate) const SELF: &str = "/proc/self/exe";

/// One attempt, and what stopped it, if anything.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct EscapeAttempt {
    pub(crate) layer: String,
    pub(crate) held: bool,
    pub(crate) detail: String,
}

/// Prints all attempts as one line of JSON and ends. The working directory is writable; a file next to it is not.
pub(super) fn run() -> ! {
    let attempts = [
        files(),
        stopped("protected names", "creating .codex", fs::create_dir(".codex")),
        stopped("kernel settings", "opening /proc/sys for writing", writable("/proc/sys/kernel/domainname")),
        processes(),
        stopped("network", "opening a socket", TcpListener::bind("127.0.0.1:0")),
        privileges(),
        landlock(),
        stopped("system calls", "making a user namespace", sys::unshare(libc::CLONE_NEWUSER)),
    ];
    println!("{}", serde_json::to_string(&attempts).unwrap_or_default());
    sys::exit(0)
}

fn attempt(layer: &str, held: bool, detail: String) -> EscapeAttempt {
    EscapeAttempt { layer: layer.to_owned(), held, detail }
}

fn stopped<T>(layer: &str, doing: &str, outcome: io::Result<T>) -> EscapeAttempt {
    match outcome {
        Ok(_) => attempt(layer, false, format!("{doing} succeeded")),
        Err(error) => attempt(layer, true, format!("{doing}: {error}")),
    }
}

fn writable(path: impl AsRef<Path>) -> io::Result<fs::File> {
    fs::File::options().write(true).open(path)
}

fn files() -> EscapeAttempt {
    // A sandbox that allows no writes at all would be useless.
    match fs::write("inside", "x") {
        Ok(()) => stopped("files", "writing outside of the workspace", writable("../outside")),
        Err(error) => attempt("files", false, format!("the workspace cannot be written to: {error}")),
    }
}

/// In a new namespace, the second process has id 2.
fn processes() -> EscapeAttempt {
    let own = std::process::id();
    attempt("processes", own < 10, format!("the command is process {own}"))
}

fn privileges() -> EscapeAttempt {
    let user = rustix::process::geteuid();
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let lines = ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"];
    let none = lines.iter().all(|name| {
        status.lines().any(|line| line.starts_with(name) && line.ends_with("\t0000000000000000"))
    });
    let detail = format!(
        "user {}, {} capabilities, file rights of {}",
        user.as_raw(),
        if none { "no" } else { "some" },
        if is_stranger() { "an unused user" } else { "the server's user" }
    );
    attempt("privileges", none && !user.is_root(), detail)
}

/// Whether the file system sees another user than the server, which is root of the outer namespace.
fn is_stranger() -> bool {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    map.split_whitespace().nth(1).is_some_and(|outside| outside != "0")
}

/// From version 6 on it blocks signals to processes outside its domain, such as the first process in the namespace.
fn landlock() -> EscapeAttempt {
    let version = sys::landlock_version();
    if version < 6 {
        return attempt("landlock", version > 0, format!("version {version}"));
    }
    let reached = Pid::from_raw(1).map(test_kill_process);
    attempt("landlock", reached == Some(Err(rustix::io::Errno::PERM)), format!("version {version}"))
}
