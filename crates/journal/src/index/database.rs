//! The open database, and bringing it up to date with the journals.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OptionalExtension, Row, TransactionBehavior};

use super::columns;
use super::refresh::{self, IndexedJournal, RefreshPlan};
use super::schema::{self, OpenedDatabase};
use super::unread::{UnreadJournals, UnreadOrder};
use crate::event::{Observer, RebuildReason, StoreEvent};
use crate::facts::Summary;
use crate::layout::{JournalFormat, StoreLayout, StoredJournal, ThreadKey};
use crate::reference::HomeSignature;
use crate::row::ThreadRow;

/// How long the known state of the reference's rollouts is valid.
const REFERENCE_AGE: Duration = Duration::from_secs(10);

/// Journals that are read between two commits and two progress reports.
const AT_ONCE: usize = 50;

pub(super) struct Database {
    connection: Connection,
    layout: StoreLayout,
    observer: Observer,
    /// Why the table is empty or outdated, until it is compared with the disk.
    stale: Option<RebuildReason>,
    /// The journals that the comparison found and that are not read yet.
    unread: Option<UnreadJournals>,
    is_in_memory: bool,
    /// The state of the reference's home at the last comparison.
    reference: Option<(HomeSignature, Instant)>,
}

impl Database {
    /// Falls back to memory if the disk refuses.
    pub(super) fn open(layout: &StoreLayout, observer: &Observer) -> rusqlite::Result<Self> {
        match schema::open(&layout.index()) {
            Ok(opened) => Ok(Self::of(opened, layout, observer)),
            Err(error) => Self::in_memory(&error, layout, observer),
        }
    }

    /// Another process may have died before writing its changes, so even a full table is compared once.
    fn of(
        OpenedDatabase { connection, reason }: OpenedDatabase,
        layout: &StoreLayout,
        observer: &Observer,
    ) -> Self {
        let stale = Some(reason.unwrap_or(RebuildReason::Behind));
        let (layout, observer) = (layout.clone(), observer.clone());
        Self { connection, layout, observer, stale, unread: None, is_in_memory: false, reference: None }
    }

    fn in_memory(
        error: &rusqlite::Error,
        layout: &StoreLayout,
        observer: &Observer,
    ) -> rusqlite::Result<Self> {
        observer(&StoreEvent::IndexInMemory { reason: error.to_string() });
        Ok(Self { is_in_memory: true, ..Self::of(schema::open_in_memory()?, layout, observer) })
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    pub(super) fn root(&self) -> &Path {
        self.layout.root()
    }

    /// Renames a corrupt file and starts again. False in memory, where there is no file.
    pub(super) fn replace_corrupt(&mut self) -> rusqlite::Result<bool> {
        if self.is_in_memory {
            return Ok(false);
        }
        // Closed first: nothing more may be written to a corrupt file.
        self.connection = schema::open_in_memory()?.connection;
        *self = Self::of(schema::open_again(&self.layout.index())?, &self.layout, &self.observer);
        Ok(true)
    }

    /// Starts again in memory if the error says that the disk refuses writes.
    pub(super) fn retreat(&mut self, error: &rusqlite::Error) -> rusqlite::Result<()> {
        if schema::is_unwritable(error) && !self.is_in_memory {
            *self = Self::in_memory(error, &self.layout, &self.observer)?;
        }
        Ok(())
    }

    /// Starts again with an empty file.
    pub(super) fn delete(&mut self) -> rusqlite::Result<()> {
        if !self.is_in_memory {
            // Closed first: it would keep writing to deleted files.
            self.connection = schema::open_in_memory()?.connection;
            schema::delete(&self.layout.index());
        }
        *self = Self::open(&self.layout, &self.observer)?;
        Ok(())
    }

    pub(super) fn row(&self, key: &ThreadKey) -> rusqlite::Result<Option<ThreadRow>> {
        let sql = format!("SELECT {} FROM threads WHERE id = ?", columns::COLUMNS);
        let mut statement = self.connection.prepare_cached(&sql)?;
        statement.query_row([key.as_str()], |row| columns::load(self.layout.root(), row)).optional()
    }

    pub(super) fn forget(&mut self, key: &ThreadKey) -> rusqlite::Result<()> {
        self.connection.execute("DELETE FROM threads WHERE id = ?", [key.as_str()]).map(drop)
    }

    /// Does not overwrite newer rows of other processes, which may have been saved meanwhile.
    pub(super) fn save(&mut self, rows: &[ThreadRow]) -> rusqlite::Result<()> {
        // No other write may come between reading a row and changing it.
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let root = self.layout.root();
        for row in rows {
            if known_one(&transaction, root, row)?.is_none_or(|known| !known.is_ahead_of(row)) {
                columns::save(&transaction, root, row)?;
            }
        }
        transaction.commit()
    }

    pub(super) fn distrust(&mut self) {
        self.stale.get_or_insert(RebuildReason::Behind);
        self.unread = None;
    }

    /// Compares again if the reference has added, archived or named a thread since. There is no notification of that.
    pub(super) fn look_at_reference(&mut self) {
        let Some(home) = self.layout.reference().filter(|home| home.exists()) else { return };
        let signature = home.signature();
        if self.reference.as_ref().is_none_or(|(seen, _)| *seen != signature) {
            self.reference = Some((signature, Instant::now()));
            self.distrust();
        }
    }

    /// Marks the reference's rollouts as possibly changed. The next comparison checks them.
    pub(super) fn distrust_reference(&mut self) -> bool {
        match &mut self.reference {
            Some((_, at)) if at.elapsed() >= REFERENCE_AGE => *at = Instant::now(),
            _ => return false,
        }
        self.distrust();
        true
    }

    /// Whether all journals were compared with the table and read.
    pub(super) fn is_complete(&self) -> bool {
        self.stale.is_none()
    }

    /// Whether it is known what the table lacks.
    pub(super) fn is_compared(&self) -> bool {
        self.is_complete() || self.unread.is_some()
    }

    /// Sets the order in which journals are read, and returns the latest time of threads that the table may lack.
    pub(super) fn arrange(&mut self, order: UnreadOrder) -> Option<i64> {
        let unread = self.unread.as_mut()?;
        unread.arrange(order);
        unread.latest()
    }

    /// Compares with the disk, unless done already. `live` are the rows of journals open in this process.
    pub(super) fn compare(&mut self, live: &[ThreadRow]) -> rusqlite::Result<()> {
        let Some(reason) = self.stale.clone().filter(|_| self.unread.is_none()) else { return Ok(()) };
        // In this order: another process writes to the disk before it updates the table.
        let known = self.known()?;
        let live_ids: HashSet<String> = live.iter().map(|row| row.thread_id.to_string()).collect();
        let mut plan = refresh::plan(self.layout.walk(), &known, &live_ids);
        self.put_right(&plan)?;
        // From now on their changes are recorded, even if they are closed before the rest is read.
        self.save(live)?;
        let journals = std::mem::take(&mut plan.read);
        if journals.is_empty() {
            self.stale = None;
            return Ok(());
        }
        (self.observer)(&StoreEvent::IndexRebuilding { reason, threads: journals.len() });
        self.unread = Some(UnreadJournals::new(journals));
        Ok(())
    }

    /// Reads some of the journals that the table lacks. After a failure everything is compared again.
    pub(super) fn read_some(&mut self) -> rusqlite::Result<()> {
        let Some(mut unread) = self.unread.take() else { return Ok(()) };
        let total = unread.total;
        (self.observer)(&StoreEvent::IndexProgress { done: unread.done, total });
        let journals = unread.take(AT_ONCE);
        unread.damaged += self.read(&journals)?;
        if !unread.is_empty() {
            self.unread = Some(unread);
            return Ok(());
        }
        self.stale = None;
        (self.observer)(&StoreEvent::IndexProgress { done: total, total });
        (self.observer)(&StoreEvent::IndexRebuilt { threads: total, damaged: unread.damaged });
        Ok(())
    }

    /// Returns the number of damaged journals.
    fn read(&mut self, journals: &[StoredJournal]) -> rusqlite::Result<usize> {
        let mut rows = Vec::with_capacity(journals.len());
        for journal in journals {
            // Deleted since the comparison, or moved by a process that has recorded it.
            if fs::symlink_metadata(&journal.path).is_err_and(|error| error.kind() == ErrorKind::NotFound) {
                continue;
            }
            // Copied into our own journal since the comparison.
            if journal.format != JournalFormat::Own && self.layout.find_quickly(&journal.key).is_some() {
                continue;
            }
            let before = self.row(&journal.key)?;
            rows.push(row_of(journal, before.as_ref().map(|row| &row.summary), &self.observer));
        }
        self.save(&rows)?;
        Ok(rows.iter().filter(|row| row.is_damaged).count())
    }

    fn put_right(&mut self, plan: &RefreshPlan) -> rusqlite::Result<()> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for StoredJournal { key, path, is_archived, .. } in &plan.moved {
            let path = path.strip_prefix(self.layout.root()).unwrap_or(path);
            transaction.execute(
                "UPDATE threads SET path = ?, archived = ? WHERE id = ?",
                (path.to_string_lossy(), is_archived, key.as_str()),
            )?;
        }
        for id in &plan.gone {
            // A journal that was being moved may have been in neither place.
            if ThreadKey::parse(id).is_ok_and(|key| self.layout.find(&key).is_some()) {
                continue;
            }
            transaction.execute("DELETE FROM threads WHERE id = ?", [id])?;
        }
        transaction.commit()
    }

    fn known(&self) -> rusqlite::Result<HashMap<String, IndexedJournal>> {
        let mut statement = self.connection.prepare_cached("SELECT path, length, name, id FROM threads")?;
        let rows = statement.query_map([], |row| Ok((row.get(3)?, known_of(self.layout.root(), row)?)))?;
        rows.collect()
    }
}

fn known_one(
    connection: &Connection,
    root: &Path,
    row: &ThreadRow,
) -> rusqlite::Result<Option<IndexedJournal>> {
    let mut statement = connection.prepare_cached("SELECT path, length, name FROM threads WHERE id = ?")?;
    statement.query_row([row.thread_id.as_str()], |row| known_of(root, row)).optional()
}

fn known_of(root: &Path, row: &Row<'_>) -> rusqlite::Result<IndexedJournal> {
    let path = root.join(row.get::<_, String>(0)?);
    Ok(IndexedJournal { path, length: row.get::<_, i64>(1)?.cast_unsigned(), name: row.get(2)? })
}

/// The row of a journal as it is on the disk.
pub(super) fn row_of(journal: &StoredJournal, before: Option<&Summary>, observer: &Observer) -> ThreadRow {
    let (row, read) = refresh::row_of(journal, before);
    let path = journal.path.clone();
    match read {
        // The incomplete last line may be one that another process is writing.
        Ok(damage) if !damage.is_beyond_tail() => {}
        Ok(damage) => observer(&StoreEvent::ThreadDamaged { path, damage }),
        Err(error) => observer(&StoreEvent::ThreadUnreadable { path, reason: error.to_string() }),
    }
    row
}
