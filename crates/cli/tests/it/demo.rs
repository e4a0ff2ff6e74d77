//! The first command people try.

use std::fs;
use std::path::PathBuf;
use std::process::Output;

use testkit::RunInTime;

use crate::support::Place;

fn shown(output: &Output) -> String {
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{told} {}", String::from_utf8_lossy(&output.stderr));
    told
}

#[test]
fn it_works_without_anything_and_touches_nothing() {
    let place = Place::new();
    let mut command = place.command(&["demo"]);
    let told = shown(&command.env("TMPDIR", place.root()).output_in_time());
    for part in [
        "may write to the folder\n",
        "no  run sh test.sh (exit code 1",
        "    -echo \"Helo, ${1:-world}!\"\n    +echo \"Hello, ${1:-world}!\"\n",
        "ok  run sh test.sh (exit code 0",
        "    ok: Hello, Ada!\n",
        "search for `Helo`: greet.sh\n",
        "next-door.txt: Read-only file system",
        "plan (3 of 3 done)",
        "2. What was changed",
        "  new      CHANGES.md\n  changed  greet.sh\n",
        "the sandbox held",
        "you: plan:",
        "  edit update greet.sh\n",
        "oarlock exec",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(!place.home().exists(), "the user's home is not used");
    let left = fs::read_dir(place.root()).expect("a folder").count();
    assert_eq!(left, 1, "only the folder of the test is left");
}

#[test]
fn without_a_full_sandbox_it_says_so_and_stays_inside() {
    let place = Place::new();
    // Within the sandbox no other one can be built.
    let mut command =
        place.command(&["sandbox", "--mode", "workspace-write", "--", env!("CARGO_BIN_EXE_oarlock"), "demo"]);
    let told = shown(&command.output_in_time());
    assert!(
        told.contains("This machine has no full sandbox (") || told.contains("so the demo runs no commands")
    );
    assert!(told.contains("the sandbox held") || told.contains("No command was run"), "{told}");
    assert!(!told.contains("did not hold"), "{told}");
    assert!(told.contains("  new      CHANGES.md\n  changed  greet.sh\n"), "{told}");
}

#[test]
fn a_kept_demo_can_be_taken_up() {
    let place = Place::new();
    let mut command = place.command(&["demo", "--keep"]);
    shown(&command.env("TMPDIR", place.root()).output_in_time());
    let kept = fs::read_dir(place.root()).expect("a folder").flatten().map(|entry| entry.path());
    let kept: PathBuf = kept.filter(|path| path.join("workspace").exists()).collect();
    let workspace = kept.join("workspace");
    assert!(fs::read_to_string(workspace.join("greet.sh")).expect("kept").contains("Hello"));
    let folder = workspace.to_str().expect("a plain path");
    let arguments =
        ["exec", "--skip-git-repo-check", "-C", folder, "--provider", "offline", "resume", "--last"];
    let mut command = place.command(&[&arguments[..], &["read CHANGES.md"]].concat());
    let output = command.env("OARLOCK_HOME", kept.join("home")).output_in_time();
    assert!(shown(&output).contains("    Corrected the greeting."), "{output:?}");
}
