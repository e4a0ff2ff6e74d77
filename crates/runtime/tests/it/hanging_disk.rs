//! A file system that hangs while a step is captured delays its own turn only. Runs on one worker: any blocking read
//! there would stop everything.

use std::sync::mpsc;
use std::sync::{Arc, Mutex};

use engine::{GoalChange, Step, ThreadSeed};
use oarlock_runtime::{SettingsChange, StepMaker, StepWork, ThreadHandle, ThreadSettings, TurnOptions};
use protocol::{ThreadId, ThreadStatus, TurnStatus};
use serde_json::json;
use support::Responder;
use tokio::time::timeout;

use crate::support::THREAD;
use crate::thread_stage::{FixedSteps, LONG, ThreadStage, seed, turn};

/// Captures as many steps as it has permits for; the next one hangs until there is another.
#[derive(Debug)]
struct HangingSteps {
    permits: Mutex<mpsc::Receiver<()>>,
    captures: tokio::sync::watch::Sender<usize>,
    /// The kind of work of each capture.
    works: Mutex<Vec<StepWork>>,
}

impl StepMaker for HangingSteps {
    fn capture(&self, settings: &ThreadSettings, sources: &[Arc<dyn tools::ToolSource>]) -> Step {
        self.works.lock().expect("nobody panics here").push(settings.work);
        self.captures.send_modify(|count| *count += 1);
        if settings.cwd == "/repo" {
            let permit = self.permits.lock().expect("nobody panics here").recv_timeout(LONG);
            permit.expect("the test lets it go on");
        }
        FixedSteps { panics: false }.capture(settings, sources)
    }
}

impl HangingSteps {
    fn new() -> (Arc<Self>, mpsc::Sender<()>) {
        let (permits, receiver) = mpsc::channel();
        let captures = tokio::sync::watch::channel(0).0;
        (Arc::new(Self { permits: Mutex::new(receiver), captures, works: Mutex::default() }), permits)
    }

    /// Waits until this many captures have started.
    async fn begun(&self, times: usize) {
        let mut captures = self.captures.subscribe();
        let begun = timeout(LONG, captures.wait_for(|count| *count >= times)).await;
        begun.expect("a capture begins in time").expect("the sender lives");
    }
}

/// A thread whose turn called a tool and waits for the step of its second request.
async fn waits_for_second_step(stage: &ThreadStage) -> (ThreadHandle, Arc<HangingSteps>, mpsc::Sender<()>) {
    let (steps, permits) = HangingSteps::new();
    let thread = stage.open(seed(), None, steps.clone());
    permits.send(()).expect("received");
    thread.start_turn(turn("u1", "hi")).await.expect("accepted");
    steps.begun(2).await;
    (thread, steps, permits)
}

fn calls_and_ends() -> serde_json::Value {
    json!([
        { "call": { "name": "update_plan", "arguments": {}, "callId": "c1" } },
        { "text": "done" },
        { "text": "and more" }
    ])
}

#[tokio::test]
async fn other_threads_go_on_while_one_hangs() {
    let root = tempfile::tempdir().expect("a folder");
    let stage = ThreadStage::new(root.path(), &json!([{ "text": "one" }, { "text": "two" }]));
    let (steps, permits) = HangingSteps::new();
    let id = ThreadId::new(THREAD.replace("0001", "0002"));
    let hanging = stage.open(ThreadSeed { id, ..seed() }, None, steps.clone());
    let waiting = hanging.clone();
    let mut starting = tokio::spawn(async move { waiting.start_turn(turn("u1", "hangs")).await });
    steps.begun(1).await;

    let other = stage.fresh();
    other.start_turn(turn("u2", "hi")).await.expect("accepted");
    stage.notified("turn/completed", 1).await;
    assert_eq!(other.status(), ThreadStatus::Idle);
    assert!(!starting.is_finished(), "it still waits for the disk");

    permits.send(()).expect("received");
    timeout(LONG, &mut starting).await.expect("answered").expect("no panic").expect("accepted");
    stage.notified("turn/completed", 2).await;
}

#[tokio::test]
async fn a_turn_that_waits_for_its_step_can_be_interrupted() {
    let root = tempfile::tempdir().expect("a folder");
    let stage = ThreadStage::new(root.path(), &calls_and_ends());
    let (thread, _steps, permits) = waits_for_second_step(&stage).await;
    thread.interrupt(None).await.expect("interrupted");
    stage.notified("turn/completed", 1).await;
    assert_eq!(stage.turns()[0].status, TurnStatus::Interrupted);

    // The late step is dropped.
    permits.send(()).expect("received");
    permits.send(()).expect("received");
    thread.start_turn(turn("u2", "again")).await.expect("accepted");
    stage.notified("turn/completed", 2).await;
    assert_eq!(stage.turns()[1].status, TurnStatus::Completed);
    assert_eq!(stage.script.requests().len(), 2, "each turn made one request");
}

#[tokio::test]
async fn settings_changed_while_a_step_is_captured_apply_to_it() {
    let root = tempfile::tempdir().expect("a folder");
    let stage = ThreadStage::new(root.path(), &calls_and_ends());
    let (thread, _steps, permits) = waits_for_second_step(&stage).await;
    let change = SettingsChange { cwd: Some("/elsewhere".into()), ..SettingsChange::default() };
    thread.start_turn(TurnOptions { change, ..turn("u2", "over there") }).await.expect("it joins the turn");
    stage.notified("turn/completed", 1).await;
    let second = stage.request(1);
    assert!(second.contains("/elsewhere") && second.contains("over there"), "{second}");
    drop(permits);
}

#[tokio::test]
async fn a_goal_set_while_a_step_is_captured_applies_to_it() {
    let root = tempfile::tempdir().expect("a folder");
    let stage = ThreadStage::new(root.path(), &calls_and_ends());
    let (thread, steps, permits) = waits_for_second_step(&stage).await;
    let change = GoalChange { objective: Some("ship it".into()), ..GoalChange::default() };
    let (answer, set) = tokio::sync::oneshot::channel();
    thread.set_goal_then(change, Responder::new(|goal| answer.send(goal).expect("awaited below"))).await;
    timeout(LONG, set).await.expect("answered").expect("not dropped").expect("the goal is set");
    steps.begun(3).await;
    let works = steps.works.lock().expect("nobody panics here").clone();
    assert_eq!(works, [StepWork::Turn, StepWork::Turn, StepWork::Goal]);
    thread.interrupt(None).await.expect("interrupted");
    stage.notified("turn/completed", 1).await;
    drop(permits);
}
