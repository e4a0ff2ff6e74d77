//! The report of the process that becomes the command: its process id, then nothing more on success, or the reason of
//! the failure.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;

use rustix::fs::readlinkat;

use super::wire::StartFailure;

/// The result of the start.
pub(super) enum StartReport {
    Started { pid: Option<u32> },
    Failed(StartFailure),
}

/// The reading end.
pub(super) struct Reports {
    pipe: OwnedFd,
    text: Vec<u8>,
    open: bool,
}

impl Reports {
    pub(super) fn new(pipe: OwnedFd) -> Self {
        Self { pipe, text: Vec::new(), open: true }
    }

    /// The pipe to poll, as long as something may come.
    pub(super) fn pipe(&self) -> Option<&OwnedFd> {
        self.open.then_some(&self.pipe)
    }

    /// Reads what is available. Returns the result once, when the other end is closed.
    pub(super) fn read(&mut self) -> Option<StartReport> {
        let mut piece = [0; 1024];
        match rustix::io::read(&self.pipe, &mut piece) {
            Ok(0) | Err(_) => self.open = false,
            Ok(length) => self.text.extend(&piece[..length]),
        }
        if self.open {
            return None;
        }
        let (pid, failure) = match self.text.iter().position(|byte| *byte == b'\n') {
            Some(end) => (std::str::from_utf8(&self.text[..end]).ok(), &self.text[end + 1..]),
            None => (None, self.text.as_slice()),
        };
        Some(match serde_json::from_slice(failure) {
            Ok(failure) => StartReport::Failed(failure),
            Err(_) => StartReport::Started { pid: pid.and_then(|pid| pid.parse().ok()) },
        })
    }
}

/// Reports the process id, as numbered in that `/proc`.
pub(super) fn report_pid(report: &mut File, proc: &OwnedFd) {
    if let Ok(name) = readlinkat(proc, "self", Vec::new()) {
        let _ = report.write_all(&[name.as_bytes(), b"\n"].concat());
    }
}

pub(super) fn tell_failure(report: &mut File, failure: &StartFailure) {
    if let Ok(text) = serde_json::to_vec(failure) {
        let _ = report.write_all(&text);
    }
}
