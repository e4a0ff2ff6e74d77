//! Owns the one reader: how a file is opened and read on behalf of a thread, so that nothing outside the project, outside
//! the readable roots or hidden is read, nothing blocks and nothing is read without a bound. Owns as well what clients do
//! with files by themselves: reading, writing, copying, watching and searching them.
//! Must not know configuration, sandboxes or what the files are read for: callers hand in plain paths.

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
