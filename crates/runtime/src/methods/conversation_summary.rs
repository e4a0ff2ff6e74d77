//! `getConversationSummary`: a summary of a stored thread, for older clients.

use std::path::Path;

use journal::{JournalError, ReadOptions, Summary, read_history_file};
use protocol::{
    ConversationGitInfo, ConversationSummary, GetConversationSummaryParams, SessionSource, ThreadId,
};
use support::blocking;
use workspace::{READ_LIMIT, within};

use crate::error::RuntimeError;
use crate::runtime::Runtime;
use driver::check_thread_id;

impl Runtime {
    pub async fn conversation_summary(
        &self,
        params: GetConversationSummaryParams,
    ) -> Result<ConversationSummary, RuntimeError> {
        match params {
            GetConversationSummaryParams::ById { conversation_id } => {
                self.summary_by_id(&conversation_id).await
            }
            GetConversationSummaryParams::ByPath { rollout_path } => {
                self.summary_by_path(&rollout_path).await
            }
        }
    }

    async fn summary_by_id(&self, id: &ThreadId) -> Result<ConversationSummary, RuntimeError> {
        let id = check_thread_id(id)?;
        let wanted = id.clone();
        match self.state.on_disk(move |store| store.summary(&wanted)).await? {
            Ok(row) => Ok(describe(row.thread_id, &row.path, row.summary)),
            Err(JournalError::NotFound(_)) => Err(RuntimeError::NoConversation(id)),
            Err(error) => Err(error.into()),
        }
    }

    /// Any record, by its path. A relative path starts at the home folder.
    async fn summary_by_path(&self, path: &str) -> Result<ConversationSummary, RuntimeError> {
        let path = self.loader().home().reading().join(path);
        let failed = |path: &Path, problem: String| RuntimeError::UnreadableSummary {
            path: path.to_string_lossy().into_owned(),
            problem,
        };
        let read = move || {
            let own = path.clone();
            let read = within(&path, READ_LIMIT, move || read_summary(&own));
            let read = read.unwrap_or_else(|error| Err(error.problem.to_string()));
            read.map_err(|problem| failed(&path, problem))
        };
        blocking(read).await?
    }
}

fn read_summary(path: &Path) -> Result<ConversationSummary, String> {
    // Opened first: this refuses pipes, and gives the system's error text, which clients know.
    let opened = workspace::Reader::default().open(path).map_err(|error| error.problem.to_string())?;
    let (history, _) =
        read_history_file(&opened.path, &ReadOptions::default()).map_err(|error| error.to_string())?;
    let id = history.summary.thread_id.clone().ok_or("it is no record of a thread")?;
    Ok(describe(id, path, history.summary))
}

fn describe(conversation_id: ThreadId, path: &Path, summary: Summary) -> ConversationSummary {
    let time = |at_ms: i64| jiff::Timestamp::from_millisecond(at_ms).ok().map(|at| format!("{at:.3}"));
    ConversationSummary {
        conversation_id,
        path: path.to_string_lossy().into_owned(),
        preview: summary.preview.unwrap_or_default(),
        timestamp: time(summary.created_at_ms),
        updated_at: time(summary.updated_at_ms),
        model_provider: summary.model_provider.unwrap_or_default(),
        cwd: summary.cwd.unwrap_or_default(),
        cli_version: summary.cli_version.unwrap_or_default(),
        source: summary.source.unwrap_or(SessionSource::Unknown),
        git_info: summary.git_info.map(|git| ConversationGitInfo {
            sha: git.sha,
            branch: git.branch,
            origin_url: git.origin_url,
        }),
    }
}
