//! Follows one helper from start to end, so that it is reaped whether or not the end is awaited.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, pidfd_send_signal, waitpid};
use tokio::io::unix::AsyncFd;
use tokio::sync::{oneshot, watch};

use super::control::WhenCut;
use super::exit::Exit;
use super::freeze::RegisteredHelper;
use super::handle::CommandGuard;
use super::launch::UnreapedHelper;
use super::stream::{PipeStream, register};
use crate::helper::wire::{HelperStatus, StartFailure};

/// How long a helper gets to kill and reap everything, longer than its own limit. After that it is killed, and then
/// processes without a sandbox may survive.
const CLEAN_UP: Duration = Duration::from_secs(10);
/// The longest line is an error message with a path in it.
const MAX_STATUS_BYTES: usize = 64 * 1024;

/// The result of a start.
#[derive(Debug)]
pub(crate) enum Start {
    Running {
        pid: u32,
    },
    Failed(StartFailure),
    /// The helper ended without a report.
    Lost(Exit),
}

/// Values whose drop signals the command's end.
pub(crate) type KeptGuards = (Option<CommandGuard>, Option<RegisteredHelper>);

pub(crate) struct HelperSupervisor {
    helper: Helper,
    status: PipeStream,
    when_cut: WhenCut,
    start: Option<oneshot::Sender<Start>>,
    end: watch::Sender<Option<Exit>>,
    /// Dropped when all processes of the command have ended.
    kept: KeptGuards,
}

/// The channels on which the supervisor reports start and end.
pub(crate) struct SupervisorNews {
    pub(crate) start: oneshot::Receiver<Start>,
    pub(crate) end: watch::Receiver<Option<Exit>>,
}

impl HelperSupervisor {
    pub(crate) fn new(
        launched: UnreapedHelper,
        status: OwnedFd,
        when_cut: WhenCut,
        kept: KeptGuards,
    ) -> io::Result<(Self, SupervisorNews)> {
        let (start, start_news) = oneshot::channel();
        let (end, end_news) = watch::channel(None);
        let helper = Helper { pid: launched.pid, pidfd: register(launched.pidfd)?, reaped: false };
        let status = PipeStream::new(status)?;
        let supervisor = Self { helper, status, when_cut, start: Some(start), end, kept };
        Ok((supervisor, SupervisorNews { start: start_news, end: end_news }))
    }

    /// The helper reports the end when all processes and traces of the command are gone. Only its own exit follows,
    /// which need not be awaited.
    pub(crate) async fn run(mut self) {
        let mut told = None;
        let gone = {
            let follow = async {
                told = follow(&self.status, &mut self.start).await;
                if let Some(exit) = told {
                    tell(exit, &mut self.start, &self.end);
                    self.kept = (None, None);
                }
                tokio::time::timeout(CLEAN_UP, self.helper.gone()).await.is_ok()
            };
            let overdue = async {
                self.when_cut.wait().await;
                tokio::time::sleep(CLEAN_UP).await;
            };
            tokio::select! {
                gone = follow => gone,
                () = overdue => false,
            }
        };
        if !gone {
            tracing::warn!(
                pid = self.helper.pid.as_raw_nonzero(),
                "a sandbox helper does not end and is killed"
            );
            self.helper.kill();
        }
        let own = self.helper.reap().await;
        if told.is_none() {
            tell(own, &mut self.start, &self.end);
        }
    }
}

fn tell(exit: Exit, start: &mut Option<oneshot::Sender<Start>>, end: &watch::Sender<Option<Exit>>) {
    if let Some(start) = start.take() {
        // The caller may have been cancelled.
        let _ = start.send(Start::Lost(exit));
    }
    end.send_replace(Some(exit));
}

/// Reads the helper's status lines until the end.
async fn follow(status: &PipeStream, start: &mut Option<oneshot::Sender<Start>>) -> Option<Exit> {
    let mut lines = Vec::new();
    let mut buffer = [0; 4096];
    while lines.len() < MAX_STATUS_BYTES {
        let count = status.read(&mut buffer).await.unwrap_or(0);
        if count == 0 {
            return None;
        }
        lines.extend_from_slice(&buffer[..count]);
        while let Some(end) = lines.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = lines.drain(..=end).collect();
            let Ok(status) = serde_json::from_slice::<HelperStatus>(&line) else { continue };
            if let Some(exit) = Exit::from_status(&status) {
                return Some(exit);
            }
            let news = match status {
                HelperStatus::Started { pid } => Start::Running { pid },
                HelperStatus::Failed(failure) => Start::Failed(failure),
                HelperStatus::Exited { .. } | HelperStatus::Signaled { .. } => continue,
            };
            if let Some(start) = start.take() {
                let _ = start.send(news);
            }
        }
    }
    None
}

struct Helper {
    pid: Pid,
    pidfd: AsyncFd<OwnedFd>,
    reaped: bool,
}

impl Helper {
    async fn gone(&self) {
        // An error could only come from a runtime that is shutting down.
        let _ = self.pidfd.readable().await;
    }

    fn kill(&self) {
        let _ = pidfd_send_signal(self.pidfd.as_fd(), Signal::KILL);
    }

    async fn reap(&mut self) -> Exit {
        self.gone().await;
        self.reaped = true;
        let status = waitpid(Some(self.pid), WaitOptions::NOHANG).ok().flatten();
        let exit_of = |status: WaitStatus| match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Some(Exit::with_code(code)),
            (None, signal) => signal.map(Exit::by_signal),
        };
        // Unknown only if the system reaps by itself, because the server was started with SIGCHLD ignored.
        status.and_then(|(_, status)| exit_of(status)).unwrap_or_else(|| Exit::by_signal(libc::SIGKILL))
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        if self.reaped {
            return;
        }
        // The runtime has ended, so no task can wait. The command's processes are killed with the last handle; this
        // only prevents its helper from staying a zombie.
        let pid = self.pid;
        let _ = std::thread::Builder::new().spawn(move || waitpid(Some(pid), WaitOptions::empty()));
    }
}
