//! The thread's goal: commands about it, and the turns it starts.

use engine::{Effect, GoalChange, Input};
use protocol::{ThreadGoal, ThreadGoalStatus};
use support::Responder;

use crate::services::ClockExt;
use crate::thread::actor::Actor;
use crate::thread::error::ThreadError;
use crate::thread::settings::StepWork;

impl Actor {
    /// Sets or changes the goal. If no turn runs, work on an active goal starts.
    pub(crate) async fn set_goal(
        &mut self,
        change: GoalChange,
        responder: Responder<ThreadGoal, ThreadError>,
    ) {
        if let Err(error) = self.catch_up().await {
            return responder.respond(Err(error.into()));
        }
        let now_ms = self.services.clock.now_ms();
        let goal = match change.apply(self.thread.id(), self.thread.goal(), now_ms) {
            Ok(goal) => goal,
            Err(refusal) => return responder.respond(Err(refusal.into())),
        };
        let begins = goal.status == ThreadGoalStatus::Active && self.may_pursue();
        let mut begin = None;
        if begins {
            let turn_id = self.ids.turn(self.services.clock.stamp());
            begin = Some((turn_id, self.capture_for(StepWork::Goal).await));
        }
        let outcome = goal.clone();
        self.submit(Input::SetGoal { goal: Box::new(goal), begin }, outcome, responder).await;
        self.recapture();
    }

    pub(crate) async fn clear_goal(&mut self, responder: Responder<bool, ThreadError>) {
        let had_one = self.thread.goal().is_some();
        self.submit(Input::ClearGoal, had_one, responder).await;
        self.recapture();
    }

    /// Continues after the thread was opened again.
    pub(crate) async fn continue_goal(&mut self) {
        if self.catch_up().await.is_err() || !self.may_pursue() {
            return;
        }
        let stamp = self.services.clock.stamp();
        let effects = self.pursue_goal().await;
        let _ = self.carry_out(stamp, effects, None, None).await;
    }

    /// The effects of a turn for the goal, if one may start. No command comes between the end of one turn and the start
    /// of the next, so there are never two.
    pub(crate) async fn pursue_goal(&mut self) -> Vec<Effect> {
        if !self.may_pursue() {
            return Vec::new();
        }
        let stamp = self.services.clock.stamp();
        let (turn_id, step) = (self.ids.turn(stamp), self.capture_for(StepWork::Goal).await);
        self.advance(stamp, Input::PursueGoal { turn_id, step }).unwrap_or_default()
    }

    /// No turn runs or waits to be resumed, and the host that carries model requests is attached.
    fn may_pursue(&self) -> bool {
        let is_vacant = self.session.as_ref().is_some_and(|session| session.is_vacant());
        self.thread.active_turn().is_none() && !self.state.is_suspended() && !is_vacant
    }
}
