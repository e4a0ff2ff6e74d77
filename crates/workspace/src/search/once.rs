//! One search with one answer.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::spawn_blocking;

use super::candidates::Candidates;
use super::ranking::{Ranking, path_matcher};
use super::{FileMatch, SearchError, walk};
use crate::READ_LIMIT;

/// A running search. Dropping it ends it.
#[derive(Debug)]
pub struct FileSearch {
    list: Arc<Candidates>,
    roots: Vec<String>,
    query: String,
}

impl FileSearch {
    /// An empty query, or no folder, finds nothing and reads nothing.
    pub fn start(query: String, roots: Vec<String>) -> Result<Self, SearchError> {
        let list = match query.is_empty() || roots.is_empty() {
            true => {
                let list = Arc::<Candidates>::default();
                list.complete();
                list
            }
            false => walk::start(&roots)?,
        };
        Ok(Self { list, roots, query })
    }

    /// Waits for the whole walk. Folders that hang are abandoned, and missing in the matches.
    pub async fn matches(self) -> Vec<FileMatch> {
        let mut seen = 0;
        while !self.list.is_complete() {
            let changed = tokio::time::timeout(READ_LIMIT, self.list.changed.notified()).await;
            let found = self.list.block_count();
            if changed.is_err() && std::mem::replace(&mut seen, found) == found {
                tracing::warn!(roots = ?self.roots, "a folder did not answer and was not searched");
                break;
            }
        }
        let (list, roots) = (self.list.clone(), self.roots.clone());
        let mut ranking = Ranking::new(&self.query);
        let rank = move || {
            let mut matcher = path_matcher();
            while !list.is_stopped()
                && !ranking.advance(&list, &mut matcher, Instant::now() + Duration::from_millis(50))
            {
            }
            ranking.best(&roots, &mut matcher)
        };
        spawn_blocking(rank).await.unwrap_or_default()
    }
}

impl Drop for FileSearch {
    fn drop(&mut self) {
        self.list.stop();
    }
}
