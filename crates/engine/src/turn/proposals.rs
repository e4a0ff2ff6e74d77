//! Proposals of a turn's tools: shown, decided, recorded, carried out.

use protocol::{
    FunctionCallOutputBody, OperationDecision, PermissionGrantScope, PermissionsRequestApprovalResponse,
    TurnId,
};

use crate::calls::{ActiveProposal, OpenCall, ProposalStage, Runner, StoppedBy};
use crate::decision::{ProposalDecision, checked, decision_in, is_for_tool};
use crate::grants::union;
use crate::turn::TurnMachine;
use crate::turn::active_proposal::{Ended, ResumedAs, ended_item, stop_waiting};
use crate::turn::calls::output_of;
use crate::turn::operation::operation_id;
use crate::turn::work::Transition;
use crate::{Effect, Proposal, Question, Reply};

/// The output of a call that the host refused.
pub(crate) const REFUSED: &str =
    "the call was refused; do not try it again, go on without it or say what stands in the way";

impl TurnMachine {
    pub(crate) fn on_proposed(
        mut self,
        work: &mut Transition<'_>,
        call_id: &str,
        proposal: Proposal,
    ) -> Option<Self> {
        let (turn_id, tool_set) = (self.id.clone(), self.step.tool_set_digest.clone());
        let id = operation_id(work, &turn_id, call_id, proposal.number);
        let earlier = self.earlier.take(&id);
        let Some(open) = self.open_call(call_id, Runner::Tool) else {
            refuse_late(work, &turn_id, call_id.to_owned(), proposal);
            return Some(self);
        };
        let tool = open.call.name.clone();
        if let (Some(active), Some(Question::Elicitation(_))) =
            (&mut open.active, proposal.question.as_deref())
            && active.stage == ProposalStage::Begun
        {
            active.ask_beside(work, &turn_id, call_id, proposal);
            return Some(self);
        }
        let seen = open.active.as_ref().is_some_and(|active| active.item_open);
        if let Some(before) = &mut open.active {
            let output = FunctionCallOutputBody::Text("tried again".to_owned());
            before.finish(work, &turn_id, call_id, &output, false);
            before.drop_assessment(work, &turn_id, call_id);
        }
        let keys = &proposal.session_keys;
        let agreed = !keys.is_empty() && keys.iter().all(|key| work.core.agreed.contains(key));
        let mut active = Box::new(ActiveProposal {
            proposal,
            stage: ProposalStage::Asked,
            item_open: seen,
            attempt: 1,
            beside: None,
            assessment: None,
        });
        let resumed_as = active.resume_as(work, &id, earlier);
        if matches!(resumed_as, ResumedAs::Afresh) {
            active.record_proposed(work, id, call_id, &tool, &tool_set);
        }
        let approve = OperationDecision::Approve { scope: None, execpolicy_amendment: None };
        let decision = match resumed_as {
            ResumedAs::Decided(decision) => checked(active.proposal.question.as_deref(), decision),
            ResumedAs::Again => approve,
            ResumedAs::Afresh | ResumedAs::Waiting if agreed || active.proposal.question.is_none() => approve,
            ResumedAs::Afresh | ResumedAs::Waiting => {
                self.have_decided(work, call_id, &mut active);
                if let Some(open) = self.call_of(call_id) {
                    open.active = Some(active);
                }
                return Some(self);
            }
        };
        let by_client = agreed || active.proposal.question.is_some();
        let decided = Decided { decision, by_client, was_asked: false, rejected_as: Ended::Declined };
        self.carry_out(work, call_id, active, decided)
    }

    /// Asks the automatic reviewer or a client.
    fn have_decided(&self, work: &mut Transition<'_>, call_id: &str, active: &mut ActiveProposal) {
        match self.is_assessed(work, active) {
            true => self.begin_assessment(work, call_id, active),
            false => active.ask(work, &self.id, call_id),
        }
    }

    /// The first answer counts. Later answers are ignored.
    pub(crate) fn on_answered(
        mut self,
        work: &mut Transition<'_>,
        call_id: &str,
        mut reply: Result<Reply, String>,
    ) -> Option<Self> {
        let origin = match &mut reply {
            Ok(reply) => reply.take_origin(),
            Err(_) => Some(work.policy("unanswered")),
        };
        if let Some(active) = self.call_of(call_id).and_then(|open| open.active.as_mut())
            && let Some(Proposal { number, question: Some(question), .. }) =
                active.beside.take().map(|beside| *beside)
        {
            stop_waiting(work, &question);
            let decision = match reply {
                Ok(reply) => ProposalDecision { decision: decision_in(&question, reply), by_client: true },
                Err(_) => ProposalDecision::declined(),
            };
            work.effects.push(Effect::Decide { call_id: call_id.to_owned(), number, decision });
            return Some(self);
        }
        let waiting = |open: &mut OpenCall| {
            open.active.take_if(|active| active.stage == ProposalStage::Asked && active.assessment.is_none())
        };
        let Some(active) = self.call_of(call_id).and_then(waiting) else { return Some(self) };
        let Some(question) = active.proposal.question.clone() else { return Some(self) };
        let (decision, rejected_as) = match reply {
            Ok(reply) => (decision_in(&question, reply), Ended::Declined),
            Err(_) => (OperationDecision::Reject { message: None, end_turn: false }, Ended::Failed),
        };
        let id = operation_id(work, &self.id, call_id, active.proposal.number);
        work.record_decision(id, decision.clone(), origin, &active.proposal);
        let decided = Decided { decision, by_client: true, was_asked: true, rejected_as };
        self.carry_out(work, call_id, active, decided)
    }

    /// Carries out a decision.
    pub(crate) fn carry_out(
        mut self,
        work: &mut Transition<'_>,
        call_id: &str,
        mut active: Box<ActiveProposal>,
        decided: Decided,
    ) -> Option<Self> {
        let Decided { decision, by_client, was_asked, rejected_as } = decided;
        let turn_id = self.id.clone();
        let question = active.proposal.question.clone();
        let is_gate = matches!(question.as_deref(), Some(Question::Tool(_)));
        let is_for_tool = is_for_tool(question.as_deref(), &decision);
        // The item of a rejected operation ends before the thread stops waiting.
        match &decision {
            OperationDecision::Respond { success, .. } if !is_for_tool => {
                active.end_item(work, &turn_id, Ended::of(*success));
            }
            OperationDecision::Reject { .. } => active.end_item(work, &turn_id, rejected_as),
            _ => {}
        }
        if let OperationDecision::Approve { execpolicy_amendment: Some(prefix), .. } = &decision {
            work.notify_model_of_rule(&turn_id, &self.step, prefix);
            work.effects.push(Effect::SaveRule { prefix: prefix.clone() });
        }
        if let (true, Some(question)) = (was_asked, &question) {
            stop_waiting(work, question);
        }
        let ends_turn = matches!(decision, OperationDecision::Reject { end_turn: true, .. });
        match decision {
            OperationDecision::Approve { .. } => {
                if decision.is_for_session() {
                    work.core.agreed.extend(active.proposal.session_keys.iter().cloned());
                }
                active.begin(work, &turn_id, call_id);
                match is_gate {
                    true => self.open_gate(work, call_id, None),
                    false => active.decide(work, call_id, ProposalDecision { decision, by_client }),
                }
            }
            OperationDecision::Replace { arguments: Some(arguments), .. } if is_gate => {
                active.begin(work, &turn_id, call_id);
                self.open_gate(work, call_id, Some(&arguments));
            }
            OperationDecision::Respond { content_items, .. } if !is_for_tool => {
                work.effects.push(Effect::CancelTool { call_id: call_id.to_owned() });
                return self.answer_call(work, call_id, output_of(content_items));
            }
            OperationDecision::Reject { end_turn: true, .. } => {}
            OperationDecision::Reject { .. } if is_gate => {
                return self.answer_call(work, call_id, FunctionCallOutputBody::Text(REFUSED.to_owned()));
            }
            OperationDecision::Reject { message: Some(message), .. } => {
                work.effects.push(Effect::CancelTool { call_id: call_id.to_owned() });
                return self.answer_call(work, call_id, FunctionCallOutputBody::Text(message));
            }
            OperationDecision::Reject { .. } => active.decide(work, call_id, ProposalDecision::declined()),
            decision => {
                let decided = ProposalDecision { decision, by_client };
                if let (Some(Question::Permissions(_)), Some(granted)) =
                    (question.as_deref(), decided.permissions())
                {
                    self.grant(work, &granted);
                }
                active.stage = ProposalStage::Over;
                active.decide(work, call_id, decided);
            }
        }
        if let Some(open) = self.call_of(call_id) {
            open.active = Some(active);
        }
        if ends_turn { self.interrupt(work) } else { Some(self) }
    }

    /// Adds granted permissions, for the turn or for as long as the thread is loaded.
    fn grant(&mut self, work: &mut Transition<'_>, granted: &PermissionsRequestApprovalResponse) {
        let PermissionsRequestApprovalResponse { permissions, scope, .. } = granted;
        match scope {
            PermissionGrantScope::Turn => self.grants = union(&self.grants, permissions),
            PermissionGrantScope::Session => work.core.grants = union(&work.core.grants, permissions),
        }
    }

    /// Sets a call's output without running it.
    fn answer_call(
        mut self,
        work: &mut Transition<'_>,
        call_id: &str,
        output: FunctionCallOutputBody,
    ) -> Option<Self> {
        if let Some(open) = self.call_of(call_id) {
            (open.output, open.active) = (Some(output), None);
        }
        self.stop_nested(work, Some(call_id), StoppedBy::User);
        self.answer_nested(work);
        self.start_next(work);
        self.advance(work)
    }

    /// Stops a proposal: withdraws its question, ends its item.
    pub(crate) fn stop_proposal(&self, work: &mut Transition<'_>, call: &OpenCall, by: StoppedBy) {
        let Some(active) = &call.active else { return };
        let (mut active, call_id) = (active.clone(), &call.call.call_id);
        match active.stage {
            ProposalStage::Asked => {
                active.withdraw(work, &self.id, call_id, "the turn was stopped");
                active.end_item(work, &self.id, Ended::Declined);
            }
            ProposalStage::Begun if !self.has_started(work, call) => {
                // Clients saw the item start. The record has no start of it, so it gets no end there.
                if let (Some(item), true, false) =
                    (active.proposal.item, active.item_open, active.proposal.outlives)
                {
                    work.notify_completed(&self.id, ended_item(*item, Ended::Failed));
                }
            }
            ProposalStage::Begun => {
                active.drop_beside(work, call_id);
                let output = call.stopped_after(work.stamp.now_ms, by);
                active.finish(work, &self.id, call_id, &output, false);
                if !active.proposal.outlives {
                    active.end_item(work, &self.id, Ended::Failed);
                }
            }
            ProposalStage::Over => {}
        }
    }
}

pub(crate) struct Decided {
    pub(crate) decision: OperationDecision,
    /// A client, or the automatic reviewer, approved this proposal, now or for the session.
    pub(crate) by_client: bool,
    /// The thread's status says that it waits for a client.
    pub(crate) was_asked: bool,
    /// How the item of a rejected proposal ends.
    pub(crate) rejected_as: Ended,
}

/// Refuses a proposal that comes after its call ended. An item from an earlier proposal that may outlive the call ends
/// here, because nothing else would end it.
pub(crate) fn refuse_late(work: &mut Transition<'_>, turn_id: &TurnId, call_id: String, proposal: Proposal) {
    let Proposal { number, outlives, item, .. } = proposal;
    if let (true, true, Some(item)) = (outlives, number > 0, item) {
        work.item_completed(turn_id, ended_item(*item, Ended::Failed));
    }
    work.effects.push(Effect::Decide { call_id, number, decision: ProposalDecision::declined() });
}
