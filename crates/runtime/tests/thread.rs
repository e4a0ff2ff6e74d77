//! Threads from the outside: a scripted model, a real journal, an audience that writes down what it hears.
#![allow(clippy::expect_used, reason = "a test may panic")]

mod support;

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use engine::{ModelInfo, Step, ThreadSeed, ToolKind, ToolOutcome, ToolSpec, Truncation};
use journal::{Store, StoreOptions};
use model_http::Script;
use oarlock_runtime::{
    Audience, BoxFuture, Question, Reply, RuntimeError, Services, SettingsChange, StepMaker, SystemClock,
    ThreadHandle, ThreadPlan, ThreadSettings, ToolJob, ToolRunner, TurnOptions, open_thread,
};
use protocol::{
    AskForApproval, DynamicToolCallOutputContentItem, DynamicToolCallParams, DynamicToolCallResponse,
    SandboxPolicy, ServerNotification, ThreadId, ThreadStatus, TurnId, TurnStatus,
};
use serde_json::json;
use support::{THREAD, bench, meta, said, settings};
use tokio::sync::watch;

/// What clients hear, by method.
#[derive(Debug)]
struct Ears {
    heard: Mutex<Vec<ServerNotification>>,
    count: watch::Sender<usize>,
}

impl Audience for Ears {
    fn tell<'a>(&'a self, _: &'a ThreadId, notification: ServerNotification) -> BoxFuture<'a, ()> {
        self.heard.lock().expect("not poisoned").push(notification);
        self.count.send_modify(|count| *count += 1);
        Box::pin(async {})
    }

    fn call_tool(
        &self,
        params: DynamicToolCallParams,
    ) -> BoxFuture<'static, Result<DynamicToolCallResponse, String>> {
        let text = format!("looked up {}", params.arguments["id"]);
        let content_items = vec![DynamicToolCallOutputContentItem::InputText { text }];
        Box::pin(async { Ok(DynamicToolCallResponse { content_items, success: true }) })
    }

    fn ask(&self, _: Question) -> BoxFuture<'static, Result<Reply, String>> {
        Box::pin(async { Err("nobody is asked here".to_owned()) })
    }
}

#[derive(Debug)]
struct Plans;

impl ToolRunner for Plans {
    fn run(&self, job: ToolJob) -> BoxFuture<'static, ToolOutcome> {
        Box::pin(async move {
            assert!(job.call.call_id != "bad", "a defect in a tool");
            ToolOutcome::text(format!("{} done", job.call.name))
        })
    }
}

#[derive(Debug)]
struct Fixed {
    panics: bool,
}

impl StepMaker for Fixed {
    fn capture(&self, settings: &ThreadSettings) -> Step {
        assert!(!self.panics, "a defect in one thread's settings");
        let tool = |name: &str, kind| ToolSpec {
            name: name.to_owned(),
            kind,
            json: Some(Arc::new(json!({ "type": "function", "name": name }))),
            parallel: true,
            gate: engine::Gate::Open,
            effects: Default::default(),
        };
        Step {
            model: ModelInfo {
                slug: "offline".into(),
                context_window: None,
                effective_window_percent: 95,
                auto_compact_token_limit: None,
                supports_reasoning_summaries: false,
                supports_parallel_tool_calls: false,
                truncation: Truncation::Bytes(10_000),
                stream_max_retries: 0,
            },
            base_instructions: "Be useful.".into(),
            approval_policy: AskForApproval::Never,
            sandbox: SandboxPolicy::DangerFullAccess,
            shell: "bash".into(),
            current_date: "2026-11-15".into(),
            tools: vec![tool("update_plan", ToolKind::Builtin), tool("lookup", ToolKind::Dynamic)],
            ..Step::bare("offline", &settings.cwd)
        }
    }
}

struct Room {
    store: Arc<Store>,
    ears: Arc<Ears>,
    script: Script,
}

impl Room {
    fn new(root: &Path, script: &serde_json::Value) -> Self {
        let store = Arc::new(Store::open(root, StoreOptions::default()).expect("a store"));
        let ears = Arc::new(Ears { heard: Mutex::default(), count: watch::channel(0).0 });
        Self { store, ears, script: Script::from_json(&script.to_string()).expect("a script") }
    }

    fn open(&self, seed: ThreadSeed, journal: Option<journal::ThreadJournal>, panics: bool) -> ThreadHandle {
        let services = Services {
            store: self.store.clone(),
            audience: self.ears.clone(),
            tools: Arc::new(Plans),
            clock: Arc::new(SystemClock),
            steps: Arc::new(Fixed { panics }),
        };
        let transport = Arc::new(self.script.clone());
        let plan = ThreadPlan {
            meta: meta(),
            seed,
            journal,
            ephemeral: false,
            host_record: None,
            settings: settings(),
            transport,
            recovered: Vec::new(),
            bench: bench(),
        };
        open_thread(services, plan)
    }

    fn fresh(&self) -> ThreadHandle {
        self.open(seed(), None, false)
    }

    fn resumed(&self) -> ThreadHandle {
        let resumed = self.store.resume(&ThreadId::new(THREAD)).expect("resumed");
        let history = resumed.history;
        let seed = ThreadSeed {
            history: history.model,
            usage: history.token_usage,
            context: history.told_context,
            ..seed()
        };
        self.open(seed, Some(resumed.journal), false)
    }

    /// Waits until this method has been heard so often.
    async fn heard(&self, method: &str, times: usize) {
        let mut count = self.ears.count.subscribe();
        let enough = || self.methods().iter().filter(|heard| heard.as_str() == method).count() >= times;
        count.wait_for(|_| enough()).await.expect("the audience lives");
    }

    fn methods(&self) -> Vec<String> {
        self.ears.heard.lock().expect("not poisoned").iter().map(|heard| heard.method().to_owned()).collect()
    }

    fn turns(&self) -> Vec<protocol::Turn> {
        self.store.read(&ThreadId::new(THREAD)).expect("a stored thread").history.turns
    }
}

fn seed() -> ThreadSeed {
    ThreadSeed::new(ThreadId::new(THREAD))
}

fn turn(id: &str, text: &str) -> TurnOptions {
    TurnOptions {
        turn_id: TurnId::new(id),
        text: said(text),
        output_schema: None,
        change: SettingsChange::default(),
        service_tier: None,
    }
}

#[tokio::test]
async fn a_turn_runs_and_is_there_tomorrow() {
    let root = tempfile::tempdir().expect("a folder");
    let script = json!([
        { "call": { "name": "update_plan", "arguments": {}, "callId": "c1" } },
        { "call": { "name": "lookup", "arguments": { "id": 7 }, "callId": "c2" } },
        { "text": "hello" },
        { "expect": { "lastUserContains": "again" }, "text": "once more" }
    ]);
    let room = Room::new(root.path(), &script);
    let thread = room.fresh();
    assert_eq!(thread.start_turn(turn("u1", "hi")).await, Ok(TurnId::new("u1")));
    room.heard("turn/completed", 1).await;
    assert_eq!(thread.status(), ThreadStatus::Idle);
    thread.close().await.expect("closed");
    assert!(matches!(thread.interrupt(None).await, Err(RuntimeError::Gone(_))));

    let thread = room.resumed();
    thread.start_turn(turn("u2", "again")).await.expect("accepted");
    room.heard("turn/completed", 2).await;
    room.script.finish().expect("every step was used");
    let turns = room.turns();
    assert_eq!(turns.iter().map(|turn| turn.status).collect::<Vec<_>>(), [TurnStatus::Completed; 2]);
    // The user's words, the client's tool and the answer; a plan is not an item.
    assert_eq!(turns[0].items.len(), 3, "{:?}", turns[0].items);
    let requests = room.script.requests();
    let last = serde_json::to_string(&requests[3].input).expect("serialises");
    for text in ["hi", "update_plan done", "looked up 7", "hello", "again"] {
        assert!(last.contains(text), "{text} is missing from {last}");
    }
}

#[tokio::test]
async fn an_accepted_prompt_is_on_the_disk_and_an_interrupt_ends_the_turn() {
    let root = tempfile::tempdir().expect("a folder");
    let room = Room::new(root.path(), &json!([{ "events": [], "hang": true }]));
    let thread = room.fresh();
    thread.start_turn(turn("u1", "hi")).await.expect("accepted");
    let stored = room.turns();
    assert_eq!((stored.len(), stored[0].items.len()), (1, 1), "the prompt is stored once it is accepted");
    assert_eq!(
        thread.start_turn(turn("u2", "and this")).await,
        Ok(TurnId::new("u1")),
        "it joins the running turn"
    );
    let other = thread.steer(TurnId::new("u9"), said("x")).await;
    let (expected, found) = (TurnId::new("u9"), TurnId::new("u1"));
    assert_eq!(other, Err(RuntimeError::OtherTurn { expected, found }));
    let other = thread.interrupt(Some(TurnId::new("u9"))).await;
    assert!(matches!(other, Err(RuntimeError::OtherTurn { .. })), "{other:?}");
    thread.interrupt(None).await.expect("interrupted");
    room.heard("turn/completed", 1).await;
    let turns = room.turns();
    assert_eq!(turns[0].status, TurnStatus::Interrupted);
    let shown = serde_json::to_string(&turns[0].items).expect("serialises");
    assert!(shown.contains("and this"), "what was accepted is not lost: {shown}");
    assert_eq!(thread.interrupt(None).await, Err(RuntimeError::NothingToInterrupt));
}

#[tokio::test]
async fn a_lost_record_fails_the_turn_and_not_the_process() {
    let root = tempfile::tempdir().expect("a folder");
    let room = Room::new(root.path(), &json!([{ "text": "one" }]));
    let thread = room.fresh();
    thread.start_turn(turn("u1", "hi")).await.expect("accepted");
    room.heard("turn/completed", 1).await;
    let path = room.store.summary(thread.id()).expect("listed").path;
    fs::remove_file(path).expect("removed");
    let before = room.methods().len();
    let refused = thread.start_turn(turn("u2", "again")).await;
    assert!(matches!(&refused, Err(RuntimeError::Storage(_))), "{refused:?}");
    assert_eq!(room.methods().len(), before, "of a turn that was not accepted nothing is told");
    assert_eq!(thread.status(), ThreadStatus::Idle);
}

#[tokio::test]
async fn a_record_lost_in_the_middle_of_a_turn_fails_it() {
    let root = tempfile::tempdir().expect("a folder");
    let room = Room::new(root.path(), &json!([{ "events": [], "hang": true }]));
    let thread = room.fresh();
    thread.start_turn(turn("u1", "hi")).await.expect("accepted");
    room.heard("turn/started", 1).await;
    fs::remove_file(room.store.summary(thread.id()).expect("listed").path).expect("removed");
    let refused = thread.steer(TurnId::new("u1"), said("more")).await;
    assert!(matches!(&refused, Err(RuntimeError::Storage(_))), "{refused:?}");
    room.heard("turn/completed", 1).await;
    assert_eq!(thread.status(), ThreadStatus::SystemError);
    assert!(room.methods().contains(&"error".to_owned()));
}

#[tokio::test]
async fn a_tool_that_panics_is_a_failed_call_and_the_turn_goes_on() {
    let root = tempfile::tempdir().expect("a folder");
    let script = json!([
        { "call": { "name": "update_plan", "arguments": {}, "callId": "bad" } },
        { "expect": { "lastOutputContains": "defect in this program" }, "text": "noted" }
    ]);
    let room = Room::new(root.path(), &script);
    let thread = room.fresh();
    thread.start_turn(turn("u1", "hi")).await.expect("accepted");
    room.heard("turn/completed", 1).await;
    room.script.finish().expect("the model was told");
    assert_eq!(room.turns()[0].status, TurnStatus::Completed);
}

#[tokio::test]
async fn a_panic_marks_its_own_thread_and_nothing_else() {
    let root = tempfile::tempdir().expect("a folder");
    let room = Room::new(root.path(), &json!([{ "text": "fine" }]));
    let broken =
        room.open(ThreadSeed { id: ThreadId::new(THREAD.replace("0001", "0002")), ..seed() }, None, true);
    let gone = broken.start_turn(turn("u1", "hi")).await;
    assert!(matches!(gone, Err(RuntimeError::Gone(_))), "{gone:?}");
    room.heard("thread/status/changed", 1).await;
    assert_eq!(broken.status(), ThreadStatus::SystemError);
    let sound = room.fresh();
    sound.start_turn(turn("u1", "hi")).await.expect("accepted");
    room.heard("turn/completed", 1).await;
}
