//! A thread as pure state: its lasting part and its running turn, if any.

use std::sync::Arc;

use protocol::{
    NonSteerableTurnKind, ResponseItem, RolloutRecord, ThreadGoal, ThreadId, ThreadStatus, ThreadTokenUsage,
    TurnId, TurnStatus,
};
use serde_json::Value;

use crate::context::{AdditionalStore, Baseline, subagent_notification};
use crate::effect::stops_first;
use crate::goal::Pursuit;
use crate::grants::NOTHING;
use crate::history::History;
use crate::ids::Stamp;
use crate::status::Facts;
use crate::turn::proposals::refuse_late;
use crate::turn::work::{Core, Transition};
use crate::turn::{TurnKind, TurnMachine};
use crate::{ChildEnd, Effect, Input, OperationEnd, Refusal, Step};

/// The data that a thread is created from, new or stored.
#[derive(Debug, Clone)]
pub struct ThreadSeed {
    pub id: ThreadId,
    pub history: Vec<ResponseItem>,
    pub usage: Option<ThreadTokenUsage>,
    pub goal: Option<Box<ThreadGoal>>,
    /// The context of the last `turnContext` record.
    pub context: Option<Value>,
    /// That record belongs to another thread: the first turn records the context in this thread's own record.
    pub context_is_borrowed: bool,
    pub raw_events: bool,
    /// From the root agent to this one.
    pub agent_path: Arc<[String]>,
    /// Calls start when their response is complete, not as they arrive.
    pub calls_wait: bool,
    /// Questions carry their operation's id and digest.
    pub shows_operations: bool,
    /// The epoch of this process's lease, if there is one.
    pub epoch: Option<u64>,
    /// Session keys that a client approved for the session before this process started.
    pub agreed: Vec<String>,
}

impl ThreadSeed {
    /// The same thread without its history.
    pub fn without_history(&self) -> Self {
        Self {
            id: self.id.clone(),
            history: Vec::new(),
            usage: None,
            goal: None,
            context: None,
            context_is_borrowed: false,
            raw_events: self.raw_events,
            agent_path: self.agent_path.clone(),
            calls_wait: self.calls_wait,
            shows_operations: self.shows_operations,
            epoch: self.epoch,
            agreed: Vec::new(),
        }
    }

    /// An empty thread.
    pub fn new(id: ThreadId) -> Self {
        Self {
            id,
            history: Vec::new(),
            usage: None,
            goal: None,
            context: None,
            context_is_borrowed: false,
            raw_events: false,
            agent_path: Arc::new(["root".to_owned()]),
            calls_wait: false,
            shows_operations: false,
            epoch: None,
            agreed: Vec::new(),
        }
    }
}

/// A thread as a state machine: takes one input at a time and returns the effects. Same inputs, same effects.
#[derive(Debug, Clone)]
pub struct ThreadMachine {
    core: Core,
    turn: Option<TurnMachine>,
}

impl ThreadMachine {
    pub fn new(seed: ThreadSeed) -> Self {
        let baseline = seed.context.and_then(|context| serde_json::from_value::<Baseline>(context).ok());
        Self {
            core: Core {
                id: seed.id,
                agent_path: seed.agent_path,
                history: History::new(seed.history),
                usage: seed.usage,
                pursuit: seed.goal.map(|goal| Pursuit::new(*goal)),
                aside: None,
                rate_limits: None,
                turn_cost: None,
                baseline,
                baseline_is_borrowed: seed.context_is_borrowed,
                additional: AdditionalStore::default(),
                facts: Facts::default(),
                attempts: 0,
                agreed: seed.agreed.into_iter().collect(),
                grants: NOTHING,
                calls_wait: seed.calls_wait,
                shows_operations: seed.shows_operations,
                epoch: seed.epoch,
                raw_events: seed.raw_events,
            },
            turn: None,
        }
    }

    pub fn id(&self) -> &ThreadId {
        &self.core.id
    }
    pub fn history(&self) -> &[Arc<ResponseItem>] {
        self.core.history.items()
    }
    /// The history and context that a fork starts with.
    pub fn remembered(&self) -> (Vec<ResponseItem>, Option<Value>) {
        let history = self.core.history.items().iter().map(|item| (**item).clone()).collect();
        let context = self.core.baseline.as_ref();
        (history, context.and_then(|context| serde_json::to_value(context).ok()))
    }
    pub fn usage(&self) -> Option<&ThreadTokenUsage> {
        self.core.usage.as_ref()
    }
    pub fn status(&self) -> ThreadStatus {
        self.core.facts.status()
    }
    pub fn goal(&self) -> Option<&ThreadGoal> {
        self.core.pursuit.as_ref().map(|pursuit| &pursuit.goal)
    }
    /// The running turn is a review: its steps are made for a reviewer.
    pub fn is_reviewing(&self) -> bool {
        self.turn.as_ref().is_some_and(|turn| turn.kind == TurnKind::Review)
    }
    /// Everything in progress waits for a client.
    pub fn is_pending(&self) -> bool {
        self.turn.as_ref().is_some_and(TurnMachine::is_pending)
    }
    pub fn active_turn(&self) -> Option<&TurnId> {
        self.turn.as_ref().map(|turn| &turn.id)
    }

    /// The effects of one input. A refusal changes nothing.
    pub fn on(&mut self, stamp: Stamp, input: Input) -> Result<Vec<Effect>, Refusal> {
        self.accepts(&input)?;
        let was_running = self.turn.is_some();
        let mut work = Transition::new(&mut self.core, stamp);
        self.turn = match (self.turn.take(), input) {
            // An item may outlive the turn it began in.
            (turn, Input::ItemEnded { turn_id, item }) => {
                work.item_completed(&turn_id, *item);
                turn
            }
            (turn, Input::ItemNotification(notification)) => {
                work.emit(*notification);
                turn
            }
            (turn, Input::ChildEnded(end)) => child_ended(&mut work, turn, *end),
            (None, Input::UserShell { turn_id, call_id, command, step }) => {
                Some(TurnMachine::shell(&mut work, turn_id, call_id, command, step))
            }
            (None, Input::Start { turn_id, text, output_schema, step }) => {
                TurnMachine::start(&mut work, turn_id, text, output_schema, step)
            }
            (None, Input::Resume { turn_id, said, earlier, step }) => {
                TurnMachine::resume(&mut work, turn_id, said, earlier, step)
            }
            (None, Input::Compact { turn_id, step }) => TurnMachine::compact(&mut work, turn_id, step),
            (None, Input::Review { turn_id, order, step }) => {
                TurnMachine::review(&mut work, turn_id, order, step)
            }
            (turn, Input::SetGoal { goal, begin }) => set_goal(&mut work, turn, *goal, begin),
            (turn, Input::ClearGoal) => {
                work.clear_goal();
                turn
            }
            (None, Input::PursueGoal { turn_id, step }) => TurnMachine::pursue(&mut work, turn_id, step),
            (None, Input::Rollback { num_turns, turn_id, step }) => {
                // The record numbers the turns; only it can say which remain.
                work.record(RolloutRecord::RolledBack { num_turns });
                work.effects.push(Effect::ReadBack { turn_id, step });
                None
            }
            (None, Input::ReadBack { history, context, turn_id, step }) => {
                let was_used = work.core.usage.is_some() || !work.core.history.items().is_empty();
                work.core.history.replace(history);
                work.core.additional.forget();
                work.core.baseline = context.and_then(|context| serde_json::from_value(context).ok());
                if was_used {
                    work.estimate_tokens(&turn_id, &step);
                }
                None
            }
            (None, Input::Proposed { turn_id, call_id, proposal }) => {
                refuse_late(&mut work, &turn_id, call_id, *proposal);
                None
            }
            (None, Input::StorageFailed(failure)) if failure.started_at_host.is_some() => {
                // The turn was about to end; resuming it ends it.
                work.emit_status();
                work.effects.push(Effect::Suspended);
                None
            }
            // Late events of an ended turn are normal, not a bug.
            (None, _) => None,
            (Some(turn), input) => turn.on(&mut work, input),
        };
        if let Some(turn) = self.turn.take_if(|turn| turn.suspends_when_pending && turn.is_pending()) {
            turn.suspend(&mut work);
        }
        work.run_goal_clock(self.turn.is_some());
        let is_over = was_running && self.turn.is_none();
        let mut effects = if is_over { stops_first(work.effects) } else { work.effects };
        // Also after a turn that was not for the goal: the user's message may have resolved what blocked it.
        let goes_on = is_over && effects.contains(&Effect::Finish(TurnStatus::Completed));
        if goes_on && self.core.pursuit.as_ref().is_some_and(Pursuit::is_active) {
            effects.push(Effect::PursueGoal);
        }
        Ok(effects)
    }

    fn accepts(&self, input: &Input) -> Result<(), Refusal> {
        let running = self.turn.as_ref();
        match input {
            Input::Start { text, .. } | Input::Steer(text)
                if text.shown.is_empty() && text.outside.is_none() =>
            {
                Err(Refusal::EmptyInput)
            }
            Input::Start { .. } | Input::Resume { .. } | Input::Compact { .. } | Input::Review { .. }
                if running.is_some() =>
            {
                Err(Refusal::TurnRunning)
            }
            Input::Steer(_) => match running.map(|turn| turn.kind) {
                None => Err(Refusal::NoActiveTurn),
                Some(TurnKind::Compact) => Err(Refusal::NotSteerable(NonSteerableTurnKind::Compact)),
                Some(TurnKind::Review) => Err(Refusal::NotSteerable(NonSteerableTurnKind::Review)),
                Some(TurnKind::Regular | TurnKind::Shell) => Ok(()),
            },
            Input::Rollback { .. } if running.is_some() => Err(Refusal::RollbackWhileRunning),
            Input::Rollback { num_turns: 0, .. } => Err(Refusal::NothingToRollBack),
            _ => Ok(()),
        }
    }
}

/// Records the child's operation as finished and queues a notification for the model. A running turn makes another
/// request for it.
fn child_ended(work: &mut Transition<'_>, turn: Option<TurnMachine>, end: ChildEnd) -> Option<TurnMachine> {
    let ChildEnd { id, turn_id, status, operation } = end;
    if let Some(OperationEnd { operation_id, success, output }) = operation {
        work.record_finished(operation_id, 1, success, output);
    }
    let news = status.map(|status| subagent_notification(&id, turn_id.as_ref(), &status));
    match (turn, news) {
        (Some(turn), Some(news)) => turn.queue_message(work, news),
        (None, Some(news)) => {
            work.note(news);
            None
        }
        (turn, None) => turn,
    }
}

/// If no turn runs, work on an active goal starts; a running turn becomes part of it.
fn set_goal(
    work: &mut Transition<'_>,
    turn: Option<TurnMachine>,
    goal: ThreadGoal,
    begin: Option<(TurnId, Arc<Step>)>,
) -> Option<TurnMachine> {
    work.set_goal(turn.as_ref().map(|turn| &turn.id), goal);
    match (turn, begin) {
        (None, Some((turn_id, step))) => TurnMachine::pursue(work, turn_id, step),
        (turn, _) => turn,
    }
}
