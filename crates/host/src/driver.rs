//! One task that lives: an actor that feeds the state machine and performs its effects, exactly as given.

mod calls;
mod spans;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use protocol::{
    OperationDecideParams, OperationId, ServerNotification, Task, ThreadId, ThreadStatus,
    ThreadStatusChangedNotification, TurnId,
};
use rpc::ErrorObject;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use store::{InboxRow, InboxState, OperationRowState, ReplicaIdentity, StoreError, TaskLease, TaskState};
use support::kill_point;
use tokio::sync::{Mutex, Semaphore, mpsc, watch};
use tokio::task::AbortHandle;
use traces::within;

use self::calls::CallHandle;
use self::spans::TaskSpans;
use crate::clients::ClientReply;
use crate::counters::count;
use crate::error::TaskError;
use crate::lease::{LeaseState, LeaseTerm};
use crate::link::{LinkAnswer, OrderedAnswer};
use crate::messages::{
    LinkQuestion, LiveRuntime, OpenFailure, OpenedRuntime, TaskCommand, TaskPass, TaskView, TurnReply,
};
use crate::open_runtime::{OpenOrder, open, stored_answer};
use crate::operations::shown_operation;
use crate::settings::{TaskSettings, shown_to_clients, without_terms};
use crate::shared::HostShared;
use host_limits::MAX_OPEN_OPERATIONS;
use host_limits::SlotClaim;
use task::questions::{self, is_elicitation};
use task::{Generation, TaskEffect, TaskInput, TaskMachine};

/// How long a turn may take to come to a safe point.
const SUSPEND_WITHIN: Duration = Duration::from_secs(10);
/// Questions of one runtime that wait for somebody, of either kind.
const MAX_OPEN_QUESTIONS: usize = MAX_OPEN_OPERATIONS;
const TOO_MANY_QUESTIONS: &str = "too many questions wait; ask again when some are answered";
/// For the runtime, which makes of an error what an app-server does.
const CLIENT_REFUSED: &str = "the client answered with an error";
/// The pause before the runtime of an earlier host is looked for again.
const PREVIOUS_PAUSE: Duration = Duration::from_secs(1);

pub(crate) struct TaskDriver {
    shared: Arc<HostShared>,
    id: ThreadId,
    /// As which it owns the task.
    replica: ReplicaIdentity,
    lease: TaskLease,
    host_lease: watch::Receiver<LeaseState>,
    /// Whether tasks wait for room.
    crowded: watch::Receiver<bool>,
    term: LeaseTerm,
    /// Another host has the task, or may have it: nothing more is done about it here.
    is_fenced: bool,
    machine: TaskMachine,
    mailbox: mpsc::Sender<TaskCommand>,
    commands: mpsc::Receiver<TaskCommand>,
    gate: Arc<Mutex<()>>,
    view: watch::Sender<TaskView>,
    is_suspending: Arc<AtomicBool>,
    runtime: Option<LiveRuntime>,
    opening: Option<AbortHandle>,
    /// As the last runtime opened the thread.
    opened: Option<Value>,
    /// Why the last one did not.
    refusal: Option<ErrorObject>,
    passes: HashMap<u64, TaskPass>,
    next_pass: u64,
    inputs: HashMap<String, (InboxRow, Option<TurnReply>)>,
    questions: HashMap<u64, LinkQuestion>,
    /// For questions about no operation, which are not among `questions` while they are asked.
    plain_questions: Arc<Semaphore>,
    asks: HashMap<OperationId, AbortHandle>,
    calls: HashMap<OperationId, CallHandle>,
    wake_at_ms: Option<i64>,
    /// A runtime that ended while it was being opened.
    early_end: Option<Generation>,
    /// Followers of all tasks have not heard of its state.
    has_other_state: bool,
    spans: TaskSpans,
}

/// The parts that whoever starts a driver shares with it.
pub(crate) struct DriverParts {
    pub(crate) shared: Arc<HostShared>,
    pub(crate) id: ThreadId,
    pub(crate) replica: ReplicaIdentity,
    pub(crate) lease: TaskLease,
    pub(crate) term: LeaseTerm,
    pub(crate) machine: TaskMachine,
    pub(crate) inputs: Vec<InboxRow>,
    pub(crate) mailbox: mpsc::Sender<TaskCommand>,
    pub(crate) commands: mpsc::Receiver<TaskCommand>,
    pub(crate) gate: Arc<Mutex<()>>,
    pub(crate) view: watch::Sender<TaskView>,
}

impl TaskDriver {
    pub(crate) fn new(parts: DriverParts) -> Self {
        let DriverParts { shared, id, replica, lease, term, machine, inputs, mailbox, commands, gate, view } =
            parts;
        let host_lease = shared.lease.subscribe();
        let mut crowded = shared.slots.crowded();
        // A task that begins in a crowd hears of it.
        crowded.mark_changed();
        let spans = TaskSpans::new(shared.options.tracer.clone());
        let inputs = inputs.into_iter().map(|row| (row.input_id.clone(), (row, None))).collect();
        Self {
            shared,
            id,
            replica,
            lease,
            host_lease,
            crowded,
            term,
            is_fenced: false,
            machine,
            mailbox,
            commands,
            gate,
            view,
            is_suspending: Arc::default(),
            runtime: None,
            opening: None,
            opened: None,
            refusal: None,
            passes: HashMap::new(),
            next_pass: 0,
            inputs,
            questions: HashMap::new(),
            plain_questions: Arc::new(Semaphore::new(MAX_OPEN_QUESTIONS)),
            asks: HashMap::new(),
            calls: HashMap::new(),
            wake_at_ms: None,
            early_end: None,
            has_other_state: false,
            spans,
        }
    }

    /// Until the task is at rest, and nobody is asked or waits, or until another host has it.
    pub(crate) async fn run(mut self) {
        self.shared.clients.taken_up(&self.id).await;
        self.end_previous().await;
        self.advance(TaskInput::Loaded).await;
        loop {
            if self.is_over() {
                return self.abandon();
            }
            if self.may_leave() && self.leave().await {
                return;
            }
            let pause = self.wake_at_ms.map(|at_ms| {
                Duration::from_millis(u64::try_from(at_ms.saturating_sub(self.shared.now_ms())).unwrap_or(0))
            });
            tokio::select! {
                command = self.commands.recv() => match command {
                    Some(command) => self.take(command).await,
                    None => return,
                },
                () = tokio::time::sleep(pause.unwrap_or_default()), if pause.is_some() => {
                    self.wake_at_ms = None;
                    self.advance(TaskInput::TimePassed).await;
                }
                _ = self.host_lease.changed() => {}
                Ok(()) = self.crowded.changed() => {
                    let is_crowded = *self.crowded.borrow_and_update();
                    self.advance(TaskInput::Crowded(is_crowded)).await;
                }
            }
        }
    }

    /// Whether the host's own lease, or that of this task, is over.
    fn is_over(&mut self) -> bool {
        self.is_fenced |= self.host_lease.borrow_and_update().term() != Some(self.term);
        self.is_fenced
    }

    /// The runtime of whoever had the task before is gone before anything is made of what it left.
    async fn end_previous(&mut self) {
        loop {
            let ended = match self.shared.store.runtime_of(&self.id).await {
                Ok(Some(reference)) => self.shared.end_previous(&self.id, &reference).await,
                Ok(None) => Ok(()),
                Err(error) => Err(error.to_string()),
            };
            let Err(problem) = ended else { return };
            if self.is_over() {
                return;
            }
            tracing::error!(task = %self.id, "the task waits: {problem}");
            tokio::time::sleep(PREVIOUS_PAUSE).await;
        }
    }

    /// Without a follower here, the host that is asked next may have the task.
    async fn leave(&mut self) -> bool {
        let shared = self.shared.clone();
        // Nobody takes the task up in between.
        let _loading = shared.loading.lock().await;
        if !shared.let_go(&self.id, &mut self.commands) {
            return false;
        }
        if shared.store.leases_expire()
            && !shared.clients.is_followed(&self.id)
            && let Err(error) = shared.store.release_task(&self.lease).await
        {
            tracing::warn!(%error, task = %self.id, "a task at rest is not released");
        }
        true
    }

    /// Lets go of everything at once. The store has what counts; the next owner goes on from there.
    fn abandon(mut self) {
        tracing::warn!(task = %self.id, "another host has the task now");
        self.shared.forget(&self.id, &self.mailbox);
        if self.host_lease.borrow().term() == Some(self.term) {
            self.shared.doubted.lock().insert(self.id.clone());
        }
        self.runtime = None;
        if let Some(opening) = self.opening.take() {
            opening.abort();
        }
        for (_, ask) in self.asks.drain() {
            ask.abort();
        }
        for (_, pass) in self.passes.drain() {
            give(pass, Err(Some(owner_lost())));
        }
    }

    fn may_leave(&self) -> bool {
        self.machine.is_at_rest() && self.asks.is_empty() && self.calls.is_empty() && self.passes.is_empty()
    }

    async fn take(&mut self, command: TaskCommand) {
        match command {
            TaskCommand::Input(input) => {
                if let TaskInput::RuntimeGone(generation) = &input {
                    if self.machine.is_starting(*generation) {
                        // Whoever opens it reports how that ended.
                        self.early_end = Some(*generation);
                        return;
                    }
                    self.runtime_gone(*generation).await;
                }
                if let TaskInput::QuestionGone { question } = &input
                    && let Some(question) = self.questions.remove(question)
                    && let Some(operation) = question.operation
                    && !self.is_suspending.load(Ordering::Acquire)
                {
                    self.close_ask(&operation);
                }
                self.advance(input).await;
            }
            TaskCommand::LookAgain => self.look_again().await,
            TaskCommand::Pass { pass, trace } => {
                self.spans.at_work(&self.id, trace);
                self.next_pass += 1;
                self.passes.insert(self.next_pass, pass);
                self.advance(TaskInput::PassWanted(self.next_pass)).await;
            }
            TaskCommand::Turn { row, reply, trace } => {
                self.spans.at_work(&self.id, trace);
                let input = row.input_id.clone();
                self.inputs.insert(input.clone(), (*row, reply));
                self.advance(TaskInput::InputReceived(input)).await;
            }
            TaskCommand::Asked(question) => self.asked(*question).await,
            TaskCommand::Opened { generation, opened } => self.opened(generation, opened).await,
            TaskCommand::InputAnswered { input, answer } => self.input_answered(&input, answer).await,
            TaskCommand::Called { operation, news } => self.called(operation, news).await,
            TaskCommand::Answered { operation, method, by, result } => {
                self.answered(operation, &method, &by, result.as_deref()).await;
            }
        }
    }

    /// One input, and all that follows from it.
    async fn advance(&mut self, input: TaskInput) {
        let mut waiting = vec![input];
        while let Some(input) = waiting.pop() {
            tracing::debug!(task = %self.id, ?input, "a task goes on");
            for effect in self.machine.on(self.shared.now_ms(), input) {
                if self.is_over() {
                    return;
                }
                if let Some(input) = self.perform(effect).await {
                    waiting.push(input);
                }
            }
        }
        self.show();
        if !self.machine.is_at_work() {
            self.spans.at_rest();
        }
        if std::mem::take(&mut self.has_other_state) && self.shared.clients.is_watched() {
            match shown_task(&self.shared, &self.id).await {
                Ok(task) => self.shared.clients.task_updated(task).await,
                Err(error) => tracing::warn!(%error, task = %self.id, "a new state is not reported"),
            }
        }
    }

    fn show(&self) {
        let is_up = self.runtime.is_some();
        let view = TaskView {
            has_runtime: self.machine.has_runtime(),
            generation: self.machine.generation(),
            is_up,
            turn: self.machine.turn().cloned(),
        };
        self.view.send_if_modified(|shown| {
            let changed = *shown != view;
            *shown = view;
            changed
        });
    }

    /// An effect that is over at once may lead to the next input.
    async fn perform(&mut self, effect: TaskEffect) -> Option<TaskInput> {
        match effect {
            TaskEffect::StartRuntime(generation) => return self.start(generation).await,
            TaskEffect::EndRuntime(generation) => {
                if let Some(live) = self.runtime.take_if(|live| live.generation == generation) {
                    live.finish();
                }
            }
            TaskEffect::LeaveQueue => {
                if let Some(opening) = self.opening.take() {
                    opening.abort();
                }
            }
            TaskEffect::SuspendTurns { generation, turns } => self.suspend(generation, &turns),
            TaskEffect::SendInput { input, .. } => return self.send_input(input),
            TaskEffect::SendPass { pass, .. } => return self.send_pass(pass),
            TaskEffect::FailPass { pass, reason } => self.fail_pass(pass, reason),
            TaskEffect::AskClients { operation, question } if self.is_call(question) => {
                return self.call(&operation, question).await;
            }
            TaskEffect::AskClients { operation, question } => self.ask(&operation, question),
            TaskEffect::AnswerQuestion { operation, question } if self.is_call(question) => {
                return self.answer_call(&operation, question).await;
            }
            TaskEffect::AnswerQuestion { operation, question } => {
                return self.answer_question(&operation, question).await;
            }
            TaskEffect::EndAsk(operation) => self.end_ask(&operation),
            TaskEffect::CloseAsk(operation) => self.close_ask(&operation),
            TaskEffect::LoseStarted => return Some(self.lose_started().await),
            TaskEffect::SetState(state) => self.set_state(state).await,
            TaskEffect::WakeAt(at_ms) => self.wake_at_ms = Some(at_ms),
        }
        None
    }

    /// Each runtime has an epoch of its own: whatever an earlier one still sends is refused.
    async fn start(&mut self, generation: Generation) -> Option<TaskInput> {
        count(&self.shared.counters.starts);
        self.spans.at_work(&self.id, None);
        self.is_suspending.store(false, Ordering::Release);
        match self.shared.store.next_epoch(&self.id, &self.replica).await {
            Ok(lease) => {
                kill_point!("host.epoch.after");
                self.lease = lease;
            }
            Err(error) => {
                self.refusal = Some(failure(&error.to_string()));
                self.note_fence(&error);
                return Some(TaskInput::RuntimeFailed { generation, is_final: false });
            }
        }
        let order = OpenOrder {
            shared: self.shared.clone(),
            task: self.id.clone(),
            lease: self.lease.clone(),
            term: self.term,
            generation,
            mailbox: self.mailbox.clone(),
            gate: self.gate.clone(),
            is_suspending: self.is_suspending.clone(),
        };
        let mailbox = self.mailbox.clone();
        let claim = self.claim_slot().await;
        let is_queued = matches!(claim, SlotClaim::Queued(_));
        let opening = tokio::spawn(within(self.spans.task(), async move {
            let slot = match claim {
                SlotClaim::Taken(slot) => Some(slot),
                SlotClaim::Queued(room) => {
                    let slot = room.await.ok();
                    let _ = mailbox.send(TaskCommand::Input(TaskInput::RoomFound(generation))).await;
                    slot
                }
            };
            let mut opened = open(order).await.map(Box::new);
            if let Ok(opened) = &mut opened {
                opened.live.slot = slot;
            }
            let _ = mailbox.send(TaskCommand::Opened { generation, opened }).await;
        }));
        self.opening = Some(opening.abort_handle());
        is_queued.then_some(TaskInput::Queued(generation))
    }

    /// Room for a runtime, or a place in the queue by the task's priority and age.
    async fn claim_slot(&mut self) -> SlotClaim {
        let slots = &self.shared.slots;
        let row = match slots.is_limited() {
            true => self.shared.store.task(&self.id).await.ok().flatten(),
            false => None,
        };
        let of_row = row.map(|row| (TaskSettings::read(&row.settings).priority(), row.created_at_ms));
        let (priority, created_at_ms) = of_row.unwrap_or_default();
        slots.claim(priority, created_at_ms)
    }

    /// A store that refuses this owner has another one.
    fn note_fence(&mut self, error: &StoreError) {
        self.is_fenced |= matches!(error, StoreError::Fenced(_) | StoreError::UnknownTask(_));
    }

    /// Input and decisions that another host has stored for this task.
    async fn look_again(&mut self) {
        match self.shared.store.waiting_inputs(&self.id).await {
            Ok(rows) => {
                for row in rows {
                    let input = row.input_id.clone();
                    if !self.inputs.contains_key(&input) {
                        self.inputs.insert(input.clone(), (row, None));
                        self.advance(TaskInput::InputReceived(input)).await;
                    }
                }
            }
            Err(error) => tracing::warn!(%error, task = %self.id, "its inbox could not be read"),
        }
        for operation in self.machine.undecided() {
            let row = self.shared.store.operation(&operation).await;
            if row.is_ok_and(|row| row.is_some_and(|row| row.state == OperationRowState::Decided)) {
                self.advance(TaskInput::Decided(operation)).await;
            }
        }
    }

    async fn opened(&mut self, generation: Generation, opened: Result<Box<OpenedRuntime>, OpenFailure>) {
        match opened {
            Ok(opened) => {
                let OpenedRuntime { live, answer, taken } = *opened;
                self.runtime = Some(live);
                self.opened = Some(answer);
                self.refusal = None;
                for input in taken {
                    let turn = self.inputs.get(&input).map(|(row, _)| row.turn_id.clone());
                    self.reply_input(&input, turn.map_or_else(|| Err(lost()), Ok));
                    self.inputs.remove(&input);
                    self.advance(TaskInput::InputTaken(input)).await;
                }
                self.advance(TaskInput::RuntimeUp(generation)).await;
                if self.early_end.take() == Some(generation) {
                    self.runtime_gone(generation).await;
                    self.advance(TaskInput::RuntimeGone(generation)).await;
                }
            }
            Err(OpenFailure { message, refusal }) => {
                tracing::warn!(task = %self.id, "a runtime could not be brought up: {message}");
                let is_final = refusal.is_some() && !self.machine.is_outdated();
                self.refusal = Some(refusal.unwrap_or_else(|| failure(&message)));
                self.advance(TaskInput::RuntimeFailed { generation, is_final }).await;
                if is_final {
                    self.refuse_inputs().await;
                }
            }
        }
    }

    async fn runtime_gone(&mut self, generation: Generation) {
        if self.runtime.as_ref().is_some_and(|live| live.generation == generation) {
            tracing::warn!(task = %self.id, generation, "a runtime ended");
            count(&self.shared.counters.losses);
            self.runtime = None;
        }
        self.questions.clear();
        self.drop_waiting_calls();
        self.is_suspending.store(false, Ordering::Release);
        self.shared.note_failed(self.id.clone(), false);
        if self.opened.is_none() {
            // Nobody has seen the thread loaded.
            return;
        }
        let status = ThreadStatus::NotLoaded;
        let told = ThreadStatusChangedNotification { thread_id: self.id.clone(), status };
        self.shared.clients.notify(&self.id, ServerNotification::ThreadStatusChanged(told)).await;
    }

    fn suspend(&mut self, generation: Generation, turns: &[(ThreadId, TurnId)]) {
        let mailbox = self.mailbox.clone();
        let suspended = TaskCommand::Input(TaskInput::Suspended(generation));
        kill_point!("host.suspend.before");
        self.is_suspending.store(true, Ordering::Release);
        let mut answers = Vec::new();
        for (thread, turn) in turns {
            let params = json!({
                "threadId": thread, "turnId": turn, "mode": "now",
                "deadlineMs": u64::try_from(SUSPEND_WITHIN.as_millis()).unwrap_or(0),
            });
            answers.extend(self.runtime.as_ref().map(|live| live.link.request("turn/suspend", &params)));
        }
        tokio::spawn(async move {
            let deadline = tokio::time::Instant::now() + SUSPEND_WITHIN * 2;
            for answer in answers {
                match tokio::time::timeout_at(deadline, answer).await {
                    Ok(Ok(_)) => {}
                    other => {
                        tracing::info!(?other, "a turn was not suspended; its runtime ends all the same");
                    }
                }
            }
            kill_point!("host.suspend.after");
            let _ = mailbox.send(suspended).await;
        });
    }

    fn send_input(&mut self, input: String) -> Option<TaskInput> {
        // Sent again when the next runtime is up.
        let live = self.runtime.as_mut()?;
        let Some((row, _)) = self.inputs.get(&input) else { return Some(TaskInput::InputTaken(input)) };
        let mut params = row.params.clone();
        params["threadId"] = json!(row.thread);
        params["inputId"] = json!(row.input_id);
        if row.method == "turn/start" {
            params["turnId"] = json!(row.turn_id);
        }
        live.place.tell(&row.method, &mut params);
        let (mailbox, id) = (self.mailbox.clone(), input.clone());
        let reply = self.inputs.get_mut(&input).and_then(|(_, reply)| reply.take());
        let method = self.inputs.get(&input).map(|(row, _)| row.method.clone()).unwrap_or_default();
        let answer: OrderedAnswer = Box::new(move |answer: LinkAnswer| {
            // A runtime that went away says nothing about the input: the next one takes it.
            let Some(answer) = turn_in(answer) else {
                return;
            };
            if let Some(reply) = reply {
                reply(answer.clone());
            }
            tokio::spawn(async move {
                let _ = mailbox.send(TaskCommand::InputAnswered { input: id, answer }).await;
            });
        });
        live.link.request_ordered(&method, &params, &self.spans.task(), answer);
        None
    }

    fn reply_input(&mut self, input: &str, answer: Result<TurnId, ErrorObject>) {
        if let Some((_, reply)) = self.inputs.get_mut(input)
            && let Some(reply) = reply.take()
        {
            reply(answer);
        }
    }

    async fn input_answered(&mut self, input: &str, answer: Result<TurnId, ErrorObject>) {
        let (state, stored) = match &answer {
            Ok(turn) => (InboxState::Accepted, json!({ "turnId": turn })),
            Err(error) => {
                (InboxState::Refused, json!({ "error": { "code": error.code, "message": error.message } }))
            }
        };
        if let Err(error) = self.shared.store.answer_input(&self.id, input, state, stored).await {
            tracing::warn!(%error, task = %self.id, "the answer to an input is not stored");
        }
        self.inputs.remove(input);
        self.advance(TaskInput::InputTaken(input.to_owned())).await;
    }

    /// The runtime will never open the thread as it is.
    async fn refuse_inputs(&mut self) {
        let refusal = self.refusal.clone().unwrap_or_else(lost);
        let waiting: Vec<String> = self.inputs.keys().cloned().collect();
        for input in waiting {
            self.reply_input(&input, Err(refusal.clone()));
            self.input_answered(&input, Err(refusal.clone())).await;
        }
    }

    fn send_pass(&mut self, pass: u64) -> Option<TaskInput> {
        let done = TaskInput::PassDone(pass);
        let Some(wanted) = self.passes.remove(&pass) else { return Some(done) };
        let Some(live) = &self.runtime else {
            give(wanted, Err(None));
            return Some(done);
        };
        match wanted {
            TaskPass::Open(answer) => {
                let mut opened = without_terms(self.opened.clone().unwrap_or_default());
                shown_to_clients(&mut opened, &self.shared.options);
                let opened = serde_json::value::to_raw_value(&opened);
                answer(opened.map_err(|error| Some(failure(&error.to_string()))));
                Some(done)
            }
            TaskPass::Request { method, params, answer } => {
                let mailbox = self.mailbox.clone();
                let answer: OrderedAnswer = Box::new(move |result| {
                    answer(result);
                    tokio::spawn(async move {
                        let _ = mailbox.send(TaskCommand::Input(done)).await;
                    });
                });
                live.link.request_ordered(&method, &params, &self.spans.task(), answer);
                None
            }
        }
    }

    fn fail_pass(&mut self, pass: u64, reason: &str) {
        if let Some(pass) = self.passes.remove(&pass) {
            let error = self.refusal.clone().unwrap_or_else(|| failure(reason));
            give(pass, Err(Some(error)));
        }
    }

    async fn asked(&mut self, question: LinkQuestion) {
        let number = question.number;
        if self.questions.len() >= MAX_OPEN_QUESTIONS {
            return question.link.refuse(&question.id, -32602, TOO_MANY_QUESTIONS, &None);
        }
        let operation = match &question.operation {
            Some(asked) => match self.own_operation(asked).await {
                Ok(None) if !is_elicitation(&question.method) => {
                    let problem = "operationId is none of this task";
                    return question.link.refuse(&question.id, -32602, problem, &None);
                }
                Ok(known) => known,
                // The store is asked again before anything is decided.
                Err(_) => (!is_elicitation(&question.method)).then(|| asked.clone()),
            },
            None => None,
        };
        self.questions.insert(number, question);
        match operation {
            Some(operation) => self.advance(TaskInput::Asked { operation, question: number }).await,
            // Nothing durable hangs on it: it is asked and answered within this runtime's life.
            None => self.ask_plainly(number),
        }
    }

    /// An operation that this task has recorded. A server's question in the middle of a call is asked beside the operation of
    /// the call, and is in no record.
    async fn own_operation(&mut self, operation: &OperationId) -> Result<Option<OperationId>, StoreError> {
        let row = self.shared.store.operation(operation).await?;
        Ok(row.filter(|row| row.root == self.id).map(|row| row.id))
    }

    fn ask_plainly(&mut self, number: u64) {
        let Some(question) = self.questions.remove(&number) else { return };
        let Ok(held) = self.plain_questions.clone().try_acquire_owned() else {
            return question.link.refuse(&question.id, -32602, TOO_MANY_QUESTIONS, &None);
        };
        let clients = self.shared.clients.clone();
        tokio::spawn(async move {
            let _held = held;
            let LinkQuestion { id, link, method, thread, params, span, .. } = question;
            match within(span.context(), clients.ask(&thread, &method, params)).await {
                Some(ClientReply { result: Some(result), .. }) => link.respond(&id, &result),
                Some(ClientReply { result: None, .. }) => link.refuse(&id, -32603, CLIENT_REFUSED, &None),
                None => link.refuse(&id, -32603, "nobody answered", &None),
            }
        });
    }

    /// Subscribers keep the question they have when another runtime asks the same.
    fn ask(&mut self, operation: &OperationId, number: u64) {
        if self.asks.get(operation).is_some_and(|ask| !ask.is_finished()) {
            return;
        }
        let Some(question) = self.questions.get(&number) else { return };
        tracing::info!(task = %self.id, operation = %operation, "waits for a decision: {}", questions::shown(&question.params));
        let answer = self.shared.clients.ask(&question.thread, &question.method, question.params.clone());
        let answer = within(question.span.context(), answer);
        let (mailbox, operation_id, method) =
            (self.mailbox.clone(), operation.clone(), question.method.clone());
        let asking = tokio::spawn(async move {
            if let Some(reply) = answer.await {
                let answered = TaskCommand::Answered {
                    operation: operation_id,
                    method,
                    by: reply.by,
                    result: reply.result,
                };
                let _ = mailbox.send(answered).await;
            }
        });
        self.asks.insert(operation.clone(), asking.abort_handle());
    }

    fn end_ask(&mut self, operation: &OperationId) {
        if let Some(ask) = self.asks.remove(operation) {
            ask.abort();
        }
    }

    fn close_ask(&mut self, operation: &OperationId) {
        self.end_ask(operation);
        self.calls.remove(operation);
    }

    /// The first answer is stored before the runtime hears of it.
    async fn answered(&mut self, operation: OperationId, method: &str, by: &str, result: Option<&RawValue>) {
        self.asks.remove(&operation);
        let decision = match result {
            Some(result) => questions::decision_in(method, result),
            None => Some(questions::refusal_of(method)),
        };
        let Some(decision) = decision else {
            tracing::warn!(task = %self.id, operation = %operation, "an answer cannot be read; the operation waits");
            return self.advance(TaskInput::TimePassed).await;
        };
        let digest = self.digest_of(&operation).await;
        let params = OperationDecideParams {
            operation_id: operation.clone(),
            arguments_digest: digest,
            decision,
            on_behalf_of: None,
        };
        match self.shared.decide(&params, by).await {
            Ok(_) => {
                let mut asked = self.questions.values_mut();
                if let Some(question) = asked.find(|asked| asked.operation.as_ref() == Some(&operation)) {
                    question.was_refused = result.is_none();
                }
                if let Some(operation) = shown_operation(&self.shared.store, &operation).await {
                    self.shared.clients.operation_updated(operation).await;
                }
            }
            Err(error) => tracing::info!(%error, "an answer came too late"),
        }
        self.advance(TaskInput::Decided(operation)).await;
    }

    /// Of what the question showed.
    async fn digest_of(&mut self, operation: &OperationId) -> String {
        let shown = self.questions.values().find(|question| question.operation.as_ref() == Some(operation));
        if let Some(digest) = shown.and_then(|question| question.digest.clone()) {
            return digest;
        }
        let row = self.shared.store.operation(operation).await.ok().flatten();
        row.map(|row| row.arguments_digest).unwrap_or_default()
    }

    async fn answer_question(&mut self, operation: &OperationId, number: u64) -> Option<TaskInput> {
        let question = self.questions.remove(&number)?;
        if question.was_refused {
            question.link.refuse(&question.id, -32603, CLIENT_REFUSED, &None);
            return None;
        }
        if let Some(response) = stored_answer(&self.shared, operation, &question.method).await {
            question.link.respond(&question.id, &response);
            return None;
        }
        let row = self.shared.store.operation(operation).await.ok().flatten();
        if row.is_some_and(|row| row.state == OperationRowState::Proposed) {
            self.questions.insert(number, question);
            return Some(TaskInput::Undecided { operation: operation.clone(), question: number });
        }
        tracing::error!(task = %self.id, operation = %operation, "its decision cannot be read");
        question.link.refuse(&question.id, -32603, "the decision cannot be read", &None);
        None
    }

    async fn lose_started(&mut self) -> TaskInput {
        let lost = match self.shared.store.lose_started_operations(&self.lease, self.running_calls()).await {
            Ok(rows) => rows,
            Err(error) => {
                tracing::error!(%error, task = %self.id, "what was lost with the runtime is not stored");
                self.note_fence(&error);
                Vec::new()
            }
        };
        for row in &lost {
            if let Some(operation) = shown_operation(&self.shared.store, &row.id).await {
                self.shared.clients.operation_updated(operation).await;
            }
        }
        TaskInput::Lost(lost.into_iter().map(|row| row.id).collect())
    }

    async fn set_state(&mut self, state: TaskState) {
        if let Err(error) = self.shared.store.set_task_state(&self.lease, state).await {
            tracing::warn!(%error, task = %self.id, "the state of a task is not stored");
            self.note_fence(&error);
        }
        self.has_other_state = true;
    }
}

fn give(pass: TaskPass, answer: LinkAnswer) {
    match pass {
        TaskPass::Open(call) | TaskPass::Request { answer: call, .. } => call(answer),
    }
}

/// The turn in the answer to `turn/start` or `turn/steer`. Nothing when the runtime went away.
fn turn_in(answer: LinkAnswer) -> Option<Result<TurnId, ErrorObject>> {
    match answer {
        Ok(result) => {
            let value: Value = serde_json::from_str(result.get()).unwrap_or_default();
            let turn = value["turn"]["id"].as_str().or(value["turnId"].as_str());
            Some(turn.map(TurnId::new).ok_or_else(|| failure("the runtime named no turn")))
        }
        Err(Some(error)) => Some(Err(error)),
        Err(None) => None,
    }
}

fn failure(message: &str) -> ErrorObject {
    ErrorObject { code: -32603, message: message.to_owned(), data: None }
}

/// Whoever asked may ask again; the request may have been carried out.
fn owner_lost() -> ErrorObject {
    let data = serde_json::value::to_raw_value(&json!({ "code": "ownerLost" })).ok();
    let message = "another host has taken the task over before this was answered; ask again";
    ErrorObject { code: -32603, message: message.to_owned(), data }
}

fn lost() -> ErrorObject {
    failure("the input was not taken")
}

async fn shown_task(shared: &HostShared, id: &ThreadId) -> Result<Task, TaskError> {
    let row = shared.store.task(id).await?;
    shared.shown_task(&row.ok_or_else(|| TaskError::UnknownThread(id.clone()))?).await
}
