//! A patch as data: what was written, before anything is looked up on disk.

/// A parsed patch. Hunks take effect in order, each seeing what the ones before it left.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Patch {
    pub hunks: Vec<Hunk>,
}

/// The change to one file. Paths are as written, relative to a base chosen later, or absolute.
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
    /// The text that must be in the file, if this line asks for any.
    pub(crate) fn wanted(&self) -> Option<&str> {
        match self {
            Self::Keep(text) | Self::Old(text) => Some(text),
            Self::New(_) => None,
        }
    }

    /// The text that will be in the file, if this line leaves any.
    pub(crate) fn left(&self) -> Option<&str> {
        match self {
            Self::Keep(text) | Self::New(text) => Some(text),
            Self::Old(_) => None,
        }
    }
}
