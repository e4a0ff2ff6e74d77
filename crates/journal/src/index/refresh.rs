//! Bringing the index up to date with the journals. A rebuild is the same with an empty table.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use crate::damage::DamageReport;
use crate::error::JournalError;
use crate::facts::{Fact, Summary};
use crate::layout::Stored;
use crate::reader::{self, MAX_LINE};
use crate::record::Record;
use crate::row::ThreadRow;
use crate::scan::{self, Limits};

/// What the table says about where a journal is and how much of it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) path: PathBuf,
    pub(super) length: u64,
}

#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) read: Vec<Stored>,
    /// The same file in another place: archived or brought back while nobody watched.
    pub(super) moved: Vec<Stored>,
    pub(super) gone: Vec<String>,
}

/// Compares the disk with the table. Journals open in this process are left out: their rows are kept as they change.
pub(super) fn plan(stored: Vec<Stored>, known: &HashMap<String, Known>, live: &HashSet<String>) -> Plan {
    let mut plan = Plan::default();
    let mut there = HashSet::new();
    for journal in stored {
        let id = journal.key.as_str();
        // The archive comes last, so of two copies the one in use counts.
        if !there.insert(id.to_owned()) || live.contains(id) {
            continue;
        }
        match known.get(id) {
            Some(known) if known.length != journal.length => plan.read.push(journal),
            Some(known) if known.path != journal.path => plan.moved.push(journal),
            Some(_) => {}
            None => plan.read.push(journal),
        }
    }
    let is_gone = |id: &&String| !there.contains(*id) && !live.contains(*id);
    plan.gone = known.keys().filter(is_gone).cloned().collect();
    plan
}

/// A journal as its row, with what is wrong with it. Never fails: what cannot be read is listed as damaged.
pub(super) fn row_of(
    journal: &Stored,
    before: Option<&Summary>,
) -> (ThreadRow, Result<DamageReport, JournalError>) {
    let mut summary = Summary::of_thread(Some(journal.key.thread_id()));
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
    let row = ThreadRow {
        thread_id: journal.key.thread_id(),
        path: journal.path.clone(),
        is_archived: journal.is_archived,
        is_damaged,
        length: journal.length,
        summary,
    };
    (row, read)
}

/// Reads only the few records that say something about the thread as a whole.
fn summarize(journal: &Stored, summary: &mut Summary) -> Result<DamageReport, JournalError> {
    let path = &journal.path;
    let file = reader::open_to_read(path)?;
    let limits = Limits { max_line: MAX_LINE, up_to: journal.length };
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
    let mut each = |entry: crate::record::Entry| {
        let fact = match &entry.record {
            Record::Known(record) => Fact::of(record),
            Record::Foreign(_) => Fact::Activity,
        };
        summary.apply(fact, entry.at_ms);
        has_preview.set(summary.preview.is_some());
    };
    let read = reader::read_scanned(path, &file, scan, wanted, &mut each)?;
    if let Some(at_ms) = last_at_ms.get() {
        summary.apply(Fact::Activity, at_ms);
    }
    Ok(read.damage)
}
