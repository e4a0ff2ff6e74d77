//! What a turn does with what its tools want to do: show it, have it decided, put it into the record, let it happen.

use protocol::{
    CommandExecutionApprovalDecision as CommandDecision, CommandExecutionSource, CommandExecutionStatus,
    DecisionScope, DynamicToolCallOutputContentItem, FileChangeApprovalDecision as PatchDecision,
    FunctionCallOutputBody, FunctionCallOutputContentItem, ItemId, OperationDecision, OperationId,
    PatchApplyStatus, PermissionGrantScope, PermissionsRequestApprovalResponse, RolloutRecord, ThreadItem,
    ToolApprovalDecision as GateDecision, TurnId,
};
use serde_json::Value;

use crate::calls::{Doing, OpenCall, Runner, Stage};
use crate::context::{SavedPrefix, alone};
use crate::earlier::{Earlier, EarlierState};
use crate::grants::{intersection, union};
use crate::operation::{Proposed, operation_id};
use crate::turn::Turn;
use crate::turn_calls::output_of;
use crate::work::Work;
use crate::{Effect, Proposal, Question, Reply, Verdict};

/// What the model reads of a call that the host would not have made.
pub(crate) const REFUSED: &str =
    "the call was refused; do not try it again, go on without it or say what stands in the way";

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

/// What a decision comes to.
enum Outcome {
    Go {
        session: bool,
        amendment: Option<Vec<String>>,
    },
    /// Another command, which passes policy and sandbox first.
    Instead(Vec<String>),
    /// The same tool with other arguments.
    With(Value),
    /// Nothing is done, and this is the result.
    Respond(Vec<DynamicToolCallOutputContentItem>, bool),
    Tell(Verdict),
    No(Ended),
    /// No, and the turn ends.
    Stop,
}

/// How a proposal stands to what was proposed before a restart.
enum TakenUp {
    /// It was not, or what it would do has changed.
    Afresh,
    /// It waits for its decision still.
    Waiting,
    Decided(OperationDecision),
    /// Its outcome was lost, and it was decided to try again.
    Again,
}

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
            TakenUp::Decided(decision) => doing.decided_before(decision),
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

struct Decided {
    outcome: Outcome,
    /// A client said yes to this very proposal, now or for the session.
    agreed: bool,
    /// The thread shows that it waits for a client.
    was_asked: bool,
}

/// A reply of another kind than the question, or one this release cannot carry out, is a no.
fn weigh(question: &Question, reply: Reply) -> Outcome {
    let go = |session| Outcome::Go { session, amendment: None };
    match (question, reply) {
        (Question::Command(_), Reply::Command(decision)) => match decision {
            CommandDecision::Accept => go(false),
            CommandDecision::AcceptForSession => go(true),
            CommandDecision::AcceptWithExecpolicyAmendment { execpolicy_amendment } => Outcome::Go {
                session: false,
                amendment: Some(execpolicy_amendment).filter(|prefix| !prefix.is_empty()),
            },
            CommandDecision::AcceptWithCommandOverride { command } if !command.is_empty() => {
                Outcome::Instead(command)
            }
            CommandDecision::AcceptWithArguments { arguments } => {
                command_in(&arguments).map_or(Outcome::No(Ended::Declined), Outcome::Instead)
            }
            CommandDecision::Respond { content_items, success } => Outcome::Respond(content_items, success),
            CommandDecision::Cancel => Outcome::Stop,
            _ => Outcome::No(Ended::Declined),
        },
        (Question::FileChange(_), Reply::FileChange(decision)) => match decision {
            PatchDecision::Accept => go(false),
            PatchDecision::AcceptForSession => go(true),
            PatchDecision::Respond { content_items, success } => Outcome::Respond(content_items, success),
            PatchDecision::Cancel => Outcome::Stop,
            PatchDecision::AcceptWithArguments { .. } | PatchDecision::Decline => {
                Outcome::No(Ended::Declined)
            }
        },
        (Question::Permissions(asked), Reply::Permissions(given)) => {
            let PermissionsRequestApprovalResponse { permissions, scope } = given;
            let permissions = intersection(&asked.permissions, &permissions);
            Outcome::Tell(Verdict::Permissions(PermissionsRequestApprovalResponse { permissions, scope }))
        }
        (Question::UserInput(_), Reply::UserInput(answers)) => Outcome::Tell(Verdict::UserInput(answers)),
        (Question::Tool(_), Reply::Tool(decision)) => match decision {
            GateDecision::Accept => go(false),
            GateDecision::AcceptForSession => go(true),
            GateDecision::AcceptWithArguments { arguments } => Outcome::With(arguments),
            GateDecision::Respond { content_items, success } => Outcome::Respond(content_items, success),
            GateDecision::Decline => Outcome::No(Ended::Declined),
            GateDecision::Cancel => Outcome::Stop,
        },
        _ => Outcome::No(Ended::Declined),
    }
}

/// The words of a command among arguments.
fn command_in(arguments: &Value) -> Option<Vec<String>> {
    let words = arguments.get("command")?.as_array()?;
    let words: Option<Vec<String>> = words.iter().map(|word| word.as_str().map(str::to_owned)).collect();
    words.filter(|words| !words.is_empty())
}

/// As the record keeps it: enough to carry it out without asking again.
fn decision_of(outcome: &Outcome) -> OperationDecision {
    let scope = |session: bool| Some(if session { DecisionScope::Session } else { DecisionScope::Call });
    match outcome {
        Outcome::Go { session, .. } => OperationDecision::Approve { scope: scope(*session) },
        Outcome::Instead(command) => {
            OperationDecision::Replace { command: Some(command.clone()), arguments: None }
        }
        Outcome::With(arguments) => {
            OperationDecision::Replace { command: None, arguments: Some(arguments.clone()) }
        }
        Outcome::Respond(content_items, success) => {
            OperationDecision::Respond { content_items: content_items.clone(), success: *success }
        }
        Outcome::Tell(Verdict::Permissions(given)) => words_of(serde_json::to_string(given)),
        Outcome::Tell(Verdict::UserInput(answers)) => words_of(serde_json::to_string(answers)),
        Outcome::Tell(_) => OperationDecision::Approve { scope: None },
        Outcome::No(_) => OperationDecision::Reject { message: None, end_turn: false },
        Outcome::Stop => OperationDecision::Reject { message: None, end_turn: true },
    }
}

fn words_of(json: serde_json::Result<String>) -> OperationDecision {
    let text = json.unwrap_or_default();
    let content_items = vec![DynamicToolCallOutputContentItem::InputText { text }];
    OperationDecision::Respond { content_items, success: true }
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
    pub(crate) fn new(proposal: Proposal) -> Self {
        Self { proposal, stage: Stage::Asked, item_open: false, attempt: 1 }
    }

    fn id(&self, work: &Work<'_>, turn_id: &TurnId, call_id: &str) -> OperationId {
        operation_id(work, turn_id, call_id, self.proposal.number)
    }

    /// A decision holds for exactly what it was made about.
    fn take_up(&mut self, work: &mut Work<'_>, id: &OperationId, earlier: Option<Earlier>) -> TakenUp {
        match earlier {
            None => TakenUp::Afresh,
            Some(earlier) if earlier.digest != self.proposal.digest => {
                work.record_withdrawn(id.clone(), "what it would do has changed");
                TakenUp::Afresh
            }
            Some(Earlier { state, .. }) => match state {
                EarlierState::Proposed => TakenUp::Waiting,
                EarlierState::Decided(decision) => TakenUp::Decided(decision),
                EarlierState::Again { attempt } => {
                    self.attempt = attempt + 1;
                    TakenUp::Again
                }
                // Answered before anything could propose again.
                EarlierState::Started { .. } | EarlierState::Finished { .. } => TakenUp::Afresh,
            },
        }
    }

    /// What was decided before a restart.
    fn decided_before(&self, decision: OperationDecision) -> Outcome {
        match (decision, self.proposal.question.as_deref()) {
            (OperationDecision::Approve { scope }, _) => {
                Outcome::Go { session: scope == Some(DecisionScope::Session), amendment: None }
            }
            (OperationDecision::Retry, _) => Outcome::Go { session: false, amendment: None },
            (OperationDecision::Reject { end_turn: true, .. }, _) => Outcome::Stop,
            (OperationDecision::Reject { .. }, _) => Outcome::No(Ended::Declined),
            (OperationDecision::Replace { command: Some(command), .. }, _) => Outcome::Instead(command),
            (OperationDecision::Replace { arguments: Some(arguments), .. }, _) => Outcome::With(arguments),
            (OperationDecision::Replace { .. }, _) => Outcome::No(Ended::Declined),
            (OperationDecision::Respond { content_items, success }, question) => {
                let words = match content_items.as_slice() {
                    [DynamicToolCallOutputContentItem::InputText { text }] => text.as_str(),
                    _ => "",
                };
                let told = match question {
                    Some(Question::Permissions(_)) => {
                        serde_json::from_str(words).ok().map(Verdict::Permissions)
                    }
                    Some(Question::UserInput(_)) => serde_json::from_str(words).ok().map(Verdict::UserInput),
                    _ => None,
                };
                told.map_or(Outcome::Respond(content_items, success), Outcome::Tell)
            }
        }
    }

    pub(crate) fn record_proposed(
        &self,
        work: &mut Work<'_>,
        operation_id: OperationId,
        call_id: &str,
        tool: &str,
        tool_set_digest: &str,
    ) {
        let Proposal { kind, effects, arguments, digest, question, .. } = &self.proposal;
        let (reason, decisions) = question.as_deref().map_or((None, Vec::new()), reason_and_decisions);
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
        });
    }

    /// Clients see what will run before they are asked about it.
    pub(crate) fn ask(&mut self, work: &mut Work<'_>, turn_id: &TurnId, call_id: &str) {
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

    /// In the record before the effect: what began and never ended is known to be uncertain.
    pub(crate) fn begin(&mut self, work: &mut Work<'_>, turn_id: &TurnId, call_id: &str) {
        work.record_begun(self.id(work, turn_id, call_id), self.attempt);
        if let Some(item) = &self.proposal.item {
            work.record(RolloutRecord::ThreadItem { turn_id: turn_id.clone(), item: (**item).clone() });
        }
        self.show(work, turn_id);
        self.stage = Stage::Begun;
    }

    /// The question, if one is open, needs no answer any more.
    pub(crate) fn withdraw(&mut self, work: &mut Work<'_>, turn_id: &TurnId, call_id: &str, reason: &str) {
        if self.stage != Stage::Asked {
            return;
        }
        self.stage = Stage::Over;
        work.record_withdrawn(self.id(work, turn_id, call_id), reason);
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
        work.record_finished(self.id(work, turn_id, call_id), self.attempt, success, texts_of(output));
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
        let shown = work.core.shows_operations;
        let id = shown.then(|| self.id(work, turn, call_id));
        let digest = shown.then(|| self.proposal.digest.clone());
        match question {
            Question::Command(mut asked) => {
                (asked.thread_id, asked.turn_id, asked.item_id) = (thread, turn.clone(), item);
                asked.started_at_ms = now;
                (asked.operation_id, asked.arguments_digest) = (id, digest);
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
            other => other,
        }
    }
}

/// For the record: why it is asked about, and what can be answered.
pub(crate) fn reason_and_decisions(question: &Question) -> (Option<String>, Vec<String>) {
    let words = |decisions: &[&str]| decisions.iter().map(|word| (*word).to_owned()).collect();
    match question {
        Question::Command(asked) => {
            (asked.reason.clone(), words(&["accept", "acceptForSession", "respond", "decline", "cancel"]))
        }
        Question::FileChange(asked) => {
            (asked.reason.clone(), words(&["accept", "acceptForSession", "respond", "decline", "cancel"]))
        }
        Question::Permissions(asked) => (asked.reason.clone(), words(&["respond"])),
        Question::UserInput(_) => (None, words(&["respond"])),
        Question::Tool(asked) => (
            asked.reason.clone(),
            words(&["accept", "acceptForSession", "acceptWithArguments", "respond", "decline", "cancel"]),
        ),
        Question::DynamicTool(_) => (None, Vec::new()),
    }
}

/// The record keeps the words; pictures are in the item.
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
