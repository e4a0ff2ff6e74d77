//! The actor of one thread, the sole owner of its state.

use parking_lot::Mutex;
use std::sync::Arc;

use delegation::HostSession;
use engine::{Effect, Input, Refusal, ThreadSeed, UserText};
use journal::{JournalError, ThreadRow};
use model::ModelTransport;
use protocol::{
    RolloutRecord, ServerNotification, ThreadMetadataChange, ThreadStatus, ThreadStatusChangedNotification,
    TurnId,
};
use support::Responder;
use tokio::sync::{mpsc, watch};
use tools::Bench;

use crate::ids::IdMaker;
use crate::services::{ClockExt, Services, ThreadPlan};
use crate::thread::capture::{StepCapture, captured};
use crate::thread::effects::RecordedTurns;
use crate::thread::error::ThreadError;
use crate::thread::handle::{SentCommand, Snapshot, ThreadCommand, ThreadHandle, TurnOptions};
use crate::thread::hooks::ThreadHooks;
use crate::thread::images::ImageFolder;
use crate::thread::notify::{NotifyCommand, TurnNotifier};
use crate::thread::open_items::OpenItems;
use crate::thread::recorder::Recorder;
use crate::thread::settings::ThreadSettings;
use crate::thread::state::ActorState;
use crate::thread::suspend::until;
use crate::thread::tasks::Tasks;

/// Capacity of the command queue.
const WAITING_COMMANDS: usize = 64;

#[derive(Debug)]
pub(crate) struct Actor {
    pub(crate) services: Services,
    pub(crate) thread: engine::ThreadMachine,
    pub(crate) recorder: Recorder,
    pub(crate) settings: ThreadSettings,
    /// The service tier of the running turn only.
    pub(crate) turn_service_tier: Option<String>,
    pub(crate) transport: Arc<dyn ModelTransport>,
    /// The thread's host.
    pub(crate) session: Option<Arc<HostSession>>,
    pub(crate) tasks: Tasks,
    /// The step that the running turn waits for.
    pub(crate) capturing: Option<StepCapture>,
    pub(crate) bench: Arc<Bench>,
    pub(crate) hooks: Arc<ThreadHooks>,
    pub(crate) notify: Arc<NotifyCommand>,
    pub(crate) notifier: TurnNotifier,
    /// The seed without its history, for rebuilding the thread from its record.
    pub(crate) template: Box<ThreadSeed>,
    pub(crate) state: ActorState,
    /// The seed with its history, until there is a journal to read it from.
    pub(crate) seed: Option<Box<ThreadSeed>>,
    pub(crate) open_items: OpenItems,
    #[cfg(test)]
    pub(crate) trace: crate::thread::trace::EffectTrace,
    pub(crate) finished: mpsc::Receiver<Input>,
    status: watch::Sender<ThreadStatus>,
    /// Makes the ids of turns that the thread starts itself.
    pub(crate) ids: IdMaker,
}

impl Actor {
    pub(crate) fn spawn(services: Services, plan: ThreadPlan) -> ThreadHandle {
        let (commands, inbox) = mpsc::channel(WAITING_COMMANDS);
        let images = ImageFolder::new(services.store.root(), plan.seed.id.as_str());
        let (tasks, finished) = Tasks::new(images, services.tracer.clone());
        let store = || services.store.clone();
        let recorder = match (plan.host_record, plan.ephemeral, plan.journal, plan.rollout) {
            (Some(record), ..) => Recorder::Host(record),
            (None, true, ..) => Recorder::Ephemeral,
            (None, false, Some(journal), _) => Recorder::Open(journal),
            (None, false, None, Some(rollout)) => Recorder::Reference { store: store(), rollout },
            (None, false, None, None) => Recorder::Waiting { store: store(), meta: Box::new(plan.meta) },
        };
        let is_readable = recorder.is_readable();
        let template = plan.seed.without_history();
        let seed = (!is_readable).then(|| Box::new(plan.seed.clone()));
        let (seeded, template) = (plan.seed, Box::new(template));
        // A thread that was just opened runs no turn.
        let (status, watched) = watch::channel(ThreadStatus::Idle);
        let handle = ThreadHandle { id: seeded.id.clone(), commands, status: watched };
        let audience = services.audience.clone();
        let thread_id = handle.id.clone();
        let broken = status.clone();
        let recovered = plan.recovered;
        #[cfg(test)]
        let trace = crate::thread::trace::EffectTrace::current();
        let actor = move || Self {
            services,
            // Built in a task: a long history takes a while, and the caller need not wait.
            thread: engine::ThreadMachine::new(seeded),
            recorder,
            settings: plan.settings,
            turn_service_tier: None,
            transport: plan.transport,
            session: plan.session,
            bench: plan.bench,
            hooks: plan.hooks,
            notify: plan.notify,
            notifier: TurnNotifier::default(),
            tasks,
            capturing: None,
            seed,
            template,
            state: ActorState::Ready,
            open_items: OpenItems::default(),
            #[cfg(test)]
            trace,
            finished,
            status,
            ids: IdMaker::default(),
        };
        tokio::spawn(async move {
            // In a program that is built to unwind, a panic in one thread's work affects only that thread.
            if tokio::spawn(async move { actor().run(inbox, recovered).await }).await.is_err() {
                let status = ThreadStatus::SystemError;
                broken.send_replace(status.clone());
                let told = ThreadStatusChangedNotification { thread_id: thread_id.clone(), status };
                audience.notify(&thread_id, ServerNotification::ThreadStatusChanged(told)).await;
            }
        });
        handle
    }

    /// Every event that can wake a thread is in this list.
    async fn run(mut self, mut inbox: mpsc::Receiver<SentCommand>, recovered: Vec<RolloutRecord>) {
        self.write_recovered(&recovered).await;
        let closing = loop {
            tokio::select! {
                // Commands first: a flood of deltas must not delay an interrupt.
                biased;
                sent = inbox.recv() => match sent {
                    Some(SentCommand { command: ThreadCommand::Close(responder), .. }) => break Some(responder),
                    Some(SentCommand { command: ThreadCommand::CloseIdle(still, responder), .. }) => {
                        if self.is_idle() && (still.0)() {
                            break Some(Responder::new(|closed| responder.respond(closed.map(|()| true))));
                        }
                        responder.respond(Ok(false));
                    }
                    Some(SentCommand { command, trace }) => {
                        self.tasks.spans.set_caller(trace);
                        self.accept(command).await;
                        self.tasks.spans.set_caller(None);
                    }
                    // Every handle is gone, so no command can come.
                    None => break None,
                },
                step = captured(&mut self.capturing) => {
                    self.capturing = None;
                    self.feed(Input::StepCaptured(step)).await;
                }
                Some(input) = self.finished.recv() => self.feed(input).await,
                () = until(self.state.deadline()) => self.feed(Input::Suspend { when_pending: false }).await,
            }
        };
        let waits_for_host = self.waits_for_host();
        self.feed(Input::Close { waits_for_host }).await;
        self.bench.clear_terminals().await;
        self.bench.close_sources().await;
        self.finish_items().await;
        self.tasks.stop().await;
        self.notifier.close().await;
        self.recorder.close().await;
        if let Some(responder) = closing {
            responder.respond(Ok(()));
        }
    }

    async fn accept(&mut self, command: ThreadCommand) {
        match command {
            ThreadCommand::Start(options, responder) => self.start(*options, responder).await,
            ThreadCommand::Steer { expected, text, responder } => match self.thread.active_turn() {
                None => responder.respond(Err(Refusal::NoActiveTurn.into())),
                Some(found) if *found != expected => {
                    let found = found.clone();
                    responder.respond(Err(ThreadError::OtherTurn { expected, found }));
                }
                Some(_) => drop(self.steer(text, responder).await),
            },
            ThreadCommand::Rejoin(entries, responder) => self.rejoin(entries, responder),
            ThreadCommand::ResumeTurn { resolved, texts, responder } => {
                self.resume_turn(&resolved, texts, responder).await;
            }
            ThreadCommand::Suspend { expected, when_pending, limit, responder } => {
                self.suspend(expected.as_ref(), when_pending, limit, responder).await;
            }
            ThreadCommand::Interrupt { expected, responder } => self.interrupt(expected, responder).await,
            ThreadCommand::Compact(turn_id, responder) => self.compact(turn_id, responder).await,
            ThreadCommand::Review(options, responder) => self.review(*options, responder).await,
            ThreadCommand::SetGoal(change, responder) => self.set_goal(*change, responder).await,
            ThreadCommand::ReadGoal(responder) => responder.respond(Ok(self.thread.goal().cloned())),
            ThreadCommand::ClearGoal(responder) => self.clear_goal(responder).await,
            ThreadCommand::PursueGoal => self.continue_goal().await,
            ThreadCommand::Rollback { num_turns, turn_id, responder } => {
                let step = self.capture().await;
                self.submit(Input::Rollback { num_turns, turn_id, step }, (), responder).await;
            }
            ThreadCommand::Note(change, responder) => self.note(*change, responder).await,
            ThreadCommand::Snapshot { with_turns, then } => {
                let snapshot = self.snapshot(with_turns).await;
                then.give(snapshot).await;
            }
            ThreadCommand::Shell { turn_id, command, responder } => {
                self.shell(turn_id, command, responder).await;
            }
            ThreadCommand::ClearTerminals(responder) => {
                self.bench.clear_terminals().await;
                responder.respond(Ok(()));
            }
            ThreadCommand::ChildEnded(end, responder) => {
                let _ = self.submit(Input::ChildEnded(end), (), responder).await;
            }
            ThreadCommand::Remembered(responder) => responder.respond(Ok(self.thread.remembered())),
            ThreadCommand::NextRequest(responder) => responder.respond(Ok(self.next_request())),
            ThreadCommand::Close(_) | ThreadCommand::CloseIdle(..) => {}
        }
    }

    /// No turn runs or is being suspended, and no process is left.
    fn is_idle(&self) -> bool {
        let is_waiting = self.state.is_suspended() || self.state.deadline().is_some();
        self.thread.active_turn().is_none() && !is_waiting && !self.bench.has_terminals()
    }

    /// Records the outcomes of lost operations. If that fails, the next opening finds them again.
    async fn write_recovered(&mut self, records: &[RolloutRecord]) {
        if records.is_empty() {
            return;
        }
        let now_ms = self.services.clock.now_ms();
        if let Err(error) = self.recorder.write(now_ms, records).await {
            tracing::warn!(%error, thread = %self.thread.id(), "lost outcomes could not be recorded");
        }
    }

    /// Records the ends of items that outlived their turn, before the record is closed.
    async fn finish_items(&mut self) {
        while let Ok(input) = self.finished.try_recv() {
            self.feed(input).await;
        }
    }

    async fn shell(&mut self, turn_id: TurnId, command: String, responder: Responder<(), ThreadError>) {
        if self.thread.active_turn().is_none() {
            self.turn_service_tier = None;
        }
        let call_id = IdMaker::random(self.services.clock.stamp());
        let step = self.capture().await;
        self.submit(Input::UserShell { turn_id, call_id, command, step }, (), responder).await;
    }

    async fn interrupt(&mut self, expected: Option<TurnId>, responder: Responder<(), ThreadError>) {
        match (self.thread.active_turn(), expected) {
            (None, _) => responder.respond(Err(ThreadError::NothingToInterrupt)),
            (Some(found), Some(expected)) if *found != expected => {
                let found = found.clone();
                responder.respond(Err(ThreadError::OtherTurn { expected, found }));
            }
            (Some(_), _) => drop(self.submit(Input::Interrupt, (), responder).await),
        }
    }

    async fn start(&mut self, options: TurnOptions, responder: Responder<TurnId, ThreadError>) {
        if let Err(error) = self.make_way().await {
            return responder.respond(Err(error));
        }
        let TurnOptions { turn_id, text, output_schema, change, service_tier } = options;
        let before = self.settings.clone();
        self.settings.apply(change);
        let is_accepted = if self.thread.active_turn().is_some() {
            let is_accepted = self.steer(text, responder).await;
            if is_accepted {
                self.recapture();
            }
            is_accepted
        } else {
            self.turn_service_tier = service_tier;
            let step = self.capture().await;
            let input = Input::Start { turn_id: turn_id.clone(), text, output_schema, step };
            self.submit(input, turn_id, responder).await
        };
        if !is_accepted {
            self.settings = before;
        }
    }

    async fn steer(&mut self, text: UserText, responder: Responder<TurnId, ThreadError>) -> bool {
        let active = self.thread.active_turn().cloned().unwrap_or_else(|| TurnId::new(""));
        self.submit(Input::Steer(text), active, responder).await
    }

    async fn note(&mut self, change: ThreadMetadataChange, responder: Responder<ThreadRow, ThreadError>) {
        let record = RolloutRecord::Metadata { change };
        let written = self.recorder.write(self.services.clock.now_ms(), &[record]).await;
        let row = written.map_err(ThreadError::from).and_then(|()| {
            let unknown = || ThreadError::NoMetadataInMemory(self.thread.id().clone());
            self.recorder.row().ok_or_else(unknown)
        });
        responder.respond(row);
    }

    async fn snapshot(&mut self, with_turns: bool) -> Result<Snapshot, ThreadError> {
        let row = self.recorder.row();
        let is_readable = row.is_some() || self.recorder.next_ordinal().is_some();
        let RecordedTurns { turns, undelivered, unfinished, pending } =
            if with_turns && is_readable { self.read_turns().await? } else { RecordedTurns::default() };
        let (settings, status) = (self.settings.clone(), self.thread.status());
        let next_ordinal = self.recorder.next_ordinal();
        Ok(Snapshot { settings, status, row, turns, next_ordinal, undelivered, unfinished, pending })
    }

    /// Feeds a command and responds when it is durable, or with the error. Returns whether it was accepted.
    pub(crate) async fn submit<T: Send + 'static>(
        &mut self,
        input: Input,
        outcome: T,
        responder: Responder<T, ThreadError>,
    ) -> bool {
        if let Err(error) = self.catch_up().await {
            responder.respond(Err(error.into()));
            return false;
        }
        let stamp = self.services.clock.stamp();
        // Between turns a command can be undone; within a turn, a failed record ends the turn.
        let before = self.thread.active_turn().is_none().then(|| self.thread.clone());
        let effects: Vec<Effect> = match self.advance(stamp, input) {
            Ok(effects) => effects,
            Err(refusal) => {
                responder.respond(Err(refusal.into()));
                return false;
            }
        };
        // If the acknowledgement is not sent, the error takes its responder.
        let responder = Arc::new(Mutex::new(Some(responder)));
        let take = |responder: &Mutex<Option<Responder<T, ThreadError>>>| responder.lock().take();
        let acknowledged = Arc::clone(&responder);
        let acknowledge = Box::new(move || {
            if let Some(responder) = take(&acknowledged) {
                responder.respond(Ok(outcome));
            }
        });
        if let Err(error) = self.carry_out(stamp, effects, Some(acknowledge), before).await
            && let Some(responder) = take(&responder)
        {
            responder.respond(Err(storage(&error)));
            return false;
        }
        true
    }

    pub(crate) fn notify_status(&self) {
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

fn storage(error: &JournalError) -> ThreadError {
    error.clone().into()
}
