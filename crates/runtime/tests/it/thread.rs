//! Commands to one thread, and their results.

use std::fs;
use std::sync::Arc;

use engine::{ThreadSeed, UserText};
use oarlock_runtime::ThreadError;
use protocol::{ThreadId, ThreadStatus, TurnId, TurnStatus};
use serde_json::json;

use crate::support::THREAD;
use crate::thread_stage::{FixedSteps, ThreadStage, seed, turn};

#[tokio::test]
async fn a_turn_is_in_the_record_after_it_ran() {
    let root = tempfile::tempdir().expect("a folder");
    let script = json!([
        { "call": { "name": "update_plan", "arguments": {}, "callId": "c1" } },
        { "call": { "name": "lookup", "arguments": { "id": 7 }, "callId": "c2" } },
        { "text": "hello" },
        { "expect": { "lastUserContains": "again" }, "text": "once more" }
    ]);
    let stage = ThreadStage::new(root.path(), &script);
    let thread = stage.fresh();
    assert_eq!(thread.start_turn(turn("u1", "hi")).await, Ok(TurnId::new("u1")));
    stage.notified("turn/completed", 1).await;
    assert_eq!(thread.status(), ThreadStatus::Idle);
    thread.close().await.expect("closed");
    assert!(matches!(thread.interrupt(None).await, Err(ThreadError::Gone(_))));

    let thread = stage.resumed();
    thread.start_turn(turn("u2", "again")).await.expect("accepted");
    stage.notified("turn/completed", 2).await;
    stage.script.finish().expect("every step was used");
    let turns = stage.turns();
    assert_eq!(turns.iter().map(|turn| turn.status).collect::<Vec<_>>(), [TurnStatus::Completed; 2]);
    // The user's message, the client's tool and the answer; a plan is not an item.
    assert_eq!(turns[0].items.len(), 3, "{:?}", turns[0].items);
    let requests = stage.script.requests();
    let last = serde_json::to_string(&requests[3].input).expect("serialises");
    for text in ["hi", "update_plan done", "looked up 7", "hello", "again"] {
        assert!(last.contains(text), "{text} is missing from {last}");
    }
}

#[tokio::test]
async fn an_accepted_prompt_is_on_the_disk_and_an_interrupt_ends_the_turn() {
    let root = tempfile::tempdir().expect("a folder");
    let stage = ThreadStage::new(root.path(), &json!([{ "events": [], "hang": true }]));
    let thread = stage.fresh();
    thread.start_turn(turn("u1", "hi")).await.expect("accepted");
    let stored = stage.turns();
    assert_eq!((stored.len(), stored[0].items.len()), (1, 1), "the prompt is stored once it is accepted");
    assert_eq!(
        thread.start_turn(turn("u2", "and this")).await,
        Ok(TurnId::new("u1")),
        "it joins the running turn"
    );
    let other = thread.steer(TurnId::new("u9"), UserText::typed("x")).await;
    let (expected, found) = (TurnId::new("u9"), TurnId::new("u1"));
    assert_eq!(other, Err(ThreadError::OtherTurn { expected, found }));
    let other = thread.interrupt(Some(TurnId::new("u9"))).await;
    assert!(matches!(other, Err(ThreadError::OtherTurn { .. })), "{other:?}");
    thread.interrupt(None).await.expect("interrupted");
    stage.notified("turn/completed", 1).await;
    let turns = stage.turns();
    assert_eq!(turns[0].status, TurnStatus::Interrupted);
    let shown = serde_json::to_string(&turns[0].items).expect("serialises");
    assert!(shown.contains("and this"), "what was accepted is not lost: {shown}");
    assert_eq!(thread.interrupt(None).await, Err(ThreadError::NothingToInterrupt));
}

#[tokio::test]
async fn a_lost_record_fails_the_turn_and_not_the_process() {
    let root = tempfile::tempdir().expect("a folder");
    let stage = ThreadStage::new(root.path(), &json!([{ "text": "one" }]));
    let thread = stage.fresh();
    thread.start_turn(turn("u1", "hi")).await.expect("accepted");
    stage.notified("turn/completed", 1).await;
    let path = stage.store.summary(thread.id()).expect("listed").path;
    fs::remove_file(path).expect("removed");
    let before = stage.methods().len();
    let refused = thread.start_turn(turn("u2", "again")).await;
    assert!(matches!(&refused, Err(ThreadError::Storage(_))), "{refused:?}");
    assert_eq!(stage.methods().len(), before, "of a turn that was not accepted nothing is told");
    assert_eq!(thread.status(), ThreadStatus::Idle);
}

#[tokio::test]
async fn a_record_lost_in_the_middle_of_a_turn_fails_it() {
    let root = tempfile::tempdir().expect("a folder");
    let stage = ThreadStage::new(root.path(), &json!([{ "events": [], "hang": true }]));
    let thread = stage.fresh();
    thread.start_turn(turn("u1", "hi")).await.expect("accepted");
    stage.notified("turn/started", 1).await;
    fs::remove_file(stage.store.summary(thread.id()).expect("listed").path).expect("removed");
    let refused = thread.steer(TurnId::new("u1"), UserText::typed("more")).await;
    assert!(matches!(&refused, Err(ThreadError::Storage(_))), "{refused:?}");
    stage.notified("turn/completed", 1).await;
    assert_eq!(thread.status(), ThreadStatus::SystemError);
    assert!(stage.methods().contains(&"error".to_owned()));
}

#[tokio::test]
async fn a_tool_that_panics_is_a_failed_call_and_the_turn_goes_on() {
    let root = tempfile::tempdir().expect("a folder");
    let script = json!([
        { "call": { "name": "update_plan", "arguments": {}, "callId": "bad" } },
        { "expect": { "lastOutputContains": "defect in this program" }, "text": "noted" }
    ]);
    let stage = ThreadStage::new(root.path(), &script);
    let thread = stage.fresh();
    thread.start_turn(turn("u1", "hi")).await.expect("accepted");
    stage.notified("turn/completed", 1).await;
    stage.script.finish().expect("the model was told");
    assert_eq!(stage.turns()[0].status, TurnStatus::Completed);
}

#[tokio::test]
async fn a_panic_marks_its_own_thread_and_nothing_else() {
    let root = tempfile::tempdir().expect("a folder");
    let stage = ThreadStage::new(root.path(), &json!([{ "text": "fine" }]));
    let id = ThreadId::new(THREAD.replace("0001", "0002"));
    let broken = stage.open(ThreadSeed { id, ..seed() }, None, Arc::new(FixedSteps { panics: true }));
    let gone = broken.start_turn(turn("u1", "hi")).await;
    assert!(matches!(gone, Err(ThreadError::Gone(_))), "{gone:?}");
    stage.notified("thread/status/changed", 1).await;
    assert_eq!(broken.status(), ThreadStatus::SystemError);
    let sound = stage.fresh();
    sound.start_turn(turn("u1", "hi")).await.expect("accepted");
    stage.notified("turn/completed", 1).await;
}
