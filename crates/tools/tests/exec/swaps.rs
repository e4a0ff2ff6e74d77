//! An approval covers exactly what was shown: a change before the start is asked about again.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use protocol::AskForApproval;
use serde_json::{Value, json};

use crate::stage::{Answer, Stage};

fn script(path: &Path, text: &str) {
    fs::write(path, text).expect("written");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("made executable");
}

/// A client that approves, upon which files change, and then answers `second`.
fn meddling(meddle: impl Fn(&Path) + Send + Sync + 'static, second: Answer) -> (Stage, Arc<AtomicUsize>) {
    let (asked, place) = (Arc::new(AtomicUsize::new(0)), Arc::new(std::sync::OnceLock::<PathBuf>::new()));
    let (count, folder) = (asked.clone(), place.clone());
    let stage = Stage::asking(AskForApproval::Untrusted, json!({"type": "dangerFullAccess"}), move |_| {
        if count.fetch_add(1, Ordering::Relaxed) > 0 {
            return second.clone();
        }
        meddle(folder.get().expect("set"));
        Answer::Accept
    });
    place.set(stage.folder.path().to_owned()).expect("set once");
    (stage, asked)
}

fn swap_script(folder: &Path) {
    fs::remove_file(folder.join("run.sh")).expect("removed");
    script(&folder.join("run.sh"), "#!/bin/sh\ntouch swapped\n");
}

fn swap_link(folder: &Path) {
    fs::remove_file(folder.join("link")).expect("removed");
    symlink("two", folder.join("link")).expect("linked");
}

fn rewrite_in_place(folder: &Path) {
    fs::write(folder.join("run.sh"), "#!/bin/sh\ntouch swapped\n").expect("written");
}

fn prepare(stage: &Stage) {
    script(&stage.path("run.sh"), "#!/bin/sh\ntouch original\n");
    for name in ["one", "two"] {
        fs::create_dir(stage.path(name)).expect("made");
    }
    symlink("one", stage.path("link")).expect("linked");
}

fn traces(stage: &Stage) -> Vec<&'static str> {
    let all = ["original", "swapped", "one/here", "two/here"];
    all.into_iter().filter(|name| stage.path(name).exists()).collect()
}

type Meddle = fn(&Path);

fn cases() -> Vec<(&'static str, Value, Meddle, &'static str, &'static str)> {
    let link = json!({"cmd": "touch here", "workdir": "link"});
    vec![
        ("exec_command", json!({"cmd": "./run.sh"}), swap_script, "`./run.sh` changed", "swapped"),
        ("exec_command", json!({"cmd": "./run.sh"}), rewrite_in_place, "`./run.sh` changed", "swapped"),
        ("exec_command", json!({"cmd": "sh run.sh"}), swap_script, "`run.sh` changed", "swapped"),
        ("exec_command", json!({"cmd": "A=1 ./run.sh"}), swap_script, "`./run.sh` changed", "swapped"),
        ("exec_command", link, swap_link, "the working directory changed", "two/here"),
        ("shell", json!({"command": ["./run.sh"]}), swap_script, "`./run.sh` changed", "swapped"),
        ("shell_command", json!({"command": "./run.sh"}), swap_script, "`./run.sh` changed", "swapped"),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_swapped_file_is_asked_about_and_a_rejection_runs_nothing() {
    for (tool, arguments, meddle, reason, _) in cases() {
        let (stage, asked) = meddling(meddle, Answer::Decline);
        prepare(&stage);
        let (text, success) = stage.call(tool, arguments.clone()).await;
        assert!(!success && text.contains("rejected by user"), "{arguments}: {text}");
        assert_eq!(asked.load(Ordering::Relaxed), 2, "{arguments}");
        assert!(traces(&stage).is_empty(), "{arguments}: {:?}", traces(&stage));
        let second = stage.questions()[1].reason.clone();
        assert!(second.as_deref().is_some_and(|second| second.starts_with(reason)), "{second:?}");
        let proposals = stage.proposals();
        assert_eq!([proposals[0].number, proposals[1].number], [0, 1]);
        assert_ne!(proposals[0].digest, proposals[1].digest);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_approval_runs_the_new_content() {
    for (tool, arguments, meddle, _, trace) in cases() {
        let (stage, asked) = meddling(meddle, Answer::Accept);
        prepare(&stage);
        stage.call(tool, arguments.clone()).await;
        assert_eq!(asked.load(Ordering::Relaxed), 2, "{arguments}");
        assert_eq!(traces(&stage), [trace], "{arguments}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_approval_does_not_cover_a_swapped_file() {
    let (stage, asked) = meddling(|_| {}, Answer::ForSession);
    prepare(&stage);
    stage.exec("./run.sh").await;
    stage.exec("./run.sh").await;
    assert_eq!(asked.load(Ordering::Relaxed), 2);
    stage.exec("./run.sh").await;
    assert_eq!(asked.load(Ordering::Relaxed), 2, "agreed to for the session");
    swap_script(stage.folder.path());
    stage.exec("./run.sh").await;
    assert_eq!(asked.load(Ordering::Relaxed), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_goes_away_ends_the_item() {
    let (stage, _) =
        meddling(|folder| fs::remove_dir_all(folder.join("one")).expect("removed"), Answer::Accept);
    prepare(&stage);
    let (text, success) = stage.call("exec_command", json!({"cmd": "touch here", "workdir": "one"})).await;
    assert!(!success && text.contains("is not usable"), "{text}");
    assert_eq!(stage.ended().len(), 1);
    assert_eq!(stage.ended()[0]["status"], "failed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_swapped_file_is_asked_about_even_without_a_first_question() {
    for (approval, answer, expected) in [
        (AskForApproval::OnFailure, Answer::Decline, vec![]),
        (AskForApproval::OnRequest, Answer::Accept, vec!["swapped"]),
        // No question is allowed, and the policy allows everything.
        (AskForApproval::Never, Answer::Decline, vec!["swapped"]),
    ] {
        let stage =
            Stage::asking(approval.clone(), json!({"type": "dangerFullAccess"}), move |_| answer.clone());
        prepare(&stage);
        let folder = stage.folder.path().to_owned();
        stage.meddle(move || swap_script(&folder));
        stage.exec("./run.sh").await;
        assert_eq!(traces(&stage), expected, "{approval:?}");
        let proposals = stage.proposals();
        assert_eq!(proposals.iter().map(|proposal| proposal.number).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(stage.questions().len(), usize::from(approval != AskForApproval::Never));
    }
}
