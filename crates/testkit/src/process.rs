//! Child processes with deadlines: one that does not end or respond in time is killed, and the test fails.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

/// Long enough for a debug build on a busy machine.
const PROCESS_LIMIT: Duration = Duration::from_secs(60);

/// Like [`Command::output`], with a deadline.
pub trait RunInTime {
    fn output_in_time(&mut self) -> Output;
}

impl RunInTime for Command {
    fn output_in_time(&mut self) -> Output {
        let child = self.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        child.unwrap_or_else(|error| panic!("{self:?} does not run: {error}")).end_in_time()
    }
}

/// Like [`Child::wait`] and [`Child::wait_with_output`], with a deadline.
pub trait EndInTime {
    fn wait_in_time(&mut self) -> ExitStatus;

    fn end_in_time(self) -> Output;
}

impl EndInTime for Child {
    fn wait_in_time(&mut self) -> ExitStatus {
        let began = Instant::now();
        // Closes the input, like `wait` does.
        drop(self.stdin.take());
        loop {
            if let Some(status) = self.try_wait().expect("a child of ours") {
                return status;
            }
            if began.elapsed() > PROCESS_LIMIT {
                let line = std::fs::read(format!("/proc/{}/cmdline", self.id())).unwrap_or_default();
                let line = String::from_utf8_lossy(&line).replace('\0', " ");
                let _ = self.kill();
                panic!("waited {PROCESS_LIMIT:?} for the end of `{line}`");
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    fn end_in_time(mut self) -> Output {
        let (out, err) = (self.stdout.take().map(all_of), self.stderr.take().map(all_of));
        let status = self.wait_in_time();
        let taken = |reading: Option<Receiver<Vec<u8>>>| {
            let read = reading.map(|reading| reading.recv_timeout(PROCESS_LIMIT));
            read.map_or_else(Vec::new, |read| read.expect("the end of what a child said"))
        };
        Output { status, stdout: taken(out), stderr: taken(err) }
    }
}

/// Reads everything on a separate thread.
fn all_of(mut from: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (done, reading) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = from.read_to_end(&mut bytes);
        let _ = done.send(bytes);
    });
    reading
}

/// The lines of a pipe, each with a deadline.
#[derive(Debug)]
pub struct LinesInTime(Receiver<String>);

impl LinesInTime {
    pub fn new(from: impl Read + Send + 'static) -> Self {
        let (line, lines) = mpsc::channel();
        thread::spawn(move || {
            for bytes in BufReader::new(from).split(b'\n').map_while(Result::ok) {
                if line.send(String::from_utf8_lossy(&bytes).into_owned()).is_err() {
                    return;
                }
            }
        });
        Self(lines)
    }
}

impl Iterator for LinesInTime {
    type Item = String;

    /// The next line; `None` at the end.
    fn next(&mut self) -> Option<String> {
        match self.0.recv_timeout(PROCESS_LIMIT) {
            Ok(line) => Some(line),
            Err(mpsc::RecvTimeoutError::Disconnected) => None,
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("waited {PROCESS_LIMIT:?} for a line"),
        }
    }
}

/// Does something that blocks on a thread of its own, and waits for it.
pub fn in_time<T: Send + 'static>(what: &str, blocking: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, waiting) = mpsc::channel();
    thread::spawn(move || {
        let _ = done.send(blocking());
    });
    let outcome = waiting.recv_timeout(PROCESS_LIMIT);
    outcome.unwrap_or_else(|error| panic!("waited up to {PROCESS_LIMIT:?} for {what}: {error}"))
}
