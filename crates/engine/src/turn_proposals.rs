//! What a turn does with what its tools want to do: show it, have it decided, put it into the record, let it happen.

use protocol::{FunctionCallOutputBody, PermissionGrantScope, PermissionsRequestApprovalResponse, TurnId};

use crate::calls::{Doing, OpenCall, Runner, Stage, StoppedBy};
use crate::context::{SavedPrefix, alone};
use crate::decision::{Outcome, decided_before, decision_of, weigh};
use crate::doing::{Ended, TakenUp, ended_item, stop_waiting};
use crate::grants::union;
use crate::operation::operation_id;
use crate::turn::Turn;
use crate::turn_calls::output_of;
use crate::work::Work;
use crate::{Effect, Proposal, Question, Reply, Verdict};

/// What the model reads of a call that the host would not have made.
pub(crate) const REFUSED: &str =
    "the call was refused; do not try it again, go on without it or say what stands in the way";

impl Turn {
    pub(crate) fn on_proposed(
        mut self,
        work: &mut Work<'_>,
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
        let seen = open.doing.as_ref().is_some_and(|doing| doing.item_open);
        if let Some(before) = &mut open.doing {
            let output = FunctionCallOutputBody::Text("tried again".to_owned());
            before.finish(work, &turn_id, call_id, &output, false);
        }
        let keys = &proposal.session_keys;
        let agreed = !keys.is_empty() && keys.iter().all(|key| work.core.agreed.contains(key));
        let mut doing = Box::new(Doing { proposal, stage: Stage::Asked, item_open: seen, attempt: 1 });
        let taken_up = doing.take_up(work, &id, earlier);
        if matches!(taken_up, TakenUp::Afresh) {
            doing.record_proposed(work, id, call_id, &tool, &tool_set);
        }
        let go = Outcome::Go { session: false, amendment: None };
        let outcome = match taken_up {
            TakenUp::Decided(decision) => decided_before(decision, doing.proposal.question.as_deref()),
            TakenUp::Again => go,
            TakenUp::Afresh | TakenUp::Waiting if agreed || doing.proposal.question.is_none() => go,
            TakenUp::Afresh | TakenUp::Waiting => {
                doing.ask(work, &turn_id, call_id);
                open.doing = Some(doing);
                return Some(self);
            }
        };
        let agreed = agreed || doing.proposal.question.is_some();
        self.carry(work, call_id, doing, Decided { outcome, agreed, was_asked: false })
    }

    /// The first answer counts. One that nobody waits for has no effect.
    pub(crate) fn on_answered(
        mut self,
        work: &mut Work<'_>,
        call_id: &str,
        reply: Result<Reply, String>,
    ) -> Option<Self> {
        let waiting = |open: &mut OpenCall| open.doing.take_if(|doing| doing.stage == Stage::Asked);
        let Some(doing) = self.call_of(call_id).and_then(waiting) else { return Some(self) };
        let Some(question) = doing.proposal.question.clone() else { return Some(self) };
        let outcome = match reply {
            Ok(reply) => weigh(&question, reply),
            Err(_) => Outcome::No(Ended::Failed),
        };
        let id = operation_id(work, &self.id, call_id, doing.proposal.number);
        work.record_decision(id, decision_of(&outcome), &doing.proposal.digest);
        self.carry(work, call_id, doing, Decided { outcome, agreed: true, was_asked: true })
    }

    /// Does what was decided.
    fn carry(
        mut self,
        work: &mut Work<'_>,
        call_id: &str,
        mut doing: Box<Doing>,
        decided: Decided,
    ) -> Option<Self> {
        let Decided { outcome, agreed, was_asked } = decided;
        let turn_id = self.id.clone();
        let is_gate = matches!(doing.proposal.question.as_deref(), Some(Question::Tool(_)));
        let question = doing.proposal.question.clone().filter(|_| was_asked);
        // An item that will not run has ended by the time the thread stops waiting.
        let ended = match &outcome {
            Outcome::Respond(_, success) => Some(Ended::of(*success)),
            Outcome::No(ended) => Some(*ended),
            Outcome::Stop => Some(Ended::Declined),
            Outcome::With(_) if !is_gate => Some(Ended::Declined),
            _ => None,
        };
        if let Some(ended) = ended {
            doing.end_item(work, &turn_id, ended);
        }
        if let Outcome::Go { amendment: Some(prefix), .. } = &outcome {
            work.remember(&turn_id, alone(&SavedPrefix(prefix)));
            work.learn_prefix(&turn_id, prefix);
        }
        if let Some(question) = &question {
            stop_waiting(work, question);
        }
        let stops = matches!(outcome, Outcome::Stop);
        match outcome {
            Outcome::Go { session, amendment } => {
                if session {
                    work.core.agreed.extend(doing.proposal.session_keys.iter().cloned());
                }
                doing.begin(work, &turn_id, call_id);
                match is_gate {
                    true => self.open_gate(work, call_id, None),
                    false => doing.decide(work, call_id, Verdict::Run { agreed, amendment }),
                }
            }
            Outcome::With(arguments) if is_gate => {
                doing.begin(work, &turn_id, call_id);
                self.open_gate(work, call_id, Some(&arguments));
            }
            Outcome::Instead(command) => {
                doing.stage = Stage::Over;
                doing.decide(work, call_id, Verdict::Instead { command });
            }
            Outcome::Patch(input) => {
                doing.stage = Stage::Over;
                doing.decide(work, call_id, Verdict::Patch { input });
            }
            Outcome::Tell(verdict) => {
                self.grant(work, &verdict);
                doing.stage = Stage::Over;
                doing.decide(work, call_id, verdict);
            }
            Outcome::Respond(content, _) => {
                work.effects.push(Effect::CancelTool { call_id: call_id.to_owned() });
                return self.answer_call(work, call_id, output_of(content));
            }
            Outcome::No(_) | Outcome::With(_) if is_gate => {
                return self.answer_call(work, call_id, FunctionCallOutputBody::Text(REFUSED.to_owned()));
            }
            Outcome::No(_) | Outcome::With(_) => doing.decide(work, call_id, Verdict::Declined),
            Outcome::Stop => {}
        }
        if let Some(open) = self.call_of(call_id) {
            open.doing = Some(doing);
        }
        if stops { self.interrupt(work) } else { Some(self) }
    }

    /// What a client granted holds from now on, for the turn or for longer.
    fn grant(&mut self, work: &mut Work<'_>, verdict: &Verdict) {
        let Verdict::Permissions(PermissionsRequestApprovalResponse { permissions, scope }) = verdict else {
            return;
        };
        match scope {
            PermissionGrantScope::Turn => self.grants = union(&self.grants, permissions),
            PermissionGrantScope::Session => work.core.grants = union(&work.core.grants, permissions),
        }
    }

    /// A call has its output without having been made.
    fn answer_call(
        mut self,
        work: &mut Work<'_>,
        call_id: &str,
        output: FunctionCallOutputBody,
    ) -> Option<Self> {
        if let Some(open) = self.call_of(call_id) {
            (open.output, open.doing) = (Some(output), None);
        }
        self.start_next(work);
        self.advance(work)
    }

    /// Nobody waits for this call any more: its question is withdrawn, its item ends.
    pub(crate) fn stop_doing(&self, work: &mut Work<'_>, call: &OpenCall, by: StoppedBy) {
        let Some(doing) = &call.doing else { return };
        let (mut doing, call_id) = (doing.clone(), &call.call.call_id);
        match doing.stage {
            Stage::Asked => {
                doing.withdraw(work, &self.id, call_id, "the turn was stopped");
                doing.end_item(work, &self.id, Ended::Declined);
            }
            Stage::Begun => {
                let output = call.stopped_after(work.stamp.now_ms, by);
                doing.finish(work, &self.id, call_id, &output, false);
                if !doing.proposal.outlives {
                    doing.end_item(work, &self.id, Ended::Failed);
                }
            }
            Stage::Over => {}
        }
    }
}

struct Decided {
    outcome: Outcome,
    /// A client said yes to this very proposal, now or for the session.
    agreed: bool,
    /// The thread shows that it waits for a client.
    was_asked: bool,
}

/// Nobody waits for this call any more. An item that began with an earlier proposal and may outlive its call ends here,
/// because nothing else will end it.
pub(crate) fn refuse_late(work: &mut Work<'_>, turn_id: &TurnId, call_id: String, proposal: Proposal) {
    let Proposal { number, outlives, item, .. } = proposal;
    if let (true, true, Some(item)) = (outlives, number > 0, item) {
        work.item_completed(turn_id, ended_item(*item, Ended::Failed));
    }
    work.effects.push(Effect::Decide { call_id, number, verdict: Verdict::Declined });
}
