//! The runtime inside another program: threads, turns, answers and endings, with the offline model.
#![allow(clippy::expect_used, reason = "a test may panic")]

use std::time::Duration;

use oarlock_core_api::protocol::{
    AskForApproval, CommandExecutionStatus, DynamicToolSpec, SandboxMode, ThreadId, ThreadItem, ThreadStatus,
    TurnStatus,
};
use oarlock_core_api::{
    FinishedTurn, ListOptions, ManagedThread, ManagerError, Subject, ThreadEvent, ThreadManager,
    ThreadOptions, TurnInput, TurnOverrides, TurnStream,
};
use serde_json::json;
use tempfile::TempDir;

/// A home and a workspace, both gone afterwards.
struct Place {
    home: TempDir,
    work: TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = || tempfile::tempdir().expect("a folder");
        Self { home: folder(), work: folder() }
    }

    fn manager(&self) -> ThreadManager {
        let builder = ThreadManager::builder().home(self.home.path()).provider("offline");
        builder.client_name("embedding-test").build().expect("a manager")
    }

    fn options(&self, approval_policy: AskForApproval) -> ThreadOptions {
        ThreadOptions {
            cwd: Some(self.work.path().to_owned()),
            approval_policy: Some(approval_policy),
            sandbox: Some(SandboxMode::WorkspaceWrite),
            ..ThreadOptions::default()
        }
    }

    async fn thread(&self, approval_policy: AskForApproval) -> (ThreadManager, ManagedThread) {
        let manager = self.manager();
        let thread = manager.start_thread(self.options(approval_policy)).await.expect("a thread");
        (manager, thread)
    }

    fn has(&self, name: &str) -> bool {
        self.work.path().join(name).exists()
    }
}

/// Whoever waits so long has failed.
const WAIT_LIMIT: Duration = Duration::from_secs(30);

/// A turn that is waited for at most as long as a test may take.
async fn finish(turn: TurnStream) -> Result<FinishedTurn, ManagerError> {
    tokio::time::timeout(WAIT_LIMIT, turn.finish()).await.expect("the end of a turn in time")
}

/// The next event of a turn; `None` at its end.
async fn next(turn: &mut TurnStream) -> Option<ThreadEvent> {
    tokio::time::timeout(WAIT_LIMIT, turn.next()).await.expect("an event or the end of a turn in time")
}

async fn ask(thread: &ManagedThread, prompt: &str) -> FinishedTurn {
    finish(thread.submit(prompt).await.expect("a turn")).await.expect("a good end")
}

fn message(finished: &FinishedTurn) -> &str {
    finished.message.as_deref().unwrap_or_default()
}

fn command_status(finished: &FinishedTurn) -> Option<CommandExecutionStatus> {
    finished.items.iter().find_map(|item| match item {
        ThreadItem::CommandExecution { status, .. } => Some(*status),
        _ => None,
    })
}

/// Reads until the agent is at work on a command.
async fn until_command(turn: &mut TurnStream) {
    while let Some(event) = next(turn).await {
        if matches!(&event, ThreadEvent::ItemStarted(ThreadItem::CommandExecution { .. })) {
            return;
        }
    }
    panic!("the turn ended without a command");
}

#[tokio::test]
async fn building_a_manager_touches_no_file() {
    let place = Place::new();
    let home = place.home.path().join("not-there");
    let manager = ThreadManager::builder().home(&home).provider("offline").build().expect("a manager");
    manager.shut_down().await;
    drop(manager);
    assert!(!home.exists());
}

#[tokio::test]
async fn a_turn_ends_with_its_message_items_and_usage() {
    let place = Place::new();
    let (manager, thread) = place.thread(AskForApproval::Never).await;
    assert_eq!(thread.model(), "offline");
    assert_eq!(thread.turns().await.expect("no record yet"), []);
    let finished = ask(&thread, "Say hello").await;
    assert_eq!(finished.status, TurnStatus::Completed);
    assert!(message(&finished).contains("hello"), "{finished:?}");
    assert!(matches!(finished.items[0], ThreadItem::UserMessage { .. }));
    assert!(finished.usage.is_some_and(|usage| usage.total.total_tokens > 0));
    assert_eq!(thread.read().await.expect("a thread").status, ThreadStatus::Idle);
    manager.shut_down().await;
}

#[tokio::test]
async fn deltas_add_up_to_the_message() {
    let place = Place::new();
    let (_manager, thread) = place.thread(AskForApproval::Never).await;
    // More pieces than the stream holds, so the turn has to wait for its reader.
    let words = "word ".repeat(1_500);
    let mut turn = thread.submit(format!("say {words}")).await.expect("a turn");
    let mut streamed = String::new();
    let mut pieces = 0;
    while let Some(event) = next(&mut turn).await {
        if let Some(piece) = event.message_delta() {
            streamed.push_str(piece);
            pieces += 1;
        }
    }
    assert!(next(&mut turn).await.is_none(), "an end is an end");
    let finished = finish(turn).await.expect("a good end");
    assert_eq!(Some(streamed), finished.message);
    assert!(pieces > 256, "{pieces} pieces would all have fitted");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_threads_at_once_do_not_mix() {
    let place = Place::new();
    let manager = place.manager();
    let open = || manager.start_thread(place.options(AskForApproval::Never));
    let (one, other) = (open().await.expect("a thread"), open().await.expect("a thread"));
    // Both run before either is read.
    let first = one.submit("run `echo from-one`").await.expect("a turn");
    let second = other.submit("run `echo from-two`").await.expect("a turn");
    let (first, second) = (tokio::spawn(finish(first)), tokio::spawn(finish(second)));
    let first = first.await.expect("no panic").expect("a good end");
    let second = second.await.expect("no panic").expect("a good end");
    assert!(message(&first).contains("from-one") && !message(&first).contains("from-two"), "{first:?}");
    assert!(message(&second).contains("from-two") && !message(&second).contains("from-one"), "{second:?}");
    manager.shut_down().await;
}

/// Runs a command that needs approval and gives this answer: whether it ran, and its turn.
async fn decide(answer: impl FnOnce(oarlock_core_api::ApprovalRequest)) -> (bool, FinishedTurn) {
    let place = Place::new();
    let (manager, thread) = place.thread(AskForApproval::Untrusted).await;
    let mut turn = thread.submit("run `touch made.txt`").await.expect("a turn");
    let mut answer = Some(answer);
    while let Some(event) = next(&mut turn).await {
        if let ThreadEvent::Approval(request) = event {
            let Subject::Command(asked) = request.subject() else { panic!("another subject: {request:?}") };
            assert!(asked.command.as_deref().is_some_and(|line| line.contains("touch made.txt")));
            assert!(matches!(request.item(), Some(ThreadItem::CommandExecution { .. })));
            assert!(request.is_open() && !place.has("made.txt"));
            (answer.take().expect("asked once"))(request);
        }
    }
    assert!(answer.is_none(), "nothing was asked");
    let finished = finish(turn).await.expect("no failure");
    manager.shut_down().await;
    (place.has("made.txt"), finished)
}

#[tokio::test]
async fn an_accepted_command_leaves_its_mark() {
    let (is_made, finished) = decide(oarlock_core_api::ApprovalRequest::accept).await;
    assert!(is_made);
    assert_eq!(command_status(&finished), Some(CommandExecutionStatus::Completed));
}

#[tokio::test]
async fn a_declined_command_leaves_none() {
    let (is_made, finished) = decide(oarlock_core_api::ApprovalRequest::decline).await;
    assert!(!is_made);
    assert_eq!(finished.status, TurnStatus::Completed);
    assert_eq!(command_status(&finished), Some(CommandExecutionStatus::Declined));
}

#[tokio::test]
async fn a_dropped_request_is_declined() {
    let (is_made, finished) = decide(drop).await;
    assert!(!is_made);
    assert_eq!(command_status(&finished), Some(CommandExecutionStatus::Declined));
}

#[tokio::test]
async fn a_cancelled_request_stops_the_turn() {
    let (is_made, finished) = decide(oarlock_core_api::ApprovalRequest::cancel).await;
    assert!(!is_made);
    assert_eq!(finished.status, TurnStatus::Interrupted);
}

#[tokio::test]
async fn finishing_without_reading_declines_what_is_asked() {
    let place = Place::new();
    let (_manager, thread) = place.thread(AskForApproval::Untrusted).await;
    let finished = ask(&thread, "run `touch made.txt`").await;
    assert_eq!(command_status(&finished), Some(CommandExecutionStatus::Declined));
    assert!(!place.has("made.txt"));
}

#[tokio::test]
async fn what_was_accepted_for_the_session_is_not_asked_again() {
    let place = Place::new();
    let (_manager, thread) = place.thread(AskForApproval::Untrusted).await;
    let mut asked = 0;
    for _ in 0..2 {
        let mut turn = thread.submit("run `touch made.txt`").await.expect("a turn");
        while let Some(event) = next(&mut turn).await {
            if let ThreadEvent::Approval(request) = event {
                asked += 1;
                request.accept_for_session();
            }
        }
    }
    assert_eq!(asked, 1);
    assert!(place.has("made.txt"));
}

#[tokio::test]
async fn a_change_of_files_shows_what_it_would_change() {
    let place = Place::new();
    let (_manager, thread) = place.thread(AskForApproval::Untrusted).await;
    let mut turn = thread.submit("create notes.txt with hello").await.expect("a turn");
    let mut changed = Vec::new();
    while let Some(event) = next(&mut turn).await {
        if let ThreadEvent::Approval(request) = event {
            if let (Subject::FileChange(_), Some(ThreadItem::FileChange { changes, .. })) =
                (request.subject(), request.item())
            {
                changed.extend(changes.iter().map(|change| change.path.clone()));
            }
            request.accept();
        }
    }
    assert!(changed.iter().any(|path| path.ends_with("notes.txt")), "{changed:?}");
    assert!(place.has("notes.txt"));
}

#[tokio::test]
async fn a_tool_of_the_program_is_called_and_answered() {
    let place = Place::new();
    let manager = place.manager();
    let tool = DynamicToolSpec {
        name: "weather".to_owned(),
        description: "The weather of a town.".to_owned(),
        input_schema: json!({"type": "object", "properties": {"town": {"type": "string"}}}),
        defer_loading: false,
        namespace: None,
        namespace_description: None,
    };
    let options = ThreadOptions { tools: vec![tool], ..place.options(AskForApproval::Never) };
    let thread = manager.start_thread(options).await.expect("a thread");
    for (answers, expected) in [(true, "it rains"), (false, "nobody ran the tool")] {
        let prompt = r#"call the tool weather with {"town": "Bergen"}"#;
        let mut turn = thread.submit(prompt).await.expect("a turn");
        while let Some(event) = next(&mut turn).await {
            if let ThreadEvent::ToolCall(call) = event {
                assert_eq!(call.asked().arguments, json!({"town": "Bergen"}));
                if answers {
                    call.succeed("it rains");
                }
            }
        }
        let finished = finish(turn).await.expect("a good end");
        assert!(message(&finished).contains(expected), "{finished:?}");
    }
}

#[tokio::test]
async fn another_manager_goes_on_with_the_thread() {
    let place = Place::new();
    let (manager, thread) = place.thread(AskForApproval::Never).await;
    ask(&thread, "say one").await;
    let id = thread.id().clone();
    manager.shut_down().await;
    assert!(!thread.is_open());
    let closed = thread.submit("say two").await.expect_err("closed");
    assert!(
        matches!(closed, ManagerError::Closed(_)) && closed.to_string().contains("resume_thread"),
        "{closed}"
    );

    let manager = place.manager();
    let listed = manager.list_threads(ListOptions::default()).await.expect("a list").data;
    assert_eq!(listed.iter().map(|thread| &thread.id).collect::<Vec<_>>(), [&id]);
    assert_eq!(listed[0].preview, "say one");
    let elsewhere = ListOptions { cwd: Some(place.home.path().to_owned()), ..ListOptions::default() };
    assert_eq!(manager.list_threads(elsewhere).await.expect("a list").data, []);

    let thread = manager.resume_thread(&id, ThreadOptions::default()).await.expect("the thread");
    assert_eq!(thread.turns().await.expect("its past").len(), 1);
    ask(&thread, "say three").await;
    let turns = thread.turns().await.expect("its past");
    let last = &turns[1].items;
    assert_eq!(turns.len(), 2);
    assert!(last.iter().any(|item| matches!(item,
        ThreadItem::AgentMessage { text, .. } if text.contains("three"))));
    manager.shut_down().await;
}

#[tokio::test]
async fn a_copy_has_the_past_and_a_future_of_its_own() {
    let place = Place::new();
    let (manager, thread) = place.thread(AskForApproval::Never).await;
    ask(&thread, "say one").await;
    let copy = manager.fork_thread(thread.id(), ThreadOptions::default()).await.expect("a copy");
    ask(&copy, "say two").await;
    assert_ne!(copy.id(), thread.id());
    assert_eq!(copy.turns().await.expect("its past").len(), 2);
    assert_eq!(manager.read_thread(thread.id()).await.expect("the first").turns.len(), 1);
    manager.shut_down().await;
}

#[tokio::test]
async fn without_a_key_the_turn_says_both_ways_out() {
    let place = Place::new();
    let builder = ThreadManager::builder().home(place.home.path());
    let manager = builder.environment([("HOME", "/nowhere")]).build().expect("a manager");
    let thread = manager.start_thread(place.options(AskForApproval::Never)).await.expect("a thread");
    let turn = thread.submit("Say hello").await.expect("a turn");
    let error = finish(turn).await.expect_err("no key");
    let told = error.to_string();
    assert!(told.contains("OPENAI_API_KEY") && told.contains("--provider offline"), "{told}");
    let ManagerError::TurnFailed(finished) = error else { panic!("another error: {error:?}") };
    assert_eq!((finished.status, finished.message), (TurnStatus::Failed, None));
}

#[tokio::test]
async fn an_interrupted_turn_ends_and_the_next_one_begins() {
    let place = Place::new();
    let (_manager, thread) = place.thread(AskForApproval::Never).await;
    let mut turn = thread.submit("run `sleep 60`").await.expect("a turn");
    until_command(&mut turn).await;
    let running = thread.submit("say hello").await.expect_err("one at a time");
    assert!(matches!(running, ManagerError::TurnRunning(_)), "{running}");
    turn.interrupt().await;
    let finished = finish(turn).await.expect("no failure");
    assert_eq!(finished.status, TurnStatus::Interrupted);
    thread.interrupt().await;
    assert!(message(&ask(&thread, "say hello").await).contains("hello"));
}

#[tokio::test]
async fn steering_joins_the_turn_that_runs() {
    let place = Place::new();
    let (_manager, thread) = place.thread(AskForApproval::Untrusted).await;
    let mut turn = thread.submit("run `touch made.txt`").await.expect("a turn");
    while let Some(event) = next(&mut turn).await {
        if let ThreadEvent::Approval(request) = event {
            turn.steer("say steered").await.expect("it runs");
            request.decline();
        }
    }
    let id = turn.id().clone();
    let late = turn.steer("too late").await.expect_err("it is over");
    assert!(matches!(late, ManagerError::NoTurnRunning), "{late}");
    let finished = finish(turn).await.expect("a good end");
    assert!(message(&finished).contains("steered"), "{finished:?}");
    assert!(matches!(thread.steer(&id, "too late").await, Err(ManagerError::NoTurnRunning)));
}

#[tokio::test]
async fn a_turn_nobody_reads_goes_on() {
    let place = Place::new();
    let (manager, thread) = place.thread(AskForApproval::Never).await;
    drop(thread.submit("create made.txt with hello").await.expect("a turn"));
    let trying = async {
        loop {
            match thread.submit("say hello").await {
                Ok(turn) => return turn,
                Err(ManagerError::TurnRunning(_)) => tokio::task::yield_now().await,
                Err(error) => panic!("{error}"),
            }
        }
    };
    let second = tokio::time::timeout(WAIT_LIMIT, trying).await.expect("the end of the first turn in time");
    assert!(place.has("made.txt"));
    finish(second).await.expect("a good end");
    assert_eq!(thread.turns().await.expect("its past").len(), 2);
    manager.shut_down().await;
}

#[tokio::test]
async fn shutting_down_waits_for_no_reader() {
    let place = Place::new();
    let (manager, thread) = place.thread(AskForApproval::Never).await;
    let mut turn = thread.submit("run `sleep 60`").await.expect("a turn");
    until_command(&mut turn).await;
    tokio::time::timeout(Duration::from_secs(4), manager.shut_down()).await.expect("in time");
    assert_eq!(finish(turn).await.expect("told").status, TurnStatus::Interrupted);
}

#[tokio::test]
async fn everything_may_be_dropped_in_the_middle() {
    let place = Place::new();
    let (manager, thread) = place.thread(AskForApproval::Untrusted).await;
    let mut turn = thread.submit("run `touch made.txt`").await.expect("a turn");
    let mut request = loop {
        match next(&mut turn).await.expect("a request") {
            ThreadEvent::Approval(request) => break request,
            _ => continue,
        }
    };
    let id = thread.id().clone();
    drop((manager, thread, turn));
    tokio::time::timeout(WAIT_LIMIT, request.withdrawn()).await.expect("a request that is withdrawn");
    assert!(!request.is_open());
    request.accept();

    // The record is free once the thread is put away, and says how the turn ended.
    let manager = place.manager();
    let trying = async {
        loop {
            match manager.resume_thread(&id, ThreadOptions::default()).await {
                Ok(thread) => return thread,
                Err(ManagerError::Refused(_)) => tokio::task::yield_now().await,
                Err(error) => panic!("{error}"),
            }
        }
    };
    let thread = tokio::time::timeout(WAIT_LIMIT, trying).await.expect("a record that is free in time");
    let turns = thread.turns().await.expect("its past");
    assert_eq!(turns[0].status, TurnStatus::Interrupted);
    assert!(!place.has("made.txt"));
}

#[tokio::test]
async fn a_closed_thread_can_be_opened_again() {
    let place = Place::new();
    let (manager, thread) = place.thread(AskForApproval::Never).await;
    ask(&thread, "say one").await;
    let mut turn = thread.submit("run `sleep 60`").await.expect("a turn");
    until_command(&mut turn).await;
    thread.close().await.expect("closed");
    assert_eq!(finish(turn).await.expect("told").status, TurnStatus::Interrupted);
    let thread = manager.resume_thread(thread.id(), ThreadOptions::default()).await.expect("the thread");
    ask(&thread, "say two").await;
    assert_eq!(thread.turns().await.expect("its past").len(), 3);
}

#[tokio::test]
async fn a_schema_shapes_the_answer_of_one_turn() {
    let place = Place::new();
    let (_manager, thread) = place.thread(AskForApproval::Never).await;
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let options = TurnOverrides { output_schema: Some(schema), ..TurnOverrides::default() };
    let turn = thread.submit_with("count", options).await.expect("a turn");
    let finished = finish(turn).await.expect("a good end");
    let answer: serde_json::Value = serde_json::from_str(message(&finished)).expect("JSON");
    assert!(answer["n"].is_i64(), "{answer}");
    assert!(message(&ask(&thread, "say hello").await).contains("hello"));
}

#[tokio::test]
async fn what_cannot_be_is_told_in_a_sentence() {
    let place = Place::new();
    let (manager, thread) = place.thread(AskForApproval::Never).await;
    assert!(matches!(thread.submit(TurnInput::default()).await, Err(ManagerError::EmptyInput)));
    let unknown = ThreadId::new("0198f0a0-0000-7000-8000-00000000abcd");
    for id in [&unknown, thread.id()] {
        // A thread without a turn has no record either.
        thread.close().await.expect("closed");
        let error = manager.resume_thread(id, ThreadOptions::default()).await.expect_err("not stored");
        assert!(error.to_string().contains("list_threads"), "{error}");
    }
    let options = ThreadOptions { provider: Some("nobody".to_owned()), ..ThreadOptions::default() };
    let error = manager.start_thread(options).await.expect_err("no such provider");
    assert!(error.to_string().contains("model_providers.nobody"), "{error}");
    let error = ThreadManager::builder().home("").build().expect_err("no folder");
    assert!(error.to_string().contains("ThreadManagerBuilder::home"), "{error}");
}

#[tokio::test]
async fn a_refused_turn_leaves_the_thread_free() {
    let place = Place::new();
    let (_manager, thread) = place.thread(AskForApproval::Never).await;
    let too_long = "a".repeat((1 << 20) + 1);
    assert!(matches!(thread.submit(too_long).await, Err(ManagerError::Refused(_))));
    ask(&thread, "say hello").await;
}

#[tokio::test]
async fn commands_run_within_walls() {
    let place = Place::new();
    let manager = place.manager();
    let options =
        ThreadOptions { sandbox: Some(SandboxMode::ReadOnly), ..place.options(AskForApproval::Never) };
    let thread = manager.start_thread(options).await.expect("a thread");
    let finished = ask(&thread, "run `echo inside; touch made.txt`").await;
    assert!(message(&finished).contains("inside"), "{finished:?}");
    assert!(!place.has("made.txt"));
    assert_eq!(command_status(&finished), Some(CommandExecutionStatus::Failed));
}
