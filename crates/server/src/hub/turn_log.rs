//! Log lines about turns: ids and how they ended, and nothing of what was said in them.

use protocol::{NotificationMethod, ServerNotification, ThreadId, TurnCompleted, TurnStarted, TurnSuspended};
use serde_json::Value;
use serde_json::value::RawValue;
use tracing::Level;

/// A notification of a runtime in this process.
pub(super) fn note(thread: &ThreadId, notification: &ServerNotification) {
    match notification {
        ServerNotification::TurnStarted(told) => begun(thread, told.turn.id.as_str()),
        ServerNotification::TurnCompleted(told) => {
            ended(thread, told.turn.id.as_str(), &format!("{:?}", told.turn.status));
        }
        ServerNotification::TurnSuspended(told) => ended(thread, told.turn_id.as_str(), "Suspended"),
        _ => {}
    }
}

/// A notification that a host passes on. Read only where somebody logs.
pub(super) fn note_relayed(thread: &ThreadId, method: &str, params: &RawValue) {
    let is_told = matches!(method, TurnStarted::METHOD | TurnCompleted::METHOD | TurnSuspended::METHOD);
    if !is_told || !tracing::enabled!(Level::INFO) {
        return;
    }
    let told: Value = serde_json::from_str(params.get()).unwrap_or_default();
    let turn = told["turn"]["id"].as_str().or(told["turnId"].as_str()).unwrap_or_default();
    match method {
        TurnStarted::METHOD => begun(thread, turn),
        TurnSuspended::METHOD => ended(thread, turn, "Suspended"),
        _ => {
            let status = told["turn"]["status"].as_str().unwrap_or_default();
            let (first, rest) = status.split_at(status.len().min(1));
            ended(thread, turn, &format!("{}{rest}", first.to_uppercase()));
        }
    }
}

fn begun(thread: &ThreadId, turn: &str) {
    tracing::info!(%thread, turn, "a turn began");
}

fn ended(thread: &ThreadId, turn: &str, status: &str) {
    tracing::info!(%thread, turn, status, "a turn ended");
}
