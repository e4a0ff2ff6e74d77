//! A command that may outlive its call: its output and its process.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use protocol::ItemId;
use sandbox::{Chunk, CommandClock, CommandInputError, Confinement, Process};
use tokio::sync::watch;
use tokio::time::Instant;

use super::unread::Unread;
use crate::exec::{CommandExit, Live, WholeOutput};
use crate::remote;

/// The exit code that a shell gives for a killed command.
const KILLED: i32 = 128 + 9;

/// The progress of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SessionProgress {
    Running,
    /// It has ended and all its output was read.
    Ended,
    /// Clients have all its output.
    Shown,
    /// Clients were notified of its end.
    Told,
}

#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: u32,
    /// One shell-quoted line.
    pub(crate) command: String,
    pub(crate) item_id: ItemId,
    pub(crate) tty: bool,
    pub(crate) began: Instant,
    pub(crate) process: Process,
    pub(crate) live: Live,
    /// Its environment, if that is not this machine. Fixed, even if the thread changes environments.
    elsewhere: Option<String>,
    /// The sandbox it was started in, which may differ from the thread's current one.
    pub(crate) confinement: Option<Confinement>,
    end: OnceLock<CommandExit>,
    /// It was told to end.
    stopped: AtomicBool,
    unread: Mutex<Unread>,
    /// The file with the whole output, if it is too long to show.
    whole: Mutex<Option<WholeOutput>>,
    progress: watch::Sender<SessionProgress>,
    /// The number of calls that must send notifications before that of the end.
    attending: watch::Sender<usize>,
}

/// While it exists, clients are not notified of the end.
#[derive(Debug)]
pub(crate) struct Attending<'a>(&'a Session);

impl Drop for Attending<'_> {
    fn drop(&mut self) {
        self.0.attending.send_modify(|count| *count -= 1);
    }
}

/// The output and the exit, as far as they were read.
#[derive(Debug)]
pub(crate) struct Collected {
    pub(crate) unread: Unread,
    /// `None` while it runs.
    pub(crate) exit: Option<i32>,
    /// Set if it ended because its environment was lost.
    pub(crate) lost: Option<String>,
    pub(crate) whole: Option<WholeOutput>,
}

/// The parts of a session.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) id: u32,
    pub(crate) command: String,
    pub(crate) item_id: ItemId,
    pub(crate) tty: bool,
    pub(crate) began: Instant,
    pub(crate) process: Process,
    pub(crate) elsewhere: Option<String>,
    pub(crate) confinement: Option<Confinement>,
}

impl Session {
    pub(crate) fn new(parts: Parts) -> Arc<Self> {
        let Parts { id, command, item_id, tty, began, process, elsewhere, confinement } = parts;
        Arc::new(Self {
            id,
            command,
            item_id,
            tty,
            began,
            process,
            live: Live::new(),
            elsewhere,
            confinement,
            end: OnceLock::new(),
            stopped: AtomicBool::new(false),
            unread: Mutex::default(),
            whole: Mutex::default(),
            progress: watch::Sender::new(SessionProgress::Running),
            attending: watch::Sender::new(0),
        })
    }

    pub(crate) fn push(&self, chunk: &Chunk) {
        self.unread.lock().push(&chunk.bytes);
        self.live.push(chunk);
    }

    /// The model cannot read this machine's files from another environment.
    pub(crate) fn set_whole(&self, whole: Option<WholeOutput>) {
        if whole.is_some() && self.elsewhere.is_none() {
            *self.whole.lock() = whole;
        }
    }

    pub(crate) fn advance(&self, progress: SessionProgress) {
        self.progress.send_replace(progress);
    }

    pub(crate) fn progress(&self) -> SessionProgress {
        *self.progress.borrow()
    }

    /// Waits for the end, up to this long.
    pub(crate) async fn collect(&self, clock: &CommandClock, wait: Duration) -> Collected {
        // After the wait, returns what there is.
        let _ = clock.timeout(wait, self.told()).await;
        let has_ended = self.progress() >= SessionProgress::Ended;
        let unread = std::mem::take(&mut *self.unread.lock());
        let end = self.end.get().filter(|_| has_ended);
        let lost = end.and_then(|end| end.lost.clone());
        let whole = self.whole.lock().clone();
        Collected { unread, exit: end.map(|end| end.code), lost, whole }
    }

    /// Waits until clients have all its output, up to this long.
    pub(crate) async fn shown(&self, clock: &CommandClock, wait: Duration) {
        let mut progress = self.progress.subscribe();
        let shown = progress.wait_for(|progress| *progress >= SessionProgress::Shown);
        let _ = clock.timeout(wait, shown).await;
    }

    pub(crate) fn attend(&self) -> Attending<'_> {
        self.attending.send_modify(|count| *count += 1);
        Attending(self)
    }

    /// Waits until no call has anything left to send before the end.
    pub(crate) async fn unattended(&self) {
        let _ = self.attending.subscribe().wait_for(|count| *count == 0).await;
    }

    pub(crate) async fn told(&self) {
        // The sender is owned by this session, so this cannot fail.
        let _ = self.progress.subscribe().wait_for(|progress| *progress == SessionProgress::Told).await;
    }

    /// Stores its exit. A terminal that was told to end was not lost.
    pub(crate) fn set_end(&self, end: CommandExit) -> &CommandExit {
        let was_stopped = end.lost.is_some() && self.stopped.load(Ordering::Relaxed);
        self.end.get_or_init(|| if was_stopped { CommandExit { code: KILLED, lost: None } } else { end })
    }

    pub(crate) async fn write(&self, chars: &str) -> Result<(), CommandInputError> {
        match &self.elsewhere {
            Some(_) => self.process.write(remote::keys(chars).as_bytes()).await,
            None => self.process.write(chars.as_bytes()).await,
        }
    }

    /// Warns the model of a limit of this session.
    pub(crate) fn remark(&self) -> Option<String> {
        let place = self.elsewhere.as_ref().filter(|_| self.tty)?;
        Some(format!(
            "Environment `{place}` gives no terminal: what is typed is read from a pipe, without an echo."
        ))
    }

    /// Ends it. Clients are notified of its end, but get no further output.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        self.live.silence();
        self.process.kill();
    }
}
