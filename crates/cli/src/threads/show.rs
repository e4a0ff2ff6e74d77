//! One thread in lines, and threads by what was said in them.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use journal::{ReadThread, Store, ThreadRow};
use protocol::{ThreadItem, ThreadStatus, UserInput};
use runtime::config::Home;
use serde_json::json;
use turn_view::{byte_size, cut, describe};

use super::find::choose;
use super::list::{document, every_thread};
use super::open_store;
use super::table::short_id;
use crate::terminal::{clean, clean_line, escaped_json};

#[derive(Debug, Args)]
pub(super) struct ShowOptions {
    /// The thread, by its id, the beginning of it, or its name.
    #[arg(value_name = "THREAD")]
    thread: String,
    /// Print one JSON document, with every turn.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(super) struct SearchOptions {
    /// In any case of letters.
    text: String,
    /// Print one JSON document instead of lines.
    #[arg(long)]
    json: bool,
    /// At most so many threads, those used last first.
    #[arg(long, value_name = "N", default_value_t = 25)]
    limit: usize,
}

pub(super) fn run(options: &ShowOptions, home: &Home) -> Result<ExitCode> {
    let store = store(home)?;
    let rows = every_thread(&store)?;
    let read = read(&store, choose(&rows, &options.thread)?)?;
    let text = match options.json {
        true => {
            let mut shown = document(&read.row);
            shown["turns"] = json!(read.row.to_thread(ThreadStatus::NotLoaded, read.history.turns).turns);
            escaped_json(&format!("{shown:#}\n")).into_owned()
        }
        false => lines(&read, columns()),
    };
    std::io::stdout().write_all(text.as_bytes()).context("the thread cannot be written")?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn search(options: &SearchOptions, home: &Home) -> Result<ExitCode> {
    let wanted = options.text.to_lowercase();
    if wanted.trim().is_empty() {
        bail!("say what to look for");
    }
    let store = store(home)?;
    let mut found = Vec::new();
    for row in every_thread(&store)? {
        if found.len() == options.limit {
            break;
        }
        if let Some(line) = line_with(&store, &row, &wanted) {
            found.push((row, line));
        }
    }
    let text = match options.json {
        true => {
            let documents = found.iter().map(|(row, line)| {
                let mut shown = document(row);
                shown["found"] = line.as_str().into();
                shown
            });
            escaped_json(&format!("{:#}\n", json!({ "data": documents.collect::<Vec<_>>() }))).into_owned()
        }
        false => {
            let line = |(row, line): &(ThreadRow, String)| {
                let id = short_id(row.thread_id.as_str());
                format!("{}\n", cut(&format!("{id}  {}", clean_line(line)), columns()))
            };
            found.iter().map(line).collect()
        }
    };
    std::io::stdout().write_all(text.as_bytes()).context("the threads cannot be written")?;
    Ok(if found.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn store(home: &Home) -> Result<Store> {
    if !home.state().is_dir() {
        bail!("there are no threads in {}", home.state().display());
    }
    open_store(home)
}

/// A rollout of the reference is read as a record of ours would be.
fn read(store: &Store, row: &ThreadRow) -> Result<ReadThread> {
    match store.read(&row.thread_id) {
        Err(journal::JournalError::NotFound(_)) => {
            bail!(
                "{} is a rollout of another program; `oarlock threads import {}` copies it",
                row.path.display(),
                row.thread_id
            )
        }
        read => Ok(read?),
    }
}

fn columns() -> usize {
    if std::io::stdout().is_terminal() { turn_view::columns() } else { usize::MAX }
}

/// The first line that has the text: of the name, or of what was said.
fn line_with(store: &Store, row: &ThreadRow, wanted: &str) -> Option<String> {
    let holds = |text: &str| {
        text.lines().find(|line| line.to_lowercase().contains(wanted)).map(|line| line.trim().to_owned())
    };
    let known = [row.summary.name.as_deref(), row.summary.preview.as_deref()];
    known.into_iter().flatten().find_map(holds).or_else(|| {
        let read = store.read(&row.thread_id).ok()?;
        read.history.turns.iter().flat_map(|turn| &turn.items).flat_map(said).find_map(|text| holds(&text))
    })
}

fn said(item: &ThreadItem) -> Vec<String> {
    match item {
        ThreadItem::UserMessage { content, .. } => {
            let texts = content.iter().filter_map(|part| match part {
                UserInput::Text { text, .. } => Some(text.clone()),
                _ => None,
            });
            texts.collect()
        }
        ThreadItem::AgentMessage { text, .. } | ThreadItem::Plan { text, .. } => vec![text.clone()],
        ThreadItem::CommandExecution { command, .. } => vec![command.clone()],
        _ => Vec::new(),
    }
}

/// Facts first, then a line for each thing.
fn lines(read: &ReadThread, columns: usize) -> String {
    let (row, summary) = (&read.row, &read.row.summary);
    let or_unknown = |text: &Option<String>| text.clone().unwrap_or_else(|| "?".to_owned());
    let state = match (row.is_archived, row.is_damaged) {
        (_, true) => "damaged: read as far as possible",
        (true, false) => "archived",
        (false, false) => "stored",
    };
    let facts = [
        ("thread", row.thread_id.to_string()),
        ("name", summary.name.clone().unwrap_or_default()),
        ("folder", or_unknown(&summary.cwd)),
        (
            "model",
            format!("{} (provider {})", or_unknown(&summary.model), or_unknown(&summary.model_provider)),
        ),
        ("begun", moment(summary.created_at_ms)),
        ("used", moment(summary.updated_at_ms)),
        ("state", state.to_owned()),
        ("record", format!("{} ({})", row.path.display(), byte_size(row.length))),
    ];
    let mut text = String::new();
    for (name, fact) in facts.iter().filter(|(_, fact)| !fact.is_empty()) {
        text.push_str(&format!("{name:6}  {}\n", clean_line(fact)));
    }
    let folder = summary.cwd.clone().unwrap_or_default();
    for turn in &read.history.turns {
        text.push('\n');
        let lines = turn.items.iter().map(|item| describe(item, Path::new(&folder)));
        for line in lines.filter(|line| !line.is_empty()) {
            text.push_str(&cut(&clean(&line), columns));
            text.push('\n');
        }
        if let Some(error) = &turn.error {
            text.push_str(&format!("error: {}\n", clean_line(&error.message)));
        }
    }
    text.push_str(&format!("\nGo on with it: oarlock resume {}\n", short_id(row.thread_id.as_str())));
    text
}

fn moment(at_ms: i64) -> String {
    let Ok(at) = Timestamp::from_millisecond(at_ms) else { return "?".to_owned() };
    at.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string()
}
