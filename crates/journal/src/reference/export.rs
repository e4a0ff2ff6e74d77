//! A thread of ours as a rollout that the reference can resume.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use protocol::{
    ItemId, ResponseItem, RolloutRecord, SessionMeta, ThreadItem, ThreadTokenUsage, TokenUsageBreakdown,
    TurnError, TurnId, TurnStatus,
};
use serde_json::{Value, json};

use super::export_items::events_of;
use super::meta::ReferenceMeta;
use crate::error::JournalError;
use crate::record::{JournalEntry, Record};
use crate::time;

/// A rollout that is ready to be written.
#[derive(Debug)]
pub struct ExportedRollout {
    /// The path that the reference expects, below its home.
    pub place: PathBuf,
    /// All of its lines.
    pub text: Vec<u8>,
    /// Items that the reference has no form for. The model's history has their content.
    pub left_out: usize,
}

/// A thread's records in the reference's format, without rolled-back turns. The model's context has no `turn_context`
/// line: the reference sends its own again.
pub fn export_rollout(entries: &[JournalEntry]) -> Result<ExportedRollout, JournalError> {
    let meta = entries.iter().find_map(|entry| match &entry.record {
        Record::Known(RolloutRecord::SessionMeta { meta }) => Some(&**meta),
        _ => None,
    });
    let Some(meta) = meta else { return Err(JournalError::Headless { path: PathBuf::new() }) };
    let mut export = RolloutExport { latest: latest_items(entries), ..RolloutExport::default() };
    export.add(meta.created_at_ms, None, "session_meta", json!(ReferenceMeta::of(meta)));
    for entry in entries {
        if let Record::Known(record) = &entry.record {
            export.record(entry.at_ms, record);
        }
    }
    let mut text = Vec::new();
    for line in &export.lines {
        serde_json::to_writer(&mut text, &line.json)?;
        text.push(b'\n');
    }
    Ok(ExportedRollout { place: place_of(meta), text, left_out: export.left_out })
}

fn place_of(meta: &SessionMeta) -> PathBuf {
    let (year, month, day) = time::utc_date(meta.created_at_ms);
    let at = time::format_ms(meta.created_at_ms);
    let at = at.get(..19).unwrap_or(&at).replace(':', "-");
    PathBuf::from(format!("sessions/{year:04}/{month:02}/{day:02}/rollout-{at}-{}.jsonl", meta.thread_id))
}

/// Items are recorded several times while they run; the last version counts, at the position of the first.
fn latest_items(entries: &[JournalEntry]) -> HashMap<(TurnId, ItemId), ThreadItem> {
    let items = entries.iter().filter_map(|entry| match &entry.record {
        Record::Known(RolloutRecord::ThreadItem { turn_id, item }) => {
            Some(((turn_id.clone(), item.id().clone()), item.clone()))
        }
        _ => None,
    });
    items.collect()
}

#[derive(Default)]
struct RolloutExport {
    lines: Vec<ExportedLine>,
    latest: HashMap<(TurnId, ItemId), ThreadItem>,
    seen: HashSet<(TurnId, ItemId)>,
    left_out: usize,
}

struct ExportedLine {
    turn_id: Option<TurnId>,
    json: Value,
}

impl RolloutExport {
    fn add(&mut self, at_ms: i64, turn_id: Option<&TurnId>, kind: &str, payload: Value) {
        let mut json = json!({ "timestamp": time::format_ms(at_ms), "type": kind });
        json["payload"] = payload;
        self.lines.push(ExportedLine { turn_id: turn_id.cloned(), json });
    }

    fn event(&mut self, at_ms: i64, turn_id: &TurnId, payload: Value) {
        self.add(at_ms, Some(turn_id), "event_msg", payload);
    }

    fn record(&mut self, at_ms: i64, record: &RolloutRecord) {
        match record {
            RolloutRecord::TurnStarted { turn_id, at_ms } => {
                let started = json!({ "type": "task_started", "turn_id": turn_id, "model_context_window": null,
                    "collaboration_mode_kind": "default" });
                self.event(*at_ms, turn_id, started);
            }
            RolloutRecord::ResponseItem { turn_id, item } => {
                self.add(at_ms, turn_id.as_ref(), "response_item", response_item(item));
            }
            RolloutRecord::ThreadItem { turn_id, item } => {
                let key = (turn_id.clone(), item.id().clone());
                if self.seen.insert(key.clone()) {
                    let latest = self.latest.remove(&key).unwrap_or_else(|| item.clone());
                    let events = events_of(turn_id, &latest);
                    self.left_out += usize::from(events.is_empty());
                    events.into_iter().for_each(|event| self.event(at_ms, turn_id, event));
                }
            }
            RolloutRecord::Compacted { turn_id, summary, replacement } => {
                let replacement: Vec<Value> = replacement.iter().map(response_item).collect();
                let compacted = json!({ "message": summary, "replacement_history": replacement });
                self.add(at_ms, Some(turn_id), "compacted", compacted);
            }
            RolloutRecord::TokenUsage { turn_id, usage } => self.event(at_ms, turn_id, token_count(usage)),
            RolloutRecord::RolledBack { num_turns } => self.roll_back(*num_turns),
            RolloutRecord::TurnEnded { turn_id, status, error, at_ms } => {
                self.end(turn_id, *status, error.as_ref(), *at_ms);
            }
            RolloutRecord::SessionMeta { .. }
            | RolloutRecord::TurnContext { .. }
            | RolloutRecord::Metadata { .. }
            | RolloutRecord::Operation { .. } => {}
        }
    }

    fn end(&mut self, turn_id: &TurnId, status: TurnStatus, error: Option<&TurnError>, at_ms: i64) {
        if let Some(error) = error.filter(|_| status == TurnStatus::Failed) {
            let failed = json!({ "type": "error", "message": error.message, "codex_error_info": null });
            self.event(at_ms, turn_id, failed);
        }
        let ended = match status {
            TurnStatus::Completed | TurnStatus::Failed => {
                json!({ "type": "task_complete", "turn_id": turn_id, "last_agent_message": null })
            }
            TurnStatus::Interrupted | TurnStatus::InProgress => {
                json!({ "type": "turn_aborted", "turn_id": turn_id, "reason": "interrupted" })
            }
        };
        self.event(at_ms, turn_id, ended);
    }

    /// Drops the last turns and everything since the first of them started.
    fn roll_back(&mut self, num_turns: u32) {
        for _ in 0..num_turns {
            let Some(last) = self.lines.iter().rev().find_map(|line| line.turn_id.clone()) else { return };
            let first = self.lines.iter().position(|line| line.turn_id.as_ref() == Some(&last));
            self.lines.truncate(first.unwrap_or(self.lines.len()));
        }
    }
}

/// The provider's ids are left out, except for those of images.
fn response_item(item: &ResponseItem) -> Value {
    let mut json = json!(item);
    let is_image = matches!(item, ResponseItem::ImageGenerationCall { .. });
    if let (Some(members), false) = (json.as_object_mut(), is_image) {
        members.remove("id");
    }
    json
}

fn token_count(usage: &ThreadTokenUsage) -> Value {
    let tokens = |tokens: &TokenUsageBreakdown| {
        json!({
            "input_tokens": tokens.input_tokens,
            "cached_input_tokens": tokens.cached_input_tokens,
            "output_tokens": tokens.output_tokens,
            "reasoning_output_tokens": tokens.reasoning_output_tokens,
            "total_tokens": tokens.total_tokens,
        })
    };
    json!({
        "type": "token_count",
        "info": {
            "total_token_usage": tokens(&usage.total),
            "last_token_usage": tokens(&usage.last),
            "model_context_window": usage.model_context_window,
        },
        "rate_limits": null,
    })
}
