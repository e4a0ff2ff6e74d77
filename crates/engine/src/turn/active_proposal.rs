//! The life of one proposal of a call: recorded, decided, started, ended.

use protocol::{
    CollabAgentToolCallStatus, CommandExecutionSource, CommandExecutionStatus,
    DynamicToolCallOutputContentItem, FunctionCallOutputBody, FunctionCallOutputContentItem, ItemId,
    McpToolCallStatus, OperationDecision, OperationId, PatchApplyStatus, RolloutRecord, ThreadItem, TurnId,
};

use crate::calls::{ActiveProposal, ProposalStage};
use crate::decision::{offer_to_host, reason_and_decisions};
use crate::turn::earlier::{Earlier, EarlierState};
use crate::turn::operation::{Proposed, operation_id};
use crate::turn::work::Transition;
use crate::{Effect, Proposal, ProposalDecision, Question};

/// How an item ends if its tool does not report an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    Completed,
    Failed,
    Declined,
}

impl Ended {
    pub(crate) fn of(success: bool) -> Self {
        if success { Self::Completed } else { Self::Failed }
    }
}

/// How a proposal relates to one from before a restart.
pub(crate) enum ResumedAs {
    /// There was none, or the operation has changed.
    Afresh,
    /// It still waits for its decision.
    Waiting,
    Decided(OperationDecision),
    /// Its outcome was lost, and a retry was decided.
    Again,
}

impl ActiveProposal {
    pub(crate) fn new(proposal: Proposal) -> Self {
        let (stage, item_open, attempt) = (ProposalStage::Asked, false, 1);
        Self { proposal, stage, item_open, attempt, beside: None, assessment: None }
    }

    pub(crate) fn id(&self, work: &Transition<'_>, turn_id: &TurnId, call_id: &str) -> OperationId {
        operation_id(work, turn_id, call_id, self.proposal.number)
    }

    /// A decision is valid for exactly the operation it was made about.
    pub(crate) fn resume_as(
        &mut self,
        work: &mut Transition<'_>,
        id: &OperationId,
        earlier: Option<Earlier>,
    ) -> ResumedAs {
        match earlier {
            None => ResumedAs::Afresh,
            Some(earlier) if earlier.digest != self.proposal.digest && !earlier.is_settled() => {
                work.record_withdrawn(id.clone(), "what it would do has changed");
                ResumedAs::Afresh
            }
            Some(Earlier { state, .. }) => match state {
                EarlierState::Proposed => ResumedAs::Waiting,
                EarlierState::Decided(decision) => ResumedAs::Decided(decision),
                EarlierState::Again { attempt } => {
                    self.attempt = attempt + 1;
                    ResumedAs::Again
                }
                // The call was answered before it could propose again.
                EarlierState::Started { .. } | EarlierState::Finished { .. } => ResumedAs::Afresh,
            },
        }
    }

    pub(crate) fn record_proposed(
        &self,
        work: &mut Transition<'_>,
        operation_id: OperationId,
        call_id: &str,
        tool: &str,
        tool_set_digest: &str,
    ) {
        let Proposal { kind, effects, arguments, digest, question, session_keys, item, .. } = &self.proposal;
        let (reason, decisions) = question.as_deref().map_or((None, Vec::new()), |question| {
            reason_and_decisions(question, work.core.shows_operations)
        });
        work.propose(Proposed {
            operation_id,
            call_id,
            kind: kind.clone(),
            tool,
            arguments,
            digest,
            effects: *effects,
            decisions,
            reason,
            tool_set_digest,
            // No client is asked about the others, so none can approve them for the session.
            session_keys: if question.is_some() { session_keys } else { &[] },
            item: item.as_deref(),
        });
    }

    /// Clients see the operation before they are asked about it.
    pub(crate) fn ask(&mut self, work: &mut Transition<'_>, turn_id: &TurnId, call_id: &str) {
        let Some(question) = self.proposal.question.clone() else { return };
        self.show(work, turn_id);
        let is_approval = question.is_approval();
        work.set_status(|facts| match is_approval {
            true => facts.waiting_approvals += 1,
            false => facts.waiting_answers += 1,
        });
        let question = Box::new(self.addressed(work, turn_id, call_id, *question));
        work.effects.push(Effect::AskClient { call_id: call_id.to_owned(), question });
    }

    /// Asks a question for a running operation, which continues meanwhile. One question at a time.
    pub(crate) fn ask_beside(
        &mut self,
        work: &mut Transition<'_>,
        turn_id: &TurnId,
        call_id: &str,
        proposal: Proposal,
    ) {
        let mut asked = Self::new(proposal);
        if self.beside.is_some() {
            return asked.decide(work, call_id, ProposalDecision::declined());
        }
        asked.ask(work, turn_id, call_id);
        self.beside = Some(Box::new(asked.proposal));
    }

    /// Withdraws the question asked while the call runs.
    pub(crate) fn drop_beside(&mut self, work: &mut Transition<'_>, call_id: &str) -> Option<Box<Proposal>> {
        let beside = self.beside.take()?;
        work.effects.push(Effect::WithdrawQuestion { call_id: call_id.to_owned() });
        Some(beside)
    }

    /// Recorded before the effect: after a crash, an operation without an end has an unknown outcome.
    pub(crate) fn begin(&mut self, work: &mut Transition<'_>, turn_id: &TurnId, call_id: &str) {
        work.record_begun(self.id(work, turn_id, call_id), self.attempt);
        if let Some(item) = &self.proposal.item {
            work.record(RolloutRecord::ThreadItem { turn_id: turn_id.clone(), item: (**item).clone() });
        }
        self.show(work, turn_id);
        self.stage = ProposalStage::Begun;
    }

    /// Withdraws the open question, if there is one.
    pub(crate) fn withdraw(
        &mut self,
        work: &mut Transition<'_>,
        turn_id: &TurnId,
        call_id: &str,
        reason: &str,
    ) {
        if self.stage != ProposalStage::Asked {
            return;
        }
        self.stage = ProposalStage::Over;
        work.record_withdrawn(self.id(work, turn_id, call_id), reason);
        if self.assessment.is_some() {
            return self.drop_assessment(work, turn_id, call_id);
        }
        work.effects.push(Effect::WithdrawQuestion { call_id: call_id.to_owned() });
    }

    /// Like `withdraw`, while the turn continues.
    pub(crate) fn give_up(&mut self, work: &mut Transition<'_>, turn_id: &TurnId, call_id: &str) {
        if let Some(question) = self.drop_beside(work, call_id).and_then(|beside| beside.question) {
            stop_waiting(work, &question);
        }
        let was_asked = self.stage == ProposalStage::Asked && self.assessment.is_none();
        self.withdraw(work, turn_id, call_id, "the tool gave up");
        if let (true, Some(question)) = (was_asked, &self.proposal.question) {
            stop_waiting(work, question);
        }
    }

    pub(crate) fn decide(&self, work: &mut Transition<'_>, call_id: &str, decision: ProposalDecision) {
        let (call_id, number) = (call_id.to_owned(), self.proposal.number);
        work.effects.push(Effect::Decide { call_id, number, decision });
    }

    pub(crate) fn show(&mut self, work: &mut Transition<'_>, turn_id: &TurnId) {
        if let (Some(item), false) = (&self.proposal.item, self.item_open) {
            work.item_started(turn_id, (**item).clone());
            self.item_open = true;
        }
    }

    pub(crate) fn finish(
        &mut self,
        work: &mut Transition<'_>,
        turn_id: &TurnId,
        call_id: &str,
        output: &FunctionCallOutputBody,
        success: bool,
    ) {
        if self.stage != ProposalStage::Begun {
            return;
        }
        self.stage = ProposalStage::Over;
        work.record_finished(self.id(work, turn_id, call_id), self.attempt, success, texts_of(output));
    }

    pub(crate) fn end_item(&mut self, work: &mut Transition<'_>, turn_id: &TurnId, ended: Ended) {
        self.stage = if self.stage == ProposalStage::Asked { ProposalStage::Over } else { self.stage };
        if let (Some(item), true) = (self.proposal.item.clone(), self.item_open) {
            self.item_open = false;
            work.item_completed(turn_id, ended_item(*item, ended));
        }
    }

    /// Fills in thread, turn, item and operation.
    fn addressed(&self, work: &Transition<'_>, turn: &TurnId, call_id: &str, question: Question) -> Question {
        let (thread, now, item) = (work.core.id.clone(), work.stamp.now_ms, ItemId::new(call_id));
        let shown = work.core.shows_operations;
        let id = shown.then(|| self.id(work, turn, call_id));
        let digest = shown.then(|| self.proposal.digest.clone());
        match question {
            Question::Command(mut asked) => {
                (asked.thread_id, asked.turn_id, asked.item_id) = (thread, turn.clone(), item);
                asked.started_at_ms = now;
                (asked.operation_id, asked.arguments_digest) = (id, digest);
                if let (true, Some(decisions)) = (shown, &mut asked.available_decisions) {
                    offer_to_host(decisions, &self.proposal.arguments);
                }
                Question::Command(asked)
            }
            Question::FileChange(mut asked) => {
                (asked.thread_id, asked.turn_id, asked.item_id) = (thread, turn.clone(), item);
                asked.started_at_ms = now;
                (asked.operation_id, asked.arguments_digest) = (id, digest);
                Question::FileChange(asked)
            }
            Question::Permissions(mut asked) => {
                (asked.thread_id, asked.turn_id, asked.item_id) = (thread, turn.clone(), item);
                asked.started_at_ms = now;
                (asked.operation_id, asked.arguments_digest) = (id, digest);
                Question::Permissions(asked)
            }
            Question::UserInput(mut asked) => {
                (asked.thread_id, asked.turn_id, asked.item_id) = (thread, turn.clone(), item);
                (asked.operation_id, asked.arguments_digest) = (id, digest);
                Question::UserInput(asked)
            }
            Question::Elicitation(mut asked) => {
                (asked.thread_id, asked.turn_id) = (thread, Some(turn.clone()));
                (asked.operation_id, asked.arguments_digest) = (id, digest);
                Question::Elicitation(asked)
            }
            other => other,
        }
    }
}

/// The record stores text; images are in the item.
pub(crate) fn texts_of(output: &FunctionCallOutputBody) -> Vec<DynamicToolCallOutputContentItem> {
    let text = |text: &String| DynamicToolCallOutputContentItem::InputText { text: text.clone() };
    match output {
        FunctionCallOutputBody::Text(output) => vec![text(output)],
        FunctionCallOutputBody::Content(parts) => parts
            .iter()
            .filter_map(|part| match part {
                FunctionCallOutputContentItem::InputText { text: words } => Some(text(words)),
                FunctionCallOutputContentItem::InputImage { .. } => None,
            })
            .collect(),
    }
}

pub(crate) fn ended_item(mut item: ThreadItem, ended: Ended) -> ThreadItem {
    match &mut item {
        ThreadItem::CommandExecution { status, source, process_id, .. } => {
            *status = match ended {
                Ended::Completed => CommandExecutionStatus::Completed,
                Ended::Failed => CommandExecutionStatus::Failed,
                Ended::Declined => CommandExecutionStatus::Declined,
            };
            // The process never started.
            *process_id = None;
            if *source == CommandExecutionSource::UnifiedExecStartup {
                *source = CommandExecutionSource::Agent;
            }
        }
        ThreadItem::FileChange { status, .. } => {
            *status = match ended {
                Ended::Completed => PatchApplyStatus::Completed,
                Ended::Failed => PatchApplyStatus::Failed,
                Ended::Declined => PatchApplyStatus::Declined,
            };
        }
        ThreadItem::McpToolCall { status, .. } => {
            *status = match ended {
                Ended::Completed => McpToolCallStatus::Completed,
                Ended::Failed | Ended::Declined => McpToolCallStatus::Failed,
            };
        }
        ThreadItem::CollabAgentToolCall { status, .. } => {
            *status = match ended {
                Ended::Completed => CollabAgentToolCallStatus::Completed,
                Ended::Failed | Ended::Declined => CollabAgentToolCallStatus::Failed,
            };
        }
        _ => {}
    }
    item
}

/// The thread no longer waits for this answer.
pub(crate) fn stop_waiting(work: &mut Transition<'_>, question: &Question) {
    let is_approval = question.is_approval();
    work.set_status(|facts| {
        let count = if is_approval { &mut facts.waiting_approvals } else { &mut facts.waiting_answers };
        *count = count.saturating_sub(1);
    });
}
