//! Reading a journal: record by record, in order, tolerant of damage and in bounded memory.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::damage::{DamageKind, DamageReport};
use crate::error::JournalError;
use crate::heap;
use crate::line::Envelope;
use crate::record::{JournalEntry, Strange};
use crate::scan::{self, BUFFER, JournalScan, LineRef, ScanLimits};

/// Longer lines are skipped when read and refused when written.
pub(crate) const MAX_LINE: usize = 100_000_000;

/// Bytes of a file that, once decoded, need about as much memory as is reserved at a time.
const BYTES_PER_ROOM: u64 = 32 * 1024;

#[derive(Debug, Clone)]
pub struct ReadOptions {
    /// Longer lines are skipped and reported.
    pub max_line: usize,
    /// Reads no further than this many bytes: what is durable, when the journal is being written.
    pub up_to: Option<u64>,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self { max_line: MAX_LINE, up_to: None }
    }
}

/// Everything a journal holds.
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
    /// Bytes looked at.
    pub length: u64,
}

/// Hands over one record after another, so that only what the caller keeps is in memory.
pub fn read_each(
    path: &Path,
    options: &ReadOptions,
    mut each: impl FnMut(JournalEntry),
) -> Result<ReadSummary, JournalError> {
    let file = open_to_read(path)?;
    let limits = ScanLimits { max_line: options.max_line, up_to: options.up_to.unwrap_or(u64::MAX) };
    let scan = scan::scan(&file, limits).map_err(|error| JournalError::storage("read", path, error))?;
    read_scanned(path, &file, scan, &|_| true, &mut each)
}

/// Reads what a scan has found. Lines whose envelope is not `wanted` are passed over without being parsed.
pub(crate) fn read_scanned(
    path: &Path,
    file: &File,
    scan: JournalScan,
    wanted: &dyn Fn(&Envelope<'_>) -> bool,
    each: &mut dyn FnMut(JournalEntry),
) -> Result<ReadSummary, JournalError> {
    let JournalScan { lines, mut damage, next_seq, length, .. } = scan;
    let mut input = BufferedFile { input: BufReader::with_capacity(BUFFER, file), at: None };
    let mut buffer = Vec::new();
    let records = lines.len() as u64;
    let mut next_room = 0;
    for line in lines {
        if line.offset >= next_room {
            heap::make_room();
            next_room = line.offset + BYTES_PER_ROOM;
        }
        let reason = match input.read(line, &mut buffer).map(Envelope::parse) {
            // Its writer took back what it could not finish.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => error.to_string(),
            Err(error) => return Err(JournalError::storage("read", path, error)),
            Ok(Ok(envelope)) if !wanted(&envelope) => continue,
            Ok(Ok(envelope)) => {
                let (entry, strange) = envelope.open();
                each(entry);
                match strange {
                    None | Some(Strange::Kind) => continue,
                    Some(Strange::Payload(reason)) => reason,
                }
            }
            Ok(Err(error)) => error.to_string(),
        };
        let what = DamageKind::Undecodable { seq: line.seq, reason };
        damage.add(u64::from(line.line), line.offset, what);
    }
    Ok(ReadSummary { damage, next_seq, records, length })
}

/// Reads pieces of a file, without a system call or a copy where the next piece is in the buffer.
struct BufferedFile<'a> {
    input: BufReader<&'a File>,
    at: Option<u64>,
}

impl BufferedFile<'_> {
    fn read<'b>(&'b mut self, line: LineRef, aside: &'b mut Vec<u8>) -> io::Result<&'b [u8]> {
        // Unknown again should this fail.
        match self.at.take() {
            Some(at) => self.input.seek_relative(line.offset.cast_signed() - at.cast_signed())?,
            None => {
                self.input.seek(SeekFrom::Start(line.offset))?;
            }
        }
        let len = line.len as usize;
        if self.input.buffer().len() >= len {
            self.at = Some(line.offset);
            return Ok(&self.input.buffer()[..len]);
        }
        aside.resize(len, 0);
        self.input.read_exact(aside)?;
        self.at = Some(line.offset + u64::from(line.len));
        Ok(aside)
    }
}

/// Follows no link, and never waits: a pipe in the place of a journal must not hold anyone up.
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
