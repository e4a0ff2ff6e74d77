//! The world of one schedule: replicas with their drivers, runtimes, the database, clients, and what goes wrong.

use std::collections::{BTreeMap, VecDeque};

use protocol::OperationId;
use store::TaskState;

use super::super::{OperationStage, TaskEffect, TaskInput, TaskMachine, TaskTimes};
use super::random::Random;
use super::runtimes::{NextStep, SimulatedRuntime};
use super::store::{Rec, Refusal, StoredTask, fact_of};
use super::{SimulatedDecision as Decision, op_number, operation_id, thread_id};

const TTL: i64 = 15_000;
/// Faults happen before this time, and everything must be over so much later.
const FAULTS: i64 = 240_000;
const SETTLED: i64 = FAULTS + 900_000;
const TIMES: TaskTimes = TaskTimes { idle_after_ms: 60_000, suspend_after_ms: 30_000 };
/// How long an append waits for a database that is away.
const PATIENCE: i64 = 60_000;
/// Inputs that may follow from one without any time between them.
const MOST_AT_ONCE: u32 = 1_000;
/// Lines of the log that are printed when a schedule fails.
const LAST_LINES: usize = 60;

#[derive(Debug)]
enum Event {
    Renew(usize),
    Look(usize),
    Wake { replica: usize, driver: u64 },
    Tell { replica: usize, driver: u64, input: TaskInput },
    Opened { replica: usize, driver: u64, generation: u64, tools: u64, works: bool },
    Step(usize),
    Append { runtime: usize, from: usize, rec: Rec, sent: i64 },
    Ack { runtime: usize, rec: Rec, valid_until: i64 },
    Answer { runtime: usize, op: u32, decision: Decision },
    Client,
    Fault,
    Back(usize),
}

#[derive(Debug)]
struct Driver {
    id: u64,
    machine: TaskMachine,
    epoch: u64,
    runtime: Option<usize>,
    /// The runtime's questions by number, with the operation and the runtime that asks.
    questions: BTreeMap<u64, (u32, usize)>,
    next_question: u64,
}

#[derive(Debug, Default)]
struct Replica {
    is_alive: bool,
    /// Stopped until then.
    stopped_until: i64,
    incarnation: u64,
    /// The end of its lease by its own clock.
    lease_ends: i64,
    driver: Option<Driver>,
    /// It let the task go though its own lease held, and looks again.
    doubts: bool,
}

pub(super) struct World {
    seed: u64,
    random: Random,
    now: i64,
    queue: BTreeMap<(i64, u64), Event>,
    next_event: u64,
    next_driver: u64,
    task: StoredTask,
    /// Earlier states, for reads that are stale.
    old: VecDeque<StoredTask>,
    away_until: i64,
    slow_until: i64,
    /// How far the database's clock is off.
    database_clock: i64,
    /// By replica: incarnation and end, by the database's clock.
    leases: Vec<(u64, i64)>,
    replicas: Vec<Replica>,
    runtimes: Vec<SimulatedRuntime>,
    /// Counted where they happen, not where they are recorded.
    effects: BTreeMap<u32, usize>,
    /// The highest epoch of a runtime that had an effect.
    effect_epoch: u64,
    acknowledged_inputs: Vec<String>,
    acknowledged_decisions: BTreeMap<(u32, u32), Decision>,
    log: VecDeque<String>,
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let count = 1 + usize::try_from(random.below(3)).unwrap_or(0);
        let mut world = Self {
            seed,
            random,
            now: 0,
            queue: BTreeMap::new(),
            next_event: 0,
            next_driver: 0,
            task: StoredTask::default(),
            old: VecDeque::new(),
            away_until: 0,
            slow_until: 0,
            database_clock: 0,
            leases: vec![(0, 0); count],
            replicas: (0..count).map(|_| Replica::default()).collect(),
            runtimes: Vec::new(),
            effects: BTreeMap::new(),
            effect_epoch: 0,
            acknowledged_inputs: Vec::new(),
            acknowledged_decisions: BTreeMap::new(),
            log: VecDeque::new(),
        };
        for replica in 0..count {
            world.start_replica(replica);
        }
        world.at(5, Event::Client);
        world.at(1_000, Event::Fault);
        world
    }

    pub(super) fn run(mut self) {
        while let Some(((at, _), event)) = self.queue.pop_first() {
            if at > SETTLED {
                break;
            }
            self.now = self.now.max(at);
            self.happen(event);
        }
        self.check_end();
    }

    fn note(&mut self, line: impl FnOnce() -> String) {
        if self.log.len() == LAST_LINES {
            self.log.pop_front();
        }
        let line = format!("{:>8} {}", self.now, line());
        self.log.push_back(line);
    }

    #[track_caller]
    fn check(&self, holds: bool, promise: &str) {
        if !holds {
            let log: Vec<&str> = self.log.iter().map(String::as_str).collect();
            panic!("seed {}: {promise}\n{}\n{:#?}", self.seed, log.join("\n"), self.task);
        }
    }

    fn at(&mut self, in_ms: i64, event: Event) {
        self.next_event += 1;
        self.queue.insert((self.now + in_ms.max(0), self.next_event), event);
    }

    fn is_quiet(&self) -> bool {
        self.now > FAULTS
    }

    fn database_now(&self) -> i64 {
        self.now + self.database_clock
    }

    fn has_database(&self) -> bool {
        self.now >= self.away_until
    }

    /// How long a piece of work takes there.
    fn latency(&mut self) -> i64 {
        match self.now < self.slow_until {
            true => self.random.between(200, 4_000),
            false => self.random.between(0, 8),
        }
    }

    fn holds_lease(&self, replica: usize) -> bool {
        let (incarnation, ends) = self.leases[replica];
        incarnation == self.replicas[replica].incarnation && ends > self.database_now()
    }

    /// Where an event of this replica belongs now: dropped with a dead one, later with one that is stopped.
    fn is_here(&mut self, replica: usize, event: Event) -> Option<Event> {
        let of = &self.replicas[replica];
        if !of.is_alive {
            return None;
        }
        if of.stopped_until > self.now {
            let wait = of.stopped_until - self.now;
            self.at(wait, event);
            return None;
        }
        Some(event)
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Client => self.client(),
            Event::Fault => self.fault(),
            Event::Back(replica) => self.start_replica(replica),
            Event::Step(runtime) => self.step(runtime),
            Event::Ack { runtime, rec, valid_until } => self.acknowledged(runtime, rec, valid_until),
            Event::Answer { runtime, op, decision } => self.answered(runtime, op, decision),
            Event::Append { runtime, from, rec, sent } => {
                let replica = self.runtimes[runtime].replica;
                if let Some(Event::Append { runtime, from, rec, sent }) =
                    self.is_here(replica, Event::Append { runtime, from, rec, sent })
                {
                    self.append(runtime, from, rec, sent);
                }
            }
            Event::Renew(replica) => {
                if self.is_here(replica, Event::Renew(replica)).is_some() {
                    self.renew(replica);
                }
            }
            Event::Look(replica) => {
                if self.is_here(replica, Event::Look(replica)).is_some() {
                    self.at(TTL / 3, Event::Look(replica));
                    self.look(replica);
                }
            }
            Event::Wake { replica, driver } => {
                if self.is_here(replica, Event::Wake { replica, driver }).is_some() {
                    self.advance(replica, driver, TaskInput::TimePassed);
                }
            }
            Event::Tell { replica, driver, input } => {
                if let Some(Event::Tell { input, .. }) =
                    self.is_here(replica, Event::Tell { replica, driver, input })
                {
                    self.advance(replica, driver, input);
                }
            }
            Event::Opened { replica, driver, generation, tools, works } => {
                let event = Event::Opened { replica, driver, generation, tools, works };
                if self.is_here(replica, event).is_some() {
                    self.opened(replica, driver, (generation, tools), works);
                }
            }
        }
    }

    fn start_replica(&mut self, replica: usize) {
        let of = &mut self.replicas[replica];
        if of.is_alive {
            return;
        }
        of.is_alive = true;
        of.driver = None;
        of.stopped_until = 0;
        self.enter(replica);
        self.at(TTL / 3, Event::Renew(replica));
        self.at(10, Event::Look(replica));
    }

    /// A lease of its own, greater than any before.
    fn enter(&mut self, replica: usize) {
        let incarnation = self.leases[replica].0.max(self.replicas[replica].incarnation) + 1;
        self.replicas[replica].incarnation = incarnation;
        self.replicas[replica].lease_ends = self.now;
        if self.has_database() {
            self.leases[replica] = (incarnation, self.database_now() + TTL);
            self.replicas[replica].lease_ends = self.now + TTL;
        }
    }

    fn renew(&mut self, replica: usize) {
        self.at(TTL / 3, Event::Renew(replica));
        if self.is_over(replica) {
            self.abandon(replica, "its lease is over");
            self.enter(replica);
        } else if self.has_database() && self.leases[replica].0 == self.replicas[replica].incarnation {
            self.leases[replica].1 = self.database_now() + TTL;
            self.replicas[replica].lease_ends = self.now + TTL;
        }
    }

    /// By its own clock.
    fn is_over(&self, replica: usize) -> bool {
        self.replicas[replica].lease_ends <= self.now
    }

    fn abandon(&mut self, replica: usize, why: &str) {
        let Some(driver) = self.replicas[replica].driver.take() else { return };
        self.note(|| format!("replica {replica} lets go of the task: {why}"));
        self.replicas[replica].doubts = !self.is_over(replica);
        if let Some(runtime) = driver.runtime {
            self.runtimes[runtime].is_alive = false;
        }
        // One that is being opened has no driver to come up for.
        for runtime in self.runtimes.iter_mut().filter(|runtime| runtime.driver == driver.id) {
            runtime.is_alive = false;
        }
    }

    /// The driver of the task at this replica, made where nobody else has the task.
    fn drive(&mut self, replica: usize) -> Option<u64> {
        if let Some(driver) = &self.replicas[replica].driver {
            return Some(driver.id);
        }
        if !self.has_database() || self.is_over(replica) || !self.holds_lease(replica) {
            return None;
        }
        let incarnation = self.replicas[replica].incarnation;
        if let Some((owner, owned_as)) = self.task.owner {
            let is_own = (owner, owned_as) == (replica, incarnation);
            let lives = owned_as == self.leases[owner].0 && self.leases[owner].1 > self.database_now();
            if owner != replica && lives {
                return None;
            }
            if !is_own {
                self.own(replica);
            }
        } else {
            self.own(replica);
        }
        // Whatever the owner before has started is gone first.
        if let Some(runtime) = self.task.runtime {
            self.runtime_dies(runtime);
        }
        self.next_driver += 1;
        let id = self.next_driver;
        let machine = TaskMachine::new(thread_id(), TIMES, self.task.seed());
        let epoch = self.task.epoch;
        let driver =
            Driver { id, machine, epoch, runtime: None, questions: BTreeMap::new(), next_question: 0 };
        self.replicas[replica].driver = Some(driver);
        self.note(|| format!("replica {replica} has the task, epoch {epoch}"));
        self.advance(replica, id, TaskInput::Loaded);
        Some(id)
    }

    fn own(&mut self, replica: usize) {
        self.task.epoch += 1;
        self.task.owner = Some((replica, self.replicas[replica].incarnation));
    }

    fn look(&mut self, replica: usize) {
        if self.is_over(replica) || !self.has_database() {
            return;
        }
        let Some(driver) = self.replicas[replica].driver.as_ref().map(|driver| driver.id) else {
            let is_orphan = self.task.owner.is_none_or(|(owner, owned_as)| {
                owned_as != self.leases[owner].0 || self.leases[owner].1 <= self.database_now()
            });
            let doubts = std::mem::take(&mut self.replicas[replica].doubts);
            if (doubts || (is_orphan && self.task.has_work())) && self.drive(replica).is_none() {
                self.replicas[replica].doubts =
                    doubts && self.task.owner.is_none_or(|(owner, _)| owner == replica);
            }
            return;
        };
        // A read beside the transactions may be an old one.
        let read = match self.old.is_empty() || !self.random.one_in(3) || self.is_quiet() {
            true => self.task.clone(),
            false => {
                let at = self.random.below(self.old.len() as u64);
                self.old[usize::try_from(at).unwrap_or(0)].clone()
            }
        };
        for input in read.waiting_inputs() {
            let is_taken = self.task.inbox.iter().any(|(id, is_taken)| *id == input && *is_taken);
            // The driver remembers inputs until they are answered; one that it has answered is in the record.
            if !is_taken || !self.task.has_input(&input) {
                self.advance(replica, driver, TaskInput::InputReceived(input));
            }
        }
        let undecided = self.replicas[replica]
            .driver
            .as_ref()
            .map(|driver| driver.machine.undecided())
            .unwrap_or_default();
        for operation in undecided {
            let row = read.ops.get(&op_number(&operation));
            if row.is_some_and(|row| row.stage == Some(OperationStage::Decided)) {
                self.advance(replica, driver, TaskInput::Decided(operation));
            }
        }
    }

    fn advance(&mut self, replica: usize, driver: u64, input: TaskInput) {
        let mut waiting = VecDeque::from([input]);
        let mut taken = 0;
        while let Some(input) = waiting.pop_front() {
            taken += 1;
            self.check(taken < MOST_AT_ONCE, "a task does not go round in circles");
            if self.is_over(replica) {
                return self.abandon(replica, "its lease is over");
            }
            let now = self.now;
            let Some(of) = self.replicas[replica].driver.as_mut().filter(|of| of.id == driver) else {
                return;
            };
            let shown = format!("{input:?}");
            let effects = of.machine.on(now, input);
            self.note(|| format!("replica {replica}: {shown} -> {effects:?}"));
            for effect in effects {
                match self.perform(replica, driver, effect) {
                    Ok(Some(next)) => waiting.push_back(next),
                    Ok(None) => {}
                    Err(why) => return self.abandon(replica, why),
                }
            }
        }
        self.leave(replica, driver);
    }

    /// A driver with nothing to do lets the task go, when nobody follows it there.
    fn leave(&mut self, replica: usize, driver: u64) {
        let Some(of) = self.replicas[replica].driver.as_ref().filter(|of| of.id == driver) else { return };
        if of.machine.is_at_rest() && of.questions.is_empty() && self.random.one_in(2) && self.has_database()
        {
            self.replicas[replica].driver = None;
            if self.task.owner == Some((replica, self.replicas[replica].incarnation)) {
                self.task.owner = None;
            }
        }
    }

    fn perform(
        &mut self,
        replica: usize,
        driver: u64,
        effect: TaskEffect,
    ) -> Result<Option<TaskInput>, &'static str> {
        match effect {
            TaskEffect::StartRuntime(generation) => return self.start_runtime(replica, driver, generation),
            TaskEffect::EndRuntime(generation) => self.end_runtime(replica, driver, generation),
            TaskEffect::SuspendTurns { generation, .. } => {
                if let Some(runtime) = self.runtime_of(replica) {
                    self.runtimes[runtime].is_paused = true;
                }
                let wait = self.random.between(1, 200);
                let input = TaskInput::Suspended(generation);
                self.at(wait, Event::Tell { replica, driver, input });
            }
            TaskEffect::SendInput { input, .. } => {
                if self.task.has_input(&input) {
                    self.answer_input(&input);
                    return Ok(Some(TaskInput::InputTaken(input)));
                }
                if let Some(runtime) = self.runtime_of(replica) {
                    let is_current = self.runtimes[runtime].tools == self.task.tools;
                    self.check(is_current, "input goes to a runtime that has the tools of before");
                    self.runtimes[runtime].inputs.push_back(input);
                    self.at(1, Event::Step(runtime));
                }
            }
            TaskEffect::SendPass { pass, .. } => return Ok(Some(TaskInput::PassDone(pass))),
            TaskEffect::AnswerQuestion { operation, question } => {
                self.answer(replica, &operation, question);
            }
            TaskEffect::LoseStarted => return self.lose_started(replica),
            TaskEffect::SetState(state) => self.set_state(replica, state)?,
            TaskEffect::WakeAt(at_ms) => {
                let wait = at_ms - self.now;
                self.at(wait, Event::Wake { replica, driver });
            }
            TaskEffect::AskClients { .. }
            | TaskEffect::EndAsk(_)
            | TaskEffect::CloseAsk(_)
            | TaskEffect::FailPass { .. }
            | TaskEffect::LeaveQueue => {}
        }
        Ok(None)
    }

    fn runtime_of(&self, replica: usize) -> Option<usize> {
        let runtime = self.replicas[replica].driver.as_ref()?.runtime?;
        self.runtimes[runtime].is_alive.then_some(runtime)
    }

    fn is_owner(&self, replica: usize) -> bool {
        self.task.owner == Some((replica, self.replicas[replica].incarnation)) && self.holds_lease(replica)
    }

    fn start_runtime(
        &mut self,
        replica: usize,
        driver: u64,
        generation: u64,
    ) -> Result<Option<TaskInput>, &'static str> {
        if !self.has_database() {
            return Ok(Some(TaskInput::RuntimeFailed { generation, is_final: false }));
        }
        if !self.is_owner(replica) {
            return Err("another one has the task");
        }
        self.task.epoch += 1;
        let epoch = self.task.epoch;
        if let Some(of) = &mut self.replicas[replica].driver {
            of.epoch = epoch;
        }
        // At most one of a task lives, whatever happened before.
        let lives = self.runtimes.iter().any(|runtime| runtime.is_alive && runtime.driver == driver);
        self.check(!lives, "a runtime is started while another one of the same driver lives");
        let wait = self.random.between(20, 400);
        let works = self.is_quiet() || !self.random.one_in(12);
        let tools = self.task.tools;
        self.at(wait, Event::Opened { replica, driver, generation, tools, works });
        Ok(None)
    }

    fn opened(&mut self, replica: usize, driver: u64, (generation, tools): (u64, u64), works: bool) {
        let Some(of) = self.replicas[replica].driver.as_ref().filter(|of| of.id == driver) else { return };
        if !of.machine.is_starting(generation) {
            return;
        }
        let (epoch, can) = (of.epoch, works && self.has_database() && self.is_owner(replica));
        if !can || self.is_over(replica) {
            return self.advance(replica, driver, TaskInput::RuntimeFailed { generation, is_final: false });
        }
        let latest = |row: &super::store::OpRow| row.decisions.get(&row.attempt).copied();
        let decided = self.task.ops.iter().filter(|(_, row)| row.stage == Some(OperationStage::Decided));
        let resolved = decided.filter_map(|(op, row)| Some((*op, latest(row)?))).collect();
        self.runtimes.push(SimulatedRuntime {
            replica,
            driver,
            generation,
            tools,
            epoch,
            is_alive: true,
            is_paused: false,
            records: self.task.records.clone(),
            resolved,
            inputs: VecDeque::new(),
            done: Default::default(),
            is_waiting: false,
        });
        let runtime = self.runtimes.len() - 1;
        self.task.runtime = Some(runtime);
        if let Some(of) = &mut self.replicas[replica].driver {
            of.runtime = Some(runtime);
            of.questions.clear();
        }
        for input in self.task.waiting_inputs() {
            if self.task.has_input(&input) {
                self.answer_input(&input);
                self.advance(replica, driver, TaskInput::InputTaken(input));
            }
        }
        self.advance(replica, driver, TaskInput::RuntimeUp(generation));
        self.at(1, Event::Step(runtime));
    }

    fn end_runtime(&mut self, replica: usize, driver: u64, generation: u64) {
        if let Some(runtime) = self.runtime_of(replica) {
            self.runtimes[runtime].is_alive = false;
        }
        let wait = self.random.between(1, 300);
        let input = TaskInput::RuntimeGone(generation);
        self.at(wait, Event::Tell { replica, driver, input });
    }

    /// The process ends by itself, and its host notices.
    fn runtime_dies(&mut self, runtime: usize) {
        let SimulatedRuntime { replica, driver, generation, .. } = self.runtimes[runtime];
        if !std::mem::replace(&mut self.runtimes[runtime].is_alive, false) {
            return;
        }
        let wait = self.random.between(1, 50);
        let input = TaskInput::RuntimeGone(generation);
        self.at(wait, Event::Tell { replica, driver, input });
    }

    fn answer_input(&mut self, input: &str) {
        self.task.inbox.iter_mut().filter(|(id, _)| id == input).for_each(|(_, is_taken)| *is_taken = true);
    }

    fn answer(&mut self, replica: usize, operation: &OperationId, question: u64) {
        let op = op_number(operation);
        let row = self.task.ops.get(&op);
        let decision = row.and_then(|row| row.decisions.get(&row.attempt)).copied();
        let Some(of) = &mut self.replicas[replica].driver else { return };
        let Some((asked, runtime)) = of.questions.remove(&question) else { return };
        let Some(decision) = decision.filter(|_| asked == op) else { return };
        let wait = self.random.between(1, 10);
        self.at(wait, Event::Answer { runtime, op, decision });
    }

    fn lose_started(&mut self, replica: usize) -> Result<Option<TaskInput>, &'static str> {
        let epoch = self.replicas[replica].driver.as_ref().map_or(0, |of| of.epoch);
        if !self.has_database() {
            return Ok(Some(TaskInput::Lost(Vec::new())));
        }
        if !self.is_owner(replica) {
            return Err("another one has the task");
        }
        match self.task.lose_started(epoch) {
            Ok(lost) => Ok(Some(TaskInput::Lost(lost.into_iter().map(operation_id).collect()))),
            Err(_) => Err("another one has the task"),
        }
    }

    fn set_state(&mut self, replica: usize, state: TaskState) -> Result<(), &'static str> {
        if self.has_database() {
            if !self.is_owner(replica) {
                return Err("another one has the task");
            }
            self.task.state = Some(state);
        }
        Ok(())
    }

    fn step(&mut self, at: usize) {
        let runtime = &mut self.runtimes[at];
        if !runtime.is_alive || runtime.is_paused || runtime.is_waiting {
            return;
        }
        let (replica, driver, from) = (runtime.replica, runtime.driver, runtime.records.len());
        match runtime.next_step() {
            NextStep::Nothing => {}
            NextStep::Append(rec) => {
                runtime.is_waiting = true;
                let (wait, sent) = (self.random.between(0, 5), self.now);
                self.at(wait, Event::Append { runtime: at, from, rec, sent });
            }
            NextStep::Ask(op) => {
                runtime.is_waiting = true;
                let Some(of) = self.replicas[replica].driver.as_mut().filter(|of| of.id == driver) else {
                    return;
                };
                of.next_question += 1;
                let question = of.next_question;
                of.questions.insert(question, (op, at));
                let input = TaskInput::Asked { operation: operation_id(op), question };
                self.at(1, Event::Tell { replica, driver, input });
            }
        }
    }

    fn append(&mut self, at: usize, from: usize, rec: Rec, sent: i64) {
        let SimulatedRuntime { replica, driver, epoch, is_alive, .. } = self.runtimes[at];
        let has_driver = self.replicas[replica].driver.as_ref().is_some_and(|of| of.id == driver);
        if !has_driver || self.is_over(replica) {
            return;
        }
        if !self.has_database() {
            match self.now - sent < PATIENCE {
                true => self.at(200, Event::Append { runtime: at, from, rec, sent }),
                false => self.runtime_dies(at),
            }
            return;
        }
        // An append that is on its way is committed even if its runtime has just died.
        let committed = match self.is_owner(replica) {
            true => self.task.append(epoch, from, rec.clone()),
            false => Err(Refusal::Fenced),
        };
        self.note(|| format!("runtime {at} (epoch {epoch}): {rec:?} at {from}: {committed:?}"));
        match committed {
            Ok(()) => {
                let valid_until = sent + self.leases[replica].1 - self.database_now();
                self.remember();
                let wait = self.latency();
                if is_alive {
                    self.at(wait, Event::Ack { runtime: at, rec: rec.clone(), valid_until });
                }
                if let Rec::TurnStarted(_, input) | Rec::Steered(input) = &rec {
                    self.answer_input(input);
                    self.advance(replica, driver, TaskInput::InputTaken(input.clone()));
                }
                let is_end = matches!(rec, Rec::TurnEnded(_));
                self.advance(replica, driver, TaskInput::Recorded(fact_of(&rec)));
                if is_end {
                    let input = TaskInput::TurnTold(thread_id());
                    self.at(2, Event::Tell { replica, driver, input });
                }
            }
            Err(Refusal::Fenced) => self.runtime_dies(at),
            Err(refusal) => self.check(false, &format!("an append is refused: {refusal:?}")),
        }
    }

    fn remember(&mut self) {
        if self.old.len() == 8 {
            self.old.pop_front();
        }
        self.old.push_back(self.task.clone());
    }

    fn acknowledged(&mut self, at: usize, rec: Rec, valid_until: i64) {
        let of = &self.runtimes[at];
        let (replica, stopped_until) = (of.replica, self.replicas[of.replica].stopped_until);
        if !of.is_alive {
            return;
        }
        // A stopped host sends nothing; what a dead one has sent may still arrive.
        if self.replicas[replica].is_alive && stopped_until > self.now && self.random.one_in(2) {
            return self.at(stopped_until - self.now, Event::Ack { runtime: at, rec, valid_until });
        }
        let is_in_time = self.now < valid_until;
        self.runtimes[at].is_waiting = false;
        self.runtimes[at].records.push(rec.clone());
        let wait = match rec {
            Rec::Started(..) if !is_in_time => return self.runtime_dies(at),
            Rec::Started(op, _) => {
                self.effect(at, op);
                self.random.between(1, 3_000)
            }
            _ => self.random.between(1, 400),
        };
        self.at(wait, Event::Step(at));
    }

    /// Something happens in the world that cannot be taken back.
    fn effect(&mut self, at: usize, op: u32) {
        let epoch = self.runtimes[at].epoch;
        self.runtimes[at].done.insert(op);
        *self.effects.entry(op).or_default() += 1;
        self.note(|| format!("runtime {at} (epoch {epoch}): THE EFFECT of {op}"));
        self.check(epoch >= self.effect_epoch, "an effect of a runtime comes after one of a later epoch");
        self.effect_epoch = epoch;
        let row = self.task.ops.get(&op).cloned().unwrap_or_default();
        let agreed = row.decisions.values().filter(|decision| **decision != Decision::Reject).count();
        self.check(self.effects[&op] <= agreed, "an operation ran more often than somebody agreed to it");
        let has_record = self.task.records.iter().any(|rec| matches!(rec, Rec::Started(of, _) if *of == op));
        self.check(has_record, "an effect came before its record");
    }

    fn answered(&mut self, at: usize, op: u32, decision: Decision) {
        let runtime = &mut self.runtimes[at];
        if runtime.is_alive {
            runtime.resolved.insert(op, decision);
            runtime.is_waiting = false;
            self.at(1, Event::Step(at));
        }
    }

    fn some_replica(&mut self) -> Option<usize> {
        let up = |replica: &usize| {
            let of = &self.replicas[*replica];
            of.is_alive && of.stopped_until <= self.now
        };
        let up: Vec<usize> = (0..self.replicas.len()).filter(up).collect();
        let at = usize::try_from(self.random.below(up.len() as u64)).unwrap_or(0);
        up.get(at).copied()
    }

    fn client(&mut self) {
        let pause = if self.is_quiet() { 5_000 } else { self.random.between(50, 9_000) };
        self.at(pause, Event::Client);
        let Some(replica) = self.some_replica() else { return };
        if !self.has_database() {
            return;
        }
        match self.random.below(9) {
            0..=2 if !self.is_quiet() => self.say(replica),
            8 if !self.is_quiet() => {
                if let Some(driver) = self.drive(replica) {
                    self.task.tools += 1;
                    self.advance(replica, driver, TaskInput::ToolsChanged);
                }
            }
            3 if !self.is_quiet() => {
                let input = match self.random.below(3) {
                    0 => TaskInput::SuspendWanted,
                    1 => TaskInput::ResumeWanted,
                    _ => TaskInput::PassWanted(self.random.below(1_000)),
                };
                if let Some(driver) = self.drive(replica) {
                    self.advance(replica, driver, input);
                }
            }
            // Somebody who was away looks what waits, and takes up what was put away.
            _ if self.is_quiet() && self.task.unfinished_turn().is_some() && self.random.one_in(3) => {
                if let Some(driver) = self.drive(replica) {
                    self.advance(replica, driver, TaskInput::ResumeWanted);
                }
            }
            _ => self.decide(replica),
        }
    }

    /// Input is committed first; saying it twice changes nothing.
    fn say(&mut self, replica: usize) {
        let repeats = !self.acknowledged_inputs.is_empty() && self.random.one_in(4);
        let input = match repeats {
            true => {
                let at = self.random.below(self.acknowledged_inputs.len() as u64);
                self.acknowledged_inputs[usize::try_from(at).unwrap_or(0)].clone()
            }
            false => format!("i{}", self.acknowledged_inputs.len() + 1),
        };
        if self.task.inbox.iter().any(|(id, _)| *id == input) {
            return;
        }
        self.task.inbox.push((input.clone(), false));
        self.acknowledged_inputs.push(input.clone());
        self.remember();
        self.note(|| format!("a client says {input} at replica {replica}"));
        if let Some(driver) = self.drive(replica) {
            self.advance(replica, driver, TaskInput::InputReceived(input));
        }
    }

    fn decide(&mut self, replica: usize) {
        let waits = |row: &super::store::OpRow| {
            matches!(row.stage, Some(OperationStage::Proposed | OperationStage::Unknown)) && !row.is_over
        };
        let turn = self.task.unfinished_turn();
        let mut open = self.task.ops.iter().filter(|(op, row)| turn == Some(*op / 10) && waits(row));
        let Some((op, is_unknown)) =
            open.next().map(|(op, row)| (*op, row.stage == Some(OperationStage::Unknown)))
        else {
            return;
        };
        let decision = match (self.random.one_in(3), is_unknown) {
            (true, _) => Decision::Reject,
            (false, true) => Decision::Retry,
            (false, false) => Decision::Approve,
        };
        let decided = self.task.decide(op, decision);
        self.note(|| format!("a client decides {op} at replica {replica}: {decision:?} {decided:?}"));
        if let Ok(attempt) = decided {
            self.acknowledged_decisions.insert((op, attempt), decision);
            self.remember();
            if let Some(driver) = self.drive(replica) {
                self.advance(replica, driver, TaskInput::Decided(operation_id(op)));
            }
        }
    }

    fn fault(&mut self) {
        if self.is_quiet() {
            return self.mend();
        }
        let pause = self.random.between(500, 40_000);
        self.at(pause, Event::Fault);
        let replica = usize::try_from(self.random.below(self.replicas.len() as u64)).unwrap_or(0);
        let long = self.random.between(50, 3 * TTL);
        match self.random.below(8) {
            0 => self.away_until = self.now + long,
            1 => self.slow_until = self.now + long,
            // The clock of the database jumps: by little, or by more than a lease.
            2 => self.database_clock += self.random.between(-2 * TTL, 4 * TTL),
            3 | 4 => self.kill(replica),
            5 => {
                self.note(|| format!("replica {replica} is stopped for {long} ms"));
                self.replicas[replica].stopped_until = self.now + long;
            }
            _ => {
                let lives = self.runtimes.iter().rposition(|runtime| runtime.is_alive);
                if let Some(runtime) = lives {
                    self.note(|| format!("runtime {runtime} is killed"));
                    self.runtime_dies(runtime);
                }
            }
        }
    }

    fn kill(&mut self, replica: usize) {
        if !std::mem::replace(&mut self.replicas[replica].is_alive, false) {
            return;
        }
        self.note(|| format!("replica {replica} is killed"));
        self.replicas[replica].driver = None;
        let back = self.random.between(100, 2 * TTL);
        self.at(back, Event::Back(replica));
    }

    /// From now on everything works.
    fn mend(&mut self) {
        (self.away_until, self.slow_until) = (0, 0);
        for replica in 0..self.replicas.len() {
            self.start_replica(replica);
        }
    }

    fn check_end(&self) {
        let waiting = self.task.waiting_inputs();
        self.check(waiting.is_empty(), &format!("input that was acknowledged was never taken: {waiting:?}"));
        for input in &self.acknowledged_inputs {
            let found = self
                .task
                .records
                .iter()
                .filter(|rec| matches!(rec, Rec::TurnStarted(_, id) | Rec::Steered(id) if id == input));
            self.check(found.count() == 1, &format!("{input} is not in the record exactly once"));
        }
        self.check(self.task.unfinished_turn().is_none(), "a turn never ended");
        let mut living = self.runtimes.iter().filter(|runtime| runtime.is_alive);
        let has_tools = living.all(|runtime| runtime.tools == self.task.tools);
        self.check(has_tools, "a runtime still has the tools of before");
        for ((op, attempt), decision) in &self.acknowledged_decisions {
            let kept = self.task.ops.get(op).and_then(|row| row.decisions.get(attempt));
            self.check(kept == Some(decision), "a decision that was acknowledged was lost");
        }
        for (op, times) in &self.effects {
            let finished = self.task.records.iter().any(|rec| {
                matches!(rec, Rec::Finished(of) | Rec::ToldUnknown(of) if of == op)
                    || matches!(rec, Rec::Decided(of, Decision::Reject) if of == op)
            });
            self.check(finished, &format!("operation {op} had {times} effects and no outcome in the record"));
        }
    }
}
