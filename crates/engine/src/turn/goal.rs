//! Turns for the thread's goal: starting them, counting their cost, and updating the goal when they end.

use std::sync::Arc;

use protocol::{
    CodexErrorInfo, RolloutRecord, ServerNotification, ThreadGoal, ThreadGoalClearedNotification,
    ThreadGoalStatus, ThreadGoalUpdatedNotification, ThreadMetadataChange, TokenUsageBreakdown, TriState,
    TurnError, TurnId, TurnStatus,
};

use crate::Step;
use crate::context::{GoalBudgetSpent, GoalContext, alone};
use crate::goal::{MAX_IDLE_TURNS, Pursuit};
use crate::turn::compaction::AfterCompaction;
use crate::turn::work::Transition;
use crate::turn::{TurnKind, TurnMachine};

impl TurnMachine {
    /// Starts a turn without a user message. `None` when there is no active goal.
    pub(crate) fn pursue(work: &mut Transition<'_>, id: TurnId, step: Arc<Step>) -> Option<Self> {
        let pursuit = work.core.pursuit.as_ref().filter(|pursuit| pursuit.is_active())?;
        let about = alone(&GoalContext(&pursuit.goal));
        let mut turn = Self { is_for_goal: true, ..Self::new(work, id, TurnKind::Regular, step) };
        turn.pending_messages.push(about);
        let needs_room = turn.is_full(work);
        turn.record_start(work);
        turn.notify_started(work);
        if needs_room {
            turn.begin_compaction(work, AfterCompaction::Continue { keep_context: false });
        } else if turn.step.is_preliminary {
            turn.await_step(work);
        } else {
            work.inject_context(&turn.id, &turn.step);
            turn.drain_queue(work);
            turn.request(work);
        }
        Some(turn)
    }

    /// Sends the goal again if a resumed goal turn was interrupted before the model saw anything.
    pub(crate) fn recall_goal(&mut self, work: &Transition<'_>) {
        let pursuit = work.core.pursuit.as_ref().filter(|pursuit| pursuit.is_active());
        if let (Some(pursuit), true) = (pursuit, self.queued.is_empty()) {
            self.is_for_goal = true;
            self.pending_messages.push(alone(&GoalContext(&pursuit.goal)));
        }
    }

    /// Counts a response's tokens towards the goal. When that uses up the budget, the model is asked to finish.
    pub(crate) fn charge_goal(&mut self, work: &mut Transition<'_>, usage: Option<&TokenUsageBreakdown>) {
        let (Some(usage), None) = (usage, &work.core.aside) else { return };
        let now_ms = work.stamp.now_ms;
        let Some(pursuit) = work.core.pursuit.as_mut().filter(|pursuit| pursuit.is_active()) else { return };
        pursuit.spend(usage, now_ms);
        if !pursuit.is_spent() {
            // Recorded with the tokens, so that a restart does not reset them.
            return work.record_goal();
        }
        pursuit.goal.status = ThreadGoalStatus::BudgetLimited;
        self.pending_messages.push(alone(&GoalBudgetSpent(&pursuit.goal)));
        work.notify_goal(Some(&self.id));
    }

    /// Updates the goal after the turn: active, paused or blocked.
    pub(crate) fn settle_goal(
        &self,
        work: &mut Transition<'_>,
        status: TurnStatus,
        error: Option<&TurnError>,
    ) {
        let now_ms = work.stamp.now_ms;
        let Some(pursuit) = &mut work.core.pursuit else { return };
        let was_worked_on = pursuit.stop_clock(now_ms);
        if pursuit.is_active() {
            pursuit.goal.status = self.next_status(pursuit, status, error);
            pursuit.goal.updated_at = now_ms.div_euclid(1_000);
        } else if !was_worked_on {
            return;
        }
        work.notify_goal(Some(&self.id));
    }

    fn next_status(
        &self,
        pursuit: &mut Pursuit,
        status: TurnStatus,
        error: Option<&TurnError>,
    ) -> ThreadGoalStatus {
        match status {
            TurnStatus::Interrupted if self.pauses_goal => ThreadGoalStatus::Paused,
            TurnStatus::Failed => match error.and_then(|error| error.codex_error_info.as_ref()) {
                Some(CodexErrorInfo::UsageLimitExceeded) => ThreadGoalStatus::UsageLimited,
                _ => ThreadGoalStatus::Blocked,
            },
            TurnStatus::Completed if self.is_for_goal && self.seen_calls.is_empty() => {
                pursuit.idle_turns += 1;
                match pursuit.idle_turns >= MAX_IDLE_TURNS {
                    true => ThreadGoalStatus::Blocked,
                    false => ThreadGoalStatus::Active,
                }
            }
            TurnStatus::Completed | TurnStatus::Interrupted | TurnStatus::InProgress => {
                pursuit.idle_turns = 0;
                ThreadGoalStatus::Active
            }
        }
    }
}

impl Transition<'_> {
    pub(crate) fn set_goal(&mut self, turn_id: Option<&TurnId>, goal: ThreadGoal) {
        let now_ms = self.stamp.now_ms;
        let mut pursuit = Pursuit::new(goal);
        if turn_id.is_some() && pursuit.is_active() {
            pursuit.start_clock(now_ms);
        }
        self.core.pursuit = Some(pursuit);
        self.notify_goal(turn_id);
    }

    pub(crate) fn clear_goal(&mut self) {
        if self.core.pursuit.take().is_none() {
            return;
        }
        let change = ThreadMetadataChange { goal: TriState::Clear, ..ThreadMetadataChange::default() };
        self.record(RolloutRecord::Metadata { change });
        let thread_id = self.core.id.clone();
        self.emit(ServerNotification::ThreadGoalCleared(ThreadGoalClearedNotification { thread_id }));
    }

    /// The model reports the status of an active goal.
    pub(crate) fn mark_goal(&mut self, turn_id: &TurnId, status: ThreadGoalStatus) {
        let now_ms = self.stamp.now_ms;
        let Some(pursuit) = &mut self.core.pursuit else { return };
        pursuit.goal.status = status;
        pursuit.goal.updated_at = now_ms.div_euclid(1_000);
        self.notify_goal(Some(turn_id));
    }

    /// While a turn runs, its time counts towards an active goal.
    pub(crate) fn run_goal_clock(&mut self, is_running: bool) {
        let now_ms = self.stamp.now_ms;
        let reviewing = self.core.aside.is_some();
        match &mut self.core.pursuit {
            Some(pursuit) if is_running && pursuit.is_active() && !reviewing => pursuit.start_clock(now_ms),
            _ => {}
        }
    }

    fn record_goal(&mut self) {
        let Some(pursuit) = &self.core.pursuit else { return };
        let goal = TriState::Set(pursuit.goal.clone());
        let change = ThreadMetadataChange { goal, ..ThreadMetadataChange::default() };
        self.record(RolloutRecord::Metadata { change });
    }

    fn notify_goal(&mut self, turn_id: Option<&TurnId>) {
        self.record_goal();
        let Some(pursuit) = &self.core.pursuit else { return };
        let (thread_id, goal) = (self.core.id.clone(), pursuit.goal.clone());
        let turn_id = turn_id.cloned();
        let updated = ThreadGoalUpdatedNotification { thread_id, turn_id, goal };
        self.emit(ServerNotification::ThreadGoalUpdated(updated));
    }
}
