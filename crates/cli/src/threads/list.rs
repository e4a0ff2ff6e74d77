//! The list.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use journal::{ListQuery, Store, ThreadRow};
use protocol::{ThreadSortKey, ThreadSourceKind, ThreadStatus};
use runtime::config::Home;
use serde_json::{Value, json};

use super::open_store;
use super::table::{ListPlace, now, table};
use crate::exec::STARTED_BY_USERS;
use crate::terminal::escaped_json;

/// The most the store gives at once.
const PAGE: usize = 100;

#[derive(Debug, Args)]
pub(super) struct ThreadListOptions {
    /// Print one JSON document instead of a table.
    #[arg(long)]
    json: bool,
    /// Every thread, also those that agents started, however many there are.
    #[arg(long, conflicts_with = "limit")]
    all: bool,
    /// The archive instead.
    #[arg(long)]
    archived: bool,
    /// Only threads of the current folder.
    #[arg(long)]
    here: bool,
    /// Only threads of this provider. Repeat for more.
    #[arg(long, value_name = "ID")]
    provider: Vec<String>,
    /// Only threads whose first prompt contains this text.
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,
    /// At most so many, those used last first.
    #[arg(long, value_name = "N", default_value_t = 25)]
    limit: usize,
}

pub(super) fn run(options: &ThreadListOptions, home: &Home) -> Result<ExitCode> {
    // Looking must not make a home where there is none.
    let rows = match home.state().is_dir() {
        true => rows(&open_store(home)?, options)?,
        false => Vec::new(),
    };
    let text = match options.json {
        true => documents(&rows),
        false => table(&rows, &now(), ListPlace::of(std::io::stdout().is_terminal())),
    };
    std::io::stdout().write_all(text.as_bytes()).context("the list cannot be written")?;
    Ok(ExitCode::SUCCESS)
}

fn rows(store: &Store, options: &ThreadListOptions) -> Result<Vec<ThreadRow>> {
    let mut query = ListQuery {
        sort_key: ThreadSortKey::UpdatedAt,
        model_providers: options.provider.clone(),
        source_kinds: STARTED_BY_USERS.to_vec(),
        archived: options.archived,
        search_term: options.search.clone(),
        ..ListQuery::default()
    };
    if options.here {
        let folder = std::env::current_dir().context("the current folder cannot be used")?;
        query.cwds = vec![folder.to_string_lossy().into_owned()];
    }
    if options.all {
        query.source_kinds.push(ThreadSourceKind::SubAgent);
    }
    let limit = if options.all { usize::MAX } else { options.limit };
    up_to(store, query, limit)
}

/// Page by page.
pub(super) fn up_to(store: &Store, mut query: ListQuery, limit: usize) -> Result<Vec<ThreadRow>> {
    let mut rows: Vec<ThreadRow> = Vec::new();
    while rows.len() < limit {
        query.limit = (limit - rows.len()).min(PAGE);
        let page = store.list(&query)?;
        rows.extend(page.threads);
        match page.next_cursor {
            Some(cursor) => query.cursor = Some(cursor),
            None => break,
        }
    }
    Ok(rows)
}

/// Everything that is stored, the newest first; agents' threads and the archive after the rest.
pub(super) fn every_thread(store: &Store) -> Result<Vec<ThreadRow>> {
    let mut rows = Vec::new();
    for archived in [false, true] {
        for source_kinds in [STARTED_BY_USERS.to_vec(), vec![ThreadSourceKind::SubAgent]] {
            let query = ListQuery {
                sort_key: ThreadSortKey::UpdatedAt,
                source_kinds,
                archived,
                with_silent: true,
                ..ListQuery::default()
            };
            rows.extend(up_to(store, query, usize::MAX)?);
        }
    }
    Ok(rows)
}

pub(super) fn documents(rows: &[ThreadRow]) -> String {
    let document = json!({ "data": rows.iter().map(document).collect::<Vec<_>>() });
    escaped_json(&format!("{document:#}\n")).into_owned()
}

/// The thread as clients of the server see it, and what the record says beyond that.
pub(super) fn document(row: &ThreadRow) -> Value {
    let mut thread = json!(row.to_thread(ThreadStatus::NotLoaded, Vec::new()));
    thread["model"] = json!(row.summary.model);
    thread["archived"] = row.is_archived.into();
    thread["damaged"] = row.is_damaged.into();
    thread["bytes"] = row.length.into();
    thread
}
