//! Whatever environments are chosen, added or removed at any moment: each request's description, tools and calls use
//! the same environment.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::support::{Nobody, THREAD, bench, meta, settings};
use crate::thread_stage::LONG;
use engine::{
    EnvironmentState, Gate, Reach, Step, StepEnvironment, ThreadSeed, ToolKind, ToolOutcome, ToolSpec,
    UserText, effective_cwd,
};
use futures_util::stream::unfold;
use journal::{Store, StoreOptions};
use model::{EventStream, ModelFailure, ModelTransport, PreparedRequest, StreamEvent, parse_event};
use oarlock_runtime::{
    BoxFuture, Services, SettingsChange, StepMaker, SystemClock, ThreadHandle, ThreadPlan, ThreadSettings,
    ToolJob, ToolRunner, TurnOptions, open_thread,
};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use protocol::{
    ContentItem, EnvironmentId, EnvironmentSelection, ResponseItem, ThreadId, ThreadStatus, TurnId,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::{Semaphore, mpsc};

/// Overridden by `PROPTEST_CASES`; `scripts/figures` runs 1,000. Each changes the choice about six times.
const CASES: u32 = 300;
const IDS: [&str; 3] = ["a", "b", "c"];

/// An environment and a folder in it; `None` when nothing is attached.
type Spot = Option<(String, String)>;

/// The observed parts of one request.
#[derive(Debug, Default)]
struct Asked {
    told: Spot,
    offered: Spot,
    /// Where its calls ran.
    ran: Vec<Spot>,
}

/// Shared by the model, its tools, the step maker and the test.
#[derive(Debug)]
struct World {
    states: Mutex<HashMap<&'static str, EnvironmentState>>,
    asked: Mutex<Vec<Asked>>,
    /// Sends into the response to the last request.
    answer: Mutex<Option<mpsc::UnboundedSender<StreamEvent>>>,
    calls: Mutex<usize>,
    /// Permits for calls to end.
    ends: Semaphore,
}

impl World {
    fn new() -> Self {
        let states = IDS.map(|id| (id, EnvironmentState::Attached)).into();
        Self {
            states: Mutex::new(states),
            asked: Mutex::default(),
            answer: Mutex::default(),
            calls: Mutex::default(),
            ends: Semaphore::new(0),
        }
    }

    fn requests(&self) -> usize {
        self.asked.lock().expect("not poisoned").len()
    }

    /// Sends one more event of the last response, unless it has ended.
    fn say(&self, event: &Value) {
        let event = parse_event(&event.to_string()).expect("a good event").expect("a known event");
        let mut answer = self.answer.lock().expect("not poisoned");
        let is_last = event.is_terminal();
        if let Some(open) = &*answer {
            let _ = open.send(event);
        }
        if is_last {
            *answer = None;
        }
    }

    /// The model calls an offered tool, or, if none is offered, one from earlier requests.
    fn call(&self) {
        let offered = self.asked.lock().expect("not poisoned").last().and_then(|asked| asked.offered.clone());
        let name = offered.map_or("work_in_a".to_owned(), |(id, _)| format!("work_in_{id}"));
        let mut calls = self.calls.lock().expect("not poisoned");
        *calls += 1;
        let call_id = format!("{} {calls}", self.requests() - 1);
        let call = json!({"type": "function_call", "call_id": call_id, "name": name, "arguments": "{}"});
        self.say(&json!({"type": "response.output_item.done", "item": call}));
    }
}

impl ModelTransport for World {
    fn open(&self, request: PreparedRequest) -> EventStream {
        let (answer, events) = mpsc::unbounded_channel();
        *self.answer.lock().expect("not poisoned") = Some(answer);
        let told = told(&request.body.input);
        let offered = request.body.tools.iter().find_map(|tool| offered(tool));
        self.asked.lock().expect("not poisoned").push(Asked { told, offered, ran: Vec::new() });
        Box::pin(unfold(events, |mut events| async {
            let event: Option<Result<_, ModelFailure>> = events.recv().await.map(Ok);
            event.map(|event| (event, events))
        }))
    }
}

/// The fake tool's name is its environment, its description the folder.
fn offered(tool: &Value) -> Spot {
    let id = tool["name"].as_str()?.strip_prefix("work_in_")?;
    Some((id.to_owned(), tool["description"].as_str()?.to_owned()))
}

/// The working directory according to the context so far.
fn told(input: &[Arc<ResponseItem>]) -> Spot {
    let (mut attached, mut cwd) = (None, None);
    for text in input.iter().filter_map(|item| context_of(item)) {
        let between =
            |start: &str, end: &str| text.split_once(start)?.1.split_once(end).map(|(found, _)| found);
        cwd = between("<cwd>", "</cwd>").or(cwd);
        attached = match between("<environments>", "</environments>") {
            // No choice: this machine.
            None => Some("local"),
            Some(places) => places
                .split("<environment id=\"")
                .filter_map(|place| place.split_once("\" status=\"attached\">"))
                .map(|(id, _)| id)
                .next(),
        };
    }
    attached.map(|id| (id.to_owned(), cwd.unwrap_or_default().to_owned()))
}

fn context_of(item: &ResponseItem) -> Option<&str> {
    let ResponseItem::Message { content, .. } = item else { return None };
    content.iter().find_map(|part| match part {
        ContentItem::InputText { text } if text.starts_with("<environment_context>") => Some(text.as_str()),
        _ => None,
    })
}

#[derive(Debug)]
struct Hands(Arc<World>);

impl ToolRunner for Hands {
    fn run(&self, job: ToolJob) -> BoxFuture<'static, ToolOutcome> {
        let world = self.0.clone();
        Box::pin(async move {
            let ended = world.ends.acquire().await.expect("open");
            ended.forget();
            // Read when the work is done, however long that took.
            let spot = spot(&job.step);
            let request: usize =
                job.call.call_id.split(' ').next().and_then(|at| at.parse().ok()).expect("a request");
            world.asked.lock().expect("not poisoned")[request].ran.push(spot);
            ToolOutcome::text("done")
        })
    }
}

fn spot(step: &Step) -> Spot {
    step.primary().map(|primary| (primary.id.to_string(), primary.cwd.clone()))
}

impl StepMaker for World {
    fn capture(&self, settings: &ThreadSettings, _: &[Arc<dyn tools::ToolSource>]) -> Step {
        let states = self.states.lock().expect("not poisoned");
        let environments: Arc<[StepEnvironment]> = match &settings.environments {
            None => Arc::new([StepEnvironment::here(settings.cwd.as_str())]),
            Some(chosen) => chosen
                .iter()
                .map(|one| StepEnvironment {
                    id: one.environment_id.clone(),
                    cwd: one.cwd.clone(),
                    reach: Reach::Local,
                    state: states[one.environment_id.as_str()],
                    is_chosen: true,
                })
                .collect(),
        };
        let cwd = effective_cwd(&environments, &settings.cwd);
        let mut step = Step { environments, cwd, ..Step::bare("test", &settings.cwd) };
        let tool = |(id, cwd): (String, String)| ToolSpec {
            namespace: None,
            json: Some(Arc::new(
                json!({"type": "function", "name": format!("work_in_{id}"), "description": cwd}),
            )),
            name: format!("work_in_{id}"),
            kind: ToolKind::Builtin,
            parallel: true,
            gate: Gate::Open,
            effects: Default::default(),
        };
        step.tools = spot(&step).map(tool).into_iter().collect();
        step
    }
}

/// The next event.
#[derive(Debug, Clone)]
enum Move {
    /// More input, with another choice of environments: it starts a turn or joins the running one.
    Say(Option<Vec<(usize, usize)>>),
    /// An environment changes its state in the background.
    Turn(usize, EnvironmentState),
    Delta,
    Call,
    Answered,
    CallEnds,
    Interrupt,
    /// Yields this many times.
    Pass(u8),
    /// Waits for this number of requests: steps are captured on another thread.
    Requests(usize),
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let chosen = proptest::collection::vec((0..IDS.len(), 0..2_usize), 0..=2);
    let state = prop_oneof![
        3 => Just(EnvironmentState::Attached),
        1 => Just(EnvironmentState::Starting),
        1 => Just(EnvironmentState::Disconnected),
    ];
    let one = prop_oneof![
        6 => proptest::option::weighted(0.9, chosen).prop_map(Move::Say),
        2 => (0..IDS.len(), state).prop_map(|(id, state)| Move::Turn(id, state)),
        1 => Just(Move::Delta),
        4 => Just(Move::Call),
        4 => Just(Move::Answered),
        3 => Just(Move::CallEnds),
        1 => Just(Move::Interrupt),
        6 => (0..12_u8).prop_map(Move::Pass),
    ];
    proptest::collection::vec(one, 20..36)
}

fn selection(chosen: &[(usize, usize)]) -> Arc<[EnvironmentSelection]> {
    let one = |(id, folder): &(usize, usize)| EnvironmentSelection {
        environment_id: EnvironmentId::new(IDS[*id]),
        cwd: format!("/{}/{folder}", IDS[*id]),
    };
    let mut chosen: Vec<EnvironmentSelection> = chosen.iter().map(one).collect();
    chosen.dedup_by(|one, other| one.environment_id == other.environment_id);
    chosen.into()
}

fn turn(number: usize, chosen: Option<&[(usize, usize)]>) -> TurnOptions {
    TurnOptions {
        turn_id: TurnId::new(format!("u{number}")),
        text: UserText::typed(&format!("message {number}")),
        output_schema: None,
        change: SettingsChange { environments: chosen.map(selection), ..SettingsChange::default() },
        service_tier: None,
    }
}

async fn play(thread: &ThreadHandle, world: &World, moves: &[Move]) {
    for (number, one) in moves.iter().enumerate() {
        match one {
            Move::Say(chosen) => {
                thread.start_turn(turn(number, chosen.as_deref())).await.expect("accepted");
            }
            Move::Turn(id, state) => {
                world.states.lock().expect("not poisoned").insert(IDS[*id], *state);
            }
            Move::Delta => world.say(&json!({"type": "response.output_text.delta", "delta": "x"})),
            Move::Call if world.requests() > 0 => world.call(),
            Move::Call => {}
            Move::Answered => world.say(&completed()),
            Move::CallEnds => world.ends.add_permits(1),
            Move::Interrupt => drop(thread.interrupt(None).await),
            Move::Pass(times) => {
                for _ in 0..*times {
                    tokio::task::yield_now().await;
                }
            }
            Move::Requests(count) => {
                let began = Instant::now();
                while world.requests() < *count {
                    assert!(began.elapsed() < LONG, "{count} requests");
                    tokio::time::sleep(Duration::from_micros(100)).await;
                }
            }
        }
    }
    // Ends everything that is open.
    world.ends.add_permits(1_000);
    let began = Instant::now();
    while matches!(thread.status(), ThreadStatus::Active { .. }) {
        assert!(began.elapsed() < LONG, "the turn does not end");
        world.say(&completed());
        tokio::time::sleep(Duration::from_micros(100)).await;
    }
}

fn completed() -> Value {
    json!({"type": "response.completed", "response": {"id": "r"}})
}

/// All parts of each request must be about one environment.
fn check(asked: &[Asked]) -> Result<(), String> {
    for (number, Asked { told, offered, ran }) in asked.iter().enumerate() {
        if told != offered || ran.iter().any(|spot| spot != told) {
            return Err(format!(
                "request {number} is mixed: told {told:?}, offered {offered:?}, ran in {ran:?}"
            ));
        }
    }
    Ok(())
}

/// Shared by all cases, since creating it takes longer than a case.
struct Stage {
    runtime: tokio::runtime::Runtime,
    store: Arc<Store>,
    _folder: TempDir,
}

impl Stage {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Arc::new(Store::open(folder.path(), StoreOptions::default()).expect("a store"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        Self { runtime: runtime.expect("a runtime"), store, _folder: folder }
    }

    /// The requests of a thread after these moves.
    fn requests_of(&self, moves: &[Move]) -> Vec<Asked> {
        let world = Arc::new(World::new());
        self.runtime.block_on(async {
            let services = Services {
                tracer: oarlock_runtime::Tracer::default(),
                store: self.store.clone(),
                audience: Arc::new(Nobody),
                tools: Arc::new(Hands(world.clone())),
                clock: Arc::new(SystemClock),
                steps: world.clone(),
            };
            let thread = open_thread(services, plan(world.clone()));
            play(&thread, &world, moves).await;
            thread.close().await.expect("closed");
        });
        std::mem::take(&mut *world.asked.lock().expect("not poisoned"))
    }
}

fn plan(transport: Arc<World>) -> ThreadPlan {
    ThreadPlan {
        hooks: Default::default(),
        notify: Default::default(),
        seed: ThreadSeed::new(ThreadId::new(THREAD)),
        meta: meta(),
        journal: None,
        rollout: None,
        ephemeral: true,
        settings: settings(),
        transport,
        recovered: Vec::new(),
        host_record: None,
        session: None,
        bench: bench(),
    }
}

#[test]
fn no_request_mixes_two_environments() {
    let stage = Stage::new();
    let chosen = ProptestConfig::default();
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { chosen.cases } else { CASES };
    let config = ProptestConfig { cases, failure_persistence: None, ..chosen };
    let seen = Cell::new((0, 0, 0));
    let played = TestRunner::new(config).run(&moves(), |moves| {
        let asked = stage.requests_of(&moves);
        let (switches, requests, calls) = seen.get();
        let ran: usize = asked.iter().map(|asked| asked.ran.len()).sum();
        let switched = moves.iter().filter(|one| matches!(one, Move::Say(Some(_)))).count();
        seen.set((switches + switched, requests + asked.len(), calls + ran));
        check(&asked).map_err(TestCaseError::fail)
    });
    if let Err(failure) = played {
        panic!("{failure}");
    }
    // Otherwise the test covered little.
    let (switches, requests, calls) = seen.get();
    let cases = cases as usize;
    let is_enough = switches >= 5 * cases && requests >= 3 * cases && calls >= cases / 2;
    assert!(is_enough, "{switches} switches, {requests} requests, {calls} calls");
}

#[test]
fn a_switch_within_a_turn_counts_from_the_next_request() {
    let (a, b) = (Some(vec![(0, 0)]), Some(vec![(1, 0)]));
    let moves = [
        Move::Say(a),
        Move::Delta,
        Move::Requests(1),
        Move::Say(b),
        Move::Call,
        Move::Answered,
        Move::Pass(9),
        Move::CallEnds,
        Move::Requests(2),
        Move::Call,
        Move::Answered,
    ];
    let asked = Stage::new().requests_of(&moves);
    check(&asked).expect("not mixed");
    let at = |id: &str| Some((id.to_owned(), format!("/{id}/0")));
    let ran: Vec<_> = asked.iter().flat_map(|asked| asked.ran.clone()).collect();
    assert_eq!(ran, [at("a"), at("b")]);
}

/// The check itself can fail.
#[test]
fn a_mixed_request_is_found() {
    let at = |id: &str| Some((id.to_owned(), "/w".to_owned()));
    for (told, offered, ran) in [
        (at("a"), at("b"), vec![]),
        (at("a"), at("a"), vec![at("a"), at("b")]),
        (None, at("a"), vec![]),
        (at("a"), at("a"), vec![None]),
    ] {
        assert!(check(&[Asked { told, offered, ran }]).is_err());
    }
}
