//! Updates the index from the journals. A rebuild is the same with an empty table.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::PathBuf;

use crate::damage::DamageReport;
use crate::error::JournalError;
use crate::facts::{Fact, Summary};
use crate::layout::{JournalFormat, StoredJournal};
use crate::reader::{self, MAX_LINE};
use crate::record::Record;
use crate::reference;
use crate::row::ThreadRow;
use crate::scan::{self, ScanLimits};

/// Limit of a journal's bytes that are read for the list. The thread's origin and subject are at the beginning; for a
/// longer one the file gives its modification time, and a new name is found only when the thread is opened.
const MAX_LISTED: u64 = 512 * 1024 * 1024;

/// The indexed path of a journal, and how much of it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct IndexedJournal {
    pub(super) path: PathBuf,
    pub(super) length: u64,
    /// As in the table. The name of a rollout of the reference can change without a write to it.
    pub(super) name: Option<String>,
}

impl IndexedJournal {
    /// Whether the table is newer than this row, because another process has written or moved the journal since.
    /// Journals only grow, except for an end that was never acknowledged, so the file itself is checked.
    pub(super) fn is_ahead_of(&self, row: &ThreadRow) -> bool {
        let is_older = match self.path == row.path {
            true => self.length > row.length,
            false => fs::symlink_metadata(&row.path).is_err(),
        };
        is_older && fs::symlink_metadata(&self.path).is_ok_and(|file| file.len() >= self.length)
    }
}

impl IndexedJournal {
    fn lacks_name_of(&self, journal: &StoredJournal) -> bool {
        matches!(&journal.format, JournalFormat::Reference { name } if *name != self.name)
    }
}

#[derive(Debug, Default)]
pub(super) struct RefreshPlan {
    pub(super) read: Vec<StoredJournal>,
    /// The same file in another place: archived or unarchived by another process.
    pub(super) moved: Vec<StoredJournal>,
    pub(super) gone: Vec<String>,
}

/// Compares the disk with the table. Journals open in this process are left out: their rows are always current.
pub(super) fn plan(
    stored: Vec<StoredJournal>,
    known: &HashMap<String, IndexedJournal>,
    live: &HashSet<String>,
) -> RefreshPlan {
    let mut plan = RefreshPlan::default();
    let mut there = HashSet::new();
    for journal in stored {
        let id = journal.key.as_str();
        // The archive comes last, so of two copies the active one counts.
        if !there.insert(id.to_owned()) || live.contains(id) {
            continue;
        }
        match known.get(id) {
            Some(known) if known.length != journal.length || known.lacks_name_of(&journal) => {
                plan.read.push(journal);
            }
            Some(known) if known.path != journal.path => plan.moved.push(journal),
            Some(_) => {}
            None => plan.read.push(journal),
        }
    }
    let is_gone = |id: &&String| !there.contains(*id) && !live.contains(*id);
    plan.gone = known.keys().filter(is_gone).cloned().collect();
    plan
}

/// The row of a journal, with its damage. Never fails: an unreadable one is listed as damaged.
pub(super) fn row_of(
    journal: &StoredJournal,
    before: Option<&Summary>,
) -> (ThreadRow, Result<DamageReport, JournalError>) {
    let mut summary = Summary::of_thread(Some(journal.key.thread_id()));
    if let JournalFormat::Reference { name } = &journal.format {
        let read = reference::summarize(journal, &mut summary).map(|()| DamageReport::default());
        summary.name.clone_from(name);
        return (row_of_summary(journal, summary, false), read);
    }
    let read = summarize(journal, &mut summary);
    if let Some(before) = before {
        summary.fill_from(before);
    }
    if summary.created_at_ms == 0 {
        summary.created_at_ms = journal.key.made_at_ms().unwrap_or_default();
        summary.updated_at_ms = summary.updated_at_ms.max(summary.created_at_ms);
    }
    let is_damaged = match &read {
        Ok(damage) => damage.is_beyond_tail() || !summary.is_identified(),
        Err(_) => true,
    };
    (row_of_summary(journal, summary, is_damaged), read)
}

fn row_of_summary(journal: &StoredJournal, summary: Summary, is_damaged: bool) -> ThreadRow {
    ThreadRow {
        thread_id: journal.key.thread_id(),
        path: journal.path.clone(),
        is_archived: journal.is_archived,
        is_damaged,
        length: journal.length,
        summary,
    }
}

/// Reads only the few records about the thread as a whole.
fn summarize(journal: &StoredJournal, summary: &mut Summary) -> Result<DamageReport, JournalError> {
    let path = &journal.path;
    let file = reader::open_to_read(path)?;
    let up_to = journal.length.min(MAX_LISTED);
    let limits = ScanLimits { max_line: MAX_LINE, up_to };
    let scan = scan::scan(&file, limits).map_err(|error| JournalError::storage("read", path, error))?;
    if scan.lines.is_empty() {
        return Err(JournalError::Unreadable { path: path.clone() });
    }
    let has_preview = Cell::new(false);
    let last_at_ms = Cell::new(None);
    let wanted = |envelope: &crate::line::Envelope<'_>| {
        let is_plain = match envelope.kind.as_ref() {
            "responseItem" | "operation" | "turnStarted" | "turnEnded" => true,
            "threadItem" => has_preview.get(),
            _ => false,
        };
        if is_plain {
            last_at_ms.set(last_at_ms.get().max(Some(envelope.at_ms())));
        }
        !is_plain
    };
    let mut each = |entry: crate::record::JournalEntry| {
        let fact = match &entry.record {
            Record::Known(record) => Fact::of(record),
            Record::Foreign(_) => Fact::Activity,
        };
        summary.apply(fact, entry.at_ms);
        has_preview.set(summary.preview.is_some());
    };
    let read = reader::read_scanned(path, &file, scan, &wanted, &mut each)?;
    if let Some(at_ms) = last_at_ms.get() {
        summary.apply(Fact::Activity, at_ms);
    }
    if up_to < journal.length
        && let Some(at_ms) = written_at_ms(&file)
    {
        summary.apply(Fact::Activity, at_ms);
    }
    Ok(read.damage)
}

/// When the file was last written.
fn written_at_ms(file: &fs::File) -> Option<i64> {
    let written = file.metadata().and_then(|metadata| metadata.modified()).ok()?;
    let since = written.duration_since(std::time::UNIX_EPOCH).ok()?;
    i64::try_from(since.as_millis()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_table_knows_stands_only_while_the_disk_bears_it_out() {
        let folder = tempfile::tempdir().expect("a folder");
        let [here, moved, gone] = ["here", "moved", "gone"].map(|name| folder.path().join(name));
        fs::write(&here, [b'x'; 20]).expect("a file");
        fs::write(&moved, [b'x'; 20]).expect("a file");
        let row = |path: &PathBuf, length| {
            let key = crate::layout::ThreadKey::parse("00000000-0000-4000-8000-000000000001").expect("an id");
            let journal = StoredJournal {
                key,
                path: path.clone(),
                is_archived: false,
                length,
                written_at_ms: 0,
                format: JournalFormat::Own,
            };
            row_of(&journal, None).0
        };
        for (known, known_length, new, new_length, expected) in [
            (&here, 20, &here, 10, true),
            // It has grown since, and its writer will record that.
            (&here, 15, &here, 10, true),
            (&here, 20, &here, 20, false),
            (&here, 10, &here, 20, false),
            // An incomplete last line was truncated.
            (&here, 30, &here, 20, false),
            (&moved, 20, &gone, 20, true),
            (&gone, 20, &moved, 20, false),
            // Of two copies, the active one counts, as in a walk.
            (&moved, 20, &here, 20, false),
            (&gone, 20, &gone, 10, false),
        ] {
            let known = IndexedJournal { path: known.clone(), length: known_length, name: None };
            assert_eq!(known.is_ahead_of(&row(new, new_length)), expected, "{known:?}, {new:?} {new_length}");
        }
    }
}
