//! `oarlock threads`: what there is to go on with.

mod transfer;

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use journal::{ListQuery, Store, StoreOptions, ThreadRow};
use protocol::{ThreadSortKey, ThreadSourceKind, ThreadStatus};
use runtime::config::Home;
use serde_json::{Value, json};
use tracing_subscriber::filter::LevelFilter;

use crate::exec::STARTED_BY_USERS;
use crate::flags::Flags;
use crate::terminal::{clean, clean_line, escaped_json};
use crate::threads::transfer::TransferCommand;

/// The most the store gives at once.
const PAGE: usize = 100;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct ThreadsOptions {
    #[command(subcommand)]
    command: Option<TransferCommand>,
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
    #[command(flatten)]
    flags: Flags,
}

const EXAMPLES: &str = "\
Examples:
  oarlock threads --here
  oarlock threads --json --limit 1 | jq -r '.data[0].id'
  oarlock exec resume ID \"go on\"
  oarlock threads export ID --to ~/.codex        go on with it in Codex
  oarlock threads import rollout-2026-....jsonl   and back again";

pub(crate) fn run(options: &ThreadsOptions, root: Flags) -> Result<ExitCode> {
    crate::logging::init(LevelFilter::ERROR);
    let loader = root.then(options.flags.clone()).loader()?;
    if let Some(command) = &options.command {
        return transfer::run(command, loader.home());
    }
    // Looking must not make a home where there is none.
    let rows = match loader.home().state().is_dir() {
        true => rows(&open_store(loader.home())?, options)?,
        false => Vec::new(),
    };
    let text = match options.json {
        true => {
            let document = json!({ "data": rows.iter().map(document).collect::<Vec<_>>() });
            escaped_json(&format!("{document:#}\n")).into_owned()
        }
        false => table(&rows, &Zoned::now()),
    };
    std::io::stdout().write_all(text.as_bytes()).context("the list cannot be written")?;
    Ok(ExitCode::SUCCESS)
}

/// The threads of a home, those of the reference among them.
fn open_store(home: &Home) -> Result<Store> {
    let options =
        StoreOptions { reference: Some(home.reading().to_owned()), ..crate::logging::store_options() };
    Ok(Store::open(home.state(), options)?)
}

fn rows(store: &Store, options: &ThreadsOptions) -> Result<Vec<ThreadRow>> {
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

/// The thread as clients of the server see it, and what the record says beyond that.
fn document(row: &ThreadRow) -> Value {
    let mut thread = json!(row.to_thread(ThreadStatus::NotLoaded, Vec::new()));
    thread["model"] = json!(row.summary.model);
    thread["archived"] = row.is_archived.into();
    thread["damaged"] = row.is_damaged.into();
    thread
}

/// Aligned, one thread per line.
fn table(rows: &[ThreadRow], now: &Zoned) -> String {
    if rows.is_empty() {
        return "No threads. `oarlock exec \"...\"` starts one.\n".to_owned();
    }
    let mut cells = vec![["THREAD", "USED", "MODEL", "ABOUT", "FOLDER"].map(str::to_owned)];
    cells.extend(rows.iter().map(|row| line(row, now).map(|cell| clean_line(&cell))));
    let mut widths = [0; 5];
    for row in &cells {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let mut text = String::new();
    for row in &cells {
        let padded = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        text.push_str(padded.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

fn line(row: &ThreadRow, now: &Zoned) -> [String; 5] {
    let summary = &row.summary;
    let or_unknown = |text: &Option<String>| text.clone().unwrap_or_else(|| "?".to_owned());
    let about = summary.name.clone().or_else(|| summary.preview.clone()).unwrap_or_default();
    let damaged = if row.is_damaged { " (damaged)" } else { "" };
    [
        row.thread_id.to_string(),
        when(summary.updated_at_ms, now),
        format!("{}/{}", or_unknown(&summary.model_provider), or_unknown(&summary.model)),
        format!("{}{damaged}", shortened(&about)),
        or_unknown(&summary.cwd),
    ]
}

/// As near as a person needs it, in local time.
fn when(at_ms: i64, now: &Zoned) -> String {
    let Ok(at) = Timestamp::from_millisecond(at_ms) else { return "?".to_owned() };
    let seconds = now.timestamp().as_second() - at.as_second();
    match seconds {
        ..60 => "just now".to_owned(),
        60..3_600 => format!("{} min ago", seconds / 60),
        3_600..86_400 => format!("{} h ago", seconds / 3_600),
        _ => at.to_zoned(local(now)).date().to_string(),
    }
}

fn local(now: &Zoned) -> TimeZone {
    now.time_zone().clone()
}

fn shortened(text: &str) -> String {
    const CHARACTERS: usize = 48;
    let line = clean(text).split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(CHARACTERS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_near_or_a_date() {
        let now = Timestamp::UNIX_EPOCH.to_zoned(TimeZone::UTC) + jiff::Span::new().hours(48);
        let ago = |seconds: i64| when((2 * 86_400 - seconds) * 1_000, &now);
        assert_eq!(ago(-5), "just now");
        assert_eq!(ago(59), "just now");
        assert_eq!(ago(60), "1 min ago");
        assert_eq!(ago(7_200), "2 h ago");
        assert_eq!(ago(90_000), "1970-01-01");
    }

    #[test]
    fn long_and_loud_texts_fit_a_line() {
        assert_eq!(shortened("a\n b\u{1b}[2J\tc"), "a b[2J c");
        assert_eq!(shortened(&"x".repeat(60)).chars().count(), 49);
    }
}
