//! Putting a turn away so that it can be taken up again, here or by another process: what waits stays waiting, what ran
//! is in the record, and nothing is lost.

use protocol::{
    ItemId, OperationType, PendingOperation, PendingOperationState, ServerNotification, ToolEffects,
    TurnSuspendedNotification,
};

use crate::Effect;
use crate::calls::{OpenCall, Runner, Stage, StoppedBy};
use crate::canonical::digest_of;
use crate::decision::reason_and_decisions;
use crate::operation::operation_id;
use crate::sampling::Stream;
use crate::truncate::truncate_output;
use crate::turn::{Phase, Retry, Turn};
use crate::turn_calls::arguments_of;
use crate::work::Work;

impl Turn {
    /// Everything that goes on waits for a client.
    pub(crate) fn is_pending(&self) -> bool {
        match &self.phase {
            Phase::Sampling(sampling) => {
                let mut open = sampling.calls.iter().filter(|call| call.output.is_none()).peekable();
                !matches!(sampling.stream, Stream::Open)
                    && self.shells.is_empty()
                    && open.peek().is_some()
                    && open.all(|call| call.waits_for_client() || call.runner == Runner::Waiting)
            }
            _ => false,
        }
    }

    /// What waits for a decision.
    pub(crate) fn pending_operations(&self, work: &Work<'_>) -> Vec<PendingOperation> {
        let calls = match &self.phase {
            Phase::Sampling(sampling) => sampling.calls.as_slice(),
            _ => &[],
        };
        let waiting = calls.iter().filter(|call| call.output.is_none() && call.waits_for_client());
        waiting.map(|call| self.pending(work, call)).collect()
    }

    fn pending(&self, work: &Work<'_>, open: &OpenCall) -> PendingOperation {
        let call_id = &open.call.call_id;
        let doing = open.doing.as_deref();
        let number = doing.map_or(0, |doing| doing.proposal.number);
        let arguments = match doing {
            Some(doing) => doing.proposal.arguments.clone(),
            None => arguments_of(&open.call).unwrap_or_default(),
        };
        let question = doing.and_then(|doing| doing.proposal.question.as_deref());
        let (reason, decisions) = question.map_or((None, vec!["respond".to_owned()]), |question| {
            reason_and_decisions(question, work.core.shows_operations)
        });
        PendingOperation {
            operation_id: operation_id(work, &self.id, call_id, number),
            turn_id: self.id.clone(),
            item_id: ItemId::new(call_id.clone()),
            kind: doing.map_or(OperationType::Function, |doing| doing.proposal.kind.clone()),
            state: PendingOperationState::Proposed,
            tool: open.call.name.clone(),
            namespace: open.call.namespace.clone(),
            agent_path: work.core.agent_path.to_vec(),
            arguments_digest: doing
                .map_or_else(|| digest_of(&arguments), |doing| doing.proposal.digest.clone()),
            arguments,
            effects: doing.map_or(ToolEffects::Once, |doing| doing.proposal.effects),
            available_decisions: decisions,
            reason,
            created_at_ms: open.began_ms,
        }
    }

    /// The turn is over for this process and for nobody else: it has no end in the record.
    pub(crate) fn suspend(mut self, work: &mut Work<'_>) {
        let pending_operations = self.pending_operations(work);
        self.stop_shells(work, StoppedBy::Departure);
        self.untold.drain(..).for_each(|message| work.remember(&self.id, message));
        match std::mem::replace(&mut self.phase, Phase::AwaitingStep) {
            Phase::Sampling(mut sampling) => {
                if matches!(sampling.stream, Stream::Open) {
                    work.effects.push(Effect::CancelModel { attempt: sampling.attempt });
                }
                self.close_active(work, &mut sampling);
                for call in &sampling.calls {
                    self.put_away(work, call);
                }
            }
            Phase::Compacting(compacting) => {
                work.effects.push(Effect::CancelModel { attempt: compacting.attempt });
                self.close_compaction(work, &compacting);
            }
            Phase::BackingOff(retry) => {
                if let Retry::Compacting(compacting) = *retry {
                    self.close_compaction(work, &compacting);
                }
            }
            Phase::AwaitingStep => {}
        }
        work.set_status(|facts| {
            facts.running = false;
            facts.waiting_approvals = 0;
            facts.waiting_answers = 0;
        });
        let (thread_id, turn_id) = (work.core.id.clone(), self.id.clone());
        let told = TurnSuspendedNotification { thread_id, turn_id, pending_operations };
        work.emit(ServerNotification::TurnSuspended(told));
    }

    /// Nobody is there to carry the next request, so the turn waits for whoever takes it up.
    pub(crate) fn wait_for_carrier(self, work: &mut Work<'_>, retry: &Retry) -> Option<Self> {
        if let Retry::Compacting(compacting) = retry {
            self.close_compaction(work, compacting);
        }
        self.suspend(work);
        None
    }

    /// What ran has an output, if only that it was stopped; what waits is asked about again under the same name.
    fn put_away(&self, work: &mut Work<'_>, open: &OpenCall) {
        let call_id = open.call.call_id.clone();
        if let Some(output) = &open.output {
            return self.answered(work, open, output.clone());
        }
        match open.runner {
            Runner::Client | Runner::Gate => work.effects.push(Effect::WithdrawQuestion { call_id }),
            Runner::Tool => {
                work.effects.push(Effect::CancelTool { call_id: call_id.clone() });
                match open.doing.as_ref().map(|doing| doing.stage) {
                    Some(Stage::Asked) => work.effects.push(Effect::WithdrawQuestion { call_id }),
                    Some(Stage::Begun) => {
                        self.stop_doing(work, open, StoppedBy::Departure);
                        let output = open.stopped_after(work.stamp.now_ms, StoppedBy::Departure);
                        self.answered(work, open, output);
                    }
                    // It had done nothing that has to be known, so it is made again.
                    Some(Stage::Over) | None => {}
                }
            }
            Runner::Waiting | Runner::Nobody => {}
        }
    }

    fn answered(&self, work: &mut Work<'_>, open: &OpenCall, output: protocol::FunctionCallOutputBody) {
        let output = truncate_output(output, self.step.model.truncation);
        work.remember(&self.id, open.answer(output));
    }
}

impl OpenCall {
    fn waits_for_client(&self) -> bool {
        match self.runner {
            Runner::Client | Runner::Gate => true,
            Runner::Tool => self.doing.as_ref().is_some_and(|doing| doing.stage == Stage::Asked),
            Runner::Waiting | Runner::Nobody => false,
        }
    }
}
