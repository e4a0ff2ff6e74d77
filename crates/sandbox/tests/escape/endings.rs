//! However a command ends, all its processes end soon after, in every mode.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use oarlock_sandbox::testing::{HelperStatus, LaunchedHelper, launch};
use oarlock_sandbox::{Order, Strength};
use rustix::process::{Pid, Signal, kill_process};

use super::attempts::{Way, Workspace};
use super::scene::Scene;

/// The variable with the order for a substitute server.
const ORDER: &str = "OARLOCK_ESCAPE_ORDER";

const MODES: [Option<Strength>; 3] = [Some(Strength::Full), Some(Strength::LandlockOnly), None];

/// A time to sleep that no other process on the machine sleeps.
fn mark() -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    format!("98765.{}{:03}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Leaves a daemon in its own session, a child that ignores SIGTERM, and an orphaned grandchild.
fn order(scene: &Scene, mode: Option<Strength>, mark: &str, then: &str) -> Order {
    let confinement = mode.map(|strength| match strength {
        Strength::Full => scene.confinement(),
        Strength::LandlockOnly => scene.weak_walls(),
    });
    let mut order = scene.order(Way::Shell(Workspace::Bare, ""), confinement);
    order.argv[2] = format!(
        "setsid sleep {mark} & (trap '' TERM HUP INT; sleep {mark}) & (sleep {mark} &) ; echo ready; {then}"
    );
    order
}

fn start(order: &Order) -> LaunchedHelper {
    let order = serde_json::to_vec(order).unwrap();
    let mut helper = launch(&order, Stdio::null(), Stdio::piped(), Stdio::piped()).unwrap();
    until_ready(&mut helper.child);
    helper
}

fn until_ready(child: &mut Child) {
    let mut line = String::new();
    let mut output = BufReader::new(child.stdout.as_mut().unwrap());
    while line != "ready\n" {
        line.clear();
        assert_ne!(output.read_line(&mut line).unwrap(), 0, "it ended before it was ready");
    }
}

fn survivors(mark: &str) -> Vec<String> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(mark)).collect()
}

/// There is no event to wait for, only their absence.
fn assert_gone(mark: &str, what: &str) {
    let deadline = Instant::now() + super::PATIENCE;
    loop {
        let left = survivors(mark);
        if left.is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "{what}: {left:?}");
        std::thread::yield_now();
    }
}

#[test]
fn when_the_command_ends() {
    for mode in MODES {
        let (scene, mark) = (Scene::new(Workspace::Bare), mark());
        let mut helper = start(&order(&scene, mode, &mark, "exit 7"));
        assert_eq!(helper.end(), Some(HelperStatus::Exited { code: 7 }), "{mode:?}");
        assert_gone(&mark, &format!("{mode:?}"));
    }
}

#[test]
fn when_the_control_descriptor_closes() {
    for mode in MODES {
        let (scene, mark) = (Scene::new(Workspace::Bare), mark());
        let mut helper = start(&order(&scene, mode, &mark, "trap '' TERM; sleep 1000; sleep 1000"));
        assert!(survivors(&mark).len() >= 3, "{mode:?}");
        helper.close_control();
        assert_eq!(helper.end(), Some(HelperStatus::Signaled { signal: libc::SIGKILL }), "{mode:?}");
        assert_gone(&mark, &format!("{mode:?}"));
    }
}

#[test]
fn when_the_helper_is_told_to_end() {
    for mode in MODES {
        let (scene, mark) = (Scene::new(Workspace::Bare), mark());
        let mut helper = start(&order(&scene, mode, &mark, "sleep 1000"));
        signal(helper.child.id(), Signal::TERM);
        assert_eq!(helper.end(), Some(HelperStatus::Signaled { signal: libc::SIGKILL }), "{mode:?}");
        assert_gone(&mark, &format!("{mode:?}"));
    }
}

#[test]
fn when_the_helper_itself_is_killed() {
    for mode in MODES {
        let (scene, mark) = (Scene::new(Workspace::Bare), mark());
        let mut helper = start(&order(&scene, mode, &mark, "sleep 1000"));
        signal(helper.child.id(), Signal::KILL);
        helper.child.wait().unwrap();
        assert_gone(&mark, &format!("{mode:?}"));
    }
}

#[test]
fn when_the_process_between_is_killed() {
    for mode in MODES {
        let (scene, mark) = (Scene::new(Workspace::Bare), mark());
        let mut helper = start(&order(&scene, mode, &mark, "sleep 1000"));
        let pid = helper.child.id();
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
        signal(children.trim().parse().unwrap(), Signal::KILL);
        assert_eq!(helper.end(), Some(HelperStatus::Signaled { signal: libc::SIGKILL }), "{mode:?}");
        assert_gone(&mark, &format!("{mode:?}"));
    }
}

#[test]
fn when_the_server_is_killed() {
    for mode in MODES {
        let (scene, mark) = (Scene::new(Workspace::Bare), mark());
        let order = serde_json::to_string(&order(&scene, mode, &mark, "sleep 1000")).unwrap();
        let mut server = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "endings::server", "--ignored", "--nocapture"])
            .env(ORDER, order)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        until_ready(&mut server);
        assert!(survivors(&mark).len() >= 3, "{mode:?}");
        server.kill().unwrap();
        server.wait().unwrap();
        assert_gone(&mark, &format!("{mode:?}"));
    }
}

/// Not a test: a substitute server that runs until it is killed.
#[test]
#[ignore = "plays the server, started by another test"]
fn server() {
    let Ok(order) = std::env::var(ORDER) else { return };
    let mut helper = launch(order.as_bytes(), Stdio::null(), Stdio::piped(), Stdio::inherit()).unwrap();
    until_ready(&mut helper.child);
    println!("\nready");
    std::io::stdout().flush().unwrap();
    let _ = std::io::stdin().read(&mut [0]);
}

#[test]
fn a_storm_of_forks_is_capped_and_ends() {
    for mode in MODES {
        let (scene, mark) = (Scene::new(Workspace::Bare), mark());
        let confinement = mode.map(|strength| match strength {
            Strength::Full => scene.confinement(),
            Strength::LandlockOnly => scene.weak_walls(),
        });
        let mut order = scene.order(Way::Shell(Workspace::Bare, ""), confinement);
        order.limits.processes = 40;
        // Each shell forks two more, until the limit is reached.
        let script = format!("storm() {{ storm & storm & sleep {mark}; }}; storm; wait");
        order.argv[2] = script;
        let order = serde_json::to_vec(&order).unwrap();
        let mut helper = launch(&order, Stdio::null(), Stdio::piped(), Stdio::piped()).unwrap();
        // The first error means that the limit was reached.
        let mut said = [0; 1];
        helper.child.stderr.as_mut().unwrap().read_exact(&mut said).unwrap();
        assert!(survivors(&mark).len() <= 41, "{mode:?}: {}", survivors(&mark).len());
        helper.close_control();
        helper.end();
        assert_gone(&mark, &format!("{mode:?}"));
    }
}

fn signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

#[test]
fn for_a_normal_user() {
    for test in [
        "when_the_command_ends",
        "when_the_control_descriptor_closes",
        "when_the_server_is_killed",
        "a_storm_of_forks_is_capped_and_ends",
    ] {
        super::as_normal_user(&format!("endings::{test}"));
    }
}
