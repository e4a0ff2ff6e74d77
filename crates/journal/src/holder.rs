//! The holder of a lock: identifies the process for a person, and whether it is still running.

use std::fmt;
use std::fs;

use serde::{Deserialize, Serialize};

/// A process that writes a journal. Fields are unset if the system does not provide them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Holder {
    pub pid: Option<u32>,
    pub program: Option<String>,
    pub host: Option<String>,
    /// In clock ticks since boot: process ids are reused, this pair is not.
    pub started: Option<u64>,
    pub boot_id: Option<String>,
}

impl Holder {
    pub(crate) fn this_process() -> Self {
        let pid = std::process::id();
        let program = std::env::current_exe().ok();
        Self {
            pid: Some(pid),
            program: program.and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned())),
            host: line_of("/proc/sys/kernel/hostname"),
            started: started(pid),
            boot_id: line_of("/proc/sys/kernel/random/boot_id"),
        }
    }

    pub(crate) fn is_known(&self) -> bool {
        self.pid.is_some()
    }

    /// Whether the process has certainly ended or is about to. If unsure, false: only the lock itself decides who may
    /// write.
    pub(crate) fn is_gone(&self) -> bool {
        let (Some(pid), Some(then), Some(boot)) = (self.pid, self.started, &self.boot_id) else {
            return false;
        };
        // Another host name means another machine or container, whose processes are not visible here.
        if self.host != line_of("/proc/sys/kernel/hostname") {
            return false;
        }
        match line_of("/proc/sys/kernel/random/boot_id") {
            Some(now) => now != *boot || started(pid) != Some(then) || is_being_killed(pid),
            None => false,
        }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pid {
            Some(pid) => write!(f, "process {pid}")?,
            None => f.write_str("another process")?,
        }
        if let Some(program) = &self.program {
            write!(f, " ({program})")?;
        }
        match &self.host {
            Some(host) => write!(f, " on {host}"),
            None => Ok(()),
        }
    }
}

fn line_of(path: &str) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

/// The 22nd field of the process's stat line; the second is the program's name, which may contain spaces and brackets.
fn started(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut after_name = stat.rsplit_once(')')?.1.split_whitespace();
    // A zombie still has a stat line, but holds nothing.
    if after_name.next() == Some("Z") {
        return None;
    }
    after_name.nth(18)?.parse().ok()
}

/// The process that sent the kill signal may already request the lock before the process has ended.
fn is_being_killed(pid: u32) -> bool {
    const KILL: u64 = 1 << (9 - 1);
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let mut pending = status.lines().filter_map(|line| {
        let (name, signals) = line.split_once(':')?;
        matches!(name, "SigPnd" | "ShdPnd").then(|| u64::from_str_radix(signals.trim(), 16).ok())?
    });
    pending.any(|signals| signals & KILL != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_running_and_one_with_another_start_is_not() {
        let this = Holder::this_process();
        assert!(!this.is_gone());
        let reused = Holder { started: this.started.map(|ticks| ticks + 1), ..this.clone() };
        assert!(reused.is_gone());
        let rebooted = Holder { boot_id: Some("another".to_owned()), ..this };
        assert!(rebooted.is_gone());
        assert!(!Holder::default().is_gone());
    }

    #[test]
    fn names_the_process() {
        let holder = Holder {
            pid: Some(41),
            program: Some("oarlock".to_owned()),
            host: Some("box".to_owned()),
            ..Holder::default()
        };
        assert_eq!(holder.to_string(), "process 41 (oarlock) on box");
        assert_eq!(Holder::default().to_string(), "another process");
    }
}
