//! Fuzzy file search: once, or as a session that follows the user's typing.
//!
//! A few threads walk the folders once, into a list of paths. A query is matched against that list in slices of a few
//! milliseconds, so that first matches come at once, however many files there are.

mod candidates;
mod file_walk;
mod global_rules;
mod ignore_rules;
mod matches;
mod once;
mod ranking;
mod session;
mod walk;
mod work_queue;

pub use file_walk::{FileVisitor, FileWalk, NameFilter};
pub use matches::{FileMatch, MatchKind};
pub use once::FileSearch;
pub use session::{SearchEvent, SearchReports, SearchSession};

/// Limit of matches per query.
pub const MAX_MATCHES: usize = 50;

/// Why a search cannot start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SearchError {
    #[error("sessionId must not be empty")]
    NoSessionId,
    #[error("fuzzy file search session not found: {0}")]
    UnknownSession(String),
    #[error("failed to start fuzzy file search session: at least one search directory is required")]
    NoRoots,
    #[error("{0} fuzzy file search sessions are open on this connection, which is the most; stop one first")]
    TooManySessions(usize),
    #[error("{0} folder searches are running, which is the most; retry later")]
    TooManyWalks(usize),
}

#[cfg(test)]
mod tests;
