//! Resuming an interrupted turn: from the record to the engine's input and to the list of pending operations.

use engine::{Earlier, EarlierState, OutsideMessage, said_with};
use journal::{OpenOperation, ThreadHistory};
use protocol::{
    ContentItem, ItemId, OperationDecision, OperationRecord, PendingOperation, PendingOperationState,
    ResolvedOperation, ResponseItem, RolloutRecord, ThreadItem, ToolEffects, Turn, TurnId, UserInput,
};

use delegation::DelegationError;
use delegation::{is_output_of, runs_at_host};

/// A turn without an end, to be resumed.
#[derive(Debug, Clone)]
pub(crate) struct UnfinishedTurn {
    pub(crate) turn_id: TurnId,
    /// Accepted and never sent to the model.
    pub(crate) undelivered: Vec<UndeliveredInput>,
    pub(crate) earlier: Vec<Earlier>,
}

/// Input that is in the record and not in the model's history.
#[derive(Debug, Clone)]
pub struct UndeliveredInput {
    pub id: ItemId,
    pub content: Vec<UserInput>,
    pub outside: Option<OutsideMessage>,
}

/// Whether the unfinished turn, if any, can be resumed. A review cannot: its history is not recorded.
pub fn is_resumable(history: &ThreadHistory) -> bool {
    let Some(turn_id) = &history.unfinished_turn else { return true };
    let is_review = |item: &ThreadItem| matches!(item, ThreadItem::EnteredReviewMode { .. });
    let turn = history.turns.iter().rfind(|turn| turn.id == *turn_id);
    !turn.is_some_and(|turn| turn.items.iter().any(is_review))
}

impl UnfinishedTurn {
    /// `None` when there is no unfinished turn.
    pub(crate) fn of(history: &ThreadHistory) -> Option<Self> {
        let turn_id = history.unfinished_turn.clone().filter(|_| is_resumable(history))?;
        let turn = history.turns.iter().rfind(|turn| turn.id == turn_id)?;
        let of_turn = |operation: &&OpenOperation| operation.turn_id.as_ref() == Some(&turn_id);
        let earlier = history.operations.iter().filter(of_turn);
        let earlier = earlier.filter_map(|operation| earlier_of(operation, turn)).collect();
        let undelivered = undelivered(turn, &history.model);
        Some(Self { turn_id, undelivered, earlier })
    }
}

/// Input of the turn that is in the record and not in the model's history.
fn undelivered(turn: &Turn, model: &[ResponseItem]) -> Vec<UndeliveredInput> {
    let said: Vec<(&ItemId, &Vec<UserInput>)> = turn
        .items
        .iter()
        .filter_map(|item| match item {
            ThreadItem::UserMessage { id, content } => Some((id, content)),
            _ => None,
        })
        .collect();
    let first = said.first().map(|(_, content)| shown_text(content)).unwrap_or_default();
    let delivered = |item: &ResponseItem| engine::is_user_turn(item).then(|| message_text(item)).flatten();
    let from = model.iter().rposition(|item| delivered(item).is_some_and(|text| text == first));
    let delivered: usize =
        from.map_or(0, |from| model[from..].iter().filter(|item| delivered(item).is_some()).count());
    let said = said.into_iter().skip(delivered).map(|(id, content)| UndeliveredInput {
        id: id.clone(),
        content: content.clone(),
        outside: None,
    });
    said.chain(turn.items.iter().filter_map(|item| undelivered_outside(item, model))).collect()
}

fn undelivered_outside(item: &ThreadItem, model: &[ResponseItem]) -> Option<UndeliveredInput> {
    let ThreadItem::FunctionCallOutput { id, name, namespace, output } = item else { return None };
    if model.iter().any(|item| is_output_of(item, id.as_str())) {
        return None;
    }
    let outside = OutsideMessage { name: name.clone(), namespace: namespace.clone(), output: output.clone() };
    Some(UndeliveredInput { id: said_with(id), content: Vec::new(), outside: Some(outside) })
}

fn shown_text(content: &[UserInput]) -> String {
    let text = |part: &UserInput| match part {
        UserInput::Text { text, .. } => Some(text.clone()),
        _ => None,
    };
    content.iter().filter_map(text).collect()
}

fn message_text(item: &ResponseItem) -> Option<String> {
    let ResponseItem::Message { content, .. } = item else { return None };
    let text = |part: &ContentItem| match part {
        ContentItem::InputText { text } => Some(text.clone()),
        _ => None,
    };
    Some(content.iter().filter_map(text).collect())
}

/// `None` if its start is lost.
fn earlier_of(operation: &OpenOperation, turn: &Turn) -> Option<Earlier> {
    let (digest, effects, item_id) = proposed(operation)?;
    let begun = operation.records.iter().rev().find_map(attempt_of);
    let state = match operation.records.last()? {
        OperationRecord::Proposed { .. } => EarlierState::Proposed,
        OperationRecord::Decided { decision: OperationDecision::Retry, .. } => {
            EarlierState::Again { attempt: begun.unwrap_or(0) }
        }
        OperationRecord::Decided { decision, .. } => EarlierState::Decided(decision.clone()),
        OperationRecord::Started { attempt, .. } | OperationRecord::Unknown { attempt, .. } => {
            match effects {
                ToolEffects::Once => EarlierState::Started { attempt: *attempt },
                ToolEffects::Readonly | ToolEffects::Idempotent => EarlierState::Again { attempt: *attempt },
            }
        }
        OperationRecord::Finished { output, success, .. } => {
            EarlierState::Finished { output: output.clone(), success: *success }
        }
        OperationRecord::Withdrawn { .. } => return None,
    };
    let item = turn.items.iter().find(|item| item.id() == item_id).cloned();
    Some(Earlier {
        operation_id: operation.operation_id.clone(),
        digest: digest.to_owned(),
        state,
        has_started: begun.is_some(),
        item,
    })
}

fn attempt_of(record: &OperationRecord) -> Option<u32> {
    match record {
        OperationRecord::Started { attempt, .. } | OperationRecord::Unknown { attempt, .. } => Some(*attempt),
        _ => None,
    }
}

fn proposed(operation: &OpenOperation) -> Option<(&str, ToolEffects, &ItemId)> {
    operation.records.iter().find_map(|record| match record {
        OperationRecord::Proposed { arguments_digest, effects, item_id, .. } => {
            Some((arguments_digest.as_str(), *effects, item_id))
        }
        _ => None,
    })
}

/// Operations that wait for the host, as listed in the response when a thread is opened.
pub fn pending(history: &ThreadHistory) -> Vec<PendingOperation> {
    // A child that the host runs does not wait for a decision.
    let here = history.operations.iter().filter(|operation| !runs_at_host(operation, &history.model));
    here.filter_map(pending_of).collect()
}

fn pending_of(operation: &OpenOperation) -> Option<PendingOperation> {
    let state = match operation.records.last()? {
        OperationRecord::Proposed { .. } => PendingOperationState::Proposed,
        OperationRecord::Decided { .. } => PendingOperationState::Decided,
        OperationRecord::Started { .. } | OperationRecord::Unknown { .. } => PendingOperationState::Unknown,
        OperationRecord::Finished { .. } | OperationRecord::Withdrawn { .. } => return None,
    };
    operation.records.iter().find_map(|record| match record {
        OperationRecord::Proposed {
            operation_id,
            kind,
            tool,
            namespace,
            item_id,
            agent_path,
            arguments,
            arguments_digest,
            effects,
            available_decisions,
            reason,
            created_at_ms,
            ..
        } => Some(PendingOperation {
            operation_id: operation_id.clone(),
            turn_id: operation.turn_id.clone()?,
            item_id: item_id.clone(),
            kind: kind.clone(),
            state,
            tool: tool.clone(),
            namespace: namespace.clone(),
            agent_path: agent_path.clone(),
            arguments: arguments.clone(),
            arguments_digest: arguments_digest.clone(),
            effects: *effects,
            available_decisions: match state {
                PendingOperationState::Unknown => ["retry", "respond", "reject"].map(str::to_owned).to_vec(),
                _ => available_decisions.clone(),
            },
            reason: reason.clone(),
            created_at_ms: *created_at_ms,
        }),
        _ => None,
    })
}

/// Adds decisions made while no runtime was running to the history, and returns their records. Refuses all of them if
/// one does not fit.
pub fn resolve(
    history: &mut ThreadHistory,
    resolved: &[ResolvedOperation],
    now_ms: i64,
) -> Result<Vec<RolloutRecord>, DelegationError> {
    let mut records = Vec::new();
    for (at, given) in resolved.iter().enumerate() {
        let record =
            record_of(history, given, now_ms).map_err(|(code, problem)| invalid(at, code, problem))?;
        let Some(record) = record else { continue };
        let operation = history.operations.iter_mut().find(|open| open.operation_id == given.operation_id);
        if let Some(operation) = operation {
            operation.records.push(record.clone());
        }
        records.push(RolloutRecord::Operation { operation: record });
    }
    Ok(records)
}

fn invalid(at: usize, code: &'static str, problem: String) -> DelegationError {
    DelegationError::Invalid { code, field: format!("resolvedOperations[{at}]:"), problem }
}

type ResolutionProblem = (&'static str, String);

/// `None` when it is already recorded.
fn record_of(
    history: &ThreadHistory,
    given: &ResolvedOperation,
    now_ms: i64,
) -> Result<Option<OperationRecord>, ResolutionProblem> {
    let ResolvedOperation { operation_id, arguments_digest, decision, result, by, decided_at_ms } = given;
    let open = history.operations.iter().find(|open| open.operation_id == *operation_id);
    let Some(open) = open else {
        return Err(("unknownOperation", format!("operationId {operation_id} is not pending")));
    };
    if proposed(open).is_none_or(|(digest, ..)| digest != arguments_digest) {
        return Err(("digestMismatch", "argumentsDigest is not that of what was proposed".to_owned()));
    }
    let keys = open.records.iter().find_map(|record| match record {
        OperationRecord::Proposed { session_keys, .. } => session_keys.clone(),
        _ => None,
    });
    let last = open.records.last();
    let began = matches!(last, Some(OperationRecord::Started { .. } | OperationRecord::Unknown { .. }));
    let attempt = open.records.iter().rev().find_map(attempt_of);
    match (decision, result) {
        (Some(_), Some(_)) | (None, None) => {
            Err(("invalidResolution", "exactly one of decision and result is needed".to_owned()))
        }
        (None, Some(result)) => Ok(Some(OperationRecord::Finished {
            operation_id: operation_id.clone(),
            attempt: attempt.unwrap_or(1),
            success: result.success,
            output: result.content_items.clone(),
            output_digest: None,
        })),
        (Some(decision), None) => {
            match last {
                Some(OperationRecord::Decided { decision: before, .. }) if before == decision => {
                    return Ok(None);
                }
                Some(OperationRecord::Decided { .. }) => {
                    return Err(("decisionConflict", "it was decided otherwise before".to_owned()));
                }
                _ => {}
            }
            if matches!(decision, OperationDecision::Retry) && !began {
                return Err(("invalidResolution", "`retry` is for an unknown outcome only".to_owned()));
            }
            if matches!(decision, OperationDecision::Approve { .. }) && began {
                return Err((
                    "invalidResolution",
                    "its outcome is unknown: retry, respond or reject".to_owned(),
                ));
            }
            Ok(Some(OperationRecord::Decided {
                operation_id: operation_id.clone(),
                decision: decision.clone(),
                attempt,
                by: by.clone(),
                arguments_digest: arguments_digest.clone(),
                session_keys: keys.filter(|_| decision.is_for_session()),
                decided_at_ms: decided_at_ms.unwrap_or(now_ms),
            }))
        }
    }
}
