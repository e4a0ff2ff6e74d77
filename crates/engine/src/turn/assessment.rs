//! The automatic reviewer of approvals: one model request about one proposal, with the end of the transcript and
//! without tools. Anything but a clear approval declines; if the answer is late, the user is asked instead.

use std::sync::Arc;

use model::{ModelFailure, Purpose, StreamEvent};
use protocol::{
    ContentItem, DecisionScope, GuardianApprovalReview, GuardianApprovalReviewStatus, GuardianRiskLevel,
    ItemGuardianApprovalReviewCompletedNotification, ItemGuardianApprovalReviewStartedNotification, ItemId,
    OperationDecision, ResponseItem, ServerNotification, TurnError, TurnId, TurnStatus,
};
use serde::Deserialize;
use serde_json::Value;

use crate::calls::{ActiveProposal, Assessment, OpenCall, ProposalStage};
use crate::context::{developer_message, user_message};
use crate::items::text_of;
use crate::request::{RequestParts, prepare};
use crate::turn::active_proposal::Ended;
use crate::turn::assessment_text::{INSTRUCTIONS, action_of, fits, question_text, schema};
use crate::turn::operation::operation_id;
use crate::turn::proposals::Decided;
use crate::turn::work::Transition;
use crate::turn::{TurnMachine, TurnPhase};
use crate::{Effect, Question, Step};

/// Risk scores from here on decline.
const REFUSED_FROM: u8 = 80;

/// After this time the user is asked.
const LIMIT_MS: i64 = 90_000;

/// Consecutive refusals that end the turn: the agent does not find an acceptable way.
const MOST_REFUSALS: u32 = 3;

/// The reviewer's answer.
#[derive(Debug, Deserialize)]
struct RiskVerdict {
    risk_level: GuardianRiskLevel,
    risk_score: u8,
    rationale: String,
}

impl TurnMachine {
    /// Whether the reviewer decides about this. A host decides itself, and a user decides about an action that is too
    /// long to send whole: the part that is cut out could matter.
    pub(crate) fn is_assessed(&self, work: &Transition<'_>, active: &ActiveProposal) -> bool {
        let question = active.proposal.question.as_deref();
        let is_action = matches!(question, Some(Question::Command(_) | Question::FileChange(_)));
        let is_asked = is_action && self.step.reviews_approvals && !work.core.shows_operations;
        is_asked && fits(&action_of(active))
    }

    pub(crate) fn begin_assessment(
        &self,
        work: &mut Transition<'_>,
        call_id: &str,
        active: &mut ActiveProposal,
    ) {
        active.show(work, &self.id);
        work.core.attempts += 1;
        let attempt = work.core.attempts;
        let action = action_of(active);
        let step = Step {
            base_instructions: INSTRUCTIONS.into(),
            tools: Vec::new(),
            verbosity: None,
            ..(*self.step).clone()
        };
        let schema = schema();
        let ask = RequestParts {
            thread_id: &work.core.id,
            turn_id: &self.id,
            step: &step,
            purpose: Purpose::Review,
            output_schema: Some(&schema),
            turn_state: None,
            agent_path: &work.core.agent_path,
            segment: 0,
            attempt: 1,
        };
        let text = question_text(work.core.history.items(), &action);
        let question = user_message(None, vec![ContentItem::InputText { text }]);
        let required = self.step.reviewer_instructions.as_deref().map(developer_message);
        let input = required.into_iter().chain([question]).map(Arc::new).collect();
        let request = prepare(&ask, input);
        notify(work, &self.id, call_id, &action, None, GuardianApprovalReviewStatus::InProgress);
        work.effects.push(Effect::RequestModel { attempt, request });
        work.effects.push(Effect::Deadline { attempt, at_ms: work.stamp.now_ms + LIMIT_MS });
        active.assessment = Some(Box::new(Assessment { attempt, text: String::new(), action }));
    }

    /// The call whose proposal this request is about.
    pub(crate) fn assessed_call(&self, attempt: u64) -> Option<String> {
        let TurnPhase::Sampling(sampling) = &self.phase else { return None };
        let is_it = |open: &&OpenCall| {
            let active = open.active.as_deref().filter(|active| active.stage == ProposalStage::Asked);
            active.and_then(|active| active.assessment.as_ref()).is_some_and(|found| found.attempt == attempt)
        };
        sampling.calls.iter().find(is_it).map(|open| open.call.call_id.clone())
    }

    pub(crate) fn on_assessment(
        mut self,
        work: &mut Transition<'_>,
        attempt: u64,
        event: Result<StreamEvent, ModelFailure>,
    ) -> Option<Self> {
        let Some(call_id) = self.assessed_call(attempt) else { return Some(self) };
        let answer = match event {
            Ok(StreamEvent::ItemDone(item)) => {
                let active = self.call_of(&call_id).and_then(|open| open.active.as_mut());
                if let (Some(assessment), Some(text)) =
                    (active.and_then(|active| active.assessment.as_mut()), answer_in(&item))
                {
                    assessment.text = text;
                }
                return Some(self);
            }
            Ok(StreamEvent::Completed { usage, .. }) => {
                if let Some(usage) = usage {
                    work.spend_tokens(&self.id, &self.step, usage);
                }
                Ok(())
            }
            Ok(StreamEvent::Failed(failure)) | Err(failure) => Err(failure.message),
            Ok(_) => return Some(self),
        };
        work.effects.push(Effect::CancelModel { attempt });
        self.conclude(work, &call_id, answer)
    }

    /// The reviewer's time limit passed.
    pub(crate) fn on_deadline(&mut self, work: &mut Transition<'_>, attempt: u64) {
        let Some(call_id) = self.assessed_call(attempt) else { return };
        let turn_id = self.id.clone();
        let Some(active) = self.call_of(&call_id).and_then(|open| open.active.as_mut()) else { return };
        active.drop_assessment(work, &turn_id, &call_id);
        active.ask(work, &turn_id, &call_id);
    }

    fn conclude(
        mut self,
        work: &mut Transition<'_>,
        call_id: &str,
        answer: Result<(), String>,
    ) -> Option<Self> {
        let waiting =
            |open: &mut OpenCall| open.active.take_if(|active| active.stage == ProposalStage::Asked);
        let Some(mut active) = self.call_of(call_id).and_then(waiting) else { return Some(self) };
        let Some(assessment) = active.assessment.take() else { return Some(self) };
        let verdict = answer.and_then(|()| read(&assessment.text));
        let is_allowed = verdict.as_ref().is_ok_and(|verdict| verdict.risk_score < REFUSED_FROM);
        let decision = if is_allowed {
            self.refusals = 0;
            OperationDecision::Approve { scope: Some(DecisionScope::Call), execpolicy_amendment: None }
        } else {
            self.refusals += 1;
            OperationDecision::Reject { message: Some(refusal(&verdict)), end_turn: false }
        };
        let status = match is_allowed {
            true => GuardianApprovalReviewStatus::Approved,
            false => GuardianApprovalReviewStatus::Denied,
        };
        notify(work, &self.id, call_id, &assessment.action, verdict.ok().as_ref(), status);
        let id = operation_id(work, &self.id, call_id, active.proposal.number);
        let origin = Some(work.policy("reviewer"));
        work.record_decision(id, decision.clone(), origin, &active.proposal);
        let decided =
            Decided { decision, by_client: is_allowed, was_asked: false, rejected_as: Ended::Declined };
        let turn = self.carry_out(work, call_id, active, decided)?;
        if turn.refusals < MOST_REFUSALS {
            return Some(turn);
        }
        let error = TurnError {
            message: format!(
                "the automatic reviewer refused {MOST_REFUSALS} requests in a row; say how to go on, or set \
                 approvalsReviewer to `user` to decide yourself"
            ),
            codex_error_info: None,
            additional_details: None,
        };
        turn.finish(work, TurnStatus::Failed, Some(error))
    }
}

impl ActiveProposal {
    /// Cancels the reviewer's request.
    pub(crate) fn drop_assessment(&mut self, work: &mut Transition<'_>, turn_id: &TurnId, call_id: &str) {
        if let Some(assessment) = self.assessment.take() {
            work.effects.push(Effect::CancelModel { attempt: assessment.attempt });
            let status = GuardianApprovalReviewStatus::Aborted;
            notify(work, turn_id, call_id, &assessment.action, None, status);
        }
    }
}

fn answer_in(item: &ResponseItem) -> Option<String> {
    match item {
        ResponseItem::Message { role, content, .. } if role == "assistant" => Some(text_of(content)),
        _ => None,
    }
}

/// An answer in another form than the requested one is invalid.
fn read(answer: &str) -> Result<RiskVerdict, String> {
    let verdict: RiskVerdict = serde_json::from_str(answer.trim())
        .map_err(|error| format!("the reviewer's answer could not be read: {error}"))?;
    match verdict.risk_score {
        0..=100 => Ok(verdict),
        score => Err(format!("the reviewer's score {score} is not between 0 and 100")),
    }
}

/// The model's message about the refusal.
fn refusal(verdict: &Result<RiskVerdict, String>) -> String {
    let why = match verdict {
        Ok(verdict) => format!("risk {} of 100: {}", verdict.risk_score, verdict.rationale.trim()),
        Err(problem) => format!("no usable verdict: {problem}"),
    };
    format!(
        "This was not carried out: the automatic reviewer refused it ({why}). Do not work around that by other means. \
         Find a safer way, or say what you need and why."
    )
}

fn notify(
    work: &mut Transition<'_>,
    turn_id: &TurnId,
    call_id: &str,
    action: &Value,
    verdict: Option<&RiskVerdict>,
    status: GuardianApprovalReviewStatus,
) {
    let review = GuardianApprovalReview {
        status,
        risk_score: verdict.map(|verdict| verdict.risk_score),
        risk_level: verdict.map(|verdict| verdict.risk_level),
        rationale: verdict.map(|verdict| verdict.rationale.clone()),
    };
    let (thread_id, turn_id, target_item_id) = (work.core.id.clone(), turn_id.clone(), ItemId::new(call_id));
    let action = Some(action.clone());
    work.emit(match status {
        GuardianApprovalReviewStatus::InProgress => ServerNotification::ItemGuardianApprovalReviewStarted(
            ItemGuardianApprovalReviewStartedNotification {
                thread_id,
                turn_id,
                target_item_id,
                review,
                action,
            },
        ),
        _ => ServerNotification::ItemGuardianApprovalReviewCompleted(
            ItemGuardianApprovalReviewCompletedNotification {
                thread_id,
                turn_id,
                target_item_id,
                review,
                action,
            },
        ),
    });
}
