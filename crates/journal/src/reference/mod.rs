//! Rollouts of the reference: `sessions/YYYY/MM/DD/rollout-<time>-<thread>.jsonl` and `archived_sessions/` in its home.
//! They are another program's files, so they are only read: limited, without following links, and skipping what cannot
//! be parsed.

mod convert;
mod events;
mod export;
mod export_items;
mod home;
mod lines;
mod meta;
mod summary;
mod tool_events;

pub use export::{ExportedRollout, export_rollout};
pub(crate) use home::{HomeSignature, ReferenceHome};
pub(crate) use summary::summarize;

use std::path::{Path, PathBuf};

use protocol::{RolloutRecord, ThreadId};

use self::convert::RolloutConverter;
use self::lines::{BoundedLines, NextLine};
use crate::error::JournalError;
use crate::reader::{MAX_LINE, open_to_read};
use crate::record::{JournalEntry, Record};
use crate::row::ThreadRow;

/// Larger rollouts are refused: such a history fits neither memory nor a model.
const MAX_ROLLOUT: u64 = 1024 * 1024 * 1024;

/// A rollout of the reference, as it was when it was read.
#[derive(Debug, Clone)]
pub struct ReferenceRollout {
    pub(crate) path: PathBuf,
    /// Lines appended to the file later are not part of our thread.
    pub(crate) length: u64,
    pub(crate) row: ThreadRow,
}

impl ReferenceRollout {
    /// The thread as a list shows it.
    pub fn row(&self) -> &ThreadRow {
        &self.row
    }
}

/// Reads a rollout as our records, and returns the number of lines that could not be parsed.
pub(crate) fn read_each(
    path: &Path,
    thread_id: Option<&ThreadId>,
    up_to: u64,
    mut each: impl FnMut(JournalEntry) -> Result<(), JournalError>,
) -> Result<usize, JournalError> {
    let file = open_to_read(path)?;
    let length = file.metadata().map_err(|error| JournalError::storage("look at", path, error))?.len();
    let length = length.min(up_to);
    if length > MAX_ROLLOUT {
        return Err(JournalError::RolloutTooLarge {
            path: path.to_owned(),
            bytes: length,
            limit: MAX_ROLLOUT,
        });
    }
    let mut lines = BoundedLines::new(&file, length, MAX_LINE);
    let mut converter = RolloutConverter::new(thread_id.cloned());
    let (mut seq, mut skipped) = (0, 0);
    let mut records = Vec::new();
    loop {
        let read = lines.next().map_err(|error| JournalError::storage("read", path, error))?;
        let is_end = matches!(read, NextLine::End);
        match read {
            NextLine::Line(line) => skipped += usize::from(!converter.line(line, &mut records)),
            NextLine::TooLong => skipped += 1,
            NextLine::End => converter.end(&mut records),
        }
        for record in records.drain(..) {
            seq += 1;
            each(JournalEntry { seq, at_ms: converter.at_ms(), record: Record::Known(record) })?;
        }
        if is_end {
            return Ok(skipped);
        }
    }
}

/// The thread id in the first line that has one.
pub fn rollout_thread_id(path: &Path) -> Result<ThreadId, JournalError> {
    let mut found = None;
    let file = open_to_read(path)?;
    let mut lines = BoundedLines::new(&file, summary::HEAD, MAX_LINE);
    let mut converter = RolloutConverter::new(None);
    let mut records = Vec::new();
    while found.is_none() {
        match lines.next().map_err(|error| JournalError::storage("read", path, error))? {
            NextLine::Line(line) => _ = converter.line(line, &mut records),
            NextLine::TooLong => {}
            NextLine::End => break,
        }
        found = records.drain(..).find_map(|record| match record {
            RolloutRecord::SessionMeta { meta } => Some(meta.thread_id),
            _ => None,
        });
    }
    found.ok_or_else(|| JournalError::Headless { path: path.to_owned() })
}
