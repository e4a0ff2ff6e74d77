//! Truncated, flipped, spliced and doubled journals: no panic, no valid record lost, no unreported loss.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use oarlock_journal::{DamageKind, JournalError, JournalWriter, ReadOptions, WriterOptions, read};
use serde_json::json;

use crate::support::{Chance, batch, folder, meta, options, places, rounds, thread_id, told};

/// In the corrupted journal.
const RECORDS: usize = 40;

fn journal(folder: &Path) -> Vec<u8> {
    let (path, lock) = places(folder);
    let writer = JournalWriter::create(&path, &lock, &options(), &batch(&[meta(&thread_id(1))])).unwrap();
    for number in 1..RECORDS {
        let text = format!("{number} “ünï” \\n \" {}", "lorem {\"seq\":1} ".repeat(number % 7));
        writer.append(&batch(&[told("t", &text)])).unwrap();
    }
    writer.close().unwrap();
    std::fs::read(path).unwrap()
}

fn corrupt(bytes: &[u8], chance: &mut Chance) -> (&'static str, Vec<u8>) {
    let mut bad = bytes.to_vec();
    let at = chance.below(bad.len());
    let length = 1 + chance.below(600);
    let from = chance.below(bad.len());
    let piece = bytes[from..(from + length).min(bytes.len())].to_vec();
    let what = match chance.below(6) {
        0 => {
            bad[at] ^= 1 << chance.below(8);
            "flip"
        }
        1 => {
            bad.truncate(at);
            "cut the end"
        }
        2 => {
            bad.drain(at..(at + length).min(bytes.len()));
            "cut the middle"
        }
        3 => {
            bad.splice(at..at, piece);
            "splice"
        }
        4 => {
            let lines: Vec<&[u8]> = bytes.split_inclusive(|&byte| byte == b'\n').collect();
            let first = chance.below(lines.len());
            let last = (first + 1 + chance.below(5)).min(lines.len());
            let after = chance.below(lines.len() + 1);
            let doubled = lines[first..last].iter();
            bad = lines[..after]
                .iter()
                .chain(doubled)
                .chain(&lines[after..])
                .copied()
                .flatten()
                .copied()
                .collect();
            "double"
        }
        _ => {
            for byte in bad.iter_mut().skip(at).take(length) {
                *byte = u8::try_from(chance.below(256)).unwrap();
            }
            "noise"
        }
    };
    (what, bad)
}

#[test]
fn random_corruption_loses_no_valid_record_and_every_loss_is_reported() {
    let folder = folder();
    let bytes = journal(folder.path());
    let lines: Vec<&[u8]> = bytes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).collect();
    assert_eq!(lines.len(), RECORDS);
    let rounds = rounds("JOURNAL_CORRUPTIONS", 2_000);
    let threads = 2;
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (bytes, lines, folder) = (&bytes, &lines, folder.path());
            scope.spawn(move || {
                let path = folder.join(format!("corrupt-{thread}.jsonl"));
                for seed in (thread..rounds).step_by(threads) {
                    let (what, bad) = corrupt(bytes, &mut Chance::new(seed as u64));
                    check(&path, &bad, lines, &format!("seed {seed}, {what}"));
                }
            });
        }
    });
}

fn check(path: &Path, bad: &[u8], lines: &[&[u8]], at: &str) {
    std::fs::write(path, bad).unwrap();
    let contents = read(path, &ReadOptions::default()).unwrap();
    let kept: HashSet<u64> = contents.entries.iter().map(|entry| entry.seq).collect();
    assert_eq!(kept.len(), contents.entries.len(), "{at}: a number twice");
    assert!(contents.entries.is_sorted_by_key(|entry| entry.seq), "{at}: order");
    let missing: HashSet<u64> = contents
        .damage
        .named()
        .iter()
        .filter_map(|damage| match damage.what {
            DamageKind::Missing { first, last } => Some(first..=last),
            _ => None,
        })
        .flatten()
        .collect();
    let highest = kept.iter().max().copied().unwrap_or_default();
    let sound = sound(bad, lines);
    for seq in 1..=lines.len() as u64 {
        let is_sound = sound.contains(&seq);
        assert_eq!(kept.contains(&seq), is_sound, "{at}: record {seq}");
        // A loss after the last remaining record cannot be detected.
        if !is_sound && seq < highest {
            assert!(missing.contains(&seq), "{at}: the loss of record {seq} is unsaid");
        }
    }
    if bad != lines.join(&b'\n') && kept.len() < lines.len() && highest == lines.len() as u64 {
        assert!(!contents.damage.is_empty(), "{at}");
    }
}

/// The records whose bytes are complete, in any place.
fn sound(bad: &[u8], lines: &[&[u8]]) -> HashSet<u64> {
    let mut sound = HashSet::new();
    for at in 0..bad.len() {
        if bad[at] == b'{' {
            let here = (1..).zip(lines).filter(|(_, line)| bad[at..].starts_with(line));
            sound.extend(here.map(|(seq, _)| seq));
        }
    }
    sound
}

#[test]
fn a_corrupt_journal_can_be_continued() {
    let folder = folder();
    let bytes = journal(folder.path());
    let (path, lock) = places(folder.path());
    let options = options();
    for seed in 0..300 {
        let (what, bad) = corrupt(&bytes, &mut Chance::new(seed));
        std::fs::write(&path, &bad).unwrap();
        let before = read(&path, &ReadOptions::default()).unwrap();
        let (writer, recovery) = match JournalWriter::open(&path, &lock, &options) {
            Err(JournalError::Unreadable { .. }) if before.entries.is_empty() => continue,
            result => result.unwrap(),
        };
        let appended = writer.append_durable(&batch(&[told("t", "after")])).unwrap();
        writer.close().unwrap();
        let after = read(&path, &ReadOptions::default()).unwrap();
        assert_eq!(appended.first, recovery.next_seq);
        assert_eq!(after.entries.len(), before.entries.len() + 1, "seed {seed}, {what}");
        assert_eq!(after.entries.last().unwrap().seq, appended.first, "seed {seed}, {what}");
        let torn = |contents: &oarlock_journal::Contents| {
            contents.damage.named().iter().any(|damage| matches!(damage.what, DamageKind::TornTail { .. }))
        };
        assert!(!torn(&after), "seed {seed}, {what}");
        assert_eq!(recovery.cut > 0, torn(&before), "seed {seed}, {what}");
    }
}

#[test]
fn damage_says_where_it_is() {
    let folder = folder();
    let bytes = journal(folder.path());
    let (path, _) = places(folder.path());
    let lines: Vec<&[u8]> = bytes.split_inclusive(|&byte| byte == b'\n').collect();
    let mut flipped = lines[2].to_vec();
    flipped[60] ^= 1;
    let mut not_utf8 = lines[3].to_vec();
    not_utf8[70] = 0xff;
    let bad =
        [lines[0], lines[1], &flipped, &not_utf8, b"\n", lines[4], lines[1], b"hello\n", lines[5], b"{\"se"];
    std::fs::write(&path, bad.concat()).unwrap();
    let contents = read(&path, &ReadOptions::default()).unwrap();
    let said: Vec<String> = contents.damage.named().iter().map(ToString::to_string).collect();
    let at = |index: usize| bad[..index].iter().map(|line| line.len()).sum::<usize>();
    assert_eq!(
        said,
        [
            format!("line 3 (byte {}): checksum does not match, skipped", at(2)),
            format!("line 4 (byte {}): invalid UTF-8, skipped", at(3)),
            format!("line 7 (byte {}): records 2..=2 repeated, skipped", at(6)),
            format!("line 8 (byte {}): not a record, skipped", at(7)),
            format!("line 10 (byte {}): unfinished last line, 4 bytes cut", at(9)),
            format!("line 6 (byte {}): records 3..=4 are missing", at(5)),
        ]
    );
}

#[test]
fn lines_over_the_limit_are_skipped_in_bounded_memory() {
    let folder = folder();
    let bytes = journal(folder.path());
    let (path, _) = places(folder.path());
    let long = [b"{\"seq\":".as_slice(), &vec![b'9'; 3_000_000], b"\n"].concat();
    std::fs::write(&path, [&bytes[..], &long, &vec![b'x'; 3_000_000]].concat()).unwrap();
    let options = ReadOptions { max_line: 100_000, ..ReadOptions::default() };
    let contents = read(&path, &options).unwrap();
    assert_eq!(contents.entries.len(), RECORDS);
    let long: Vec<_> = contents.damage.named().iter().map(|damage| damage.what.clone()).collect();
    assert_eq!(long, [DamageKind::TooLong { bytes: 3_000_008 }, DamageKind::TooLong { bytes: 3_000_000 }]);
}

#[test]
fn records_of_a_newer_release_are_kept_and_written_again_byte_for_byte() {
    let folder = folder();
    let (path, lock) = places(folder.path());
    let payload =
        serde_json::value::RawValue::from_string(r#"{"a":  [1e400, "\u0041"]}"#.to_owned()).unwrap();
    let foreign = oarlock_journal::Foreign { kind: "hologram".to_owned(), schema: 3, payload };
    let mut first = batch(&[meta(&thread_id(1))]);
    first.push_foreign(&foreign).unwrap();
    JournalWriter::create(&path, &lock, &options(), &first).unwrap().close().unwrap();
    let contents = read(&path, &ReadOptions::default()).unwrap();
    assert!(contents.damage.is_empty(), "{:?}", contents.damage);
    let mut copy = oarlock_journal::RecordBatch::at(crate::support::NOW);
    for entry in &contents.entries {
        copy.push_record(&entry.record).unwrap();
    }
    let (copied, copied_lock) = (folder.path().join("b.jsonl"), folder.path().join("b.lock"));
    JournalWriter::create(&copied, &copied_lock, &options(), &copy).unwrap().close().unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), std::fs::read(&copied).unwrap());
}

#[test]
fn every_kind_of_record_comes_back() {
    let folder = folder();
    let (path, lock) = places(folder.path());
    let usage = json!({"totalTokens": 1, "inputTokens": 2, "cachedInputTokens": 3, "outputTokens": 4,
        "reasoningOutputTokens": 5});
    let records = [
        meta(&thread_id(1)),
        json!({"kind": "turnContext", "turnId": "t", "context": {"model": "m"}}),
        crate::support::started("t"),
        told("t", "x"),
        crate::support::user("t", "y"),
        json!({"kind": "compacted", "turnId": "t", "summary": "s", "replacement": []}),
        json!({"kind": "tokenUsage", "turnId": "t", "usage": {"total": usage, "last": usage,
            "modelContextWindow": null}}),
        json!({"kind": "metadata", "change": {"name": null}}),
        json!({"kind": "rolledBack", "numTurns": 1}),
        crate::support::ended("t", "failed"),
        json!({"kind": "operation", "state": "started", "operationId": "o", "attempt": 1, "executor": "e"}),
    ];
    JournalWriter::create(&path, &lock, &options(), &batch(&records)).unwrap().close().unwrap();
    let contents = read(&path, &ReadOptions::default()).unwrap();
    assert!(contents.damage.is_empty(), "{:?}", contents.damage);
    let mut seen = HashMap::new();
    for (entry, json) in contents.entries.into_iter().zip(&records) {
        let item = entry.into_item().unwrap();
        assert_eq!(item.record, crate::support::record(json.clone()));
        let wire = serde_json::to_value(&item).unwrap();
        seen.insert(wire["kind"].as_str().unwrap().to_owned(), item);
    }
    assert_eq!(seen.len(), records.len());
}

#[test]
fn an_empty_journal_is_an_error() {
    let folder = folder();
    let (path, lock) = places(folder.path());
    for bytes in [&b""[..], b"\n\n", b"\0\0\0\0", b"{\"seq\":1", b"{}\n[]\n"] {
        std::fs::write(&path, bytes).unwrap();
        assert!(read(&path, &ReadOptions::default()).unwrap().entries.is_empty());
        let opened = JournalWriter::open(&path, &lock, &WriterOptions::default());
        assert!(matches!(opened, Err(JournalError::Unreadable { .. })));
        assert_eq!(std::fs::read(&path).unwrap(), bytes, "what cannot be read is not touched");
    }
}
