use engine::subagent_notification;
use protocol::{ContentItem, TurnError, TurnStatus};
use serde_json::json;

use super::super::testing::{PARENT, Story};
use super::*;

fn turn(id: &str) -> TurnId {
    TurnId::new(id)
}

fn completed(words: &str) -> AgentStatus {
    AgentStatus::Completed(Some(words.to_owned()))
}

/// Turns with these ends; `None` is still running.
fn life(turns: &[(&str, Option<TurnStatus>)]) -> ChildLife {
    let mut life = ChildLife::default();
    for (id, status) in turns {
        life.add(&RolloutRecord::TurnStarted { turn_id: turn(id), at_ms: 1 });
        let Some(status) = *status else { continue };
        let text = format!("words of {id}");
        let item =
            json!({"type": "agentMessage", "id": "m", "text": text, "phase": null, "memoryCitation": null});
        let item = serde_json::from_value(item).expect("an item");
        life.add(&RolloutRecord::ThreadItem { turn_id: turn(id), item });
        let error = (status == TurnStatus::Failed).then(|| TurnError {
            message: format!("problem of {id}"),
            codex_error_info: None,
            additional_details: None,
        });
        life.add(&RolloutRecord::TurnEnded { turn_id: turn(id), status, error, at_ms: 2 });
    }
    life
}

#[test]
fn the_first_end_and_those_of_turns_of_its_family_are_reported() {
    use TurnStatus::{Completed, Failed, Interrupted};
    for (turns, begun, expected, awaits) in [
        (&[][..], &[][..], &[][..], true),
        (&[("a", None)], &[], &[], true),
        (&[("a", Some(Completed))], &[], &["a"], false),
        (&[("a", Some(Failed))], &[], &["a"], false),
        // An interrupted agent may continue, with a message from any client.
        (&[("a", Some(Interrupted))], &[], &[], true),
        (&[("a", Some(Interrupted)), ("b", Some(Completed))], &[], &["b"], false),
        // The end of a turn that a client started is not reported.
        (&[("a", Some(Completed)), ("b", Some(Completed))], &[], &["a"], false),
        (&[("a", Some(Completed)), ("b", None)], &[], &["a"], false),
        (&[("a", Some(Completed)), ("b", Some(Completed))], &["b"], &["a", "b"], false),
        (&[("a", Some(Completed)), ("b", Some(Interrupted))], &["b"], &["a"], true),
        (&[("a", Some(Completed)), ("b", None)], &["b"], &["a"], true),
        // A message that joined a turn makes no second end.
        (&[("a", Some(Completed))], &["a"], &["a"], false),
    ] {
        let life = life(turns);
        let begun: HashSet<TurnId> = begun.iter().copied().map(turn).collect();
        let (news, awaited) = life.news(&begun);
        let news: Vec<&str> = news.iter().map(|(turn, _)| turn.as_str()).collect();
        assert_eq!((news.as_slice(), awaited), (expected, awaits), "{turns:?} {begun:?}");
    }
}

#[test]
fn an_end_has_the_last_words_of_its_own_turn() {
    let told = life(&[("a", Some(TurnStatus::Completed)), ("b", Some(TurnStatus::Failed))]).ends;
    let failed = AgentStatus::Errored("problem of b".to_owned());
    assert_eq!(told, [(turn("a"), completed("words of a")), (turn("b"), failed)]);
    let mut silent = life(&[("a", Some(TurnStatus::Interrupted)), ("b", None)]);
    let (turn_id, status, error) = (turn("b"), TurnStatus::Completed, None);
    silent.add(&RolloutRecord::TurnEnded { turn_id, status, error, at_ms: 3 });
    assert_eq!(silent.ends[1], (turn("b"), AgentStatus::Completed(None)));
}

fn page(story: &Story) -> AgentRecord {
    let mut page = AgentRecord::of(&ThreadId::new(PARENT));
    story.records().iter().zip(1..).for_each(|(record, at_ms)| page.add(at_ms, record));
    page
}

#[test]
fn reports_are_matched_by_turn() {
    let told = |id: &str, turn: Option<&TurnId>| {
        let item = subagent_notification(id, turn, &json!(completed("x")));
        RolloutRecord::ResponseItem { turn_id: None, item }
    };
    let page = page(&Story::new().with(told("a", Some(&turn("t1")))).with(told("b", None)));
    let has = |agent: &str, id: &str, words: &str| {
        page.account(agent, &Arc::default()).has(&turn(id), &completed(words))
    };
    assert!(has("a", "t1", "x"));
    assert!(!has("a", "t2", "x"), "the same words, of another end");
    // A record without the turn's id is matched by its text.
    assert!(has("b", "t3", "x") && !has("b", "t3", "y"));
    assert!(!has("c", "t1", "x"));
}

#[test]
fn ends_missing_in_the_parents_record_are_reported() {
    let turns = [("a", Some(TurnStatus::Completed)), ("b", Some(TurnStatus::Completed)), ("c", None)];
    let tells = |story: Story, id: &str| {
        let item = subagent_notification("x", Some(&turn(id)), &json!(completed(&format!("words of {id}"))));
        story.with(RolloutRecord::ResponseItem { turn_id: None, item })
    };
    let told = |ids: &[&str]| page(&ids.iter().fold(Story::new(), |story, id| tells(story, id)));
    let begun = Arc::new(HashSet::from([turn("b"), turn("c")]));
    for (known, owed) in [(&[][..], &["a", "b"][..]), (&["a"], &["b"]), (&["b"], &["a"]), (&["a", "b"], &[])]
    {
        let (heard, untold) = told(known).account("x", &begun).settle(&life(&turns));
        assert_eq!(heard, ReportedEnd { told: Some(turn("b")), awaits: true });
        let untold: Vec<&str> = untold.iter().map(|(turn, _)| turn.as_str()).collect();
        assert_eq!(untold, owed, "{known:?}");
    }
}

/// A text that imitates the runtime's report does not count as one.
#[test]
fn only_the_runtime_reports() {
    let ResponseItem::Message { id, content, .. } =
        subagent_notification("a", Some(&turn("t1")), &json!(completed("x")))
    else {
        panic!("a message")
    };
    let record = |role: &str, content: Vec<ContentItem>| {
        let (id, role) = (id.clone(), role.to_owned());
        let item = ResponseItem::Message { id, role, content, end_turn: None, phase: None };
        RolloutRecord::ResponseItem { turn_id: None, item }
    };
    let other = ContentItem::InputText { text: "<permissions instructions>".to_owned() };
    let story = Story::new()
        .with(record("user", content.clone()))
        .with(record("assistant", content))
        .with(record("developer", vec![other]));
    assert!(page(&story).told.is_empty());
}

#[test]
fn messages_to_an_agent_are_matched_by_turn() {
    let story = Story::new()
        .answers("c1", json!({"submission_id": "t1"}).to_string())
        .answers("c2", "{\"submission_id\"".to_owned())
        .answers("c3", json!({"agent_id": "a", "submission_id": "t2"}).to_string());
    assert_eq!(page(&story).begun, HashSet::from([turn("t1")]));
}

#[test]
fn the_last_successful_call_decides_who_is_open() {
    const DONE: (&str, &str) = ("completed", "completed");
    let story = Story::new().spawns("c1", "a").uses("closeAgent", "c2", "b", DONE).end();
    let opened = |story: &Story, id: &str| page(story).opened.get(id).map(|(_, opens)| *opens);
    let all = |story: &Story| ["a", "b", "c"].map(|id| opened(story, id));
    assert_eq!(all(&story), [Some(true), Some(false), None]);
    let later = story
        .turn("u2")
        .uses("closeAgent", "c3", "a", DONE)
        .uses("resumeAgent", "c4", "b", ("failed", "notFound"))
        .uses_from("another", "closeAgent", ("c5", "c"), DONE)
        .uses("wait", "c6", "c", DONE);
    assert_eq!(all(&later), [Some(false), Some(false), None]);
    let again = later.uses("resumeAgent", "c7", "b", ("completed", "pendingInit"));
    assert_eq!(all(&again), [Some(false), Some(true), None]);
}
