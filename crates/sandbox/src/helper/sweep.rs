//! Kills every descendant process.

use std::collections::HashMap;
use std::fs;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, wait};

use super::{sys, wait as waiting};

/// An unkillable process, such as a setuid program, must not block the rest for ever.
const PATIENCE: Duration = Duration::from_secs(5);

/// Ends all processes below this one. `signals` becomes readable when a child ends.
pub(super) fn kill_descendants(signals: &OwnedFd) {
    let deadline = Instant::now() + PATIENCE;
    while reap() && Instant::now() < deadline {
        let found = descendants();
        // Stopped first, so that fewer are forked while others are killed.
        for signal in [Signal::STOP, Signal::KILL] {
            for pid in &found {
                let _ = kill_process(*pid, signal);
            }
        }
        // For new or remaining processes: checked again when a child has ended, or soon.
        waiting::readable([Some(signals)], Some(Duration::from_millis(10)));
        while sys::next_signal(signals).is_some() {}
    }
}

/// Reaps everything that has ended. False if there are no children left.
fn reap() -> bool {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

/// Orphans are reparented to this process, so descending from here finds all.
fn descendants() -> Vec<Pid> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let Ok(stat) = fs::read(entry.path().join("stat")) else { continue };
        if let Some(parent) = parent_of(&stat) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found = Vec::new();
    let mut open = vec![getpid().as_raw_nonzero().get()];
    while let Some(parent) = open.pop() {
        for pid in children.remove(&parent).unwrap_or_default() {
            open.push(pid);
            found.extend(Pid::from_raw(pid));
        }
    }
    found
}

/// The fourth field. The second is a name that may contain anything, up to the last closing bracket.
fn parent_of(stat: &[u8]) -> Option<i32> {
    let after_name = stat.iter().rposition(|byte| *byte == b')')? + 1;
    std::str::from_utf8(&stat[after_name..]).ok()?.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::parent_of;

    #[test]
    fn a_name_with_brackets_does_not_hide_the_parent() {
        assert_eq!(parent_of(b"7 (a) S 1 (b) c) S 42 7 7 0"), Some(42));
        assert_eq!(parent_of(b"garbage"), None);
    }
}
