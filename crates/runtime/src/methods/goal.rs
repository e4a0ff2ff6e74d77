//! Goals, as clients set and read them.

use engine::GoalChange;
use journal::JournalError;
use protocol::{ThreadGoal, ThreadGoalSetParams, ThreadId, TriState};
use support::Responder;

use crate::error::RuntimeError;
use crate::runtime::Runtime;
use driver::check_thread_id;

/// Limit of an objective, in characters. Each turn for the goal repeats it.
const MAX_OBJECTIVE: usize = 4_000;

impl Runtime {
    /// Responds with the goal when it is durable, before notifications about the work on it.
    pub async fn set_goal(
        &self,
        params: ThreadGoalSetParams,
        responder: Responder<ThreadGoal, RuntimeError>,
    ) {
        let checked = self.thread(&params.thread_id).and_then(|thread| {
            if self.state.loaded(thread.id()).is_some_and(|loaded| loaded.identity.ephemeral) {
                return Err(RuntimeError::NoGoalInMemory(thread.id().clone()));
            }
            Ok((thread, change_of(params)?))
        });
        match checked {
            Ok((thread, change)) => thread.set_goal_then(change, responder.from_error()).await,
            Err(error) => responder.respond(Err(error)),
        }
    }

    /// The goal of a thread, in memory or not.
    pub async fn goal(&self, id: &ThreadId) -> Result<Option<ThreadGoal>, RuntimeError> {
        let id = check_thread_id(id)?;
        if let Some(loaded) = self.state.loaded(&id) {
            return Ok(loaded.handle.goal().await?);
        }
        let wanted = id.clone();
        match self.state.on_disk(move |store| store.read(&wanted)).await? {
            Ok(read) => Ok(read.history.goal.filter(|goal| goal.thread_id == id)),
            Err(JournalError::NotFound(_)) => Err(RuntimeError::UnknownThread(id)),
            Err(error) => Err(error.into()),
        }
    }

    /// Responds whether there was one.
    pub async fn clear_goal(&self, id: &ThreadId, responder: Responder<bool, RuntimeError>) {
        match self.thread(id) {
            Ok(thread) => thread.clear_goal_then(responder.from_error()).await,
            Err(error) => responder.respond(Err(error)),
        }
    }
}

fn change_of(params: ThreadGoalSetParams) -> Result<GoalChange, RuntimeError> {
    let objective = params.objective.map(|objective| objective.trim().to_owned());
    if let Some(objective) = &objective {
        let problem = match objective.chars().count() {
            0 => Some("must not be empty".to_owned()),
            length if length > MAX_OBJECTIVE => Some(format!(
                "has {length} characters; {MAX_OBJECTIVE} are allowed: put the rest into a file"
            )),
            _ => None,
        };
        if let Some(problem) = problem {
            return Err(RuntimeError::Field { field: "objective", problem });
        }
    }
    if matches!(params.token_budget, TriState::Set(budget) if budget <= 0) {
        let problem = "must be greater than 0; null removes it".to_owned();
        return Err(RuntimeError::Field { field: "tokenBudget", problem });
    }
    Ok(GoalChange { objective, status: params.status, token_budget: params.token_budget })
}
