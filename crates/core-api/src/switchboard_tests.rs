//! Lines that are full, released, left alone and answered.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use runtime::protocol::{
    AgentMessageDeltaNotification, FileChangeRequestApprovalParams, ItemId, OperationId,
    ToolRequestApprovalParams, TurnCompletedNotification, TurnStatus,
};

use super::*;

fn thread() -> ThreadId {
    ThreadId::new("t")
}

fn delta(turn: &str) -> ServerNotification {
    ServerNotification::AgentMessageDelta(AgentMessageDeltaNotification {
        thread_id: thread(),
        turn_id: TurnId::new(turn),
        item_id: ItemId::new("i"),
        delta: "x".to_owned(),
    })
}

fn end(turn: &str) -> ServerNotification {
    let turn = protocol::Turn {
        id: TurnId::new(turn),
        items: Vec::new(),
        status: TurnStatus::Completed,
        error: None,
        started_at: None,
        completed_at: None,
        duration_ms: None,
        plan: None,
    };
    ServerNotification::TurnCompleted(TurnCompletedNotification { thread_id: thread(), turn, cost: None })
}

fn begin(board: &Arc<Switchboard>, turn: &str) -> mpsc::Receiver<TurnMessage> {
    let (line, inbox) = board.reserve(&thread()).expect("nothing runs");
    line.keep(&TurnId::new(turn));
    inbox
}

fn is_free(board: &Arc<Switchboard>) -> bool {
    board.reserve(&thread()).is_ok()
}

async fn is_pending(future: &mut (impl Future<Output = ()> + Unpin)) -> bool {
    poll_fn(|context| Poll::Ready(std::pin::Pin::new(&mut *future).poll(context).is_pending())).await
}

#[tokio::test]
async fn a_full_line_holds_its_thread_up_until_it_is_read() {
    let board = Arc::new(Switchboard::default());
    let mut inbox = begin(&board, "1");
    let id = thread();
    for _ in 0..WAITING {
        board.notify(&id, delta("1")).await;
    }
    let mut one_more = board.notify(&id, end("1"));
    assert!(is_pending(&mut one_more).await && !is_free(&board));
    assert!(inbox.recv().await.is_some());
    assert!(!is_pending(&mut one_more).await && is_free(&board));
    for _ in 1..WAITING {
        assert!(matches!(inbox.recv().await, Some(TurnMessage::Event(ThreadEvent::Delta(_)))));
    }
    assert!(matches!(inbox.recv().await, Some(TurnMessage::Ended(_))));
}

#[tokio::test]
async fn a_released_line_is_not_waited_for_and_has_no_gap() {
    let board = Arc::new(Switchboard::default());
    let mut inbox = begin(&board, "1");
    let id = thread();
    for _ in 0..WAITING {
        board.notify(&id, delta("1")).await;
    }
    let mut held_up = pin!(board.notify(&id, delta("1")));
    assert!(is_pending(&mut held_up).await);
    board.release(&id);
    held_up.await;
    // There is room again, but what came before this is lost.
    assert!(inbox.recv().await.is_some());
    board.notify(&id, delta("1")).await;
    board.notify(&id, end("1")).await;
    for _ in 1..WAITING {
        assert!(matches!(inbox.recv().await, Some(TurnMessage::Event(_))));
    }
    assert!(inbox.recv().await.is_none() && is_free(&board));
}

#[tokio::test]
async fn a_turn_without_a_reader_runs_on() {
    let board = Arc::new(Switchboard::default());
    drop(begin(&board, "1"));
    for _ in 0..=WAITING {
        board.notify(&thread(), delta("1")).await;
    }
    assert!(!is_free(&board));
    board.notify(&thread(), end("1")).await;
    assert!(is_free(&board));
}

#[tokio::test]
async fn news_of_an_earlier_turn_are_told_as_such() {
    let board = Arc::new(Switchboard::default());
    let mut inbox = begin(&board, "2");
    board.notify(&thread(), delta("1")).await;
    board.notify(&thread(), end("1")).await;
    board.notify(&thread(), delta("2")).await;
    assert!(matches!(inbox.recv().await, Some(TurnMessage::Event(ThreadEvent::Other(_)))));
    assert!(matches!(inbox.recv().await, Some(TurnMessage::Event(ThreadEvent::Other(_)))));
    assert!(matches!(inbox.recv().await, Some(TurnMessage::Event(ThreadEvent::Delta(_)))));
}

#[test]
fn a_refused_turn_gives_its_line_back() {
    let board = Arc::new(Switchboard::default());
    let (line, _inbox) = board.reserve(&thread()).expect("nothing runs");
    assert!(!is_free(&board));
    drop(line);
    assert!(is_free(&board));
}

#[tokio::test]
async fn without_a_line_the_answer_is_no() {
    let board = Switchboard::default();
    let asked = DynamicToolCallParams {
        thread_id: thread(),
        turn_id: TurnId::new("1"),
        call_id: "c".to_owned(),
        namespace: None,
        tool: "weather".to_owned(),
        arguments: serde_json::Value::Null,
        operation_id: None,
        arguments_digest: None,
    };
    assert_eq!(board.call_tool(asked).await, Err("nobody ran the tool `weather`".to_owned()));
}

fn patch_question() -> Question {
    Question::FileChange(FileChangeRequestApprovalParams {
        thread_id: thread(),
        turn_id: TurnId::new("1"),
        item_id: ItemId::new("i"),
        started_at_ms: 0,
        reason: None,
        grant_root: None,
        operation_id: None,
        arguments_digest: None,
    })
}

fn gate_question() -> Question {
    Question::Tool(ToolRequestApprovalParams {
        thread_id: thread(),
        turn_id: TurnId::new("1"),
        item_id: ItemId::new("i"),
        operation_id: OperationId::new("o"),
        tool: "view_image".to_owned(),
        namespace: None,
        arguments: serde_json::Value::Null,
        arguments_digest: String::new(),
        reason: None,
        available_decisions: Vec::new(),
        started_at_ms: 0,
    })
}

type Give = fn(ApprovalRequest);

/// The reply to the thread when the request is answered like this.
async fn answered(question: Question, answer: Give) -> Reply {
    let board = Arc::new(Switchboard::default());
    let mut inbox = begin(&board, "1");
    let read = async {
        let Some(TurnMessage::Event(ThreadEvent::Approval(request))) = inbox.recv().await else {
            panic!("no request")
        };
        answer(request);
    };
    let (reply, ()) = tokio::join!(board.ask(question), read);
    reply.expect("an answer")
}

#[tokio::test]
async fn each_kind_of_question_is_answered_in_its_own_words() {
    use FileChangeApprovalDecision as Patch;
    use ToolApprovalDecision as Gate;
    let cases: [(Give, Patch, Gate); 5] = [
        (ApprovalRequest::accept, Patch::Accept, Gate::Accept),
        (ApprovalRequest::accept_for_session, Patch::AcceptForSession, Gate::AcceptForSession),
        (ApprovalRequest::decline, Patch::Decline, Gate::Decline),
        (ApprovalRequest::cancel, Patch::Cancel, Gate::Cancel),
        (drop, Patch::Decline, Gate::Decline),
    ];
    for (answer, patch, gate) in cases {
        assert_eq!(answered(patch_question(), answer).await, Reply::FileChange(patch.into()));
        assert_eq!(answered(gate_question(), answer).await, Reply::Tool(gate.into()));
    }
    let nobody = Switchboard::default().ask(patch_question()).await;
    assert_eq!(nobody, Ok(Reply::FileChange(Patch::Decline.into())));
}
