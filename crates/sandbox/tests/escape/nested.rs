//! Protected names at depth that the server has found.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use oarlock_sandbox::testing::HelperStatus;
use oarlock_sandbox::{Confinement, Order, PROTECTED_NAMES, ScanLimit, protected_below};

use super::as_normal_user;
use super::attempts::{Way, Workspace};
use super::scene::{self, Scene};

fn scene() -> Scene {
    let scene = Scene::new(Workspace::Bare);
    for folder in ["ws/sub/.codex", "ws/a/b/repo/.git/hooks", "ws/a/settings", "ws/a/c"] {
        fs::create_dir_all(scene.at(folder)).unwrap();
    }
    for file in ["ws/sub/.codex/config.toml", "ws/a/b/repo/.git/config", "ws/a/settings/config.toml"] {
        fs::write(scene.at(file), "original").unwrap();
    }
    symlink("../settings", scene.at("ws/a/c/.codex")).unwrap();
    scene
}

fn order(scene: &Scene, script: &str) -> Order {
    let confinement = scene.confinement();
    let found = protected_below(&confinement.writable, &PROTECTED_NAMES, ScanLimit::default());
    let confinement = Confinement { protected_paths: found.paths, ..confinement };
    let mut order = scene.order(Way::Shell(Workspace::Bare, ""), Some(confinement));
    order.argv[2] = script.to_owned();
    order
}

#[test]
fn nested_names_are_read_only() {
    let scene = scene();
    for script in [
        "echo x > sub/.codex/config.toml",
        "echo x > sub/.codex/new",
        "rm -rf sub/.codex; test ! -e sub/.codex/config.toml",
        "mv sub/.codex sub/x",
        "mv sub s",
        "mkdir e && mv -T e sub/.codex",
        "echo x > a/b/repo/.git/hooks/pre-commit",
        "echo x >> a/b/repo/.git/config",
        "mv a/b b",
        "mv a x && mkdir -p a/b/repo/.git/hooks",
        "rm a/c/.codex",
        "ln -sfn /etc a/c/.codex",
        "echo x > a/settings/config.toml",
        "mv a/settings a/s",
        "ln a/b/repo/.git/config c && echo x > c",
    ] {
        let (end, said) = scene::run(&order(&scene, script), &[]);
        assert!(matches!(end, HelperStatus::Exited { code } if code != 0), "{script}: {end:?} {said}");
    }
    for script in [
        "cat sub/.codex/config.toml a/b/repo/.git/config a/c/.codex/config.toml",
        "echo x > sub/f && echo x > a/b/repo/f && mkdir a/c/d && mv sub/f a/c/d/f && rm -r a/c/d",
    ] {
        let (end, said) = scene::run(&order(&scene, script), &[]);
        assert_eq!(end, HelperStatus::Exited { code: 0 }, "{script}: {said}");
    }
    as_normal_user("nested::nested_names_are_read_only");
}

#[test]
fn what_was_found_may_be_gone_or_a_link_by_now() {
    let scene = scene();
    let mut order = order(&scene, "test ! -e gone/.git && ! echo x > sub/.codex/config.toml && echo x > f");
    let confinement = order.confinement.as_mut().unwrap();
    symlink(scene.at("outside"), scene.at("ws/l")).unwrap();
    fs::create_dir(scene.at("outside/folder/.git")).unwrap();
    let more = ["ws/gone/.git", "ws/l/folder/.git", "ws/a/c/.git", "outside/folder/.git", "ws"];
    confinement.protected_paths.extend(more.map(|path| scene.at(path)));
    confinement.protected_paths.push(PathBuf::from("relative/.git"));
    assert_eq!(scene::run(&order, &[]).0, HelperStatus::Exited { code: 0 });
    as_normal_user("nested::what_was_found_may_be_gone_or_a_link_by_now");
}

/// Whatever is swapped meanwhile, commands start, and nothing outside becomes writable. Only a process outside the
/// sandbox can swap like this: inside, parent folders of protected paths cannot be renamed.
#[test]
fn what_was_found_may_be_swapped_at_any_moment() {
    let scene = scene();
    let script = "echo x > sub/.codex/file; echo x > sub/file; true";
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (sub, away) = (scene.at("ws/sub"), scene.at("ws/away"));
            while !done.load(Ordering::Relaxed) {
                fs::rename(&sub, &away).unwrap();
                symlink(scene.at("outside"), &sub).unwrap();
                std::thread::yield_now();
                fs::remove_file(&sub).unwrap();
                fs::rename(&away, &sub).unwrap();
            }
        });
        for _ in 0..60 {
            let (end, said) = scene::run(&order(&scene, script), &[]);
            assert_eq!(end, HelperStatus::Exited { code: 0 }, "{said}");
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(fs::read_to_string(scene.at("outside/file")).unwrap(), "original");
    as_normal_user("nested::what_was_found_may_be_swapped_at_any_moment");
}

#[test]
fn a_root_that_was_turned_after_the_decision_is_refused() {
    let scene = Scene::new(Workspace::Bare);
    fs::create_dir_all(scene.at("ws/sub")).unwrap();
    let root = scene.at("ws/sub");
    let mut order = scene.order(Way::Shell(Workspace::Bare, "echo x > file"), None);
    order.cwd = root.clone();
    order.confinement = Some(Confinement {
        writable: vec![root.clone()],
        resolved: vec![(root.clone(), root.clone())],
        ..scene.confinement()
    });
    assert_eq!(scene::run(&order, &[]).0, HelperStatus::Exited { code: 0 });
    fs::rename(&root, scene.at("ws/other")).unwrap();
    symlink(scene.at("outside"), &root).unwrap();
    match scene::run(&order, &[]).0 {
        HelperStatus::Failed(failure) => assert!(failure.message.contains("leads to"), "{failure}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(fs::read_to_string(scene.at("outside/file")).unwrap(), "original");
    as_normal_user("nested::a_root_that_was_turned_after_the_decision_is_refused");
}
