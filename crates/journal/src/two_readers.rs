//! Reads a long journal with two threads: resuming a thread waits for it, and nearly all of the time is decoding.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use crate::error::JournalError;
use crate::line::Envelope;
use crate::reader::{DecodedLine, JournalLines, ReadSummary, read_scanned};
use crate::record::JournalEntry;
use crate::scan::{JournalScan, LineRef};

/// Fewer lines are read before a second thread has started.
const MANY_LINES: usize = 512;

/// Lines that a thread decodes at a time.
const TURN: usize = 128;

/// Journals with longer lines are read by one thread: several decoded chunks in memory could be very large.
const LONG_LINE: u32 = 256 * 1024;

/// Like [`read_scanned`], for every line.
pub(crate) fn read_all_scanned(
    path: &Path,
    file: &File,
    scan: JournalScan,
    each: &mut dyn FnMut(JournalEntry),
) -> Result<ReadSummary, JournalError> {
    let is_worth_it = scan.lines.len() >= MANY_LINES && scan.lines.iter().all(|line| line.len < LONG_LINE);
    if !is_worth_it || thread::available_parallelism().is_ok_and(|cores| cores.get() < 2) {
        return read_scanned(path, file, scan, &all, each);
    }
    let JournalScan { lines, mut damage, next_seq, length, .. } = scan;
    let lines = lines.as_slice();
    let decoded = thread::scope(|scope| {
        let (sender, receiver) = sync_channel(1);
        let second = move || {
            let mut reader = JournalLines::new(file);
            for turn in lines.chunks(TURN).skip(1).step_by(2) {
                let decoded = decode(&mut reader, turn);
                let is_last = decoded.is_err();
                // After the first failure no more is needed.
                if sender.send(decoded).is_err() || is_last {
                    return;
                }
            }
        };
        let second = thread::Builder::new().name("journal-decode".to_owned()).spawn_scoped(scope, second);
        let from_second = second.is_ok().then_some(&receiver);
        let mut reader = JournalLines::new(file);
        for (number, turn) in lines.chunks(TURN).enumerate() {
            let decoded = match from_second.filter(|_| number % 2 == 1) {
                Some(from_second) => receive(from_second)?,
                None => decode(&mut reader, turn)?,
            };
            let pairs = turn.iter().zip(decoded);
            pairs.for_each(|(line, decoded)| decoded.give(*line, &mut damage, each));
        }
        Ok(())
    });
    decoded.map_err(|error| JournalError::storage("read", path, error))?;
    Ok(ReadSummary { damage, next_seq, records: lines.len() as u64, length })
}

fn all(_: &Envelope<'_>) -> bool {
    true
}

fn decode(reader: &mut JournalLines<'_>, turn: &[LineRef]) -> io::Result<Vec<DecodedLine>> {
    turn.iter().map(|line| reader.decode(*line, &all)).collect()
}

fn receive(from_second: &Receiver<io::Result<Vec<DecodedLine>>>) -> io::Result<Vec<DecodedLine>> {
    from_second.recv().unwrap_or_else(|_| Err(io::Error::other("the second reader ended early")))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::line::{LineBody, encode};
    use crate::reader::open_to_read;
    use crate::scan::{ScanLimits, scan};

    fn journal(lines: usize) -> (tempfile::NamedTempFile, u64) {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let mut text = Vec::new();
        for seq in 1..=lines as u64 {
            let (kind, payload) = match seq % 7 {
                0 => ("rolledBack", r#"{"numTurns":"many"}"#.to_owned()),
                3 => ("ofTomorrow", format!(r#"{{"long":"{}"}}"#, "x".repeat(seq as usize))),
                _ => ("rolledBack", format!(r#"{{"numTurns":{seq}}}"#)),
            };
            let at = "2026-11-15T20:09:51.123Z";
            encode(&mut text, seq, LineBody { at, kind, schema: 1, payload: payload.as_bytes() });
        }
        file.write_all(&text).unwrap();
        (file, text.len() as u64)
    }

    #[test]
    fn two_read_the_same_as_one() {
        for lines in [0, 1, MANY_LINES - 1, MANY_LINES, MANY_LINES + 1, 3 * TURN, 4_000] {
            let (file, _) = journal(lines);
            let opened = open_to_read(file.path()).unwrap();
            let limits = ScanLimits { max_line: 1_000_000, up_to: u64::MAX };
            let scanned = || scan(&opened, limits).unwrap();
            let (mut one, mut two) = (Vec::new(), Vec::new());
            let first = read_scanned(file.path(), &opened, scanned(), &all, &mut |it| one.push(it)).unwrap();
            let second = read_all_scanned(file.path(), &opened, scanned(), &mut |it| two.push(it)).unwrap();
            assert_eq!(one, two);
            assert_eq!(one.len(), lines);
            assert_eq!(format!("{first:?}"), format!("{second:?}"));
            assert_eq!(second.damage.total() > 0, lines >= 7);
        }
    }

    /// The writer may truncate a file that is being read.
    #[test]
    fn a_file_that_shrinks_meanwhile_lacks_its_end() {
        let (file, length) = journal(2_000);
        let opened = open_to_read(file.path()).unwrap();
        let scanned = scan(&opened, ScanLimits { max_line: 1_000_000, up_to: u64::MAX }).unwrap();
        file.as_file().set_len(length / 2).unwrap();
        let mut entries = Vec::new();
        let read = read_all_scanned(file.path(), &opened, scanned, &mut |it| entries.push(it)).unwrap();
        assert!(entries.len() > 500 && entries.len() < 1_900, "{}", entries.len());
        assert!(entries.windows(2).all(|pair| pair[0].seq + 1 == pair[1].seq));
        assert_eq!(read.records, 2_000);
    }
}
