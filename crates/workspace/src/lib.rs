//! Owns the reader of files for threads: it reads nothing outside the project or the readable roots, nothing hidden,
//! never blocks and limits every read. Also owns the file operations of clients: reading, writing, copying, watching
//! and searching. Must not know configuration, sandboxes or the purpose of a read: callers pass plain paths.

mod access;
mod error;
mod files;
pub mod fuzzing;
mod git;
mod instructions;
mod list;
mod marker;
mod open;
mod reader;
mod search;
mod watch;
mod within;

pub use access::Access;
pub use error::{ReadError, ReadProblem};
pub use files::{
    DirectoryEntry, FileError, PathFacts, copy, create_directory, is_temporary_name, path_facts,
    read_directory, read_in_pieces, remove, write_file,
};
pub use git::{GitCheckout, git_info, git_root};
pub use instructions::{InstructionOptions, read_global_instructions, read_instructions};
pub use list::{Entry, EntryKind, Listing};
pub use marker::is_marker;
pub use reader::{FoundPath, OpenedFile, Reader};
pub use search::{
    FileMatch, FileSearch, FileVisitor, FileWalk, MAX_MATCHES, MatchKind, NameFilter, SearchError,
    SearchEvent, SearchReports, SearchSession,
};
pub use watch::{PathChanges, PathEvent, Subscription, WatchCoverage, Watcher};
pub use within::{READ_LIMIT, StepCount, in_time, within, within_steps};
