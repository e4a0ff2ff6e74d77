//! What a stored thread's last process left undecided. A call that began and was never seen to end is not run again:
//! the model is told that nobody knows, and so is the record.

use engine::{Truncation, UNKNOWN_OUTCOME as UNKNOWN, truncate_middle};
use journal::{History, OpenOperation};
use protocol::{
    DynamicToolCallOutputContentItem, FunctionCallOutputBody, OperationRecord, PatchApplyStatus,
    ResponseItem, RolloutRecord, ThreadItem, Turn, TurnStatus,
};

use crate::agents::is_away;

/// Why what waited for a decision waits no more.
const CUT_OFF: &str = "the turn was cut off";

/// What the model reads of a call that had not begun when the process stopped.
const NOT_BEGUN: &str =
    "This call was not carried out: the program stopped before it had begun. Nobody refused it.";

/// Gives every call whose end is lost an output, and says what has to be written down for it.
pub(crate) fn recover(history: &mut History, now_ms: i64) -> Vec<RolloutRecord> {
    let mut records = Vec::new();
    for operation in &history.operations {
        if is_away(operation, &history.model) {
            continue;
        }
        let operation_id = operation.operation_id.clone();
        let end = End::of(operation, &history.turns);
        match &end {
            End::NotBegun => {
                let operation = OperationRecord::Withdrawn { operation_id, reason: Some(CUT_OFF.to_owned()) };
                records.push(RolloutRecord::Operation { operation });
            }
            End::Unknown { attempt } => {
                let operation = OperationRecord::Unknown { operation_id, attempt: *attempt };
                records.push(RolloutRecord::Operation { operation });
            }
            End::Seen(_) => {
                let (attempt, success) = (1, true);
                let (output, output_digest) = (Vec::new(), None);
                let operation =
                    OperationRecord::Finished { operation_id, attempt, success, output, output_digest };
                records.push(RolloutRecord::Operation { operation });
            }
            End::Finished => {}
        }
        let Some(call_id) = call_of(operation) else { continue };
        let Some(item) = answer(&history.model, &call_id, end.text(operation)) else { continue };
        records.push(RolloutRecord::ResponseItem { turn_id: operation.turn_id.clone(), item: item.clone() });
        history.model.push(item);
    }
    history.operations.clear();
    if let Some(turn_id) = history.unfinished_turn.take() {
        // Nobody takes it up any more.
        let (status, error, at_ms) = (TurnStatus::Interrupted, None, now_ms);
        records.push(RolloutRecord::TurnEnded { turn_id, status, error, at_ms });
    }
    records
}

/// How an operation that is still listed came to its end.
enum End {
    /// It waited to be decided or begun.
    NotBegun,
    Unknown {
        attempt: u32,
    },
    /// Its item was recorded as done, and nothing after that.
    Seen(String),
    /// It ended, and the process stopped before the model's history had it.
    Finished,
}

impl End {
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
            (Self::Finished, Some(OperationRecord::Finished { output, .. })) => texts(output),
            (Self::Seen(text), _) => text.clone(),
            (Self::NotBegun, _) => NOT_BEGUN.to_owned(),
            _ => UNKNOWN.to_owned(),
        }
    }
}

/// What most models are given of an output.
const READ_BY_MODEL: Truncation = Truncation::Tokens(10_000);

/// What the last turn's item of this call says, if it says how the call ended.
fn outcome_seen(turns: &[Turn], call_id: &str) -> Option<String> {
    let item = turns.last()?.items.iter().find(|item| item.id().as_str() == call_id)?;
    match item {
        ThreadItem::CommandExecution { exit_code: Some(code), aggregated_output, .. } => {
            // Clients are shown more of it than a model is to read.
            let output = truncate_middle(aggregated_output.as_deref().unwrap_or_default(), READ_BY_MODEL);
            Some(format!("Process exited with code {code}\nOutput:\n{output}"))
        }
        ThreadItem::FileChange { status: PatchApplyStatus::Completed, .. } => {
            Some("The patch was applied.".to_owned())
        }
        _ => None,
    }
}

/// The words of an output, a line for each part.
pub(crate) fn texts(output: &[DynamicToolCallOutputContentItem]) -> String {
    let text = |part: &DynamicToolCallOutputContentItem| match part {
        DynamicToolCallOutputContentItem::InputText { text } => Some(text.clone()),
        DynamicToolCallOutputContentItem::InputImage { .. } => None,
    };
    output.iter().filter_map(text).collect::<Vec<_>>().join("\n")
}

/// Commands and patches keep the id of the call they come from.
fn call_of(operation: &OpenOperation) -> Option<String> {
    operation.records.iter().find_map(|record| match record {
        OperationRecord::Proposed { item_id, .. } => Some(item_id.to_string()),
        _ => None,
    })
}

/// The output that belongs to a call in the history; none when the call is not there, or has one.
fn answer(model: &[ResponseItem], wanted: &str, text: String) -> Option<ResponseItem> {
    let at = model.iter().rposition(|item| is_call(item, wanted))?;
    if model[at..].iter().any(|item| is_output(item, wanted)) {
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

pub(crate) fn is_output(item: &ResponseItem, wanted: &str) -> bool {
    match item {
        ResponseItem::FunctionCallOutput { call_id, .. }
        | ResponseItem::CustomToolCallOutput { call_id, .. } => call_id == wanted,
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
    fn an_end_that_clients_know_is_told_in_what_a_model_reads() {
        assert_eq!(seen("over\n").as_deref(), Some("Process exited with code 0\nOutput:\nover\n"));
        let long = seen(&"many words ".repeat(30_000)).expect("an outcome");
        assert!(long.len() < 45_000 && long.contains("tokens truncated"), "{}", long.len());
    }
}
