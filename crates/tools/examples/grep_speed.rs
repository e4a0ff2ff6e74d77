//! Benchmark of `grep_files` on a tree of 50,000 files, next to `grep -rl` and, if installed, `rg -l`.
//!
//! `cargo run -p oarlock-tools --release --example grep_speed [FILES]`
#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a measurement may end early, and prints its result"
)]

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::{ModelInfo, Proposal, ProposalDecision, Step, ToolCall, ToolPayload, Truncation};
use oarlock_tools::{Bench, BenchOptions, BoxFuture, Caller, Registry, Sink};
use protocol::{
    AskForApproval, FunctionCallOutputBody, GrantedPermissionProfile, SandboxPolicy, ServerNotification,
    ThreadItem,
};
use serde_json::json;

const ROUNDS: usize = 5;

fn main() {
    let files = std::env::args().nth(1).map_or(50_000, |count| count.parse().expect("a number of files"));
    let folder = tempfile::tempdir().expect("a folder");
    grow(folder.path(), files);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    for (what, pattern) in [("a word", "needle_in_hay"), ("an expression", r"nee[a-z]+_\w+_hay")] {
        let mut found = 0;
        let ours = best(|| found = runtime.block_on(grep_files(folder.path(), pattern)));
        print!("{files} files, {what}, {found} match: grep_files {} ms", ours.as_millis());
        for (program, option) in [("grep", "-rlE"), ("rg", "-l")] {
            let mut command = Command::new(program);
            command.args([option, "-e", pattern, "--"]).arg(folder.path()).stderr(Stdio::null());
            let mut found_by_it = None;
            let theirs = best(|| found_by_it = lines_of(&mut command));
            if let Some(found_by_it) = found_by_it {
                assert_eq!(found, found_by_it, "both find the same files");
                print!(", {program} {option} {} ms", theirs.as_millis());
            }
        }
        println!();
    }
}

/// The first round warms the file cache and is not counted.
fn best(mut round: impl FnMut()) -> Duration {
    round();
    let times = (0..ROUNDS).map(|_| {
        let began = Instant::now();
        round();
        began.elapsed()
    });
    times.min().unwrap_or_default()
}

/// A hundred files per folder, about three kilobytes each; one in a hundred has the word.
fn grow(root: &Path, files: usize) {
    for number in 0..files {
        let folder = root.join(format!("part{}/folder{}", number / 10_000, number / 100));
        if number % 100 == 0 {
            std::fs::create_dir_all(&folder).expect("made");
        }
        let mut text = String::new();
        for line in 0..60 {
            text.push_str(&format!(
                "    let value_{line} = compute({number}, {}); // some hay\n",
                number * line
            ));
        }
        if number % 100 == 7 {
            text.push_str("needle_in_hay\n");
        }
        std::fs::write(folder.join(format!("file{number}.rs")), text).expect("written");
    }
}

/// `None` when there is no such program.
fn lines_of(command: &mut Command) -> Option<usize> {
    let output = command.output().ok()?;
    Some(output.stdout.iter().filter(|byte| **byte == b'\n').count())
}

async fn grep_files(root: &Path, pattern: &str) -> usize {
    let call = ToolCall {
        call_id: "call".to_owned(),
        name: "grep_files".to_owned(),
        namespace: None,
        payload: ToolPayload::Function { arguments: json!({"pattern": pattern, "limit": 2_000}).to_string() },
    };
    let caller = Caller {
        scope: Default::default(),
        thread_id: "thread".to_owned().into(),
        turn_id: "turn".to_owned().into(),
        sink: Arc::new(Nobody),
        bench: Arc::new(bench()),
        grants: GrantedPermissionProfile { network: None, file_system: None },
    };
    let outcome = Registry::builtin().run(call, Arc::new(step(root)), caller).await;
    let FunctionCallOutputBody::Text(text) = outcome.output else { panic!("one text") };
    text.lines().count()
}

#[derive(Debug)]
struct Nobody;

impl Sink for Nobody {
    fn notify(&self, _: ServerNotification) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn propose(&self, _: Proposal) -> BoxFuture<'_, ProposalDecision> {
        Box::pin(std::future::ready(ProposalDecision::declined()))
    }

    fn notify_later(&self, _: ServerNotification) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn end_item(&self, _: ThreadItem) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

fn bench() -> Bench {
    Bench::new(BenchOptions::bare("/bin/sh"))
}

fn step(root: &Path) -> Step {
    Step {
        model: ModelInfo { truncation: Truncation::Bytes(usize::MAX), ..ModelInfo::unknown("none") },
        approval_policy: AskForApproval::Never,
        sandbox: SandboxPolicy::DangerFullAccess,
        shell: "sh".to_owned(),
        current_date: "2026-01-01".to_owned(),
        ..Step::bare("none", root.to_str().expect("a plain path"))
    }
}
