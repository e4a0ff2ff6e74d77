//! The list of threads, in SQLite. Everything in it comes from the journals: it may be briefly behind them, never
//! ahead, and deleting it loses nothing.

mod columns;
mod database;
mod query;
mod refresh;
mod schema;
mod unread;

use std::collections::HashMap;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

pub use query::{ListQuery, ThreadPage, page_cursor, parse_page_cursor};

use self::database::Database;
use self::query::PageCursor;
use crate::error::JournalError;
use crate::event::Observer;
use crate::layout::{StoreLayout, StoredJournal, ThreadKey};
use crate::row::ThreadRow;

/// How long a changed row may wait to be written with others.
const GATHER: Duration = Duration::from_millis(200);

/// The pause between two steps of background work, for other users of the database.
const PAUSE: Duration = Duration::from_millis(1);

/// A row that its journal changes and the index writes.
pub(crate) type SharedRow = Arc<Mutex<ThreadRow>>;

pub(crate) struct Index {
    shared: Arc<IndexState>,
    thread: Option<JoinHandle<()>>,
}

struct IndexState {
    layout: StoreLayout,
    observer: Observer,
    /// Opened on first use: a process that lists nothing starts faster.
    database: Mutex<Option<Database>>,
    pending: Mutex<PendingRows>,
    wake: Condvar,
    list_wait: Duration,
}

#[derive(Default)]
struct PendingRows {
    /// Changed and not yet written.
    dirty: HashMap<String, SharedRow>,
    /// Journals open in this process.
    live: HashMap<String, SharedRow>,
    /// Journals are to be read in the background.
    is_behind: bool,
    is_closing: bool,
}

impl Index {
    pub(crate) fn new(layout: StoreLayout, observer: Observer, list_wait: Duration) -> Self {
        let shared = Arc::new(IndexState {
            layout,
            observer,
            database: Mutex::default(),
            pending: Mutex::default(),
            wake: Condvar::new(),
            list_wait,
        });
        let background = shared.clone();
        let thread = thread::Builder::new().name("thread-index".to_owned()).spawn(move || background.run());
        let thread = thread.inspect_err(|error| tracing::warn!(%error, "no thread for the index")).ok();
        Self { shared, thread }
    }

    /// A journal was opened in this process; from now on its row changes with it.
    pub(crate) fn opened(&self, key: &ThreadKey, row: &SharedRow) {
        self.shared.pending.lock().live.insert(key.as_str().to_owned(), row.clone());
        self.note(key, row);
    }

    /// The journal with this row was closed. It may be open again already, with another row.
    pub(crate) fn closed(&self, key: &ThreadKey, row: &SharedRow) {
        let mut pending = self.shared.pending.lock();
        if pending.live.get(key.as_str()).is_some_and(|live| Arc::ptr_eq(live, row)) {
            pending.live.remove(key.as_str());
        }
    }

    pub(crate) fn live(&self, key: &ThreadKey) -> Option<ThreadRow> {
        let row = self.shared.pending.lock().live.get(key.as_str()).cloned();
        row.map(|row| row.lock().clone())
    }

    /// A row has changed.
    pub(crate) fn note(&self, key: &ThreadKey, row: &SharedRow) {
        let mut pending = self.shared.pending.lock();
        if pending.dirty.insert(key.as_str().to_owned(), row.clone()).is_none() {
            self.shared.wake.notify_one();
        }
    }

    pub(crate) fn list(&self, query: &ListQuery) -> Result<ThreadPage, JournalError> {
        let cursor = query.cursor()?;
        loop {
            // Releases the lock between two attempts.
            if let Some(page) =
                self.shared.attempt(|database| self.try_list(query, cursor.as_ref(), database))?
            {
                return Ok(page);
            }
        }
    }

    /// A page, unless journals that could come first on it are still unread. The rest is read in the background.
    fn try_list(
        &self,
        query: &ListQuery,
        cursor: Option<&PageCursor>,
        database: &mut Database,
    ) -> rusqlite::Result<Option<ThreadPage>> {
        let began = Instant::now();
        self.shared.flush(database);
        database.look_at_reference();
        database.compare(&self.shared.live_rows())?;
        database.arrange(query.order());
        while !database.is_complete() {
            database.read_some()?;
            if began.elapsed() >= self.shared.list_wait {
                break;
            }
        }
        // Again, in case the disk refused and the index is now in memory.
        self.shared.flush(database);
        if !database.is_complete() {
            self.shared.pending.lock().is_behind = true;
            self.shared.wake.notify_one();
        }
        if !database.is_compared() {
            // It has just moved to memory, and is empty.
            return Ok(None);
        }
        let latest = database.arrange(query.order());
        let (connection, root) = (database.connection(), database.root());
        let page = match latest {
            Some(latest) => query.run_early(latest, connection, root, cursor),
            None => query.run(connection, root, cursor).map(Some),
        };
        if database.is_complete() && database.distrust_reference() {
            self.shared.pending.lock().is_behind = true;
            self.shared.wake.notify_one();
        }
        page
    }

    /// The row of one thread.
    pub(crate) fn row(&self, key: &ThreadKey) -> Result<Option<ThreadRow>, JournalError> {
        let changed = {
            let pending = self.shared.pending.lock();
            pending.live.get(key.as_str()).or_else(|| pending.dirty.get(key.as_str())).cloned()
        };
        match changed {
            Some(row) => Ok(Some(row.lock().clone())),
            None => self.shared.attempt(|database| database.row(key)),
        }
    }

    /// Reads one journal again and stores its row.
    pub(crate) fn reread(&self, journal: &StoredJournal) -> ThreadRow {
        let before = self.row(&journal.key).ok().flatten().map(|row| row.summary);
        let row = database::row_of(journal, before.as_ref(), &self.shared.observer);
        self.note(&journal.key, &Arc::new(Mutex::new(row.clone())));
        row
    }

    /// The journal of a closed thread was deleted.
    pub(crate) fn forget(&self, key: &ThreadKey) -> Result<(), JournalError> {
        self.shared.pending.lock().dirty.remove(key.as_str());
        self.shared.attempt(|database| database.forget(key))
    }

    /// Compares the whole index with the disk.
    pub(crate) fn refresh(&self) -> Result<(), JournalError> {
        self.shared.attempt(|database| {
            database.distrust();
            database.compare(&self.shared.live_rows())?;
            while !database.is_complete() {
                database.read_some()?;
            }
            Ok(())
        })
    }

    /// Starts with an empty index, filled from the journals on next use.
    pub(crate) fn delete(&self) -> Result<(), JournalError> {
        self.shared.attempt(Database::delete)
    }
}

impl IndexState {
    /// Writes changed rows shortly after they change, several at a time.
    fn run(&self) {
        let mut pending = self.pending.lock();
        while !pending.is_closing {
            if pending.is_behind {
                drop(pending);
                self.catch_up();
                // Callers that wait for the database get it now.
                pending = self.pending.lock();
                self.wake.wait_for(&mut pending, PAUSE);
                continue;
            }
            if pending.dirty.is_empty() {
                self.wake.wait(&mut pending);
                continue;
            }
            self.wake.wait_while_for(&mut pending, |pending| !pending.is_closing, GATHER);
            drop(pending);
            self.flush_now();
            pending = self.pending.lock();
        }
    }

    /// Reads some of the journals that the index lacks.
    fn catch_up(&self) {
        let read = self.attempt(|database| {
            self.flush(database);
            database.compare(&self.live_rows())?;
            database.read_some()?;
            self.pending.lock().is_behind = !database.is_complete();
            Ok(())
        });
        if let Err(error) = read {
            // The next list tries again.
            tracing::warn!(%error, "cannot complete the thread index");
            self.pending.lock().is_behind = false;
        }
    }

    fn flush_now(&self) {
        let flushed = self.attempt(|database| {
            self.flush(database);
            Ok(())
        });
        if let Err(error) = flushed {
            tracing::warn!(%error, "cannot open the thread index");
        }
    }

    /// Writes changed rows. After a failure they are written later.
    fn flush(&self, database: &mut Database) {
        let dirty = std::mem::take(&mut self.pending.lock().dirty);
        if dirty.is_empty() {
            return;
        }
        let rows: Vec<ThreadRow> = dirty.values().map(|row| row.lock().clone()).collect();
        let Err(error) = database.save(&rows) else { return };
        tracing::warn!(%error, "cannot write the thread index");
        let mut pending = self.pending.lock();
        for (key, row) in dirty {
            // A row that was added meanwhile is newer.
            pending.dirty.entry(key).or_insert(row);
        }
        drop(pending);
        if let Err(error) = database.retreat(&error) {
            tracing::error!(%error, "no thread index");
        }
    }

    fn live_rows(&self) -> Vec<ThreadRow> {
        let live: Vec<SharedRow> = self.pending.lock().live.values().cloned().collect();
        live.iter().map(|row| row.lock().clone()).collect()
    }

    /// Replaces a corrupt database and tries again.
    fn attempt<T>(&self, work: impl Fn(&mut Database) -> rusqlite::Result<T>) -> Result<T, JournalError> {
        let mut slot = self.database.lock();
        let database = match slot.take() {
            Some(database) => database,
            None => Database::open(&self.layout, &self.observer)?,
        };
        let database = slot.insert(database);
        match work(database) {
            Err(error) if schema::is_corrupt(&error) && database.replace_corrupt()? => Ok(work(database)?),
            result => Ok(result?),
        }
    }
}

impl Drop for Index {
    fn drop(&mut self) {
        self.shared.pending.lock().is_closing = true;
        self.shared.wake.notify_all();
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != thread::current().id()
        {
            let _ = thread.join();
        }
        if !self.shared.pending.lock().dirty.is_empty() {
            self.shared.flush_now();
        }
    }
}

impl std::fmt::Debug for Index {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Index").field("root", &self.shared.layout.root()).finish_non_exhaustive()
    }
}
