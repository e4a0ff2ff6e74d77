//! Suspending a turn so that this or another process can resume it: waiting operations stay proposed, results of those
//! that ran are recorded.

use protocol::{
    ItemId, OperationType, PendingOperation, PendingOperationState, ServerNotification, ToolEffects,
    TurnSuspendedNotification,
};

use crate::Effect;
use crate::calls::{OpenCall, ProposalStage, Runner, StoppedBy};
use crate::canonical::digest_of;
use crate::decision::reason_and_decisions;
use crate::truncate::truncate_output;
use crate::turn::calls::arguments_of;
use crate::turn::operation::operation_id;
use crate::turn::sampling::StreamState;
use crate::turn::work::Transition;
use crate::turn::{Retry, TurnMachine, TurnPhase};

impl TurnMachine {
    /// Everything in progress waits for a client.
    pub(crate) fn is_pending(&self) -> bool {
        match &self.phase {
            TurnPhase::Sampling(sampling) => {
                let mut open = sampling.calls.iter().filter(|call| call.output.is_none()).peekable();
                !matches!(sampling.stream, StreamState::Open)
                    && self.shells.is_empty()
                    && open.peek().is_some()
                    && open.all(|call| call.waits_for_client() || call.runner == Runner::Waiting)
            }
            _ => false,
        }
    }

    /// Operations that wait for a decision.
    pub(crate) fn pending_operations(&self, work: &Transition<'_>) -> Vec<PendingOperation> {
        let calls = match &self.phase {
            TurnPhase::Sampling(sampling) => sampling.calls.as_slice(),
            _ => &[],
        };
        let nested = self.nested.iter().map(|nested| &nested.open);
        let waiting =
            calls.iter().chain(nested).filter(|call| call.output.is_none() && call.waits_for_client());
        waiting.map(|call| self.pending(work, call)).collect()
    }

    fn pending(&self, work: &Transition<'_>, open: &OpenCall) -> PendingOperation {
        let call_id = &open.call.call_id;
        let active = open.active.as_deref();
        let number = active.map_or(0, |active| active.proposal.number);
        let arguments = match active {
            Some(active) => active.proposal.arguments.clone(),
            None => arguments_of(&open.call).unwrap_or_default(),
        };
        let question = active.and_then(|active| active.proposal.question.as_deref());
        let (reason, decisions) = question.map_or((None, vec!["respond".to_owned()]), |question| {
            reason_and_decisions(question, work.core.shows_operations)
        });
        PendingOperation {
            operation_id: operation_id(work, &self.id, call_id, number),
            turn_id: self.id.clone(),
            item_id: ItemId::new(call_id.clone()),
            kind: active.map_or(OperationType::Function, |active| active.proposal.kind.clone()),
            state: PendingOperationState::Proposed,
            tool: open.call.name.clone(),
            namespace: open.call.namespace.clone(),
            agent_path: work.core.agent_path.to_vec(),
            arguments_digest: active
                .map_or_else(|| digest_of(&arguments), |active| active.proposal.digest.clone()),
            arguments,
            effects: active.map_or(ToolEffects::Once, |active| active.proposal.effects),
            available_decisions: decisions,
            reason,
            created_at_ms: open.began_ms,
        }
    }

    /// Ends the turn for this process only: the record gets no end.
    pub(crate) fn suspend(mut self, work: &mut Transition<'_>) {
        let pending_operations = self.pending_operations(work);
        self.stop_nested(work, None, StoppedBy::Departure);
        self.stop_shells(work, StoppedBy::Departure);
        self.stop_hooks(work);
        self.pending_messages.drain(..).for_each(|message| work.remember(&self.id, message));
        match std::mem::replace(&mut self.phase, TurnPhase::AwaitingStep) {
            TurnPhase::Sampling(mut sampling) => {
                if matches!(sampling.stream, StreamState::Open) {
                    work.effects.push(Effect::CancelModel { attempt: sampling.attempt });
                }
                self.close_active(work, &mut sampling);
                for call in &sampling.calls {
                    self.suspend_call(work, call);
                }
            }
            TurnPhase::Compacting(compacting) => {
                work.effects.push(Effect::CancelModel { attempt: compacting.attempt });
                self.close_compaction(work, &compacting);
            }
            TurnPhase::BackingOff(retry) => {
                if let Retry::Compacting(compacting) = *retry {
                    self.close_compaction(work, &compacting);
                }
            }
            TurnPhase::AwaitingStep => {}
        }
        work.set_status(|facts| {
            facts.running = false;
            facts.waiting_approvals = 0;
            facts.waiting_answers = 0;
        });
        let (thread_id, turn_id) = (work.core.id.clone(), self.id.clone());
        let suspended = TurnSuspendedNotification { thread_id, turn_id, pending_operations };
        work.emit(ServerNotification::TurnSuspended(suspended));
        work.effects.push(Effect::Suspended);
    }

    /// No host is there for the next request, so the turn waits to be resumed.
    pub(crate) fn wait_for_carrier(self, work: &mut Transition<'_>, retry: &Retry) -> Option<Self> {
        if let Retry::Compacting(compacting) = retry {
            self.close_compaction(work, compacting);
        }
        self.suspend(work);
        None
    }

    /// Records an output for a call that ran, even if only that it was stopped. A waiting call is asked about again
    /// under the same id.
    fn suspend_call(&self, work: &mut Transition<'_>, open: &OpenCall) {
        let call_id = open.call.call_id.clone();
        if let Some(output) = &open.output {
            return self.answered(work, open, output.clone());
        }
        match open.runner {
            Runner::Client | Runner::Gate => work.effects.push(Effect::WithdrawQuestion { call_id }),
            Runner::Tool => {
                work.effects.push(Effect::CancelTool { call_id: call_id.clone() });
                match open.active.as_ref().map(|active| active.stage) {
                    Some(ProposalStage::Asked) => {
                        let mut active = open.active.clone();
                        match active.as_mut().filter(|active| active.assessment.is_some()) {
                            Some(active) => active.drop_assessment(work, &self.id, &call_id),
                            None => work.effects.push(Effect::WithdrawQuestion { call_id }),
                        }
                    }
                    Some(ProposalStage::Begun) => {
                        self.stop_proposal(work, open, StoppedBy::Departure);
                        if !self.has_started(work, open) {
                            return;
                        }
                        let output = open.stopped_after(work.stamp.now_ms, StoppedBy::Departure);
                        self.answered(work, open, output);
                    }
                    // It had no effects yet, so it is repeated.
                    Some(ProposalStage::Over) | None => {}
                }
            }
            Runner::Waiting | Runner::Nobody => {}
        }
    }

    /// Whether the record's keeper has the call's operation as started. If not, the call is repeated.
    pub(crate) fn has_started(&self, work: &Transition<'_>, open: &OpenCall) -> bool {
        let number = open.active.as_ref().map_or(0, |active| active.proposal.number);
        let id = operation_id(work, &self.id, &open.call.call_id, number);
        work.started_at_host.as_ref().is_none_or(|started| started.contains(&id))
    }

    fn answered(&self, work: &mut Transition<'_>, open: &OpenCall, output: protocol::FunctionCallOutputBody) {
        let output = truncate_output(output, self.step.model.truncation);
        work.remember(&self.id, open.answer(output));
    }
}

impl OpenCall {
    fn waits_for_client(&self) -> bool {
        match self.runner {
            Runner::Client | Runner::Gate => true,
            Runner::Tool => self
                .active
                .as_ref()
                .is_some_and(|active| active.stage == ProposalStage::Asked && active.assessment.is_none()),
            Runner::Waiting | Runner::Nobody => false,
        }
    }
}
