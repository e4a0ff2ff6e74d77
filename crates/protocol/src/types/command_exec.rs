//! `command/exec`: commands a client runs outside any thread.

use super::prelude::*;

/// In character cells. Both must be above 0.
#[wire]
pub struct CommandExecTerminalSize {
    pub rows: u16,
    pub cols: u16,
}

/// Runs a command outside any thread. The answer comes when it has ended; closing the connection kills it.
#[wire(omit_null)]
pub struct CommandExecParams {
    /// Program and arguments. Must not be empty.
    pub command: Vec<String>,
    /// The caller's own name for the process, unique among its running ones on this connection. Required for
    /// `tty`, for streaming and to write, resize or terminate.
    pub process_id: Option<String>,
    /// Run in a terminal. Switches streaming on in both directions.
    #[serde(default)]
    pub tty: bool,
    /// Keep stdin open for `command/exec/write`.
    #[serde(default)]
    pub stream_stdin: bool,
    /// Send output as `command/exec/outputDelta` and not in the answer.
    #[serde(default)]
    pub stream_stdout_stderr: bool,
    /// Bytes kept of each stream; 1,048,576 when unset. Not together with `disableOutputCap`.
    pub output_bytes_cap: Option<u64>,
    /// Keep all output.
    #[serde(default)]
    pub disable_output_cap: bool,
    /// Let it run as long as it takes.
    #[serde(default)]
    pub disable_timeout: bool,
    /// 10,000 when unset. Not together with `disableTimeout`.
    pub timeout_ms: Option<i64>,
    /// The server's own when unset.
    pub cwd: Option<String>,
    /// Laid over the environment the server gives; null removes a variable.
    pub env: Option<BTreeMap<String, Option<String>>>,
    /// The terminal's first size. Only with `tty`.
    pub size: Option<CommandExecTerminalSize>,
    /// The configured policy when unset.
    pub sandbox_policy: Option<SandboxPolicy>,
    /// The placement in which it is carried out; the host's own machine when unset. Only a host has placements.
    #[experimental("command/exec.placementId")]
    pub placement_id: Option<String>,
}

/// Writes to a running command, closes its stdin, or both in this order.
#[wire(omit_null)]
pub struct CommandExecWriteParams {
    /// As given to `command/exec`.
    pub process_id: String,
    /// Bytes in base64. Required unless `closeStdin` is true.
    pub delta_base64: Option<String>,
    #[serde(default)]
    pub close_stdin: bool,
    /// The placement in which it is carried out; the host's own machine when unset. Only a host has placements.
    #[experimental("command/exec/write.placementId")]
    pub placement_id: Option<String>,
}

/// Ends a running command. The answer to its `command/exec` follows.
#[wire]
pub struct CommandExecTerminateParams {
    /// As given to `command/exec`.
    pub process_id: String,
    /// The placement in which it is carried out; the host's own machine when unset. Only a host has placements.
    #[omit]
    #[experimental("command/exec/terminate.placementId")]
    pub placement_id: Option<String>,
}

/// Resizes the terminal of a command started with `tty`.
#[wire]
pub struct CommandExecResizeParams {
    /// As given to `command/exec`.
    pub process_id: String,
    pub size: CommandExecTerminalSize,
    /// The placement in which it is carried out; the host's own machine when unset. Only a host has placements.
    #[omit]
    #[experimental("command/exec/resize.placementId")]
    pub placement_id: Option<String>,
}

/// How the command ended.
#[wire]
pub struct CommandExecResponse {
    /// 124 after a timeout. After `command/exec/terminate`, -1 or a code made from the signal.
    pub exit_code: i32,
    /// Empty when output was streamed.
    pub stdout: String,
    /// Empty when output was streamed.
    pub stderr: String,
}

#[wire]
pub struct CommandExecWriteResponse {}

#[wire]
pub struct CommandExecTerminateResponse {}

#[wire]
pub struct CommandExecResizeResponse {}

/// Which stream output came from.
#[wire]
pub enum CommandExecOutputStream {
    /// Also everything a terminal shows.
    Stdout,
    Stderr,
}

/// Sent to the caller alone as output arrives. All of them come before the answer to `command/exec`.
#[wire]
pub struct CommandExecOutputDeltaNotification {
    pub process_id: String,
    pub stream: CommandExecOutputStream,
    /// Bytes in base64.
    pub delta_base64: String,
    /// True on the last piece of a stream that hit its cap; what it writes after that is dropped.
    pub cap_reached: bool,
}
