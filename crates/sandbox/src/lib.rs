//! Owns starting processes and terminals under a sandbox policy, limiting their output, and ending them. Must not know
//! models or threads.

mod command_user;
mod helper;
mod inherited;
mod off_limits;
mod open_files;
mod order;
mod policy;
mod presence;
mod process;
mod protected_scan;
mod seal;
mod self_test;

pub use command_user::{
    SeparationReport, as_command_user, has_command_user, separate_commands, try_separation,
};
pub use inherited::inherited_sockets;
pub use names::{PROTECTED_NAMES, is_protected};
pub use off_limits::{is_named_within, split};
pub use open_files::raise_open_files;
pub use order::{Confinement, LaterListeners, Limits, OffLimits, Order, ReadAccess, Strength};
pub use process::{
    CAPTURE_BYTES, Chunk, CommandClock, CommandGuard, CommandInputError, DRAIN_LIMIT, Excerpt, Exit, Extras,
    FinishedCommand, Frozen, HeadTail, Io, Output, OutputStream, Process, RunOptions, SpawnError,
    TIMEOUT_CODE, TerminalSize, Utf8Chunks, freeze_sandboxed, pinned_path, run, run_with,
};
pub use protected_scan::{Protected, ScanLimit, protected_below};
pub use seal::seal_process;
pub use self_test::{LayerResult, SelfTest, SelfTestReport};

/// For the crate's own tests: the helper without an async runtime, and without individual layers.
#[doc(hidden)]
pub mod testing {
    pub use crate::helper::launch::{LaunchedHelper, launch};
    pub use crate::helper::layers::SandboxLayer;
    pub use crate::helper::wire::{HelperStatus, StartFailure, StartStage};
}
