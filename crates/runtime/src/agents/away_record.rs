//! Children that the host runs, as the record of their parent knows them.

use engine::{fragments_of, subagent_notification};
use journal::{History, OpenOperation};
use protocol::{
    DynamicToolCallOutputContentItem, FunctionCallOutputBody, OperationId, OperationRecord, OperationType,
    ResponseItem, RolloutRecord,
};
use serde_json::{Value, json};
use tools::AgentStatus;

use super::adopted::Adopted;
use super::late_news::told_now;
use crate::recover::{is_output, texts};

/// Begins the ids of children that the host runs: the rest is the host's own name for them.
pub(super) const HOST_PREFIX: &str = "host:";

/// A child's last words are data, and only so much of them.
const MOST_WORDS: usize = 40_000;

/// Said of one that failed without a word.
pub(super) const FAILED: &str = "the agent failed";

pub(super) fn words_in(output: &[DynamicToolCallOutputContentItem]) -> Option<String> {
    Some(texts(output)).filter(|words| !words.is_empty())
}

pub(super) fn shortened(mut words: String) -> String {
    if words.len() > MOST_WORDS {
        let cut = words.floor_char_boundary(MOST_WORDS);
        let left_out = words.len() - cut;
        words.truncate(cut);
        words.push_str(&format!("… ({left_out} more bytes were left out)"));
    }
    words
}

/// A child that the host runs: its call has its output, and its operation goes on.
pub(crate) fn is_away(operation: &OpenOperation, model: &[ResponseItem]) -> bool {
    let is_begun = matches!(operation.records.last(), Some(OperationRecord::Started { .. }));
    is_begun && call_of(operation).is_some_and(|call| output_of(model, call).is_some())
}

pub(super) fn still_away(history: &History, id: &OperationId) -> bool {
    let is_it = |operation: &&OpenOperation| operation.operation_id == *id;
    history.operations.iter().find(is_it).is_some_and(|operation| is_away(operation, &history.model))
}

/// What a host was told is known, and the model was not told before the process stopped.
pub(crate) fn tell_late(history: &mut History) -> Vec<RolloutRecord> {
    let late: Vec<ResponseItem> =
        history.operations.iter().filter_map(|operation| untold_end(history, operation)).collect();
    // Whichever turn began it: it is told now.
    told_now(history, late)
}

/// The end of a child that the host ran, if nobody told the model.
fn untold_end(history: &History, operation: &OpenOperation) -> Option<ResponseItem> {
    let Some(OperationRecord::Finished { success, output, .. }) = operation.records.last() else {
        return None;
    };
    let call = call_of(operation)?;
    let spawned: Value = serde_json::from_str(output_of(&history.model, call)?).ok()?;
    let id = spawned["agent_id"].as_str().filter(|id| id.starts_with(HOST_PREFIX))?;
    let since = history.model.iter().rposition(|item| is_output(item, call))?;
    let is_told = history.model[since..].iter().any(|item| told_of(item).as_deref() == Some(id));
    if is_told || Adopted::is_closed(history, id) {
        return None;
    }
    let words = words_in(output).map(shortened);
    let status = match success {
        true => AgentStatus::Completed(words),
        false => AgentStatus::Errored(words.unwrap_or_else(|| FAILED.to_owned())),
    };
    Some(subagent_notification(id, None, &json!(status)))
}

/// Whose end a message tells.
fn told_of(item: &ResponseItem) -> Option<String> {
    news_in(item)?["agent_path"].as_str().map(str::to_owned)
}

pub(super) fn news_in(item: &ResponseItem) -> Option<Value> {
    let fragment = fragments_of(item).into_iter().find(|told| told.name == "sub-agent notification")?;
    serde_json::from_str(fragment.text.lines().nth(1)?).ok()
}

/// How the model was told that a child ended.
pub(super) fn told_status(model: &[ResponseItem], id: &str) -> Option<AgentStatus> {
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

#[cfg(test)]
mod tests;
