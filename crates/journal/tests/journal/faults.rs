//! Every disk operation fails once, at every point, in every way: nothing acknowledged is lost, nothing refused
//! reappears, and writing continues when the disk works again.

use std::path::Path;
use std::sync::Arc;

use oarlock_journal::{Committer, JournalError, JournalWriter, ReadOptions, Record, WriterOptions, read};
use protocol::{ContentItem, ResponseItem, RolloutRecord};
use serde_json::{Value, json};

use crate::support::{Fault, FaultyDisk, batch, folder, meta, places, thread_id, told};

/// The outcome of each record, by its text.
#[derive(Debug, Default)]
struct Outcome {
    acknowledged: Vec<String>,
    refused: Vec<String>,
    /// Not awaited, or reported later: may be there or not.
    open: Vec<String>,
}

impl Outcome {
    /// If the disk refused to the end, a partial write could not be truncated either.
    fn let_go(&mut self, refused_since: usize, fault: Fault) {
        if fault.calls > 2 {
            self.open.extend(self.refused.drain(refused_since..));
        }
    }
}

const EIO: i32 = 5;
const EMFILE: i32 = 24;
const ENOSPC: i32 = 28;
const EROFS: i32 = 30;

#[test]
fn no_fault_at_any_call_loses_what_was_acknowledged() {
    let points: usize = std::thread::scope(|scope| {
        let walks = [ENOSPC, EIO, EROFS, EMFILE].map(|errno| scope.spawn(move || walk(errno)));
        walks.into_iter().map(|walk| walk.join().unwrap()).sum()
    });
    println!("{points} fault points");
    assert!(points >= 2_000, "{points} fault points");
}

/// Every operation in turn fails this way, until a run ends before the fault.
fn walk(errno: i32) -> usize {
    let committer = Committer::with_threads(1);
    let faults = [(false, 1), (true, 1), (true, 2), (false, 7), (true, 40)];
    let points = faults.map(|(is_partial, calls)| {
        let fault = Fault { errno, is_partial, calls };
        (0..).take_while(|&first| fails_and_recovers(first, fault, &committer)).count()
    });
    points.iter().sum()
}

/// Whether the fault was reached.
fn fails_and_recovers(first: usize, fault: Fault, committer: &Committer) -> bool {
    let folder = folder();
    let (path, lock) = places(folder.path());
    let disk = Arc::new(FaultyDisk::new(first, fault));
    let options =
        WriterOptions { committer: committer.clone(), disk: disk.clone(), ..WriterOptions::default() };
    let mut outcome = Outcome::default();
    let mut writer = None;
    let mut refused_since = 0;
    for step in 0..28 {
        let text = format!("step {step}");
        let lines = batch(&[told("t", &text), told("t", &format!("{text}, second line"))]);
        let Some(open) = writer.take().or_else(|| open(&path, &lock, &options)) else { continue };
        match step {
            // Not awaited; its loss is reported to a later one.
            4 | 5 | 16 => match open.append(&lines) {
                Ok(_) => outcome.open.push(text),
                Err(_) => outcome.refused.push(text),
            },
            _ => match open.append_durable(&lines) {
                Ok(_) => {
                    outcome.acknowledged.push(text);
                    refused_since = outcome.refused.len();
                }
                Err(JournalError::Storage { .. }) => outcome.refused.push(text),
                Err(error) => panic!("{error}"),
            },
        }
        if step % 9 == 8 {
            let _ = open.close();
            outcome.let_go(refused_since, fault);
        } else {
            writer = Some(open);
        }
    }
    drop(writer);
    outcome.let_go(refused_since, fault);
    let has_failed = disk.has_failed();
    if path.exists() {
        disk.cut_power(&path);
        let options = WriterOptions { committer: committer.clone(), ..WriterOptions::default() };
        check((&path, &lock), &options, &outcome, &format!("call {first}, {fault:?}"));
    } else {
        assert!(outcome.acknowledged.is_empty());
    }
    has_failed
}

fn open(path: &Path, lock: &Path, options: &WriterOptions) -> Option<JournalWriter> {
    if path.exists() {
        return JournalWriter::open(path, lock, options).ok().map(|(writer, _)| writer);
    }
    JournalWriter::create(path, lock, options, &batch(&[meta(&thread_id(1))])).ok()
}

fn check((path, lock): (&Path, &Path), options: &WriterOptions, outcome: &Outcome, at: &str) {
    // Twice, because an interrupted recovery must change nothing.
    for _ in 0..2 {
        JournalWriter::open(path, lock, options).unwrap().0.close().unwrap();
    }
    let contents = read(path, &ReadOptions::default()).unwrap();
    assert!(contents.damage.is_empty(), "{at}: {:?}", contents.damage);
    assert_eq!(contents.next_seq, contents.entries.len() as u64 + 1, "{at}");
    let texts: Vec<String> = contents.entries.into_iter().filter_map(|entry| text(entry.record)).collect();
    for acknowledged in &outcome.acknowledged {
        let count = texts.iter().filter(|text| *text == acknowledged).count();
        assert_eq!(count, 1, "{at}: {acknowledged} was acknowledged");
        assert!(texts.contains(&format!("{acknowledged}, second line")), "{at}: half of {acknowledged}");
    }
    for refused in &outcome.refused {
        assert!(!texts.contains(refused), "{at}: {refused} was refused and is there");
    }
    let acknowledged: Vec<&String> =
        texts.iter().filter(|text| outcome.acknowledged.contains(text)).collect();
    assert_eq!(acknowledged, outcome.acknowledged.iter().collect::<Vec<_>>(), "{at}: order");
}

fn text(record: Record) -> Option<String> {
    let Record::Known(RolloutRecord::ResponseItem { item: ResponseItem::Message { content, .. }, .. }) =
        record
    else {
        return None;
    };
    match &content[..] {
        [ContentItem::OutputText { text }] => Some(text.clone()),
        _ => None,
    }
}

#[test]
fn a_full_disk_says_so_and_writing_resumes_when_there_is_room() {
    let folder = folder();
    let (path, lock) = places(folder.path());
    // After the nine operations of creation and the first append, eight operations fail.
    let disk = Arc::new(FaultyDisk::new(10, Fault { errno: ENOSPC, is_partial: true, calls: 8 }));
    let options = WriterOptions { disk, ..WriterOptions::default() };
    let writer = JournalWriter::create(&path, &lock, &options, &batch(&[meta(&thread_id(1))])).unwrap();
    let append = |text: &str| writer.append_durable(&batch(&[told("t", text)]));
    assert_eq!(append("first").unwrap().last, 2);
    let mut errors = Vec::new();
    let recovered = loop {
        match append("second") {
            Ok(appended) => break appended,
            Err(error) => errors.push(error.to_string()),
        }
    };
    assert_eq!(recovered.first, 3, "numbers go on where the acknowledged ones end");
    assert!(errors.iter().all(|error| error.contains("No space left on device")), "{errors:?}");
    assert!(errors[0].contains(path.to_str().unwrap()) && errors[0].contains("Free space"), "{errors:?}");
}

#[test]
fn a_loss_that_was_not_awaited_is_reported_to_the_next_append() {
    let folder = folder();
    let (path, lock) = places(folder.path());
    let disk = Arc::new(FaultyDisk::new(6, Fault { errno: EIO, is_partial: false, calls: 2 }));
    let options = WriterOptions { disk, ..WriterOptions::default() };
    let writer = JournalWriter::create(&path, &lock, &options, &batch(&[meta(&thread_id(1))])).unwrap();
    writer.append(&batch(&[told("t", "lost")])).unwrap();
    let next = writer.append_durable(&batch(&[told("t", "next")]));
    assert!(matches!(next, Err(JournalError::Storage { .. })), "{next:?}");
    assert_eq!(writer.append_durable(&batch(&[told("t", "after")])).unwrap().first, 2);
}

#[test]
fn a_file_deleted_underneath_is_not_made_again_without_its_head() {
    let folder = folder();
    let (path, lock) = places(folder.path());
    let options = WriterOptions::default();
    let writer = JournalWriter::create(&path, &lock, &options, &batch(&[meta(&thread_id(1))])).unwrap();
    std::fs::remove_file(&path).unwrap();
    for _ in 0..2 {
        let result = writer.append_durable(&batch(&[told("t", "x")]));
        assert!(matches!(result, Err(JournalError::Deleted { .. })), "{result:?}");
    }
    assert!(!path.exists());
}

#[test]
fn a_file_changed_by_another_process_is_not_continued() {
    for (change, what) in [("shorter", -1_i64), ("longer", 5)] {
        let folder = folder();
        let (path, lock) = places(folder.path());
        let options = WriterOptions::default();
        let writer = JournalWriter::create(&path, &lock, &options, &batch(&[meta(&thread_id(1))])).unwrap();
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        let length = file.metadata().unwrap().len().checked_add_signed(what).unwrap();
        file.set_len(length).unwrap();
        let result = writer.append_durable(&batch(&[told("t", "x")]));
        assert!(matches!(result, Err(JournalError::Changed { .. })), "{change}: {result:?}");
        drop(writer);
        let (writer, _) = JournalWriter::open(&path, &lock, &options).unwrap();
        writer.append_durable(&batch(&[told("t", "y")])).unwrap();
    }
}

#[test]
fn links_and_pipes_in_place_of_a_journal_are_refused() {
    let folder = folder();
    let (path, lock) = places(folder.path());
    let options = WriterOptions::default();
    let elsewhere = folder.path().join("elsewhere.jsonl");
    JournalWriter::create(&elsewhere, &lock, &options, &batch(&[meta(&thread_id(1))]))
        .unwrap()
        .close()
        .unwrap();
    std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
    assert!(matches!(JournalWriter::open(&path, &lock, &options), Err(JournalError::Storage { .. })));
    assert!(matches!(read(&path, &ReadOptions::default()), Err(JournalError::Storage { .. })));
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    assert!(JournalWriter::open(&path, &lock, &options).is_err());
    assert!(matches!(read(&path, &ReadOptions::default()), Err(JournalError::NotAFile { .. })));
}

#[test]
fn a_record_over_the_limit_is_refused_and_costs_nothing() {
    let folder = folder();
    let (path, lock) = places(folder.path());
    let options = WriterOptions { max_line: 2_000, ..WriterOptions::default() };
    let writer = JournalWriter::create(&path, &lock, &options, &batch(&[meta(&thread_id(1))])).unwrap();
    let large: Value = told("t", &"x".repeat(2_000));
    let result = writer.append_durable(&batch(&[told("t", "small"), large]));
    assert!(matches!(result, Err(JournalError::TooLarge { .. })), "{result:?}");
    assert_eq!(
        writer.append_durable(&batch(&[json!({"kind": "rolledBack", "numTurns": 1})])).unwrap().first,
        2
    );
}
