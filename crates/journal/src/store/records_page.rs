//! Pages of stored records as clients read them, wherever the records are kept.

use std::ops::Range;
use std::sync::Arc;

use protocol::{Raw, SortDirection, ThreadRecordsListParams, ThreadRecordsListResponse};

use crate::error::JournalError;

const DEFAULT_LIMIT: u32 = 25;
const MAX_LIMIT: u32 = 100;
/// A page ends with the record that makes it larger than this, in bytes.
const MAX_PAGE: usize = 1_000_000;

/// A page of the records of a thread. Its cursor is the ordinal that the next page begins with.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordsPage {
    /// Those that it may hold.
    pub ordinals: Range<u64>,
    direction: SortDirection,
    next_ordinal: u64,
}

impl RecordsPage {
    /// Of a thread whose next record has this ordinal.
    pub fn of(params: &ThreadRecordsListParams, next_ordinal: u64) -> Result<Self, JournalError> {
        let limit = u64::from(params.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT));
        let invalid = |cursor: &String| JournalError::InvalidCursor(cursor.clone());
        let cursor = params.cursor.as_ref();
        let cursor = cursor.map(|text| text.parse::<u64>().map_err(|_| invalid(text))).transpose()?;
        let direction = params.sort_direction.unwrap_or(SortDirection::Desc);
        let ordinals = match direction {
            SortDirection::Desc => {
                let end = cursor.map_or(next_ordinal, |first| first.saturating_add(1)).min(next_ordinal);
                end.saturating_sub(limit)..end
            }
            SortDirection::Asc => {
                let start = cursor.unwrap_or(0).min(next_ordinal);
                start..start.saturating_add(limit).min(next_ordinal)
            }
        };
        Ok(Self { ordinals, direction, next_ordinal })
    }

    /// With the records of these ordinals, in order, each with its JSON.
    pub fn filled(&self, mut records: Vec<(u64, String)>) -> Result<ThreadRecordsListResponse, JournalError> {
        let is_newest_first = self.direction == SortDirection::Desc;
        if is_newest_first {
            records.reverse();
        }
        let mut next = match is_newest_first {
            true => self.ordinals.start.checked_sub(1),
            false => Some(self.ordinals.end).filter(|end| *end < self.next_ordinal),
        };
        let (mut data, mut bytes) = (Vec::with_capacity(records.len()), 0);
        for (ordinal, text) in records {
            if bytes >= MAX_PAGE {
                next = Some(ordinal);
                break;
            }
            bytes += text.len();
            data.push(Raw::parse(text).map_err(|error| JournalError::Encode(Arc::new(error)))?);
        }
        Ok(ThreadRecordsListResponse { data, next_cursor: next.map(|ordinal| ordinal.to_string()) })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The ordinals of all pages, and how many pages there are.
    fn walk(count: u64, limit: u32, direction: SortDirection, size: usize) -> (Vec<u64>, usize) {
        let (mut seen, mut pages, mut cursor) = (Vec::new(), 0, None);
        loop {
            let params =
                json!({ "threadId": "t", "limit": limit, "cursor": cursor, "sortDirection": direction });
            let params = serde_json::from_value(params).expect("params");
            let page = RecordsPage::of(&params, count).expect("a page");
            let record = |ordinal| (ordinal, format!("{ordinal}{}", " ".repeat(size)));
            let answer = page.filled(page.ordinals.clone().map(record).collect()).expect("an answer");
            seen.extend(answer.data.iter().map(|one| one.get().trim().parse::<u64>().expect("an ordinal")));
            pages += 1;
            match answer.next_cursor {
                Some(next) => cursor = Some(next),
                None => return (seen, pages),
            }
        }
    }

    #[test]
    fn pages_hold_every_record_once() {
        for count in [0, 1, 5, 6] {
            for limit in [1, 2, 3, 6, 100] {
                for size in [0, MAX_PAGE] {
                    let ascending: Vec<u64> = (0..count).collect();
                    assert_eq!(walk(count, limit, SortDirection::Asc, size).0, ascending);
                    let descending: Vec<u64> = ascending.into_iter().rev().collect();
                    assert_eq!(walk(count, limit, SortDirection::Desc, size).0, descending);
                }
            }
        }
        assert_eq!(walk(6, 6, SortDirection::Desc, MAX_PAGE).1, 6, "large records come one by one");
    }

    #[test]
    fn cursors_are_ordinals() {
        for (cursor, expected) in [("3", Some(2..4)), ("99", Some(4..6)), ("x", None), ("-1", None)] {
            let params = json!({ "threadId": "t", "limit": 2, "cursor": cursor });
            let page = RecordsPage::of(&serde_json::from_value(params).expect("params"), 6);
            assert_eq!(page.ok().map(|page| page.ordinals), expected, "{cursor}");
        }
    }
}
