//! The server's side of a command: starting the helper that runs it, its input and output, and its end.

mod clock;
mod control;
mod error;
mod exit;
mod freeze;
mod handle;
mod head_tail;
mod input;
mod launch;
mod output;
mod run;
mod stdio;
mod stream;
mod supervise;
mod terminal;
mod text_chunks;

pub use clock::CommandClock;
pub use error::{CommandInputError, SpawnError};
pub use exit::Exit;
pub use freeze::{Frozen, freeze_sandboxed};
pub use handle::{CommandGuard, Extras, Process, pinned_path};
pub use head_tail::{Excerpt, HeadTail};
pub use output::{Chunk, DRAIN_LIMIT, Output, OutputStream};
pub use run::{CAPTURE_BYTES, FinishedCommand, RunOptions, TIMEOUT_CODE, run, run_with};
pub use stdio::Io;
pub use terminal::TerminalSize;
pub use text_chunks::Utf8Chunks;
