//! The messages between the server and the helper process that starts one command: fixed descriptors, the name the
//! helper is called by, and the lines it writes about how the command fares.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The whole of `argv[0]`. A process called like this becomes the helper before `main` and never returns from it.
pub(crate) const NAME: &str = "oarlock-sandbox";

/// The [`Order`](crate::Order) as JSON, read to its end.
pub(crate) const ORDER_FD: i32 = 3;
/// Its end, or any byte, means: kill everything now. The end comes by itself when the server dies.
pub(crate) const CONTROL_FD: i32 = 4;
/// The helper writes one [`HelperStatus`] per line here.
pub(crate) const STATUS_FD: i32 = 5;

/// The first of the files with pinned contents, of which the request says how many there are.
pub(crate) const PINNED_FD: i32 = 6;
/// Where the command finds the first of them, out of the way of numbers that scripts use.
pub(crate) const PINNED_AT: i32 = 200;

/// One line on the status descriptor.
///
/// `Started` at most once, then exactly one of the others. A pipe that ends without one of those means that the helper
/// itself was killed.
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

/// Which step failed. Only `Exec` and `Directory` are about the command; the others are about the sandbox.
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
    /// The working directory is not there, or cannot be entered.
    Directory,
    /// The program is not there, or cannot be run.
    Exec,
}
