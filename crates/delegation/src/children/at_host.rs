//! Children that the host runs, from their parent's record.

use engine::{fragments_of, subagent_notification};
use journal::{OpenOperation, ThreadHistory};
use protocol::{
    DelegationResultParams, DelegationStatus, DynamicToolCallOutputContentItem, FunctionCallOutputBody,
    OperationId, OperationRecord, OperationType, ResponseItem, RolloutRecord,
};
use serde_json::{Value, json};
use tools::AgentStatus;

use super::recorded_child::RecordedChild;
use super::status::{is_output_of, output_text};

/// Prefix of the ids of children that the host runs, before the host's own id.
pub const HOST_PREFIX: &str = "host:";

/// Limit of a child's last message, which is untrusted data.
const MOST_WORDS: usize = 40_000;

/// The error of a child that failed without a message.
const FAILED: &str = "the agent failed";

fn text_in(output: &[DynamicToolCallOutputContentItem]) -> Option<String> {
    Some(output_text(output)).filter(|words| !words.is_empty())
}

fn shortened(mut words: String) -> String {
    if words.len() > MOST_WORDS {
        let cut = words.floor_char_boundary(MOST_WORDS);
        let left_out = words.len() - cut;
        words.truncate(cut);
        words.push_str(&format!("… ({left_out} more bytes were left out)"));
    }
    words
}

/// Whether the host runs the child: its call has an output, and its operation has no end.
pub fn runs_at_host(operation: &OpenOperation, model: &[ResponseItem]) -> bool {
    let is_begun = matches!(operation.records.last(), Some(OperationRecord::Started { .. }));
    is_begun && call_of(operation).is_some_and(|call| output_of(model, call).is_some())
}

pub(super) fn still_away(history: &ThreadHistory, id: &OperationId) -> bool {
    let is_it = |operation: &&OpenOperation| operation.operation_id == *id;
    history.operations.iter().find(is_it).is_some_and(|operation| runs_at_host(operation, &history.model))
}

/// Reports ends that the host was acknowledged for, when the process stopped before the model got them.
pub fn report_late(history: &mut ThreadHistory) -> Vec<RolloutRecord> {
    let late: Vec<ResponseItem> =
        history.operations.iter().filter_map(|operation| unreported_end(history, operation)).collect();
    // Reported now, whichever turn started it.
    reported_now(history, late)
}

/// The report of an ended child at the host, if the model has not got it.
fn unreported_end(history: &ThreadHistory, operation: &OpenOperation) -> Option<ResponseItem> {
    let Some(OperationRecord::Finished { success, output, .. }) = operation.records.last() else {
        return None;
    };
    let call = call_of(operation)?;
    let spawned: Value = serde_json::from_str(output_of(&history.model, call)?).ok()?;
    let id = spawned["agent_id"].as_str().filter(|id| id.starts_with(HOST_PREFIX))?;
    let since = history.model.iter().rposition(|item| is_output_of(item, call))?;
    let is_reported = history.model[since..].iter().any(|item| reported_of(item).as_deref() == Some(id));
    if is_reported || RecordedChild::is_closed(history, id) {
        return None;
    }
    let words = text_in(output).map(shortened);
    let status = match success {
        true => AgentStatus::Completed(words),
        false => AgentStatus::Errored(words.unwrap_or_else(|| FAILED.to_owned())),
    };
    Some(subagent_notification(id, None, &json!(status)))
}

/// The child whose end a message reports.
fn reported_of(item: &ResponseItem) -> Option<String> {
    news_in(item)?["agent_path"].as_str().map(str::to_owned)
}

pub(super) fn news_in(item: &ResponseItem) -> Option<Value> {
    let fragment = fragments_of(item).into_iter().find(|told| told.name == "sub-agent notification")?;
    serde_json::from_str(fragment.text.lines().nth(1)?).ok()
}

/// The status that was reported to the model.
pub(super) fn reported_status(model: &[ResponseItem], id: &str) -> Option<AgentStatus> {
    let news = model.iter().rev().filter_map(news_in).find(|news| news["agent_path"] == id)?;
    let (kind, words) = news["status"].as_object()?.iter().next()?;
    let words = words.as_str().map(str::to_owned);
    match kind.as_str() {
        "completed" => Some(AgentStatus::Completed(words)),
        "errored" => Some(AgentStatus::Errored(words.unwrap_or_else(|| FAILED.to_owned()))),
        _ => None,
    }
}

fn call_of(operation: &OpenOperation) -> Option<&str> {
    operation.records.iter().find_map(|record| match record {
        OperationRecord::Proposed { kind: OperationType::Delegation, item_id, .. } => Some(item_id.as_str()),
        _ => None,
    })
}

fn output_of<'a>(model: &'a [ResponseItem], wanted: &str) -> Option<&'a str> {
    model.iter().rev().find_map(|item| match item {
        ResponseItem::FunctionCallOutput { call_id, output: FunctionCallOutputBody::Text(text) }
            if call_id == wanted =>
        {
            Some(text.as_str())
        }
        _ => None,
    })
}

/// The status that the host's report means.
pub fn result_status(params: &DelegationResultParams) -> AgentStatus {
    let words = params.final_message.clone().or_else(|| text_in(&params.output)).map(shortened);
    let or = |usual: &str| words.clone().unwrap_or_else(|| usual.to_owned());
    match params.status {
        DelegationStatus::Completed => AgentStatus::Completed(words),
        DelegationStatus::Failed => AgentStatus::Errored(or(FAILED)),
        DelegationStatus::Canceled => AgentStatus::Errored(or("the agent was canceled")),
        DelegationStatus::TimedOut => AgentStatus::Errored(or("the agent ran out of time")),
    }
}

/// Adds reports about children to the model's history, and returns their records.
pub fn reported_now(history: &mut ThreadHistory, reports: Vec<ResponseItem>) -> Vec<RolloutRecord> {
    let record = |item: &ResponseItem| RolloutRecord::ResponseItem { turn_id: None, item: item.clone() };
    let records = reports.iter().map(record).collect();
    history.model.extend(reports);
    records
}

#[cfg(test)]
mod tests;
