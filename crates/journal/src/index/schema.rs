//! The database file: its tables, and what happens if it is missing, of another version, or no database.

use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use crate::event::RebuildReason;

/// The version of the tables below. All of it comes from the journals, so another version is rebuilt instead of
/// migrated.
const VERSION: i64 = 1;

/// Another process may be writing.
const BUSY: Duration = Duration::from_secs(5);

const TABLES: &str = "
    DROP TABLE IF EXISTS threads;
    CREATE TABLE threads (
        id TEXT PRIMARY KEY NOT NULL,
        path TEXT NOT NULL,
        archived INTEGER NOT NULL,
        damaged INTEGER NOT NULL,
        length INTEGER NOT NULL,
        created_at_ms INTEGER NOT NULL,
        updated_at_ms INTEGER NOT NULL,
        session_id TEXT,
        preview TEXT,
        name TEXT,
        cwd TEXT,
        originator TEXT,
        cli_version TEXT,
        source TEXT,
        source_word TEXT,
        thread_source TEXT,
        model_provider TEXT,
        model TEXT,
        reasoning_effort TEXT,
        git_sha TEXT,
        git_branch TEXT,
        git_origin_url TEXT,
        has_git INTEGER NOT NULL,
        agent_nickname TEXT,
        agent_role TEXT,
        forked_from_id TEXT,
        tokens INTEGER
    ) STRICT;
    CREATE INDEX threads_by_creation ON threads (archived, created_at_ms, id);
    CREATE INDEX threads_by_update ON threads (archived, updated_at_ms, id);
";

/// A database with its tables, and why they are empty if they are.
#[derive(Debug)]
pub(super) struct OpenedDatabase {
    pub(super) connection: Connection,
    pub(super) reason: Option<RebuildReason>,
}

/// Opens the index, renaming a file that is not one.
pub(super) fn open(path: &Path) -> rusqlite::Result<OpenedDatabase> {
    // The last connection removes the write-ahead log on closing; an existing one means a crash.
    let was_open = fs::metadata(beside(path, "-wal")).is_ok_and(|metadata| metadata.len() > 0);
    open_or_set_aside(path, was_open.then_some("quick_check"))
}

/// Opens an index that turned out to be corrupt.
pub(super) fn open_again(path: &Path) -> rusqlite::Result<OpenedDatabase> {
    open_or_set_aside(path, Some("integrity_check"))
}

fn open_or_set_aside(path: &Path, check: Option<&str>) -> rusqlite::Result<OpenedDatabase> {
    // Two processes that find the same corrupt file must not rename each other's new one.
    let _guard = guard(path);
    match open_sound(path, check) {
        Err(error) if is_corrupt(&error) => {
            let kept_as = set_aside(path);
            let opened = open_sound(path, None)?;
            Ok(OpenedDatabase { reason: Some(RebuildReason::Corrupt { kept_as }), ..opened })
        }
        result => result,
    }
}

pub(super) fn open_in_memory() -> rusqlite::Result<OpenedDatabase> {
    let connection = Connection::open_in_memory()?;
    connection.execute_batch(TABLES)?;
    Ok(OpenedDatabase { connection, reason: Some(RebuildReason::Missing) })
}

fn open_sound(path: &Path, check: Option<&str>) -> rusqlite::Result<OpenedDatabase> {
    // It contains user messages, so it is created for this user only; SQLite's other files get the same mode. An
    // existing file is not opened: closing it would drop every lock that this process holds on it.
    let _ = private().create_new(true).open(path);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let mut connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "normal")?;
    if let Some(check) = check {
        verify(&connection, check)?;
    }
    let reason = prepare(&mut connection)?;
    Ok(OpenedDatabase { connection, reason })
}

fn verify(connection: &Connection, check: &str) -> rusqlite::Result<()> {
    let verdict: String = connection.query_row(&format!("PRAGMA {check}(1)"), [], |row| row.get(0))?;
    match verdict.as_str() {
        "ok" => Ok(()),
        _ => Err(rusqlite::Error::SqliteFailure(
            rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT),
            Some(verdict),
        )),
    }
}

/// Creates the tables if they are missing or of another version; a crash in between leaves the old ones.
fn prepare(connection: &mut Connection) -> rusqlite::Result<Option<RebuildReason>> {
    let version =
        |connection: &Connection| connection.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0));
    if version(connection)? == VERSION {
        return Ok(None);
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found = version(&transaction)?;
    if found == VERSION {
        // Another process was faster.
        return Ok(None);
    }
    transaction.execute_batch(TABLES)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()?;
    Ok(Some(match found {
        0 => RebuildReason::Missing,
        found => RebuildReason::OtherVersion { found },
    }))
}

/// Renames the file and its log, and returns the new path.
fn set_aside(path: &Path) -> Option<PathBuf> {
    let free = |number| {
        let name = beside(path, &format!(".corrupt-{number}"));
        (!name.exists()).then_some(name)
    };
    let kept_as = (1..10_000).find_map(free)?;
    let _ = fs::rename(beside(path, "-wal"), beside(&kept_as, "-wal"));
    let _ = fs::remove_file(beside(path, "-shm"));
    match fs::rename(path, &kept_as) {
        Ok(()) => Some(kept_as),
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "cannot set the corrupt thread index aside");
            None
        }
    }
}

/// Deletes the index and all its files.
pub(super) fn delete(path: &Path) {
    for ending in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(beside(path, ending));
    }
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// Held until dropped. If the disk cannot be written or locked, there is no protection against other processes.
fn guard(path: &Path) -> Option<fs::File> {
    let file = private().create(true).open(beside(path, ".lock")).ok()?;
    file.lock().ok()?;
    Some(file)
}

fn private() -> fs::OpenOptions {
    let mut options = fs::File::options();
    options.append(true).mode(0o600).custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed());
    options
}

pub(super) fn is_corrupt(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

/// Whether the disk refuses, as opposed to another process being busy.
pub(super) fn is_unwritable(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(
            ErrorCode::DiskFull
                | ErrorCode::ReadOnly
                | ErrorCode::SystemIoFailure
                | ErrorCode::CannotOpen
                | ErrorCode::PermissionDenied
        )
    )
}
