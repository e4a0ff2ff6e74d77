//! Bringing a runtime up: a process, a connection, the handshake, and the thread with its records and decisions.

mod task_records;

pub(crate) use task_records::{open_operations, recorded_threads, thread_rows};

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use protocol::{DecisionOrigin, OperationId, ResolvedOperation, ThreadId};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use store::{InboxState, OperationFilter, OperationRowState, StoreError, StoredRecord, TaskLease, TaskRow};
use support::kill_point;
use tokio::sync::{Mutex, mpsc};

use crate::append::TaskThreads;
use crate::carrier::ModelCarrier;
use crate::guard::{RuntimeGuard, beat};
use crate::handshake::{coded_failure, greet, mismatch};
use crate::lease::LeaseTerm;
use crate::link::RuntimeLink;
use crate::messages::{LiveRuntime, OpenFailure, OpenedRuntime, TaskCommand, TurnPlace};
use crate::operations::operation_over;
use crate::placing::{LaunchFailure, LaunchOrder, LaunchedRuntime, PlaceTerms};
use crate::pump::RuntimePump;
use crate::seen_limits::SeenLimits;
use crate::settings::TaskSettings;
use crate::shared::HostShared;
use host_limits::AppendLimiter;
use runtime_link::RuntimeProcess;
use task::{Generation, TaskInput};

use self::task_records::{TaskThread, agents_to_open};

/// From the start of the process to the thread being open.
const OPEN_WITHIN: Duration = Duration::from_secs(60);
const PAGE: u32 = 500;

/// The task that a runtime is opened for.
#[derive(Debug, Clone)]
pub(crate) struct OpenOrder {
    pub(crate) shared: Arc<HostShared>,
    pub(crate) task: ThreadId,
    pub(crate) lease: TaskLease,
    pub(crate) term: LeaseTerm,
    pub(crate) generation: Generation,
    pub(crate) mailbox: mpsc::Sender<TaskCommand>,
    pub(crate) gate: Arc<Mutex<()>>,
    pub(crate) is_suspending: Arc<AtomicBool>,
}

/// The history of a thread as it goes to a runtime, record for record as it came.
#[derive(Serialize)]
struct WithRecords<'a> {
    #[serde(flatten)]
    params: &'a Value,
    #[serde(rename = "initialItems")]
    initial_items: Vec<Box<RawValue>>,
    #[serde(rename = "resolvedOperations")]
    resolved_operations: Vec<ResolvedOperation>,
}

/// A place may have to be made first, which takes its own time: an image is pulled, a workspace is sent.
pub(crate) async fn open(order: OpenOrder) -> Result<OpenedRuntime, OpenFailure> {
    let store = &order.shared.store;
    let row = store.task(&order.task).await?.ok_or_else(|| "the task was deleted".to_owned())?;
    let launch = LaunchOrder {
        task: &order.task,
        placement: row.placement_id.as_deref(),
        cwd: TaskSettings::read(&row.settings).cwd(),
        epoch: order.lease.epoch,
        is_new: row.next_ordinal == 0,
    };
    kill_point!("host.launch.before");
    let launched = order.shared.launch(&launch).await?;
    kill_point!("host.launch.after");
    let opened =
        match tokio::time::timeout(OPEN_WITHIN, open_in_time(order.clone(), row.clone(), launched)).await {
            Ok(opened) => opened,
            Err(_) => Err(format!("the runtime was not ready within {OPEN_WITHIN:?}").into()),
        };
    if let (Err(_), Some(placement)) = (&opened, &row.placement_id) {
        // The binary there may be the reason.
        order.shared.places.forget(placement);
    }
    opened
}

async fn open_in_time(
    order: OpenOrder,
    row: TaskRow,
    launched: LaunchedRuntime,
) -> Result<OpenedRuntime, OpenFailure> {
    let store = order.shared.store.clone();
    let settings = TaskSettings::read(&row.settings);
    let records = all_records(&order.shared, &order.task).await?;
    let LaunchedRuntime { process, place } = launched;
    // Before it gets the thread: whoever adopts the task must be able to end it.
    if let Some(reference) = process.end.reference() {
        store.note_runtime(&order.lease, reference).await?;
    }
    kill_point!("host.runtime.noted");
    let terms = place.map(PlaceTerms::new);
    let known = thread_rows(&order.shared, &order.task).await?.into_iter().map(|row| row.id).collect();
    let threads = TaskThreads {
        root: order.task.clone(),
        known,
        bytes: row.record_bytes,
        has_preview: !row.preview.is_empty(),
    };
    let limits_seen = SeenLimits::of_record(&order.task, &records);
    let mut live = connect(&order, process, threads, limits_seen);
    let has_command_user = greet(&live.link, &order.shared.options.version).await?;
    if let Some(placement) = &row.placement_id {
        order.shared.note_separation(placement, has_command_user).await?;
    }
    beat(&live.link, *order.shared.lease.borrow());
    let taken = settle_inputs(&order, &records).await?;
    let (thread, epoch) = (order.task.as_str(), order.lease.epoch);
    let provider = &order.shared.options.provider;
    let turn_place = terms.as_ref().map(|terms| terms.for_turns(&records)).unwrap_or_default();
    let in_place = |mut params: Value| {
        if let Some(terms) = &terms {
            terms.adjust(&mut params);
        }
        params
    };
    let answer = if records.is_empty() {
        let params = in_place(settings.start_params(thread, epoch, provider));
        live.link.request("thread/start", &params).await
    } else {
        let agent = |thread: &TaskThread| {
            let mut params = in_place(settings.agent_params(thread.id.as_str(), epoch, provider));
            match &terms {
                Some(terms) => terms.adjust_agent(&mut params, thread.folder.as_deref()),
                None => drop(params.as_object_mut().map(|params| params.remove("cwd"))),
            }
            params
        };
        resume_agents(&order, &live.link, agent).await?;
        let params = in_place(settings.resume_params(thread, epoch, provider));
        let resolved_operations = decided(&order, &order.task).await?;
        let initial_items = raw_records(records)?;
        live.link
            .request("thread/resume", &WithRecords { params: &params, initial_items, resolved_operations })
            .await
    };
    let answer = match answer {
        Ok(answer) => answer,
        Err(Some(error)) => {
            return Err(OpenFailure { message: error.message.clone(), refusal: Some(error) });
        }
        Err(None) => return Err("the runtime ended while it opened the thread".to_owned().into()),
    };
    let mut answer: Value = serde_json::from_str(answer.get()).map_err(|error| error.to_string())?;
    check_terms(&answer, &order.task)?;
    settings.name_carried(&mut answer);
    if let Some(terms) = terms {
        terms.warn(&order.shared, &order.task).await;
        live.place = turn_place;
    }
    kill_point!("host.runtime.opened");
    let opened = answer.clone();
    let keep = move |stored: &mut Value| {
        TaskSettings::change(stored, |settings| settings.set_opened(&opened));
    };
    store.change_settings(&order.task, keep).await?;
    Ok(OpenedRuntime { live, answer, taken })
}

pub(crate) async fn all_records(
    shared: &HostShared,
    thread: &ThreadId,
) -> Result<Vec<StoredRecord>, StoreError> {
    let mut records: Vec<StoredRecord> = Vec::new();
    loop {
        let from = records.last().map_or(0, |record| record.ordinal + 1);
        let page = shared.store.records(thread, from, PAGE).await?;
        let is_last = page.len() < PAGE as usize;
        records.extend(page);
        if is_last {
            return Ok(records);
        }
    }
}

fn raw_records(records: Vec<StoredRecord>) -> Result<Vec<Box<RawValue>>, OpenFailure> {
    let raw = |record: StoredRecord| RawValue::from_string(record.payload);
    let items: Result<Vec<_>, _> = records.into_iter().map(raw).collect();
    items.map_err(|error| format!("a record cannot be read: {error}").into())
}

/// Joins the pipes of the process to a link, with somebody to read them.
fn connect(
    order: &OpenOrder,
    process: RuntimeProcess,
    threads: TaskThreads,
    limits_seen: SeenLimits,
) -> LiveRuntime {
    let RuntimeProcess { input, output, end } = process;
    let (link, backlog) = RuntimeLink::open();
    tokio::spawn(rpc::drain(backlog, input));
    let limits_seen = Arc::new(limits_seen);
    let own = (order.mailbox.clone(), order.generation);
    let carrier =
        ModelCarrier::new(order.shared.clone(), link.clone(), order.task.clone(), limits_seen.clone(), own);
    let pump = RuntimePump {
        shared: order.shared.clone(),
        link: link.clone(),
        lease: order.lease.clone(),
        generation: order.generation,
        threads,
        limiter: AppendLimiter::default(),
        ordinals: BTreeMap::new(),
        carrier,
        limits_seen,
        mailbox: order.mailbox.clone(),
        gate: order.gate.clone(),
        is_suspending: order.is_suspending.clone(),
    };
    tokio::spawn(pump.run(output));
    let guard = RuntimeGuard::new(end, link.clone(), order.shared.lease.subscribe(), order.term);
    LiveRuntime { generation: order.generation, link, place: TurnPlace::default(), guard, slot: None }
}

impl From<LaunchFailure> for OpenFailure {
    fn from(failure: LaunchFailure) -> Self {
        match failure.is_final {
            true => coded_failure("placementFailed", failure.message),
            false => failure.message.into(),
        }
    }
}

/// The runtime must have taken the thread on the host's terms, or it may not have it.
fn check_terms(answer: &Value, task: &ThreadId) -> Result<(), OpenFailure> {
    let mode = answer["delegation"]["mode"].as_str();
    let ownership = answer["rolloutOwnership"].as_str();
    let thread = answer["thread"]["id"].as_str();
    match (mode, ownership, thread) {
        (Some("full"), Some("client"), Some(thread)) if thread == task.as_str() => Ok(()),
        _ => Err(mismatch("the thread was not opened as asked")),
    }
}

/// Brings the agents of the task back, before the turn of the root goes on. One that the runtime does not take is given up:
/// what it asked for waits for nobody any more.
async fn resume_agents(
    order: &OpenOrder,
    link: &RuntimeLink,
    params_of: impl Fn(&TaskThread) -> Value,
) -> Result<(), OpenFailure> {
    let threads = recorded_threads(&order.shared, &order.task).await?;
    for agent in agents_to_open(threads, &order.task) {
        let params = params_of(&agent);
        let TaskThread { id, records, unfinished, .. } = agent;
        let resolved_operations = decided(order, &id).await?;
        let initial_items = raw_records(records)?;
        let asked = WithRecords { params: &params, initial_items, resolved_operations };
        match link.request("thread/resume", &asked).await {
            Ok(_) => {}
            Err(None) => return Err("the runtime ended while it opened an agent".to_owned().into()),
            Err(Some(error)) => {
                tracing::error!(task = %order.task, agent = %id, "an agent is given up: {}", error.message);
                operation_over(&order.shared, &id, None).await;
                if let Some(turn) = unfinished {
                    let given_up = TaskInput::AgentGivenUp { thread: id, turn };
                    let _ = order.mailbox.send(TaskCommand::Input(given_up)).await;
                }
            }
        }
    }
    Ok(())
}

/// Decisions about operations of this thread that its record does not have yet.
async fn decided(order: &OpenOrder, thread: &ThreadId) -> Result<Vec<ResolvedOperation>, OpenFailure> {
    let store = &order.shared.store;
    let filter = OperationFilter {
        thread: Some(thread.clone()),
        state: Some(OperationRowState::Decided),
        cursor: None,
        limit: 1_000,
    };
    let mut resolved = Vec::new();
    for row in store.list_operations(filter).await?.0 {
        // Calls of tools are answered when the runtime asks for them again.
        if row.thread != *thread || row.proposal["type"] == "function" {
            continue;
        }
        if let Some(decision) = store.decision(&row.id, row.attempt).await? {
            resolved.push(ResolvedOperation {
                operation_id: row.id,
                arguments_digest: row.arguments_digest,
                decision: Some(decision.decision),
                result: None,
                by: Some(decision.by),
                decided_at_ms: Some(decision.decided_at_ms),
            });
        }
    }
    Ok(resolved)
}

/// Inputs whose answer was lost: those that are in the record were taken.
async fn settle_inputs(order: &OpenOrder, records: &[StoredRecord]) -> Result<Vec<String>, OpenFailure> {
    let store = &order.shared.store;
    let mut taken = Vec::new();
    for input in store.waiting_inputs(&order.task).await? {
        let Some(turn) = turn_of_input(records, &input.input_id) else { continue };
        let answer = json!({ "turnId": turn });
        store.answer_input(&order.task, &input.input_id, InboxState::Accepted, answer).await?;
        taken.push(input.input_id);
    }
    Ok(taken)
}

/// The turn whose user message has this id.
fn turn_of_input(records: &[StoredRecord], input: &str) -> Option<String> {
    let quoted = serde_json::to_string(input).ok()?;
    let of_record = |record: &StoredRecord| {
        if !record.payload.contains("userMessage") || !record.payload.contains(&quoted) {
            return None;
        }
        let value: Value = serde_json::from_str(&record.payload).ok()?;
        let is_it = value["kind"] == "threadItem"
            && value["item"]["type"] == "userMessage"
            && value["item"]["id"] == input;
        is_it.then(|| value["turnId"].as_str().unwrap_or_default().to_owned())
    };
    records.iter().rev().find_map(of_record)
}

/// The decision of an operation as the answer to a question of the runtime.
pub(crate) async fn stored_answer(
    shared: &HostShared,
    operation: &OperationId,
    method: &str,
) -> Option<Box<RawValue>> {
    let row = shared.store.operation(operation).await.ok()??;
    let decided = shared.store.decision(operation, row.attempt).await.ok()??;
    let origin = DecisionOrigin { by: decided.by, decided_at_ms: decided.decided_at_ms };
    let response = task::questions::response_for(method, &decided.decision, origin.clone());
    response.or_else(|| to_raw_value(&json!({ "decision": "decline", "origin": origin })).ok())
}
