//! A commit that fails at any step leaves everything as it was, with and without the newer system calls.

#![allow(clippy::expect_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::kernel::Kernel;
use crate::{Boundary, CommitError, commit, verify};

/// Everything beneath a directory: mode, inode and bytes of files, mode of directories.
fn snapshot(root: &Path) -> BTreeMap<PathBuf, (u32, u64, Option<Vec<u8>>)> {
    let mut found = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).expect("the directory is readable") {
            let path = entry.expect("the entry is readable").path();
            let about = fs::symlink_metadata(&path).expect("the entry is there");
            if about.is_dir() {
                found.insert(path.clone(), (about.mode(), about.ino(), None));
                open.push(path);
            } else {
                let bytes = fs::read(&path).expect("the file is readable");
                found.insert(path, (about.mode(), about.ino(), Some(bytes)));
            }
        }
    }
    found
}

fn workspace() -> tempfile::TempDir {
    let workspace = tempfile::tempdir().expect("a temporary directory");
    let at = |name: &str| workspace.path().join(name);
    fs::create_dir(at("sub")).expect("made");
    for (name, text, mode) in [
        ("a.txt", "one\ntwo\nthree\n", 0o644),
        ("run.sh", "#!/bin/sh\r\necho\r\n", 0o755),
        ("sub/gone.txt", "gone\n", 0o600),
        ("sub/moved.txt", "stay\ngo\n", 0o640),
        ("over.txt", "over\n", 0o604),
    ] {
        fs::write(at(name), text).expect("written");
        fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).expect("set");
    }
    workspace
}

const PATCH: &str = "*** Begin Patch
*** Update File: a.txt
@@
-two
+2
*** Add File: deep/er/new.txt
+new
*** Update File: run.sh
@@
-echo
+echo hi
*** Delete File: sub/gone.txt
*** Update File: sub/moved.txt
*** Move to: deep/moved.txt
@@
-go
+went
*** Add File: over.txt
+overwritten
*** End Patch";

fn check_every_step(kernel: impl Fn() -> Kernel) -> usize {
    let mut step = 1;
    loop {
        let workspace = workspace();
        let before = snapshot(workspace.path());
        let plan = verify(PATCH, workspace.path()).expect("the patch fits");
        let kernel = kernel().failing_after(step);
        let result = commit::run(&plan, &Boundary::roots(vec![workspace.path().to_owned()]), &kernel);
        let Err(error) = result else {
            assert_ne!(snapshot(workspace.path()), before, "without a failure the patch is applied");
            return step;
        };
        assert!(matches!(error, CommitError::Io { .. }), "step {step}: {error}");
        assert_eq!(snapshot(workspace.path()), before, "step {step} of the commit");
        step += 1;
    }
}

#[test]
fn a_failure_at_any_step_restores_every_byte_mode_and_name() {
    let steps = check_every_step(Kernel::default);
    assert!(steps > 30, "only {steps} steps could fail");
}

#[test]
fn so_it_does_on_a_kernel_without_the_newer_calls() {
    let steps = check_every_step(Kernel::old);
    assert!(steps > 30, "only {steps} steps could fail");
}

#[test]
fn an_old_kernel_leaves_the_same_files() {
    let (new, old) = (workspace(), workspace());
    for (workspace, kernel) in [(&new, Kernel::default()), (&old, Kernel::old())] {
        let plan = verify(PATCH, workspace.path()).expect("the patch fits");
        let boundary = Boundary::roots(vec![workspace.path().to_owned()]);
        commit::run(&plan, &boundary, &kernel).expect("the commit succeeds");
    }
    let strip = |workspace: &tempfile::TempDir| -> Vec<_> {
        snapshot(workspace.path())
            .into_iter()
            .map(|(path, (mode, _, bytes))| {
                (path.strip_prefix(workspace.path()).map(Path::to_owned), mode, bytes)
            })
            .collect()
    };
    assert_eq!(strip(&new), strip(&old));
}

#[test]
fn an_old_kernel_refuses_links_too() {
    let workspace = workspace();
    let outside = tempfile::tempdir().expect("a temporary directory");
    let plan =
        verify("*** Begin Patch\n*** Add File: late/x\n+x\n*** End Patch", workspace.path()).expect("fits");
    // The link appears after the plan was made.
    std::os::unix::fs::symlink(outside.path(), workspace.path().join("late")).expect("linked");
    for kernel in [Kernel::default(), Kernel::old()] {
        let result = commit::run(&plan, &Boundary::roots(vec![workspace.path().to_owned()]), &kernel);
        assert!(matches!(result, Err(CommitError::Symlink(_))), "{result:?}");
    }
    assert_eq!(fs::read_dir(outside.path()).expect("readable").count(), 0);
}

#[test]
fn what_somebody_else_wrote_meanwhile_survives_the_undo() {
    let workspace = workspace();
    let plan = verify(PATCH, workspace.path()).expect("the patch fits");
    fs::write(workspace.path().join("sub/gone.txt"), "not gone\n").expect("written");
    let before = snapshot(workspace.path());
    let result = plan.commit(&Boundary::Anywhere);
    assert!(matches!(result, Err(CommitError::Changed(_))), "{result:?}");
    assert_eq!(snapshot(workspace.path()), before);
}

#[test]
fn a_failing_write_of_many_files_leaves_no_temporary_file() {
    let workspace = workspace();
    let text: String = (0..50).map(|n| format!("*** Add File: many/{n}/file\n+{n}\n")).collect();
    let plan = verify(&format!("*** Begin Patch\n{text}*** End Patch"), workspace.path()).expect("fits");
    let before = snapshot(workspace.path());
    let kernel = Kernel::default().failing_after(280);
    let result = commit::run(&plan, &Boundary::roots(vec![workspace.path().to_owned()]), &kernel);
    assert!(result.is_err() && !kernel.failed(), "the kernel is calm again: {result:?}");
    assert_eq!(snapshot(workspace.path()), before);
}

mod generated {
    use proptest::prelude::*;

    use super::*;

    fn hunk() -> impl Strategy<Value = String> {
        let path = prop_oneof![
            Just("a.txt"),
            Just("run.sh"),
            Just("sub/gone.txt"),
            Just("sub/moved.txt"),
            Just("over.txt"),
            Just("sub/new"),
            Just("x/y/z"),
            Just("x/w"),
        ];
        (path.clone(), path, 0_u8..4, "[a-z]{0,4}").prop_map(|(path, other, kind, word)| match kind {
            0 => format!("*** Add File: {path}\n+{word}\n"),
            1 => format!("*** Delete File: {path}\n"),
            2 => format!("*** Update File: {path}\n@@\n+{word}\n"),
            _ => format!("*** Update File: {path}\n*** Move to: {other}\n@@\n+{word}\n"),
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_failing_commit_restores_everything(
            hunks in prop::collection::vec(hunk(), 1..8), step in 1_usize..60, old in any::<bool>(),
        ) {
            let workspace = workspace();
            let before = snapshot(workspace.path());
            let text = format!("*** Begin Patch\n{}*** End Patch", hunks.concat());
            let Ok(plan) = verify(&text, workspace.path()) else {
                prop_assert_eq!(snapshot(workspace.path()), before);
                return Ok(());
            };
            let kernel = if old { Kernel::old() } else { Kernel::default() };
            let boundary = Boundary::roots(vec![workspace.path().to_owned()]);
            let result = commit::run(&plan, &boundary, &kernel.failing_after(step));
            let after = snapshot(workspace.path());
            match result {
                Err(_) => prop_assert_eq!(after, before),
                Ok(applied) => {
                    for file in &applied.files {
                        let there = fs::read(&file.path).ok();
                        prop_assert_eq!(there.as_deref(), file.after.as_ref().map(|state| &*state.bytes));
                    }
                    let temporary = |path: &Path| path.to_string_lossy().contains(".patch-");
                    prop_assert!(!after.keys().any(|path| temporary(path)));
                }
            }
        }
    }
}
