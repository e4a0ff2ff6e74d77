//! The two threads that read what a server writes.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::process::{ChildStderr, ChildStdout};
use std::sync::mpsc::Sender;
use std::time::Instant;

use parking_lot::Mutex;

use crate::flood::Flood;
use crate::scan::LineBuffer;

/// Lines of the server's log that an error shows.
const LOG_LINES: usize = 5;

/// A line that no flood took, and when its last byte arrived.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) at: Instant,
    pub(super) bytes: Vec<u8>,
}

/// Stamps lines as they come. Under a flood, only the few that are no deltas are passed on.
pub(super) fn read_output(
    mut output: ChildStdout,
    lines: &Sender<Line>,
    flood: &Mutex<Option<Flood>>,
    reading: &Mutex<()>,
) {
    let mut buffer = LineBuffer::new();
    loop {
        drop(reading.lock());
        let Ok(1..) = buffer.fill(&mut output) else { return };
        let at = Instant::now();
        let mut flood = flood.lock();
        while let Some(line) = buffer.next_line() {
            if flood.as_mut().is_some_and(|flood| flood.take(at, line)) {
                continue;
            }
            if lines.send(Line { at, bytes: line.to_vec() }).is_err() {
                return;
            }
        }
    }
}

/// Keeps the end of the log, for the error that may need it.
pub(super) fn read_log(errors: ChildStderr, log: &Mutex<VecDeque<String>>) {
    let mut reader = BufReader::new(errors);
    let mut line = Vec::new();
    while let Ok(1..) = reader.by_ref().take(64 * 1024).read_until(b'\n', &mut line) {
        let mut log = log.lock();
        if log.len() == LOG_LINES {
            log.pop_front();
        }
        log.push_back(String::from_utf8_lossy(&line).trim_end().to_owned());
        line.clear();
    }
}
