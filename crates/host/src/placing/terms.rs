//! The differences that a place makes to a thread: its folder, its sandbox, and what the model is told when the place was
//! made again.

use jiff::Timestamp;
use protocol::{ConfigWarningNotification, SandboxPolicy, ServerNotification, ThreadId};
use serde_json::{Value, json};
use store::StoredRecord;

use crate::messages::TurnPlace;
use crate::placing::launch::LaunchedPlace;
use crate::shared::HostShared;

/// The name of the entry of additional context.
const NEWS: &str = "workspace_restored";

#[derive(Debug)]
pub(crate) struct PlaceTerms {
    place: LaunchedPlace,
}

impl PlaceTerms {
    pub(crate) fn new(place: LaunchedPlace) -> Self {
        Self { place }
    }

    /// The params of an opening, for this place.
    pub(crate) fn adjust(&self, params: &mut Value) {
        params["cwd"] = json!(self.place.cwd);
        if self.place.sandbox.is_some() {
            // The runtime itself confines nothing there; that the place does it knows from its environment.
            params["sandbox"] = json!("danger-full-access");
        }
    }

    /// The params for an agent, whose folder is in its record: another one only if it was in a workspace that is no more.
    pub(crate) fn adjust_agent(&self, params: &mut Value, folder: Option<&str>) {
        let Some(params) = params.as_object_mut() else { return };
        match folder.and_then(|folder| self.place.moved(folder)) {
            Some(moved) => params.insert("cwd".to_owned(), json!(moved)),
            None => params.remove("cwd"),
        };
    }

    pub(crate) async fn warn(&self, shared: &HostShared, task: &ThreadId) {
        let Some(missing) = &self.place.missing_cwd else { return };
        let told = ConfigWarningNotification {
            summary: format!(
                "cwd: {missing} is not in the placement; the thread works in {}",
                self.place.cwd
            ),
            details: None,
            path: None,
            range: None,
        };
        shared.clients.placement_changed(task, ServerNotification::ConfigWarning(told)).await;
    }

    /// A turn that began after the place was made again was told of it.
    pub(crate) fn for_turns(&self, records: &[StoredRecord]) -> TurnPlace {
        let LaunchedPlace { sandbox, remade_at_ms, remade_from_ms, .. } = &self.place;
        let is_news = match (*remade_at_ms, last_turn_at_ms(records)) {
            (Some(remade), Some(last)) => last < remade,
            _ => false,
        };
        TurnPlace { sandbox: sandbox.clone(), news: is_news.then(|| news(*remade_from_ms)) }
    }
}

fn last_turn_at_ms(records: &[StoredRecord]) -> Option<i64> {
    let of_record = |record: &StoredRecord| {
        if !record.payload.contains("turnStarted") {
            return None;
        }
        let value: Value = serde_json::from_str(&record.payload).ok()?;
        value["atMs"].as_i64().filter(|_| value["kind"] == "turnStarted")
    };
    records.iter().rev().find_map(of_record)
}

fn news(from_ms: Option<i64>) -> String {
    let state = match from_ms.and_then(|ms| Timestamp::from_millisecond(ms).ok()) {
        Some(time) => format!("restored to its state of {time}; later changes are gone"),
        None => "made anew; all earlier changes in it are gone".to_owned(),
    };
    format!(
        "The machine this thread worked on was lost. Its workspace was {state}. Processes you had started no longer run. \
         Look at the files again before you rely on them."
    )
}

impl TurnPlace {
    /// Adds to an input what holds in this place.
    pub(crate) fn tell(&mut self, method: &str, params: &mut Value) {
        if method == "turn/start"
            && params["sandboxPolicy"].is_object()
            && let Some(sandbox) = &self.sandbox
        {
            params["sandboxPolicy"] = json!(sandbox);
        }
        if let Some(news) = self.news.take() {
            if !params["additionalContext"].is_object() {
                params["additionalContext"] = json!({});
            }
            params["additionalContext"][NEWS] = json!({ "kind": "application", "value": news });
        }
    }
}

/// The sandbox policy that this placement cannot enforce, by its name.
pub(crate) fn unholdable(policy: &SandboxPolicy) -> Option<&'static str> {
    match policy {
        SandboxPolicy::ReadOnly { .. } => Some("readOnly"),
        SandboxPolicy::WorkspaceWrite { .. } => Some("workspaceWrite"),
        SandboxPolicy::DangerFullAccess | SandboxPolicy::ExternalSandbox { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn news_are_told_once_and_the_sandbox_stays() {
        let sandbox =
            serde_json::from_value(json!({"type": "externalSandbox", "networkAccess": "restricted"}));
        let place = LaunchedPlace {
            cwd: "/workspace".to_owned(),
            missing_cwd: None,
            sandbox: sandbox.ok(),
            remade_at_ms: Some(1_759_655_700_000),
            remade_from_ms: Some(1_759_655_690_000),
            ..LaunchedPlace::default()
        };
        let terms = PlaceTerms::new(place.clone());
        let mut params = json!({"cwd": "/here", "sandbox": null});
        terms.adjust(&mut params);
        assert_eq!(params, json!({"cwd": "/workspace", "sandbox": "danger-full-access"}));
        let began = |at_ms: i64| {
            let payload =
                json!({"ordinal": 0, "kind": "turnStarted", "turnId": "t", "atMs": at_ms}).to_string();
            [StoredRecord { ordinal: 0, payload }]
        };
        assert_eq!(PlaceTerms::new(place.clone()).for_turns(&began(1_759_655_700_001)).news, None);
        assert_eq!(PlaceTerms::new(place).for_turns(&[]).news, None, "there is nothing it could rely on");
        let mut place = terms.for_turns(&began(1_759_655_695_000));
        let (mut first, mut second) = (json!({}), json!({"sandboxPolicy": {"type": "dangerFullAccess"}}));
        place.tell("turn/start", &mut first);
        place.tell("turn/start", &mut second);
        let said = first["additionalContext"][NEWS]["value"].as_str().expect("news");
        assert!(said.contains("2025-10-05"), "{said}");
        assert_eq!(
            second,
            json!({"sandboxPolicy": {"type": "externalSandbox", "networkAccess": "restricted"}})
        );
    }
}
