//! Fuzzy file search: once, or as a session that follows the query while the user types.

use super::prelude::*;

/// Finds files and folders by a fuzzy query: at most 50, the best first. Ignored files are left out.
#[wire]
pub struct FuzzyFileSearchParams {
    /// Case counts only if it has an upper-case letter. An empty one finds nothing.
    pub query: String,
    /// Folders to search.
    pub roots: Vec<String>,
    /// A later search with the same token cancels this one.
    pub cancellation_token: Option<String>,
    /// The placement in which it is carried out; the host's own machine when unset. Only a host has placements.
    #[omit]
    #[experimental("fuzzyFileSearch.placementId")]
    pub placement_id: Option<String>,
}

/// Opens a session: reads the folders once and then matches one query after the other.
#[wire]
pub struct FuzzyFileSearchSessionStartParams {
    /// Chosen by the client. Must not be empty.
    pub session_id: String,
    /// Folders to search.
    pub roots: Vec<String>,
    /// The placement in which it is carried out; the host's own machine when unset. Only a host has placements.
    #[omit]
    #[experimental("fuzzyFileSearch/sessionStart.placementId")]
    pub placement_id: Option<String>,
}

/// Closes a session. An id that is not known is fine.
#[wire]
pub struct FuzzyFileSearchSessionStopParams {
    pub session_id: String,
    /// The placement in which it is carried out; the host's own machine when unset. Only a host has placements.
    #[omit]
    #[experimental("fuzzyFileSearch/sessionStop.placementId")]
    pub placement_id: Option<String>,
}

/// Changes the query. The results come as notifications.
#[wire]
pub struct FuzzyFileSearchSessionUpdateParams {
    pub session_id: String,
    /// An empty one gives an empty list.
    pub query: String,
    /// The placement in which it is carried out; the host's own machine when unset. Only a host has placements.
    #[omit]
    #[experimental("fuzzyFileSearch/sessionUpdate.placementId")]
    pub placement_id: Option<String>,
}

/// The matches.
#[wire]
pub enum FuzzyFileSearchMatchType {
    File,
    Directory,
}

/// One match. Field names are snake_case.
#[wire(snake_case)]
pub struct FuzzyFileSearchResult {
    /// The folder of `roots` it is in.
    pub root: String,
    /// Relative to `root`.
    pub path: String,
    pub match_type: FuzzyFileSearchMatchType,
    /// The last part of `path`.
    pub file_name: String,
    /// Higher is better. Results are in this order, then by path.
    pub score: u32,
    /// Positions of the matching characters in `path`, ascending.
    pub indices: Option<Vec<u32>>,
}

/// Sent to all connections when a session has found everything for its query.
#[wire]
pub struct FuzzyFileSearchSessionCompletedNotification {
    pub session_id: String,
}

/// Sent to all connections when the results for a session's latest query change.
#[wire]
pub struct FuzzyFileSearchSessionUpdatedNotification {
    pub session_id: String,
    /// The query the files answer.
    pub query: String,
    /// All results so far, not only the new ones.
    pub files: Vec<FuzzyFileSearchResult>,
}

#[wire]
pub struct FuzzyFileSearchResponse {
    pub files: Vec<FuzzyFileSearchResult>,
}

#[wire]
pub struct FuzzyFileSearchSessionStartResponse {}

#[wire]
pub struct FuzzyFileSearchSessionUpdateResponse {}

#[wire]
pub struct FuzzyFileSearchSessionStopResponse {}
