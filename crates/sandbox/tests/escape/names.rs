//! Protected names that do not exist: reserved while a command runs, without a trace afterwards.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use oarlock_sandbox::PROTECTED_NAMES;
use oarlock_sandbox::testing::HelperStatus;

use super::attempts::{Way, Workspace};
use super::scene::{self, Scene, go_on};

const TRY_ALL: &str = "for n in .agents .codex .git .oarlock; do mkdir $n/x && exit 0; done; exit 1";

fn left(scene: &Scene) -> Vec<&'static str> {
    PROTECTED_NAMES.into_iter().filter(|name| scene.at("ws").join(name).symlink_metadata().is_ok()).collect()
}

/// A command that reports its start, and then waits for the end of its input.
fn waiting(scene: &Scene, then: &str) -> oarlock_sandbox::testing::LaunchedHelper {
    let mut order = scene.order(Way::Shell(Workspace::Bare, ""), Some(scene.confinement()));
    order.argv[2] = format!("echo ready; read line; {then}");
    scene::waiting(&order)
}

#[test]
fn a_command_that_ends_first_does_not_open_the_name_for_another() {
    let scene = Scene::new(Workspace::Bare);
    let mut long = waiting(&scene, TRY_ALL);
    for _ in 0..5 {
        let mut short = waiting(&scene, TRY_ALL);
        assert_eq!(go_on(&mut short), Some(HelperStatus::Exited { code: 1 }));
        assert_eq!(left(&scene), PROTECTED_NAMES);
    }
    assert_eq!(go_on(&mut long), Some(HelperStatus::Exited { code: 1 }));
    assert_eq!(left(&scene), Vec::<&str>::new());
}

#[test]
fn many_at_once_hold_and_leave_nothing() {
    let scene = Scene::new(Workspace::Bare);
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                for _ in 0..8 {
                    let order = scene.order(Way::Shell(Workspace::Bare, TRY_ALL), Some(scene.confinement()));
                    assert_eq!(scene::run(&order, &[]).0, HelperStatus::Exited { code: 1 });
                }
            });
        }
    });
    assert_eq!(left(&scene), Vec::<&str>::new());
}

#[test]
fn what_a_killed_helper_left_is_taken_away_by_the_next() {
    let scene = Scene::new(Workspace::Bare);
    let mut killed = waiting(&scene, "true");
    killed.child.kill().unwrap();
    killed.child.wait().unwrap();
    assert_eq!(left(&scene), PROTECTED_NAMES);
    let order = scene.order(Way::Shell(Workspace::Bare, TRY_ALL), Some(scene.confinement()));
    assert_eq!(scene::run(&order, &[]).0, HelperStatus::Exited { code: 1 });
    assert_eq!(left(&scene), Vec::<&str>::new());
}

#[test]
fn what_the_user_puts_there_meanwhile_stays() {
    let scene = Scene::new(Workspace::Bare);
    let mut helper = waiting(&scene, "cat .codex/config.toml && ! echo x > .codex/config.toml");
    let folder = scene.at("ws/.codex");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("config.toml"), "mine").unwrap();
    assert_eq!(go_on(&mut helper), Some(HelperStatus::Exited { code: 0 }));
    assert_eq!(left(&scene), [".codex"]);
    assert_eq!(fs::read_to_string(folder.join("config.toml")).unwrap(), "mine");
    assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o7777, 0o755);
}

#[test]
fn an_empty_folder_of_the_users_is_not_a_stand_in() {
    let scene = Scene::new(Workspace::Bare);
    fs::create_dir(scene.at("ws/.codex")).unwrap();
    fs::set_permissions(scene.at("ws/.codex"), fs::Permissions::from_mode(0o755)).unwrap();
    let order = scene.order(Way::Shell(Workspace::Bare, TRY_ALL), Some(scene.confinement()));
    assert_eq!(scene::run(&order, &[]).0, HelperStatus::Exited { code: 1 });
    assert_eq!(left(&scene), [".codex"]);
}

#[test]
fn a_start_that_fails_leaves_nothing_either() {
    let scene = Scene::new(Workspace::Bare);
    let mut order = scene.order(Way::Shell(Workspace::Bare, "true"), Some(scene.confinement()));
    order.argv = vec!["no-such-program".to_owned()];
    assert!(matches!(scene::run(&order, &[]).0, HelperStatus::Failed(_)));
    assert_eq!(left(&scene), Vec::<&str>::new());
}
