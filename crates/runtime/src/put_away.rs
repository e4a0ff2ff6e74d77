//! Putting a turn away and taking it up again, as the actor does it.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use engine::{Effect, Input, Stamp, UserText};
use journal::Entry;
use model::FailureClass;
use protocol::{
    ItemId, OperationRecord, PendingOperation, ResolvedOperation, ResponseItem, RolloutRecord,
    ServerNotification, ThreadStatusChangedNotification, TurnId,
};
use tokio::time::Instant;

use crate::actor::Actor;
use crate::carry_out::{Failure, completed_item};
use crate::delegation::{DelegationError, gone_for_good, superseded};
use crate::error::RuntimeError;
use crate::handle::Answer;
use crate::host_record::HostRecord;
use crate::record::Recorder;
use crate::recover::recover;
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
        self.is_put_away = false;
        texts.retain(|(id, _)| unheard.iter().any(|(unheard, _)| unheard == id));
        let step = self.capture();
        self.submit(Input::Resume { turn_id, said: texts, earlier, step }, (), answer).await;
    }

    /// Whether the turn that runs needs its host and can be taken up by it again, so that it need not end in the record.
    pub(crate) fn can_wait_for_host(&self) -> bool {
        let is_carried = || self.settings.host.seat.as_ref().is_some_and(|seat| seat.carries_requests());
        let has_host = matches!(self.recorder, Recorder::Host(_)) || is_carried();
        has_host && self.recorder.is_readable() && self.thread.can_be_put_away()
    }

    /// The host that keeps the record is gone. What it never acknowledged did not begin and has not ended, so the turn
    /// waits to be taken up from there.
    pub(crate) async fn part(&mut self, stamp: Stamp) {
        let mut effects = self.thread.on(stamp, Input::Suspend).unwrap_or_default();
        if let Some(record) = self.recorder.cut_off() {
            forget_the_unbegun(&mut effects, record);
        }
        let untold = std::mem::take(&mut self.untold);
        effects.retain(|effect| !matches!(completed_item(effect), Some(id) if untold.contains(id)));
        if effects.is_empty() {
            // It was about to end, and will be again once it is taken up.
            let told = ThreadStatusChangedNotification {
                thread_id: self.thread.id().clone(),
                status: self.thread.status(),
            };
            effects.push(Effect::Emit(Box::new(ServerNotification::ThreadStatusChanged(told))));
        }
        self.is_put_away = true;
        let _ = self.in_order(stamp, effects, &mut None, Failure::IsKnown).await;
    }

    /// A stream that its host left behind is tried again where another host sits by now. Without a record there is
    /// nothing to take the turn up from, so it does not wait.
    pub(crate) fn rechecked(&self, input: Input) -> Input {
        match input {
            Input::Model { attempt, event: Err(failure) } if failure.class == FailureClass::CarrierGone => {
                let is_back = self.settings.host.seat.as_ref().is_some_and(|seat| !seat.is_vacant());
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

    /// A host has sat down. Where it keeps the record, what it brought of that is where the thread goes on from.
    pub(crate) fn rejoin(&mut self, entries: Option<Vec<Entry>>, answer: Answer<()>) {
        if self.thread.active_turn().is_none() && self.recorder.is_readable() {
            if let (Recorder::Host(record), Some(entries)) = (&mut self.recorder, entries) {
                record.reconcile(entries);
            }
            if let Some(seat) = &self.settings.host.seat {
                self.template.epoch = Some(seat.epoch()).filter(|epoch| *epoch > 0);
            }
            self.is_behind = true;
        }
        answer.give(Ok(()));
    }

    /// A new turn can begin: somebody is there for it, and one that was put away and never taken up is over.
    pub(crate) async fn make_way(&mut self) -> Result<(), RuntimeError> {
        let is_running = self.thread.active_turn().is_some();
        if !is_running && self.settings.host.seat.as_ref().is_some_and(|seat| seat.is_vacant()) {
            return Err(DelegationError::HostGone.into());
        }
        let was_put_away = std::mem::take(&mut self.is_put_away);
        if is_running || !was_put_away || !self.recorder.is_readable() {
            return Ok(());
        }
        let now_ms = self.services.clock.stamp().now_ms;
        let records = recover(&mut self.read_record().await?, now_ms);
        if !records.is_empty() {
            self.recorder.write(now_ms, &records).await?;
        }
        self.is_behind = true;
        Ok(())
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
        let waiting = self.read_record().await.map(|history| pending(&history));
        answer.into_inner().unwrap_or_else(PoisonError::into_inner).give(waiting.map_err(RuntimeError::from));
    }
}

/// The engine ends what it takes to have begun. Whatever the host was not told of in time did not, and stays as it was.
fn forget_the_unbegun(effects: &mut Vec<Effect>, record: &HostRecord) {
    let unbegun = |effect: &Effect| {
        let Effect::Record(written) = effect else { return None };
        match &**written {
            RolloutRecord::Operation { operation: OperationRecord::Finished { operation_id, .. } } => {
                // threadId:turnId:callId, and a number where a call proposed more than once.
                let call = operation_id.as_str().splitn(3, ':').nth(2)?;
                (!record.has_begun(operation_id)).then(|| call.to_owned())
            }
            _ => None,
        }
    };
    let unbegun: Vec<String> = effects.iter().filter_map(unbegun).collect();
    let is_of = |call: &str, id: &str| {
        call.strip_prefix(id).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
    };
    effects.retain(|effect| {
        let Effect::Record(written) = effect else { return true };
        let id = match &**written {
            RolloutRecord::Operation { operation: OperationRecord::Finished { operation_id, .. } } => {
                operation_id.as_str().splitn(3, ':').nth(2)
            }
            RolloutRecord::ThreadItem { item, .. } => Some(item.id().as_str()),
            RolloutRecord::ResponseItem {
                item:
                    ResponseItem::FunctionCallOutput { call_id, .. }
                    | ResponseItem::CustomToolCallOutput { call_id, .. },
                ..
            } => Some(call_id.as_str()),
            _ => None,
        };
        !id.is_some_and(|id| unbegun.iter().any(|call| is_of(call, id)))
    });
}

/// For ever without a time.
pub(crate) async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
