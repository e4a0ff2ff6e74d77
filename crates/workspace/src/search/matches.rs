//! One match, as returned by a search.

/// The kind of what was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatchKind {
    File,
    Folder,
}

/// A file or folder that matches a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileMatch {
    /// As the caller gave it.
    pub root: String,
    /// Relative to the root.
    pub path: String,
    pub kind: MatchKind,
    pub score: u32,
    /// Indexes of the matching characters, ascending.
    pub indices: Vec<u32>,
}
