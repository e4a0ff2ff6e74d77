//! Environments: the places where a thread's tools run.

use super::prelude::*;

/// An environment chosen for a thread or a turn, and the folder to work in there.
#[wire]
pub struct EnvironmentSelection {
    pub environment_id: EnvironmentId,
    /// A folder of that environment, in its own path syntax.
    pub cwd: String,
}

/// Makes an environment known under an id of the client's choice.
#[wire(omit_null)]
pub struct EnvironmentAddParams {
    pub environment_id: EnvironmentId,
    pub environment: EnvironmentSpec,
    /// How long it may take to become usable.
    pub connect_timeout_ms: Option<u64>,
}

/// How an environment is reached.
#[wire(tag = "type")]
pub enum EnvironmentSpec {
    /// A folder on this machine.
    Local { cwd: AbsolutePath },
    /// Through a command prefix such as `ssh host` or `docker exec -i box`.
    Command {
        /// The prefix; what is to run there comes after it.
        argv: Vec<String>,
        /// A folder of that environment, in its own path syntax.
        cwd: String,
        /// A command that succeeds once the environment can be used; `true` when unset.
        #[omit]
        probe: Option<Vec<String>>,
    },
}

#[wire]
pub struct EnvironmentAddResponse {}

/// Asks how an environment is reached and what was found there.
#[wire]
pub struct EnvironmentInfoParams {
    pub environment_id: EnvironmentId,
}

#[wire]
pub struct EnvironmentInfoResponse {
    pub environment_id: EnvironmentId,
    pub environment: EnvironmentSpec,
    /// Unknown until the environment was reached once.
    pub shell: Option<EnvironmentShell>,
    /// The folder commands start in, once known.
    pub cwd: Option<String>,
}

/// The shell commands run in.
#[wire]
pub struct EnvironmentShell {
    pub name: String,
    pub path: String,
}

/// Asks whether an environment can be used now.
#[wire]
pub struct EnvironmentStatusParams {
    pub environment_id: EnvironmentId,
}

#[wire]
pub struct EnvironmentStatusResponse {
    pub status: EnvironmentStatus,
    /// Why the environment cannot be used.
    #[omit]
    pub error: Option<String>,
}

/// Whether an environment can be used.
#[wire]
pub enum EnvironmentStatus {
    /// Not yet: it may be mentioned to the model, but its tools are not offered.
    Starting,
    /// It can.
    Attached,
    /// No longer, or it could not be reached.
    Disconnected,
    /// No environment has this id.
    Unknown,
}

/// Sent when an environment of the thread can be used. The next model request sees it.
#[wire]
pub struct ThreadEnvironmentConnectedNotification {
    pub thread_id: ThreadId,
    pub environment_id: EnvironmentId,
}

/// Sent when an environment of the thread can no longer be used.
#[wire]
pub struct ThreadEnvironmentDisconnectedNotification {
    pub thread_id: ThreadId,
    pub environment_id: EnvironmentId,
    #[omit]
    pub reason: Option<String>,
}
