//! Suspending and resuming a turn.

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
        let Some(UnfinishedTurn { turn_id, undelivered, earlier }) = UnfinishedTurn::of(&history) else {
            return responder.respond(Ok(()));
        };
        self.state.take_suspended();
        texts.retain(|(id, _)| undelivered.iter().any(|undelivered| undelivered.id == *id));
        let step = self.capture().await;
        self.submit(Input::Resume { turn_id, said: texts, earlier, step }, (), responder).await;
    }

    /// Whether the turn can wait for its host and be resumed by it, instead of ending in the record.
    pub(crate) fn waits_for_host(&self) -> bool {
        let is_carried = || self.session.as_ref().is_some_and(|session| session.carries_requests());
        let has_host = matches!(self.recorder, Recorder::Host(_)) || is_carried();
        has_host && self.recorder.is_readable()
    }

    /// Checks again whether the host is gone: a stream is retried if another host has attached by now. Without a
    /// readable record the turn cannot be resumed, so it does not wait.
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

    /// A host has attached. If it keeps the record, the thread continues from its copy.
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

    /// Prepares for a new turn: checks that the host is attached, and ends a suspended turn that was not resumed.
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

    /// Suspends the turn now, or when everything in it waits for a client.
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

    /// The turn ended or was suspended. Responds to a pending suspension with the operations that wait according to the
    /// record, which is what the next process reads.
    pub(crate) async fn turn_is_over(&mut self, is_suspended: bool) {
        self.tasks.stop_timer();
        self.capturing = None;
        // Calls that were stopped during the turn need no waiting.
        drop(self.tasks.take_stopped());
        if let Some(responder) = self.state.end_turn(is_suspended) {
            let waiting = self.read_record().await.map(|history| pending(&history));
            kill_point!("runtime.suspend.after");
            responder.respond(waiting.map_err(ThreadError::from));
        }
    }
}

/// Waits until this time; for ever if unset.
pub(crate) async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
