//! Owns memories: what is asked of the model about a finished thread, what of its answer is kept, and the text that
//! later threads are told. Must not know turns, clients, or who carries a request.

mod answer;
mod folder;
mod pipeline;
mod prompts;
mod selection;
mod transcript;

pub use folder::{MemoryFolder, ThreadMemory};
pub use pipeline::{MemoryError, MemoryReport, MemoryRun};
