//! Commands that cannot be started, and their errors.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use oarlock_sandbox::{Io, Order, Process, SpawnError};

use crate::support::{both, confined, order};

async fn refused(order: Order) -> SpawnError {
    Process::spawn(order, Io::Null).await.expect_err("it cannot start")
}

fn file(folder: &Path, content: &str, mode: u32) -> String {
    let path = folder.join("program");
    std::fs::write(&path, content).expect("it can be written");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).expect("it is ours");
    path.to_str().expect("it is text").to_owned()
}

#[tokio::test]
async fn a_program_that_is_not_there() {
    for name in ["no-such-program-here", "/no/such/program"] {
        for order in both(order(&[name])) {
            let error = refused(order).await;
            assert!(matches!(&error, SpawnError::NotFound { program } if program == name), "{error:?}");
            assert!(error.to_string().contains(name), "{error}");
        }
    }
}

#[tokio::test]
async fn a_file_that_may_not_be_run() {
    let folder = tempfile::tempdir().expect("a directory");
    let program = file(folder.path(), "#!/bin/sh\n", 0o644);
    for order in both(order(&[&program])) {
        let error = refused(order).await;
        assert!(matches!(error, SpawnError::Denied { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn a_script_whose_interpreter_is_missing() {
    let folder = tempfile::tempdir().expect("a directory");
    let program = file(folder.path(), "#!/no/such/interpreter\n", 0o755);
    let error = refused(order(&[&program])).await;
    assert!(matches!(error, SpawnError::NotFound { .. }), "{error:?}");
}

#[tokio::test]
async fn arguments_that_are_too_long() {
    let long = "x".repeat(3 * 1024 * 1024);
    let error = refused(order(&["true", &long])).await;
    assert!(matches!(error, SpawnError::NotRunnable { .. }), "{error:?}");
}

#[tokio::test]
async fn a_directory_that_cannot_be_used() {
    let long = format!("/{}", "x/".repeat(2500));
    for path in ["/no/such/directory", "/etc/passwd", &long] {
        for order in both(order(&["true"])) {
            let cwd = PathBuf::from(path);
            let error = refused(Order { cwd: cwd.clone(), ..order }).await;
            assert!(matches!(&error, SpawnError::BadDirectory { path, .. } if *path == cwd), "{error:?}");
        }
    }
}

#[tokio::test]
async fn what_no_program_can_be_given() {
    let good = || order(&["true"]);
    let with_env = |name: &str, value: &str| {
        let mut order = good();
        order.env.insert(name.to_owned(), value.to_owned());
        order
    };
    let cases = [
        (order(&[]), "argv"),
        (order(&[""]), "argv"),
        (order(&["echo", "a\0b"]), "argv"),
        (Order { cwd: PathBuf::from("/tmp/\0"), ..good() }, "cwd"),
        (Order { cwd: PathBuf::from("relative"), ..good() }, "cwd"),
        (with_env("A", "\0"), "env"),
        (with_env("A\0", ""), "env"),
        (with_env("A=B", ""), "env"),
        (with_env("", ""), "env"),
    ];
    for (order, name) in cases {
        let error = refused(order).await;
        assert!(matches!(error, SpawnError::Invalid { field, .. } if field == name), "{error:?}");
    }
}

#[tokio::test]
async fn walls_that_cannot_be_put_up_stop_the_command() {
    let folder = tempfile::tempdir().expect("a directory");
    let trace = folder.path().join("ran");
    let mut order = confined(order(&["touch", trace.to_str().expect("it is text")]));
    let confinement = order.confinement.as_mut().expect("it has confinement");
    confinement.writable = vec![folder.path().to_owned()];
    // Longer than any name, so it can be neither found nor reserved.
    confinement.protected = vec!["x".repeat(300)];
    let error = refused(order).await;
    assert!(matches!(error, SpawnError::Sandbox { .. }), "{error:?}");
    assert!(!trace.exists());
}
