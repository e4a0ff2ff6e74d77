//! Methods of older clients, and feedback.

use std::sync::Arc;

use protocol::{
    FeedbackUploadParams, FeedbackUploadResponse, GetConversationSummaryParams,
    GetConversationSummaryResponse, GitDiffToRemoteParams, GitDiffToRemoteResponse,
};
use runtime::RuntimeError;

use crate::app::App;
use crate::hub::Requester;

pub(crate) async fn conversation_summary(
    app: Arc<App>,
    _: Requester,
    params: GetConversationSummaryParams,
) -> Result<GetConversationSummaryResponse, RuntimeError> {
    let summary = app.runtime.conversation_summary(params).await?;
    Ok(GetConversationSummaryResponse { summary })
}

pub(crate) async fn git_diff_to_remote(
    app: Arc<App>,
    _: Requester,
    params: GitDiffToRemoteParams,
) -> Result<GitDiffToRemoteResponse, RuntimeError> {
    app.runtime.git_diff_to_remote(params).await
}

pub(crate) async fn feedback_upload(
    app: Arc<App>,
    _: Requester,
    params: FeedbackUploadParams,
) -> Result<FeedbackUploadResponse, RuntimeError> {
    app.runtime.save_feedback(params).await
}
