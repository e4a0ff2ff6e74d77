//! A rollout as one row of a list, from its first and last lines.

use std::fs::File;
use std::io::{Seek, SeekFrom};

use protocol::RolloutRecord;

use super::convert::RolloutConverter;
use super::lines::{BoundedLines, NextLine};
use crate::error::JournalError;
use crate::facts::{Fact, Summary};
use crate::layout::StoredJournal;
use crate::reader::{MAX_LINE, open_to_read};

/// The first bytes contain the thread's origin and subject: the identity with its instructions, and the first turn.
pub(super) const HEAD: u64 = 4 * 1024 * 1024;
/// The last bytes contain the last model and the total tokens.
const TAIL: u64 = 128 * 1024;

/// Never damaged: what cannot be parsed is skipped, like the reference does.
pub(crate) fn summarize(rollout: &StoredJournal, summary: &mut Summary) -> Result<(), JournalError> {
    let path = &rollout.path;
    let mut file = open_to_read(path)?;
    let storage = |error| JournalError::storage("read", path, error);
    let mut converter = RolloutConverter::new(summary.thread_id.clone());
    let head = rollout.length.min(HEAD);
    let mut has_model = false;
    let read = feed(&file, head, &mut converter, |record, at_ms| {
        has_model |= matches!(record, RolloutRecord::Metadata { .. });
        summary.apply(Fact::of(record), at_ms);
        // This is enough for the list, unless the end has more.
        summary.is_identified() && summary.preview.is_some() && has_model
    });
    let done = read.map_err(storage)?;
    let tail = rollout.length.saturating_sub(TAIL).max(done);
    file.seek(SeekFrom::Start(tail)).map_err(storage)?;
    feed(&file, rollout.length - tail, &mut converter, |record, at_ms| {
        if matches!(record, RolloutRecord::Metadata { .. } | RolloutRecord::TokenUsage { .. }) {
            summary.apply(Fact::of(record), at_ms);
        }
        false
    })
    .map_err(storage)?;
    if !summary.is_identified() {
        // The file is not the thread it is named after, so it could not be resumed and is not listed.
        summary.preview = None;
    }
    summary.updated_at_ms = rollout.written_at_ms.max(summary.created_at_ms);
    Ok(())
}

/// Reads lines until `enough` returns true, and returns the bytes read.
fn feed(
    file: &File,
    up_to: u64,
    converter: &mut RolloutConverter,
    mut enough: impl FnMut(&RolloutRecord, i64) -> bool,
) -> std::io::Result<u64> {
    let mut lines = BoundedLines::new(file, up_to, MAX_LINE);
    let (mut read, mut records) = (0_u64, Vec::new());
    loop {
        match lines.next()? {
            NextLine::End => return Ok(up_to),
            NextLine::TooLong => {}
            NextLine::Line(line) => {
                read += line.len() as u64 + 1;
                converter.line(line, &mut records);
            }
        }
        let at_ms = converter.at_ms();
        let mut is_enough = false;
        for record in records.drain(..) {
            is_enough |= enough(&record, at_ms);
        }
        if is_enough {
            return Ok(read.min(up_to));
        }
    }
}
