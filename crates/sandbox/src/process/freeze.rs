//! Suspends every sandboxed command of this process briefly, so that no sandboxed process can change files between the
//! last check of an approved command and its start.
//!
//! Uses signals instead of the cgroup freezer, which is not available everywhere. A suspended command can still be
//! ended: its helper, or the death of the server, kills it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use rustix::process::{Pid, Signal, kill_process};
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

/// A process that hangs in the kernel is not suspended before it returns from there.
const LIMIT: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_micros(500);

/// Locked while everything is suspended: no sandboxed command starts meanwhile.
static GATE: LazyLock<Arc<RwLock<()>>> = LazyLock::new(Arc::default);
/// The helpers of sandboxed commands, from before they start anything until all their processes have ended.
static HELPERS: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// While it exists, no sandboxed command of this process runs or starts.
#[derive(Debug)]
pub struct Frozen {
    stopped: Stopped,
    _gate: OwnedRwLockWriteGuard<()>,
}

impl Frozen {
    /// Whether there was anything to suspend.
    pub fn is_anything(&self) -> bool {
        !self.stopped.0.is_empty()
    }
}

/// Suspends all sandboxed commands. Fails if one of them cannot be suspended; then none is.
pub async fn freeze_sandboxed() -> io::Result<Frozen> {
    let gate = GATE.clone().write_owned().await;
    let helpers: Vec<i32> = helpers().iter().copied().collect();
    if helpers.is_empty() {
        return Ok(Frozen { stopped: Stopped(Vec::new()), _gate: gate });
    }
    // If the caller is cancelled, the task itself resumes the processes, and only then unlocks.
    let freezing = tokio::task::spawn_blocking(move || Ok(Frozen { stopped: stop(&helpers)?, _gate: gate }));
    freezing.await.map_err(io::Error::other)?
}

/// While this is held, a sandboxed command may be started.
pub(crate) async fn may_start() -> OwnedRwLockReadGuard<()> {
    GATE.clone().read_owned().await
}

/// The helper of a sandboxed command.
#[derive(Debug)]
pub(crate) struct RegisteredHelper(i32);

impl RegisteredHelper {
    pub(crate) fn new(helper: Pid) -> Self {
        let helper = helper.as_raw_nonzero().get();
        helpers().insert(helper);
        Self(helper)
    }
}

impl Drop for RegisteredHelper {
    fn drop(&mut self) {
        helpers().remove(&self.0);
    }
}

fn helpers() -> MutexGuard<'static, BTreeSet<i32>> {
    HELPERS.lock()
}

/// Suspended processes, parents before children. Resumed in the opposite order, so that no shell sees a suspended child
/// and takes it for a job that the user has stopped.
#[derive(Debug)]
struct Stopped(Vec<Pid>);

impl Drop for Stopped {
    fn drop(&mut self) {
        for pid in self.0.iter().rev() {
            let _ = kill_process(*pid, Signal::CONT);
        }
    }
}

/// Repeats until two scans find the same processes, all suspended: the second finds what was forked during the first.
fn stop(helpers: &[i32]) -> io::Result<Stopped> {
    let deadline = Instant::now() + LIMIT;
    let mut stopped = Stopped(Vec::new());
    let mut quiet = None;
    loop {
        let tree = tree(helpers);
        let mut is_quiet = true;
        // The supervisor of a sandbox last: processes that wait for it are not suspended before they have its answer.
        let (last, first): (Vec<_>, Vec<_>) =
            tree.iter().partition(|(pid, parent)| helpers.contains(pid) || helpers.contains(parent));
        let running = |these: Vec<&(i32, i32)>| -> Vec<i32> {
            these.into_iter().map(|(pid, _)| *pid).filter(|pid| !is_stopped(*pid)).collect()
        };
        let mut left = running(first);
        if left.is_empty() {
            left = running(last);
        }
        for pid in &left {
            is_quiet = false;
            let Some(signalled) = Pid::from_raw(*pid) else { continue };
            if stopped.0.contains(&signalled) && is_waiting(*pid) {
                release_children(*pid, &tree);
            } else if kill_process(signalled, Signal::STOP).is_ok() && !stopped.0.contains(&signalled) {
                stopped.0.push(signalled);
            }
        }
        match quiet.replace(tree) {
            Some(before) if is_quiet && quiet.as_ref() == Some(&before) => return Ok(stopped),
            _ if Instant::now() > deadline => {
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    "a sandboxed command cannot be suspended",
                ));
            }
            _ if is_quiet => {}
            _ => {
                quiet = None;
                std::thread::sleep(PAUSE);
            }
        }
    }
}

/// A process that waits in `vfork` is not suspended before its child executes another program, which a suspended child
/// does not. So the child may continue briefly.
fn release_children(pid: i32, tree: &[(i32, i32)]) {
    for child in
        tree.iter().filter(|(_, parent)| *parent == pid).filter_map(|(child, _)| Pid::from_raw(*child))
    {
        let _ = kill_process(child, Signal::CONT);
    }
}

/// These processes and all their descendants, each with its parent, parents first. Orphans are adopted within the tree.
fn tree(helpers: &[i32]) -> Vec<(i32, i32)> {
    let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        if let Some((_, parent)) =
            fs::read(entry.path().join("stat")).ok().as_deref().and_then(state_and_parent)
        {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found: Vec<(i32, i32)> = helpers.iter().map(|helper| (*helper, 0)).collect();
    let mut at = 0;
    while let Some((parent, _)) = found.get(at).copied() {
        found.extend(children.remove(&parent).unwrap_or_default().into_iter().map(|child| (child, parent)));
        at += 1;
    }
    found
}

/// It waits in the kernel uninterruptibly.
fn is_waiting(pid: i32) -> bool {
    let stat = fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    state_and_parent(&stat).is_some_and(|(state, _)| state == b'D')
}

/// Every thread of it is suspended, or gone.
fn is_stopped(pid: i32) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return true };
    threads.flatten().all(|thread| {
        let stat = fs::read(thread.path().join("stat")).unwrap_or_default();
        state_and_parent(&stat).is_none_or(|(state, _)| matches!(state, b'T' | b't' | b'Z' | b'X'))
    })
}

/// The third and fourth fields. The second is a name that may contain anything, up to the last closing bracket.
fn state_and_parent(stat: &[u8]) -> Option<(u8, i32)> {
    let after_name = stat.iter().rposition(|byte| *byte == b')')? + 1;
    let mut fields = std::str::from_utf8(&stat[after_name..]).ok()?.split_whitespace();
    Some((*fields.next()?.as_bytes().first()?, fields.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_brackets_hide_nothing() {
        assert_eq!(state_and_parent(b"7 (a) S 1 (b) c) T 42 7 7 0"), Some((b'T', 42)));
        assert_eq!(state_and_parent(b"garbage"), None);
    }

    /// A shell that starts one program after the other waits in `vfork` again and again.
    #[test]
    fn a_shell_that_starts_programs_all_the_time_is_suspended_each_time() {
        let mut child = std::process::Command::new("sh")
            .args(["-c", "while :; do date; done > /dev/null"])
            .spawn()
            .unwrap();
        let pid = child.id().cast_signed();
        for round in 0..200 {
            let stopped = stop(&[pid]);
            assert!(stopped.is_ok(), "round {round}: {stopped:?}");
        }
        for pid in tree(&[pid]).into_iter().rev().filter_map(|(pid, _)| Pid::from_raw(pid)) {
            let _ = kill_process(pid, Signal::KILL);
        }
        child.wait().unwrap();
    }

    #[test]
    fn a_tree_of_processes_is_suspended_and_resumed() {
        let mut child = std::process::Command::new("sh")
            .args(["-c", "while :; do sh -c 'while :; do :; done'; done & while :; do :; done"])
            .spawn()
            .unwrap();
        let pid = child.id().cast_signed();
        let deadline = Instant::now() + LIMIT;
        while tree(&[pid]).len() < 2 && Instant::now() < deadline {
            std::thread::sleep(PAUSE);
        }
        let stopped = stop(&[pid]).unwrap();
        assert!(stopped.0.len() >= 2 && tree(&[pid]).iter().all(|(pid, _)| is_stopped(*pid)));
        drop(stopped);
        let deadline = Instant::now() + LIMIT;
        while is_stopped(pid) && Instant::now() < deadline {
            std::thread::sleep(PAUSE);
        }
        assert!(!is_stopped(pid));
        for pid in tree(&[pid]).into_iter().rev().filter_map(|(pid, _)| Pid::from_raw(pid)) {
            let _ = kill_process(pid, Signal::KILL);
        }
        child.wait().unwrap();
    }
}
