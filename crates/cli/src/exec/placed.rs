//! `oarlock exec --placement`: the turn runs elsewhere, through a host that lives as long as this command.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use host::{
    BoxFuture, ClientReply, HostClients, HostLimits, HostOptions, ReplicaOptions, TaskHost, TaskTimes,
    ToolCallEnd, ToolProvider, WantedTool,
};
use protocol::{
    AgentMessageDelta, DeprecationNotice, DynamicToolCallParams, ItemCompleted, ItemStarted, ModelRerouted,
    NotificationMethod, Operation, PlacementChoice, PlacementProgressStep, PlanDelta,
    ReasoningSummaryPartAdded, ReasoningSummaryTextDelta, ServerNotification, SessionSource, Task, ThreadId,
    ThreadStartResponse, ThreadTokenUsageUpdated, TurnCompleted, TurnId, TurnInterruptParams,
    TurnPlanUpdated, TurnStartParams, TurnStarted, TurnStatus, UserInput,
};
use runtime::config::{LoadRequest, Loader, LoaderOptions};
use runtime::{Runtime, RuntimeOptions, SystemClock};
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use store::{SqliteOptions, TaskStore};
use tokio::sync::{mpsc, oneshot};

use super::args::ExecJob;
use super::{ExecScreen, ExecTask, image_url};
use crate::exec::ExecPlan;
use crate::host::places::{self, OwnEndpoints, PlaceArgs};
use crate::private_folder::private_temporary;
use crate::session::{StopRequests, TurnAudience, TurnEnding, TurnOutput, TurnWork};
use crate::terminal::Heading;

/// Notifications that may wait for the screen; after that the runtime waits.
const WAITING: usize = 256;
/// The name under which this program decides and starts things.
const BY: &str = "client:exec";
/// How long the runtime of the turn may take to end.
const CLOSING_LIMIT: Duration = Duration::from_secs(30);

pub(super) async fn drive(
    plan: &ExecPlan,
    job: &ExecJob,
    task: &ExecTask,
    place: &str,
) -> Result<TurnEnding> {
    let TurnWork::Prompt { input, output_schema } = task.work(plan) else {
        bail!("--placement runs a prompt; reviews run on this machine");
    };
    let scratch = private_temporary("oarlock-exec")?;
    let (host, mut heard) = open_host(plan, job, scratch.path()).await?;
    let mut screen = ExecScreen::new(plan, job);
    let mut params = plan.start_params();
    // Paths of this machine mean nothing there.
    params.cwd = None;
    params.model_provider = None;
    params.ephemeral = None;
    params.placement = Some(PlacementChoice::Named(place.to_owned()));
    // Whatever fails, the place is removed.
    let ending = async {
        let starting = host.start_thread(params, BY, "");
        let mut steps = ProgressLines { is_shown: !job.options.json, last: None };
        let opened = until(starting, &mut heard, |told| steps.show(&told)).await?;
        let opened: ThreadStartResponse = serde_json::from_str(opened.get())?;
        screen.opened_in(&opened, place, &task.shown(), &plan.warnings)?;
        let turn = PlacedTurn { host: &host, thread: opened.thread.id.clone() };
        turn.run(inlined(input)?, output_schema, &mut heard, &mut screen).await
    }
    .await;
    // The record was for this turn alone, and so was the place.
    host.shut_down(CLOSING_LIMIT).await;
    remove_all(&host).await;
    ending
}

async fn remove_all(host: &TaskHost) {
    for placement in host.list_placements().await.unwrap_or_default() {
        for task in &placement.thread_ids {
            let _ = host.delete_task(task, BY).await;
        }
        if let Err(error) = host.delete_placement(&placement.id, BY).await {
            eprintln!("oarlock: placement {} is still there: {error}", placement.id);
        }
    }
}

async fn open_host(
    plan: &ExecPlan,
    job: &ExecJob,
    scratch: &Path,
) -> Result<(TaskHost, mpsc::Receiver<ServerNotification>)> {
    let mut flags = job.options.flags.pairs()?;
    let chosen = job.options.provider.iter().map(|id| ("model_provider".to_owned(), format!("{id:?}")));
    flags.extend(chosen);
    let loader = Loader::new(plan.loader.home().clone(), flags.clone(), LoaderOptions::default());
    let config = loader.load(&LoadRequest { cwd: Some(plan.folder.clone()), ..LoadRequest::default() })?;
    let (told, _) = mpsc::channel(1);
    let runtime = Runtime::new(RuntimeOptions {
        loader,
        audience: Arc::new(TurnAudience { told }),
        clock: Arc::new(SystemClock),
        catalogue: plan.catalogue.clone(),
        source: SessionSource::Exec,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        store: crate::logging::store_options(),
        traces: None,
    });
    let path = scratch.join("tasks.sqlite");
    let clock = Arc::new(SystemClock);
    let store = TaskStore::open_sqlite(&SqliteOptions { path, clock, is_synced: false }).await?;
    let (told, heard) = mpsc::channel(WAITING);
    let args = PlaceArgs::embedded(job.options.runtime.clone());
    // Everything of the host is in it. Commands can write among temporary files.
    let own = OwnEndpoints { files: vec![scratch.to_owned()], is_temporary: true, ..OwnEndpoints::default() };
    let places = places::options(&args, &config, &flags, &own, scratch.join("blobs"))?;
    let options = HostOptions {
        replica: ReplicaOptions::embedded(),
        times: TaskTimes { idle_after_ms: 60_000, suspend_after_ms: 600_000 },
        provider: crate::host::carried(&runtime, &config).await?,
        launcher: Arc::new(places::launcher(&places)),
        places,
        address: "exec".to_owned(),
        limits: HostLimits::default(),
        records: scratch.join("tasks"),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        clock: Arc::new(SystemClock),
        tracer: runtime.tracer().clone(),
    };
    let host = TaskHost::open(store, Arc::new(ScreenClients { told }), options).await?;
    Ok((host, heard))
}

/// Awaits something while passing on what is heard meanwhile.
async fn until<T>(
    wanted: impl Future<Output = T>,
    heard: &mut mpsc::Receiver<ServerNotification>,
    mut each: impl FnMut(ServerNotification),
) -> T {
    tokio::pin!(wanted);
    loop {
        tokio::select! {
            done = &mut wanted => return done,
            Some(told) = heard.recv() => each(told),
        }
    }
}

/// One line on standard error for each step.
struct ProgressLines {
    is_shown: bool,
    last: Option<PlacementProgressStep>,
}

impl ProgressLines {
    fn show(&mut self, told: &ServerNotification) {
        let ServerNotification::PlacementProgress(told) = told else { return };
        let is_new = self.last.as_ref() != Some(&told.step);
        self.last = Some(told.step);
        if self.is_shown && is_new {
            let step = serde_json::to_value(told.step).unwrap_or_default();
            eprintln!("placement: {}", step.as_str().unwrap_or_default());
        }
    }
}

struct PlacedTurn<'a> {
    host: &'a TaskHost,
    thread: ThreadId,
}

impl PlacedTurn<'_> {
    /// The first Ctrl-C or SIGTERM stops the turn, the second one the process.
    async fn run(
        &self,
        input: Vec<UserInput>,
        output_schema: Option<serde_json::Value>,
        heard: &mut mpsc::Receiver<ServerNotification>,
        screen: &mut ExecScreen,
    ) -> Result<TurnEnding> {
        let mut stop = StopRequests::new()?;
        let mut params = json!({ "threadId": self.thread, "input": input });
        if let Some(schema) = output_schema {
            params["outputSchema"] = schema;
        }
        let params: TurnStartParams = protocol::from_value(&params)?;
        let (told, answer) = oneshot::channel();
        self.host.start_turn(params, BY, move |turn| drop(told.send(turn))).await;
        let mut waiting = Vec::new();
        let turn = until(answer, heard, |told| waiting.push(told)).await;
        let turn = turn.context("the host has ended")??;
        let mut ending = TurnEnding::default();
        let mut waiting = waiting.into_iter();
        while ending.status == TurnStatus::InProgress {
            let notification = match waiting.next() {
                Some(told) => told,
                None => tokio::select! {
                    told = heard.recv() => told.context("the host has ended")?,
                    exit_code = stop.asked() => {
                        if stop.count > 1 {
                            std::process::exit(i32::from(exit_code));
                        }
                        ending.stopped = Some(exit_code);
                        self.interrupt(&turn.id).await;
                        continue;
                    }
                },
            };
            ending.learn(&turn.id, &notification);
            screen.heard(&notification).context("the output cannot be written")?;
        }
        Ok(ending)
    }

    async fn interrupt(&self, turn: &TurnId) {
        let params = TurnInterruptParams { thread_id: self.thread.clone(), turn_id: turn.clone() };
        self.host.interrupt_turn(&self.thread, &params, BY, |_| ()).await;
    }
}

/// Images of this machine go along with the text.
fn inlined(input: Vec<UserInput>) -> Result<Vec<UserInput>> {
    let inline = |input: UserInput| {
        let UserInput::LocalImage { path } = input else { return Ok(input) };
        let url = image_url(Path::new(&path)).with_context(|| format!("--image {path}"))?;
        Ok(UserInput::Image { url })
    };
    input.into_iter().map(inline).collect()
}

impl ExecScreen {
    fn opened_in(
        &mut self,
        opened: &ThreadStartResponse,
        place: &str,
        prompt: &str,
        warnings: &[String],
    ) -> io::Result<()> {
        let heading = Heading {
            title: format!("oarlock {}", env!("CARGO_PKG_VERSION")),
            facts: vec![
                ("placement", place.to_owned()),
                ("folder", opened.cwd.clone()),
                ("model", format!("{} (provider {})", opened.model, opened.model_provider)),
                ("sandbox", super::sandbox_word(&opened.sandbox)),
                ("thread", format!("{} (not recorded)", opened.thread.id)),
            ],
            prompt: prompt.to_owned(),
        };
        self.begun(&opened.thread.id, &heading, warnings.iter())
    }
}

/// The notifications that a screen shows. The rest is for clients that follow more than one turn.
fn shown(method: &str, params: &RawValue) -> Option<ServerNotification> {
    fn read<T: serde::de::DeserializeOwned>(
        params: &RawValue,
        wrap: fn(T) -> ServerNotification,
    ) -> Option<ServerNotification> {
        serde_json::from_str(params.get()).ok().map(wrap)
    }
    use ServerNotification as N;
    match method {
        AgentMessageDelta::METHOD => read(params, N::AgentMessageDelta),
        DeprecationNotice::METHOD => read(params, N::DeprecationNotice),
        protocol::Error::METHOD => read(params, N::Error),
        ItemCompleted::METHOD => read(params, N::ItemCompleted),
        ItemStarted::METHOD => read(params, N::ItemStarted),
        ModelRerouted::METHOD => read(params, N::ModelRerouted),
        PlanDelta::METHOD => read(params, N::PlanDelta),
        ReasoningSummaryPartAdded::METHOD => read(params, N::ReasoningSummaryPartAdded),
        ReasoningSummaryTextDelta::METHOD => read(params, N::ReasoningSummaryTextDelta),
        ThreadTokenUsageUpdated::METHOD => read(params, N::ThreadTokenUsageUpdated),
        TurnCompleted::METHOD => read(params, N::TurnCompleted),
        TurnPlanUpdated::METHOD => read(params, N::TurnPlanUpdated),
        TurnStarted::METHOD => read(params, N::TurnStarted),
        _ => None,
    }
}

/// The screen as the only client of the host. Nobody is there to agree to anything.
#[derive(Debug)]
struct ScreenClients {
    told: mpsc::Sender<ServerNotification>,
}

impl ScreenClients {
    fn tell(&self, notification: ServerNotification) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            // Nobody listens any more once the turn is over.
            let _ = self.told.send(notification).await;
        })
    }
}

impl HostClients for ScreenClients {
    fn relay<'a>(
        &'a self,
        _: &'a ThreadId,
        method: &'a str,
        params: &'a RawValue,
        _: Option<u64>,
    ) -> BoxFuture<'a, ()> {
        match shown(method, params) {
            Some(notification) => self.tell(notification),
            None => Box::pin(std::future::ready(())),
        }
    }

    fn notify<'a>(&'a self, _: &'a ThreadId, notification: ServerNotification) -> BoxFuture<'a, ()> {
        self.tell(notification)
    }

    fn operation_updated(&self, _: Operation) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn is_watched(&self) -> bool {
        false
    }

    fn task_updated(&self, _: Task) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn placement_changed<'a>(
        &'a self,
        _: &'a ThreadId,
        notification: ServerNotification,
    ) -> BoxFuture<'a, ()> {
        self.tell(notification)
    }

    fn ask(&self, _: &ThreadId, _: &str, _: Box<RawValue>) -> BoxFuture<'static, Option<ClientReply>> {
        let declined = to_raw_value(&json!({ "decision": "decline" })).ok();
        let reply = declined.map(|result| ClientReply { by: BY.to_owned(), result: Some(result) });
        Box::pin(std::future::ready(reply))
    }

    fn provider(&self, _: WantedTool) -> BoxFuture<'static, ToolProvider> {
        Box::pin(std::future::pending())
    }

    fn call_tool(
        &self,
        _: &ToolProvider,
        _: &ThreadId,
        _: DynamicToolCallParams,
    ) -> BoxFuture<'static, ToolCallEnd> {
        Box::pin(std::future::ready(ToolCallEnd::NotSent))
    }

    fn is_followed(&self, _: &ThreadId) -> bool {
        true
    }

    fn child_appeared(&self, _: &ThreadId, _: &ThreadId) {}
}
