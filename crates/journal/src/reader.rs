//! Reads a journal record by record, in order, tolerant of damage and in bounded memory.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use crate::damage::{DamageKind, DamageReport};
use crate::error::JournalError;
use crate::heap;
use crate::line::Envelope;
use crate::record::{JournalEntry, Strange};
use crate::scan::{self, BUFFER, JournalScan, LineRef, ScanLimits};
use crate::two_readers::read_all_scanned;

/// Limit of a line, for reading and writing.
pub(crate) const MAX_LINE: usize = 100_000_000;

/// Bytes of a file that, once decoded, need about one allocation step.
const BYTES_PER_ROOM: u64 = 32 * 1024;

#[derive(Debug, Clone)]
pub struct ReadOptions {
    /// Longer lines are skipped and reported.
    pub max_line: usize,
    /// Reads only this many bytes: what is durable, while the journal is being written.
    pub up_to: Option<u64>,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self { max_line: MAX_LINE, up_to: None }
    }
}

/// The contents of a journal.
#[derive(Debug, Clone, Default)]
pub struct Contents {
    pub entries: Vec<JournalEntry>,
    pub damage: DamageReport,
    pub next_seq: u64,
}

/// Reads all records into memory.
pub fn read(path: &Path, options: &ReadOptions) -> Result<Contents, JournalError> {
    let mut contents = Contents::default();
    let summary = read_each(path, options, |entry| contents.entries.push(entry))?;
    contents.damage = summary.damage;
    contents.next_seq = summary.next_seq;
    Ok(contents)
}

/// The summary of a journal after all its records were read.
#[derive(Debug, Clone, Default)]
pub struct ReadSummary {
    pub damage: DamageReport,
    pub next_seq: u64,
    pub records: u64,
    /// Bytes that were scanned.
    pub length: u64,
}

/// Passes each record to the caller, so that only what it keeps stays in memory.
pub fn read_each(
    path: &Path,
    options: &ReadOptions,
    mut each: impl FnMut(JournalEntry),
) -> Result<ReadSummary, JournalError> {
    let file = open_to_read(path)?;
    let limits = ScanLimits { max_line: options.max_line, up_to: options.up_to.unwrap_or(u64::MAX) };
    let scan = scan::scan(&file, limits).map_err(|error| JournalError::storage("read", path, error))?;
    read_all_scanned(path, &file, scan, &mut each)
}

/// Reads the lines that a scan has found. Lines whose envelope is not `wanted` are not parsed.
pub(crate) fn read_scanned(
    path: &Path,
    file: &File,
    scan: JournalScan,
    wanted: &dyn Fn(&Envelope<'_>) -> bool,
    each: &mut dyn FnMut(JournalEntry),
) -> Result<ReadSummary, JournalError> {
    let JournalScan { lines, mut damage, next_seq, length, .. } = scan;
    let mut input = JournalLines::new(file);
    let records = lines.len() as u64;
    for line in lines {
        let decoded =
            input.decode(line, wanted).map_err(|error| JournalError::storage("read", path, error))?;
        decoded.give(line, &mut damage, each);
    }
    Ok(ReadSummary { damage, next_seq, records, length })
}

/// One decoded line.
#[derive(Debug, Default)]
pub(crate) struct DecodedLine {
    entry: Option<JournalEntry>,
    /// The damage, if it could not be read.
    fault: Option<String>,
}

impl DecodedLine {
    pub(crate) fn give(self, line: LineRef, damage: &mut DamageReport, each: &mut dyn FnMut(JournalEntry)) {
        if let Some(entry) = self.entry {
            each(entry);
        }
        if let Some(reason) = self.fault {
            let what = DamageKind::Undecodable { seq: line.seq, reason };
            damage.add(u64::from(line.line), line.offset, what);
        }
    }
}

/// Reads lines of a file, without a system call or a copy if the next one is in the buffer. Several can read the same
/// open file.
pub(crate) struct JournalLines<'a> {
    file: &'a File,
    buffer: Vec<u8>,
    /// The buffer's position in the file.
    start: u64,
    next_room: u64,
}

impl<'a> JournalLines<'a> {
    pub(crate) fn new(file: &'a File) -> Self {
        Self { file, buffer: Vec::new(), start: 0, next_room: 0 }
    }

    pub(crate) fn decode(
        &mut self,
        line: LineRef,
        wanted: &dyn Fn(&Envelope<'_>) -> bool,
    ) -> io::Result<DecodedLine> {
        if line.offset >= self.next_room {
            heap::make_room();
            self.next_room = line.offset + BYTES_PER_ROOM;
        }
        let envelope = match self.read(line).map(Envelope::parse) {
            Ok(Ok(envelope)) => envelope,
            Ok(Err(error)) => return Ok(DecodedLine { entry: None, fault: Some(error.to_string()) }),
            // The writer truncated what it could not finish.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Ok(DecodedLine { entry: None, fault: Some(error.to_string()) });
            }
            Err(error) => return Err(error),
        };
        if !wanted(&envelope) {
            return Ok(DecodedLine::default());
        }
        let (entry, strange) = envelope.open();
        let fault = match strange {
            None | Some(Strange::Kind) => None,
            Some(Strange::Payload(reason)) => Some(reason),
        };
        Ok(DecodedLine { entry: Some(entry), fault })
    }

    fn read(&mut self, line: LineRef) -> io::Result<&[u8]> {
        let len = line.len as usize;
        let end = self.start + self.buffer.len() as u64;
        if line.offset < self.start || line.offset + u64::from(line.len) > end {
            self.fill(line.offset, len)?;
        }
        let from = usize::try_from(line.offset - self.start).unwrap_or(usize::MAX);
        let bytes = self.buffer.get(from..).and_then(|rest| rest.get(..len));
        bytes.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    /// Reads from here on: at least this much, if the file has it.
    fn fill(&mut self, offset: u64, len: usize) -> io::Result<()> {
        self.start = offset;
        self.buffer.resize(len.max(BUFFER), 0);
        let mut filled = 0;
        while filled < len {
            match self.file.read_at(&mut self.buffer[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.buffer.clear();
                    return Err(error);
                }
            }
        }
        self.buffer.truncate(filled);
        Ok(())
    }
}

/// Follows no link and never blocks: a pipe in place of a journal must not delay anyone.
pub(crate) fn open_to_read(path: &Path) -> Result<File, JournalError> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
        .map_err(|error| JournalError::storage("open", path, error))?;
    let metadata = file.metadata().map_err(|error| JournalError::storage("open", path, error))?;
    match metadata.is_file() {
        true => Ok(file),
        false => Err(JournalError::NotAFile { path: path.to_owned() }),
    }
}
