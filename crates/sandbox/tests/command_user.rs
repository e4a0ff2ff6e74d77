//! Commands under another user than the process that starts them. Each test runs in its own process, because that user
//! is chosen once per process. No effect if the current user is not root.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use oarlock_sandbox::{
    Io, Limits, Order, Process, as_command_user, has_command_user, separate_commands, try_separation,
};

const OTHER: u32 = 60_900;
/// For the test that checks all processes of a user.
const WATCHED: u32 = 60_901;

/// A workspace of another user, and a home that only root can enter.
struct Scene(tempfile::TempDir);

impl Scene {
    fn new(owner: u32) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            return None;
        }
        let folder = tempfile::Builder::new().prefix("oarlock-user").tempdir_in("/var/tmp").unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let scene = Self(folder);
        for (name, mode) in [("workspace", 0o755), ("home", 0o700)] {
            fs::create_dir(scene.at(name)).unwrap();
            fs::set_permissions(scene.at(name), fs::Permissions::from_mode(mode)).unwrap();
        }
        chown(scene.at("workspace"), Some(owner), Some(owner)).unwrap();
        fs::write(scene.at("home/config.toml"), "closed").unwrap();
        Some(scene)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

/// Runs one test of this file in its own process.
fn alone(test: &str, folder: &Path) {
    let program = std::env::current_exe().unwrap();
    let mut command = Command::new(program);
    command.args(["--exact", test, "--ignored", "--nocapture", "--test-threads=1"]).env("FOLDER", folder);
    assert!(command.status().unwrap().success(), "{test}");
}

fn folder() -> PathBuf {
    PathBuf::from(std::env::var_os("FOLDER").expect("run by another test of this file"))
}

#[test]
fn what_holds_is_found_out_by_trying() {
    let Some(scene) = Scene::new(OTHER) else { return };
    let report = try_separation(&scene.at("workspace"), &scene.at("home"));
    assert_eq!(report.user, Ok(OTHER), "{:?}", report.attempts);
    assert!(report.attempts.len() >= 12 && report.attempts.iter().all(|attempt| attempt.ok), "{report:?}");
    assert_eq!(fs::read_dir(scene.at("workspace")).unwrap().count(), 0, "nothing is left");
    assert!(!has_command_user(), "trying changes nothing");

    fs::set_permissions(scene.at("home"), fs::Permissions::from_mode(0o777)).unwrap();
    let open = try_separation(&scene.at("workspace"), &scene.at("home")).user.unwrap_err();
    assert!(open.contains("can get at it: home"), "{open}");
    fs::set_permissions(scene.at("home"), fs::Permissions::from_mode(0o700)).unwrap();

    fs::set_permissions(scene.0.path(), fs::Permissions::from_mode(0o700)).unwrap();
    let closed = try_separation(&scene.at("workspace"), &scene.at("home")).user.unwrap_err();
    assert!(closed.contains("cannot enter"), "a workspace that the user cannot reach: {closed}");
    fs::set_permissions(scene.0.path(), fs::Permissions::from_mode(0o755)).unwrap();

    chown(scene.at("workspace"), Some(0), None).unwrap();
    let roots = try_separation(&scene.at("workspace"), &scene.at("home")).user.unwrap_err();
    assert!(roots.contains("belongs to root"), "{roots}");
}

#[test]
fn commands_are_another_user_in_everything() {
    let Some(scene) = Scene::new(WATCHED) else { return };
    alone("commands_alone", scene.0.path());
}

#[test]
fn files_are_made_with_the_rights_of_commands() {
    let Some(scene) = Scene::new(OTHER) else { return };
    alone("files_alone", scene.0.path());
    assert_eq!(fs::read_to_string(scene.at("home/config.toml")).unwrap(), "closed");
}

#[tokio::test]
#[ignore = "run by another test, in a process of its own"]
async fn commands_alone() {
    let folder = folder();
    let report = separate_commands(&folder.join("workspace"), &folder.join("home"));
    assert_eq!((report.user, has_command_user()), (Ok(WATCHED), true));
    let script = r#"
        [ "$(id -u) $(id -g) $(id -G)" = "60901 60901 60901" ] || exit 11
        grep -q '^NoNewPrivs:.*1$' /proc/self/status || exit 12
        grep '^Cap' /proc/self/status | grep -v CapBnd | grep -vq '0000000000000000$' && exit 13
        [ "$HOME" = /tmp ] || exit 14
        echo x > /dev/stdout && echo x > /dev/stderr || exit 15
        for other in /proc/[0-9]*; do
          [ -O "$other" ] && continue
          kill -9 ${other#/proc/} 2>/dev/null && exit 16
          for fd in 0 1 2; do (echo forged > $other/fd/$fd) 2>/dev/null && exit 17; done
          cat $other/environ > /dev/null 2>&1 && exit 18
          cat $other/mem > /dev/null 2>&1 && exit 19
        done
        cat ../home/config.toml 2>/dev/null && exit 20
        echo mine > file || exit 21
        sleep 600 & setsid sleep 600 &
        exit 0
    "#;
    let order = |script: &str| Order {
        argv: ["sh", "-c", script].map(str::to_owned).to_vec(),
        cwd: folder.join("workspace"),
        env: [("PATH", "/usr/bin:/bin"), ("HOME", "/root")].map(|(n, v)| (n.to_owned(), v.to_owned())).into(),
        confinement: None,
        limits: Limits::default(),
        terminal: false,
    };
    let (process, mut output) = Process::spawn(order(script), Io::Pipe).await.unwrap();
    let mut said = String::new();
    while let Some(chunk) = output.next().await {
        said.push_str(&String::from_utf8_lossy(&chunk.bytes));
    }
    assert_eq!(process.wait().await.code, 0, "{said}");
    assert_eq!(fs::metadata(folder.join("workspace/file")).unwrap().uid(), WATCHED);
    assert!(!has_processes(WATCHED), "what a command left in the background is ended");

    let (process, _output) =
        Process::spawn(order("trap '' TERM; sleep 600 & sleep 600"), Io::Null).await.unwrap();
    process.kill();
    process.wait().await;
    assert!(!has_processes(WATCHED), "a killed command leaves nothing");
}

#[test]
#[ignore = "run by another test, in a process of its own"]
fn files_alone() {
    let folder = folder();
    let (workspace, home) = (folder.join("workspace"), folder.join("home"));
    assert_eq!(separate_commands(&workspace, &home).user, Ok(OTHER));
    symlink(home.join("config.toml"), workspace.join("link")).unwrap();
    as_command_user(|| {
        fs::write(workspace.join("made"), "x").unwrap();
        assert!(fs::write(workspace.join("link"), "forged").is_err(), "through a link into the home");
        assert!(fs::read(home.join("config.toml")).is_err());
        assert!(fs::write("/etc/oarlock-was-here", "x").is_err());
    })
    .unwrap();
    assert_eq!(fs::metadata(workspace.join("made")).unwrap().uid(), OTHER);
    assert!(fs::read(home.join("config.toml")).is_ok(), "the thread has its rights back");
    let panicked = std::panic::catch_unwind(|| as_command_user(|| panic!("on purpose")));
    assert!(panicked.is_err());
    fs::write(home.join("again"), "x").expect("also after a panic");
    assert_eq!(fs::metadata(home.join("again")).unwrap().uid(), 0);
}

fn has_processes(user: u32) -> bool {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let runs = |entry: &fs::DirEntry| {
        let state = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        !state.rsplit(')').next().unwrap_or_default().trim_start().starts_with('Z')
    };
    let mut own = entries.filter(|entry| {
        entry.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit)
            && entry.metadata().is_ok_and(|found| found.uid() == user)
    });
    own.any(|entry| runs(&entry))
}
