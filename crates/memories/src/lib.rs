//! Owns memories: the model requests about finished threads, the kept parts of the answers, and the text for later
//! threads. Must not know turns, clients, or who carries a request.

mod answer;
mod folder;
mod pipeline;
mod prompts;
mod selection;
mod transcript;

pub use folder::{MemoryFolder, ThreadMemory};
pub use pipeline::{MemoryError, MemoryReport, MemoryRun};
