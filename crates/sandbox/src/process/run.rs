//! Runs one command to its end and collects its output.

use std::time::Duration;

use tokio::time::Instant;

use super::clock::CommandClock;
use super::error::SpawnError;
use super::exit::Exit;
use super::handle::{Extras, Process};
use super::head_tail::HeadTail;
use super::output::{Chunk, DRAIN_LIMIT, Output, OutputStream};
use super::stdio::Io;
use crate::order::Order;

/// Limit of the kept output and errors together.
pub const CAPTURE_BYTES: usize = 1024 * 1024;
/// The exit code of a command after a timeout.
pub const TIMEOUT_CODE: i32 = 124;

#[derive(Debug)]
pub struct RunOptions {
    /// `None`: as long as it takes.
    pub timeout: Option<Duration>,
    /// The clock for the timeout.
    pub clock: CommandClock,
    /// For output and errors together.
    pub cap_bytes: usize,
    /// Written and then closed. `None`: no input.
    pub stdin: Option<Vec<u8>>,
    /// How long to wait, after the end, for other processes that have the output open.
    pub drain_limit: Duration,
    pub extras: Extras,
}

impl Default for RunOptions {
    fn default() -> Self {
        let clock = CommandClock::default();
        Self {
            timeout: None,
            clock,
            cap_bytes: CAPTURE_BYTES,
            stdin: None,
            drain_limit: DRAIN_LIMIT,
            extras: Extras::default(),
        }
    }
}

/// A command that has ended.
#[derive(Debug, Clone)]
pub struct FinishedCommand {
    /// [`TIMEOUT_CODE`] after a timeout.
    pub exit: Exit,
    pub stdout: HeadTail,
    pub stderr: HeadTail,
    pub timed_out: bool,
    pub duration: Duration,
}

/// Runs a command to its end. Dropping the future kills it.
pub async fn run(order: Order, options: RunOptions) -> Result<FinishedCommand, SpawnError> {
    run_with(order, options, |_| {}).await
}

/// Like [`run`], and reports every piece of output as it arrives.
pub async fn run_with(
    order: Order,
    options: RunOptions,
    mut on_chunk: impl FnMut(&Chunk),
) -> Result<FinishedCommand, SpawnError> {
    let RunOptions { timeout, clock, cap_bytes, stdin, drain_limit, extras } = options;
    let began = Instant::now();
    let io = if stdin.is_some() { Io::Pipe } else { Io::Null };
    let (process, mut output) = Process::spawn_with(order, io, extras).await?;
    output.set_drain_limit(drain_limit);
    let mut capture = Capture::new(cap_bytes);
    let feed = async {
        if let Some(stdin) = stdin {
            // A command need not read its input.
            let _ = process.write(&stdin).await;
            let _ = process.close_stdin().await;
        }
    };
    let watch_the_clock = async {
        let Some(timeout) = timeout else { return false };
        // From the start of the command, and only while it runs.
        if clock.timeout(timeout, process.wait()).await.is_some() {
            return false;
        }
        process.kill();
        true
    };
    let read = capture.read(&mut output, &mut on_chunk);
    let ((), timed_out, ()) = tokio::join!(feed, watch_the_clock, read);
    let exit = process.wait().await;
    let exit = if timed_out { Exit { code: TIMEOUT_CODE, ..exit } } else { exit };
    let (stdout, stderr) = capture.share();
    Ok(FinishedCommand { exit, stdout, stderr, timed_out, duration: began.elapsed() })
}

struct Capture {
    cap: usize,
    stdout: HeadTail,
    stderr: HeadTail,
}

impl Capture {
    fn new(cap: usize) -> Self {
        Self { cap, stdout: HeadTail::new(cap), stderr: HeadTail::new(cap) }
    }

    async fn read(&mut self, output: &mut Output, on_chunk: &mut impl FnMut(&Chunk)) {
        while let Some(chunk) = output.next().await {
            match chunk.stream {
                OutputStream::Stdout => self.stdout.push(&chunk.bytes),
                OutputStream::Stderr => self.stderr.push(&chunk.bytes),
            }
            on_chunk(&chunk);
        }
    }

    fn share(mut self) -> (HeadTail, HeadTail) {
        let (stdout, stderr) = shares(self.cap, self.stdout.kept_bytes(), self.stderr.kept_bytes());
        self.stdout.shrink(stdout);
        self.stderr.shrink(stderr);
        (self.stdout, self.stderr)
    }
}

/// The limits of both streams: a third for the output and two thirds for the errors, which say what went wrong; what
/// one does not need goes to the other.
fn shares(cap: usize, stdout: usize, stderr: usize) -> (usize, usize) {
    let third = stdout.min(cap / 3);
    let stderr = stderr.min(cap - third);
    (stdout.min(cap - stderr), stderr)
}

#[cfg(test)]
mod tests {
    use super::shares;

    #[test]
    fn room_is_shared_by_need() {
        assert_eq!(shares(90, 10, 20), (10, 20));
        assert_eq!(shares(90, 500, 500), (30, 60));
        assert_eq!(shares(90, 500, 20), (70, 20));
        assert_eq!(shares(90, 10, 500), (10, 80));
        assert_eq!(shares(90, 500, 0), (90, 0));
        assert_eq!(shares(0, 5, 5), (0, 0));
    }
}
