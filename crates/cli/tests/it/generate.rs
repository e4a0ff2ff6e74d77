//! The generators as a user meets them: all or nothing, one clear sentence, exit code 2.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use testkit::RunInTime;

const GENERATORS: [&str; 3] = ["generate-json-schema", "generate-ts", "generate-python"];

fn oarlock(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_oarlock")).args(arguments).stdin(Stdio::null()).output_in_time()
}

fn generate(generator: &str, out: &Path, more: &[&str]) -> Output {
    let mut arguments = vec!["app-server", generator, "--out", out.to_str().expect("a plain path")];
    arguments.extend(more);
    oarlock(&arguments)
}

fn files(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
            if entry.is_dir() {
                open.push(entry);
            } else {
                let name = entry.strip_prefix(root).expect("inside").to_owned();
                found.insert(name, fs::read(&entry).expect("readable"));
            }
        }
    }
    found
}

#[track_caller]
fn check_refused(output: &Output, expected: &str) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains(expected), "{stderr}");
    assert_eq!(stderr.trim_end().lines().count(), 1, "one sentence: {stderr}");
}

#[test]
fn two_runs_give_the_same_bytes() {
    let scratch = tempfile::tempdir().expect("a folder");
    for generator in GENERATORS {
        for surface in [&[][..], &["--experimental"]] {
            let (one, two) =
                (scratch.path().join("one").join(generator), scratch.path().join("two").join(generator));
            assert!(generate(generator, &one, surface).status.success());
            assert!(generate(generator, &two, surface).status.success());
            let written = files(&one);
            assert!(written.len() > 5, "{generator} wrote {} files", written.len());
            assert_eq!(written, files(&two), "{generator}");
        }
    }
}

#[test]
fn a_file_in_the_place_of_the_folder_is_refused_and_kept() {
    let scratch = tempfile::tempdir().expect("a folder");
    let out = scratch.path().join("file");
    fs::write(&out, "mine").expect("written");
    for generator in GENERATORS {
        check_refused(&generate(generator, &out, &[]), "is a file; give a folder");
    }
    assert_eq!(fs::read_to_string(&out).expect("still there"), "mine");
}

#[test]
fn a_parent_that_is_a_file_is_refused() {
    let scratch = tempfile::tempdir().expect("a folder");
    fs::write(scratch.path().join("file"), "mine").expect("written");
    check_refused(&generate("generate-ts", &scratch.path().join("file/out"), &[]), "cannot write to --out");
}

#[test]
fn a_folder_in_the_place_of_a_file_leaves_everything_as_it_was() {
    let scratch = tempfile::tempdir().expect("a folder");
    let out = scratch.path().join("out");
    fs::create_dir_all(out.join("index.ts")).expect("made");
    check_refused(&generate("generate-ts", &out, &[]), "index.ts is a folder where a file belongs");
    assert!(files(&out).is_empty());
}

#[test]
fn a_folder_without_write_permission_is_refused() {
    let scratch = tempfile::tempdir().expect("a folder");
    let out = scratch.path().join("locked");
    fs::create_dir(&out).expect("made");
    fs::set_permissions(&out, fs::Permissions::from_mode(0o500)).expect("locked");
    // Root may write anywhere; there is nothing to refuse then.
    if fs::write(out.join("probe"), "").is_ok() {
        return;
    }
    check_refused(&generate("generate-json-schema", &out, &[]), "cannot write to --out");
    assert!(files(&out).is_empty());
}

#[test]
fn other_files_in_the_folder_are_left_alone() {
    let scratch = tempfile::tempdir().expect("a folder");
    fs::write(scratch.path().join("README.txt"), "mine").expect("written");
    assert!(generate("generate-json-schema", scratch.path(), &[]).status.success());
    let written = files(scratch.path());
    assert_eq!(written[Path::new("README.txt")], b"mine");
    assert!(written.contains_key(Path::new("v2/ThreadStartParams.json")));
    assert!(!written.keys().any(|name| name.to_string_lossy().contains("staging")));
}

#[test]
fn a_missing_or_unknown_flag_shows_the_usage() {
    for arguments in
        [&["app-server", "generate-ts"][..], &["app-server", "generate-ts", "--out", "x", "--nope"]]
    {
        let output = oarlock(arguments);
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&output.stderr).contains("Usage:"));
    }
}
