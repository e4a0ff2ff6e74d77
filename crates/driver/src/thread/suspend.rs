//! Suspending and resuming a turn, as the actor does it.

use parking_lot::Mutex;
use std::time::Duration;

use engine::{Input, UserText};
use journal::JournalEntry;
use model::FailureClass;
use protocol::{ItemId, ResolvedOperation, TurnId};
use tokio::time::Instant;

use crate::thread::actor::Actor;
use crate::thread::error::ThreadError;
use crate::thread::recorder::Recorder;
use crate::thread::recover::recover;
use crate::thread::resume_turn::{UnfinishedTurn, pending, resolve};
use crate::thread::state::{ActorState, SuspendResponder};
use delegation::{DelegationError, gone_for_good, superseded};
use support::{Responder, kill_point};

impl Actor {
    /// Resumes the unfinished turn of the record, if there is one.
    pub(crate) async fn resume_turn(
        &mut self,
        resolved: &[ResolvedOperation],
        mut texts: Vec<(ItemId, UserText)>,
        responder: Responder<(), ThreadError>,
    ) {
        if self.thread.active_turn().is_some() {
            return responder.respond(Ok(()));
        }
        let mut history = match self.read_record().await {
            Ok(history) => history,
            Err(error) => return responder.respond(Err(error.into())),
        };
        let now_ms = self.services.clock.now_ms();
        let records = match resolve(&mut history, resolved, now_ms) {
            Ok(records) => records,
            Err(error) => return responder.respond(Err(error.into())),
        };
        if !records.is_empty()
            && let Err(error) = self.recorder.write(now_ms, &records).await
        {
            return responder.respond(Err(error.into()));
        }
        let Some(UnfinishedTurn { turn_id, unheard, earlier }) = UnfinishedTurn::of(&history) else {
            return responder.respond(Ok(()));
        };
        self.state.take_suspended();
        texts.retain(|(id, _)| unheard.iter().any(|unheard| unheard.id == *id));
        let step = self.capture().await;
        self.submit(Input::Resume { turn_id, said: texts, earlier, step }, (), responder).await;
    }

    /// Whether a turn needs its host and can be resumed by it, so that it need not end in the record.
    pub(crate) fn waits_for_host(&self) -> bool {
        let is_carried = || self.session.as_ref().is_some_and(|session| session.carries_requests());
        let has_host = matches!(self.recorder, Recorder::Host(_)) || is_carried();
        has_host && self.recorder.is_readable()
    }

    /// A stream whose host left is tried again if another host has attached by now. Without a record there is nothing to
    /// resume the turn from, so it does not wait.
    pub(crate) fn rechecked(&self, input: Input) -> Input {
        match input {
            Input::Model { attempt, event: Err(failure) } if failure.class == FailureClass::CarrierGone => {
                let is_back = self.session.as_ref().is_some_and(|session| !session.is_vacant());
                let event = Err(match (is_back, self.recorder.is_readable()) {
                    (true, _) => superseded(),
                    (false, true) => failure,
                    (false, false) => gone_for_good(),
                });
                Input::Model { attempt, event }
            }
            input => input,
        }
    }

    /// A host has attached. Where it keeps the record, the thread goes on from its copy.
    pub(crate) fn rejoin(
        &mut self,
        entries: Option<Vec<JournalEntry>>,
        responder: Responder<(), ThreadError>,
    ) {
        if self.thread.active_turn().is_none() && self.recorder.is_readable() {
            if let (Recorder::Host(record), Some(entries)) = (&mut self.recorder, entries) {
                record.reconcile(entries);
            }
            if let Some(session) = &self.session {
                self.template.epoch = Some(session.epoch()).filter(|epoch| *epoch > 0);
            }
            self.state.fall_behind();
        }
        responder.respond(Ok(()));
    }

    /// Prepares for a new turn: the host must be there, and a suspended turn that nobody resumed ends.
    pub(crate) async fn make_way(&mut self) -> Result<(), ThreadError> {
        let is_running = self.thread.active_turn().is_some();
        if !is_running && self.session.as_ref().is_some_and(|session| session.is_vacant()) {
            return Err(DelegationError::HostGone.into());
        }
        let was_suspended = self.state.take_suspended();
        if is_running || !was_suspended || !self.recorder.is_readable() {
            return Ok(());
        }
        let now_ms = self.services.clock.now_ms();
        let records = recover(&mut self.read_record().await?, now_ms);
        if !records.is_empty() {
            self.recorder.write(now_ms, &records).await?;
        }
        self.state.fall_behind();
        Ok(())
    }

    /// Suspends the turn now, or once everything in it waits for a client.
    pub(crate) async fn suspend(
        &mut self,
        expected: Option<&TurnId>,
        when_pending: bool,
        limit: Duration,
        responder: SuspendResponder,
    ) {
        match (self.thread.active_turn(), expected) {
            (None, _) => return responder.respond(Err(ThreadError::NothingToInterrupt)),
            (Some(found), Some(expected)) if found != expected => {
                let (expected, found) = (expected.clone(), found.clone());
                return responder.respond(Err(ThreadError::OtherTurn { expected, found }));
            }
            (Some(_), _) => {}
        }
        kill_point!("runtime.suspend.before");
        self.state =
            ActorState::Suspending { deadline: Instant::now() + limit, responder: Mutex::new(responder) };
        self.feed(Input::Suspend { when_pending }).await;
    }

    /// The turn is over or suspended. Whoever waited for that hears what waits by what the record says, which is also
    /// what the next process reads.
    pub(crate) async fn turn_is_over(&mut self, is_suspended: bool) {
        self.tasks.stop_timer();
        self.capturing = None;
        // Nobody waits for calls that were stopped in the middle of a turn.
        drop(self.tasks.take_stopped());
        if let Some(responder) = self.state.end_turn(is_suspended) {
            let waiting = self.read_record().await.map(|history| pending(&history));
            kill_point!("runtime.suspend.after");
            responder.respond(waiting.map_err(ThreadError::from));
        }
    }
}

/// For ever without a time.
pub(crate) async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
