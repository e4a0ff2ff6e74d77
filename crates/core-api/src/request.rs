//! Requests of a turn to the program around it. Every request is answered at most once, by a method that consumes it;
//! one that is dropped unanswered is answered with no.

use std::collections::BTreeMap;
use std::fmt;

use runtime::protocol::{
    CommandExecutionRequestApprovalParams, DynamicToolCallOutputContentItem, DynamicToolCallParams,
    DynamicToolCallResponse, FileChangeRequestApprovalParams, GrantedPermissionProfile, ItemId,
    PermissionGrantScope, PermissionsRequestApprovalParams, PermissionsRequestApprovalResponse, ThreadItem,
    ToolRequestApprovalParams, ToolRequestUserInputAnswer, ToolRequestUserInputParams,
    ToolRequestUserInputResponse,
};
use tokio::sync::oneshot;

/// The subject of an approval, in the types of the protocol.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Subject {
    /// A command wants to run.
    Command(CommandExecutionRequestApprovalParams),
    /// A patch wants to be applied. Its changes are in [`ApprovalRequest::item`].
    FileChange(FileChangeRequestApprovalParams),
    /// Any other tool wants to be called.
    Tool(ToolRequestApprovalParams),
}

/// The answer to an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    Accept,
    AcceptForSession,
    Decline,
    Cancel,
}

/// The way back to whoever asked. Nobody is there any more once the turn has stopped.
struct AnswerSender<T>(oneshot::Sender<T>);

impl<T> AnswerSender<T> {
    /// A late answer has no effect.
    fn give(self, answer: T) {
        let _ = self.0.send(answer);
    }
}

impl<T> fmt::Debug for AnswerSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_closed() { "withdrawn" } else { "open" })
    }
}

/// A command, a change of files or a call that waits for a yes or a no.
///
/// Nothing of it has happened yet. Dropped unanswered, it is declined.
#[derive(Debug)]
#[must_use = "an approval request that is dropped is declined"]
pub struct ApprovalRequest {
    subject: Subject,
    item: Option<Box<ThreadItem>>,
    way: AnswerSender<Decision>,
}

impl ApprovalRequest {
    pub(crate) fn new(subject: Subject) -> (Self, oneshot::Receiver<Decision>) {
        let (way, answer) = oneshot::channel();
        (Self { subject, item: None, way: AnswerSender(way) }, answer)
    }

    /// The subject of the request.
    pub fn subject(&self) -> &Subject {
        &self.subject
    }

    /// The item that waits, as it began: the command line and its folder, or the changes of the patch. Calls of other
    /// tools may have none.
    pub fn item(&self) -> Option<&ThreadItem> {
        self.item.as_deref()
    }

    /// Why the agent may not do it unasked, for display.
    pub fn reason(&self) -> Option<&str> {
        match &self.subject {
            Subject::Command(asked) => asked.reason.as_deref(),
            Subject::FileChange(asked) => asked.reason.as_deref(),
            Subject::Tool(asked) => asked.reason.as_deref(),
        }
    }

    /// Says whether an answer still counts. It does not once the turn has stopped.
    pub fn is_open(&self) -> bool {
        !self.way.0.is_closed()
    }

    /// Returns when an answer no longer counts, for whoever shows the request on a screen.
    pub async fn withdrawn(&mut self) {
        self.way.0.closed().await;
    }

    /// Lets it happen this once.
    pub fn accept(self) {
        self.way.give(Decision::Accept);
    }

    /// Lets it happen, and the same again without asking for as long as the thread is open.
    pub fn accept_for_session(self) {
        self.way.give(Decision::AcceptForSession);
    }

    /// Forbids it. The model is told, and the turn goes on.
    pub fn decline(self) {
        self.way.give(Decision::Decline);
    }

    /// Forbids it and stops the turn.
    pub fn cancel(self) {
        self.way.give(Decision::Cancel);
    }

    pub(crate) fn item_id(&self) -> &ItemId {
        match &self.subject {
            Subject::Command(asked) => &asked.item_id,
            Subject::FileChange(asked) => &asked.item_id,
            Subject::Tool(asked) => &asked.item_id,
        }
    }

    pub(crate) fn show(&mut self, item: ThreadItem) {
        self.item = Some(Box::new(item));
    }
}

/// More access that the agent asks for: folders to read or write, or the network.
///
/// Dropped unanswered, nothing is granted.
#[derive(Debug)]
#[must_use = "a permission request that is dropped is denied"]
pub struct PermissionRequest {
    asked: PermissionsRequestApprovalParams,
    way: AnswerSender<PermissionsRequestApprovalResponse>,
}

impl PermissionRequest {
    pub(crate) fn new(
        asked: PermissionsRequestApprovalParams,
    ) -> (Self, oneshot::Receiver<PermissionsRequestApprovalResponse>) {
        let (way, answer) = oneshot::channel();
        (Self { asked, way: AnswerSender(way) }, answer)
    }

    /// The permissions asked for, and why.
    pub fn asked(&self) -> &PermissionsRequestApprovalParams {
        &self.asked
    }

    /// Grants all that is asked for.
    pub fn grant(self, scope: PermissionGrantScope) {
        let asked = self.asked.permissions.clone();
        let permissions = GrantedPermissionProfile { network: asked.network, file_system: asked.file_system };
        self.grant_only(permissions, scope);
    }

    /// Grants this much of it. What was not asked for is not granted.
    pub fn grant_only(self, permissions: GrantedPermissionProfile, scope: PermissionGrantScope) {
        self.way.give(PermissionsRequestApprovalResponse { permissions, scope, origin: None });
    }

    /// Grants nothing. The model is told, and the turn goes on.
    pub fn deny(self) {
        self.way.give(nothing_granted());
    }
}

pub(crate) fn nothing_granted() -> PermissionsRequestApprovalResponse {
    PermissionsRequestApprovalResponse {
        permissions: GrantedPermissionProfile { network: None, file_system: None },
        scope: PermissionGrantScope::Turn,
        origin: None,
    }
}

/// Questions of the agent to the user.
///
/// Dropped unanswered, the agent goes on without an answer.
#[derive(Debug)]
#[must_use = "a question that is dropped stays unanswered"]
pub struct UserQuestion {
    asked: ToolRequestUserInputParams,
    way: AnswerSender<ToolRequestUserInputResponse>,
}

impl UserQuestion {
    pub(crate) fn new(
        asked: ToolRequestUserInputParams,
    ) -> (Self, oneshot::Receiver<ToolRequestUserInputResponse>) {
        let (way, answer) = oneshot::channel();
        (Self { asked, way: AnswerSender(way) }, answer)
    }

    /// The questions, each with an id and perhaps with options to choose from.
    pub fn asked(&self) -> &ToolRequestUserInputParams {
        &self.asked
    }

    /// Gives one answer for each question, by the question's id.
    pub fn answer<I: Into<String>, A: Into<String>>(self, answers: impl IntoIterator<Item = (I, A)>) {
        let one = |text: A| ToolRequestUserInputAnswer { answers: vec![text.into()] };
        let answers = answers.into_iter().map(|(id, text)| (id.into(), one(text))).collect();
        self.way.give(ToolRequestUserInputResponse { answers, origin: None });
    }
}

pub(crate) fn no_answers() -> ToolRequestUserInputResponse {
    ToolRequestUserInputResponse { answers: BTreeMap::new(), origin: None }
}

/// A call to a tool that was given in [`ThreadOptions::tools`](crate::ThreadOptions::tools).
///
/// Dropped unanswered, the model is told that the tool failed.
#[derive(Debug)]
#[must_use = "a tool call that is dropped fails"]
pub struct ToolCallRequest {
    asked: DynamicToolCallParams,
    way: AnswerSender<DynamicToolCallResponse>,
}

impl ToolCallRequest {
    pub(crate) fn new(asked: DynamicToolCallParams) -> (Self, oneshot::Receiver<DynamicToolCallResponse>) {
        let (way, answer) = oneshot::channel();
        (Self { asked, way: AnswerSender(way) }, answer)
    }

    /// The tool and its arguments. They are as the model wrote them, which may break the tool's schema.
    pub fn asked(&self) -> &DynamicToolCallParams {
        &self.asked
    }

    /// Gives the model this result.
    pub fn succeed(self, text: impl Into<String>) {
        self.respond(said(text.into(), true));
    }

    /// Tells the model why there is no result.
    pub fn fail(self, text: impl Into<String>) {
        self.respond(said(text.into(), false));
    }

    /// Gives a result with images or several parts.
    pub fn respond(self, response: DynamicToolCallResponse) {
        self.way.give(response);
    }
}

fn said(text: String, success: bool) -> DynamicToolCallResponse {
    let content_items = vec![DynamicToolCallOutputContentItem::InputText { text }];
    DynamicToolCallResponse { content_items, success }
}
