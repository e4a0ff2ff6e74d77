//! A command that may outlive its call: what it wrote, and how to reach it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use protocol::ItemId;
use sandbox::{Chunk, Exit, InputError, Process};
use tokio::sync::watch;
use tokio::time::Instant;

use super::unread::Unread;
use crate::orchestrate::Live;

/// How far a command has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Progress {
    Running,
    /// It has ended and all it wrote has been read.
    Ended,
    /// Clients know.
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
    unread: Mutex<Unread>,
    progress: watch::Sender<Progress>,
}

/// What there was to read.
#[derive(Debug)]
pub(crate) struct Collected {
    pub(crate) unread: Unread,
    /// `None` while it runs.
    pub(crate) exit: Option<Exit>,
}

/// What a session is made of.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) id: u32,
    pub(crate) command: String,
    pub(crate) item_id: ItemId,
    pub(crate) tty: bool,
    pub(crate) began: Instant,
    pub(crate) process: Process,
}

impl Session {
    pub(crate) fn new(parts: Parts) -> Arc<Self> {
        let Parts { id, command, item_id, tty, began, process } = parts;
        Arc::new(Self {
            id,
            command,
            item_id,
            tty,
            began,
            process,
            live: Live::new(),
            unread: Mutex::default(),
            progress: watch::Sender::new(Progress::Running),
        })
    }

    pub(crate) fn push(&self, chunk: &Chunk) {
        self.unread.lock().unwrap_or_else(PoisonError::into_inner).push(&chunk.bytes);
        self.live.push(chunk);
    }

    pub(crate) fn advance(&self, progress: Progress) {
        self.progress.send_replace(progress);
    }

    pub(crate) fn progress(&self) -> Progress {
        *self.progress.borrow()
    }

    /// Waits for the end, but not for longer than this.
    pub(crate) async fn collect(&self, wait: Duration) -> Collected {
        // In time or not: what there is by then counts.
        let _ = tokio::time::timeout(wait, self.told()).await;
        let has_ended = self.progress() >= Progress::Ended;
        let unread = std::mem::take(&mut *self.unread.lock().unwrap_or_else(PoisonError::into_inner));
        Collected { unread, exit: self.process.exit().filter(|_| has_ended) }
    }

    pub(crate) async fn told(&self) {
        // The sender is this session's own, so this cannot fail.
        let _ = self.progress.subscribe().wait_for(|progress| *progress == Progress::Told).await;
    }

    pub(crate) async fn write(&self, chars: &str) -> Result<(), InputError> {
        self.process.write(chars.as_bytes()).await
    }

    /// Ends it. Clients are told of its end, and no longer of what it wrote.
    pub(crate) fn stop(&self) {
        self.live.silence();
        self.process.kill();
    }
}
