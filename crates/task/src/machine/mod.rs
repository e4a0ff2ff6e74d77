//! A task as a state machine without I/O: inputs in, effects out. It awaits nothing, reads no clock and makes no ids but
//! the numbers of runtimes, so the same inputs always give the same effects.

mod effect;
mod input;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;

pub use effect::TaskEffect;
pub use input::{OperationStage, RecordFact, TaskInput, TaskSeed};

use std::collections::{BTreeMap, BTreeSet};

use protocol::{ModelRequestId, OperationId, ThreadId, TurnId};
use store::TaskState;

/// Counts the runtimes of a task within one host process. What an older one reports has no effect.
pub type Generation = u64;

/// Runtimes that may end one after the other without a single new record before the task counts as failed.
const MOST_FAILURES: u32 = 5;
/// The pause before the second try; it doubles with each further one.
const FIRST_PAUSE_MS: i64 = 250;

/// How long a runtime that has recorded the end of a turn may take to say so.
const LAST_WORDS_MS: i64 = 10_000;

/// How long a task keeps a runtime that has nothing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskTimes {
    /// Without a turn.
    pub idle_after_ms: i64,
    /// With a turn whose every branch waits for a decision.
    pub suspend_after_ms: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RuntimeStage {
    Absent,
    Starting(Generation),
    Up(Generation),
    /// It was asked to suspend its turn.
    Suspending(Generation),
    Ending(Generation),
}

/// One task. See the module.
#[derive(Debug)]
pub struct TaskMachine {
    times: TaskTimes,
    runtime: RuntimeStage,
    last_generation: Generation,
    /// Unfinished turns, of the root and of its children.
    turns: BTreeMap<ThreadId, TurnId>,
    /// Threads whose turn has ended in the record, and of which clients have not heard so.
    untold: BTreeSet<ThreadId>,
    root: ThreadId,
    operations: BTreeMap<OperationId, OperationStage>,
    /// Operations that only wait for agents.
    agent_waits: BTreeSet<OperationId>,
    /// Model requests of the runtime that is up: a turn that has one does not wait.
    requests: BTreeSet<(Generation, ModelRequestId)>,
    /// Those of them that wait for a client to carry them.
    uncarried: BTreeSet<(Generation, ModelRequestId)>,
    /// Its runtime was ended while its turn waited for a client that carries its model requests.
    lacks_carrier: bool,
    /// Questions of the runtime that is up, by the operation they are about.
    questions: BTreeMap<OperationId, u64>,
    /// Calls of the runtime that clients run, by their operation. They survive the runtime.
    calls: BTreeSet<OperationId>,
    /// Calls that may run and that no client is there to run.
    unprovided: BTreeSet<OperationId>,
    /// Input that is committed and not in the record, in the order it came, with the runtime it was sent to.
    inputs: Vec<(String, Option<Generation>)>,
    /// Requests that need a runtime, with the one they were sent to.
    passes: BTreeMap<u64, Option<Generation>>,
    /// Its turn goes on only when somebody decides, says or asks for something.
    is_parked: bool,
    /// The host stops: runtimes are ended and none is started.
    is_draining: bool,
    /// Somebody wanted it suspended while its runtime was starting: that ends as soon as it is up.
    ends_when_up: bool,
    /// Its runtime was opened with tools that the task does not have any more. It ends as soon as it can, whatever else comes.
    is_outdated: bool,
    /// Its runtime is to start and there is no room for it yet.
    is_queued: bool,
    /// Other tasks wait for room.
    is_crowded: bool,
    /// Operations that the last runtime had started are being stored as unknown; nothing starts before that is done.
    is_losing: bool,
    failures: u32,
    retry_at_ms: Option<i64>,
    /// Since when the runtime has had nothing to do.
    quiet_since_ms: Option<i64>,
    shown: TaskState,
}

impl TaskMachine {
    /// A task as the store has it. No runtime holds it yet.
    pub fn new(root: ThreadId, times: TaskTimes, seed: TaskSeed) -> Self {
        let lacks_carrier = seed.state == TaskState::WaitingForCarrier;
        let is_parked = lacks_carrier
            || matches!(seed.state, TaskState::Waiting | TaskState::Suspended | TaskState::Failed);
        Self {
            times,
            runtime: RuntimeStage::Absent,
            last_generation: 0,
            turns: seed.turns,
            untold: BTreeSet::new(),
            root,
            is_losing: false,
            operations: seed.operations,
            agent_waits: seed.agent_waits,
            requests: BTreeSet::new(),
            uncarried: BTreeSet::new(),
            lacks_carrier,
            questions: BTreeMap::new(),
            calls: BTreeSet::new(),
            unprovided: BTreeSet::new(),
            inputs: seed.inputs.into_iter().map(|id| (id, None)).collect(),
            passes: BTreeMap::new(),
            is_parked,
            is_draining: false,
            ends_when_up: false,
            is_outdated: false,
            is_queued: false,
            is_crowded: false,
            failures: 0,
            retry_at_ms: None,
            quiet_since_ms: None,
            shown: seed.state,
        }
    }

    pub fn has_runtime(&self) -> bool {
        self.runtime != RuntimeStage::Absent
    }

    /// The runtime that there is, also one that starts or ends.
    pub fn generation(&self) -> Option<Generation> {
        match self.runtime {
            RuntimeStage::Absent => None,
            RuntimeStage::Starting(current)
            | RuntimeStage::Up(current)
            | RuntimeStage::Suspending(current)
            | RuntimeStage::Ending(current) => Some(current),
        }
    }

    /// Whether its runtime has tools that the task does not have any more.
    pub fn is_outdated(&self) -> bool {
        self.is_outdated
    }

    pub fn is_starting(&self, generation: Generation) -> bool {
        self.runtime == RuntimeStage::Starting(generation)
    }

    /// Nothing runs, and nothing is about to: the store has all that is known of the task.
    pub fn is_at_rest(&self) -> bool {
        let waits =
            self.inputs.is_empty() && self.passes.is_empty() && self.calls.is_empty() && !self.is_losing;
        !self.has_runtime() && (self.is_draining || (waits && self.retry_at_ms.is_none()))
    }

    /// Something is under way or about to be: input, a request, a runtime that starts, a turn that a runtime has.
    pub fn is_at_work(&self) -> bool {
        let starts = matches!(self.runtime, RuntimeStage::Starting(_));
        let has_turn = self.has_runtime() && !(self.turns.is_empty() && self.untold.is_empty());
        starts || has_turn || !self.inputs.is_empty() || !self.passes.is_empty()
    }

    /// Operations that wait for a decision.
    pub fn undecided(&self) -> Vec<OperationId> {
        let waits =
            |stage: &OperationStage| matches!(stage, OperationStage::Proposed | OperationStage::Unknown);
        self.operations.iter().filter(|(_, stage)| waits(stage)).map(|(id, _)| id.clone()).collect()
    }

    /// The turn of the root that has no end.
    pub fn turn(&self) -> Option<&TurnId> {
        self.turns.get(&self.root)
    }

    /// Takes one input and gives what is to be done, in order.
    pub fn on(&mut self, now_ms: i64, input: TaskInput) -> Vec<TaskEffect> {
        let mut effects = Vec::new();
        self.take(now_ms, input, &mut effects);
        self.settle(now_ms, &mut effects);
        effects
    }

    fn take(&mut self, now_ms: i64, input: TaskInput, effects: &mut Vec<TaskEffect>) {
        match input {
            TaskInput::Loaded => {
                if self.operations.values().any(|stage| *stage == OperationStage::Started) {
                    self.is_losing = true;
                    effects.push(TaskEffect::LoseStarted);
                }
            }
            TaskInput::InputReceived(id) => {
                self.unpark();
                self.failures = 0;
                if !self.inputs.iter().any(|(known, _)| *known == id) {
                    self.inputs.push((id, None));
                }
            }
            TaskInput::InputTaken(id) => self.inputs.retain(|(known, _)| *known != id),
            TaskInput::PassWanted(pass) => {
                self.failures = 0;
                self.passes.insert(pass, None);
            }
            TaskInput::PassDone(pass) => drop(self.passes.remove(&pass)),
            TaskInput::RuntimeUp(generation) => {
                if self.runtime == RuntimeStage::Starting(generation) {
                    self.came_up(generation, effects);
                }
            }
            TaskInput::Queued(generation) => self.is_queued = self.is_starting(generation),
            TaskInput::RoomFound(generation) => self.is_queued &= !self.is_starting(generation),
            TaskInput::Crowded(is_crowded) => self.is_crowded = is_crowded,
            TaskInput::RuntimeFailed { generation, is_final: true }
                if self.is_current(generation) && !self.is_outdated =>
            {
                self.failures = MOST_FAILURES;
                self.runtime_gone(now_ms, effects);
            }
            TaskInput::RuntimeFailed { generation, .. } | TaskInput::RuntimeGone(generation) => {
                if self.is_current(generation) {
                    self.runtime_gone(now_ms, effects);
                }
            }
            TaskInput::Recorded(fact) => self.recorded(fact, effects),
            TaskInput::AgentGivenUp { thread, turn } => drop(self.turn_ended(&thread, &turn, effects)),
            TaskInput::ModelAsked { generation, request } => self.model_asked(generation, request),
            TaskInput::ModelDone { generation, request } => self.model_done(generation, request),
            TaskInput::CarrierWanted { generation, request } => self.carrier_wanted(generation, request),
            TaskInput::CarrierFound { generation, request } => {
                self.uncarried.remove(&(generation, request));
            }
            TaskInput::TurnTold(thread) => drop(self.untold.remove(&thread)),
            TaskInput::Lost(operations) => {
                self.is_losing = false;
                for operation in operations {
                    self.operations.insert(operation, OperationStage::Unknown);
                }
                // Those that may run twice: the next runtime runs them again.
                self.operations.retain(|_, stage| *stage != OperationStage::Started);
            }
            TaskInput::Asked { operation, question } => self.asked(operation, question, effects),
            TaskInput::QuestionGone { question } => self.questions.retain(|_, open| *open != question),
            TaskInput::Decided(operation) => self.settled(operation, effects),
            TaskInput::Reopened(operation) => self.reopened(operation, effects),
            TaskInput::Undecided { operation, question } => {
                self.operations.remove(&operation);
                self.asked(operation, question, effects);
            }
            TaskInput::CallWaits { operation, question } => {
                self.questions.insert(operation.clone(), question);
                if !self.calls.contains(&operation) {
                    self.unprovided.insert(operation);
                }
            }
            TaskInput::CallStopped(operation) => drop(self.calls.remove(&operation)),
            TaskInput::CallBegun(operation) => {
                self.unprovided.remove(&operation);
                self.calls.insert(operation);
            }
            TaskInput::CallDone(operation) => {
                self.calls.remove(&operation);
                self.settled(operation, effects);
            }
            TaskInput::CallLost(operation) => self.call_lost(operation),
            TaskInput::SuspendWanted => self.suspend_wanted(effects),
            TaskInput::ToolsChanged => self.tools_changed(effects),
            TaskInput::Suspended(generation) => {
                if self.runtime == RuntimeStage::Suspending(generation) {
                    self.runtime = RuntimeStage::Ending(generation);
                    effects.push(TaskEffect::EndRuntime(generation));
                }
            }
            TaskInput::ResumeWanted => self.resume_wanted(),
            TaskInput::DrainWanted => {
                self.is_draining = true;
                let was_parked = self.is_parked;
                self.suspend(effects);
                // The turn goes on by itself when the host is back.
                self.is_parked = was_parked;
            }
            TaskInput::TimePassed => {}
        }
    }

    fn unpark(&mut self) {
        self.is_parked = false;
        self.lacks_carrier = false;
    }

    fn call_lost(&mut self, operation: OperationId) {
        self.calls.remove(&operation);
        self.operations.insert(operation, OperationStage::Unknown);
    }

    fn resume_wanted(&mut self) {
        // Whoever resumes the task may run its calls. With a runtime they wait for that already.
        if !self.has_runtime() {
            self.unprovided.clear();
        }
        self.unpark();
        self.ends_when_up = self.is_draining;
        self.failures = 0;
        self.retry_at_ms = None;
    }

    fn reopened(&mut self, operation: OperationId, effects: &mut Vec<TaskEffect>) {
        self.operations.insert(operation.clone(), OperationStage::Proposed);
        self.unprovided.remove(&operation);
        // Also the wait for a client that has the tool as it was.
        effects.push(TaskEffect::CloseAsk(operation.clone()));
        if let Some(&question) = self.questions.get(&operation) {
            effects.push(TaskEffect::AskClients { operation, question });
        }
    }

    /// Its decision or its result is stored.
    fn settled(&mut self, operation: OperationId, effects: &mut Vec<TaskEffect>) {
        self.unpark();
        self.ends_when_up = self.is_draining;
        self.failures = 0;
        self.unprovided.remove(&operation);
        effects.push(TaskEffect::EndAsk(operation.clone()));
        if let Some(question) = self.questions.remove(&operation) {
            effects.push(TaskEffect::AnswerQuestion { operation: operation.clone(), question });
        }
        self.operations.insert(operation, OperationStage::Decided);
    }

    fn model_asked(&mut self, generation: Generation, request: ModelRequestId) {
        if self.is_current(generation) {
            self.requests.insert((generation, request));
        }
    }

    fn model_done(&mut self, generation: Generation, request: ModelRequestId) {
        let asked = (generation, request);
        self.uncarried.remove(&asked);
        self.requests.remove(&asked);
    }

    fn carrier_wanted(&mut self, generation: Generation, request: ModelRequestId) {
        let asked = (generation, request);
        if self.requests.contains(&asked) {
            self.uncarried.insert(asked);
        }
    }

    /// Somebody wants it suspended, whatever it waits for.
    fn suspend_wanted(&mut self, effects: &mut Vec<TaskEffect>) {
        self.lacks_carrier = false;
        self.suspend(effects);
    }

    fn is_current(&self, generation: Generation) -> bool {
        self.generation() == Some(generation)
    }

    fn came_up(&mut self, generation: Generation, effects: &mut Vec<TaskEffect>) {
        self.runtime = RuntimeStage::Up(generation);
        if std::mem::take(&mut self.ends_when_up) || self.is_outdated {
            self.end_safely(generation, effects);
        }
    }

    /// Nobody is parked: the next runtime goes on with what this one had.
    fn tools_changed(&mut self, effects: &mut Vec<TaskEffect>) {
        // One that waits for room has not been opened yet.
        self.is_outdated = self.has_runtime() && !self.is_queued;
        if let RuntimeStage::Up(generation) = self.runtime {
            self.end_safely(generation, effects);
        }
    }

    fn runtime_gone(&mut self, now_ms: i64, effects: &mut Vec<TaskEffect>) {
        let was_asked_to = matches!(self.runtime, RuntimeStage::Ending(_));
        self.runtime = RuntimeStage::Absent;
        self.ends_when_up = false;
        self.is_outdated = false;
        self.is_queued = false;
        self.questions.clear();
        self.requests.clear();
        self.uncarried.clear();
        self.untold.clear();
        self.quiet_since_ms = None;
        for (_, sent) in &mut self.inputs {
            *sent = None;
        }
        // Whoever waits for an answer of this runtime gets none.
        self.passes.retain(|_, sent| sent.is_none());
        if self.operations.values().any(|stage| *stage == OperationStage::Started) {
            self.is_losing = true;
            effects.push(TaskEffect::LoseStarted);
        }
        if was_asked_to {
            self.retry_at_ms = None;
            return;
        }
        self.failures += 1;
        if self.failures >= MOST_FAILURES {
            self.is_parked = true;
            self.fail_passes("its runtime cannot be started; the host's log says why", effects);
            // Kept in the store: a later request or `task/resume` tries them again.
            self.retry_at_ms = None;
        } else {
            let pause = if self.failures == 1 { 0 } else { FIRST_PAUSE_MS << (self.failures - 2) };
            self.retry_at_ms = Some(now_ms + pause);
        }
    }

    fn fail_passes(&mut self, reason: &'static str, effects: &mut Vec<TaskEffect>) {
        for pass in std::mem::take(&mut self.passes).into_keys() {
            effects.push(TaskEffect::FailPass { pass, reason });
        }
    }

    fn recorded(&mut self, fact: RecordFact, effects: &mut Vec<TaskEffect>) {
        self.failures = 0;
        match fact {
            RecordFact::TurnStarted { thread, turn } => drop(self.turns.insert(thread, turn)),
            RecordFact::TurnEnded { thread, turn } => {
                if self.turn_ended(&thread, &turn, effects) {
                    self.untold.insert(thread);
                }
            }
            RecordFact::Operation { operation, stage: Some(stage) } => {
                if stage != OperationStage::Proposed {
                    self.questions.remove(&operation);
                    effects.push(TaskEffect::CloseAsk(operation.clone()));
                } else if self.operations.contains_key(&operation) {
                    // Proposed again by another runtime: the decision, if there is one, stays.
                    return;
                }
                if stage == OperationStage::Proposed {
                    // The next proposal of a call is what became of the one before.
                    self.operations.retain(|before, stage| {
                        *stage != OperationStage::Decided || !is_next(operation.as_str(), before.as_str())
                    });
                }
                self.operations.insert(operation, stage);
            }
            RecordFact::Operation { operation, stage: None } => self.close(&operation, effects),
            RecordFact::AgentWait(operation) => drop(self.agent_waits.insert(operation)),
            RecordFact::Other => {}
        }
    }

    /// Says whether it was under way.
    fn turn_ended(&mut self, thread: &ThreadId, turn: &TurnId, effects: &mut Vec<TaskEffect>) -> bool {
        let of_turn = format!("{thread}:{turn}:");
        let over: BTreeSet<OperationId> = self
            .operations
            .keys()
            .filter(|operation| operation.as_str().starts_with(&of_turn))
            .cloned()
            .collect();
        for operation in over {
            self.close(&operation, effects);
        }
        let was_under_way = self.turns.get(thread) == Some(turn);
        if was_under_way {
            self.turns.remove(thread);
        }
        was_under_way
    }

    fn close(&mut self, operation: &OperationId, effects: &mut Vec<TaskEffect>) {
        self.operations.remove(operation);
        self.agent_waits.remove(operation);
        self.questions.remove(operation);
        self.calls.remove(operation);
        self.unprovided.remove(operation);
        effects.push(TaskEffect::CloseAsk(operation.clone()));
    }

    fn asked(&mut self, operation: OperationId, question: u64, effects: &mut Vec<TaskEffect>) {
        match self.operations.get(&operation) {
            Some(OperationStage::Decided) => effects.push(TaskEffect::AnswerQuestion { operation, question }),
            _ => {
                self.operations.entry(operation.clone()).or_insert(OperationStage::Proposed);
                self.questions.insert(operation.clone(), question);
                effects.push(TaskEffect::AskClients { operation, question });
            }
        }
    }

    fn suspend(&mut self, effects: &mut Vec<TaskEffect>) {
        self.is_parked = true;
        if std::mem::take(&mut self.is_queued) {
            self.runtime = RuntimeStage::Absent;
            effects.push(TaskEffect::LeaveQueue);
        }
        self.ends_when_up = matches!(self.runtime, RuntimeStage::Starting(_));
        if let RuntimeStage::Up(generation) = self.runtime {
            self.end_safely(generation, effects);
        }
    }

    /// Ends the runtime once its turns have come to a safe point.
    fn end_safely(&mut self, generation: Generation, effects: &mut Vec<TaskEffect>) {
        let turns: Vec<(ThreadId, TurnId)> = self.turns.clone().into_iter().collect();
        match turns.is_empty() {
            false => {
                self.runtime = RuntimeStage::Suspending(generation);
                effects.push(TaskEffect::SuspendTurns { generation, turns });
            }
            true => {
                self.runtime = RuntimeStage::Ending(generation);
                effects.push(TaskEffect::EndRuntime(generation));
            }
        }
    }

    /// The last step of every input: what the state asks for now.
    fn settle(&mut self, now_ms: i64, effects: &mut Vec<TaskEffect>) {
        match self.runtime {
            RuntimeStage::Absent => self.maybe_start(now_ms, effects),
            RuntimeStage::Up(generation) => {
                self.send_waiting(generation, effects);
                self.maybe_end(now_ms, generation, effects);
            }
            RuntimeStage::Starting(_) | RuntimeStage::Suspending(_) | RuntimeStage::Ending(_) => {}
        }
        let state = self.state();
        if state != self.shown {
            self.shown = state;
            effects.push(TaskEffect::SetState(state));
        }
    }

    fn maybe_start(&mut self, now_ms: i64, effects: &mut Vec<TaskEffect>) {
        if self.is_losing || self.is_draining {
            return;
        }
        if self.waits_for_unknown() {
            self.fail_passes(
                "the outcome of an operation is unknown; decide it first: retry, respond or reject",
                effects,
            );
            return;
        }
        let has_decided = self.operations.iter().any(|(operation, stage)| {
            *stage == OperationStage::Decided && !self.unprovided.contains(operation)
        });
        // Where runtimes cannot be started, an earlier decision is no reason to try again without a pause.
        let has_news = has_decided && self.failures < MOST_FAILURES;
        let goes_on = !self.turns.is_empty() && (!self.is_parked || has_news);
        let has_input = !self.inputs.is_empty() && !self.is_parked;
        if !has_input && self.passes.is_empty() && !goes_on {
            return;
        }
        if let Some(at_ms) = self.retry_at_ms.filter(|at_ms| *at_ms > now_ms) {
            effects.push(TaskEffect::WakeAt(at_ms));
            return;
        }
        self.retry_at_ms = None;
        self.last_generation += 1;
        self.runtime = RuntimeStage::Starting(self.last_generation);
        effects.push(TaskEffect::StartRuntime(self.last_generation));
    }

    fn waits_for_unknown(&self) -> bool {
        self.operations.values().any(|stage| *stage == OperationStage::Unknown)
    }

    fn send_waiting(&mut self, generation: Generation, effects: &mut Vec<TaskEffect>) {
        for (id, sent) in self.inputs.iter_mut().filter(|(_, sent)| sent.is_none()) {
            *sent = Some(generation);
            effects.push(TaskEffect::SendInput { generation, input: id.clone() });
        }
        for (pass, sent) in self.passes.iter_mut().filter(|(_, sent)| sent.is_none()) {
            *sent = Some(generation);
            effects.push(TaskEffect::SendPass { generation, pass: *pass });
        }
    }

    fn maybe_end(&mut self, now_ms: i64, generation: Generation, effects: &mut Vec<TaskEffect>) {
        let is_busy = !self.inputs.is_empty() || !self.passes.is_empty();
        let after_ms = match (is_busy, self.turns.is_empty(), self.is_waiting()) {
            (false, true, _) | (false, false, true) if self.is_crowded => 0,
            (false, true, _) => self.times.idle_after_ms,
            (false, false, true) => self.times.suspend_after_ms,
            _ => {
                self.quiet_since_ms = None;
                return;
            }
        };
        // A runtime that ended now would take along what it has not said yet.
        let after_ms = if self.untold.is_empty() { after_ms } else { after_ms.max(LAST_WORDS_MS) };
        let end_ms = *self.quiet_since_ms.get_or_insert(now_ms) + after_ms;
        if end_ms > now_ms {
            effects.push(TaskEffect::WakeAt(end_ms));
            return;
        }
        self.quiet_since_ms = None;
        if self.turns.is_empty() {
            self.runtime = RuntimeStage::Ending(generation);
            effects.push(TaskEffect::EndRuntime(generation));
        } else {
            self.lacks_carrier = !self.uncarried.is_empty();
            self.suspend(effects);
        }
    }

    /// Every branch of every turn waits for a decision, for a client that runs a call or carries a model request, or for an
    /// agent that does: nothing runs, and no model is asked.
    fn is_waiting(&self) -> bool {
        let waits = |(operation, stage): (&OperationId, &OperationStage)| {
            let waits = matches!(stage, OperationStage::Proposed | OperationStage::Unknown)
                || self.unprovided.contains(operation);
            let waits_for_agent = *stage == OperationStage::Started && self.agent_waits.contains(operation);
            waits_for_agent || (waits && self.questions.contains_key(operation))
        };
        let is_still = self.calls.is_empty() && self.requests.len() == self.uncarried.len();
        let has_wait = !self.questions.is_empty() || !self.uncarried.is_empty();
        has_wait && is_still && self.operations.iter().all(waits)
    }

    fn state(&self) -> TaskState {
        let waits = self.waits_for_unknown()
            || self.operations.values().any(|stage| *stage == OperationStage::Proposed);
        match self.runtime {
            RuntimeStage::Starting(_) if self.is_queued => TaskState::Queued,
            RuntimeStage::Starting(_) if self.shown == TaskState::Creating => TaskState::Creating,
            RuntimeStage::Absent if self.failures >= MOST_FAILURES => TaskState::Failed,
            RuntimeStage::Absent if self.turns.is_empty() && self.inputs.is_empty() => match self.shown {
                TaskState::Creating if self.last_generation == 0 => TaskState::Creating,
                _ => TaskState::Idle,
            },
            RuntimeStage::Absent if self.waits_for_unknown() => TaskState::Waiting,
            RuntimeStage::Absent if self.is_parked && waits && self.shown == TaskState::Waiting => {
                TaskState::Waiting
            }
            RuntimeStage::Absent | RuntimeStage::Suspending(_) | RuntimeStage::Ending(_)
                if self.is_parked =>
            {
                match self.lacks_carrier {
                    true => TaskState::WaitingForCarrier,
                    false => TaskState::Suspended,
                }
            }
            // A person whose decision is waited for comes first: it is what others look for.
            RuntimeStage::Up(_) if self.is_waiting() && (waits || self.uncarried.is_empty()) => {
                TaskState::Waiting
            }
            RuntimeStage::Up(_) if self.is_waiting() && !self.turns.is_empty() => {
                TaskState::WaitingForCarrier
            }
            _ if self.turns.is_empty() && self.inputs.is_empty() => TaskState::Idle,
            _ => TaskState::Running,
        }
    }
}

/// Proposals of one call after its first have their number behind its id.
fn is_next(operation: &str, before: &str) -> bool {
    operation.strip_prefix(before).is_some_and(|rest| rest.starts_with(':'))
}
