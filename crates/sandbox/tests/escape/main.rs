//! Attempts to escape from the sandbox. All must fail, for root and for a normal user; and with a layer left out, one
//! must succeed, which proves that the suite would notice.
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

mod as_root;
mod attempts;
mod confined;
mod confinement;
mod endings;
mod files_at_depth;
mod layers;
mod names;
mod names_at_depth;
mod nested;
mod probe;
mod scene;
mod sockets;
mod sockets_probe;
mod sockets_work;
mod stand_ins;
mod state;

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use attempts::{ATTEMPTS, Way, Workspace};
use oarlock_sandbox::testing::{HelperStatus, SandboxLayer};
use scene::Scene;

/// A timeout that nothing here reaches, even on a busy machine.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);

/// An unprivileged user.
const NOBODY: u32 = 65534;

/// Whether an attempt succeeded, or changed something outside.
fn escapes(way: Way, without: &[SandboxLayer]) -> Option<String> {
    let workspace = match way {
        Way::Shell(workspace, _) => workspace,
        Way::Call(_) => Workspace::Bare,
    };
    let scene = Scene::new(workspace);
    let (end, said) = scene::run(&scene.order(way, Some(scene.confinement())), without);
    let damage = scene.damage(workspace);
    match end {
        HelperStatus::Exited { code: 0 } => Some(format!("succeeded {said} {damage:?}")),
        HelperStatus::Failed(failure) => Some(format!("was never started: {failure:?}")),
        _ if !damage.is_empty() => Some(format!("left {damage:?}")),
        _ => None,
    }
}

fn escaped(names: &[(&str, Way)], without: &[SandboxLayer]) -> Vec<String> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut found = Vec::new();
        while let Some((name, way)) = names.get(next.fetch_add(1, Ordering::Relaxed)) {
            found.extend(escapes(*way, without).map(|how| format!("{name}: {how}")));
        }
        found
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("a worker")).collect()
    })
}

/// Runs one test of this program as a normal user.
fn as_normal_user(test: &str) {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let program = std::env::current_exe().expect("this program");
    let output = Command::new(program)
        .args(["--exact", test, "--nocapture"])
        .env("OARLOCK_ESCAPE_SECRET", "x")
        .uid(NOBODY)
        .gid(NOBODY)
        .current_dir("/")
        .output()
        .expect("this program starts");
    let said = String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

#[test]
fn there_are_enough_attempts() {
    assert!(ATTEMPTS.len() >= 60, "{}", ATTEMPTS.len());
}

#[test]
fn nothing_gets_out() {
    assert_eq!(escaped(ATTEMPTS, &[]), Vec::<String>::new());
}

#[test]
fn nothing_gets_out_for_a_normal_user() {
    as_normal_user("nothing_gets_out");
}
