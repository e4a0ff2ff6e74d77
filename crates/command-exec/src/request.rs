//! A client's request with validated fields.

use std::collections::BTreeMap;
use std::time::Duration;

use protocol::{CommandExecParams, CommandExecTerminalSize, SandboxPolicy};
use sandbox::{Io, TerminalSize};

use super::error::{CommandExecError, MAX_ID_BYTES};

/// The default limit of each stream.
const DEFAULT_CAP_BYTES: u64 = 1024 * 1024;
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, PartialEq)]
pub(super) struct CommandRequest {
    pub(super) id: Option<String>,
    pub(super) argv: Vec<String>,
    pub(super) cwd: Option<String>,
    /// Added to the server's variables; `None` removes one.
    pub(super) env: BTreeMap<String, Option<String>>,
    pub(super) sandbox: Option<SandboxPolicy>,
    pub(super) io: Io,
    pub(super) streams_output: bool,
    /// `None`: all of it.
    pub(super) cap_bytes: Option<u64>,
    /// `None`: as long as it takes.
    pub(super) timeout: Option<Duration>,
}

impl CommandRequest {
    pub(super) fn read(params: CommandExecParams) -> Result<Self, CommandExecError> {
        if params.command.is_empty() {
            return Err(CommandExecError::EmptyCommand);
        }
        let size = match &params.size {
            Some(_) if !params.tty => return Err(CommandExecError::SizeWithoutTerminal),
            Some(size) => Some(terminal_size(size)?),
            None => None,
        };
        let cap_bytes = match (params.output_bytes_cap, params.disable_output_cap) {
            (Some(_), true) => return Err(CommandExecError::TwoCaps),
            (None, true) => None,
            (cap, false) => Some(cap.unwrap_or(DEFAULT_CAP_BYTES)),
        };
        let timeout = timeout(params.timeout_ms, params.disable_timeout)?;
        let streams_output = params.tty || params.stream_stdout_stderr;
        if params.process_id.is_none() && (streams_output || params.stream_stdin) {
            return Err(CommandExecError::NoProcessId);
        }
        if params.process_id.as_ref().is_some_and(|id| id.len() > MAX_ID_BYTES) {
            return Err(CommandExecError::LongProcessId);
        }
        let io = match (params.tty, params.stream_stdin) {
            (true, _) => Io::Terminal(size.unwrap_or_default()),
            (false, true) => Io::Pipe,
            (false, false) => Io::Null,
        };
        Ok(Self {
            id: params.process_id,
            argv: params.command,
            cwd: params.cwd,
            env: params.env.unwrap_or_default(),
            sandbox: params.sandbox_policy,
            io,
            streams_output,
            cap_bytes,
            timeout,
        })
    }
}

fn timeout(timeout_ms: Option<i64>, is_disabled: bool) -> Result<Option<Duration>, CommandExecError> {
    match (timeout_ms, is_disabled) {
        (Some(_), true) => Err(CommandExecError::TwoTimeouts),
        (None, true) => Ok(None),
        (None, false) => Ok(Some(DEFAULT_TIMEOUT)),
        (Some(given), false) => match u64::try_from(given) {
            Ok(timeout_ms) => Ok(Some(Duration::from_millis(timeout_ms))),
            Err(_) => Err(CommandExecError::NegativeTimeout(given)),
        },
    }
}

pub(super) fn terminal_size(size: &CommandExecTerminalSize) -> Result<TerminalSize, CommandExecError> {
    let CommandExecTerminalSize { rows, cols } = *size;
    if rows == 0 || cols == 0 { Err(CommandExecError::EmptySize) } else { Ok(TerminalSize { rows, cols }) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::expect_used, reason = "a test may panic")]

    use serde_json::{Value, json};

    use super::*;

    fn read(more: &Value) -> Result<CommandRequest, CommandExecError> {
        let mut params = json!({"command": ["true"]});
        let more = more.as_object().expect("an object").clone();
        params.as_object_mut().expect("an object").extend(more);
        CommandRequest::read(serde_json::from_value(params).expect("params"))
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        use CommandExecError as E;
        let cases = [
            (json!({"size": {"rows": 1, "cols": 1}}), E::SizeWithoutTerminal),
            (json!({"processId": "p", "tty": true, "size": {"rows": 1, "cols": 0}}), E::EmptySize),
            // The size is checked before the missing id.
            (json!({"tty": true, "size": {"rows": 0, "cols": 1}}), E::EmptySize),
            (json!({"outputBytesCap": 0, "disableOutputCap": true}), E::TwoCaps),
            (json!({"timeoutMs": 0, "disableTimeout": true}), E::TwoTimeouts),
            (json!({"timeoutMs": i64::MIN}), E::NegativeTimeout(i64::MIN)),
            (json!({"tty": true}), E::NoProcessId),
            (json!({"streamStdin": true}), E::NoProcessId),
            (json!({"streamStdoutStderr": true}), E::NoProcessId),
            (json!({"processId": "x".repeat(MAX_ID_BYTES + 1)}), E::LongProcessId),
        ];
        for (more, expected) in cases {
            assert_eq!(read(&more), Err(expected), "{more}");
        }
        assert_eq!(
            read(&json!({"command": [], "tty": true, "timeoutMs": -1})),
            Err(CommandExecError::EmptyCommand)
        );
    }

    #[test]
    fn defaults_are_filled_in() {
        let plain = read(&json!({})).expect("it is fine");
        assert_eq!((plain.io, plain.streams_output), (Io::Null, false));
        assert_eq!((plain.cap_bytes, plain.timeout), (Some(1 << 20), Some(Duration::from_secs(10))));
        let free = read(&json!({"disableOutputCap": true, "disableTimeout": true})).expect("it is fine");
        assert_eq!((free.cap_bytes, free.timeout), (None, None));
        let zero = read(&json!({"outputBytesCap": 0, "timeoutMs": 0})).expect("it is fine");
        assert_eq!((zero.cap_bytes, zero.timeout), (Some(0), Some(Duration::ZERO)));
    }

    #[test]
    fn a_terminal_streams_both_ways() {
        let terminal = read(&json!({"processId": "p", "tty": true})).expect("it is fine");
        assert_eq!(terminal.io, Io::Terminal(TerminalSize { rows: 24, cols: 80 }));
        assert!(terminal.streams_output);
        let piped = read(&json!({"processId": "p", "streamStdin": true})).expect("it is fine");
        assert_eq!((piped.io, piped.streams_output), (Io::Pipe, false));
    }
}
