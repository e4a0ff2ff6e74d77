//! Performs the engine's effects in order, none before the records emitted ahead of it are durable.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use delegation::HostRecord;
use engine::{Effect, Input, Refusal, Stamp, Step, StorageFailure, ThreadSeed};
use journal::{JournalError, ThreadHistory};
use protocol::{
    ItemId, PendingOperation, PendingOperationState, RolloutRecord, ServerNotification, Turn, TurnId,
    TurnStatus,
};

use support::blocking;
use tools::CallScope;

use crate::services::ClockExt;
use crate::thread::actor::Actor;
use crate::thread::hooks::HookJob;
use crate::thread::notify::NotifySite;
use crate::thread::recorder::Recorder;
use crate::thread::resume_turn::{UndeliveredInput, UnfinishedTurn, pending};
use crate::thread::tool_jobs::{Progress, ToolJob};

/// The thread's turns in the record.
#[derive(Debug, Default)]
pub(crate) struct RecordedTurns {
    pub(crate) turns: Vec<Turn>,
    /// Input that the model never got.
    pub(crate) undelivered: Vec<UndeliveredInput>,
    /// A turn that was interrupted by a restart or suspended, and not resumed.
    pub(crate) unfinished: Option<TurnId>,
    /// Operations that wait for a decision or a result.
    pub(crate) pending: Vec<PendingOperation>,
}

/// Called when the command is durable, before any other notification.
pub(crate) type Acknowledge = Box<dyn FnOnce() + Send>;

/// A record could not be made durable, and later effects were not performed, except those that stop something.
pub(crate) struct LostRecord {
    error: JournalError,
    /// Items whose start clients would have been notified of.
    unseen: HashSet<ItemId>,
}

impl Actor {
    /// Feeds one input and performs its effects.
    pub(crate) async fn feed(&mut self, input: Input) {
        let (stamp, input) = (self.services.clock.stamp(), self.rechecked(input));
        let finished = finished_call(&input);
        // Only commands can be refused, and they take another path.
        let effects = self.advance(stamp, input).unwrap_or_default();
        if let Some(call_id) = finished {
            self.tasks.release_call(&call_id);
        }
        let _ = self.carry_out(stamp, effects, None, None).await;
    }

    /// The engine's effects for one input, unchanged.
    pub(crate) fn advance(&mut self, stamp: Stamp, input: Input) -> Result<Vec<Effect>, Refusal> {
        let effects = self.thread.on(stamp, input)?;
        self.tasks.spans.follow(self.thread.id(), self.thread.active_turn());
        #[cfg(test)]
        self.trace.emitted(&effects);
        Ok(effects)
    }

    /// Performs effects. A failed write ends the turn, and clients are not notified of later effects, which did not
    /// happen. A command that nobody was notified of is undone: the thread goes back to `before`.
    pub(crate) async fn carry_out(
        &mut self,
        stamp: Stamp,
        effects: Vec<Effect>,
        mut acknowledge: Option<Acknowledge>,
        before: Option<engine::ThreadMachine>,
    ) -> Result<(), JournalError> {
        let result = self.in_order(stamp, effects, &mut acknowledge, FailedWrite::Stops).await;
        let result = match result {
            Ok(()) => Ok(()),
            Err(LostRecord { error, unseen }) => {
                tracing::error!(%error, thread = %self.thread.id(), "a record could not be written");
                match before {
                    Some(before) if acknowledge.is_some() => {
                        self.recorder.take_back();
                        self.thread = before;
                    }
                    _ => self.end_turn(&error, unseen).await,
                }
                self.tasks.spans.record_lost(self.thread.active_turn().is_some());
                Err(error)
            }
        };
        self.answer_if_over().await;
        self.tasks.tidy();
        self.notify_status();
        result
    }

    async fn end_turn(&mut self, error: &JournalError, unseen: HashSet<ItemId>) {
        let stamp = self.services.clock.stamp();
        let started_at_host = self.recorder.cut_off().map(HostRecord::started);
        let failure = StorageFailure { message: error.to_string(), unseen, started_at_host };
        let effects = self.advance(stamp, Input::StorageFailed(Box::new(failure))).unwrap_or_default();
        let _ = self.in_order(stamp, effects, &mut None, FailedWrite::IsKnown).await;
        self.answer_if_over().await;
        self.state.fall_behind();
    }

    /// The turn counts as ended even if the effects of its end failed.
    async fn answer_if_over(&mut self) {
        if self.thread.active_turn().is_none() && self.state.deadline().is_some() {
            self.turn_is_over(false).await;
        }
    }

    /// Collects records and makes them durable before the next effect.
    async fn in_order(
        &mut self,
        stamp: Stamp,
        effects: Vec<Effect>,
        acknowledge: &mut Option<Acknowledge>,
        failed: FailedWrite,
    ) -> Result<(), LostRecord> {
        let mut queue = VecDeque::from(effects);
        let mut records: Vec<RolloutRecord> = Vec::new();
        while let Some(effect) = queue.pop_front() {
            let effect = match effect {
                Effect::Record(record) => {
                    records.push(*record);
                    continue;
                }
                effect => effect,
            };
            if let Err(error) = self.write(stamp, &mut records, failed).await {
                queue.push_front(effect);
                let unseen = queue.iter().filter_map(started_item).collect();
                for effect in queue.into_iter().filter(Effect::stops) {
                    self.perform(stamp, effect).await;
                }
                return Err(LostRecord { error, unseen });
            }
            // A caller that stops a turn is answered when that is durable, not when the first task is stopped.
            let says_something = !effect.stops() && effect != Effect::AwaitStopped;
            if let Some(acknowledge) = acknowledge.take_if(|_| says_something) {
                acknowledge();
            }
            queue.extend(self.perform(stamp, effect).await);
        }
        let written = self.write(stamp, &mut records, failed).await;
        written.map_err(|error| LostRecord { error, unseen: HashSet::new() })?;
        if let Some(acknowledge) = acknowledge.take() {
            acknowledge();
        }
        Ok(())
    }

    async fn write(
        &mut self,
        stamp: Stamp,
        records: &mut Vec<RolloutRecord>,
        failed: FailedWrite,
    ) -> Result<(), JournalError> {
        if records.is_empty() {
            return Ok(());
        }
        let written = self.recorder.write(stamp.now_ms, records).await;
        let written = match failed {
            FailedWrite::Stops => written,
            FailedWrite::IsKnown => Ok(()),
        };
        #[cfg(test)]
        self.trace.written(records, written.is_ok());
        records.clear();
        written
    }

    /// Performs one effect. Returns the effects that follow from it at once, to be performed next.
    async fn perform(&mut self, stamp: Stamp, effect: Effect) -> Vec<Effect> {
        #[cfg(test)]
        self.trace.performed(&effect);
        match effect {
            Effect::Emit(notification) => {
                self.open_items.note(&notification);
                let site = NotifySite {
                    cwd: &self.settings.cwd,
                    sandbox: &self.settings.sandbox,
                    options: self.bench.options(),
                };
                self.notifier.note(&self.notify, self.thread.id(), &notification, &site);
                self.services.audience.notify(self.thread.id(), *notification).await;
            }
            Effect::ReadBack { turn_id, step } => match self.read_back().await {
                Ok(ThreadSeed { history, context, .. }) => {
                    let input = Input::ReadBack { history, context, turn_id, step };
                    return self.advance(stamp, input).unwrap_or_default();
                }
                Err(error) => {
                    tracing::error!(%error, thread = %self.thread.id(), "a record could not be read back");
                    self.state.fall_behind();
                }
            },
            Effect::CaptureStep => {
                let waits = !self.thread.is_reviewing();
                if let Some(started) = self.bench.starting_sources().filter(|_| waits) {
                    self.tasks.wake_when(started);
                    return Vec::new();
                }
                self.begin_capture();
            }
            Effect::RequestModel { attempt, request } => self.tasks.stream(&self.transport, attempt, request),
            Effect::RunTool { call, turn_id, step, grants } => {
                let progress = self.tasks.progress(self.thread.id().clone(), turn_id, call.call_id.clone());
                let (bench, scope) = (self.bench.clone(), CallScope::default());
                let hook_job = self.hook_job(step.clone(), progress.clone(), scope.clone());
                let job = ToolJob { call, step, grants, bench, progress, scope };
                self.tasks.run_tool(&self.services.tools, job, (self.hooks.clone(), hook_job));
            }
            Effect::RunHooks { id, turn_id, step, occasion } => {
                let progress = self.tasks.progress(self.thread.id().clone(), turn_id, id.clone());
                let scope = CallScope::default();
                let job = self.hook_job(step, progress, scope.clone());
                self.tasks.run_hooks(id, scope, self.hooks.clone().run(occasion, job));
            }
            Effect::SaveRule { prefix } => {
                let bench = self.bench.clone();
                let saved = blocking(move || bench.save_rule(&prefix)).await;
                if let Ok(Err(warning)) = saved {
                    let told = Box::new(ServerNotification::ConfigWarning(warning));
                    return self.advance(stamp, Input::ItemNotification(told)).unwrap_or_default();
                }
            }
            Effect::AnswerNested { call_id, output } => self.tasks.answer_nested(&call_id, output),
            Effect::Decide { call_id, number, decision } => self.tasks.decide(call_id, number, decision),
            Effect::AskClient { call_id, question } => {
                self.tasks.ask(&self.services.audience, call_id, *question);
            }
            Effect::Wake { at_ms } => {
                let pause = u64::try_from(at_ms - self.services.clock.now_ms()).unwrap_or(0);
                self.tasks.wake_after(Duration::from_millis(pause));
            }
            Effect::Deadline { attempt, at_ms } => {
                let left = u64::try_from(at_ms - self.services.clock.now_ms()).unwrap_or(0);
                self.tasks.deadline(attempt, Duration::from_millis(left));
            }
            Effect::PursueGoal => return self.pursue_goal().await,
            Effect::CancelModel { attempt } => self.tasks.stop_stream(attempt),
            Effect::CancelTool { call_id } => self.tasks.stop_call(&call_id),
            Effect::WithdrawQuestion { call_id } => self.tasks.withdraw(&call_id),
            Effect::AwaitStopped => self.await_stopped().await,
            Effect::Suspended => {
                self.tasks.spans.end_turn(None);
                self.turn_is_over(true).await;
            }
            Effect::Finish(status) => {
                self.tasks.spans.end_turn(Some(status));
                self.turn_is_over(false).await;
            }
            // Written before the next effect.
            Effect::Record(_) => {}
        }
        Vec::new()
    }

    fn hook_job(&self, step: Arc<Step>, progress: Progress, scope: CallScope) -> HookJob {
        HookJob { step, bench: self.bench.clone(), progress, scope, clock: self.services.clock.clone() }
    }

    /// Rebuilds the engine's state from the record: after a failed write it has more than the disk.
    pub(crate) async fn catch_up(&mut self) -> Result<(), JournalError> {
        if !self.state.is_behind() {
            return Ok(());
        }
        let seed = match (&self.recorder, &self.seed) {
            (Recorder::Waiting { .. } | Recorder::Ephemeral, Some(seed)) => (**seed).clone(),
            _ => self.read_back().await?,
        };
        self.thread = engine::ThreadMachine::new(seed);
        self.state.catch_up();
        Ok(())
    }

    async fn read_back(&mut self) -> Result<ThreadSeed, JournalError> {
        let history = self.read_record().await?;
        let goal = history.goal.map(Box::new);
        let agreed = history.agreed;
        let (history, usage, context) = (history.model, history.token_usage, history.told_context);
        Ok(ThreadSeed { history, usage, goal, context, agreed, ..(*self.template).clone() })
    }

    /// The turns as clients see them. Only the running turn, and items that clients saw start, are in progress.
    pub(crate) async fn read_turns(&mut self) -> Result<RecordedTurns, JournalError> {
        let history = self.read_record().await?;
        let is_running = self.thread.active_turn().is_some();
        let undelivered = if is_running {
            Vec::new()
        } else {
            UnfinishedTurn::of(&history).map(|take_up| take_up.undelivered).unwrap_or_default()
        };
        let mut pending = pending(&history);
        // A started operation of the running turn has no unknown outcome.
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
        Ok(RecordedTurns { turns, undelivered, unfinished, pending })
    }

    pub(crate) async fn read_record(&self) -> Result<ThreadHistory, JournalError> {
        if let Some(history) = self.recorder.read() {
            return Ok(history);
        }
        let (store, id) = (self.services.store.clone(), self.thread.id().clone());
        let read = tokio::task::spawn_blocking(move || store.read(&id)).await;
        // The task can only fail by a panic, and then there is no thread to continue with.
        read.map_or_else(
            |_| Err(JournalError::NotFound(self.thread.id().to_string())),
            |read| Ok(read?.history),
        )
    }
}

fn finished_call(input: &Input) -> Option<String> {
    match input {
        Input::ToolFinished { call_id: id, .. } | Input::HooksFinished { id, .. } => Some(id.clone()),
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

/// What to do about a failed write.
#[derive(Debug, Clone, Copy)]
enum FailedWrite {
    /// Skip everything after it.
    Stops,
    /// It failed before; notify clients of the turn's end all the same.
    IsKnown,
}
