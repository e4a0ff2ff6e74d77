//! The first pass over a journal: which bytes are valid records, their order, and all damage. Nothing is parsed, so it
//! runs at the speed of the checksum.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::ops::Range;

use crate::damage::{DamageKind, DamageReport};
use crate::holes;
use crate::line::{self, LineFault, Sound};
use crate::salvage;

/// Size of a read. A larger one costs more memory than it saves in system calls.
pub(crate) const BUFFER: usize = 64 * 1024;

/// In bytes; few records are shorter.
const SHORT_LINE: u64 = 256;

/// The position of one valid record, without its newline.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LineRef {
    pub(crate) seq: u64,
    pub(crate) offset: u64,
    pub(crate) len: u32,
    pub(crate) line: u32,
    crc: u32,
}

/// Limits of a scan.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScanLimits {
    pub(crate) max_line: usize,
    pub(crate) up_to: u64,
}

#[derive(Debug, Default)]
pub(crate) struct JournalScan {
    /// In the order of their numbers, each number once.
    pub(crate) lines: Vec<LineRef>,
    pub(crate) damage: DamageReport,
    /// Where the file should end: after its last line, or before an incomplete one.
    pub(crate) end: u64,
    /// Bytes of an incomplete last line after that.
    pub(crate) torn: u64,
    /// The last record is complete and only its newline is missing.
    pub(crate) lacks_newline: bool,
    /// The number of the next record to be written.
    pub(crate) next_seq: u64,
    /// How much was scanned.
    pub(crate) length: u64,
}

/// Scans a whole file. Fails only if it cannot be read.
pub(crate) fn scan(file: &File, limits: ScanLimits) -> io::Result<JournalScan> {
    let length = file.metadata()?.len().min(limits.up_to);
    let written = holes::written(file, length);
    // Allocates for the likely number of lines. Unused memory is never touched, so it costs nothing.
    let likely = written.iter().map(|piece| piece.end - piece.start).sum::<u64>() / SHORT_LINE;
    let mut scanner = JournalScanner::default();
    scanner.scan.lines.reserve(usize::try_from(likely).unwrap_or_default());
    for piece in &written {
        scanner.hole_up_to(piece.start);
        // A file that grows meanwhile is scanned up to its new end, unless there is a limit.
        let is_last = written.last() == Some(piece);
        let end = if is_last && piece.end == length { limits.up_to } else { piece.end };
        scanner.piece(file, piece.start..end, limits.max_line, is_last)?;
    }
    if written.last().is_none_or(|last| last.end < length) {
        scanner.hole_at_end(length);
    }
    Ok(scanner.finish())
}

#[derive(Default)]
struct JournalScanner {
    scan: JournalScan,
    line: u64,
    offset: u64,
    last_seq: u64,
    /// Invalid lines since the last valid one: each was a record once, and its number must not be reused.
    bad_since: u64,
    /// All numbers with their checksums; kept only after one was out of order.
    seen: Option<HashMap<u64, u32>>,
}

impl JournalScanner {
    /// Scans a written part of the file. A line that ends in a hole has lost its rest.
    fn piece(&mut self, file: &File, piece: Range<u64>, max_line: usize, is_last: bool) -> io::Result<()> {
        let mut file = file;
        file.seek(SeekFrom::Start(piece.start))?;
        let mut input = BufReader::with_capacity(BUFFER, file.take(piece.end - piece.start));
        let mut line = Vec::new();
        loop {
            let looked_at = self.whole_lines(input.fill_buf()?, max_line);
            input.consume(looked_at);
            // The line at the buffer's end, one that is too long, or the last.
            line.clear();
            let read = input.by_ref().take(max_line as u64 + 1).read_until(b'\n', &mut line)? as u64;
            if read == 0 {
                return Ok(());
            }
            self.line += 1;
            if line.pop_if(|byte| *byte == b'\n').is_some() {
                self.whole(&line);
            } else if line.len() > max_line {
                let rest = input.skip_until(b'\n')? as u64;
                self.lost(read + rest);
            } else if is_last {
                self.tail(&line);
            } else {
                self.whole(&line);
                // There was no newline.
                self.offset -= 1;
                self.scan.end = self.offset;
            }
        }
    }

    /// Bytes in which no record is searched.
    fn lost(&mut self, bytes: u64) {
        self.scan.damage.add(self.line, self.offset, DamageKind::TooLong { bytes });
        self.bad_since += 1;
        self.offset += bytes;
        self.scan.end = self.offset;
    }

    /// A hole: it cannot contain a record.
    fn hole_up_to(&mut self, start: u64) {
        if start > self.offset {
            self.line += 1;
            self.lost(start - self.offset);
        }
    }

    /// Counts as an incomplete last line: space that was allocated and never written.
    fn hole_at_end(&mut self, length: u64) {
        let bytes = length.saturating_sub(self.offset);
        if bytes == 0 {
            return;
        }
        self.scan.damage.add(self.line + 1, self.offset, DamageKind::TornTail { bytes });
        self.scan.torn += bytes;
        self.offset = length;
    }

    /// Scans the complete lines in the buffer, and returns their length.
    fn whole_lines(&mut self, bytes: &[u8], max_line: usize) -> usize {
        let mut at = 0;
        while let Some(len) = memchr::memchr(b'\n', &bytes[at..]).filter(|len| *len <= max_line) {
            self.line += 1;
            self.whole(&bytes[at..at + len]);
            at += len + 1;
        }
        at
    }

    fn whole(&mut self, line: &[u8]) {
        match line::check(line) {
            Ok(sound) => self.record(sound, 0, line.len()),
            Err(_) if line.iter().all(u8::is_ascii_whitespace) => {}
            Err(fault) => {
                self.inside(line, fault);
            }
        }
        self.offset += line.len() as u64 + 1;
        self.scan.end = self.offset;
    }

    /// The last line, if it has no newline.
    fn tail(&mut self, line: &[u8]) {
        let kept = match line::check(line) {
            Ok(sound) => {
                self.record(sound, 0, line.len());
                line.len()
            }
            Err(_) => {
                let inside = salvage::sound_inside(line);
                for (range, sound) in &inside {
                    self.record(*sound, range.start, range.len());
                }
                inside.last().map_or(0, |(range, _)| range.end)
            }
        };
        let bytes = (line.len() - kept) as u64;
        if bytes > 0 {
            self.scan.damage.add(self.line, self.offset + kept as u64, DamageKind::TornTail { bytes });
        }
        self.scan.torn = bytes;
        self.scan.lacks_newline = kept > 0;
        self.scan.end = self.offset + kept as u64;
        self.offset += line.len() as u64;
    }

    fn inside(&mut self, line: &[u8], fault: LineFault) {
        let inside = salvage::sound_inside(line);
        let salvaged = inside.len();
        let what = match fault {
            LineFault::Shape => DamageKind::Malformed { salvaged },
            LineFault::Checksum => DamageKind::BadChecksum { salvaged },
            LineFault::Utf8 => DamageKind::NotUtf8 { salvaged },
        };
        self.scan.damage.add(self.line, self.offset, what);
        for (range, sound) in inside {
            self.record(sound, range.start, range.len());
        }
        self.bad_since += 1;
    }

    fn record(&mut self, sound: Sound, start: usize, len: usize) {
        let offset = self.offset + start as u64;
        let Sound { seq, crc } = sound;
        if seq <= self.last_seq && !self.is_new(sound, offset) {
            return;
        }
        if let Some(seen) = &mut self.seen {
            seen.insert(seq, crc);
        }
        // No line limit reaches 4 GB, and the line number is only displayed.
        let len = u32::try_from(len).unwrap_or(u32::MAX);
        let line = u32::try_from(self.line).unwrap_or(u32::MAX);
        self.scan.lines.push(LineRef { seq, offset, len, line, crc });
        self.last_seq = self.last_seq.max(seq);
        self.bad_since = 0;
    }

    /// Handles a number that is not above all before it: out of order, or repeated.
    fn is_new(&mut self, sound: Sound, offset: u64) -> bool {
        let lines = &self.scan.lines;
        let seen = self.seen.get_or_insert_with(|| lines.iter().map(|line| (line.seq, line.crc)).collect());
        let (first, last) = (sound.seq, sound.seq);
        let what = match seen.get(&sound.seq) {
            Some(&crc) => DamageKind::Duplicate { first, last, differing: crc != sound.crc },
            None => DamageKind::OutOfOrder { first, last },
        };
        let is_new = matches!(what, DamageKind::OutOfOrder { .. });
        self.scan.damage.add(self.line, offset, what);
        is_new
    }

    fn finish(self) -> JournalScan {
        let Self { mut scan, offset, last_seq, bad_since, seen, .. } = self;
        if seen.is_some() {
            scan.lines.sort_by_key(|line| line.seq);
        }
        let mut expected = 1;
        for found in &scan.lines {
            if found.seq > expected {
                let what = DamageKind::Missing { first: expected, last: found.seq - 1 };
                scan.damage.add(u64::from(found.line), found.offset, what);
            }
            expected = found.seq.saturating_add(1);
        }
        scan.next_seq = last_seq.saturating_add(1).saturating_add(bad_since);
        scan.length = offset;
        scan
    }
}
