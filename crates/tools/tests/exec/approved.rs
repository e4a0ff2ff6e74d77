//! Only approved contents run, however fast a sandboxed process swaps them.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use protocol::{AskForApproval, CommandExecutionRequestApprovalParams};
use serde_json::json;

use crate::stage::{Answer, PATIENCE, Stage, output, session_id};

/// The number of rounds: ten thousand in the full form.
fn rounds() -> usize {
    std::env::var("OARLOCK_RACES").ok().and_then(|count| count.parse().ok()).unwrap_or(60)
}

fn asking(
    client: impl Fn(&CommandExecutionRequestApprovalParams) -> Answer + Send + Sync + 'static,
) -> Stage {
    let sandbox = json!({"type": "workspaceWrite", "excludeSlashTmp": true, "excludeTmpdirEnvVar": true});
    Stage::asking(AskForApproval::OnRequest, sandbox, client)
}

fn workspace() -> Stage {
    asking(|_| Answer::Accept)
}

/// While enabled, swaps the file by every possible way. Outside the sandbox, a swapped script leaves a trace where
/// sandboxed processes cannot write.
const SWAPPER: &str = "while :; do if [ -e go ]; then \
      printf \"$EVIL\" > run.sh; cat good.sh > run.sh; \
      cp evil.sh new.sh; mv -f new.sh run.sh; \
      ln -sfn evil.sh link; mv -fT link run.sh; rm run.sh; cp good.sh run.sh; \
    else touch idle; fi; done";

#[tokio::test(flavor = "multi_thread")]
async fn a_script_that_is_swapped_around_the_approval_never_runs() {
    let (place, outside) = (Arc::new(OnceLock::<PathBuf>::new()), tempfile::tempdir().expect("a folder"));
    let (folder, turns) = (place.clone(), AtomicUsize::new(0));
    let stage = asking(move |asked| {
        if asked.reason.as_ref().is_some_and(|reason| reason.contains("changed")) {
            return Answer::Decline;
        }
        // Swapped from before the approval, right after it, or while the command starts and runs.
        let (turn, go) = (turns.fetch_add(1, Ordering::Relaxed), folder.get().expect("set").join("go"));
        let pause = Duration::from_millis((turn % 16) as u64 * 2);
        let swapping = std::thread::spawn(move || {
            std::thread::sleep(pause);
            fs::write(go, "").expect("written");
        });
        if turn % 5 == 0 {
            swapping.join().expect("it does not panic");
        }
        Answer::Accept
    });
    place.set(stage.folder.path().to_owned()).expect("set once");
    let (good, evil) =
        ("#!/bin/sh\necho good\n", format!("#!/bin/sh\ntouch {}/evil\n", outside.path().display()));
    for (name, text) in [("good.sh", good), ("run.sh", good), ("evil.sh", &evil)] {
        stage.program(name, text);
    }
    let swapper = format!("EVIL='{}'; {SWAPPER}", evil.replace('\n', "\\n"));
    let begun = stage.call("exec_command", json!({"cmd": swapper, "yield_time_ms": 250})).await.0;
    session_id(&begun);
    let lines = ["./run.sh", "sh run.sh", "./run.sh 2>&1 | cat", ". ./run.sh", "sleep 0.02; ./run.sh"];
    let mut ran = 0;
    for round in 0..rounds() {
        let arguments = json!({
            "command": ["sh", "-c", lines[round % lines.len()]],
            "sandbox_permissions": "require_escalated",
            "justification": "run it?",
        });
        let (text, _) = stage.call("shell", arguments).await;
        ran += usize::from(text.contains("good"));
        assert!(!outside.path().join("evil").exists(), "round {round}: {text}");
        // At rest again, with the original script in place.
        until(|| stage.path("go").exists()).await;
        fs::remove_file(stage.path("go")).expect("removed");
        let _ = fs::remove_file(stage.path("idle"));
        until(|| stage.path("idle").exists()).await;
        let _ = fs::remove_file(stage.path("run.sh"));
        stage.program("run.sh", good);
    }
    stage.bench.clear_terminals().await;
    let (rounds, asked) = (rounds(), stage.questions().len());
    println!(
        "{ran} of {rounds} ran as they were approved, 0 as another; {} were asked about again",
        asked - rounds
    );
    // With fewer runs, hardly anything raced.
    assert!(ran * 10 >= rounds, "only {ran} of {rounds} ran");
    assert!(rounds < 60 || asked > rounds, "none of {rounds} was swapped between the question and the start");
}

async fn until(holds: impl Fn() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.expect("it comes true");
}

/// Between approval and start all sandboxed processes are suspended, and afterwards resumed.
#[tokio::test(flavor = "multi_thread")]
async fn a_swap_right_after_the_approval_is_noticed() {
    let stage = workspace();
    stage.program("run.sh", "#!/bin/sh\necho good\n");
    let waiter = "while [ ! -e decided ]; do :; done; printf '#!/bin/sh\\necho evil\\n' > run.sh; touch swapped; \
        while :; do date +%s%N > alive; done";
    let begun = stage.call("exec_command", json!({"cmd": waiter, "yield_time_ms": 250})).await.0;
    session_id(&begun);
    let decided = stage.path("decided");
    stage.meddle(move || fs::write(decided, "").expect("written"));
    let arguments = json!({
        "command": ["sh", "-c", "sleep 0.3; ./run.sh"],
        "sandbox_permissions": "require_escalated",
        "justification": "run it?",
    });
    let (text, _) = stage.call("shell", arguments).await;
    // A swap before the suspension is asked about again, and runs as it is then.
    let asked = stage.questions().len();
    match asked {
        1 => assert!(text.contains("good") && !text.contains("evil"), "{text}"),
        _ => assert!(stage.questions()[1].reason.as_ref().expect("a reason").contains("changed"), "{text}"),
    }
    let read = || fs::read_to_string(stage.path("alive")).unwrap_or_default();
    let before = read();
    until(|| read() != before).await;
    stage.bench.clear_terminals().await;
}

#[tokio::test]
async fn an_approved_script_is_read_from_a_copy_that_nothing_can_change() {
    let stage = workspace();
    stage.program(
        "run.sh",
        "#!/bin/sh\nreadlink /proc/self/fd/255 /proc/$$/fd/10; echo two >> run.sh\necho one\n",
    );
    let arguments = json!({
        "cmd": "./run.sh", "sandbox_permissions": "require_escalated", "justification": "run it?",
    });
    let text = stage.call("exec_command", arguments).await.0;
    // A shell reads its script while running, and would have run the added line.
    assert!(output(&text).ends_with("one\n"), "{text}");
    assert!(fs::read_to_string(stage.path("run.sh")).expect("there").ends_with("two\n"));
}
