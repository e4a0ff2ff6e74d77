//! SQLite, embedded: one writer thread, a write-ahead log, full sync, many pieces of work in one commit.

use std::fmt;
use std::fs::File;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use rusqlite::types::ValueRef;
use rusqlite::{Connection, params_from_iter};
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use tokio::sync::{mpsc, oneshot};

use super::{
    AnyResult, DatabaseBackend, RowLock, SqlFuture, SqlRow, SqlValue, StoreClock, StoreNews, Transaction,
    Work,
};
use crate::error::StoreError;

/// Pieces of work that share one commit, at most. More would make the first wait for the last.
const COMMIT_TOGETHER: usize = 64;
/// Work that may wait for the writer; whoever brings more waits itself.
const QUEUE: usize = 256;

/// Where the file is, and the clock of this machine.
#[derive(Clone)]
pub struct SqliteOptions {
    pub path: PathBuf,
    pub clock: StoreClock,
}

impl fmt::Debug for SqliteOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteOptions").field("path", &self.path).finish_non_exhaustive()
    }
}

struct SqliteJob {
    work: Work,
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
        let connection = connect(&options.path).map_err(|error| database(&error))?;
        hold_journal(&options.path);
        let (jobs, inbox) = mpsc::channel(QUEUE);
        let clock = Arc::clone(&options.clock);
        std::thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(move || write_until_closed(connection, inbox, &clock))
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
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", "ON")?;
    connection.set_prepared_statement_cache_capacity(128);
    Ok(connection)
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
fn write_until_closed(mut connection: Connection, mut inbox: mpsc::Receiver<SqliteJob>, clock: &StoreClock) {
    while let Some(first) = inbox.blocking_recv() {
        let mut jobs = vec![first];
        while jobs.len() < COMMIT_TOGETHER
            && let Ok(job) = inbox.try_recv()
        {
            jobs.push(job);
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
        for job in jobs {
            let _ = job.done.send(Err(database(&error)));
        }
        return;
    }
    for (job, result) in jobs.into_iter().zip(results) {
        let _ = job.done.send(result);
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
        Box::pin(std::future::ready(Ok((self.clock)())))
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
    fn run(&self, work: Work) -> Pin<Box<dyn Future<Output = AnyResult> + Send + '_>> {
        Box::pin(async move {
            let closed = || StoreError::Unavailable("the writer of the store has ended".to_owned());
            let (done, result) = oneshot::channel();
            self.jobs.send(SqliteJob { work, done }).await.map_err(|_| closed())?;
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
