//! The file of a writer: complete before it has a name, checked before and after every write, truncated to what is
//! acknowledged after a failure.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::disk::{JournalDisk, Stat, write_all};
use crate::error::JournalError;
use crate::scan::{self, JournalScan, ScanLimits};

#[derive(Debug)]
pub(crate) struct JournalFile {
    disk: Arc<dyn JournalDisk>,
    path: PathBuf,
    max_line: usize,
    file: Option<File>,
    inode: (u64, u64),
    /// Everything before this is on the disk.
    durable: Mark,
    /// A write or sync failed, so the rest of the file is unknown.
    is_suspect: bool,
}

/// A position in the file, and the number of the last record before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) len: u64,
    pub(crate) seq: u64,
}

impl JournalFile {
    /// A new file that contains these lines as soon as it is visible.
    pub(crate) fn create(
        disk: Arc<dyn JournalDisk>,
        path: &Path,
        max_line: usize,
        lines: &[u8],
        last_seq: u64,
    ) -> Result<Self, JournalError> {
        let temporary = path.with_extension("jsonl.new");
        // Left by a crash; the lock guarantees that no one else uses it.
        let _ = fs::remove_file(&temporary);
        let (file, inode) = Self::write_new(&*disk, &temporary, path, lines).inspect_err(|_| {
            let _ = fs::remove_file(&temporary);
        })?;
        let durable = Mark { len: lines.len() as u64, seq: last_seq };
        let path = path.to_owned();
        Ok(Self { disk, path, max_line, file: Some(file), inode, durable, is_suspect: false })
    }

    fn write_new(
        disk: &dyn JournalDisk,
        temporary: &Path,
        path: &Path,
        lines: &[u8],
    ) -> Result<(File, (u64, u64)), JournalError> {
        let storage = |error| JournalError::storage("create", path, error);
        let file = disk.create(temporary).map_err(storage)?;
        write_all(disk, &file, lines).map_err(storage)?;
        disk.sync(&file).map_err(storage)?;
        let inode = disk.stat(&file).map_err(storage)?.inode;
        disk.rename(temporary, path).map_err(storage)?;
        disk.sync_dir(path.parent().unwrap_or(path)).map_err(|error| {
            // It may or may not exist after a crash, and was not acknowledged.
            let _ = fs::remove_file(path);
            storage(error)
        })?;
        Ok((file, inode))
    }

    /// An existing file, with its incomplete last line truncated.
    pub(crate) fn open(
        disk: Arc<dyn JournalDisk>,
        path: &Path,
        max_line: usize,
    ) -> Result<(Self, JournalScan), JournalError> {
        let file = disk.open(path).map_err(|error| JournalError::storage("open", path, error))?;
        let inode = (0, 0);
        let durable = Mark::default();
        let mut this =
            Self { disk, path: path.to_owned(), max_line, file: None, inode, durable, is_suspect: false };
        let stat = this.stat(&file)?;
        if !stat.is_file {
            return Err(JournalError::NotAFile { path: path.to_owned() });
        }
        let mut scan = this.scan(&file, u64::MAX)?;
        if scan.lines.is_empty() {
            return Err(JournalError::Unreadable { path: path.to_owned() });
        }
        this.repair(&file, &mut scan)?;
        this.durable = Mark { len: scan.end, seq: scan.next_seq - 1 };
        this.inode = stat.inode;
        this.file = Some(file);
        Ok((this, scan))
    }

    /// Prepares the end of the file for appending.
    fn repair(&self, file: &File, scan: &mut JournalScan) -> Result<(), JournalError> {
        let storage = |error| JournalError::storage("repair", &self.path, error);
        if scan.torn > 0 {
            self.disk.truncate(file, scan.end).map_err(storage)?;
        }
        if scan.lacks_newline {
            write_all(&*self.disk, file, b"\n").map_err(storage)?;
            scan.end += 1;
        }
        if scan.torn > 0 || scan.lacks_newline {
            self.disk.sync(file).map_err(storage)?;
        }
        Ok(())
    }

    pub(crate) fn durable(&self) -> Mark {
        self.durable
    }

    /// Closes the file, truncating lines that were reported as failed if the disk allows it now.
    pub(crate) fn close(&mut self) {
        if let Some(file) = self.file.take()
            && self.is_suspect
        {
            self.cut(&file);
        }
    }

    /// Writes lines to the disk. After a failure the file is unchanged, or is restored before the next write.
    pub(crate) fn append(&mut self, lines: &[u8], last_seq: u64) -> Result<(), JournalError> {
        if self.is_suspect {
            // A file that another process changed must not be truncated.
            self.recover().inspect_err(|error| self.is_suspect = error.is_passing())?;
        }
        let Some(file) = self.file.take() else {
            return Err(JournalError::Closed { path: self.path.clone() });
        };
        let result = self.write(&file, lines);
        match &result {
            Ok(()) => self.durable = Mark { len: self.durable.len + lines.len() as u64, seq: last_seq },
            Err(error) => {
                tracing::error!(%error, "journal append failed");
                self.is_suspect = error.is_passing();
                if self.is_suspect {
                    self.cut(&file);
                }
            }
        }
        self.file = Some(file);
        result
    }

    /// At once if possible, so that no reader sees lines that were reported as failed.
    fn cut(&self, file: &File) {
        let is_longer = self.disk.stat(file).is_ok_and(|stat| stat.len > self.durable.len);
        if is_longer && let Err(error) = self.disk.truncate(file, self.durable.len) {
            tracing::warn!(path = %self.path.display(), %error, "an unacknowledged end stays for now");
        }
    }

    fn write(&self, file: &File, lines: &[u8]) -> Result<(), JournalError> {
        let (expected, found) = (self.durable.len, self.stat(file)?);
        self.check_there(found)?;
        if found.len != expected {
            return Err(JournalError::Changed { path: self.path.clone(), expected, found: found.len });
        }
        write_all(&*self.disk, file, lines)
            .map_err(|error| JournalError::storage("write to", &self.path, error))?;
        self.disk.sync(file).map_err(|error| JournalError::storage("sync", &self.path, error))?;
        // Deleted while we wrote: the lines are in an unreachable file.
        self.check_there(self.stat(file)?)
    }

    /// Opens the file again after a failure, checks that all acknowledged records are there, and truncates the rest.
    fn recover(&mut self) -> Result<(), JournalError> {
        let file = match self.disk.open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(self.deleted()),
            Err(error) => return Err(JournalError::storage("open", &self.path, error)),
        };
        let stat = self.stat(&file)?;
        if stat.inode != self.inode {
            return Err(self.deleted());
        }
        let Mark { len: expected, seq } = self.durable;
        let changed = |found| JournalError::Changed { path: self.path.clone(), expected, found };
        if stat.len < expected {
            return Err(changed(stat.len));
        }
        let scan = self.scan(&file, expected)?;
        // Acknowledged records are numbered, so the next number reveals a lost one.
        if scan.next_seq != seq + 1 || scan.end != expected {
            return Err(changed(scan.end));
        }
        let storage = |error| JournalError::storage("repair", &self.path, error);
        self.disk.truncate(&file, expected).map_err(storage)?;
        self.disk.sync(&file).map_err(storage)?;
        tracing::info!(path = %self.path.display(), "journal is written again after a failure");
        self.file = Some(file);
        self.is_suspect = false;
        Ok(())
    }

    fn scan(&self, file: &File, up_to: u64) -> Result<JournalScan, JournalError> {
        let limits = ScanLimits { max_line: self.max_line, up_to };
        scan::scan(file, limits).map_err(|error| JournalError::storage("read", &self.path, error))
    }

    fn stat(&self, file: &File) -> Result<Stat, JournalError> {
        self.disk.stat(file).map_err(|error| JournalError::storage("look at", &self.path, error))
    }

    fn check_there(&self, stat: Stat) -> Result<(), JournalError> {
        if stat.links == 0 { Err(self.deleted()) } else { Ok(()) }
    }

    fn deleted(&self) -> JournalError {
        JournalError::Deleted { path: self.path.clone() }
    }
}

impl Drop for JournalFile {
    fn drop(&mut self) {
        self.close();
    }
}
