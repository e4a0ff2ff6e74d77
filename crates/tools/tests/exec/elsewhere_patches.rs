//! Patches in another environment: all or nothing.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use engine::{Question, ToolOutcome};
use protocol::{AskForApproval, ThreadItem};
use serde_json::json;

use crate::elsewhere::in_every_shell;
use crate::stage::{Answer, Stage, text};

async fn patch(stage: &Stage, lines: &[&str]) -> ToolOutcome {
    let input = format!("*** Begin Patch\n{}\n*** End Patch", lines.join("\n"));
    stage.start("apply_patch", &json!({"input": input})).await
}

fn names(stage: &Stage, folder: &str) -> Vec<String> {
    let entries = fs::read_dir(stage.path(folder)).expect("there").flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Works in the folder `w`.
fn workplace(stage: &mut Stage) {
    fs::create_dir_all(stage.path("w")).expect("made");
    stage.step.cwd = stage.path("w").canonicalize().expect("there").display().to_string();
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_added_changed_moved_and_removed() {
    for mut stage in in_every_shell() {
        workplace(&mut stage);
        fs::write(stage.path("w/run.sh"), "one\ntwo\n").expect("written");
        fs::set_permissions(stage.path("w/run.sh"), fs::Permissions::from_mode(0o750)).expect("set");
        fs::write(stage.path("w/it's $(x) é"), "old\n").expect("written");
        fs::write(stage.path("w/moved"), "a\nb\n").expect("written");
        fs::write(stage.path("w/gone"), "gone\n").expect("written");
        let outcome = patch(
            &stage,
            &[
                "*** Add File: new/deep/er.txt",
                "+alpha 'x' $(y) \\n",
                "*** Update File: run.sh",
                "@@",
                "-one",
                "+ONE",
                "*** Update File: it's $(x) é",
                "@@",
                "-old",
                "+new",
                "*** Update File: moved",
                "*** Move to: sub/to",
                "@@",
                " a",
                "-b",
                "+B",
                "*** Delete File: gone",
            ],
        )
        .await;
        let said = text(&outcome);
        assert!(outcome.success, "{said}");
        assert!(
            said.ends_with(
                "Success. Updated the following files:\nA new/deep/er.txt\nM run.sh\nM it's $(x) é\nM sub/to\nD gone\n"
            ),
            "{said}"
        );
        let read = |name: &str| fs::read_to_string(stage.path("w").join(name)).expect("there");
        assert_eq!(read("new/deep/er.txt"), "alpha 'x' $(y) \\n\n");
        assert_eq!(
            (read("run.sh"), read("it's $(x) é"), read("sub/to")),
            ("ONE\ntwo\n".into(), "new\n".into(), "a\nB\n".into())
        );
        let mode = fs::metadata(stage.path("w/run.sh")).expect("there").permissions().mode() & 0o777;
        assert_eq!(mode, 0o750);
        assert_eq!(names(&stage, "w"), ["it's $(x) é", "new", "run.sh", "sub"]);
        assert_eq!(names(&stage, "w/new/deep"), ["er.txt"]);
        let Some(ThreadItem::FileChange { changes, .. }) = outcome.item.as_deref() else { panic!("{said}") };
        let cwd = &stage.step.cwd;
        assert_eq!(changes.len(), 5);
        assert!(changes.iter().all(|change| change.path.starts_with(cwd)), "{changes:?}");
        let diff = outcome.diff.expect("a diff");
        assert!(diff.contains("-one\n+ONE\n"), "{diff}");
        assert!(diff.contains(&format!("{cwd}/run.sh")), "{diff}");
        let proposal = &stage.proposals()[0];
        assert_eq!(proposal.arguments["environmentId"], "box");
        assert!(proposal.digest.starts_with("sha256:"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_has_one_diff_over_all_its_patches() {
    let mut stage = Stage::new().behind("box", &["env"]);
    workplace(&mut stage);
    fs::create_dir(stage.path("w/.git")).expect("made");
    patch(&stage, &["*** Add File: a", "+one"]).await;
    let diff = patch(&stage, &["*** Update File: a", "@@", "-one", "+two"]).await.diff.expect("a diff");
    assert!(diff.contains("b/a\n") && diff.contains("+two\n") && !diff.contains("one"), "{diff}");
    stage.step.environments = [engine::StepEnvironment::here(stage.step.cwd.clone())].into();
    let diff = patch(&stage, &["*** Add File: b", "+here"]).await.diff.expect("a diff");
    assert!(diff.contains("+two\n") && diff.contains("+here\n"), "{diff}");
}

/// The environment controls the answers about its files: here it names a file of this machine.
#[tokio::test(flavor = "multi_thread")]
async fn an_environment_that_lies_changes_nothing_on_this_machine() {
    let mut stage = Stage::new();
    workplace(&mut stage);
    fs::write(stage.path("w/f"), "x\n").expect("written");
    fs::write(stage.path("victim"), "kept\n").expect("written");
    let victim = stage.path("victim").canonicalize().expect("there");
    let up = "/..".repeat(40);
    let lie = format!("{}{up}{}", stage.step.cwd, victim.display());
    fs::create_dir(stage.path("lies")).expect("made");
    stage.program(
        "lies/readlink",
        &format!("#!/bin/sh\ncase $3 in */f) echo '{lie}';; *) exec /usr/bin/readlink \"$@\";; esac\n"),
    );
    stage.program("lies/head", "#!/bin/sh\necho planted\n");
    let path = format!("PATH={}:/usr/bin:/bin", stage.path("lies").display());
    let stage = stage.behind("box", &["env", &path]);
    let outcome = patch(&stage, &["*** Update File: f", "@@", "-planted", "+y"]).await;
    assert!(!outcome.success && text(&outcome).contains("its answer makes no sense"), "{}", text(&outcome));
    assert_eq!(fs::read_to_string(&victim).expect("there"), "kept\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_patch_that_does_not_apply_or_leaves_the_folder_changes_nothing() {
    for mut stage in in_every_shell() {
        workplace(&mut stage);
        let outside = stage.path("outside");
        fs::create_dir(&outside).expect("made");
        fs::write(outside.join("f"), "x\n").expect("written");
        fs::write(stage.path("w/f"), "x\n").expect("written");
        symlink("../outside", stage.path("w/dir")).expect("linked");
        symlink("../outside/f", stage.path("w/out")).expect("linked");
        symlink("nowhere", stage.path("w/broken")).expect("linked");
        symlink("f", stage.path("w/in")).expect("linked");
        rustix::fs::mkfifoat(rustix::fs::CWD, stage.path("w/pipe"), 0o600.into()).expect("made");
        let before = names(&stage, "w");
        for (lines, expected) in [
            (&["*** Add File: dir/new", "+x"][..], "leads outside of the working directory"),
            (&["*** Update File: out", "@@", "-x", "+y"], "leads outside of the working directory"),
            (&["*** Update File: broken", "@@", "-x", "+y"], "is a symbolic link"),
            (&["*** Update File: pipe", "@@", "-x", "+y"], "is not a regular file"),
            (&["*** Add File: f/below", "+x"], "lies beneath something that is not a directory"),
            (&["*** Update File: gone", "@@", "-x", "+y"], "Failed to read file to update"),
            (&["*** Update File: f", "@@", "-other", "+y"], "lines not found in"),
            (&["*** Delete File: ."], "apply_patch verification failed: "),
            (&["*** Add File: new", "+x", "*** Update File: f", "@@", "-no", "+y"], "lines not found in"),
            (&["nonsense"], "is not a valid hunk header"),
        ] {
            let outcome = patch(&stage, lines).await;
            let said = text(&outcome);
            assert!(!outcome.success && said.starts_with("apply_patch verification failed: "), "{said}");
            assert!(said.contains(expected) && said.matches(".tmp").count() <= 1, "{lines:?}: {said}");
        }
        assert_eq!(names(&stage, "w"), before);
        assert_eq!(names(&stage, "outside"), ["f"]);
        assert!(stage.proposals().is_empty());
        let outcome = patch(&stage, &["*** Update File: in", "@@", "-x", "+y"]).await;
        assert!(outcome.success, "{}", text(&outcome));
        assert_eq!(fs::read_to_string(stage.path("w/f")).expect("there"), "y\n");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_changed_after_it_was_shown_is_asked_about_again() {
    for asking in [true, false] {
        let approval = if asking { AskForApproval::OnRequest } else { AskForApproval::Never };
        let sandbox = json!({"type": if asking { "workspaceWrite" } else { "dangerFullAccess" }});
        let mut stage = Stage::asking(approval, sandbox, |_| Answer::Accept).behind("box", &["env"]);
        workplace(&mut stage);
        let file = stage.path("w/f");
        fs::write(&file, "one\ntwo\n").expect("written");
        let path = file.clone();
        stage.meddle(move || fs::write(path, "one\nTWO\n").expect("written"));
        let outcome = patch(&stage, &["*** Update File: f", "@@", "-one", "+ONE"]).await;
        assert!(outcome.success, "{}", text(&outcome));
        assert_eq!(fs::read_to_string(&file).expect("there"), "ONE\nTWO\n");
        let proposals = stage.proposals();
        assert_eq!(proposals.len(), 2);
        assert_ne!(proposals[0].digest, proposals[1].digest);
        assert_eq!(proposals[0].question.is_some(), asking);
        let Some(Question::FileChange(asked)) = proposals[1].question.as_deref() else {
            panic!("a question")
        };
        let reason = asked.reason.as_deref().expect("a reason");
        assert!(reason.contains("changed since the patch was shown (in environment `box`)"), "{reason}");
        assert_eq!(names(&stage, "w"), ["f"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_appeared_meanwhile_is_not_overwritten() {
    let mut stage = Stage::new().behind("box", &["env"]);
    workplace(&mut stage);
    let path = stage.path("w/new");
    stage.meddle(move || fs::write(path, "theirs\n").expect("written"));
    patch(&stage, &["*** Add File: new", "+ours"]).await;
    assert_eq!(stage.proposals().len(), 2, "it was looked at again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partial_failure_is_undone() {
    for mut stage in in_every_shell() {
        workplace(&mut stage);
        fs::write(stage.path("w/a"), "one\n").expect("written");
        fs::write(stage.path("w/b"), "one\n").expect("written");
        let mv = "#!/bin/sh\nfor last; do :; done\ncase $last in */c) exit 1;; esac\nexec /bin/mv \"$@\"\n";
        fs::create_dir(stage.path("bin")).expect("made");
        stage.program("bin/mv", mv);
        // Placed before the other programs there.
        let engine::Reach::Command { argv } = stage.step.environments[0].reach.clone() else {
            panic!("there")
        };
        let path = format!("PATH={}:{}", stage.path("bin").display(), "/usr/bin:/bin");
        let mut prefix: Vec<&str> = argv.iter().map(String::as_str).collect();
        prefix.extend(["env", &path]);
        stage.go_to("box", &prefix);
        let outcome = patch(
            &stage,
            &[
                "*** Update File: a",
                "@@",
                "-one",
                "+ONE",
                "*** Delete File: b",
                "*** Add File: c",
                "+new",
                "*** Add File: sub/d",
                "+new",
            ],
        )
        .await;
        let said = text(&outcome);
        assert!(!outcome.success && said.contains("/c in environment `box`; nothing was applied"), "{said}");
        assert_eq!(names(&stage, "w"), ["a", "b"]);
        assert_eq!(fs::read_to_string(stage.path("w/a")).expect("there"), "one\n");
        let Some(ThreadItem::FileChange { status, .. }) = outcome.item.as_deref() else { panic!("{said}") };
        assert_eq!(*status, protocol::PatchApplyStatus::Failed);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_breaks_during_the_upload_leaves_nothing() {
    let mut stage = Stage::new();
    workplace(&mut stage);
    // Passes the checks, and cuts the third dialogue off within the content.
    let client = stage.program(
        "client",
        "#!/bin/sh\necho >>\"$0.count\"; [ \"$(wc -l <\"$0.count\")\" -lt 3 ] && exec \"$@\"\n\
         dd bs=4096 count=20 2>/dev/null | \"$@\"; exit 255\n",
    );
    let mut stage = stage.behind("box", &[&client]);
    workplace(&mut stage);
    let long = format!("+{}", "x".repeat(300_000));
    let outcome = patch(&stage, &["*** Add File: sub/new", &long]).await;
    let said = text(&outcome);
    assert!(!outcome.success && said.contains("; nothing was applied"), "{said}");
    assert_eq!(names(&stage, "w"), Vec::<String>::new(), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn large_and_many_files_arrive_complete() {
    for mut stage in in_every_shell() {
        workplace(&mut stage);
        let big: String = (0..60_000).map(|number| format!("line {number} žluťoučký\n")).collect();
        fs::write(stage.path("w/big"), &big).expect("written");
        let mut lines = vec!["*** Update File: big".to_owned(), "@@".to_owned()];
        lines.extend(["-line 59999 žluťoučký".to_owned(), "+last".to_owned()]);
        for number in 0..40 {
            lines.extend([format!("*** Add File: many/{number}"), format!("+{}", "y".repeat(number * 100))]);
        }
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let outcome = patch(&stage, &lines).await;
        assert!(outcome.success, "{}", text(&outcome));
        let expected = big.replace("line 59999 žluťoučký", "last");
        assert!(fs::read_to_string(stage.path("w/big")).expect("there") == expected);
        for number in 0..40 {
            let content = fs::read_to_string(stage.path("w").join(format!("many/{number}"))).expect("there");
            assert_eq!(content, "y".repeat(number * 100) + "\n");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_patch_inside_a_command_is_applied_there() {
    let mut stage = Stage::new().behind("box", &["env"]);
    workplace(&mut stage);
    let command = "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: new\n+x\n*** End Patch\nEOF";
    let (text, success) = stage.call("shell_command", json!({"command": command})).await;
    assert!(success, "{text}");
    assert_eq!(fs::read_to_string(stage.path("w/new")).expect("there"), "x\n");
}
