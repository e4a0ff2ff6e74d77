//! Attempts to reach the process that starts commands, made as the commands' user.

use std::fs;
use std::io;
use std::path::PathBuf;

use rustix::process::{Pid, Signal, kill_process};

use super::{EscapeAttempt, TARGET, TARGET_HOME, attempt, stopped, sys, writable};

/// Prints all attempts as one line of JSON and ends. The working directory is the workspace.
pub(in crate::helper) fn run() -> ! {
    let target = std::env::var(TARGET).ok().and_then(|pid| pid.parse().ok()).unwrap_or(0);
    let home = PathBuf::from(std::env::var_os(TARGET_HOME).unwrap_or_default());
    let proc = PathBuf::from(format!("/proc/{target}"));
    let mut attempts = vec![
        workspace(),
        stopped("rights of root", "becoming root", sys::become_root()),
        // Harmless if it succeeds: the signal stops nothing.
        stopped("signals", "sending a signal", signal(target)),
        stopped("tracing", "tracing the process", sys::trace(target)),
        stopped("memory", "reading its memory", fs::File::open(proc.join("mem"))),
        stopped("environment", "reading its environment", fs::read(proc.join("environ"))),
        stopped("pipes", "listing its descriptors", fs::read_dir(proc.join("fd"))),
    ];
    attempts.extend((0..3).map(|fd| {
        let doing = format!("writing to its descriptor {fd}");
        stopped("pipes", &doing, writable(proc.join(format!("fd/{fd}"))))
    }));
    attempts.push(stopped("home", "listing its home", fs::read_dir(&home)));
    attempts.push(stopped("home", "writing into its home", fs::write(home.join("from-a-command"), "x")));
    println!("{}", serde_json::to_string(&attempts).unwrap_or_default());
    sys::exit(0)
}

fn signal(target: i32) -> io::Result<()> {
    let target = Pid::from_raw(target).ok_or(io::ErrorKind::NotFound)?;
    Ok(kill_process(target, Signal::CONT)?)
}

/// A user that cannot work in the workspace would be useless.
fn workspace() -> EscapeAttempt {
    let file = format!(".oarlock-separation-{}", std::process::id());
    match fs::write(&file, "x").and_then(|()| fs::remove_file(&file)) {
        Ok(()) => attempt("workspace", true, "can be written to".to_owned()),
        Err(error) => attempt("workspace", false, format!("cannot be written to: {error}")),
    }
}
