//! SQLite, embedded: one writer thread, a write-ahead log, full sync, many pieces of work in one commit.

use std::fmt;
use std::fs::{File, Permissions};
use std::future::Future;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use rusqlite::types::ValueRef;
use rusqlite::{Connection, params_from_iter};
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use tokio::sync::{mpsc, oneshot};

use super::{
    AnyResult, CommitSync, DatabaseBackend, RowLock, SqlFuture, SqlRow, SqlValue, StoreClock, StoreNews,
    Transaction, Work,
};
use crate::error::StoreError;

/// Pieces of work that share one commit, at most. More would make the first wait for the last.
const COMMIT_TOGETHER: usize = 64;
/// Work that may wait for the writer; whoever brings more waits itself.
const QUEUE: usize = 256;

/// Where the file is, the clock of this machine, and what a commit waits for.
#[derive(Clone)]
pub struct SqliteOptions {
    pub path: PathBuf,
    pub clock: StoreClock,
    /// Whether commits wait for the disk. Without, they survive a crash of every program, but not of the machine: enough
    /// for a store that is thrown away with its host.
    pub is_synced: bool,
}

impl fmt::Debug for SqliteOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteOptions").field("path", &self.path).finish_non_exhaustive()
    }
}

struct SqliteJob {
    work: Work,
    sync: CommitSync,
    done: oneshot::Sender<AnyResult>,
}

#[derive(Debug)]
pub(crate) struct SqliteBackend {
    jobs: mpsc::Sender<SqliteJob>,
    /// Held as long as the store is open: no other process may open the file.
    _lock: File,
}

impl SqliteBackend {
    /// The socket of the host that has this store open.
    pub(crate) fn socket(path: &Path) -> PathBuf {
        let mut name = path.as_os_str().to_owned();
        name.push(".sock");
        name.into()
    }

    pub(crate) fn open(options: &SqliteOptions) -> Result<Self, StoreError> {
        let lock = lock(&options.path)?;
        make_private(&options.path)
            .map_err(|error| StoreError::Unavailable(format!("{}: {error}", options.path.display())))?;
        let connection = connect(&options.path).map_err(|error| database(&error))?;
        hold_journal(&options.path);
        let (jobs, inbox) = mpsc::channel(QUEUE);
        let (clock, is_synced) = (Arc::clone(&options.clock), options.is_synced);
        std::thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(move || write_until_closed(connection, inbox, &clock, is_synced))
            .map_err(|error| StoreError::Unavailable(error.to_string()))?;
        Ok(Self { jobs, _lock: lock })
    }
}

/// An exclusive lock beside the file, since SQLite's own locks come and go.
fn lock(path: &Path) -> Result<File, StoreError> {
    let failed = |error: rustix::io::Errno| StoreError::Unavailable(format!("{}: {error}", path.display()));
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = open(PathBuf::from(name), flags, Mode::RUSR | Mode::WUSR).map_err(failed)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file.into()),
        Err(rustix::io::Errno::WOULDBLOCK) => {
            let socket = SqliteBackend::socket(path);
            Err(StoreError::InUse(path.display().to_string(), socket.display().to_string()))
        }
        Err(error) => Err(failed(error)),
    }
}

/// For its owner alone, whatever the umask: who reads the file reads every task, and who writes it can decide in it. SQLite
/// gives the files beside it the mode of this one.
fn make_private(path: &Path) -> io::Result<()> {
    let flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = File::from(open(path, flags, Mode::RUSR | Mode::WUSR)?);
    let mut files = vec![file];
    for end in ["-wal", "-shm", "-journal", ".lock"] {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        files.extend(open(PathBuf::from(name), flags, Mode::empty()).map(File::from).ok());
    }
    for file in files {
        let found = file.metadata()?;
        let is_ours = found.uid() == rustix::process::geteuid().as_raw();
        if is_ours && found.is_file() && found.mode() & 0o077 != 0 {
            file.set_permissions(Permissions::from_mode(0o600))?;
        }
    }
    Ok(())
}

/// A rollback journal of somebody else's making would be played back into the store when it is opened next. An empty one
/// is ignored, and a file that is there can be kept from the commands of tasks.
fn hold_journal(path: &Path) {
    let mut name = path.as_os_str().to_owned();
    name.push("-journal");
    let flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let _ = open(PathBuf::from(name), flags, Mode::RUSR | Mode::WUSR);
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    // Made first, so that it is never readable by others, whatever the umask.
    let flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let _ = open(path, flags, Mode::RUSR | Mode::WUSR);
    let connection = Connection::open(path)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    set_sync(&connection, CommitSync::Now)?;
    connection.pragma_update(None, "foreign_keys", "ON")?;
    connection.set_prepared_statement_cache_capacity(128);
    Ok(connection)
}

fn set_sync(connection: &Connection, sync: CommitSync) -> rusqlite::Result<()> {
    let word = match sync {
        CommitSync::Now => "FULL",
        CommitSync::Later => "NORMAL",
    };
    connection.pragma_update(None, "synchronous", word)
}

fn database(error: &rusqlite::Error) -> StoreError {
    use rusqlite::ErrorCode::{CannotOpen, DatabaseBusy, DiskFull, ReadOnly, SystemIoFailure};
    match error.sqlite_error_code() {
        Some(CannotOpen | DatabaseBusy | DiskFull | ReadOnly | SystemIoFailure) => {
            StoreError::Unavailable(error.to_string())
        }
        _ => StoreError::Database(error.to_string()),
    }
}

/// Takes what waits, does it in one transaction with a savepoint each, commits, and answers after the commit.
fn write_until_closed(
    mut connection: Connection,
    mut inbox: mpsc::Receiver<SqliteJob>,
    clock: &StoreClock,
    is_synced: bool,
) {
    let mut current = CommitSync::Now;
    while let Some(first) = inbox.blocking_recv() {
        let mut jobs = vec![first];
        while jobs.len() < COMMIT_TOGETHER
            && let Ok(job) = inbox.try_recv()
        {
            jobs.push(job);
        }
        let wanted = match is_synced && jobs.iter().any(|job| job.sync == CommitSync::Now) {
            true => CommitSync::Now,
            false => CommitSync::Later,
        };
        // A connection that cannot be told to wait less goes on waiting, and one that cannot be told to wait more answers
        // nobody who relies on it.
        if wanted != current {
            match set_sync(&connection, wanted) {
                Ok(()) => current = wanted,
                Err(error) if wanted == CommitSync::Now => {
                    refuse(jobs, &error);
                    continue;
                }
                Err(_) => {}
            }
        }
        write_together(&mut connection, jobs, clock);
    }
}

fn write_together(connection: &mut Connection, jobs: Vec<SqliteJob>, clock: &StoreClock) {
    let mut results = Vec::with_capacity(jobs.len());
    let written = connection.execute_batch("BEGIN IMMEDIATE").and_then(|()| {
        for job in &jobs {
            results.push(write_one(connection, &job.work, clock)?);
        }
        connection.execute_batch("COMMIT")
    });
    if let Err(error) = written {
        let _ = connection.execute_batch("ROLLBACK");
        return refuse(jobs, &error);
    }
    for (job, result) in jobs.into_iter().zip(results) {
        let _ = job.done.send(result);
    }
}

fn refuse(jobs: Vec<SqliteJob>, error: &rusqlite::Error) {
    for job in jobs {
        let _ = job.done.send(Err(database(error)));
    }
}

/// An error of the work undoes the work alone; an error here undoes all that share the commit.
fn write_one(connection: &mut Connection, work: &Work, clock: &StoreClock) -> rusqlite::Result<AnyResult> {
    connection.execute_batch("SAVEPOINT one")?;
    let mut transaction = SqliteTransaction { connection, clock };
    let result = without_waiting(work(&mut transaction));
    let connection = transaction.connection;
    if result.is_err() {
        connection.execute_batch("ROLLBACK TO one")?;
    }
    connection.execute_batch("RELEASE one")?;
    Ok(result)
}

/// Work over SQLite awaits nothing but SQLite, which answers at once.
fn without_waiting(mut work: Pin<Box<dyn Future<Output = AnyResult> + Send + '_>>) -> AnyResult {
    match work.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => {
            Err(StoreError::Database("work waited for something else than the database".to_owned()))
        }
    }
}

struct SqliteTransaction<'a> {
    connection: &'a mut Connection,
    clock: &'a StoreClock,
}

impl SqliteTransaction<'_> {
    fn rows(&mut self, sql: &str, values: Vec<SqlValue>) -> rusqlite::Result<Vec<SqlRow>> {
        let mut statement = self.connection.prepare_cached(&numbered(sql))?;
        let columns = statement.column_count();
        let mut rows = statement.query(params_from_iter(values))?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let values =
                (0..columns).map(|column| row.get_ref(column).map(value)).collect::<Result<_, _>>()?;
            found.push(SqlRow::new(values));
        }
        Ok(found)
    }

    fn change(&mut self, sql: &str, values: Vec<SqlValue>) -> rusqlite::Result<u64> {
        let mut statement = self.connection.prepare_cached(&numbered(sql))?;
        Ok(statement.execute(params_from_iter(values))? as u64)
    }
}

/// SQLite reads `$1` as a name and `?1` as a number.
fn numbered(sql: &str) -> String {
    sql.replace('$', "?")
}

fn value(found: ValueRef<'_>) -> SqlValue {
    match found {
        ValueRef::Integer(number) => SqlValue::Int(number),
        ValueRef::Text(text) => SqlValue::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => SqlValue::Bytes(bytes.to_vec()),
        ValueRef::Null | ValueRef::Real(_) => SqlValue::Null,
    }
}

fn done<'a, T: Send + 'a>(result: rusqlite::Result<T>) -> SqlFuture<'a, T> {
    Box::pin(std::future::ready(result.map_err(|error| database(&error))))
}

impl Transaction for SqliteTransaction<'_> {
    fn execute<'a>(&'a mut self, sql: &'a str, values: Vec<SqlValue>) -> SqlFuture<'a, u64> {
        done(self.change(sql, values))
    }

    fn query<'a>(&'a mut self, sql: &'a str, values: Vec<SqlValue>) -> SqlFuture<'a, Vec<SqlRow>> {
        done(self.rows(sql, values))
    }

    fn now_ms(&mut self) -> SqlFuture<'_, i64> {
        Box::pin(std::future::ready(Ok(self.clock.now_ms())))
    }

    fn row_lock(&self, _: RowLock) -> &'static str {
        // One writer: nobody else is in the database.
        ""
    }

    fn notify<'a>(&'a mut self, _: &'a str) -> SqlFuture<'a, ()> {
        // Nobody else has the file open.
        Box::pin(std::future::ready(Ok(())))
    }

    fn timeline(&mut self) -> SqlFuture<'_, i64> {
        Box::pin(std::future::ready(Ok(0)))
    }
}

impl DatabaseBackend for SqliteBackend {
    fn run(&self, work: Work, sync: CommitSync) -> Pin<Box<dyn Future<Output = AnyResult> + Send + '_>> {
        Box::pin(async move {
            let closed = || StoreError::Unavailable("the writer of the store has ended".to_owned());
            let (done, result) = oneshot::channel();
            self.jobs.send(SqliteJob { work, sync, done }).await.map_err(|_| closed())?;
            result.await.map_err(|_| closed())?
        })
    }

    fn news(&self) -> Option<mpsc::Receiver<StoreNews>> {
        None
    }

    fn beside(&self) -> Option<Arc<dyn DatabaseBackend>> {
        None
    }

    fn leases_expire(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn its_files_are_for_their_owner_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut open_ones = Vec::new();
        for (name, was_there) in [("new.sqlite", false), ("old.sqlite", true)] {
            let path = folder.path().join(name);
            if was_there {
                std::fs::write(&path, "").expect("written");
                std::fs::set_permissions(&path, Permissions::from_mode(0o666)).expect("set");
            }
            let clock: StoreClock = Arc::new(|| 0);
            let options = SqliteOptions { path: path.clone(), clock, is_synced: false };
            open_ones.push(crate::TaskStore::open_sqlite(&options).await.expect("opened"));
        }
        let files: Vec<_> = std::fs::read_dir(folder.path()).expect("there").flatten().collect();
        assert!(files.len() >= 6, "{files:?}");
        for file in files {
            let mode = file.metadata().expect("there").mode() & 0o777;
            assert_eq!(mode, 0o600, "{mode:o} {}", file.path().display());
        }
    }

    /// How commits are synced while this work runs, as SQLite counts it: 1 is NORMAL, 2 is FULL.
    fn sync_level() -> Work {
        Box::new(|transaction| {
            Box::pin(async move {
                let rows = transaction.query("PRAGMA synchronous", Vec::new()).await?;
                let level = rows.first().map(|row| row.int(0)).transpose()?;
                Ok::<Box<dyn std::any::Any + Send>, _>(Box::new(level))
            })
        })
    }

    #[tokio::test]
    async fn a_commit_waits_for_the_disk_unless_all_of_it_can_wait() {
        let folder = tempfile::tempdir().expect("a folder");
        let clock: StoreClock = Arc::new(|| 0);
        let options = SqliteOptions { path: folder.path().join("tasks.sqlite"), clock, is_synced: true };
        let backend = SqliteBackend::open(&options).expect("a store");
        let level = async |sync| {
            let found = backend.run(sync_level(), sync).await.expect("a level");
            found.downcast_ref::<Option<i64>>().copied().flatten()
        };
        assert_eq!(level(CommitSync::Now).await, Some(2));
        assert_eq!(level(CommitSync::Later).await, Some(1));
        assert_eq!(level(CommitSync::Now).await, Some(2));
        let path = folder.path().join("scratch.sqlite");
        let scratch = SqliteBackend::open(&SqliteOptions { path, is_synced: false, ..options.clone() })
            .expect("a store");
        let found = scratch.run(sync_level(), CommitSync::Now).await.expect("a level");
        assert_eq!(found.downcast_ref::<Option<i64>>(), Some(&Some(1)), "nothing of it waits");
        // Together in one commit: the one that cannot wait decides.
        let (sender, inbox) = mpsc::channel(2);
        let mut answers = Vec::new();
        for sync in [CommitSync::Later, CommitSync::Now] {
            let (done, answer) = oneshot::channel();
            assert!(sender.try_send(SqliteJob { work: sync_level(), sync, done }).is_ok());
            answers.push(answer);
        }
        drop(sender);
        let connection = connect(&folder.path().join("other.sqlite")).expect("a connection");
        let clock: StoreClock = Arc::new(|| 0);
        std::thread::spawn(move || write_until_closed(connection, inbox, &clock, true))
            .join()
            .expect("no panic");
        for answer in answers {
            let found = answer.await.expect("an answer").expect("a level");
            assert_eq!(found.downcast_ref::<Option<i64>>(), Some(&Some(2)));
        }
    }
}
