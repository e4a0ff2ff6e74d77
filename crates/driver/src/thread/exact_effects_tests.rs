//! The driver performs effects exactly as the engine emitted them, whatever clients, models, tools and disks do.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use engine::{
    Effect, Proposal, Question, Reply, Step, ThreadSeed, ToolKind, ToolOutcome, ToolSpec, UserText,
};
use journal::{Store, StoreOptions};
use model_http::ModelScript;
use parking_lot::Mutex;
use proptest::prelude::*;
use protocol::{
    CommandExecutionApprovalDecision as Decision, DynamicToolCallParams, DynamicToolCallResponse,
    OperationType, ServerNotification, SessionMeta, ThreadId, ToolEffects, TurnId,
};
use serde_json::{Value, json};
use support::{Responder, SystemClock};
use tools::{Bench, BenchOptions, Sink};

use crate::audience::{Audience, BoxFuture};
use crate::services::{Services, ThreadPlan, open_thread};
use crate::thread::handle::{ThreadHandle, TurnOptions};
use crate::thread::settings::{SettingsChange, StepMaker, ThreadSettings};
use crate::thread::tool_jobs::{ToolJob, ToolRunner};
use crate::thread::trace::EffectTrace;

const THREAD: &str = "019a8b3c-0000-7000-8000-000000000009";

/// Stores every notification, and answers by the id of the call.
#[derive(Debug, Default)]
struct AnsweringClient(Mutex<Vec<ServerNotification>>);

impl Audience for AnsweringClient {
    fn notify<'a>(&'a self, _: &'a ThreadId, notification: ServerNotification) -> BoxFuture<'a, ()> {
        self.0.lock().push(notification);
        Box::pin(tokio::task::yield_now())
    }

    fn call_tool(
        &self,
        _: DynamicToolCallParams,
    ) -> BoxFuture<'static, Result<DynamicToolCallResponse, String>> {
        Box::pin(async { Ok(DynamicToolCallResponse { content_items: vec![], success: true }) })
    }

    fn ask(&self, question: Question) -> BoxFuture<'static, Result<Reply, String>> {
        let Question::Command(asked) = question else { return Box::pin(std::future::pending()) };
        let respond = Decision::Respond { content_items: vec![], success: true };
        let decision = match asked.item_id.as_str().get(..1) {
            Some("a") => Decision::Accept,
            Some("d") => Decision::Decline,
            Some("x") => Decision::Cancel,
            Some("r") => respond,
            _ => return Box::pin(std::future::pending()),
        };
        Box::pin(async move { Ok(Reply::Command(decision.into())) })
    }
}

/// Proposes one command for each call, and runs it until it is stopped if the call's id says so.
#[derive(Debug)]
struct CommandTools;

impl ToolRunner for CommandTools {
    fn run(&self, job: ToolJob) -> BoxFuture<'static, ToolOutcome> {
        Box::pin(async move {
            let id = job.call.call_id.clone();
            let item = json!({"type": "commandExecution", "id": id, "command": "x", "cwd": "/", "processId": null,
                "source": "agent", "status": "inProgress", "commandActions": [], "aggregatedOutput": null,
                "exitCode": null, "durationMs": null});
            let asked = json!({"threadId": "", "turnId": "", "itemId": "", "command": "x", "cwd": "/"});
            let question = (!id.starts_with('n') && !id.starts_with('h'))
                .then(|| Box::new(Question::Command(serde_json::from_value(asked).expect("a question"))));
            let decided = job
                .progress
                .propose(Proposal {
                    number: 0,
                    kind: OperationType::Command,
                    effects: ToolEffects::Once,
                    item: Some(Box::new(serde_json::from_value(item).expect("an item"))),
                    outlives: false,
                    arguments: json!({}),
                    digest: "sha256:d".to_owned(),
                    question,
                    session_keys: vec![],
                })
                .await;
            if id.starts_with('h') {
                std::future::pending::<()>().await;
            }
            match decided.is_approved() {
                true => ToolOutcome::text("ran"),
                false => ToolOutcome::failure("declined"),
            }
        })
    }
}

#[derive(Debug)]
struct Steps;

impl StepMaker for Steps {
    fn capture(&self, settings: &ThreadSettings, _: &[Arc<dyn tools::ToolSource>]) -> Step {
        let tool = |name: &str, kind| ToolSpec {
            namespace: None,
            name: name.to_owned(),
            kind,
            json: Some(Arc::new(json!({ "type": "function", "name": name }))),
            parallel: true,
            gate: engine::Gate::Open,
            effects: ToolEffects::Once,
        };
        let mut step = Step {
            tools: vec![tool("run", ToolKind::Builtin), tool("lookup", ToolKind::Dynamic)],
            recorded_with: Some(("host", Arc::new(json!({ "manualToolExecution": true })))),
            ..Step::bare("offline", &settings.cwd)
        };
        step.model.stream_max_retries = 0;
        step
    }
}

/// One step of a test.
#[derive(Debug, Clone, Copy)]
enum Move {
    Start,
    Interrupt,
    Suspend {
        when_pending: bool,
    },
    Resume,
    Compact,
    RollBack,
    /// The file of the record disappears, so that every later write fails.
    LoseRecord,
    /// Lets the thread run for a while.
    Wait(u8),
}

async fn play(thread: &ThreadHandle, store: &Store, number: usize, one: Move) {
    let turn_id = TurnId::new(format!("u{number}"));
    match one {
        Move::Start => {
            let (output_schema, change, service_tier) = (None, SettingsChange::default(), None);
            let text = UserText::typed("go");
            let options = TurnOptions { turn_id, text, output_schema, change, service_tier };
            let _ = thread.start_turn(options).await;
        }
        Move::Interrupt => drop(thread.interrupt(None).await),
        Move::Suspend { when_pending } => {
            let status = thread.snapshot(true).await;
            let Some(turn) =
                status.ok().and_then(|snapshot| snapshot.turns.last().map(|turn| turn.id.clone()))
            else {
                return;
            };
            let (answered, wait) = tokio::sync::oneshot::channel();
            let responder = Responder::new(move |outcome| drop(answered.send(outcome)));
            thread.suspend_then(Some(turn), when_pending, Duration::from_millis(20), responder).await;
            wait.await.expect("whoever suspends a turn is answered").ok();
        }
        Move::Resume => drop(thread.resume_turn(vec![], vec![]).await),
        Move::Compact => drop(thread.compact(turn_id).await),
        Move::RollBack => drop(thread.roll_back(1, turn_id).await),
        Move::LoseRecord => {
            // There is nothing to remove before the first turn, or a second time.
            if let Ok(row) = store.summary(thread.id()) {
                let _ = std::fs::remove_file(row.path);
            }
        }
        Move::Wait(times) => {
            for _ in 0..times {
                tokio::time::sleep(Duration::from_micros(300)).await;
            }
        }
    }
}

/// Performs the moves, closes the thread, and compares emitted with performed effects.
async fn run(folder: &Path, steps: &[Value], moves: &[Move]) -> EffectTrace {
    let trace = EffectTrace::renew();
    let store = Arc::new(Store::open(folder, StoreOptions::default()).expect("a store"));
    let client = Arc::new(AnsweringClient::default());
    let services = Services {
        tracer: traces::Tracer::default(),
        store: store.clone(),
        audience: client.clone(),
        tools: Arc::new(CommandTools),
        clock: Arc::new(SystemClock),
        steps: Arc::new(Steps),
    };
    let script = ModelScript::from_json(&json!(steps).to_string()).expect("a script");
    let plan = ThreadPlan {
        hooks: Default::default(),
        notify: Default::default(),
        meta: meta(THREAD),
        seed: ThreadSeed::new(ThreadId::new(THREAD)),
        journal: None,
        rollout: None,
        ephemeral: false,
        host_record: None,
        session: None,
        settings: ThreadSettings::bare("offline", "/repo"),
        transport: Arc::new(script),
        recovered: Vec::new(),
        bench: Arc::new(Bench::new(BenchOptions::bare("/bin/sh"))),
    };
    let thread = open_thread(services, plan);
    for (number, one) in moves.iter().enumerate() {
        let playing = play(&thread, &store, number, *one);
        tokio::time::timeout(Duration::from_secs(30), playing).await.expect("every command is answered");
    }
    thread.close().await.expect("closed");
    trace.check();
    assert_eq!(trace.notifications(), *client.0.lock(), "clients hear what was emitted, in order");
    trace
}

fn check(steps: &[Value], moves: &[Move]) -> EffectTrace {
    let folder = tempfile::tempdir().expect("a folder");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(run(folder.path(), steps, moves))
}

fn call(id: &str) -> Value {
    json!({ "call": { "name": "run", "arguments": {}, "callId": id } })
}

const LONG: Move = Move::Wait(60);

#[test]
fn a_turn_with_every_kind_of_call() {
    let lookup = json!({ "call": { "name": "lookup", "arguments": {}, "callId": "l" } });
    let steps = [
        call("n1"),
        call("a1"),
        call("d1"),
        call("r1"),
        lookup,
        json!({ "text": "done" }),
        json!({ "text": "x" }),
    ];
    let trace = check(&steps, &[Move::Start, LONG, LONG, LONG, Move::Compact, LONG, Move::RollBack]);
    assert!(trace.has(|effect| matches!(effect, Effect::Decide { .. })));
    assert!(trace.has(|effect| matches!(effect, Effect::ReadBack { .. })));
    assert!(trace.has(|effect| matches!(effect, Effect::Finish(_))));
}

#[test]
fn a_turn_that_is_stopped_while_a_command_runs() {
    let trace = check(&[call("h1")], &[Move::Start, LONG, Move::Interrupt]);
    assert!(trace.has(|effect| *effect == Effect::AwaitStopped));
    assert!(trace.has(|effect| matches!(effect, Effect::CancelTool { .. })));
}

#[test]
fn a_turn_that_is_suspended_and_resumed() {
    let steps = [call("w1"), json!({ "text": "done" })];
    for when_pending in [true, false] {
        let suspend = Move::Suspend { when_pending };
        let trace = check(&steps, &[Move::Start, LONG, suspend, Move::Resume, LONG, Move::Interrupt]);
        assert!(trace.has(|effect| *effect == Effect::Suspended));
        assert!(trace.has(|effect| matches!(effect, Effect::WithdrawQuestion { .. })));
    }
}

#[test]
fn a_record_that_is_lost_while_a_command_runs() {
    let trace =
        check(&[call("h1")], &[Move::Start, LONG, Move::LoseRecord, Move::Start, LONG, Move::Interrupt]);
    assert!(trace.has_lost_a_record());
    assert!(trace.has(|effect| matches!(effect, Effect::CancelTool { .. })), "what ran is stopped");
}

fn steps() -> impl Strategy<Value = Vec<Value>> {
    let ids = proptest::sample::select(vec!["n", "a", "d", "x", "r", "h", "w"]);
    let step = prop_oneof![
        4 => ids.prop_map(|kind| json!(kind)),
        3 => Just(json!({ "text": "done" })),
        1 => Just(json!({ "events": [], "hang": true })),
    ];
    proptest::collection::vec(step, 1..8).prop_map(|steps| {
        let named = |(number, step): (usize, Value)| match step.as_str() {
            Some(kind) => call(&format!("{kind}{number}")),
            None => step,
        };
        steps.into_iter().enumerate().map(named).collect()
    })
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = prop_oneof![
        5 => Just(Move::Start),
        2 => Just(Move::Interrupt),
        2 => any::<bool>().prop_map(|when_pending| Move::Suspend { when_pending }),
        2 => Just(Move::Resume),
        1 => Just(Move::Compact),
        1 => Just(Move::RollBack),
        1 => Just(Move::LoseRecord),
        6 => (0..12u8).prop_map(Move::Wait),
    ];
    proptest::collection::vec(one, 1..14)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens(steps in steps(), moves in moves()) {
        check(&steps, &moves);
    }
}

fn meta(thread: &str) -> SessionMeta {
    let meta = json!({
        "threadId": thread, "sessionId": thread, "createdAtMs": 1, "cwd": "/w", "originator": "test",
        "cliVersion": "0", "source": "appServer", "modelProvider": "p",
    });
    protocol::from_value(&meta).expect("who a thread is")
}
