//! The server's state folder is unreachable wherever it is.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

use oarlock_sandbox::testing::{HelperStatus, SandboxLayer, StartStage};
use oarlock_sandbox::{Confinement, Order};

use super::as_normal_user;
use super::attempts::{Way, Workspace};
use super::scene::{self, Scene};

/// A workspace with a state folder in it.
fn scene() -> Scene {
    let scene = Scene::new(Workspace::Bare);
    make_state(&scene.at("ws/home/.state"));
    scene
}

fn make_state(folder: &Path) {
    for part in ["rules", "skills/one", "outputs/this", "outputs/other"] {
        fs::create_dir_all(folder.join(part)).unwrap();
    }
    for file in ["key", "rules/default.rules", "skills/one/SKILL.md", "outputs/this/1", "outputs/other/1"] {
        fs::write(folder.join(file), "original").unwrap();
    }
}

fn order(scene: &Scene, state: PathBuf, script: &str) -> Order {
    let confinement =
        Confinement { hidden: vec![state.clone()], reserved: vec![state], ..scene.confinement() };
    let mut order = scene.order(Way::Shell(Workspace::Bare, ""), Some(confinement));
    order.argv[2] = script.to_owned();
    order
}

/// The scripts that succeed, though none may.
fn succeed(scene: &Scene, state: &str, scripts: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for script in scripts {
        let (end, said) = scene::run(&order(scene, scene.at(state), script), &[]);
        match end {
            HelperStatus::Exited { code } if code != 0 => {}
            end => found.push(format!("{script}: {end:?} {said}")),
        }
    }
    found
}

fn assert_unchanged(state: &Path) {
    let text = |name: &str| fs::read_to_string(state.join(name)).unwrap();
    assert_eq!((text("key"), text("rules/default.rules")), ("original".to_owned(), "original".to_owned()));
    assert_eq!(fs::read_dir(state.join("rules")).unwrap().count(), 1);
}

#[test]
fn beneath_a_writable_root() {
    let scene = scene();
    let scripts = [
        "cat home/.state/key",
        "ls home/.state/rules",
        "ls home/.state/",
        "echo x > home/.state/rules/default.rules",
        "echo x > home/.state/new",
        "mkdir home/.state/new",
        "chmod 755 home/.state",
        "mv home/.state home/other",
        "mv home h",
        "mv home h && mkdir -p home/.state/rules",
        "rmdir home/.state",
        "rm -rf home; test ! -e home/.state",
        "ln -s home/.state l && cat l/key",
        "cd home/.state && cat key",
    ];
    assert_eq!(succeed(&scene, "ws/home/.state", &scripts), Vec::<String>::new());
    assert_unchanged(&scene.at("ws/home/.state"));
    as_normal_user("state::beneath_a_writable_root");
}

#[test]
fn around_a_writable_root_or_equal_to_it() {
    let scene = scene();
    let state = scene.at("ws/home/.state");
    for root in [state.clone(), state.join("rules"), state.join("skills")] {
        let mut order =
            order(&scene, state.clone(), "! cat $T/key && ! echo x > $T/rules/x && ! ls $T/rules");
        order.env.insert("T".to_owned(), state.display().to_string());
        let confinement = order.confinement.as_mut().unwrap();
        confinement.writable = vec![root.clone()];
        order.cwd = scene.at("outside");
        assert_eq!(scene::run(&order, &[]).0, HelperStatus::Exited { code: 0 }, "{root:?}");
        order.cwd = root;
        match scene::run(&order, &[]).0 {
            HelperStatus::Failed(failure) => {
                assert_eq!(failure.stage, StartStage::Directory);
                assert!(failure.message.contains("hidden from sandboxed commands"), "{failure}");
            }
            other => panic!("{other:?}"),
        }
    }
    assert_unchanged(&state);
    as_normal_user("state::around_a_writable_root_or_equal_to_it");
}

#[test]
fn behind_a_link() {
    let scene = Scene::new(Workspace::Bare);
    make_state(&scene.at("ws/data/state"));
    symlink("data", scene.at("ws/d")).unwrap();
    symlink(scene.at("ws/d/state"), scene.at("ws/.state")).unwrap();
    let scripts = [
        "cat .state/key",
        "cat d/state/key",
        "cat data/state/key",
        "echo x > data/state/rules/default.rules",
        "rm .state",
        "rm d && mkdir d",
        "ln -sfn e .state",
        "mv .state s",
        "mkdir e && ln -s e l && mv -fT l .state",
        "mv data d2",
        "mv data/state data/s",
    ];
    assert_eq!(succeed(&scene, "ws/.state", &scripts), Vec::<String>::new());
    assert_unchanged(&scene.at("ws/data/state"));
    as_normal_user("state::behind_a_link");
}

#[test]
fn not_there_yet() {
    let scene = Scene::new(Workspace::Bare);
    let scripts = [
        "mkdir -p deep/er/.state/rules",
        "mkdir deep",
        "rmdir deep",
        "mv deep d",
        "ln -s folder deep/er",
        "echo x > deep/x",
        "mkdir e && mv -T e deep",
    ];
    assert_eq!(succeed(&scene, "ws/deep/er/.state", &scripts), Vec::<String>::new());
    assert!(!scene.at("ws/deep").exists(), "nothing is left");
    as_normal_user("state::not_there_yet");
}

/// Our own files behind links in the state folder with missing targets.
#[test]
fn behind_a_dangling_link() {
    let attempts = [
        "echo x > later.json",
        "mkdir later.json",
        "echo x > Later.JSON",
        "ln -s a later.json",
        "ln a later.json",
        "mv a later.json",
        "cp a later.json",
        "mknod later.json p",
        "ln -s later.json l && echo x > l",
        "mkdir d && cd d && echo x > ../later.json",
        "echo x > AGENTS.later.md",
        "mkdir skills",
        "mv sub/deep skills",
        "echo x > sub/deep/later.json",
        "mv sub s && mkdir -p sub/deep && echo x > sub/deep/later.json",
        "mv sub s && echo x > s/deep/later.json",
        "rmdir sub/deep && mkdir sub/deep && echo x > sub/deep/later.json",
        "rm -r sub && mkdir -p t/deep && echo x > t/deep/later.json && mv t sub",
        "rm -r sub && mkdir -p t/deep && echo x > t/deep/later.json && ln -s t sub",
        "mkdir -p t/deep && echo x > t/deep/later.json && python3 -c 'import ctypes; \
         exit(ctypes.CDLL(None).renameat2(-100, b\"t\", -100, b\"sub\", 2) == -1)'",
    ];
    let run = |script: &str, without: &[SandboxLayer]| {
        let scene = Scene::new(Workspace::Bare);
        fs::create_dir_all(scene.at("ws/sub/deep")).unwrap();
        fs::write(scene.at("ws/a"), "a").unwrap();
        let mut order = order(&scene, scene.at("ws/later.json"), script);
        let confinement = order.confinement.as_mut().unwrap();
        for list in [&mut confinement.hidden, &mut confinement.reserved] {
            list.push(scene.at("ws/sub/deep/later.json"));
        }
        confinement.protected_paths.extend([scene.at("ws/AGENTS.later.md"), scene.at("ws/skills")]);
        let (end, said) = scene::run(&order, without);
        let names = ["ws/later.json", "ws/sub/deep/later.json", "ws/AGENTS.later.md", "ws/skills"];
        let made = names.into_iter().find(|name| fs::symlink_metadata(scene.at(name)).is_ok());
        (end, said, made)
    };
    for script in attempts {
        let (end, said, made) = run(script, &[]);
        assert!(matches!(end, HelperStatus::Exited { code } if code != 0), "{script}: {end:?} {said}");
        assert_eq!(made, None, "{script}: {said}");
    }
    // The same name is allowed elsewhere.
    let (end, said, _) = run(
        "mkdir -p t/deep && echo x > t/later.json && echo x > t/deep/later.json && mv t u && \
                              mv sub s && mkdir sub && echo x > sub/later.json && echo x > later.jsonl",
        &[],
    );
    assert_eq!(end, HelperStatus::Exited { code: 0 }, "{said}");
    let (_, said, made) = run("echo x > later.json", &[SandboxLayer::Names]);
    assert_eq!(made, Some("ws/later.json"), "without its layer: {said}");
    as_normal_user("state::behind_a_dangling_link");
}

#[test]
fn made_while_a_command_runs() {
    let scene = Scene::new(Workspace::Bare);
    for state in ["ws/.state", "ws/new/.state", "outside-new/.state"] {
        let script = "echo ready; read line; cat $T/key || echo x > $T/rules/default.rules || ls $T/rules";
        let mut order = order(&scene, scene.at(state), script);
        order.env.insert("T".to_owned(), scene.at(state).display().to_string());
        let mut helper = scene::waiting(&order);
        make_state(&scene.at(state));
        let end = scene::go_on(&mut helper);
        assert!(matches!(end, Some(HelperStatus::Exited { code }) if code != 0), "{state}: {end:?}");
        assert_unchanged(&scene.at(state));
        let held = scene.at(if state == "ws/.state" { state } else { state.trim_end_matches("/.state") });
        assert_eq!(fs::metadata(held).unwrap().mode() & 0o7777, 0o700);
    }
    as_normal_user("state::made_while_a_command_runs");
}

#[test]
fn a_file_replaced_in_a_hidden_folder_stays_hidden() {
    let scene = scene();
    let state = scene.at("ws/home/.state");
    let script = "echo ready; read line; cat home/.state/key home/.state/new";
    let mut helper = scene::waiting(&order(&scene, state.clone(), script));
    for name in ["key", "new"] {
        fs::write(state.join("temporary"), "original").unwrap();
        fs::rename(state.join("temporary"), state.join(name)).unwrap();
    }
    assert_eq!(scene::go_on(&mut helper), Some(HelperStatus::Exited { code: 1 }));
}

#[test]
fn parts_of_it_can_be_shown() {
    let scene = scene();
    let state = scene.at("ws/home/.state");
    for (script, expected) in [
        ("cat home/.state/skills/one/SKILL.md && cat home/.state/outputs/this/1", 0),
        ("test \"$(ls home/.state | tr '\\n' ' ')\" = 'outputs skills '", 0),
        ("cat home/.state/key", 1),
        ("cat home/.state/outputs/other/1", 1),
        ("cat home/.state/rules/default.rules", 1),
        ("rm -f home/.state/skills/one/SKILL.md", 1),
        ("! echo x > home/.state/skills/one/new", 0),
        ("mkdir home/.state/skills/new", 1),
        ("mkdir home/.state/rules", 1),
        ("mv home/.state/skills home/s", 1),
    ] {
        let mut order = order(&scene, state.clone(), script);
        let confinement = order.confinement.as_mut().unwrap();
        confinement.shown = vec![state.join("skills"), state.join("outputs/this"), state.join("none")];
        let (end, said) = scene::run(&order, &[]);
        assert_eq!(end, HelperStatus::Exited { code: expected }, "{script}: {said}");
    }
    assert_unchanged(&state);
    as_normal_user("state::parts_of_it_can_be_shown");
}

/// Files in a folder that is not ours are covered individually.
#[test]
fn a_hidden_file_in_a_writable_folder_can_be_neither_read_nor_replaced() {
    let scene = Scene::new(Workspace::Bare);
    let scripts =
        ["cat hidden.txt", "rm -f hidden.txt", "echo x > n && mv -f n hidden.txt", "ln hidden.txt h"];
    assert_eq!(succeed(&scene, "ws/hidden.txt", &scripts), Vec::<String>::new());
}

#[test]
fn mounted_a_second_time() {
    let program = std::env::current_exe().unwrap();
    let scene = scene();
    fs::create_dir_all(scene.at("outside/again")).unwrap();
    fs::create_dir_all(scene.at("ws/again")).unwrap();
    let script = "mount --bind $AT/ws/home $AT/outside/again && mount --bind $AT/ws/home/.state $AT/ws/again && \
                  exec \"$0\" --exact state::where_it_is_mounted_twice --ignored";
    let output = std::process::Command::new("unshare")
        .args(["-Urm", "sh", "-c", script])
        .arg(program)
        .env("AT", scene.at(""))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    as_normal_user("state::mounted_a_second_time");
}

/// Not a test: started where the state folder is mounted a second time.
#[test]
#[ignore = "runs where a folder is mounted twice"]
fn where_it_is_mounted_twice() {
    let at = PathBuf::from(std::env::var_os("AT").unwrap());
    let scene = Scene::new(Workspace::Bare);
    for script in ["cat outside/again/.state/key", "cat ws/again/key", "echo x > ws/again/rules/new"] {
        let mut order = order(&scene, at.join("ws/home/.state"), script);
        order.confinement.as_mut().unwrap().writable = vec![at.join("ws")];
        order.cwd.clone_from(&at);
        let (end, said) = scene::run(&order, &[]);
        assert!(matches!(end, HelperStatus::Exited { code } if code != 0), "{script}: {end:?} {said}");
    }
}
