//! Measures how long a durable append takes: `cargo run --release -p oarlock-journal --example commit_latency
//! [FOLDER]`. For comparison, also measures one write and one sync without the journal.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use oarlock_journal::{Committer, JournalError, JournalWriter, RecordBatch, WriterOptions};
use protocol::{ContentItem, ResponseItem, RolloutRecord};

const APPENDS: usize = 2_000;

fn main() -> Result<(), JournalError> {
    let folder = std::env::args_os().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let folder = folder.join(format!("commit-latency-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(failed)?;
    println!("{:<44} {:>9} {:>9} {:>9}", "", "p50 ms", "p99 ms", "per s");
    report("write + fdatasync, no journal", raw(&folder).map_err(failed)?);
    for committers in [1, 4, 8] {
        for (threads, files) in [(1, 1), (8, 1), (8, 8), (64, 64), (200, 200)] {
            let name = format!("{committers} committers, {threads} appenders, {files} files");
            report(&name, journal(&folder, committers, threads, files)?);
        }
    }
    let _ = std::fs::remove_dir_all(&folder);
    Ok(())
}

fn failed(error: std::io::Error) -> JournalError {
    JournalError::Storage {
        action: "measure",
        path: std::env::temp_dir(),
        source: std::sync::Arc::new(error),
    }
}

fn item() -> RolloutRecord {
    let content = vec![ContentItem::OutputText { text: "word ".repeat(160) }];
    let item = ResponseItem::Message {
        id: None,
        role: "assistant".to_owned(),
        content,
        end_turn: None,
        phase: None,
    };
    RolloutRecord::ResponseItem { turn_id: None, item }
}

fn raw(folder: &Path) -> std::io::Result<(Vec<Duration>, Duration)> {
    let mut file = File::create(folder.join("raw"))?;
    let line = [b'x'; 950];
    let began = Instant::now();
    let mut times = Vec::with_capacity(APPENDS);
    for _ in 0..APPENDS {
        let began = Instant::now();
        file.write_all(&line)?;
        file.sync_data()?;
        times.push(began.elapsed());
    }
    Ok((times, began.elapsed()))
}

fn journal(
    folder: &Path,
    committers: usize,
    threads: usize,
    files: usize,
) -> Result<(Vec<Duration>, Duration), JournalError> {
    let options =
        WriterOptions { committer: Committer::with_threads(committers), ..WriterOptions::default() };
    let mut writers = Vec::new();
    for file in 0..files {
        let path = folder.join(format!("{committers}-{threads}-{files}-{file}.jsonl"));
        writers.push(JournalWriter::create(
            &path,
            &path.with_extension("lock"),
            &options,
            &RecordBatch::one(0, &item())?,
        )?);
    }
    let began = Instant::now();
    let times = std::thread::scope(|scope| {
        let run = |thread: usize| {
            let writer = &writers[thread % files];
            move || -> Result<Vec<Duration>, JournalError> {
                let record = item();
                let timed = |_| {
                    let began = Instant::now();
                    writer.append_durable(&RecordBatch::one(0, &record)?)?;
                    Ok(began.elapsed())
                };
                (0..APPENDS / threads).map(timed).collect()
            }
        };
        let running: Vec<_> = (0..threads).map(|thread| scope.spawn(run(thread))).collect();
        let done = running.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Ok(Vec::new())));
        done.collect::<Result<Vec<_>, _>>()
    })?;
    Ok((times.concat(), began.elapsed()))
}

fn report(name: &str, (mut times, all): (Vec<Duration>, Duration)) {
    times.sort();
    let at = |part: usize| times[(times.len() - 1) * part / 100].as_secs_f64() * 1_000.0;
    let rate = times.len() as f64 / all.as_secs_f64();
    println!("{name:<44} {:>9.3} {:>9.3} {rate:>9.0}", at(50), at(99));
}
