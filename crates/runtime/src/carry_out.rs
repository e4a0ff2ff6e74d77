//! Carrying out what the engine wants: in order, and nothing before what was recorded for it is durable.

use std::collections::VecDeque;
use std::time::Duration;

use engine::{Effect, Input, Stamp, ThreadSeed};
use journal::{History, JournalError};
use protocol::{
    ItemId, PendingOperation, PendingOperationState, RolloutRecord, ServerNotification, Turn, TurnId,
    TurnStatus, UserInput,
};

use tools::CallScope;

use crate::actor::Actor;
use crate::open_host::unheard;
use crate::record::Recorder;
use crate::take_up::pending;
use crate::tools::ToolJob;

/// What the record says of the thread's turns.
#[derive(Debug, Default)]
pub(crate) struct PastTurns {
    pub(crate) turns: Vec<Turn>,
    /// What the user said and the model never saw, by the item it is shown as.
    pub(crate) unheard: Vec<(ItemId, Vec<UserInput>)>,
    /// Cut off or put away, and not taken up.
    pub(crate) unfinished: Option<TurnId>,
    /// What waits for somebody.
    pub(crate) pending: Vec<PendingOperation>,
}

/// Called once what the caller asked for is durable, before anybody else hears of it.
pub(crate) type Acknowledge = Box<dyn FnOnce() + Send>;

impl Actor {
    /// One input and all that follows from it.
    pub(crate) async fn feed(&mut self, input: Input) {
        let (stamp, input) = (self.services.clock.stamp(), self.rechecked(input));
        let finished = finished_call(&input);
        // Only commands can be refused, and they are handled before they get here.
        let effects = self.thread.on(stamp, input).unwrap_or_default();
        if let Some(call_id) = finished {
            self.tasks.release_call(&call_id);
        }
        let _ = self.carry_out(stamp, effects, None, None).await;
    }

    /// A failed write ends the turn; what had not been told by then is not told, because it is not so. A command that
    /// nobody was told of yet is undone whole, where `before` says what to go back to.
    pub(crate) async fn carry_out(
        &mut self,
        stamp: Stamp,
        effects: Vec<Effect>,
        mut acknowledge: Option<Acknowledge>,
        before: Option<engine::Thread>,
    ) -> Result<(), JournalError> {
        let result = self.in_order(stamp, effects, &mut acknowledge, Failure::Stops).await;
        if let Err(error) = &result {
            tracing::error!(%error, thread = %self.thread.id(), "a record could not be written");
            match before {
                Some(before) if acknowledge.is_some() => {
                    self.recorder.take_back();
                    self.thread = before;
                }
                _ => self.end_turn(error).await,
            }
        }
        self.tasks.tidy();
        self.tell_status();
        result
    }

    async fn end_turn(&mut self, error: &JournalError) {
        self.is_behind = true;
        let stamp = self.services.clock.stamp();
        let can_wait = self.thread.active_turn().is_none() || self.thread.can_be_put_away();
        if can_wait && self.recorder.cut_off().is_some() {
            return self.part(stamp).await;
        }
        let input = Input::StorageFailed { message: error.to_string() };
        let mut effects = self.thread.on(stamp, input).unwrap_or_default();
        // The engine ends what it began; what clients never saw begin they do not see end.
        let untold = std::mem::take(&mut self.untold);
        effects.retain(|effect| !matches!(completed_item(effect), Some(id) if untold.contains(id)));
        let _ = self.in_order(stamp, effects, &mut None, Failure::IsKnown).await;
    }

    pub(crate) async fn in_order(
        &mut self,
        stamp: Stamp,
        effects: Vec<Effect>,
        acknowledge: &mut Option<Acknowledge>,
        failure: Failure,
    ) -> Result<(), JournalError> {
        let scopes = self.stop_calls(&effects);
        if !scopes.is_empty() {
            self.end_calls(scopes).await;
        }
        let mut queue = VecDeque::from(effects);
        let mut records: Vec<RolloutRecord> = Vec::new();
        while let Some(effect) = queue.pop_front() {
            match effect {
                Effect::Record(mut record) => {
                    self.settings.host.note(&mut record);
                    records.push(*record);
                    continue;
                }
                // Stopping something needs no record.
                Effect::CancelModel { attempt } => {
                    self.tasks.stop_stream(attempt);
                    continue;
                }
                Effect::CancelTool { call_id } => {
                    // Most have been stopped already. Nobody waits for what is only being decided about.
                    drop(self.tasks.stop_call(&call_id));
                    continue;
                }
                Effect::WithdrawQuestion { call_id } => {
                    self.tasks.withdraw(&call_id);
                    continue;
                }
                effect => {
                    if let Err(error) = self.write(stamp, &mut records, failure).await {
                        self.untold =
                            std::iter::once(&effect).chain(&queue).filter_map(started_item).collect();
                        return Err(error);
                    }
                    if let Some(acknowledge) = acknowledge.take() {
                        acknowledge();
                    }
                    queue.extend(self.perform(stamp, effect).await);
                }
            }
        }
        self.write(stamp, &mut records, failure).await?;
        if let Some(acknowledge) = acknowledge.take() {
            acknowledge();
        }
        Ok(())
    }

    async fn write(
        &mut self,
        stamp: Stamp,
        records: &mut Vec<RolloutRecord>,
        failure: Failure,
    ) -> Result<(), JournalError> {
        if records.is_empty() {
            return Ok(());
        }
        let written = self.recorder.write(stamp.now_ms, records).await;
        records.clear();
        match failure {
            Failure::Stops => written,
            Failure::IsKnown => Ok(()),
        }
    }

    /// What an effect leads to at once is carried out next.
    async fn perform(&mut self, stamp: Stamp, effect: Effect) -> Vec<Effect> {
        match effect {
            Effect::Emit(notification) => {
                if matches!(*notification, ServerNotification::TurnSuspended(_)) {
                    self.is_put_away = true;
                    self.tasks.stop_timer();
                }
                self.open_items.note(&notification);
                self.services.audience.tell(self.thread.id(), *notification).await;
            }
            Effect::ReadBack { turn_id, step } => match self.read_back().await {
                Ok(ThreadSeed { history, context, .. }) => {
                    let input = Input::ReadBack { history, context, turn_id, step };
                    return self.thread.on(stamp, input).unwrap_or_default();
                }
                Err(error) => {
                    tracing::error!(%error, thread = %self.thread.id(), "a record could not be read back");
                    self.is_behind = true;
                }
            },
            Effect::CaptureStep => {
                let step = self.capture();
                return self.thread.on(stamp, Input::StepCaptured(step)).unwrap_or_default();
            }
            Effect::RequestModel { attempt, request } => self.tasks.stream(&self.transport, attempt, request),
            Effect::RunTool { call, turn_id, step, grants } => {
                let progress = self.tasks.progress(self.thread.id().clone(), turn_id, call.call_id.clone());
                let (bench, scope) = (self.bench.clone(), CallScope::default());
                let job = ToolJob { call, step, grants, bench, progress, scope };
                self.tasks.run_tool(&self.services.tools, job);
            }
            Effect::Decide { call_id, number, verdict } => self.tasks.decide(call_id, number, verdict),
            Effect::AskClient { call_id, question } => {
                self.tasks.ask(&self.services.audience, call_id, *question);
            }
            Effect::Wake { at_ms } => {
                let pause = u64::try_from(at_ms - self.services.clock.stamp().now_ms).unwrap_or(0);
                self.tasks.wake_after(Duration::from_millis(pause));
            }
            Effect::Finish(_) => self.tasks.stop_timer(),
            // Handled before: they need nothing to be durable.
            Effect::Record(_)
            | Effect::CancelModel { .. }
            | Effect::CancelTool { .. }
            | Effect::WithdrawQuestion { .. } => {}
        }
        Vec::new()
    }

    /// After a failed write the engine remembers what the disk does not. The disk is right.
    pub(crate) async fn catch_up(&mut self) -> Result<(), JournalError> {
        if !self.is_behind {
            return Ok(());
        }
        let seed = match (&self.recorder, &self.seed) {
            (Recorder::Waiting { .. } | Recorder::Ephemeral, Some(seed)) => (**seed).clone(),
            _ => self.read_back().await?,
        };
        self.thread = engine::Thread::new(seed);
        self.is_behind = false;
        Ok(())
    }

    async fn read_back(&mut self) -> Result<ThreadSeed, JournalError> {
        let history = self.read_record().await?;
        let (history, usage, context) = (history.model, history.token_usage, history.told_context);
        Ok(ThreadSeed { history, usage, context, ..(*self.template).clone() })
    }

    /// What clients see of the thread so far. Only the turn that runs has not ended, and what they saw begin.
    pub(crate) async fn read_turns(&mut self) -> Result<PastTurns, JournalError> {
        let history = self.read_record().await?;
        let is_running = self.thread.active_turn().is_some();
        let unheard = if is_running { Vec::new() } else { unheard(&history) };
        let mut pending = pending(&history);
        // What runs is known to run.
        pending.retain(|operation| !is_running || operation.state == PendingOperationState::Proposed);
        let unfinished = history.unfinished_turn.filter(|_| !is_running);
        let mut turns = history.turns;
        if let (Some(active), Some(last)) = (self.thread.active_turn(), turns.last_mut())
            && last.id == *active
        {
            last.status = TurnStatus::InProgress;
            last.completed_at = None;
            last.duration_ms = None;
        }
        self.open_items.show_in(&mut turns);
        Ok(PastTurns { turns, unheard, unfinished, pending })
    }

    pub(crate) async fn read_record(&self) -> Result<History, JournalError> {
        if let Some(history) = self.recorder.read() {
            return Ok(history);
        }
        let (store, id) = (self.services.store.clone(), self.thread.id().clone());
        let read = tokio::task::spawn_blocking(move || store.read(&id)).await;
        // The task can only fail by a panic, and then there is nothing to go on from.
        read.map_or_else(
            |_| Err(JournalError::NotFound(self.thread.id().to_string())),
            |read| Ok(read?.history),
        )
    }
}

fn finished_call(input: &Input) -> Option<String> {
    match input {
        Input::ToolFinished { call_id, .. } => Some(call_id.clone()),
        _ => None,
    }
}

fn started_item(effect: &Effect) -> Option<ItemId> {
    match effect {
        Effect::Emit(told) => match &**told {
            ServerNotification::ItemStarted(started) => Some(started.item.id().clone()),
            _ => None,
        },
        _ => None,
    }
}

pub(crate) fn completed_item(effect: &Effect) -> Option<&ItemId> {
    match effect {
        Effect::Emit(told) => match &**told {
            ServerNotification::ItemCompleted(completed) => Some(completed.item.id()),
            _ => None,
        },
        _ => None,
    }
}

/// What a failed write means.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Failure {
    /// Nothing after it happens.
    Stops,
    /// It failed before; the end of the turn is told all the same.
    IsKnown,
}
