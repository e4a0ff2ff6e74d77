//! If the server runs as root, commands cannot read what only root may read, but can use the user's own files.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;
use std::process::Command;

use oarlock_sandbox::testing::HelperStatus;
use oarlock_sandbox::{Confinement, ReadAccess};

use super::attempts::{Way, Workspace};
use super::scene::{self, Scene};

/// Files of root in a folder that everyone can enter, like `/etc`.
struct System(tempfile::TempDir);

impl System {
    fn make() -> Self {
        let folder = tempfile::Builder::new().prefix("oarlock-system").tempdir_in("/var/tmp").unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        for (name, mode) in [("closed", 0o600), ("group", 0o640), ("open", 0o644)] {
            fs::write(folder.path().join(name), "x").unwrap();
            fs::set_permissions(folder.path().join(name), fs::Permissions::from_mode(mode)).unwrap();
        }
        Self(folder)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

fn run(scene: &Scene, system: &System, confinement: Confinement, script: &str) -> (HelperStatus, String) {
    let mut order = scene.order(Way::Shell(Workspace::Bare, ""), Some(confinement));
    order.argv[2] = script.to_owned();
    order.env.insert("SYSTEM".to_owned(), system.path().display().to_string());
    scene::run(&order, &[])
}

#[test]
fn what_only_root_may_read_is_closed() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let (scene, system) = (Scene::new(Workspace::Repository), System::make());
    for confinement in [scene.confinement(), Confinement::read_only()] {
        for script in [
            "! cat /etc/shadow && ! cat /etc/gshadow && ! cat /etc/shadow-",
            "! cat $SYSTEM/closed && ! cat $SYSTEM/group && cat $SYSTEM/open",
            "for key in /etc/ssh/ssh_host_*_key; do cat $key && exit 1; done; true",
            "test $(id -u) = 1000 && test $(stat -c %u .) = 1000 && test $(stat -c %u .git/config) = 1000",
            "echo x > /dev/stdout && echo x > /dev/stderr && echo x > /dev/null",
        ] {
            let (end, said) = run(&scene, &system, confinement.clone(), script);
            assert_eq!(end, HelperStatus::Exited { code: 0 }, "{script}: {said}");
        }
    }
}

#[test]
fn what_is_the_users_own_is_as_before() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let (scene, system) = (Scene::new(Workspace::Bare), System::make());
    fs::create_dir_all(scene.at("home/.tool/bin")).unwrap();
    fs::write(scene.at("home/.tool/bin/tool"), "#!/bin/sh\nexit 0\n").unwrap();
    fs::set_permissions(scene.at("home/.tool/bin/tool"), fs::Permissions::from_mode(0o700)).unwrap();
    for folder in ["home", "ws", "ws/folder", "outside"] {
        fs::set_permissions(scene.at(folder), fs::Permissions::from_mode(0o700)).unwrap();
    }
    fs::write(scene.at("ws/theirs"), "x").unwrap();
    chown(scene.at("ws/theirs"), Some(1234), Some(1234)).unwrap();
    let home = Some(scene.at("home"));
    let all = Confinement { home: home.clone(), ..scene.confinement() };
    let paths = vec![scene.at("ws"), scene.at("home"), scene.at("outside"), scene.at("outside/folder")];
    let listed = Confinement { home, read: ReadAccess::Only(paths), ..scene.confinement() };
    let elsewhere = "! cat $OUT/file";
    let readable = "test $(stat -c %u $OUT/file) = 1000 && cat $OUT/file && ls $OUT/folder";
    for (confinement, outside) in [(all, elsewhere), (listed, readable)] {
        for script in [
            outside,
            "$WS/../home/.tool/bin/tool && ! echo x > $WS/../home/.tool/new",
            "echo x > made && mkdir -p d/e && chmod 600 made && cat made && mv made d/e/made",
            "echo x > folder/nested/made && test $(stat -c %u folder/nested/made) = 1000",
            "cat theirs && ! echo x > theirs",
            "git init -q --bare d/repo && git --git-dir=d/repo --work-tree=d -c user.name=a -c user.email=b \
             commit -q --allow-empty -m x",
        ] {
            let (end, said) = run(&scene, &system, confinement.clone(), script);
            assert_eq!(end, HelperStatus::Exited { code: 0 }, "{script}: {said}");
        }
        for made in ["ws/d/e/made", "ws/folder/nested/made", "ws/d/repo/HEAD"] {
            let found = fs::metadata(scene.at(made)).unwrap();
            assert_eq!((found.uid(), found.gid()), (0, 0), "{made}");
        }
        fs::remove_dir_all(scene.at("ws/d")).unwrap();
        fs::remove_file(scene.at("ws/folder/nested/made")).unwrap();
    }
}

/// The repository's folder is outside the roots, and git checks its owner.
#[test]
fn a_linked_working_tree_can_be_used() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let (scene, system) = (Scene::new(Workspace::Bare), System::make());
    let main = system.path().join("main");
    let git = |folder: &Path, words: &[&str]| {
        let output = Command::new("git").current_dir(folder).args(words).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    git(system.path(), &["init", "-q", "main"]);
    git(&main, &["-c", "user.name=a", "-c", "user.email=b", "commit", "-q", "--allow-empty", "-m", "x"]);
    fs::remove_dir_all(scene.at("ws/folder")).unwrap();
    let tree = system.path().join("tree");
    git(&main, &["worktree", "add", "-q", tree.to_str().unwrap()]);
    let confinement = Confinement { writable: vec![tree.clone()], ..scene.confinement() };
    let mut order = scene.order(Way::Shell(Workspace::Bare, "git status && git log"), Some(confinement));
    order.cwd = tree;
    let (end, said) = scene::run(&order, &[]);
    assert_eq!(end, HelperStatus::Exited { code: 0 }, "{said}");
}
