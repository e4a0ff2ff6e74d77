//! Resuming a turn after a restart: an operation that started and never finished has an unknown outcome; a decided one
//! is not asked about again; a proposed one is asked about again under its own id.

use std::sync::Arc;

use protocol::{FunctionCallOutputBody, ItemId, OperationDecision, OperationRecord, TurnId};

use crate::calls::{OpenCall, Runner, ToolCall};
use crate::request::{RequestParts, prepare};
use crate::turn::active_proposal::{Ended, ended_item};
use crate::turn::calls::{gate_question, output_of};
use crate::turn::compaction::AfterCompaction;
use crate::turn::earlier::{Earlier, EarlierOperations, EarlierState};
use crate::turn::operation::operation_id;
use crate::turn::said::Said;
use crate::turn::sampling::{Sampling, StreamState};
use crate::turn::work::Transition;
use crate::turn::{TurnKind, TurnMachine, TurnPhase};
use crate::{Gate, Step, ToolKind, UserText};

/// The output of a call that started and never finished.
pub const UNKNOWN_OUTCOME: &str = "The outcome of this call is not known: the program stopped while it ran. It may \
    have happened wholly, partly or not at all. Look at how things stand before you repeat it.";

impl TurnMachine {
    pub(crate) fn resume(
        work: &mut Transition<'_>,
        id: TurnId,
        said: Vec<(ItemId, UserText)>,
        earlier: Vec<Earlier>,
        step: Arc<Step>,
    ) -> Option<Self> {
        let mut turn = Self::new(work, id, TurnKind::Regular, step);
        turn.earlier = EarlierOperations::new(earlier);
        turn.segments = work.core.history.segments();
        turn.seen_calls = work.core.history.calls_of_turn();
        let queued =
            said.into_iter().map(|(id, text)| Said { id, text, beside: Vec::new(), after: Vec::new() });
        turn.queued = queued.collect();
        turn.record_start(work);
        for said in &turn.queued {
            said.record(work, &turn.id);
        }
        turn.notify_started(work);
        let calls = work.core.history.open_calls();
        if calls.is_empty() && turn.is_full(work) {
            // The turn may have been suspended during its compaction.
            turn.begin_compaction(work, AfterCompaction::Continue { keep_context: true });
            return Some(turn);
        }
        if calls.is_empty() {
            turn.recall_goal(work);
            turn.await_step(work);
            return Some(turn);
        }
        let mut sampling = Box::new(turn.complete(work));
        let was_stopped = calls.iter().any(|call| turn.was_stopped_at_gate(work, call));
        for call in calls {
            let open = turn.resume_call(work, call);
            sampling.calls.push(open);
        }
        if was_stopped {
            turn.phase = TurnPhase::Sampling(sampling);
            return turn.interrupt(work);
        }
        turn.start_waiting(work, &mut sampling.calls);
        turn.phase = TurnPhase::Sampling(sampling);
        turn.advance(work)
    }

    /// The host rejected the call and the turn, and the process stopped before the turn's end was recorded.
    fn was_stopped_at_gate(&self, work: &Transition<'_>, call: &ToolCall) -> bool {
        let is_gated = self.step.called(call).is_some_and(|tool| tool.gate == Gate::Ask);
        let before = self.earlier.get(&operation_id(work, &self.id, &call.call_id, 0));
        is_gated
            && before.is_some_and(|before| {
                let stops =
                    |decision: &_| matches!(decision, OperationDecision::Reject { end_turn: true, .. });
                matches!(&before.state, EarlierState::Decided(decision) if stops(decision))
                    && before.digest == gate_question(call).1
            })
    }

    /// The response that contained the calls, as a completed stream.
    fn complete(&self, work: &Transition<'_>) -> Sampling {
        let ask = RequestParts {
            thread_id: &work.core.id,
            turn_id: &self.id,
            step: &self.step,
            purpose: model::Purpose::Turn,
            output_schema: None,
            turn_state: None,
            agent_path: &work.core.agent_path,
            segment: self.segments.saturating_sub(1),
            attempt: 1,
        };
        let mut sampling = Sampling::new(work.core.attempts, prepare(&ask, Vec::new()));
        sampling.stream = StreamState::Completed;
        sampling
    }

    /// Resumes a call according to the state of its last operation.
    pub(crate) fn resume_call(&mut self, work: &mut Transition<'_>, call: ToolCall) -> OpenCall {
        let base = operation_id(work, &self.id, &call.call_id, 0);
        let last = self.earlier.last_of(&base).map(|(number, earlier)| (number, earlier.clone()));
        let output = match last {
            None => None,
            Some((_, Earlier { operation_id, state: EarlierState::Started { attempt }, item, .. })) => {
                work.record_operation(OperationRecord::Unknown { operation_id, attempt });
                if let Some(item) = item {
                    work.item_started(&self.id, item.clone());
                    work.item_completed(&self.id, ended_item(item, Ended::Failed));
                }
                Some(FunctionCallOutputBody::Text(UNKNOWN_OUTCOME.to_owned()))
            }
            Some((_, Earlier { state: EarlierState::Finished { output, .. }, .. })) => {
                Some(output_of(output))
            }
            Some((0, _)) => None,
            // An earlier operation of the call was carried out, so the call cannot be repeated.
            Some((number, Earlier { operation_id: id, .. })) => {
                work.record_withdrawn(id, "an earlier attempt of the same call is known");
                let before = operation_id(work, &self.id, &call.call_id, number - 1);
                Some(match self.earlier.take(&before).map(|earlier| earlier.state) {
                    Some(EarlierState::Finished { output, .. }) => output_of(output),
                    _ => FunctionCallOutputBody::Text(UNKNOWN_OUTCOME.to_owned()),
                })
            }
        };
        let began_ms = work.stamp.now_ms;
        let (parallel, runner) = match self.step.called(&call) {
            Some(tool) if tool.kind != ToolKind::Hosted && output.is_none() => {
                (tool.parallel, Runner::Waiting)
            }
            _ => (true, Runner::Nobody),
        };
        let output = match runner {
            Runner::Waiting => None,
            _ => Some(output.unwrap_or_else(|| crate::calls::unsupported(&call))),
        };
        OpenCall { call, began_ms, runner, parallel, active: None, output, step: None }
    }
}
