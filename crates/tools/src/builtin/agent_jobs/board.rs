//! Reports of a job's agents: one file per job with one line per report, written by the agents' calls and read by the
//! call that runs the job.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Limit of one report.
pub(super) const LONGEST_RESULT: usize = 256 << 10;
/// Limit of a job's reports together.
const MOST_BYTES: u64 = 64 << 20;

/// The file of a job. It exists only while the job runs in this process.
#[derive(Debug, Clone)]
pub(super) struct JobBoard {
    file: PathBuf,
}

/// One line of the file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum BoardLine {
    /// An item of the job.
    Item {
        item_id: String,
    },
    Report(JobReport),
}

/// The result of an item.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct JobReport {
    pub(super) item_id: String,
    pub(super) result: Map<String, Value>,
    /// The agent requested that no further item is started.
    pub(super) stop: bool,
    pub(super) at_ms: i64,
}

impl JobBoard {
    /// `None` for an unknown job.
    pub(super) fn of(folder: &Path, job_id: &str) -> Option<Self> {
        let is_plain = !job_id.is_empty() && job_id.len() <= 64;
        let is_plain = is_plain && job_id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        is_plain.then(|| Self { file: folder.join(format!("{job_id}.jsonl")) })
    }

    /// Creates the file, unless it exists from before a restart.
    pub(super) fn open(&self, items: &[String]) -> std::io::Result<()> {
        if let Some(folder) = self.file.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let mut options = OpenOptions::new();
        let mut file = match options.append(true).create_new(true).mode(0o600).open(&self.file) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => return Ok(()),
            file => file?,
        };
        let lines: String = items.iter().map(|id| line(&BoardLine::Item { item_id: id.clone() })).collect();
        file.write_all(lines.as_bytes())?;
        file.sync_all()
    }

    /// Adds a report. Returns false if the job has ended, has no such item, or has a report already. Durable when it
    /// returns.
    pub(super) fn report(&self, report: &JobReport) -> std::io::Result<bool> {
        let mut file = match OpenOptions::new().read(true).append(true).open(&self.file) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        // Locked until the file is closed, so that reports do not mix.
        file.lock()?;
        let (items, reports) = read(&mut file)?;
        if !items.contains(&report.item_id) || reports.contains_key(&report.item_id) {
            return Ok(false);
        }
        file.write_all(line(&BoardLine::Report(report.clone())).as_bytes())?;
        file.sync_data()?;
        Ok(true)
    }

    /// The reports by item.
    pub(super) fn reports(&self) -> BTreeMap<String, JobReport> {
        let read = File::open(&self.file).and_then(|mut file| read(&mut file));
        read.map(|(_, reports)| reports).unwrap_or_default()
    }

    /// Ends the job: no further report is accepted.
    pub(super) fn close(&self) {
        if let Err(error) = std::fs::remove_file(&self.file) {
            tracing::warn!(%error, "the file of a job stays behind");
        }
    }
}

fn line(line: &BoardLine) -> String {
    serde_json::to_string(line).map(|line| line + "\n").unwrap_or_default()
}

/// Ignores unreadable lines, such as one that a crash truncated.
fn read(file: &mut File) -> std::io::Result<(Vec<String>, BTreeMap<String, JobReport>)> {
    let mut text = String::new();
    file.take(MOST_BYTES).read_to_string(&mut text)?;
    let (mut items, mut reports) = (Vec::new(), BTreeMap::new());
    for line in text.lines() {
        match serde_json::from_str(line) {
            Ok(BoardLine::Item { item_id }) => items.push(item_id),
            Ok(BoardLine::Report(report)) => {
                reports.entry(report.item_id.clone()).or_insert(report);
            }
            Err(_) => {}
        }
    }
    Ok((items, reports))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(item: &str) -> JobReport {
        JobReport { item_id: item.to_owned(), result: Map::new(), stop: false, at_ms: 1 }
    }

    #[test]
    fn an_item_is_reported_on_once_and_only_while_its_job_runs() {
        let folder = tempfile::tempdir().expect("a folder");
        let board = JobBoard::of(folder.path(), "job-1").expect("a plain id");
        assert!(!board.report(&report("a")).expect("no error"), "the job has not begun");
        board.open(&["a".to_owned(), "b".to_owned()]).expect("made");
        assert!(board.report(&report("a")).expect("no error"));
        assert!(!board.report(&report("a")).expect("no error"), "twice");
        assert!(!board.report(&report("c")).expect("no error"), "no such item");
        // Opened again after a restart, with a line that a crash truncated.
        std::fs::OpenOptions::new()
            .append(true)
            .open(folder.path().join("job-1.jsonl"))
            .and_then(|mut file| file.write_all(b"{\"kind\":\"rep\n"))
            .expect("written");
        board.open(&["a".to_owned()]).expect("there");
        assert!(board.report(&report("b")).expect("no error"));
        assert_eq!(board.reports().into_keys().collect::<Vec<_>>(), ["a", "b"]);
        board.close();
        assert!(!board.report(&report("b")).expect("no error"));
        for id in ["", "../x", "a/b", "a.b"] {
            assert!(JobBoard::of(folder.path(), id).is_none(), "{id}");
        }
    }
}
