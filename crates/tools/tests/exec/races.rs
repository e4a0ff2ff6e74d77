//! Approvals, rejections and interrupts at random moments: nothing runs without approval, and every open item is ended.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use engine::{Proposal, ProposalDecision, ToolCall, ToolPayload};
use oarlock_tools::{BoxFuture, Caller, Registry, Sink};
use protocol::{AskForApproval, ServerNotification, ThreadItem};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::stage::Stage;

const ROUNDS: u64 = 100;

/// Behaves like the engine: waits for answers, and withdraws questions on an interrupt.
#[derive(Debug, Default)]
struct Table {
    waiting: Mutex<Option<oneshot::Sender<ProposalDecision>>>,
    asked: tokio::sync::Notify,
    interrupted: AtomicBool,
    /// Started, and the engine has sent no end.
    begun: AtomicBool,
    ended: AtomicUsize,
}

impl Sink for Table {
    fn notify(&self, _: ServerNotification) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn propose(&self, proposal: Proposal) -> BoxFuture<'_, ProposalDecision> {
        let mut waiting = self.waiting.lock().expect("nobody panics here");
        if self.interrupted.load(Ordering::SeqCst) {
            // The engine knows that the operation will not continue, and ends it itself.
            self.begun.store(false, Ordering::SeqCst);
            return Box::pin(std::future::ready(ProposalDecision::declined()));
        }
        if proposal.question.is_none() {
            self.begun.store(true, Ordering::SeqCst);
            return Box::pin(std::future::ready(ProposalDecision::approved(false)));
        }
        let (answer, wait) = oneshot::channel();
        *waiting = Some(answer);
        drop(waiting);
        self.asked.notify_one();
        Box::pin(async move { wait.await.unwrap_or(ProposalDecision::declined()) })
    }

    fn notify_later(&self, _: ServerNotification) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn end_item(&self, _: ThreadItem) -> BoxFuture<'_, ()> {
        self.ended.fetch_add(1, Ordering::SeqCst);
        Box::pin(std::future::ready(()))
    }
}

impl Table {
    /// Whether the question was still open.
    fn answer(&self, decided: ProposalDecision) -> bool {
        let mut waiting = self.waiting.lock().expect("nobody panics here");
        let Some(answer) = waiting.take() else { return false };
        self.begun.store(decided.is_approved(), Ordering::SeqCst);
        let _ = answer.send(decided);
        true
    }

    fn interrupt(&self) {
        let mut waiting = self.waiting.lock().expect("nobody panics here");
        self.interrupted.store(true, Ordering::SeqCst);
        if waiting.take().is_some() {
            self.begun.store(false, Ordering::SeqCst);
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Untrusted,
    Escalated,
    Denied,
}

#[derive(Debug, Clone, Copy)]
struct Case {
    tool: &'static str,
    tty: bool,
    kind: Kind,
}

fn cases() -> Vec<Case> {
    let tools = [("exec_command", false), ("exec_command", true), ("shell", false), ("shell_command", false)];
    let kinds = [Kind::Untrusted, Kind::Escalated, Kind::Denied];
    tools.iter().flat_map(|(tool, tty)| kinds.map(|kind| Case { tool, tty: *tty, kind })).collect()
}

fn arguments(case: Case, trace: &Path) -> Value {
    let script = format!("touch {}", trace.display());
    let mut arguments = match case.tool {
        "exec_command" => json!({"cmd": script, "tty": case.tty, "yield_time_ms": 30_000}),
        "shell" => json!({"command": ["touch", trace], "timeout_ms": 60_000}),
        _ => json!({"command": script, "timeout_ms": 60_000}),
    };
    if case.kind == Kind::Escalated {
        arguments["sandbox_permissions"] = json!("require_escalated");
    }
    arguments
}

/// The same numbers in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

async fn round(stage: &Stage, case: Case, trace: PathBuf, dice: &mut Dice) {
    let table = Arc::new(Table::default());
    let caller = Caller {
        scope: Default::default(),
        thread_id: "thread".to_owned().into(),
        turn_id: "turn".to_owned().into(),
        sink: table.clone(),
        bench: stage.bench.clone(),
        grants: stage.grants.clone(),
    };
    let payload = ToolPayload::Function { arguments: arguments(case, &trace).to_string() };
    let call = ToolCall { call_id: "call".to_owned(), name: case.tool.to_owned(), namespace: None, payload };
    let mut call = tokio::spawn(Registry::builtin().run(call, Arc::new(stage.step.clone()), caller));
    let (action, pause) = (dice.roll(3), Duration::from_micros(dice.roll(3_000)));
    let (before, after) = (Duration::from_micros(dice.roll(30_000)), Duration::from_micros(dice.roll(5_000)));
    let mut accepted = false;
    match action {
        // An interrupt at any time, with or without a question.
        0 => tokio::time::sleep(before).await,
        1 => {
            asked_or_over(&table, &mut call).await;
            tokio::time::sleep(pause).await;
            table.answer(ProposalDecision::declined());
        }
        _ => {
            asked_or_over(&table, &mut call).await;
            tokio::time::sleep(pause).await;
            accepted = table.answer(ProposalDecision::approved(true));
            tokio::time::sleep(after).await;
        }
    }
    // A second answer has no effect.
    table.answer(ProposalDecision::declined());
    if dice.roll(2) == 0 || action == 0 {
        table.interrupt();
        call.abort();
    }
    until_over(&mut call).await;
    if case.tool == "exec_command" {
        stage.bench.clear_terminals().await;
        let must_end = usize::from(table.begun.load(Ordering::SeqCst));
        assert_eq!(table.ended.load(Ordering::SeqCst), must_end, "{case:?} after action {action}");
    }
    assert!(accepted || !trace.exists(), "{case:?} ran without a yes");
}

type Call = tokio::task::JoinHandle<engine::ToolOutcome>;

/// Returns when a question is open or the call has ended: a command that the sandbox stopped too late is not asked
/// about.
async fn asked_or_over(table: &Table, call: &mut Call) {
    tokio::select! {
        () = table.asked.notified() => {}
        () = until_over(call) => {}
    }
}

async fn until_over(call: &mut Call) {
    if !call.is_finished() {
        // Cancelled or finished.
        let _ = call.await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_runs_without_approval() {
    let all: Vec<_> =
        cases().into_iter().zip(1..).map(|(case, seed)| tokio::spawn(one_case(case, seed))).collect();
    assert_eq!(all.len(), 12);
    for case in all {
        case.await.expect("it holds");
    }
}

async fn one_case(case: Case, seed: u64) {
    let (approval, sandbox) = match case.kind {
        Kind::Untrusted => (AskForApproval::Untrusted, json!({"type": "dangerFullAccess"})),
        Kind::Escalated => (AskForApproval::OnRequest, json!({"type": "readOnly"})),
        Kind::Denied => (AskForApproval::OnFailure, json!({"type": "readOnly"})),
    };
    let stage = Stage::asking(approval, sandbox, |_| panic!("the table answers"));
    let mut dice = Dice(seed);
    for number in 0..ROUNDS {
        round(&stage, case, stage.path(&format!("trace{number}")), &mut dice).await;
    }
}
