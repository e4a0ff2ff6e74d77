//! `fuzzyFileSearch*`.

use protocol::{
    FuzzyFileSearchMatchType, FuzzyFileSearchResult, FuzzyFileSearchSessionCompletedNotification,
    FuzzyFileSearchSessionUpdatedNotification, ServerNotification,
};
use workspace::{FileMatch, FileSearch, MatchKind, SearchError, SearchEvent, SearchReports, SearchSession};

use crate::error::RuntimeError;
use crate::runtime::Runtime;

impl Runtime {
    /// Starts a search. The future waits for its end; dropping it cancels the search.
    pub fn search_files(
        &self,
        query: String,
        roots: Vec<String>,
    ) -> Result<impl Future<Output = Vec<FuzzyFileSearchResult>> + Send + use<>, RuntimeError> {
        let search = FileSearch::start(query, roots)?;
        Ok(async move { search.matches().await.into_iter().map(result).collect() })
    }

    /// Starts a session, which ends when it is dropped.
    pub fn start_file_search(
        &self,
        session_id: String,
        roots: Vec<String>,
    ) -> Result<(SearchSession, SearchUpdates), RuntimeError> {
        if session_id.is_empty() {
            return Err(SearchError::NoSessionId.into());
        }
        let (session, reports) = SearchSession::start(roots)?;
        Ok((session, SearchUpdates { session_id, reports }))
    }
}

/// The notifications of one session.
#[derive(Debug)]
pub struct SearchUpdates {
    session_id: String,
    reports: SearchReports,
}

impl SearchUpdates {
    /// `None` when the session has ended.
    pub async fn next(&mut self) -> Option<ServerNotification> {
        let session_id = self.session_id.clone();
        Some(match self.reports.next().await? {
            SearchEvent::Updated { query, matches } => {
                let files = matches.into_iter().map(result).collect();
                ServerNotification::FuzzyFileSearchSessionUpdated(FuzzyFileSearchSessionUpdatedNotification {
                    session_id,
                    query,
                    files,
                })
            }
            SearchEvent::Completed { .. } => ServerNotification::FuzzyFileSearchSessionCompleted(
                FuzzyFileSearchSessionCompletedNotification { session_id },
            ),
        })
    }
}

fn result(found: FileMatch) -> FuzzyFileSearchResult {
    FuzzyFileSearchResult {
        file_name: found.path.rsplit('/').next().unwrap_or_default().to_owned(),
        root: found.root,
        path: found.path,
        match_type: match found.kind {
            MatchKind::File => FuzzyFileSearchMatchType::File,
            MatchKind::Folder => FuzzyFileSearchMatchType::Directory,
        },
        score: found.score,
        indices: Some(found.indices),
    }
}
