//! A page of the list of threads: its filter, its order, and where the next page starts.

use std::path::Path;

use protocol::{SortDirection, ThreadSortKey, ThreadSourceKind};
use rusqlite::Connection;
use rusqlite::types::Value;

use super::columns::{COLUMNS, load};
use super::unread::UnreadOrder;
use crate::error::JournalError;
use crate::layout::ThreadKey;
use crate::row::{INTERACTIVE, ThreadRow, words_of};
use crate::time;

const DEFAULT_LIMIT: usize = 25;
const MAX_LIMIT: usize = 100;

/// A query for a list of threads. The default is the first page of all threads that a person started.
#[derive(Debug, Clone)]
pub struct ListQuery {
    /// From the previous page.
    pub cursor: Option<String>,
    /// At least 1 and at most 100.
    pub limit: usize,
    pub sort_key: ThreadSortKey,
    pub direction: SortDirection,
    /// Any of these, or all if empty.
    pub model_providers: Vec<String>,
    /// Any of these, or those started by a person if empty.
    pub source_kinds: Vec<ThreadSourceKind>,
    pub archived: bool,
    /// Exactly one of these folders, or any if empty.
    pub cwds: Vec<String>,
    /// Part of the preview, case-sensitive.
    pub search_term: Option<String>,
    /// Includes threads without a user message.
    pub with_silent: bool,
}

impl Default for ListQuery {
    fn default() -> Self {
        Self {
            cursor: None,
            limit: DEFAULT_LIMIT,
            sort_key: ThreadSortKey::CreatedAt,
            direction: SortDirection::Desc,
            model_providers: Vec::new(),
            source_kinds: Vec::new(),
            archived: false,
            cwds: Vec::new(),
            search_term: None,
            with_silent: false,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct ThreadPage {
    pub threads: Vec<ThreadRow>,
    /// Unset on the last page.
    pub next_cursor: Option<String>,
}

/// The last thread of a page. Milliseconds and id order threads of the same second and millisecond.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PageCursor {
    at_ms: i64,
    key: ThreadKey,
}

impl PageCursor {
    pub(super) fn parse(text: &str) -> Result<Self, JournalError> {
        let parts = parse_page_cursor(text);
        let cursor = parts.and_then(|(at_ms, id)| Some(Self { at_ms, key: ThreadKey::parse(id).ok()? }));
        cursor.ok_or_else(|| JournalError::InvalidCursor(text.to_owned()))
    }
}

/// The cursor after the thread with this time and id.
pub fn page_cursor(at_ms: i64, id: &str) -> String {
    format!("{}|{id}", time::format_ms(at_ms))
}

/// The time and id in such a cursor.
pub fn parse_page_cursor(text: &str) -> Option<(i64, &str)> {
    let (at, id) = text.split_once('|')?;
    Some((time::parse_ms(at)?, id))
}

impl ListQuery {
    /// Refuses an invalid cursor.
    pub(super) fn cursor(&self) -> Result<Option<PageCursor>, JournalError> {
        self.cursor.as_deref().map(PageCursor::parse).transpose()
    }

    pub(super) fn run(
        &self,
        connection: &Connection,
        root: &Path,
        cursor: Option<&PageCursor>,
    ) -> rusqlite::Result<ThreadPage> {
        self.run_above(None, connection, root, cursor)
    }

    pub(super) fn order(&self) -> UnreadOrder {
        UnreadOrder { sort_key: self.sort_key, archived: self.archived }
    }

    /// A page while journals created or changed up to `latest` are still unread: only threads that no unread one can
    /// precede. None if there are none yet.
    pub(super) fn run_early(
        &self,
        latest: i64,
        connection: &Connection,
        root: &Path,
        cursor: Option<&PageCursor>,
    ) -> rusqlite::Result<Option<ThreadPage>> {
        if self.direction == SortDirection::Asc {
            return Ok(None);
        }
        let mut page = self.run_above(Some(latest), connection, root, cursor)?;
        if page.threads.is_empty() && cursor.is_none() {
            // If times do not help, such as for copied threads: the newest that are known.
            page = self.run_above(None, connection, root, cursor)?;
        }
        page.next_cursor = page.threads.last().map(|row| self.cursor_after(row));
        Ok(page.next_cursor.is_some().then_some(page))
    }

    fn run_above(
        &self,
        latest: Option<i64>,
        connection: &Connection,
        root: &Path,
        cursor: Option<&PageCursor>,
    ) -> rusqlite::Result<ThreadPage> {
        let limit = self.limit.clamp(1, MAX_LIMIT);
        let (sql, values) = self.sql(latest, cursor, limit + 1);
        let mut statement = connection.prepare_cached(&sql)?;
        let rows = statement.query_map(rusqlite::params_from_iter(values), |row| load(root, row))?;
        let mut threads = rows.collect::<rusqlite::Result<Vec<_>>>()?;
        let is_last = threads.len() <= limit;
        threads.truncate(limit);
        let next_cursor = threads.last().filter(|_| !is_last).map(|row| self.cursor_after(row));
        Ok(ThreadPage { threads, next_cursor })
    }

    fn cursor_after(&self, row: &ThreadRow) -> String {
        let at_ms = match self.sort_key {
            ThreadSortKey::CreatedAt => row.summary.created_at_ms,
            ThreadSortKey::UpdatedAt | ThreadSortKey::RecencyAt | ThreadSortKey::SectionPosition => {
                row.summary.updated_at_ms
            }
        };
        page_cursor(at_ms, row.thread_id.as_str())
    }

    fn sql(&self, latest: Option<i64>, cursor: Option<&PageCursor>, limit: usize) -> (String, Vec<Value>) {
        let by = match self.sort_key {
            ThreadSortKey::CreatedAt => "created_at_ms",
            ThreadSortKey::UpdatedAt | ThreadSortKey::RecencyAt | ThreadSortKey::SectionPosition => {
                "updated_at_ms"
            }
        };
        let (order, beyond) = match self.direction {
            SortDirection::Asc => ("ASC", ">"),
            SortDirection::Desc => ("DESC", "<"),
        };
        let mut filter = Filter::new(self.archived);
        if !self.with_silent {
            // A damaged thread is listed even if its first message is lost.
            filter.require("(preview IS NOT NULL OR damaged)");
        }
        let words: Vec<&str> = match self.source_kinds.as_slice() {
            [] => INTERACTIVE.to_vec(),
            kinds => kinds.iter().flat_map(|kind| words_of(*kind)).copied().collect(),
        };
        filter.any_or_unknown("source_word", words);
        filter.any_or_unknown("model_provider", self.model_providers.iter().map(String::as_str).collect());
        filter.any("cwd", &self.cwds);
        if let Some(term) = &self.search_term {
            filter.require("instr(preview, ?) > 0");
            filter.values.push(Value::Text(term.clone()));
        }
        if let Some(latest) = latest {
            filter.require(&format!("{by} > ?"));
            filter.values.push(Value::Integer(latest));
        }
        if let Some(PageCursor { at_ms, key }) = cursor {
            filter.require(&format!("({by}, id) {beyond} (?, ?)"));
            filter.values.extend([Value::Integer(*at_ms), Value::Text(key.as_str().to_owned())]);
        }
        let Filter { sql, mut values } = filter;
        values.push(Value::Integer(i64::try_from(limit).unwrap_or(i64::MAX)));
        let sql =
            format!("SELECT {COLUMNS} FROM threads WHERE {sql} ORDER BY {by} {order}, id {order} LIMIT ?");
        (sql, values)
    }
}

struct Filter {
    sql: String,
    values: Vec<Value>,
}

impl Filter {
    fn new(archived: bool) -> Self {
        Self { sql: "archived = ?".to_owned(), values: vec![Value::Integer(i64::from(archived))] }
    }

    fn require(&mut self, condition: &str) {
        self.sql.push_str(" AND ");
        self.sql.push_str(condition);
    }

    /// An empty list means no filter.
    fn any(&mut self, column: &str, allowed: &[String]) {
        if !allowed.is_empty() {
            self.require(&format!("{column} IN ({})", marks(allowed.len())));
            self.values.extend(allowed.iter().map(|value| Value::Text(value.clone())));
        }
    }

    /// A thread whose damaged journal lacks the value is still listed.
    fn any_or_unknown(&mut self, column: &str, allowed: Vec<&str>) {
        if !allowed.is_empty() {
            self.require(&format!("({column} IS NULL OR {column} IN ({}))", marks(allowed.len())));
            self.values.extend(allowed.into_iter().map(|value| Value::Text(value.to_owned())));
        }
    }
}

fn marks(count: usize) -> String {
    vec!["?"; count].join(", ")
}
