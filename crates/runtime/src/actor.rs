//! The actor of one thread: the only one who touches its state.

use std::sync::Arc;

use engine::{Input, Refusal, ThreadSeed, UserText};
use journal::JournalError;
use model::ModelTransport;
use protocol::{ServerNotification, ThreadStatus, ThreadStatusChangedNotification, TurnId};
use tokio::sync::{mpsc, watch};

use crate::error::RuntimeError;
use crate::handle::{Command, Reply, ThreadHandle, TurnOptions};
use crate::record::Recorder;
use crate::services::{Services, StepSource, ThreadPlan};
use crate::tasks::Tasks;

/// How many commands may wait.
const WAITING_COMMANDS: usize = 64;

#[derive(Debug)]
pub(crate) struct Actor {
    pub(crate) services: Services,
    pub(crate) thread: engine::Thread,
    pub(crate) recorder: Recorder,
    pub(crate) steps: Box<dyn StepSource>,
    pub(crate) transport: Arc<dyn ModelTransport>,
    pub(crate) tasks: Tasks,
    pub(crate) raw_events: bool,
    /// What the thread began with, until there is a journal to read it from.
    pub(crate) seed: Option<Box<ThreadSeed>>,
    /// The engine remembers something the disk refused.
    pub(crate) is_behind: bool,
    finished: mpsc::Receiver<Input>,
    status: watch::Sender<ThreadStatus>,
}

impl Actor {
    pub(crate) fn spawn(services: Services, plan: ThreadPlan) -> ThreadHandle {
        let (commands, inbox) = mpsc::channel(WAITING_COMMANDS);
        let (tasks, finished) = Tasks::new();
        let recorder = match (plan.ephemeral, plan.journal) {
            (true, _) => Recorder::Ephemeral,
            (false, Some(journal)) => Recorder::Open(journal),
            (false, None) => Recorder::Waiting { store: services.store.clone(), meta: Box::new(plan.meta) },
        };
        let seed = (!matches!(recorder, Recorder::Open(_))).then(|| Box::new(plan.seed.clone()));
        let raw_events = plan.seed.raw_events;
        let thread = engine::Thread::new(plan.seed);
        let (status, watched) = watch::channel(thread.status());
        let handle = ThreadHandle { id: thread.id().clone(), commands, status: watched };
        let audience = services.audience.clone();
        let thread_id = handle.id.clone();
        let broken = status.clone();
        let actor = Self {
            services,
            thread,
            recorder,
            steps: plan.steps,
            transport: plan.transport,
            tasks,
            seed,
            raw_events,
            is_behind: false,
            finished,
            status,
        };
        tokio::spawn(async move {
            // A panic in one thread's work marks that thread and nothing else.
            if tokio::spawn(actor.run(inbox)).await.is_err() {
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
        let closing = loop {
            tokio::select! {
                // Commands first: a flood of deltas must not hold up an interrupt.
                biased;
                command = inbox.recv() => match command {
                    Some(Command::Close(reply)) => break Some(reply),
                    Some(command) => self.accept(command).await,
                    // Every handle is gone: nobody can ask for anything more.
                    None => break None,
                },
                Some(input) = self.finished.recv() => self.feed(input).await,
            }
        };
        // A turn that is cut off says so in the record.
        self.feed(Input::Interrupt).await;
        self.tasks.stop().await;
        self.recorder.close().await;
        if let Some(reply) = closing {
            let _ = reply.send(Ok(()));
        }
    }

    async fn accept(&mut self, command: Command) {
        match command {
            Command::Start(options, reply) => self.start(*options, reply).await,
            Command::Steer { expected, text, reply } => match self.thread.active_turn() {
                None => drop(reply.send(Err(Refusal::NoActiveTurn.into()))),
                Some(found) if *found != expected => {
                    let found = found.clone();
                    let _ = reply.send(Err(RuntimeError::OtherTurn { expected, found }));
                }
                Some(_) => self.steer(text, reply).await,
            },
            Command::Interrupt(reply) => self.submit(Input::Interrupt, (), reply).await,
            Command::Compact(turn_id, reply) => {
                let step = Arc::new(self.steps.capture());
                self.submit(Input::Compact { turn_id, step }, (), reply).await;
            }
            Command::Rollback(num_turns, reply) => {
                self.submit(Input::Rollback { num_turns }, (), reply).await;
            }
            Command::Close(_) => {}
        }
    }

    async fn start(&mut self, options: TurnOptions, reply: Reply<TurnId>) {
        if self.thread.active_turn().is_some() {
            return self.steer(options.text, reply).await;
        }
        let step = Arc::new(self.steps.capture());
        let TurnOptions { turn_id, text, output_schema } = options;
        let input = Input::Start { turn_id: turn_id.clone(), text, output_schema, step };
        self.submit(input, turn_id, reply).await;
    }

    async fn steer(&mut self, text: UserText, reply: Reply<TurnId>) {
        let active = self.thread.active_turn().cloned().unwrap_or_else(|| TurnId::new(""));
        self.submit(Input::Steer(text), active, reply).await;
    }

    /// Feeds a command and answers it: when it is durable, or with why not.
    async fn submit<T: Send + 'static>(&mut self, input: Input, answer: T, reply: Reply<T>) {
        if let Err(error) = self.catch_up().await {
            let _ = reply.send(Err(storage(&error)));
            return;
        }
        let stamp = self.services.clock.stamp();
        // Between turns a command can be undone; within one, a lost record ends the turn.
        let before = self.thread.active_turn().is_none().then(|| self.thread.clone());
        let effects = match self.thread.on(stamp, input) {
            Ok(effects) => effects,
            Err(refusal) => {
                let _ = reply.send(Err(refusal.into()));
                return;
            }
        };
        // Whoever does not get to the acknowledgement gets the error instead.
        let reply = Arc::new(std::sync::Mutex::new(Some(reply)));
        let take = |reply: &std::sync::Mutex<Option<Reply<T>>>| {
            reply.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take()
        };
        let acknowledged = Arc::clone(&reply);
        let acknowledge = Box::new(move || {
            if let Some(reply) = take(&acknowledged) {
                let _ = reply.send(Ok(answer));
            }
        });
        if let Err(error) = self.carry_out(stamp, effects, Some(acknowledge), before).await
            && let Some(reply) = take(&reply)
        {
            let _ = reply.send(Err(storage(&error)));
        }
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
    RuntimeError::Storage(error.to_string())
}
