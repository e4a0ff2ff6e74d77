//! `oarlock threads`: what there is to go on with, and what to do with the rest.

mod find;
mod list;
mod manage;
mod prune;
mod show;
mod table;
mod transfer;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};
use journal::{Store, StoreOptions};
use runtime::config::Home;
use tracing_subscriber::filter::LevelFilter;

pub(crate) use self::find::{Nameable, choose, named_thread, thread_words};
use self::list::ThreadListOptions;
pub(crate) use self::table::short_id;
use crate::flags::Flags;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct ThreadsOptions {
    #[command(subcommand)]
    command: Option<ThreadsCommand>,
    #[command(flatten)]
    list: ThreadListOptions,
    #[command(flatten)]
    flags: Flags,
}

#[derive(Debug, Subcommand)]
enum ThreadsCommand {
    /// List threads; the same as without a word.
    List(ThreadListOptions),
    /// Show one thread: its facts, and a line for each thing said and done.
    Show(show::ShowOptions),
    /// Find threads by their names and by what was said in them.
    Search(show::SearchOptions),
    /// Give a thread a name.
    Rename(manage::RenameOptions),
    /// Put threads away: they are kept, and no longer listed.
    Archive(manage::ArchiveOptions),
    /// Bring threads back from the archive.
    Unarchive(manage::UnarchiveOptions),
    /// Delete threads for good, with those that their agents started.
    Delete(manage::DeleteOptions),
    /// Delete every thread that was not used for some time.
    Prune(prune::PruneOptions),
    /// Copy rollouts of Codex into records of our own. Their files stay as they are.
    Import(transfer::ImportOptions),
    /// Write a thread as a rollout that Codex can resume.
    Export(transfer::ExportOptions),
}

const EXAMPLES: &str = "\
Threads are named by their ids, by the beginning of an id, or by their names.

Examples:
  oarlock threads --here
  oarlock threads --json --limit 1 | jq -r '.data[0].id'
  oarlock threads show 0199c0de-0000
  oarlock threads rename 0199c0de-0000 \"the parser\"
  oarlock threads search \"off by one\"
  oarlock threads prune --older-than 90d --dry-run
  oarlock exec resume ID \"go on\"
  oarlock threads export ID --to ~/.codex        go on with it in Codex
  oarlock threads import rollout-2026-....jsonl   and back again";

pub(crate) fn run(options: ThreadsOptions, root: Flags) -> Result<ExitCode> {
    service::init_logging(LevelFilter::ERROR);
    let loader = root.then(options.flags).loader()?;
    let home = loader.home();
    match options.command {
        None => list::run(&options.list, home),
        Some(ThreadsCommand::List(options)) => list::run(&options, home),
        Some(ThreadsCommand::Show(options)) => show::run(&options, home),
        Some(ThreadsCommand::Search(options)) => show::search(&options, home),
        Some(ThreadsCommand::Rename(options)) => manage::rename(&options, &loader),
        Some(ThreadsCommand::Archive(options)) => manage::archive(&options, &loader),
        Some(ThreadsCommand::Unarchive(options)) => manage::unarchive(&options, &loader),
        Some(ThreadsCommand::Delete(options)) => manage::delete(&options, &loader),
        Some(ThreadsCommand::Prune(options)) => prune::run(&options, &loader),
        Some(ThreadsCommand::Import(options)) => transfer::import(home, &options),
        Some(ThreadsCommand::Export(options)) => transfer::export(home, &options),
    }
}

/// The threads of a home, those of the reference among them.
fn open_store(home: &Home) -> Result<Store> {
    let options =
        StoreOptions { reference: Some(home.reading().to_owned()), ..crate::logging::store_options() };
    Ok(Store::open(home.state(), options)?)
}
