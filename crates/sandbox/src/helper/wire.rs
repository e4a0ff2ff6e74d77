//! The messages between the server and the helper process of a command: fixed descriptors, the helper's name, and its
//! status lines.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The whole of `argv[0]`. A process with this name becomes the helper before `main` and never returns from it.
pub(crate) const NAME: &str = "oarlock-sandbox";

/// The [`Order`](crate::Order) as JSON, read to its end.
pub(crate) const ORDER_FD: i32 = 3;
/// Its end, or any byte, means: kill everything now. It ends by itself when the server dies.
pub(crate) const CONTROL_FD: i32 = 4;
/// The helper writes one [`HelperStatus`] per line here.
pub(crate) const STATUS_FD: i32 = 5;

/// The first of the files with pinned contents; the request says how many there are.
pub(crate) const PINNED_FD: i32 = 6;
/// The first descriptor number for them in the command, away from numbers that scripts use.
pub(crate) const PINNED_AT: i32 = 200;

/// One line on the status descriptor.
///
/// `Started` at most once, then exactly one of the others. If the pipe ends without one of those, the helper itself was
/// killed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HelperStatus {
    /// The command runs: its `exec` has succeeded.
    Started {
        pid: u32,
    },
    /// The command never ran.
    Failed(StartFailure),
    Exited {
        code: i32,
    },
    Signaled {
        signal: i32,
    },
}

/// Why a command could not be started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartFailure {
    pub stage: StartStage,
    pub message: String,
}

impl fmt::Display for StartFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Which step failed. Only `Exec` and `Directory` concern the command; the others concern the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StartStage {
    /// The order itself could not be read.
    Order,
    /// The pids or memory limit.
    Limits,
    Namespaces,
    Mounts,
    Privileges,
    Landlock,
    Seccomp,
    /// The working directory does not exist, or cannot be entered.
    Directory,
    /// The program does not exist, or cannot be run.
    Exec,
}
