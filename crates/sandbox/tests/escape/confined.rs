//! Programs that restrict themselves inside the sandbox: the supervisor's actions for them obey their own rules.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

use landlock::{
    ABI, Access, AccessFs, AccessNet, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreatedAttr,
};
use oarlock_sandbox::testing::HelperStatus;

use super::attempts::{Way, Workspace};
use super::probe;
use super::scene::{self, Scene};

#[test]
fn own_rules_hold_for_what_the_supervisor_does() {
    let scene = Scene::new(Workspace::Bare);
    let (end, said) = scene::run(&scene.order(Way::Call("confined_program"), Some(scene.confinement())), &[]);
    assert_eq!(end, HelperStatus::Exited { code: 0 }, "{said}");
    let left: Vec<_> = fs::read_dir(scene.at("ws/outer")).unwrap().flatten().map(|e| e.file_name()).collect();
    assert_eq!(left, ["by-sibling"]);
    super::as_normal_user("confined::own_rules_hold_for_what_the_supervisor_does");
}

#[test]
fn any_number_of_programs_may_confine_themselves() {
    let scene = Scene::new(Workspace::Bare);
    let (end, said) = scene::run(&scene.order(Way::Call("confined_many"), Some(scene.confinement())), &[]);
    assert_eq!(end, HelperStatus::Exited { code: 0 }, "{said}");
}

/// All ways to create a name in a folder; all must succeed, or all must fail.
fn make_names(folder: &str) -> Vec<io::Result<()>> {
    let at = |name: &str| format!("{folder}/{name}");
    let fifo = rustix::fs::FileType::Fifo;
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    vec![
        fs::create_dir(at("folder")),
        fs::write(at("file"), "text"),
        symlink("nowhere", at("link")),
        fs::hard_link("inner/source", at("hard")),
        fs::rename("inner/movable", at("moved")),
        rustix::fs::mknodat(rustix::fs::CWD, at("fifo"), fifo, mode, 0).map_err(Into::into),
        fs::OpenOptions::new().append(true).create_new(true).open(at("new")).map(drop),
    ]
}

/// Restricts this process to reading everything and writing in one folder.
fn confine(folder: &str) {
    let abi = ABI::V3;
    let rules = Ruleset::default().handle_access(AccessFs::from_all(abi)).unwrap().create().unwrap();
    let rules = rules
        .add_rule(PathBeneath::new(PathFd::new("/").unwrap(), AccessFs::from_read(abi)))
        .unwrap()
        .add_rule(PathBeneath::new(PathFd::new(folder).unwrap(), AccessFs::from_all(abi)))
        .unwrap();
    rules.restrict_self().unwrap();
}

fn assert_refused(outcomes: Vec<io::Result<()>>) {
    for (number, outcome) in outcomes.into_iter().enumerate() {
        let code = outcome.expect_err(&format!("number {number}")).raw_os_error();
        assert!(matches!(code, Some(libc::EACCES | libc::EXDEV | libc::EPERM)), "{number}: {code:?}");
    }
}

fn shell(script: &str) -> bool {
    Command::new("sh").args(["-c", script]).status().unwrap().success()
}

/// Run inside.
pub(crate) fn attempt(name: &str) -> io::Result<()> {
    match name {
        "confined_program" => program(),
        "confined_many" => many(),
        "confined_once" => once(),
        "confined_connection" => connection(),
        name => panic!("no probe is called {name}"),
    }
}

fn prepare() -> io::Result<()> {
    fs::create_dir_all("inner/deeper")?;
    fs::create_dir("outer")?;
    for name in ["inner/source", "inner/movable", "inner/mine"] {
        fs::write(name, "")?;
    }
    Ok(())
}

fn program() -> io::Result<()> {
    prepare()?;
    let mut sibling = Command::new("sh")
        .args(["-c", "read line && mkdir outer/by-sibling && echo x > outer/by-sibling/file"])
        .stdin(Stdio::piped())
        .spawn()?;
    confine("inner");
    assert_refused(make_names("outer"));
    assert!(!shell("echo x > outer/file"), "a child is bound, too");
    assert!(!shell("mkdir outer/folder"), "a child is bound, too");
    assert!(shell("echo x > inner/by-child && mkdir inner/folder-by-child && mv inner/mine inner/theirs"));
    for outcome in make_names("inner") {
        outcome?;
    }
    // Once more, at depth, and all threads one after another.
    confine("inner/deeper");
    fs::write("inner/deeper/file", "text")?;
    fs::create_dir("inner/deeper/folder")?;
    assert_refused(vec![
        fs::write("inner/late", "x"),
        fs::create_dir("inner/late"),
        fs::write("outer/late", "x"),
    ]);
    assert!(fs::write("inner/deeper/.git", "x").is_err(), "protected names stay protected");
    // Other processes are not restricted by it.
    sibling.stdin.take().unwrap().write_all(b"go\n")?;
    assert!(sibling.wait()?.success());
    Ok(())
}

/// More than the supervisor keeps at once, one after another.
fn many() -> io::Result<()> {
    prepare()?;
    for number in 0..80 {
        let program = std::env::current_exe()?;
        let status = Command::new(program)
            .args(["--exact", "probe::probe", "--ignored", "--nocapture"])
            .env(probe::VARIABLE, "confined_once")
            .env("NUMBER", number.to_string())
            .status()?;
        assert!(status.success(), "{number}");
    }
    fs::create_dir("outer/in-the-end")
}

fn once() -> io::Result<()> {
    let number = std::env::var("NUMBER").unwrap();
    confine("inner/deeper");
    assert_refused(vec![fs::create_dir("outer/folder"), fs::write("outer/file", "x")]);
    fs::create_dir(format!("inner/deeper/{number}"))?;
    fs::write(format!("inner/deeper/{number}/file"), "x")
}

/// Without any right to connect, though its sandbox has network.
fn connection() -> io::Result<()> {
    let address = ("127.0.0.1", super::sockets_probe::port("OPEN_PORT"));
    std::net::TcpStream::connect(address)?;
    let rules = Ruleset::default().handle_access(AccessNet::ConnectTcp).unwrap().create().unwrap();
    rules.restrict_self().unwrap();
    let code = std::net::TcpStream::connect(address).expect_err("it may not").raw_os_error();
    assert_eq!(code, Some(libc::EACCES));
    Ok(())
}
