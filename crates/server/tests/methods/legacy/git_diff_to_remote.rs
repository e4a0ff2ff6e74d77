//! `gitDiffToRemote`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::json;
use testkit::{Stage, text};

fn git(folder: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    let output = command
        .current_dir(folder)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", folder)
        .args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"])
        .args(arguments)
        .output()
        .expect("git");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// A checkout with a commit that its remote has.
fn checkout(stage: &Stage) -> (std::path::PathBuf, String) {
    let (remote, work) = (stage.cwd().join("remote"), stage.cwd().join("work"));
    fs::create_dir_all(&work).expect("made");
    git(&stage.cwd(), &["init", "-q", "--bare", "remote"]);
    git(&work, &["init", "-q"]);
    fs::write(work.join("a.txt"), "one\n").expect("written");
    fs::write(work.join(".gitignore"), "ignored\n").expect("written");
    git(&work, &["add", "."]);
    git(&work, &["commit", "-q", "-m", "first"]);
    git(&work, &["remote", "add", "origin", &remote.to_string_lossy()]);
    git(&work, &["push", "-q", "origin", "HEAD:main"]);
    git(&work, &["fetch", "-q", "origin"]);
    let sha = git(&work, &["rev-parse", "HEAD"]);
    (work, sha)
}

#[tokio::test]
async fn commits_changes_and_new_files_are_in_the_diff() {
    let stage = Stage::new(json!([])).await;
    let (work, sha) = checkout(&stage);
    fs::write(work.join("b.txt"), "committed\n").expect("written");
    git(&work, &["add", "b.txt"]);
    git(&work, &["commit", "-q", "-m", "second"]);
    fs::write(work.join("a.txt"), "two\n").expect("written");
    fs::write(work.join("new *.txt"), "untracked\n").expect("written");
    fs::write(work.join("ignored"), "x\n").expect("written");
    let index = fs::read(work.join(".git/index")).expect("an index");
    let (_server, mut client) = stage.open().await;
    let answer = client.ask("gitDiffToRemote", json!({"cwd": work.to_string_lossy()})).await;
    assert_eq!(answer["sha"], json!(sha));
    let diff = text(&answer["diff"]);
    for line in ["-one", "+two", "+committed", "+untracked", "+++ b/new *.txt"] {
        assert!(diff.contains(line), "{line} in {diff}");
    }
    assert!(!diff.contains("ignored"), "{diff}");
    assert_eq!(fs::read(work.join(".git/index")).expect("an index"), index, "nothing was staged");
    let left = fs::read_dir(stage.home().join("oarlock/git")).map_or(0, Iterator::count);
    assert_eq!(left, 0, "nothing is left behind");
}

#[tokio::test]
async fn a_folder_without_a_remote_is_refused() {
    let stage = Stage::new(json!([])).await;
    let (_server, mut client) = stage.open().await;
    for cwd in [stage.cwd().to_string_lossy().into_owned(), "/nonexistent".to_owned()] {
        let refused = client.refused("gitDiffToRemote", json!({"cwd": cwd})).await;
        assert_eq!(refused, format!("failed to compute git diff to remote for cwd: {cwd:?}"));
    }
}

/// Everything by which a repository can have git start a program.
#[tokio::test]
async fn nothing_that_a_repository_names_is_run() {
    let stage = Stage::new(json!([])).await;
    let (work, _) = checkout(&stage);
    let (proof, program) = (stage.cwd().join("ran"), stage.cwd().join("evil"));
    fs::write(&program, format!("#!/bin/sh\necho $0 $@ >> {}\ncat\n", proof.display())).expect("written");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("set");
    let evil = program.to_string_lossy().into_owned();
    for key in [
        "core.fsmonitor",
        "core.pager",
        "core.sshCommand",
        "core.editor",
        "diff.external",
        "diff.evil.command",
        "diff.evil.textconv",
        "filter.evil.clean",
        "filter.evil.smudge",
        "filter.evil.process",
        "core.alternateRefsCommand",
        "credential.helper",
        "gpg.program",
        "interactive.diffFilter",
    ] {
        git(&work, &["config", key, &evil]);
    }
    git(&work, &["config", "core.hooksPath", &stage.cwd().to_string_lossy()]);
    git(&work, &["config", "core.attributesFile", &work.join(".gitattributes").to_string_lossy()]);
    for attributes in [".gitattributes", ".git/info/attributes"] {
        fs::create_dir_all(work.join(".git/info")).expect("made");
        fs::write(work.join(attributes), "* filter=evil diff=evil\n").expect("written");
    }
    for hook in ["post-index-change", "pre-commit", "post-checkout"] {
        fs::copy(&program, work.join(".git/hooks").join(hook)).expect("planted");
    }
    fs::write(work.join("a.txt"), "two\n").expect("written");
    fs::write(work.join("new.txt"), "new\n").expect("written");
    let _ = fs::remove_file(&proof);
    let (_server, mut client) = stage.open().await;
    let answer = client.ask("gitDiffToRemote", json!({"cwd": work.to_string_lossy()})).await;
    assert!(text(&answer["diff"]).contains("+two"), "{answer}");
    assert!(!proof.exists(), "{}", fs::read_to_string(&proof).unwrap_or_default());
}
