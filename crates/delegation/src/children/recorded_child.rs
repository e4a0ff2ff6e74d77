//! The children of a thread, from its own record.

use std::collections::BTreeMap;

use journal::ThreadHistory;
use protocol::{
    CollabAgentState, CollabAgentStatus, CollabAgentTool, CollabAgentToolCallStatus, FunctionCallOutputBody,
    ItemId, OperationId, ResponseItem, ThreadId, ThreadItem, TurnId,
};
use serde_json::Value;
use tools::AgentStatus;

use super::at_host::{HOST_PREFIX, reported_status, still_away};
use super::ledger::{ChildAccount, ReportedEnd};
use super::status::depth_of;

/// A child that is open according to its parent's record.
#[derive(Debug)]
pub struct RecordedChild {
    pub id: String,
    pub nickname: Option<String>,
    /// For a child at the host: its operation, and whether that is still running.
    pub away: Option<(OperationId, bool)>,
    /// How a child at the host ended.
    pub ended: Option<AgentStatus>,
    pub is_open: bool,
    /// For a child whose own record can be read.
    pub heard: Option<ReportedEnd>,
    /// For a child without its own record: the parent's knowledge.
    pub account: Option<ChildAccount>,
}

impl RecordedChild {
    /// The children that this thread spawned or opened again, and did not close.
    #[cfg(test)]
    fn of(history: &ThreadHistory) -> Vec<Self> {
        Self::all(history).into_iter().filter(|(_, is_open)| *is_open).map(|(child, _)| child).collect()
    }

    /// The children that this thread spawned or opened again, and did not close; plus closed ones that matter: the host
    /// may still report about its own, and an ancestor may have opened another again.
    pub fn known(history: &ThreadHistory) -> Vec<Self> {
        let is_agent = history.meta.as_ref().is_some_and(|meta| depth_of(meta) > 0);
        let known = Self::all(history).into_iter();
        let wanted = known.filter(|(child, is_open)| *is_open || is_agent || child.away.is_some());
        wanted.map(|(child, is_open)| Self { is_open, ..child }).collect()
    }

    pub fn is_away(&self) -> bool {
        self.away.is_some()
    }

    /// All children that this thread spawned, each with whether it is open.
    fn all(history: &ThreadHistory) -> Vec<(Self, bool)> {
        let mut children: Vec<(Self, bool)> = Vec::new();
        for (turn, call) in calls_in(history) {
            for child in call.receivers {
                let known = children.iter_mut().find(|(known, _)| known.id == child.as_str());
                match (call.tool, known) {
                    (CollabAgentTool::SpawnAgent, None) if call.is_done(child) => {
                        let place = (call.sender, turn, call.id.as_str());
                        children.push((Self::found(history, place, child), true));
                    }
                    // The host reused the id of an ended child.
                    (CollabAgentTool::SpawnAgent, Some(known)) if call.is_done(child) => {
                        let place = (call.sender, turn, call.id.as_str());
                        *known = (Self::found(history, place, child), true);
                    }
                    (CollabAgentTool::ResumeAgent, Some(known)) if call.is_done(child) => known.1 = true,
                    (CollabAgentTool::CloseAgent, Some(known)) if call.is_done(child) => known.1 = false,
                    _ => {}
                }
            }
        }
        children
    }

    /// Whether this thread closed such a child, and has not opened it since.
    pub fn is_closed(history: &ThreadHistory, id: &str) -> bool {
        Self::all(history).iter().any(|(child, is_open)| child.id == id && !is_open)
    }

    fn found(history: &ThreadHistory, call: (&ThreadId, &TurnId, &str), child: &ThreadId) -> Self {
        let (thread, turn, call_id) = call;
        let away = child.as_str().starts_with(HOST_PREFIX).then(|| {
            let operation = engine::operation_of(thread, turn, call_id);
            let goes_on = still_away(history, &operation);
            (operation, goes_on)
        });
        let ended = away.as_ref().and_then(|_| reported_status(&history.model, child.as_str()));
        Self {
            id: child.to_string(),
            nickname: nickname_in(&history.model, call_id),
            away,
            ended,
            is_open: true,
            heard: None,
            account: None,
        }
    }
}

/// One call of an agent tool.
pub(super) struct AgentToolCall<'a> {
    id: &'a ItemId,
    pub(super) sender: &'a ThreadId,
    pub(super) tool: CollabAgentTool,
    pub(super) receivers: &'a [ThreadId],
    status: CollabAgentToolCallStatus,
    states: &'a BTreeMap<String, CollabAgentState>,
}

impl<'a> AgentToolCall<'a> {
    pub(super) fn of(item: &'a ThreadItem) -> Option<Self> {
        match item {
            ThreadItem::CollabAgentToolCall {
                id,
                tool,
                status,
                sender_thread_id: sender,
                receiver_thread_ids: receivers,
                agents_states: states,
                ..
            } => Some(Self { id, sender, tool: *tool, receivers, status: *status, states }),
            _ => None,
        }
    }

    /// Whether the call succeeded. One that is shown as failed only because of the agent's status did.
    pub(super) fn is_done(&self, child: &ThreadId) -> bool {
        let stood = self.states.get(child.as_str()).map(|state| state.status);
        match self.status {
            CollabAgentToolCallStatus::Completed => true,
            CollabAgentToolCallStatus::Failed => stood == Some(CollabAgentStatus::Errored),
            CollabAgentToolCallStatus::InProgress => false,
        }
    }
}

/// This thread's own calls, oldest first: a fork's history contains those of its source, whose children stay there.
fn calls_in(history: &ThreadHistory) -> impl Iterator<Item = (&TurnId, AgentToolCall<'_>)> {
    let own = history.meta.as_ref().map(|meta| &meta.thread_id);
    let items = history.turns.iter().flat_map(|turn| turn.items.iter().map(move |item| (&turn.id, item)));
    let calls = items.filter_map(|(turn, item)| Some((turn, AgentToolCall::of(item)?)));
    calls.filter(move |(_, call)| own.is_none_or(|own| own == call.sender))
}

/// The nickname under which the model knows its child.
fn nickname_in(model: &[ResponseItem], wanted: &str) -> Option<String> {
    let output = model.iter().find_map(|item| match item {
        ResponseItem::FunctionCallOutput { call_id, output: FunctionCallOutputBody::Text(text) }
            if call_id == wanted =>
        {
            Some(text)
        }
        _ => None,
    })?;
    let told: Value = serde_json::from_str(output).ok()?;
    told["nickname"].as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{PARENT, Story};
    use super::*;

    fn open(story: &Story) -> Vec<(String, Option<String>)> {
        let children = RecordedChild::of(&story.history()).into_iter();
        children.map(|child| (child.id, child.nickname)).collect()
    }

    fn named(ids: &[&str]) -> Vec<(String, Option<String>)> {
        ids.iter().map(|id| ((*id).to_owned(), Some(format!("{id} by name")))).collect()
    }

    const DONE: (&str, &str) = ("completed", "completed");

    #[test]
    fn spawned_children_are_listed_until_they_are_closed() {
        let story = Story::new().spawns("c1", "a").spawns("c2", "b").end();
        assert_eq!(open(&story), named(&["a", "b"]));
        let closed = story.turn("u2").uses("closeAgent", "c3", "a", DONE);
        assert_eq!(open(&closed), named(&["b"]));
        let again = closed.uses("resumeAgent", "c4", "a", ("completed", "pendingInit"));
        assert_eq!(open(&again), named(&["a", "b"]), "with the name it had");
        assert_eq!(open(&again.uses("closeAgent", "c5", "a", DONE)), named(&["b"]));
    }

    #[test]
    fn one_that_had_failed_is_closed_though_the_call_is_shown_as_failed() {
        let story = Story::new().spawns("c1", "a");
        let closed = story.clone().uses("closeAgent", "c2", "a", ("failed", "errored"));
        assert!(open(&closed).is_empty());
        assert!(
            RecordedChild::is_closed(&closed.history(), "a")
                && !RecordedChild::is_closed(&story.history(), "a")
        );
    }

    #[test]
    fn failed_calls_change_nothing() {
        let story = Story::new().spawns("c1", "a");
        for (tool, stood) in [
            ("closeAgent", ("failed", "notFound")),
            ("closeAgent", ("failed", "")),
            ("closeAgent", ("inProgress", "")),
            ("sendInput", ("completed", "running")),
            ("wait", DONE),
        ] {
            let story = story.clone().uses(tool, "c2", "a", stood);
            assert_eq!(open(&story), named(&["a"]), "{tool} {stood:?}");
        }
        let failed = Story::new().uses("spawnAgent", "c1", "a", ("failed", ""));
        assert!(open(&failed).is_empty());
        let closed = story.uses("closeAgent", "c2", "a", DONE);
        assert!(open(&closed.uses("resumeAgent", "c3", "a", ("failed", "shutdown"))).is_empty());
    }

    #[test]
    fn children_of_children_and_of_others_are_not_its_own() {
        let story = Story::new().spawns("c1", "a").uses("resumeAgent", "c2", "below-a", DONE);
        assert_eq!(open(&story), named(&["a"]));
        // Like in a fork: the history is another thread's, and so are its children.
        let copied = Story::new().uses_from("another", "spawnAgent", ("c1", "a"), DONE);
        assert!(open(&copied).is_empty());
    }

    fn away(story: &Story) -> Vec<(String, bool)> {
        let children = RecordedChild::of(&story.history()).into_iter();
        let away = children.map(|child| child.away.expect("at the host"));
        away.map(|(operation, goes_on)| (operation.to_string(), goes_on)).collect()
    }

    #[test]
    fn one_at_the_host_is_found_with_its_operation() {
        let story = Story::new().spawns("c1", "host:x");
        let operation = format!("{PARENT}:u1:c1");
        assert_eq!(away(&story), [(operation.clone(), true)]);
        let later = story.clone().end().turn("u2").end();
        assert_eq!(away(&later), [(operation.clone(), true)], "it goes on after its turn");
        let ended = later.finishes_as(OperationId::new(operation.as_str()), true, Some("found it"));
        assert_eq!(away(&ended), [(operation.clone(), false)]);
        let asked_for = story.end().turn("u2").uses("resumeAgent", "c2", "host:x", ("completed", "running"));
        assert_eq!(away(&asked_for), [(operation, true)], "one that is open stays what it was");
    }

    #[test]
    fn the_name_of_one_that_was_closed_can_be_given_again() {
        let story = Story::new().spawns("c1", "host:x").finishes("c1", false, Some("closed"));
        let story = story.uses("closeAgent", "c2", "host:x", ("completed", "running")).end();
        assert!(away(&story).is_empty());
        let again = story.turn("u2").spawns("c3", "host:x");
        assert_eq!(away(&again), [(format!("{PARENT}:u2:c3"), true)]);
    }

    #[test]
    fn without_the_output_there_is_no_nickname() {
        let story = Story::new().uses("spawnAgent", "c1", "a", ("completed", "pendingInit"));
        assert_eq!(open(&story), [("a".to_owned(), None)]);
        assert_eq!(open(&story.answers("c1", "no JSON".to_owned())), [("a".to_owned(), None)]);
    }
}
