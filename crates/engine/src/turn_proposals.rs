//! What a turn does with what its tools want to do: show it, have it decided, put it into the record, let it happen.

use protocol::{
    CommandExecutionApprovalDecision as CommandDecision, CommandExecutionSource, CommandExecutionStatus,
    DecisionScope, DynamicToolCallOutputContentItem, FileChangeApprovalDecision as PatchDecision,
    FunctionCallOutputBody, FunctionCallOutputContentItem, ItemId, OperationDecision, OperationId,
    OperationRecord, PatchApplyStatus, PermissionsRequestApprovalResponse, RolloutRecord, ThreadItem, TurnId,
};

use crate::calls::{Doing, OpenCall, Runner, Stage};
use crate::context::{SavedPrefix, alone};
use crate::grants::{intersection, union};
use crate::turn::Turn;
use crate::work::Work;
use crate::{Effect, Proposal, Question, Reply, Verdict};

/// How an item ends whose tool does not say so itself.
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

/// What a client's answer comes to.
enum Outcome {
    Go {
        session: bool,
        amendment: Option<Vec<String>>,
    },
    Tell(Verdict),
    No(Ended),
    /// No, and the turn ends.
    Stop,
}

impl Turn {
    pub(crate) fn on_proposed(&mut self, work: &mut Work<'_>, call_id: &str, proposal: Proposal) {
        let turn_id = self.id.clone();
        let Some(open) = self.open_call(call_id, Runner::Tool) else {
            return refuse_late(work, &turn_id, call_id.to_owned(), proposal);
        };
        let tool = open.call.name.clone();
        let seen = open.doing.as_ref().is_some_and(|doing| doing.item_open);
        if let Some(before) = &mut open.doing {
            let output = FunctionCallOutputBody::Text("tried again".to_owned());
            before.finish(work, &turn_id, call_id, &output, false);
        }
        let keys = &proposal.session_keys;
        let agreed = !keys.is_empty() && keys.iter().all(|key| work.core.agreed.contains(key));
        let mut doing = Box::new(Doing { proposal, stage: Stage::Asked, item_open: seen });
        doing.record_proposed(work, &turn_id, call_id, tool);
        match doing.proposal.question.clone() {
            Some(question) if !agreed => {
                doing.show(work, &turn_id);
                let is_approval = question.is_approval();
                work.set_status(|facts| match is_approval {
                    true => facts.waiting_approvals += 1,
                    false => facts.waiting_answers += 1,
                });
                let question = doing.addressed(work, &turn_id, call_id, *question);
                let question = Box::new(question);
                work.effects.push(Effect::AskClient { call_id: call_id.to_owned(), question });
            }
            _ => doing.begin(work, &turn_id, call_id, Verdict::Run { agreed, amendment: None }),
        }
        open.doing = Some(doing);
    }

    /// The first answer counts. One that nobody waits for has no effect.
    pub(crate) fn on_answered(
        mut self,
        work: &mut Work<'_>,
        call_id: &str,
        reply: Result<Reply, String>,
    ) -> Option<Self> {
        let turn_id = self.id.clone();
        let Some(open) = self.open_call(call_id, Runner::Tool) else { return Some(self) };
        let Some(mut doing) = open.doing.take_if(|doing| doing.stage == Stage::Asked) else {
            return Some(self);
        };
        let Some(question) = doing.proposal.question.clone() else { return Some(self) };
        let outcome = match reply {
            Ok(reply) => self.weigh(work, &question, reply),
            Err(_) => Outcome::No(Ended::Failed),
        };
        doing.record_decided(work, &turn_id, call_id, &outcome);
        let stops = matches!(outcome, Outcome::Stop);
        match outcome {
            Outcome::Go { session, amendment } => {
                if session {
                    work.core.agreed.extend(doing.proposal.session_keys.iter().cloned());
                }
                if let Some(prefix) = &amendment {
                    work.remember(&turn_id, alone(&SavedPrefix(prefix)));
                }
                stop_waiting(work, &question);
                doing.begin(work, &turn_id, call_id, Verdict::Run { agreed: true, amendment });
            }
            Outcome::Tell(verdict) => {
                stop_waiting(work, &question);
                doing.stage = Stage::Over;
                doing.decide(work, call_id, verdict);
            }
            Outcome::No(ended) => {
                doing.end_item(work, &turn_id, ended);
                stop_waiting(work, &question);
                doing.decide(work, call_id, Verdict::Declined);
            }
            Outcome::Stop => {
                doing.end_item(work, &turn_id, Ended::Declined);
                stop_waiting(work, &question);
            }
        }
        if let Some(open) = self.open_call(call_id, Runner::Tool) {
            open.doing = Some(doing);
        }
        if stops { self.interrupt(work) } else { Some(self) }
    }

    /// A reply of another kind than the question, or one this release cannot carry out, is a no.
    fn weigh(&mut self, work: &mut Work<'_>, question: &Question, reply: Reply) -> Outcome {
        let go = |session| Outcome::Go { session, amendment: None };
        match (question, reply) {
            (Question::Command(_), Reply::Command(decision)) => match decision {
                CommandDecision::Accept => go(false),
                CommandDecision::AcceptForSession => go(true),
                CommandDecision::AcceptWithExecpolicyAmendment { execpolicy_amendment } => Outcome::Go {
                    session: false,
                    amendment: Some(execpolicy_amendment).filter(|prefix| !prefix.is_empty()),
                },
                CommandDecision::Cancel => Outcome::Stop,
                _ => Outcome::No(Ended::Declined),
            },
            (Question::FileChange(_), Reply::FileChange(decision)) => match decision {
                PatchDecision::Accept => go(false),
                PatchDecision::AcceptForSession => go(true),
                PatchDecision::Cancel => Outcome::Stop,
                _ => Outcome::No(Ended::Declined),
            },
            (Question::Permissions(asked), Reply::Permissions(given)) => {
                let PermissionsRequestApprovalResponse { permissions, scope } = given;
                let permissions = intersection(&asked.permissions, &permissions);
                match scope {
                    protocol::PermissionGrantScope::Turn => self.grants = union(&self.grants, &permissions),
                    protocol::PermissionGrantScope::Session => {
                        work.core.grants = union(&work.core.grants, &permissions);
                    }
                }
                let given = PermissionsRequestApprovalResponse { permissions, scope };
                Outcome::Tell(Verdict::Permissions(given))
            }
            (Question::UserInput(_), Reply::UserInput(answers)) => Outcome::Tell(Verdict::UserInput(answers)),
            _ => Outcome::No(Ended::Declined),
        }
    }

    /// Nobody waits for this call any more: its question is withdrawn, its item ends.
    pub(crate) fn stop_doing(&self, work: &mut Work<'_>, call: &OpenCall) {
        let Some(doing) = &call.doing else { return };
        let (mut doing, call_id) = (doing.clone(), &call.call.call_id);
        match doing.stage {
            Stage::Asked => {
                doing.withdraw(work, &self.id, call_id, "the turn was stopped");
                doing.end_item(work, &self.id, Ended::Declined);
            }
            Stage::Begun => {
                let output = call.aborted_after(work.stamp.now_ms);
                doing.finish(work, &self.id, call_id, &output, false);
                if !doing.proposal.outlives {
                    doing.end_item(work, &self.id, Ended::Failed);
                }
            }
            Stage::Over => {}
        }
    }
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

fn stop_waiting(work: &mut Work<'_>, question: &Question) {
    let is_approval = question.is_approval();
    work.set_status(|facts| {
        let count = if is_approval { &mut facts.waiting_approvals } else { &mut facts.waiting_answers };
        *count = count.saturating_sub(1);
    });
}

impl Doing {
    fn operation_id(&self, work: &Work<'_>, turn_id: &TurnId, call_id: &str) -> OperationId {
        let id = format!("{}:{turn_id}:{call_id}", work.core.id);
        OperationId::new(match self.proposal.number {
            0 => id,
            number => format!("{id}:{number}"),
        })
    }

    fn record_proposed(&self, work: &mut Work<'_>, turn_id: &TurnId, call_id: &str, tool: String) {
        let Proposal { kind, effects, arguments, digest, question, .. } = &self.proposal;
        let reason = match question.as_deref() {
            Some(Question::Command(asked)) => asked.reason.clone(),
            Some(Question::FileChange(asked)) => asked.reason.clone(),
            Some(Question::Permissions(asked)) => asked.reason.clone(),
            _ => None,
        };
        let operation = OperationRecord::Proposed {
            operation_id: self.operation_id(work, turn_id, call_id),
            kind: kind.clone(),
            tool,
            namespace: None,
            item_id: ItemId::new(call_id),
            agent_path: vec!["root".to_owned()],
            arguments: arguments.clone(),
            arguments_digest: digest.clone(),
            effects: *effects,
            available_decisions: Vec::new(),
            reason,
            tool_set_digest: None,
            agent_digest: None,
            created_at_ms: work.stamp.now_ms,
        };
        work.record(RolloutRecord::Operation { operation });
    }

    fn record_decided(&self, work: &mut Work<'_>, turn_id: &TurnId, call_id: &str, outcome: &Outcome) {
        let operation_id = self.operation_id(work, turn_id, call_id);
        let scope = |session: bool| Some(if session { DecisionScope::Session } else { DecisionScope::Call });
        let decision = match outcome {
            Outcome::Go { session, .. } => OperationDecision::Approve { scope: scope(*session) },
            Outcome::Tell(_) => OperationDecision::Approve { scope: None },
            Outcome::No(_) => OperationDecision::Reject { message: None, end_turn: false },
            Outcome::Stop => OperationDecision::Reject { message: None, end_turn: true },
        };
        let (arguments_digest, decided_at_ms) = (self.proposal.digest.clone(), work.stamp.now_ms);
        let id = operation_id.clone();
        let operation = OperationRecord::Decided {
            operation_id: id,
            decision,
            attempt: None,
            by: None,
            arguments_digest,
            decided_at_ms,
        };
        work.record(RolloutRecord::Operation { operation });
        if !matches!(outcome, Outcome::Go { .. }) {
            // Nothing is left to do, so a restart has nothing to take up.
            let operation = OperationRecord::Withdrawn { operation_id, reason: Some("decided".to_owned()) };
            work.record(RolloutRecord::Operation { operation });
        }
    }

    /// In the record before the effect: what began and never ended is known to be uncertain.
    fn begin(&mut self, work: &mut Work<'_>, turn_id: &TurnId, call_id: &str, verdict: Verdict) {
        let operation_id = self.operation_id(work, turn_id, call_id);
        let executor = "runtime".to_owned();
        let operation = OperationRecord::Started { operation_id, attempt: 1, executor, epoch: None };
        work.record(RolloutRecord::Operation { operation });
        if let Some(item) = &self.proposal.item {
            work.record(RolloutRecord::ThreadItem { turn_id: turn_id.clone(), item: (**item).clone() });
        }
        self.show(work, turn_id);
        self.stage = Stage::Begun;
        self.decide(work, call_id, verdict);
    }

    /// The question, if one is open, needs no answer any more.
    pub(crate) fn withdraw(&mut self, work: &mut Work<'_>, turn_id: &TurnId, call_id: &str, reason: &str) {
        if self.stage != Stage::Asked {
            return;
        }
        self.stage = Stage::Over;
        let operation_id = self.operation_id(work, turn_id, call_id);
        let operation = OperationRecord::Withdrawn { operation_id, reason: Some(reason.to_owned()) };
        work.record(RolloutRecord::Operation { operation });
        work.effects.push(Effect::WithdrawQuestion { call_id: call_id.to_owned() });
    }

    /// As `withdraw`, while the turn goes on.
    pub(crate) fn give_up(&mut self, work: &mut Work<'_>, turn_id: &TurnId, call_id: &str) {
        let was_asked = self.stage == Stage::Asked;
        self.withdraw(work, turn_id, call_id, "the tool gave up");
        if let (true, Some(question)) = (was_asked, &self.proposal.question) {
            stop_waiting(work, question);
        }
    }

    fn decide(&self, work: &mut Work<'_>, call_id: &str, verdict: Verdict) {
        let (call_id, number) = (call_id.to_owned(), self.proposal.number);
        work.effects.push(Effect::Decide { call_id, number, verdict });
    }

    /// Clients see what will run before they are asked about it.
    fn show(&mut self, work: &mut Work<'_>, turn_id: &TurnId) {
        if let (Some(item), false) = (&self.proposal.item, self.item_open) {
            work.item_started(turn_id, (**item).clone());
            self.item_open = true;
        }
    }

    pub(crate) fn finish(
        &mut self,
        work: &mut Work<'_>,
        turn_id: &TurnId,
        call_id: &str,
        output: &FunctionCallOutputBody,
        success: bool,
    ) {
        if self.stage != Stage::Begun {
            return;
        }
        self.stage = Stage::Over;
        let operation_id = self.operation_id(work, turn_id, call_id);
        let output = texts_of(output);
        let operation =
            OperationRecord::Finished { operation_id, attempt: 1, success, output, output_digest: None };
        work.record(RolloutRecord::Operation { operation });
    }

    pub(crate) fn end_item(&mut self, work: &mut Work<'_>, turn_id: &TurnId, ended: Ended) {
        self.stage = if self.stage == Stage::Asked { Stage::Over } else { self.stage };
        if let (Some(item), true) = (self.proposal.item.clone(), self.item_open) {
            self.item_open = false;
            work.item_completed(turn_id, ended_item(*item, ended));
        }
    }

    /// Whose question it is.
    fn addressed(&self, work: &Work<'_>, turn: &TurnId, call_id: &str, question: Question) -> Question {
        let (thread, now, item) = (work.core.id.clone(), work.stamp.now_ms, ItemId::new(call_id));
        match question {
            Question::Command(mut asked) => {
                (asked.thread_id, asked.turn_id, asked.item_id) = (thread, turn.clone(), item);
                asked.started_at_ms = now;
                Question::Command(asked)
            }
            Question::FileChange(mut asked) => {
                (asked.thread_id, asked.turn_id, asked.item_id) = (thread, turn.clone(), item);
                asked.started_at_ms = now;
                Question::FileChange(asked)
            }
            Question::Permissions(mut asked) => {
                (asked.thread_id, asked.turn_id, asked.item_id) = (thread, turn.clone(), item);
                asked.started_at_ms = now;
                Question::Permissions(asked)
            }
            Question::UserInput(mut asked) => {
                (asked.thread_id, asked.turn_id, asked.item_id) = (thread, turn.clone(), item);
                Question::UserInput(asked)
            }
            Question::DynamicTool(asked) => Question::DynamicTool(asked),
        }
    }
}

/// The record keeps the words; pictures are in the item.
fn texts_of(output: &FunctionCallOutputBody) -> Vec<DynamicToolCallOutputContentItem> {
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

fn ended_item(mut item: ThreadItem, ended: Ended) -> ThreadItem {
    match &mut item {
        ThreadItem::CommandExecution { status, source, process_id, .. } => {
            *status = match ended {
                Ended::Completed => CommandExecutionStatus::Completed,
                Ended::Failed => CommandExecutionStatus::Failed,
                Ended::Declined => CommandExecutionStatus::Declined,
            };
            // No process came of it.
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
        _ => {}
    }
    item
}
