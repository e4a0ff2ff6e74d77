//! Changes to stored threads: names, the archive, and their end.

use std::io::{self, BufRead, IsTerminal, Write};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;
use journal::ThreadRow;
use runtime::config::Loader;
use runtime::{Catalogue, Runtime};
use turn_view::byte_size;

use super::find::choose;
use super::list::every_thread;
use super::open_store;
use super::table::{about, short_id};
use crate::session::LocalSession;
use crate::terminal::clean_line;

#[derive(Debug, Args)]
pub(super) struct RenameOptions {
    /// The thread, by its id, the beginning of it, or its name.
    #[arg(value_name = "THREAD")]
    thread: String,
    name: String,
}

#[derive(Debug, Args)]
pub(super) struct ArchiveOptions {
    #[arg(value_name = "THREAD", required = true)]
    threads: Vec<String>,
}

#[derive(Debug, Args)]
pub(super) struct UnarchiveOptions {
    #[arg(value_name = "THREAD", required = true)]
    threads: Vec<String>,
}

#[derive(Debug, Args)]
pub(super) struct DeleteOptions {
    #[arg(value_name = "THREAD", required = true)]
    threads: Vec<String>,
    /// Do not ask.
    #[arg(short = 'y', long)]
    yes: bool,
}

pub(super) fn rename(options: &RenameOptions, loader: &Loader) -> Result<ExitCode> {
    let rows = meant(loader, std::slice::from_ref(&options.thread))?;
    each(loader, &rows, "named", &async |runtime, row| {
        runtime.set_name(&row.thread_id, &options.name).await.map(drop)
    })
}

pub(super) fn archive(options: &ArchiveOptions, loader: &Loader) -> Result<ExitCode> {
    let rows = meant(loader, &options.threads)?;
    each(loader, &rows, "archived", &async |runtime, row| runtime.archive(&row.thread_id).await.map(drop))
}

pub(super) fn unarchive(options: &UnarchiveOptions, loader: &Loader) -> Result<ExitCode> {
    let rows = meant(loader, &options.threads)?;
    each(loader, &rows, "back from the archive", &async |runtime, row| {
        runtime.unarchive(&row.thread_id).await.map(drop)
    })
}

pub(super) fn delete(options: &DeleteOptions, loader: &Loader) -> Result<ExitCode> {
    let rows = meant(loader, &options.threads)?;
    if !options.yes && !agreed(&rows)? {
        println!("Nothing was deleted.");
        return Ok(ExitCode::FAILURE);
    }
    delete_all(&rows, loader)
}

pub(super) fn delete_all(rows: &[ThreadRow], loader: &Loader) -> Result<ExitCode> {
    each(loader, rows, "deleted", &async |runtime, row| runtime.delete_thread(&row.thread_id).await.map(drop))
}

/// All of them are found before anything is done to one.
fn meant(loader: &Loader, names: &[String]) -> Result<Vec<ThreadRow>> {
    let home = loader.home();
    if !home.state().is_dir() {
        bail!("there are no threads in {}", home.state().display());
    }
    let rows = every_thread(&open_store(home)?)?;
    let mut meant: Vec<ThreadRow> = Vec::new();
    for name in names {
        let row = choose(&rows, name)?;
        if meant.iter().all(|other| other.thread_id != row.thread_id) {
            meant.push(row.clone());
        }
    }
    Ok(meant)
}

/// One line for each; those that fail do not keep the others from it.
fn each<F>(loader: &Loader, rows: &[ThreadRow], done: &str, work: &F) -> Result<ExitCode>
where
    F: AsyncFn(&Runtime, &ThreadRow) -> Result<(), runtime::RuntimeError>,
{
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let has_failed = tokio.block_on(async {
        let session = LocalSession::new(loader.clone(), Catalogue::bundled());
        let mut has_failed = false;
        for row in rows {
            let id = short_id(row.thread_id.as_str());
            match work(&session.runtime, row).await {
                Ok(()) => println!("{done}: {id}  {}", clean_line(&about(row))),
                Err(error) => {
                    eprintln!("oarlock: {id}: {}", clean_line(&error.to_string()));
                    has_failed = true;
                }
            }
        }
        session.close().await;
        has_failed
    });
    Ok(if has_failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Asks whether these may go.
pub(super) fn agreed(rows: &[ThreadRow]) -> Result<bool> {
    if !io::stdin().is_terminal() {
        bail!("nobody can be asked here; add --yes to delete {} for good", count(rows));
    }
    let mut out = io::stdout().lock();
    for row in rows {
        let id = short_id(row.thread_id.as_str());
        writeln!(out, "  {id}  {:>7}  {}", byte_size(row.length), clean_line(&about(row)))?;
    }
    write!(out, "Delete {} for good? [y/N] ", count(rows))?;
    out.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).context("no answer")?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

pub(super) fn count(rows: &[ThreadRow]) -> String {
    let bytes = byte_size(rows.iter().map(|row| row.length).sum());
    match rows.len() {
        1 => format!("1 thread ({bytes})"),
        many => format!("{many} threads ({bytes})"),
    }
}
