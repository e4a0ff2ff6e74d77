//! `thread/records/list`: some of the records of a thread, without the history that is rebuilt from all of them.

use protocol::{ThreadRecordsListParams, ThreadRecordsListResponse};
use serde_json::json;

use super::Store;
use super::records_page::RecordsPage;
use crate::error::JournalError;
use crate::layout::ThreadKey;
use crate::reader::{self, read_scanned};
use crate::record::{Foreign, JournalEntry};
use crate::scan::{self, ScanLimits};

impl Store {
    /// Records that are not on the page are not parsed, and damaged ones are left out.
    pub fn list_records(
        &self,
        params: &ThreadRecordsListParams,
    ) -> Result<ThreadRecordsListResponse, JournalError> {
        let key = ThreadKey::parse(params.thread_id.as_str())?;
        let path = self.path_of(&key)?;
        let durable = self.index.live(&key).map_or(u64::MAX, |row| row.length);
        let file = reader::open_to_read(&path)?;
        let limits = ScanLimits { max_line: self.writer.max_line, up_to: durable };
        let mut scan =
            scan::scan(&file, limits).map_err(|error| JournalError::storage("read", &path, error))?;
        let page = RecordsPage::of(params, scan.next_seq)?;
        scan.lines.retain(|line| page.ordinals.contains(&line.seq));
        let mut records = Vec::with_capacity(scan.lines.len());
        read_scanned(&path, &file, scan, &|_| true, &mut |entry| records.push((entry.seq, text_of(entry))))?;
        page.filled(records)
    }
}

/// As it is on the wire. One of a newer release has what this one cannot read under `payload`.
fn text_of(entry: JournalEntry) -> String {
    let ordinal = entry.seq;
    let value = match entry.into_item() {
        Ok(item) => serde_json::to_string(&item),
        Err(Foreign { kind, schema, payload }) => serde_json::to_string(
            &json!({ "ordinal": ordinal, "schema": schema, "kind": kind, "payload": payload }),
        ),
    };
    value.unwrap_or_else(|_| json!({ "ordinal": ordinal }).to_string())
}
