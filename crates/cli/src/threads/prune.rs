//! `oarlock threads prune`: deletes what nobody has used for a long time.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use journal::ThreadRow;
use runtime::config::Loader;
use runtime::{Clock, SystemClock};

use super::list::every_thread;
use super::manage::{agreed, count, delete_all};
use super::open_store;
use super::table::{ListPlace, now, table};

#[derive(Debug, Args)]
pub(super) struct PruneOptions {
    /// Only threads last used so long ago: days as in `90d`, or weeks, hours and minutes as in `12w`, `36h`, `30m`.
    #[arg(long, value_name = "AGE", value_parser = age)]
    older_than: i64,
    /// Only threads in the archive.
    #[arg(long)]
    archived: bool,
    /// Say what would go, and delete nothing.
    #[arg(long)]
    dry_run: bool,
    /// Do not ask.
    #[arg(short = 'y', long)]
    yes: bool,
}

/// Seconds.
fn age(text: &str) -> Result<i64, String> {
    let problem = || format!("`{text}` is no age; write a number and a unit, such as 90d, 12w, 36h or 30m");
    let (number, unit) = text.split_at(text.len() - text.chars().next_back().map_or(0, char::len_utf8));
    let seconds = match unit {
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        "w" => 7 * 86_400,
        _ => return Err(problem()),
    };
    let number: i64 = number.parse().map_err(|_| problem())?;
    number.checked_mul(seconds).filter(|seconds| *seconds > 0).ok_or_else(problem)
}

pub(super) fn run(options: &PruneOptions, loader: &Loader) -> Result<ExitCode> {
    let home = loader.home();
    let rows = match home.state().is_dir() {
        true => every_thread(&open_store(home)?)?,
        false => Vec::new(),
    };
    let latest = SystemClock.now_ms() - options.older_than * 1_000;
    let rows: Vec<ThreadRow> =
        rows.into_iter().filter(|row| options.takes(row, latest, home.state())).collect();
    if rows.is_empty() {
        println!("No thread is that old.");
        return Ok(ExitCode::SUCCESS);
    }
    if options.dry_run {
        let place = ListPlace::of(std::io::IsTerminal::is_terminal(&std::io::stdout()));
        print!("{}", table(&rows, &now(), place));
        println!("{} would be deleted.", count(&rows));
        return Ok(ExitCode::SUCCESS);
    }
    if !options.yes && !agreed(&rows)? {
        println!("Nothing was deleted.");
        return Ok(ExitCode::FAILURE);
    }
    delete_all(&rows, loader)
}

impl PruneOptions {
    /// Threads of agents go with the thread that started them, and rollouts of another program are its own.
    fn takes(&self, row: &ThreadRow, latest_ms: i64, state: &std::path::Path) -> bool {
        let is_child = matches!(row.summary.source, Some(protocol::SessionSource::SubAgent(_)));
        let is_ours = ["threads", "archived"].iter().any(|folder| row.path.starts_with(state.join(folder)));
        let is_wanted = row.is_archived || !self.archived;
        row.summary.updated_at_ms < latest_ms && !is_child && is_ours && is_wanted
    }
}

#[cfg(test)]
mod tests {
    use super::age;

    #[test]
    fn ages_have_a_unit() {
        assert_eq!(
            [age("90d"), age("2w"), age("36h"), age("1m")].map(Result::ok),
            [Some(7_776_000), Some(1_209_600), Some(129_600), Some(60)]
        );
        for wrong in ["", "90", "d", "-1d", "0d", "1.5d", "90 days", "99999999999999999w", "1ä"] {
            assert!(age(wrong).is_err_and(|problem| problem.contains("such as 90d")), "{wrong}");
        }
    }
}
