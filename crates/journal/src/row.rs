//! One thread in the index.

use std::path::PathBuf;

use protocol::{SessionSource, SubAgentSource, Thread, ThreadId, ThreadSourceKind, ThreadStatus, Turn};

use crate::facts::Summary;

/// A thread without its turns.
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadRow {
    pub thread_id: ThreadId,
    /// Absolute.
    pub path: PathBuf,
    pub is_archived: bool,
    /// Some of the journal could not be read.
    pub is_damaged: bool,
    /// Length of the file at that time; another length means that the row is outdated.
    pub length: u64,
    pub summary: Summary,
}

impl ThreadRow {
    /// The thread for clients. Values lost by damage stay empty.
    pub fn to_thread(&self, status: ThreadStatus, turns: Vec<Turn>) -> Thread {
        let summary = self.summary.clone();
        Thread {
            id: self.thread_id.clone(),
            session_id: summary.session_id.unwrap_or_default(),
            forked_from_id: summary.forked_from_id,
            preview: summary.preview.unwrap_or_default(),
            ephemeral: false,
            project_id: None,
            model_provider: summary.model_provider.unwrap_or_default(),
            created_at: summary.created_at_ms.div_euclid(1_000),
            updated_at: summary.updated_at_ms.div_euclid(1_000),
            status,
            path: Some(self.path.to_string_lossy().into_owned()),
            cwd: summary.cwd.unwrap_or_default(),
            cli_version: summary.cli_version.unwrap_or_default(),
            source: summary.source.unwrap_or(SessionSource::Unknown),
            thread_source: summary.thread_source,
            agent_nickname: summary.agent_nickname,
            agent_role: summary.agent_role,
            git_info: summary.git_info,
            name: summary.name,
            turns,
        }
    }
}

/// The word by which sources are filtered.
pub(crate) fn source_word(source: &SessionSource) -> &'static str {
    match source {
        SessionSource::Cli => "cli",
        SessionSource::Vscode => "vscode",
        SessionSource::Exec => "exec",
        SessionSource::AppServer => "appServer",
        SessionSource::Unknown => "unknown",
        SessionSource::Custom(name) if matches!(name.as_str(), "atlas" | "chatgpt") => "app",
        SessionSource::Custom(_) => "custom",
        SessionSource::SubAgent(SubAgentSource::Review) => "subAgentReview",
        SessionSource::SubAgent(SubAgentSource::Compact) => "subAgentCompact",
        SessionSource::SubAgent(SubAgentSource::ThreadSpawn { .. }) => "subAgentThreadSpawn",
        SessionSource::SubAgent(SubAgentSource::MemoryConsolidation | SubAgentSource::Other(_)) => {
            "subAgentOther"
        }
    }
}

/// Threads started by a person at a screen: the default of a list.
pub(crate) const INTERACTIVE: &[&str] = &["cli", "vscode", "app"];

/// The words of a kind.
pub(crate) fn words_of(kind: ThreadSourceKind) -> &'static [&'static str] {
    match kind {
        ThreadSourceKind::Cli => &["cli"],
        ThreadSourceKind::Vscode => &["vscode"],
        ThreadSourceKind::Exec => &["exec"],
        ThreadSourceKind::AppServer => &["appServer"],
        ThreadSourceKind::SubAgent => {
            &["subAgentReview", "subAgentCompact", "subAgentThreadSpawn", "subAgentOther"]
        }
        ThreadSourceKind::SubAgentReview => &["subAgentReview"],
        ThreadSourceKind::SubAgentCompact => &["subAgentCompact"],
        ThreadSourceKind::SubAgentThreadSpawn => &["subAgentThreadSpawn"],
        ThreadSourceKind::SubAgentOther => &["subAgentOther"],
        // Sources with a client's own word are in no kind of the list; threads from them can be found here.
        ThreadSourceKind::Unknown => &["unknown", "app", "custom"],
    }
}
