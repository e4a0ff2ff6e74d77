//! Putting a turn away and taking it up again, as the actor does it.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use engine::{Input, UserText};
use protocol::{ItemId, PendingOperation, ResolvedOperation, TurnId};
use tokio::time::Instant;

use crate::actor::Actor;
use crate::error::RuntimeError;
use crate::handle::Answer;
use crate::take_up::{TakeUp, pending, resolve};

impl Actor {
    /// From what the record says. Without a turn to take up there is nothing to do.
    pub(crate) async fn take_up(
        &mut self,
        resolved: &[ResolvedOperation],
        mut texts: Vec<(ItemId, UserText)>,
        answer: Answer<()>,
    ) {
        if self.thread.active_turn().is_some() {
            return answer.give(Ok(()));
        }
        let mut history = match self.read_record().await {
            Ok(history) => history,
            Err(error) => return answer.give(Err(error.into())),
        };
        let now_ms = self.services.clock.stamp().now_ms;
        let records = match resolve(&mut history, resolved, now_ms) {
            Ok(records) => records,
            Err(error) => return answer.give(Err(error.into())),
        };
        if !records.is_empty()
            && let Err(error) = self.recorder.write(now_ms, &records).await
        {
            return answer.give(Err(error.into()));
        }
        let Some(TakeUp { turn_id, unheard, earlier }) = TakeUp::of(&history) else {
            return answer.give(Ok(()));
        };
        texts.retain(|(id, _)| unheard.iter().any(|(unheard, _)| unheard == id));
        let step = self.capture();
        self.submit(Input::Resume { turn_id, said: texts, earlier, step }, (), answer).await;
    }

    /// Puts the turn away now, or once everything in it waits for a client.
    pub(crate) async fn suspend(
        &mut self,
        expected: &TurnId,
        when_pending: bool,
        limit: Duration,
        answer: Answer<Vec<PendingOperation>>,
    ) {
        match self.thread.active_turn() {
            None => return answer.give(Err(RuntimeError::NothingToInterrupt)),
            Some(found) if found != expected => {
                let (expected, found) = (expected.clone(), found.clone());
                return answer.give(Err(RuntimeError::OtherTurn { expected, found }));
            }
            Some(_) => {}
        }
        self.suspending = Some((Instant::now() + limit, Mutex::new(answer)));
        if when_pending {
            self.suspend_if_pending().await;
        } else {
            self.suspend_now().await;
        }
    }

    pub(crate) async fn suspend_if_pending(&mut self) {
        if self.suspending.is_none() {
            return;
        }
        if self.thread.is_pending() {
            self.suspend_now().await;
        } else if self.thread.active_turn().is_none() {
            // It came to its end first, which is as good.
            self.answer_suspended().await;
        }
    }

    pub(crate) async fn suspend_now(&mut self) {
        self.feed(Input::Suspend).await;
        self.answer_suspended().await;
    }

    /// What waits is what the record says, also for the next process.
    async fn answer_suspended(&mut self) {
        let Some((_, answer)) = self.suspending.take() else { return };
        let waiting = self.read_record().await.map(|history| pending(&history.operations));
        answer.into_inner().unwrap_or_else(PoisonError::into_inner).give(waiting.map_err(RuntimeError::from));
    }
}

/// For ever without a time.
pub(crate) async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
