//! Threads with a scripted model, a real journal and an audience that records notifications.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use engine::{ModelInfo, Step, ThreadSeed, ToolKind, ToolOutcome, ToolSpec, UserText};
use journal::{Store, StoreOptions, ThreadJournal};
use model_http::ModelScript;
use oarlock_runtime::{
    Audience, BoxFuture, Question, Reply, Services, SettingsChange, StepMaker, SystemClock, ThreadHandle,
    ThreadPlan, ThreadSettings, ToolJob, ToolRunner, TurnOptions, open_thread,
};
use protocol::{
    AskForApproval, DynamicToolCallOutputContentItem, DynamicToolCallParams, DynamicToolCallResponse,
    SandboxPolicy, ServerNotification, ThreadId, TurnId,
};
use serde_json::json;
use tokio::sync::watch;
use tokio::time::timeout;
use tools::Bench;

use crate::support::{THREAD, bench, meta, settings};

/// Timeout for events that must come.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// Records notifications.
#[derive(Debug)]
struct RecordingAudience {
    heard: Mutex<Vec<ServerNotification>>,
    count: watch::Sender<usize>,
}

impl Audience for RecordingAudience {
    fn notify<'a>(&'a self, _: &'a ThreadId, notification: ServerNotification) -> BoxFuture<'a, ()> {
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
struct DoneTools;

impl ToolRunner for DoneTools {
    fn run(&self, job: ToolJob) -> BoxFuture<'static, ToolOutcome> {
        Box::pin(async move {
            assert!(job.call.call_id != "bad", "a defect in a tool");
            ToolOutcome::text(format!("{} done", job.call.name))
        })
    }
}

/// Steps with two tools that differ only in their working directory.
#[derive(Debug)]
pub(crate) struct FixedSteps {
    pub(crate) panics: bool,
}

impl StepMaker for FixedSteps {
    fn capture(&self, settings: &ThreadSettings, _: &[Arc<dyn tools::ToolSource>]) -> Step {
        assert!(!self.panics, "a defect in one thread's settings");
        let tool = |name: &str, kind| ToolSpec {
            namespace: None,
            name: name.to_owned(),
            kind,
            json: Some(Arc::new(json!({ "type": "function", "name": name }))),
            parallel: true,
            gate: engine::Gate::Open,
            effects: Default::default(),
        };
        Step {
            model: ModelInfo { context_window: None, stream_max_retries: 0, ..ModelInfo::unknown("offline") },
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

pub(crate) struct ThreadStage {
    pub(crate) store: Arc<Store>,
    audience: Arc<RecordingAudience>,
    pub(crate) script: ModelScript,
}

impl ThreadStage {
    pub(crate) fn new(root: &Path, script: &serde_json::Value) -> Self {
        let store = Arc::new(Store::open(root, StoreOptions::default()).expect("a store"));
        let audience = Arc::new(RecordingAudience { heard: Mutex::default(), count: watch::channel(0).0 });
        Self { store, audience, script: ModelScript::from_json(&script.to_string()).expect("a script") }
    }

    pub(crate) fn open(
        &self,
        seed: ThreadSeed,
        journal: Option<ThreadJournal>,
        steps: Arc<dyn StepMaker>,
    ) -> ThreadHandle {
        self.open_with(bench(), seed, journal, steps)
    }

    /// A thread with its own tools and tool sources.
    pub(crate) fn open_with(
        &self,
        bench: Arc<Bench>,
        seed: ThreadSeed,
        journal: Option<ThreadJournal>,
        steps: Arc<dyn StepMaker>,
    ) -> ThreadHandle {
        let services = Services {
            tracer: oarlock_runtime::Tracer::default(),
            store: self.store.clone(),
            audience: self.audience.clone(),
            tools: Arc::new(DoneTools),
            clock: Arc::new(SystemClock),
            steps,
        };
        let mut meta = meta();
        meta.thread_id = seed.id.clone();
        let plan = ThreadPlan {
            hooks: Default::default(),
            notify: Default::default(),
            meta,
            seed,
            journal,
            rollout: None,
            ephemeral: false,
            host_record: None,
            session: None,
            settings: settings(),
            transport: Arc::new(self.script.clone()),
            recovered: Vec::new(),
            bench,
        };
        open_thread(services, plan)
    }

    pub(crate) fn fresh(&self) -> ThreadHandle {
        self.open(seed(), None, Arc::new(FixedSteps { panics: false }))
    }

    pub(crate) fn resumed(&self) -> ThreadHandle {
        let resumed = self.store.resume(&ThreadId::new(THREAD)).expect("resumed");
        let history = resumed.history;
        let seed = ThreadSeed {
            history: history.model,
            usage: history.token_usage,
            context: history.told_context,
            ..seed()
        };
        self.open(seed, Some(resumed.journal), Arc::new(FixedSteps { panics: false }))
    }

    /// Waits until this method was notified this often.
    pub(crate) async fn notified(&self, method: &str, times: usize) {
        let mut count = self.audience.count.subscribe();
        let enough = || self.methods().iter().filter(|heard| heard.as_str() == method).count() >= times;
        let waited = timeout(LONG, count.wait_for(|_| enough())).await;
        waited.unwrap_or_else(|_| panic!("{method} in {:?}", self.methods())).expect("the audience lives");
    }

    pub(crate) fn methods(&self) -> Vec<String> {
        let heard = self.audience.heard.lock().expect("not poisoned");
        heard.iter().map(|heard| heard.method().to_owned()).collect()
    }

    pub(crate) fn turns(&self) -> Vec<protocol::Turn> {
        self.store.read(&ThreadId::new(THREAD)).expect("a stored thread").history.turns
    }

    /// The input of the request with this number, as text.
    pub(crate) fn request(&self, number: usize) -> String {
        serde_json::to_string(&self.script.requests()[number].input).expect("serialises")
    }
}

pub(crate) fn seed() -> ThreadSeed {
    ThreadSeed::new(ThreadId::new(THREAD))
}

pub(crate) fn turn(id: &str, text: &str) -> TurnOptions {
    TurnOptions {
        turn_id: TurnId::new(id),
        text: UserText::typed(text),
        output_schema: None,
        change: SettingsChange::default(),
        service_tier: None,
    }
}
