//! `oarlock threads import` and `export`: threads from the reference, and back to it.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;
use journal::{ExportedRollout, JournalError, Store, export_rollout};
use runtime::config::Home;

use super::find::choose;
use super::list::every_thread;
use super::open_store;
use super::table::shortened;
use crate::terminal::clean_line;

#[derive(Debug, Args)]
pub(super) struct ImportOptions {
    /// Files, or threads that `oarlock threads` lists.
    #[arg(value_name = "FILE|THREAD", required = true)]
    rollouts: Vec<String>,
}

#[derive(Debug, Args)]
pub(super) struct ExportOptions {
    /// The thread, by its id, the beginning of it, or its name.
    #[arg(value_name = "THREAD")]
    thread: String,
    /// The home of Codex to put it into, such as ~/.codex. Without this the rollout goes to standard output.
    #[arg(long, value_name = "FOLDER")]
    to: Option<PathBuf>,
}

pub(super) fn import(home: &Home, options: &ImportOptions) -> Result<ExitCode> {
    home.create_state()?;
    let store = open_store(home)?;
    let mut failed = false;
    for rollout in &options.rollouts {
        match import_one(&store, rollout) {
            Ok(line) => println!("{}", clean_line(&line)),
            Err(error) => {
                eprintln!("oarlock: {}: {}", clean_line(rollout), clean_line(&format!("{error:#}")));
                failed = true;
            }
        }
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn import_one(store: &Store, rollout: &str) -> Result<String> {
    let path = match fs::symlink_metadata(rollout) {
        Ok(_) => PathBuf::from(rollout),
        Err(_) => choose(&every_thread(store)?, rollout).context("no such file")?.path.clone(),
    };
    match store.import_rollout(&path) {
        Ok(row) => {
            let about = shortened(row.summary.preview.as_deref().unwrap_or_default());
            Ok(format!("{}  {about}", row.thread_id))
        }
        Err(JournalError::AlreadyExists { path }) => {
            bail!("there is a record of this thread already, {}", path.display())
        }
        Err(error) => Err(error.into()),
    }
}

pub(super) fn export(home: &Home, options: &ExportOptions) -> Result<ExitCode> {
    if !home.state().is_dir() {
        bail!("there are no threads in {}", home.state().display());
    }
    let store = open_store(home)?;
    let id = choose(&every_thread(&store)?, &options.thread)?.thread_id.clone();
    let mut entries = Vec::new();
    store.read_entries(&id, |entry| entries.push(entry))?;
    let exported = export_rollout(&entries)?;
    match &options.to {
        None => std::io::stdout().write_all(&exported.text).context("the rollout cannot be written")?,
        Some(folder) => {
            let path = write(folder, &exported)?;
            println!("{}", clean_line(&path.display().to_string()));
        }
    }
    if exported.left_out > 0 {
        eprintln!(
            "oarlock: {} items have no form in a rollout; what the model saw of them is there",
            exported.left_out
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// Never over a file that is there: it may have gone on since.
fn write(home: &Path, exported: &ExportedRollout) -> Result<PathBuf> {
    if !home.is_dir() {
        bail!("--to: {} is no folder; name the home of Codex, such as ~/.codex", home.display());
    }
    let path = home.join(&exported.place);
    let folder = path.parent().unwrap_or(home);
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    let mut file = file.with_context(|| format!("cannot create {}", path.display()))?;
    file.write_all(&exported.text).with_context(|| format!("cannot write {}", path.display()))?;
    file.sync_all().with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}
