//! Reviews, as clients start them.

use engine::ReviewOrder;
use protocol::{ItemId, ReviewTarget, ThreadForkParams, ThreadId, ThreadItem, Turn, TurnStatus, UserInput};
use support::Responder;

use crate::error::RuntimeError;
use crate::open::opened::OpenedThread;
use crate::providers::identity::Opener;
use crate::runtime::Runtime;
use driver::{ReviewOptions, SettingsChange};

impl Runtime {
    /// Starts a review as a turn of the thread, with settings that apply from then on. Responds with it when it is
    /// durable, before its notifications.
    pub async fn start_review(
        &self,
        thread_id: &ThreadId,
        target: &ReviewTarget,
        change: SettingsChange,
        responder: Responder<Turn, RuntimeError>,
    ) {
        let thread = match self.thread(thread_id).and_then(|thread| check(target).map(|()| thread)) {
            Ok(thread) => thread,
            Err(error) => return responder.respond(Err(error)),
        };
        let (order, turn_id) = (ReviewOrder::of(target), self.new_turn_id());
        let shown = UserInput::Text { text: order.hint.clone(), text_elements: Vec::new() };
        let turn = Turn {
            items: vec![ThreadItem::UserMessage {
                id: ItemId::new(turn_id.to_string()),
                content: vec![shown],
            }],
            id: turn_id.clone(),
            status: TurnStatus::InProgress,
            error: None,
            started_at: Some(self.state.now_ms().div_euclid(1_000)),
            completed_at: None,
            duration_ms: None,
            plan: None,
        };
        let responder = Responder::new(move |begun: Result<(), RuntimeError>| {
            responder.respond(begun.map(|()| turn));
        });
        thread.review_then(ReviewOptions { turn_id, order, change }, responder.from_error()).await;
    }

    /// The thread of a detached review: a fork of the thread with its own record. The change limits it to the thread's
    /// current permissions, whatever the configuration says.
    pub async fn fork_for_review(
        &self,
        thread_id: &ThreadId,
        target: &ReviewTarget,
        opener: Opener,
    ) -> Result<(OpenedThread, SettingsChange), RuntimeError> {
        check(target)?;
        let parent = self.thread(thread_id)?;
        let settings = parent.snapshot(false).await?.settings;
        let params = ThreadForkParams {
            model: settings.review_model.clone(),
            cwd: Some(settings.cwd.clone()),
            ..ThreadForkParams::copy_of(parent.id().clone())
        };
        let change = SettingsChange {
            approval_policy: Some(settings.approval_policy),
            approvals_reviewer: Some(settings.approvals_reviewer),
            sandbox: Some(settings.sandbox),
            environments: settings.environments,
            ..SettingsChange::default()
        };
        Ok((self.fork_thread(params, opener).await?, change))
    }
}

fn check(target: &ReviewTarget) -> Result<(), RuntimeError> {
    let (field, text) = match target {
        ReviewTarget::UncommittedChanges => return Ok(()),
        ReviewTarget::BaseBranch { branch } => ("branch", branch),
        ReviewTarget::Commit { sha, .. } => ("sha", sha),
        ReviewTarget::Custom { instructions } => ("instructions", instructions),
    };
    match text.trim().is_empty() {
        true => Err(RuntimeError::Field { field, problem: "must not be empty".to_owned() }),
        false => Ok(()),
    }
}
