//! Acknowledged records are on the disk: with many writers, and after a kill.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

use oarlock_journal::{Appended, Committer, JournalDisk, JournalWriter, ReadOptions, WriterOptions, read};

use crate::support::{Chance, batch, folder, meta, options, places, rounds, thread_id, told};

#[derive(Debug, Default)]
struct CountingDisk {
    syncs: AtomicUsize,
}

impl JournalDisk for CountingDisk {
    fn sync(&self, file: &std::fs::File) -> std::io::Result<()> {
        self.syncs.fetch_add(1, Ordering::SeqCst);
        file.sync_data()
    }
}

/// The acknowledged line, as it is on the disk now.
fn last_line(path: &Path, appended: Appended) -> String {
    let bytes = std::fs::read(path).unwrap();
    let upto = usize::try_from(appended.length).unwrap();
    let text = std::str::from_utf8(&bytes[..upto]).unwrap();
    text.lines().next_back().unwrap().to_owned()
}

#[test]
fn an_acknowledged_record_is_in_the_file_whoever_else_is_writing() {
    const THREADS: usize = 12;
    const EACH: usize = 25;
    let folder = tempfile::tempdir().unwrap();
    let disk = Arc::new(CountingDisk::default());
    let committer = Committer::with_threads(2);
    let options = WriterOptions { committer, disk: disk.clone(), ..WriterOptions::default() };
    let writers: Vec<(PathBuf, JournalWriter)> = (0..3)
        .map(|number| {
            let path = folder.path().join(format!("{number}.jsonl"));
            let lock = folder.path().join(format!("{number}.lock"));
            let first = batch(&[meta(&thread_id(number))]);
            (path.clone(), JournalWriter::create(&path, &lock, &options, &first).unwrap())
        })
        .collect();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (path, writer) = &writers[thread % writers.len()];
            scope.spawn(move || {
                for number in 0..EACH {
                    let text = format!("thread {thread} number {number}.");
                    let appended = writer.append_durable(&batch(&[told("t", &text)])).unwrap();
                    let line = last_line(path, appended);
                    assert!(line.contains(&text), "{line}");
                    assert!(line.starts_with(&format!("{{\"seq\":{},", appended.last)), "{line}");
                }
            });
        }
    });
    for (path, writer) in writers {
        writer.close().unwrap();
        let contents = read(&path, &ReadOptions::default()).unwrap();
        assert!(contents.damage.is_empty());
        assert_eq!(contents.entries.len(), 1 + THREADS / 3 * EACH);
    }
    let syncs = disk.syncs.load(Ordering::SeqCst);
    assert!(syncs < THREADS * EACH, "{syncs} syncs for {} appends: nothing was grouped", THREADS * EACH);
}

#[test]
fn listeners_are_notified_in_order_and_a_panic_harms_no_other() {
    let folder = folder();
    let (path, lock) = places(folder.path());
    let writer = JournalWriter::create(&path, &lock, &options(), &batch(&[meta(&thread_id(1))])).unwrap();
    let (tell, told_seqs) = mpsc::channel();
    for number in 0..200 {
        let tell = tell.clone();
        writer.append_then(&batch(&[told("t", "x")]), move |result| {
            tell.send(result.unwrap().first).unwrap();
            assert!(number != 7, "this panic is part of the test");
        });
    }
    writer.flush().unwrap();
    let seqs: Vec<u64> = told_seqs.try_iter().collect();
    assert_eq!(seqs, (2..202).collect::<Vec<_>>());
}

#[test]
fn a_dropped_writer_finishes_what_was_appended() {
    let folder = folder();
    let (path, lock) = places(folder.path());
    for round in 1..50 {
        let writer = match round {
            1 => JournalWriter::create(&path, &lock, &options(), &batch(&[meta(&thread_id(1))])).unwrap(),
            _ => JournalWriter::open(&path, &lock, &options()).unwrap().0,
        };
        assert_eq!(writer.append(&batch(&[told("t", "x")])).unwrap().first, round + 1);
    }
}

/// Not a test: the process that [`a_killed_process_loses_nothing_it_acknowledged`] kills.
#[test]
fn child_appends_until_killed() {
    let Ok(folder) = std::env::var("JOURNAL_TEST_APPEND") else { return };
    let (path, lock) = places(Path::new(&folder));
    let writer = JournalWriter::open(&path, &lock, &options()).unwrap().0;
    loop {
        let size = usize::try_from(writer.next_seq()).unwrap() * 37 % 5_000;
        writer.append(&batch(&[told("t", &"y".repeat(size))])).unwrap();
        let appended =
            writer.append_durable(&batch(&[told("t", &"x".repeat(size)), told("t", "z")])).unwrap();
        println!("\nacknowledged {}", appended.last);
    }
}

#[test]
fn a_killed_process_loses_nothing_it_acknowledged() {
    let mut chance = Chance::new(52);
    for journal in 0..rounds("JOURNAL_KILLS", 15).div_ceil(15) {
        let folder = folder();
        let (path, lock) = places(folder.path());
        let first = batch(&[meta(&thread_id(1))]);
        JournalWriter::create(&path, &lock, &options(), &first).unwrap().close().unwrap();
        let mut acknowledged = 1;
        for kill in 0..15 {
            acknowledged = kill_after(1 + chance.below(60), folder.path()).unwrap_or(acknowledged);
            let contents = read(&path, &ReadOptions::default()).unwrap();
            let at = format!("journal {journal}, kill {kill}");
            assert!(!contents.damage.is_beyond_tail(), "{at}: {:?}", contents.damage);
            assert!(contents.next_seq > acknowledged, "{at}: {acknowledged} was acknowledged");
            assert_eq!(contents.entries.len() as u64, contents.next_seq - 1, "{at}");
        }
        assert!(acknowledged > 100, "{acknowledged}");
    }
}

/// Kills a process while it writes, and returns the last number it acknowledged.
fn kill_after(acknowledgements: usize, folder: &Path) -> Option<u64> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "durability::child_appends_until_killed", "--nocapture"])
        .env("JOURNAL_TEST_APPEND", folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let seqs = lines
        .map_while(Result::ok)
        .filter_map(|line| line.strip_prefix("acknowledged ").and_then(|seq| seq.parse::<u64>().ok()));
    let mut last = None;
    for (seq, count) in seqs.zip(1..) {
        last = Some(seq);
        if count == acknowledgements {
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    last
}
