//! One writer per journal. The kernel holds the lock and releases it when the process ends in any way; the locked file
//! names the process.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::error::JournalError;
use crate::holder::Holder;

/// How long to wait for the kernel to clean up a dead holder.
const DEAD_HOLDER: Duration = Duration::from_secs(2);
/// How long to wait for a holder that has not written its name yet, or for this process to close the journal.
const YOUNG_HOLDER: Duration = Duration::from_millis(100);
const BETWEEN_TRIES: Duration = Duration::from_millis(2);

/// Held while the value lives.
#[derive(Debug)]
pub(crate) struct JournalLock {
    path: PathBuf,
    file: File,
}

impl JournalLock {
    /// `subject` is the locked journal, for errors.
    pub(crate) fn acquire(path: &Path, subject: &Path) -> Result<Self, JournalError> {
        let this = Holder::this_process();
        let began = Instant::now();
        loop {
            let holder = match Self::try_acquire(path, subject, &this)? {
                Try::Acquired(lock) => return Ok(lock),
                Try::Replaced => continue,
                Try::Held(holder) => holder,
            };
            let patience = match &holder {
                holder if holder.is_gone() => DEAD_HOLDER,
                holder if !holder.is_known() || *holder == this => YOUNG_HOLDER,
                _ => Duration::ZERO,
            };
            if began.elapsed() >= patience {
                let holder = Box::new(holder);
                return Err(JournalError::Locked { path: subject.to_owned(), holder });
            }
            std::thread::sleep(BETWEEN_TRIES);
        }
    }

    fn try_acquire(path: &Path, subject: &Path, this: &Holder) -> Result<Try, JournalError> {
        let storage = |error| JournalError::storage("lock", path, error);
        let mut file = open(path).map_err(storage)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => return Ok(Try::Held(read_holder(&mut file))),
            Err(fs::TryLockError::Error(error)) if is_unsupported(&error) => {
                let source = std::sync::Arc::new(error);
                return Err(JournalError::LocksUnsupported { path: subject.to_owned(), source });
            }
            Err(fs::TryLockError::Error(error)) => return Err(storage(error)),
        }
        // The last holder may have removed the file before we locked it.
        if !is_still_at(&file, path).map_err(storage)? {
            return Ok(Try::Replaced);
        }
        // The lock works without the name too: a full disk only makes a later error less clear.
        if let Err(error) = write_holder(&mut file, this) {
            tracing::warn!(path = %path.display(), %error, "cannot say who holds the lock");
        }
        Ok(Try::Acquired(Self { path: path.to_owned(), file }))
    }
}

impl Drop for JournalLock {
    fn drop(&mut self) {
        // Removed while locked: another process that has opened it notices this and starts again.
        let _ = fs::remove_file(&self.path);
        let _ = self.file.unlock();
    }
}

enum Try {
    Acquired(JournalLock),
    Held(Holder),
    Replaced,
}

fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    options.custom_flags(flags.bits().cast_signed()).open(path)
}

fn is_unsupported(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(errno, Some(Errno::NOLCK | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL))
}

fn is_still_at(file: &File, path: &Path) -> io::Result<bool> {
    let ours = file.metadata()?;
    match fs::symlink_metadata(path) {
        Ok(there) => Ok((there.dev(), there.ino()) == (ours.dev(), ours.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn read_holder(file: &mut File) -> Holder {
    let mut text = String::new();
    let read = file.take(4_096).read_to_string(&mut text);
    read.ok().and_then(|_| serde_json::from_str(&text).ok()).unwrap_or_default()
}

fn write_holder(file: &mut File, holder: &Holder) -> io::Result<()> {
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    file.write_all(&serde_json::to_vec(holder)?)
}
