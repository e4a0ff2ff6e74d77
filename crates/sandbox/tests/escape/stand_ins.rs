//! The helper itself acts in folders where others can swap files at any moment. That must change nothing outside, and
//! must not block the helper.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use oarlock_sandbox::testing::HelperStatus;
use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::attempts::{Way, Workspace};
use super::scene::{self, Scene};
use super::{NOBODY, as_normal_user};

const STARTS: usize = 60;

/// Starts commands one after another, while `swap` is called repeatedly.
fn while_swapping(scene: &Scene, swap: impl Fn() + Sync) {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    swap();
                }
            });
        }
        for _ in 0..STARTS {
            let order = scene.order(Way::Shell(Workspace::Bare, "true"), Some(scene.confinement()));
            // Whether it starts does not matter here.
            let _ = scene::run(&order, &[]);
        }
        done.store(true, Ordering::Relaxed);
    });
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

#[test]
fn a_link_in_place_of_a_stand_in_changes_nothing_outside() {
    let scene = Scene::new(Workspace::Bare);
    fs::set_permissions(scene.at("outside/file"), fs::Permissions::from_mode(0o600)).unwrap();
    fs::set_permissions(scene.at("outside/folder"), fs::Permissions::from_mode(0o700)).unwrap();
    // A file in such a folder gets another mode than requested, which a helper must not try to fix.
    fs::set_permissions(scene.at("ws"), fs::Permissions::from_mode(0o2755)).unwrap();
    for target in ["outside/file", "outside/folder"] {
        let (name, link) = (scene.at("ws/.codex"), scene.at("ws/link"));
        let _ = fs::remove_file(&link);
        symlink(scene.at(target), &link).unwrap();
        let exchange = || renameat_with(CWD, &link, CWD, &name, RenameFlags::EXCHANGE).is_ok();
        while_swapping(&scene, || {
            if exchange() {
                std::thread::yield_now();
                exchange();
                let _ = fs::remove_dir(&name);
            }
        });
        // Whichever of the two has the name now.
        let _ = fs::remove_dir(&name).or_else(|_| fs::remove_file(&name));
        let _ = fs::remove_dir(&link);
    }
    assert_eq!((mode(&scene.at("outside/file")), mode(&scene.at("outside/folder"))), (0o600, 0o700));
    as_normal_user("stand_ins::a_link_in_place_of_a_stand_in_changes_nothing_outside");
}

#[test]
fn a_link_on_the_way_to_a_root_lets_nothing_be_made_or_removed_outside() {
    let scene = Scene::new(Workspace::Bare);
    fs::create_dir_all(scene.at("outside/folder/nested")).unwrap();
    let empty = scene.at("outside/folder/nested/.agents");
    fs::create_dir(&empty).unwrap();
    fs::set_permissions(&empty, fs::Permissions::from_mode(0o1755)).unwrap();
    let (folder, away) = (scene.at("ws/folder"), scene.at("ws/away"));
    let seen = AtomicBool::new(false);
    while_swapping(&scene, || {
        if fs::rename(&folder, &away).is_ok() {
            let _ = symlink(scene.at("outside/folder"), &folder);
            std::thread::yield_now();
            let _ = fs::remove_file(&folder);
            let _ = fs::rename(&away, &folder);
        }
        let names = fs::read_dir(scene.at("outside/folder/nested")).unwrap().count();
        seen.fetch_or(names != 1, Ordering::Relaxed);
    });
    assert!(!seen.load(Ordering::Relaxed), "something was made outside, or removed");
    assert!(empty.is_dir());
    as_normal_user("stand_ins::a_link_on_the_way_to_a_root_lets_nothing_be_made_or_removed_outside");
}

/// A file that looks like a placeholder, locked by another process for ever.
fn hostile(scene: &Scene, owner: Option<u32>) -> File {
    let path = scene.at("ws/.git");
    fs::create_dir(&path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o1755)).unwrap();
    std::os::unix::fs::chown(&path, owner, owner).unwrap();
    let folder = File::open(&path).unwrap();
    folder.lock().unwrap();
    folder
}

#[test]
fn a_locked_stand_in_stalls_nobody() {
    let mut owners = vec![None];
    owners.extend(rustix::process::geteuid().is_root().then_some(Some(NOBODY)));
    for owner in owners {
        let scene = Scene::new(Workspace::Bare);
        let _locked = hostile(&scene, owner);
        let began = Instant::now();
        let order = scene.order(Way::Shell(Workspace::Bare, "! mkdir .git/hooks"), Some(scene.confinement()));
        assert_eq!(scene::run(&order, &[]).0, HelperStatus::Exited { code: 0 }, "{owner:?}");
        assert!(began.elapsed() < super::PATIENCE, "{:?}", began.elapsed());
        // It is not ours to remove.
        assert!(scene.at("ws/.git").is_dir());
    }
    as_normal_user("stand_ins::a_locked_stand_in_stalls_nobody");
}

#[test]
fn what_belongs_to_somebody_else_is_not_locked() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let scene = Scene::new(Workspace::Bare);
    let theirs = hostile(&scene, Some(NOBODY));
    theirs.unlock().unwrap();
    let mut order = scene.order(Way::Shell(Workspace::Bare, ""), Some(scene.confinement()));
    order.argv[2] = "echo ready; read line".to_owned();
    let mut helper = scene::waiting(&order);
    theirs.try_lock().expect("nobody else has a lock");
    assert_eq!(scene::go_on(&mut helper), Some(HelperStatus::Exited { code: 0 }));
    assert!(scene.at("ws/.git").is_dir());
}

#[test]
fn a_start_that_waits_is_ended_when_it_is_called_off() {
    let scene = Scene::new(Workspace::Bare);
    let _locked = hostile(&scene, None);
    let order = scene.order(Way::Shell(Workspace::Bare, "true"), Some(scene.confinement()));
    let mut helper = scene::start(&order, &[], std::process::Stdio::piped());
    let began = Instant::now();
    helper.close_control();
    assert!(helper.end().is_some());
    assert!(began.elapsed() < super::PATIENCE, "{:?}", began.elapsed());
}
