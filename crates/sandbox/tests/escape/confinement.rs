//! What still works inside, and the permissions of each policy.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use oarlock_sandbox::testing::{HelperStatus, StartFailure, StartStage};
use oarlock_sandbox::{Confinement, Limits, Order, ReadAccess, SelfTest, Strength};

use super::attempts::{Way, Workspace};
use super::scene::{self, Scene};

/// Runs a script; `Err` with its exit and output if it failed.
fn check(scene: &Scene, confinement: Option<Confinement>, script: &str) -> Result<(), String> {
    let mut order = scene.order(Way::Shell(Workspace::Bare, ""), confinement);
    order.argv[2] = script.to_owned();
    match scene::run(&order, &[]) {
        (HelperStatus::Exited { code: 0 }, _) => Ok(()),
        (end, said) => Err(format!("{script}: {end:?} {said}")),
    }
}

#[test]
fn ordinary_work_is_possible() {
    let scene = Scene::new(Workspace::Repository);
    for script in [
        "echo x > new && mv new moved && rm moved",
        "mkdir -p a/b && echo x > a/f && mv a/f a/b/f && ln a/b/f a/g && ln -s b a/l && rm -r a",
        "echo x > folder/nested/f && cat folder/nested/f",
        "cat .git/config && ls .codex/ && cat $OUT/file",
        "echo x > /dev/null && head -c 4 /dev/urandom > r && test -s r",
        "echo x > /dev/shm/f && cat /dev/shm/f",
        "echo x > /dev/stdout && echo y > /dev/stderr",
        "test $(ps ax | wc -l) -lt 8",
        "test $(id -u) -gt 0",
        "(sleep 0 & wait) && echo a | tr a b | grep -q b",
        "ls / /usr /etc && test -r /etc/passwd",
        "test -d /proc/self && cat /proc/meminfo | head -1",
        "! test -e ../nowhere",
    ] {
        assert_eq!(check(&scene, Some(scene.confinement()), script), Ok(()));
    }
}

#[test]
fn read_only_writes_nowhere() {
    let scene = Scene::new(Workspace::Bare);
    for script in ["! echo x > f", "! echo x > /tmp/oarlock-escape", "cat $OUT/file", "echo x > /dev/null"] {
        assert_eq!(check(&scene, Some(Confinement::read_only()), script), Ok(()));
    }
}

#[test]
fn listed_reading_shows_nothing_else() {
    let scene = Scene::new(Workspace::Bare);
    let paths = vec![scene.at("ws"), scene.at("outside/folder")];
    let confinement = Confinement { read: ReadAccess::Only(paths), ..scene.confinement() };
    for script in [
        "echo x > f && cat f",
        "! cat $OUT/file",
        "ls $OUT/folder",
        "! echo x > $OUT/folder/f",
        "! ls /root && ! ls /var/lib",
        "! mkdir /new",
        "! mkdir .codex/x",
        "echo x > /dev/null",
    ] {
        assert_eq!(check(&scene, Some(confinement.clone()), script), Ok(()));
    }
}

#[test]
fn exact_reading_leaves_out_even_the_system() {
    let scene = Scene::new(Workspace::Bare);
    let confinement = Confinement { read: ReadAccess::Exactly(vec![scene.at("ws")]), ..scene.confinement() };
    let order = scene.order(Way::Shell(Workspace::Bare, "true"), Some(confinement));
    assert!(
        matches!(scene::run(&order, &[]).0, HelperStatus::Failed(failure) if failure.stage == StartStage::Exec)
    );
}

#[test]
fn with_network_the_host_can_be_reached_and_odd_sockets_cannot() {
    let scene = Scene::new(Workspace::Bare);
    let confinement = Confinement { network: true, ..scene.confinement() };
    for (name, expected) in
        [("connect_tcp", 0), ("socket_vsock", 1), ("socket_alg", 1), ("connect_abstract", 1)]
    {
        let end = scene::run(&scene.order(Way::Call(name), Some(confinement.clone())), &[]).0;
        assert_eq!(end, HelperStatus::Exited { code: expected }, "{name}");
    }
}

#[test]
fn a_root_that_is_a_link_is_resolved_first() {
    let scene = Scene::new(Workspace::Bare);
    std::os::unix::fs::symlink(scene.at("ws"), scene.at("alias")).unwrap();
    let confinement = Confinement { writable: vec![scene.at("alias")], ..scene.confinement() };
    let mut order =
        scene.order(Way::Shell(Workspace::Bare, "echo x > f && ! mkdir .codex/x"), Some(confinement));
    order.cwd = scene.at("alias");
    assert_eq!(scene::run(&order, &[]).0, HelperStatus::Exited { code: 0 });
    assert!(scene.at("ws/f").exists());
}

#[test]
fn landlock_alone_keeps_files_network_and_processes() {
    let scene = Scene::new(Workspace::Bare);
    let confinement = scene.weak_walls();
    for script in [
        "! cat $SECRET/key",
        "! true >> $SECRET/key",
        "ln -s $SECRET/key l && ! cat l",
        "! ln $SECRET/key h",
        "ls / /usr/bin > /dev/null && cat /etc/passwd > /dev/null",
        "cat $OUT/file",
        "test $(id -u) != 0 || ! cat /etc/shadow",
        "echo x > f && mkdir d && mv f d/f",
        "! echo x > $OUT/new",
        "! echo x >> $OUT/file",
        "! true >> /proc/sys/kernel/core_pattern",
        "! kill -0 $HOST",
        "grep -q 'CapEff:.0000000000000000' /proc/self/status",
        "echo x > /dev/null",
    ] {
        assert_eq!(check(&scene, Some(confinement.clone()), script), Ok(()));
    }
    for name in ["connect_tcp", "bpf", "ptrace", "mount", "connect_local"] {
        let end = scene::run(&scene.order(Way::Call(name), Some(confinement.clone())), &[]).0;
        assert_eq!(end, HelperStatus::Exited { code: 1 }, "{name}");
    }
}

#[test]
fn what_landlock_alone_cannot_hold_is_refused() {
    let scene = Scene::new(Workspace::Bare);
    let weak = scene.weak_walls();
    let refused = [
        (Confinement { hidden: vec![scene.at("ws/hidden.txt")], ..weak.clone() }, "hidden.txt"),
        (
            Confinement {
                hidden: vec![scene.at("ws/.state")],
                reserved: vec![scene.at("ws/.state")],
                ..weak.clone()
            },
            ".state",
        ),
        (Confinement { network: true, closed_ports: vec![4711], ..weak.clone() }, "4711"),
    ];
    for (confinement, named) in refused {
        let order = scene.order(Way::Shell(Workspace::Bare, "true"), Some(confinement));
        let HelperStatus::Failed(failure) = scene::run(&order, &[]).0 else {
            panic!("{named}: it was started")
        };
        assert!(failure.message.contains("Landlock alone cannot"), "{failure}");
        assert!(failure.message.contains(named), "{failure}");
    }
    // The parts of a hidden folder that the user grants are readable.
    let shown = Confinement { shown: vec![scene.at("secret/key")], ..weak };
    assert_eq!(check(&scene, Some(shown), "cat $SECRET/key"), Ok(()));
}

#[test]
fn what_landlock_alone_cannot_hold_is_refused_for_a_normal_user() {
    super::as_normal_user("confinement::what_landlock_alone_cannot_hold_is_refused");
}

#[test]
fn without_walls_everything_is_allowed() {
    let scene = Scene::new(Workspace::Bare);
    assert_eq!(check(&scene, None, "echo x > $OUT/new && cat $SECRET/key && mkdir .codex"), Ok(()));
    assert_eq!(fs::read_to_string(scene.at("outside/new")).unwrap(), "x\n");
}

#[test]
fn memory_is_limited() {
    let scene = Scene::new(Workspace::Bare);
    for confinement in [Some(scene.confinement()), None] {
        let mut order =
            scene.order(Way::Shell(Workspace::Bare, "head -c 300M /dev/zero | tail"), confinement);
        order.argv[2] =
            "head -c 300000000 /dev/zero | tail -c 300000000 | wc -c | grep -q 300000000".to_owned();
        assert_eq!(scene::run(&order, &[]).0, HelperStatus::Exited { code: 0 });
        order.limits.memory = Some(64 << 20);
        assert_ne!(scene::run(&order, &[]).0, HelperStatus::Exited { code: 0 });
    }
}

#[test]
fn a_start_that_fails_says_which_step() {
    let scene = Scene::new(Workspace::Bare);
    let stage = |change: fn(&mut Order)| {
        let mut order = scene.order(Way::Shell(Workspace::Bare, "true"), Some(scene.confinement()));
        change(&mut order);
        match scene::run(&order, &[]).0 {
            HelperStatus::Failed(failure) => failure.stage,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(stage(|order| order.argv = vec!["no-such-program".to_owned()]), StartStage::Exec);
    assert_eq!(stage(|order| order.argv = vec!["/etc/passwd".to_owned()]), StartStage::Exec);
    assert_eq!(stage(|order| order.argv.clear()), StartStage::Exec);
    assert_eq!(stage(|order| order.cwd = PathBuf::from("/no/such/folder")), StartStage::Directory);
}

#[test]
fn a_script_without_a_first_line_is_run_by_the_shell() {
    use std::os::unix::fs::PermissionsExt;
    let scene = Scene::new(Workspace::Bare);
    fs::write(scene.at("ws/script"), "exit 5\n").unwrap();
    fs::set_permissions(scene.at("ws/script"), fs::Permissions::from_mode(0o755)).unwrap();
    let mut order = scene.order(Way::Shell(Workspace::Bare, ""), Some(scene.confinement()));
    order.argv = vec!["./script".to_owned()];
    assert_eq!(scene::run(&order, &[]).0, HelperStatus::Exited { code: 5 });
}

#[test]
fn the_self_test_finds_the_walls_standing() {
    let report = SelfTest::run();
    assert_eq!(report.strength, Ok(Strength::Full), "{:?}", report.layers);
    super::as_normal_user("confinement::the_self_test_finds_the_walls_standing");
}

/// Inside a sandbox no namespaces can be created, as on a machine that forbids them.
#[test]
fn without_a_layer_nothing_is_started() {
    let scene = Scene::new(Workspace::Bare);
    let mut order = scene.order(Way::Call("none"), Some(scene.confinement()));
    order.argv[2] = "confinement::inside_a_sandbox".to_owned();
    order.env.insert("TMPDIR".to_owned(), scene.at("ws").display().to_string());
    let (end, said) = scene::run(&order, &[]);
    assert_eq!(end, HelperStatus::Exited { code: 0 }, "{said}");
}

/// Not a test: started inside a sandbox.
#[test]
#[ignore = "runs inside the sandbox, started by another test"]
fn inside_a_sandbox() {
    let failure = failure_of_true();
    assert_eq!(failure.stage, StartStage::Namespaces);
    assert!(failure.message.contains("cannot make namespaces"), "{failure}");
    let refusal = SelfTest::run().strength.clone().unwrap_err();
    assert!(refusal.starts_with("sandboxed commands are refused: cannot make namespaces"), "{refusal}");
}

/// As in a container that hides parts of `/proc`, where the kernel allows no new one.
#[test]
fn where_proc_is_masked_nothing_is_started() {
    let program = std::env::current_exe().unwrap();
    let script =
        "mount --bind /dev/zero /proc/meminfo && exec \"$0\" --exact confinement::behind_a_mask --ignored";
    let output = Command::new("unshare").args(["-Urm", "sh", "-c", script]).arg(program).output();
    let output = output.expect("unshare is a part of every system");
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

/// Not a test: started where `/proc` is masked.
#[test]
#[ignore = "runs where /proc is masked"]
fn behind_a_mask() {
    // Repeatedly: a failure inside must be reported every time.
    for _ in 0..20 {
        let failure = failure_of_true();
        assert_eq!(failure.stage, StartStage::Mounts);
        assert!(failure.message.starts_with("cannot mount a new /proc"), "{failure}");
    }
}

fn failure_of_true() -> StartFailure {
    let order = Order {
        argv: vec!["true".to_owned()],
        cwd: PathBuf::from("/"),
        env: BTreeMap::new(),
        confinement: Some(Confinement::read_only()),
        limits: Limits::default(),
        terminal: false,
    };
    match scene::run(&order, &[]).0 {
        HelperStatus::Failed(failure) => failure,
        other => panic!("{other:?}"),
    }
}
