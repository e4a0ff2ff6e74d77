//! A patch as data, before anything is read from disk.

/// A parsed patch. Hunks apply in order, each to the result of the previous ones.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Patch {
    pub hunks: Vec<Hunk>,
}

/// The change to one file. Paths are as written: relative to a base, or absolute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hunk {
    Add { path: String, content: String },
    Delete { path: String },
    Update { path: String, move_to: Option<String>, chunks: Vec<PatchChunk> },
}

impl Hunk {
    /// The file the hunk names first, as written.
    #[must_use]
    pub fn path(&self) -> &str {
        match self {
            Self::Add { path, .. } | Self::Delete { path } | Self::Update { path, .. } => path,
        }
    }
}

/// One run of lines to find and replace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PatchChunk {
    /// A line that must come before the chunk, from `@@ line`.
    pub context: Option<String>,
    pub lines: Vec<PatchLine>,
    /// The chunk must match the very end of the file.
    pub end_of_file: bool,
}

/// One line of a chunk, without its marker and line ending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PatchLine {
    Keep(String),
    Old(String),
    New(String),
}

impl PatchLine {
    /// The text that must be in the file, if any.
    pub(crate) fn wanted(&self) -> Option<&str> {
        match self {
            Self::Keep(text) | Self::Old(text) => Some(text),
            Self::New(_) => None,
        }
    }

    /// The text that the line leaves in the file, if any.
    pub(crate) fn left(&self) -> Option<&str> {
        match self {
            Self::Keep(text) | Self::New(text) => Some(text),
            Self::Old(_) => None,
        }
    }
}
