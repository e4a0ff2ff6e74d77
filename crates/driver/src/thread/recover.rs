//! Operations that a stored thread's last process left open. A call that started and never finished is not run again:
//! record and model get an unknown outcome.

use delegation::{is_output_of, output_text};
use engine::{Truncation, UNKNOWN_OUTCOME as UNKNOWN, truncate_middle};
use journal::{OpenOperation, ThreadHistory};
use protocol::{
    FunctionCallOutputBody, OperationDecision, OperationRecord, PatchApplyStatus, ResponseItem,
    RolloutRecord, ThreadItem, Turn, TurnStatus,
};

use delegation::runs_at_host;

/// Why an open decision was withdrawn.
const CUT_OFF: &str = "the turn was cut off";

/// The output of a call that had not started when the process stopped.
const NOT_BEGUN: &str =
    "This call was not carried out: the program stopped before it had begun. Nobody refused it.";

/// Gives every call without an end an output, and returns the records to be written.
pub fn recover(history: &mut ThreadHistory, now_ms: i64) -> Vec<RolloutRecord> {
    let mut records = Vec::new();
    for operation in &history.operations {
        if runs_at_host(operation, &history.model) {
            continue;
        }
        let operation_id = operation.operation_id.clone();
        let end = CallEnd::of(operation, &history.turns);
        match &end {
            CallEnd::NotBegun => {
                let operation = OperationRecord::Withdrawn { operation_id, reason: Some(CUT_OFF.to_owned()) };
                records.push(RolloutRecord::Operation { operation });
            }
            CallEnd::Unknown { attempt } => {
                let operation = OperationRecord::Unknown { operation_id, attempt: *attempt };
                records.push(RolloutRecord::Operation { operation });
            }
            CallEnd::Seen(_) => {
                let (attempt, success) = (1, true);
                let (output, output_digest) = (Vec::new(), None);
                let operation =
                    OperationRecord::Finished { operation_id, attempt, success, output, output_digest };
                records.push(RolloutRecord::Operation { operation });
            }
            CallEnd::Finished => {}
        }
        let Some(call_id) = call_of(operation) else { continue };
        let Some(item) = answer(&history.model, &call_id, end.text(operation)) else { continue };
        records.push(RolloutRecord::ResponseItem { turn_id: operation.turn_id.clone(), item: item.clone() });
        history.model.push(item);
    }
    history.operations.clear();
    if let Some(turn_id) = history.unfinished_turn.take() {
        // The operation is never resumed.
        let (status, error, at_ms) = (TurnStatus::Interrupted, None, now_ms);
        records.push(RolloutRecord::TurnEnded { turn_id, status, error, at_ms });
    }
    records
}

/// The rules in decisions whose operations had not started: the process may have stopped before it saved them. A rule
/// is saved before its operation starts, so a later removal is the user's choice.
pub fn agreed_rules(history: &ThreadHistory) -> Vec<Vec<String>> {
    let decided = |operation: &OpenOperation| match operation.records.last() {
        Some(OperationRecord::Decided {
            decision: OperationDecision::Approve { execpolicy_amendment, .. },
            ..
        }) => execpolicy_amendment.clone(),
        _ => None,
    };
    history.operations.iter().filter_map(decided).collect()
}

/// How an open operation ended.
enum CallEnd {
    /// It was not decided or not started.
    NotBegun,
    Unknown {
        attempt: u32,
    },
    /// Its item was recorded as completed, and nothing after that.
    Seen(String),
    /// It ended, and the process stopped before the result reached the model's history.
    Finished,
}

impl CallEnd {
    fn of(operation: &OpenOperation, turns: &[Turn]) -> Self {
        match operation.records.last() {
            Some(OperationRecord::Started { attempt, .. } | OperationRecord::Unknown { attempt, .. }) => {
                let seen = call_of(operation).and_then(|call_id| outcome_seen(turns, &call_id));
                seen.map_or(Self::Unknown { attempt: *attempt }, Self::Seen)
            }
            Some(OperationRecord::Finished { .. }) => Self::Finished,
            _ => Self::NotBegun,
        }
    }

    fn text(&self, operation: &OpenOperation) -> String {
        match (self, operation.records.last()) {
            (Self::Finished, Some(OperationRecord::Finished { output, .. })) => output_text(output),
            (Self::Seen(text), _) => text.clone(),
            (Self::NotBegun, _) => NOT_BEGUN.to_owned(),
            _ => UNKNOWN.to_owned(),
        }
    }
}

/// The usual limit of tool output for a model.
const READ_BY_MODEL: Truncation = Truncation::Tokens(10_000);

/// The outcome in the last turn's item of this call, if it has one.
fn outcome_seen(turns: &[Turn], call_id: &str) -> Option<String> {
    let item = turns.last()?.items.iter().find(|item| item.id().as_str() == call_id)?;
    match item {
        ThreadItem::CommandExecution { exit_code: Some(code), aggregated_output, .. } => {
            // Clients see more of the output than the model.
            let output = truncate_middle(aggregated_output.as_deref().unwrap_or_default(), READ_BY_MODEL);
            Some(format!("Process exited with code {code}\nOutput:\n{output}"))
        }
        ThreadItem::FileChange { status: PatchApplyStatus::Completed, .. } => {
            Some("The patch was applied.".to_owned())
        }
        _ => None,
    }
}

/// Operations of commands and patches have ids that start with the call's.
fn call_of(operation: &OpenOperation) -> Option<String> {
    operation.records.iter().find_map(|record| match record {
        OperationRecord::Proposed { item_id, .. } => Some(item_id.to_string()),
        _ => None,
    })
}

/// The output for this call; none if the history has no such call, or already an output.
fn answer(model: &[ResponseItem], wanted: &str, text: String) -> Option<ResponseItem> {
    let at = model.iter().rposition(|item| is_call(item, wanted))?;
    if model[at..].iter().any(|item| is_output_of(item, wanted)) {
        return None;
    }
    let (call_id, output) = (wanted.to_owned(), FunctionCallOutputBody::Text(text));
    Some(match &model[at] {
        ResponseItem::CustomToolCall { .. } => {
            ResponseItem::CustomToolCallOutput { call_id, name: None, output }
        }
        _ => ResponseItem::FunctionCallOutput { call_id, output },
    })
}

fn is_call(item: &ResponseItem, wanted: &str) -> bool {
    match item {
        ResponseItem::FunctionCall { call_id, .. } | ResponseItem::CustomToolCall { call_id, .. } => {
            call_id == wanted
        }
        ResponseItem::LocalShellCall { call_id, .. } => call_id.as_deref() == Some(wanted),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn seen(output: &str) -> Option<String> {
        let item = json!({"type": "commandExecution", "id": "c", "command": "x", "cwd": "/", "processId": null,
            "source": "agent", "status": "completed", "commandActions": [], "aggregatedOutput": output,
            "exitCode": 0, "durationMs": 1});
        let turn = json!({"id": "u", "items": [item], "status": "interrupted", "error": null});
        outcome_seen(&[serde_json::from_value(turn).expect("a turn")], "c")
    }

    #[test]
    fn a_recorded_item_gives_the_model_its_output() {
        assert_eq!(seen("over\n").as_deref(), Some("Process exited with code 0\nOutput:\nover\n"));
        let long = seen(&"many words ".repeat(30_000)).expect("an outcome");
        assert!(long.len() < 45_000 && long.contains("tokens truncated"), "{}", long.len());
    }
}
