//! Lines to be written, in order, and the listeners to notify when they are durable. No I/O happens here.

use std::fmt;

use crate::batch::RecordBatch;
use crate::error::JournalError;
use crate::journal_file::Mark;

/// Limit of pending bytes: memory is bounded, however slow the disk is.
const MAX_BACKLOG: usize = 64 * 1024 * 1024;

/// The numbers of a batch, and where its lines end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    pub first: u64,
    /// One less than `first` for an empty batch.
    pub last: u64,
    /// Length of the file including the batch.
    pub length: u64,
}

/// Called when a batch is durable.
pub(crate) enum DurableListener {
    /// A caller that waits, and gets failures too.
    Waits(Box<dyn FnOnce(Result<Appended, JournalError>) + Send>),
    /// A passive listener, which does not count as having been notified of failures.
    Notes(Box<dyn FnOnce(Appended) + Send>),
}

impl DurableListener {
    /// A panicking callback must not end the thread that serves all journals. For programs that embed the runtime and are
    /// built to unwind; in ours a panic ends the process.
    pub(crate) fn notify(self, result: Result<Appended, JournalError>) {
        let call = std::panic::AssertUnwindSafe(|| match (self, result) {
            (Self::Waits(done), result) => done(result),
            (Self::Notes(note), Ok(appended)) => note(appended),
            (Self::Notes(_), Err(_)) => {}
        });
        if std::panic::catch_unwind(call).is_err() {
            tracing::error!("a listener of the journal panicked");
        }
    }
}

pub(crate) struct AppendQueue {
    lines: Vec<u8>,
    listeners: Vec<(Appended, DurableListener)>,
    /// Passed to the committer and not returned yet.
    is_under_way: bool,
    /// The end of the file when everything is written.
    end: Mark,
    durable: Mark,
    /// A failure that no caller waited for. The next append returns it, so that no gap goes unnoticed.
    unreported: Option<JournalError>,
    /// No append can succeed any more.
    broken: Option<JournalError>,
}

/// Lines that are written together.
#[derive(Default)]
pub(crate) struct Load {
    pub(crate) lines: Vec<u8>,
    listeners: Vec<(Appended, DurableListener)>,
    pub(crate) end: Mark,
}

impl Load {
    /// Notifies all listeners of the result, in order.
    pub(crate) fn notify(self, result: &Result<(), JournalError>) {
        for (appended, listener) in self.listeners {
            listener.notify(result.clone().map(|()| appended));
        }
    }
}

impl AppendQueue {
    pub(crate) fn new(durable: Mark) -> Self {
        Self {
            lines: Vec::new(),
            listeners: Vec::new(),
            is_under_way: false,
            end: durable,
            durable,
            unreported: None,
            broken: None,
        }
    }

    pub(crate) fn durable(&self) -> Mark {
        self.durable
    }

    pub(crate) fn next_seq(&self) -> u64 {
        self.end.seq.saturating_add(1)
    }

    /// Adds a batch to the end.
    pub(crate) fn add(&mut self, batch: &RecordBatch, max_line: usize) -> Result<Appended, JournalError> {
        if let Some(error) = self.unreported.take() {
            return Err(error);
        }
        if let Some(error) = &self.broken {
            return Err(error.clone());
        }
        let before = self.lines.len();
        if before > MAX_BACKLOG {
            return Err(JournalError::Backlog { waiting: before });
        }
        let first = self.next_seq();
        let next = batch.encode(&mut self.lines, first, max_line).inspect_err(|_| {
            self.lines.truncate(before);
        })?;
        let length = self.end.len + (self.lines.len() - before) as u64;
        self.end = Mark { len: length, seq: next - 1 };
        Ok(Appended { first, last: next - 1, length })
    }

    /// Returns the listener if there is nothing to wait for.
    pub(crate) fn listen(
        &mut self,
        appended: Appended,
        listener: DurableListener,
    ) -> Option<DurableListener> {
        if self.lines.is_empty() && !self.is_under_way {
            return Some(listener);
        }
        self.listeners.push((appended, listener));
        None
    }

    /// Whether to pass the queue to the committer: once, and not again before [`AppendQueue::rest`].
    pub(crate) fn set_out(&mut self) -> bool {
        let has_work = !self.lines.is_empty() || !self.listeners.is_empty();
        has_work && !std::mem::replace(&mut self.is_under_way, true)
    }

    pub(crate) fn take(&mut self) -> Load {
        Load {
            lines: std::mem::take(&mut self.lines),
            listeners: std::mem::take(&mut self.listeners),
            end: self.end,
        }
    }

    /// Handles the result of a write. After a failure, everything queued behind it fails too.
    pub(crate) fn settle(&mut self, load: &mut Load, result: &Result<(), JournalError>) {
        let error = match result {
            Ok(()) => {
                self.durable = load.end;
                return;
            }
            Err(error) => error,
        };
        // Queued records were numbered after the failed ones, so they fail too and the numbers start again.
        load.listeners.append(&mut self.listeners);
        self.lines.clear();
        let mut waiting =
            load.listeners.iter().filter(|(_, listener)| matches!(listener, DurableListener::Waits(_)));
        let told = waiting.next_back().map_or(self.durable.seq, |(appended, _)| appended.last);
        if told < self.end.seq {
            self.unreported = Some(error.clone());
        }
        if !error.is_passing() {
            self.broken = Some(error.clone());
        }
        self.end = self.durable;
    }

    /// Ends one load. Returns whether there is another.
    pub(crate) fn rest(&mut self) -> bool {
        self.is_under_way = !self.lines.is_empty() || !self.listeners.is_empty();
        self.is_under_way
    }

    pub(crate) fn close(&mut self, error: JournalError) {
        self.broken = Some(error);
    }
}

impl fmt::Debug for AppendQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AppendQueue")
            .field("end", &self.end)
            .field("durable", &self.durable)
            .finish_non_exhaustive()
    }
}
