//! The actor of one thread: the only one who touches its state.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use engine::{Effect, Input, Refusal, Step, ThreadSeed, UserText};
use journal::{JournalError, ThreadRow};
use model::ModelTransport;
use protocol::{
    ItemId, PendingOperation, RolloutRecord, ServerNotification, ThreadMetadataChange, ThreadStatus,
    ThreadStatusChangedNotification, TurnId,
};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tools::Bench;

use crate::carry_out::PastTurns;
use crate::error::RuntimeError;
use crate::handle::{Answer, Command, Snapshot, ThreadHandle, TurnOptions};
use crate::ids::IdMaker;
use crate::open_items::OpenItems;
use crate::put_away::until;
use crate::reading::off_worker;
use crate::record::Recorder;
use crate::services::{Services, ThreadPlan};
use crate::settings::ThreadSettings;
use crate::tasks::Tasks;
use crate::workbench::complete;

/// How many commands may wait.
const WAITING_COMMANDS: usize = 64;

#[derive(Debug)]
pub(crate) struct Actor {
    pub(crate) services: Services,
    pub(crate) thread: engine::Thread,
    pub(crate) recorder: Recorder,
    pub(crate) settings: ThreadSettings,
    /// Of the turn that runs, and of no later one.
    turn_service_tier: Option<String>,
    pub(crate) transport: Arc<dyn ModelTransport>,
    pub(crate) tasks: Tasks,
    pub(crate) bench: Arc<Bench>,
    recovered: Vec<RolloutRecord>,
    /// What stays the same when the thread is read back from its record.
    pub(crate) template: Box<ThreadSeed>,
    /// The last turn was put away and nobody has taken it up.
    pub(crate) is_put_away: bool,
    /// Who waits for the turn to be put away, and until when at most.
    pub(crate) suspending: Option<(Instant, Mutex<Answer<Vec<PendingOperation>>>)>,
    /// What the thread began with, until there is a journal to read it from.
    pub(crate) seed: Option<Box<ThreadSeed>>,
    /// The engine remembers something the disk refused.
    pub(crate) is_behind: bool,
    /// Items whose beginning was to be told when a write failed.
    pub(crate) untold: HashSet<ItemId>,
    pub(crate) open_items: OpenItems,
    pub(crate) finished: mpsc::Receiver<Input>,
    status: watch::Sender<ThreadStatus>,
}

impl Actor {
    pub(crate) fn spawn(services: Services, plan: ThreadPlan) -> ThreadHandle {
        let (commands, inbox) = mpsc::channel(WAITING_COMMANDS);
        let (tasks, finished) = Tasks::new();
        let recorder = match (plan.host_record, plan.ephemeral, plan.journal) {
            (Some(record), ..) => Recorder::Host(record),
            (None, true, _) => Recorder::Ephemeral,
            (None, false, Some(journal)) => Recorder::Open(journal),
            (None, false, None) => {
                Recorder::Waiting { store: services.store.clone(), meta: Box::new(plan.meta) }
            }
        };
        let is_readable = matches!(recorder, Recorder::Open(_) | Recorder::Host(_));
        let template = plan.seed.without_past();
        let seed = (!is_readable).then(|| Box::new(plan.seed.clone()));
        let (past, template) = (plan.seed, Box::new(template));
        // No turn runs in a thread that was just opened.
        let (status, watched) = watch::channel(ThreadStatus::Idle);
        let handle = ThreadHandle { id: past.id.clone(), commands, status: watched };
        let audience = services.audience.clone();
        let thread_id = handle.id.clone();
        let broken = status.clone();
        let actor = move || Self {
            services,
            // Of a long past this takes a while, which whoever opened the thread need not wait for.
            thread: engine::Thread::new(past),
            recorder,
            settings: plan.settings,
            turn_service_tier: None,
            transport: plan.transport,
            bench: plan.bench,
            recovered: plan.recovered,
            tasks,
            seed,
            template,
            is_put_away: false,
            suspending: None,
            is_behind: false,
            untold: HashSet::new(),
            open_items: OpenItems::default(),
            finished,
            status,
        };
        tokio::spawn(async move {
            // A panic in one thread's work marks that thread and nothing else.
            if tokio::spawn(async move { actor().run(inbox).await }).await.is_err() {
                let status = ThreadStatus::SystemError;
                broken.send_replace(status.clone());
                let told = ThreadStatusChangedNotification { thread_id: thread_id.clone(), status };
                audience.tell(&thread_id, ServerNotification::ThreadStatusChanged(told)).await;
            }
        });
        handle
    }

    /// Everything that can wake a thread is in this list.
    async fn run(mut self, mut inbox: mpsc::Receiver<Command>) {
        self.write_recovered().await;
        let closing = loop {
            tokio::select! {
                // Commands first: a flood of deltas must not hold up an interrupt.
                biased;
                command = inbox.recv() => match command {
                    Some(Command::Close(answer)) => break Some(answer),
                    Some(Command::CloseIdle(still, answer)) => {
                        if self.is_idle() && (still.0)() {
                            break Some(Answer::new(|closed| answer.give(closed.map(|()| true))));
                        }
                        answer.give(Ok(false));
                    }
                    Some(command) => self.accept(command).await,
                    // Every handle is gone: nobody can ask for anything more.
                    None => break None,
                },
                Some(input) = self.finished.recv() => {
                    self.feed(input).await;
                    self.suspend_if_pending().await;
                }
                () = until(self.suspending.as_ref().map(|(at, _)| *at)) => self.suspend_now().await,
            }
        };
        // What waits for a client or needs its host can be taken up again; any other turn says that it was cut off.
        let can_wait = self.thread.is_pending() || self.can_wait_for_host();
        self.feed(if can_wait { Input::Suspend } else { Input::CutOff }).await;
        self.bench.clear_terminals().await;
        self.finish_items().await;
        self.tasks.stop().await;
        self.recorder.close().await;
        if let Some(answer) = closing {
            answer.give(Ok(()));
        }
    }

    async fn accept(&mut self, command: Command) {
        match command {
            Command::Start(options, answer) => self.start(*options, answer).await,
            Command::Steer { expected, text, answer } => match self.thread.active_turn() {
                None => answer.give(Err(Refusal::NoActiveTurn.into())),
                Some(found) if *found != expected => {
                    let found = found.clone();
                    answer.give(Err(RuntimeError::OtherTurn { expected, found }));
                }
                Some(_) => drop(self.steer(text, answer).await),
            },
            Command::Rejoin(entries, answer) => self.rejoin(entries, answer),
            Command::TakeUp { resolved, texts, answer } => self.take_up(&resolved, texts, answer).await,
            Command::Suspend { expected, when_pending, limit, answer } => {
                self.suspend(&expected, when_pending, limit, answer).await;
            }
            Command::Interrupt { expected, answer } => self.interrupt(expected, answer).await,
            Command::Compact(turn_id, answer) => self.compact(turn_id, answer).await,
            Command::Rollback { num_turns, turn_id, answer } => {
                let step = self.capture();
                self.submit(Input::Rollback { num_turns, turn_id, step }, (), answer).await;
            }
            Command::Note(change, answer) => self.note(*change, answer).await,
            Command::Look { with_turns, then } => {
                let snapshot = self.look(with_turns).await;
                then.give(snapshot).await;
            }
            Command::Shell { turn_id, command, answer } => self.shell(turn_id, command, answer).await,
            Command::ClearTerminals(answer) => {
                self.bench.clear_terminals().await;
                answer.give(Ok(()));
            }
            Command::ChildEnded(end, answer) => drop(self.submit(Input::ChildEnded(end), (), answer).await),
            Command::Remembered(answer) => answer.give(Ok(self.thread.remembered())),
            Command::Close(_) | Command::CloseIdle(..) => {}
        }
    }

    /// No turn runs or is being suspended, and no process is left.
    fn is_idle(&self) -> bool {
        let is_waiting = self.suspending.is_some() || self.is_put_away;
        self.thread.active_turn().is_none() && !is_waiting && !self.bench.has_terminals()
    }

    /// What could not be written now is found again when the thread is opened next.
    async fn write_recovered(&mut self) {
        let records = std::mem::take(&mut self.recovered);
        if records.is_empty() {
            return;
        }
        let now_ms = self.services.clock.stamp().now_ms;
        if let Err(error) = self.recorder.write(now_ms, &records).await {
            tracing::warn!(%error, thread = %self.thread.id(), "lost outcomes could not be recorded");
        }
    }

    /// What outlived its turn and was ended just now is recorded before the record is closed.
    async fn finish_items(&mut self) {
        while let Ok(input) = self.finished.try_recv() {
            self.feed(input).await;
        }
    }

    async fn shell(&mut self, turn_id: TurnId, command: String, answer: Answer<()>) {
        if self.thread.active_turn().is_none() {
            self.turn_service_tier = None;
        }
        let call_id = IdMaker::random(self.services.clock.stamp());
        let step = self.capture();
        self.submit(Input::UserShell { turn_id, call_id, command, step }, (), answer).await;
    }

    async fn interrupt(&mut self, expected: Option<TurnId>, answer: Answer<()>) {
        match (self.thread.active_turn(), expected) {
            (None, _) => answer.give(Err(RuntimeError::NothingToInterrupt)),
            (Some(found), Some(expected)) if *found != expected => {
                let found = found.clone();
                answer.give(Err(RuntimeError::OtherTurn { expected, found }));
            }
            (Some(_), _) => drop(self.submit(Input::Interrupt, (), answer).await),
        }
    }

    async fn start(&mut self, options: TurnOptions, answer: Answer<TurnId>) {
        if let Err(error) = self.make_way().await {
            return answer.give(Err(error));
        }
        let TurnOptions { turn_id, text, output_schema, change, service_tier } = options;
        let before = self.settings.clone();
        self.settings.apply(change);
        let is_accepted = if self.thread.active_turn().is_some() {
            self.steer(text, answer).await
        } else {
            self.turn_service_tier = service_tier;
            let step = self.capture();
            let input = Input::Start { turn_id: turn_id.clone(), text, output_schema, step };
            self.submit(input, turn_id, answer).await
        };
        if !is_accepted {
            self.settings = before;
        }
    }

    async fn steer(&mut self, text: UserText, answer: Answer<TurnId>) -> bool {
        let active = self.thread.active_turn().cloned().unwrap_or_else(|| TurnId::new(""));
        self.submit(Input::Steer(text), active, answer).await
    }

    async fn compact(&mut self, turn_id: TurnId, answer: Answer<()>) {
        if let Err(error) = self.make_way().await {
            return answer.give(Err(error));
        }
        let answer = if self.thread.active_turn().is_some() {
            // The caller hears that it is accepted before the end of the turn that makes way.
            self.submit(Input::Interrupt, (), answer).await;
            Answer::new(|_| {})
        } else {
            answer
        };
        self.turn_service_tier = None;
        let step = self.capture();
        self.submit(Input::Compact { turn_id, step }, (), answer).await;
    }

    pub(crate) fn capture(&self) -> Arc<Step> {
        // Reads instructions and skills.
        let mut step = off_worker(|| self.services.steps.capture(&self.settings));
        complete(&mut step, &self.bench);
        if let Some(tier) = &self.turn_service_tier {
            step.service_tier = Some(tier.clone());
        }
        Arc::new(step)
    }

    async fn note(&mut self, change: ThreadMetadataChange, answer: Answer<ThreadRow>) {
        let record = RolloutRecord::Metadata { change };
        let written = self.recorder.write(self.services.clock.stamp().now_ms, &[record]).await;
        let row = written.map_err(RuntimeError::from).and_then(|()| {
            let unknown = || RuntimeError::NoMetadataInMemory(self.thread.id().clone());
            self.recorder.row().ok_or_else(unknown)
        });
        answer.give(row);
    }

    async fn look(&mut self, with_turns: bool) -> Result<Snapshot, RuntimeError> {
        let row = self.recorder.row();
        let is_readable = row.is_some() || self.recorder.next_ordinal().is_some();
        let PastTurns { turns, unheard, unfinished, pending } =
            if with_turns && is_readable { self.read_turns().await? } else { PastTurns::default() };
        let (settings, status) = (self.settings.clone(), self.thread.status());
        let next_ordinal = self.recorder.next_ordinal();
        Ok(Snapshot { settings, status, row, turns, next_ordinal, unheard, unfinished, pending })
    }

    /// Feeds a command and answers it: when it is durable, or with why not. Says whether it was accepted.
    pub(crate) async fn submit<T: Send + 'static>(
        &mut self,
        input: Input,
        outcome: T,
        answer: Answer<T>,
    ) -> bool {
        if let Err(error) = self.catch_up().await {
            answer.give(Err(error.into()));
            return false;
        }
        let stamp = self.services.clock.stamp();
        // Between turns a command can be undone; within one, a lost record ends the turn.
        let before = self.thread.active_turn().is_none().then(|| self.thread.clone());
        let effects: Vec<Effect> = match self.thread.on(stamp, input) {
            Ok(effects) => effects,
            Err(refusal) => {
                answer.give(Err(refusal.into()));
                return false;
            }
        };
        // Whoever does not get to the acknowledgement gets the error instead.
        let answer = Arc::new(Mutex::new(Some(answer)));
        let take =
            |answer: &Mutex<Option<Answer<T>>>| answer.lock().unwrap_or_else(PoisonError::into_inner).take();
        let acknowledged = Arc::clone(&answer);
        let acknowledge = Box::new(move || {
            if let Some(answer) = take(&acknowledged) {
                answer.give(Ok(outcome));
            }
        });
        if let Err(error) = self.carry_out(stamp, effects, Some(acknowledge), before).await
            && let Some(answer) = take(&answer)
        {
            answer.give(Err(storage(&error)));
            return false;
        }
        true
    }

    pub(crate) fn tell_status(&self) {
        let status = self.thread.status();
        self.status.send_if_modified(|shown| {
            let is_new = *shown != status;
            if is_new {
                *shown = status;
            }
            is_new
        });
    }
}

fn storage(error: &JournalError) -> RuntimeError {
    error.clone().into()
}
