//! The handle of a running command.

use std::any::Any;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::sync::watch;

use super::control::Control;
use super::error::{CommandInputError, SpawnError};
use super::exit::Exit;
use super::freeze::{self, Frozen, RegisteredHelper};
use super::input::CommandInput;
use super::launch::{Descriptors, launch, order_file};
use super::output::Output;
use super::stdio::{self, Io, Ours};
use super::supervise::{HelperSupervisor, Start, SupervisorNews};
use super::terminal::TerminalSize;
use crate::helper::shared_mapping;
use crate::helper::wire::{self, StartFailure, StartStage};
use crate::order::Order;

/// Dropped when all processes of a command have ended, whether or not the end is awaited.
pub type CommandGuard = Arc<dyn Any + Send + Sync>;

/// Options of a command besides its order.
#[derive(Debug, Default)]
pub struct Extras {
    pub guard: Option<CommandGuard>,
    /// The files that the command finds under [`pinned_path`]: sealed files that cannot be changed.
    pub pinned: Vec<OwnedFd>,
    /// Dropped when the command has started, or failed to.
    pub frozen: Option<Frozen>,
}

/// The path under which a command finds the pinned file of this number.
pub fn pinned_path(number: usize) -> String {
    format!("/proc/self/fd/{}", wire::PINNED_AT.unsigned_abs() as usize + number)
}

/// A running command. Clones share it; dropping the last one kills it with all its processes.
#[derive(Debug, Clone)]
pub struct Process {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    pid: u32,
    input: CommandInput,
    control: Control,
    end: watch::Receiver<Option<Exit>>,
}

impl Process {
    /// Returns when the command runs, or when its start has failed. Dropping the future ends what was started.
    ///
    /// `io` decides whether there is a terminal, whatever the order says.
    pub async fn spawn(order: Order, io: Io) -> Result<(Self, Output), SpawnError> {
        Self::spawn_with(order, io, Extras::default()).await
    }

    /// Like [`spawn`](Self::spawn), with further options.
    pub async fn spawn_with(mut order: Order, io: Io, extras: Extras) -> Result<(Self, Output), SpawnError> {
        let Extras { guard, pinned, frozen } = extras;
        order.terminal = matches!(io, Io::Terminal(_));
        check(&order)?;
        let (Ours { input, output }, stdio) = stdio::open(io)?;
        let (their_control, our_control) = stdio::pipe()?;
        let (our_status, their_status) = stdio::pipe()?;
        let control = Control::new(our_control);
        let is_sandboxed = order.confinement.is_some();
        let mapping = if is_sandboxed { shared_mapping() } else { None };
        let order_file = order_file(&order, pinned.len(), mapping.is_some())?;
        let starting = if is_sandboxed { Some(freeze::may_start().await) } else { None };
        let launched = launch(Descriptors {
            stdio,
            order: order_file,
            control: their_control,
            status: their_status,
            pinned,
            mapping,
        })?;
        let registered = is_sandboxed.then(|| RegisteredHelper::new(launched.pid));
        drop(starting);
        let kept = (guard, registered);
        let (supervisor, SupervisorNews { start, end }) =
            HelperSupervisor::new(launched, our_status, control.subscribe(), kept)?;
        tokio::spawn(supervisor.run());
        let start = start.await;
        drop(frozen);
        match start {
            Ok(Start::Running { pid }) => {
                let output = Output::new(output, end.clone());
                Ok((Self { shared: Arc::new(Shared { pid, input, control, end }) }, output))
            }
            Ok(Start::Failed(failure)) => Err(spawn_error(&order, failure)),
            Ok(Start::Lost(exit)) => {
                let message = format!("the helper ended before the command began (code {})", exit.code);
                Err(SpawnError::Sandbox { message })
            }
            Err(_) => Err(SpawnError::Sandbox { message: "the runtime is shutting down".to_owned() }),
        }
    }

    /// As the server sees it, whatever the command itself sees.
    pub fn pid(&self) -> u32 {
        self.shared.pid
    }

    /// Waits for space, and for earlier writes. Returns when the system has accepted everything.
    pub async fn write(&self, bytes: &[u8]) -> Result<(), CommandInputError> {
        self.while_it_runs(self.shared.input.write(bytes)).await
    }

    /// Closes the input after earlier writes.
    pub async fn close_stdin(&self) -> Result<(), CommandInputError> {
        self.while_it_runs(self.shared.input.close()).await
    }

    /// Control-C: a key on a terminal, otherwise the same signal to the same processes.
    pub async fn interrupt(&self) -> Result<(), CommandInputError> {
        if let Some(press) = self.shared.input.press_interrupt() {
            return self.while_it_runs(press).await;
        }
        // The command leads a session and a process group, under its own id.
        let group = Pid::from_raw(self.pid().cast_signed()).filter(|_| self.exit().is_none());
        match kill_process_group(group.ok_or(CommandInputError::NotRead)?, Signal::INT) {
            Err(Errno::SRCH) => Err(CommandInputError::NotRead),
            result => Ok(result.map_err(io::Error::from)?),
        }
    }

    pub fn resize(&self, size: TerminalSize) -> Result<(), CommandInputError> {
        self.shared.input.resize(size)
    }

    /// Returns at once; [`wait`](Self::wait) returns when everything has ended. No effect the second time.
    pub fn kill(&self) {
        self.shared.control.cut();
    }

    /// Returns the same result to all callers. By then all processes of the command have ended.
    pub async fn wait(&self) -> Exit {
        let mut end = self.shared.end.clone();
        let exit = end.wait_for(Option::is_some).await.ok().and_then(|exit| *exit);
        // Only a runtime that shuts down drops the supervisor, which ends the command too.
        exit.unwrap_or_else(|| Exit::by_signal(libc::SIGKILL))
    }

    /// `None` while it runs.
    pub fn exit(&self) -> Option<Exit> {
        *self.shared.end.borrow()
    }

    async fn while_it_runs(
        &self,
        action: impl Future<Output = Result<(), CommandInputError>>,
    ) -> Result<(), CommandInputError> {
        if self.exit().is_some() {
            return Err(CommandInputError::NotRead);
        }
        tokio::select! {
            biased;
            // First: input that the command read before it ended was accepted.
            result = action => result,
            _ = self.wait() => Err(CommandInputError::NotRead),
        }
    }
}

/// Refuses an order that is invalid for any program. Checked here so that the error can name the field.
fn check(order: &Order) -> Result<(), SpawnError> {
    let invalid = |field, problem| Err(SpawnError::Invalid { field, problem });
    let has_nul = |text: &str| text.contains('\0');
    if order.argv.first().is_none_or(String::is_empty) {
        return invalid("argv", "names no program");
    }
    if order.argv.iter().any(|argument| has_nul(argument)) {
        return invalid("argv", "contains a NUL byte");
    }
    if order.cwd.as_os_str().as_encoded_bytes().contains(&0) {
        return invalid("cwd", "contains a NUL byte");
    }
    if !order.cwd.is_absolute() {
        return invalid("cwd", "is not absolute");
    }
    if order.env.iter().any(|(name, value)| has_nul(name) || has_nul(value)) {
        return invalid("env", "contains a NUL byte");
    }
    if order.env.keys().any(|name| name.is_empty() || name.contains('=')) {
        return invalid("env", "contains a name that is empty or has `=` in it");
    }
    Ok(())
}

fn spawn_error(order: &Order, StartFailure { stage, message }: StartFailure) -> SpawnError {
    let program = || order.argv.first().cloned().unwrap_or_default();
    match stage {
        StartStage::Directory => SpawnError::BadDirectory { path: order.cwd.clone(), message },
        StartStage::Exec => match system_error(&message) {
            Some(libc::ENOENT | libc::ENOTDIR) => SpawnError::NotFound { program: program() },
            Some(libc::EACCES | libc::EPERM) => SpawnError::Denied { program: program() },
            _ => SpawnError::NotRunnable { program: program(), message },
        },
        StartStage::Order
        | StartStage::Limits
        | StartStage::Namespaces
        | StartStage::Mounts
        | StartStage::Privileges
        | StartStage::Landlock
        | StartStage::Seccomp => SpawnError::Sandbox { message },
    }
}

/// The error number at the end of the standard library's error texts.
fn system_error(message: &str) -> Option<i32> {
    message.strip_suffix(')')?.rsplit_once("(os error ")?.1.parse().ok()
}
