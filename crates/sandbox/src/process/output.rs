//! The output of a command, passed on as it arrives. Nothing is read ahead, so a slow reader makes the command wait.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::watch;
use tokio::time::Instant;

use super::exit::Exit;
use super::stream::PipeStream;

/// How long after a command's end to wait for other processes that have its output open.
pub const DRAIN_LIMIT: Duration = Duration::from_secs(2);
/// The usual capacity of a pipe, so one read empties it.
const READ_BYTES: usize = 64 * 1024;
/// The maximum capacity that a command can give a pipe.
const MAX_LEFTOVER_BYTES: usize = 1024 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OutputStream {
    Stdout,
    Stderr,
}

/// Some output of a command, split anywhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    pub stream: OutputStream,
    pub bytes: Bytes,
}

/// The output of one command. Dropping it breaks the command's pipes.
#[derive(Debug)]
pub struct Output {
    source: Source,
    end: watch::Receiver<Option<Exit>>,
    drain_limit: Duration,
    /// Set when the command has ended.
    deadline: Option<Instant>,
    buffer: Vec<u8>,
    /// The output that was pending at the deadline.
    leftover: VecDeque<Chunk>,
}

impl Output {
    pub(crate) fn new(source: Source, end: watch::Receiver<Option<Exit>>) -> Self {
        let (buffer, leftover) = (vec![0; READ_BYTES], VecDeque::new());
        Self { source, end, drain_limit: DRAIN_LIMIT, deadline: None, buffer, leftover }
    }

    /// How long to wait, after the command's end, for other processes that have its output open.
    pub fn set_drain_limit(&mut self, limit: Duration) {
        self.drain_limit = limit;
    }

    /// `None` when the command has ended and all its output was returned, or the drain limit is over. Cancel-safe.
    pub async fn next(&mut self) -> Option<Chunk> {
        loop {
            if let Some(chunk) = self.leftover.pop_front() {
                return Some(chunk);
            }
            if self.source.is_at_end() && self.deadline.is_some() {
                return None;
            }
            match wait(&self.source, &mut self.end, self.deadline).await {
                OutputEvent::Chunk(stream, Some(mut ready)) => match ready.read(&mut self.buffer) {
                    None => {}
                    Some(Ok(count)) if count > 0 => {
                        let bytes = Bytes::copy_from_slice(&self.buffer[..count]);
                        return Some(Chunk { stream, bytes });
                    }
                    Some(_) => self.source.close(stream),
                },
                OutputEvent::Chunk(stream, None) => self.source.close(stream),
                OutputEvent::Ended => self.deadline = Some(Instant::now() + self.drain_limit),
                OutputEvent::TimeIsOver => self.take_leftover(),
            }
        }
    }

    /// A slow reader still gets what the command wrote before its end; another process that keeps writing cannot
    /// prolong this.
    fn take_leftover(&mut self) {
        for stream in [OutputStream::Stdout, OutputStream::Stderr] {
            let mut taken = 0;
            while let Some(source) = self.source.get(stream) {
                match source.read_now(&mut self.buffer) {
                    Ok(count) if count > 0 && taken < MAX_LEFTOVER_BYTES => {
                        let bytes = Bytes::copy_from_slice(&self.buffer[..count]);
                        self.leftover.push_back(Chunk { stream, bytes });
                        taken += count;
                    }
                    _ => self.source.close(stream),
                }
            }
        }
    }
}

enum OutputEvent<'a> {
    /// `None` if it cannot be read any more.
    Chunk(OutputStream, Option<super::stream::Readable<'a>>),
    Ended,
    TimeIsOver,
}

async fn wait<'a>(
    source: &'a Source,
    end: &mut watch::Receiver<Option<Exit>>,
    deadline: Option<Instant>,
) -> OutputEvent<'a> {
    let readable = async |stream| match source.get(stream) {
        Some(source) => source.readable().await.ok(),
        None => std::future::pending().await,
    };
    let over = async {
        match deadline {
            Some(deadline) => tokio::time::sleep_until(deadline).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        ready = readable(OutputStream::Stdout) => OutputEvent::Chunk(OutputStream::Stdout, ready),
        ready = readable(OutputStream::Stderr) => OutputEvent::Chunk(OutputStream::Stderr, ready),
        _ = end.wait_for(Option::is_some), if deadline.is_none() => OutputEvent::Ended,
        () = over => OutputEvent::TimeIsOver,
    }
}

/// The pipes or terminal; each is dropped at its end.
#[derive(Debug)]
pub(crate) struct Source {
    stdout: Option<Arc<PipeStream>>,
    stderr: Option<Arc<PipeStream>>,
}

impl Source {
    pub(crate) fn pipes(stdout: PipeStream, stderr: PipeStream) -> Self {
        Self { stdout: Some(Arc::new(stdout)), stderr: Some(Arc::new(stderr)) }
    }

    pub(crate) fn terminal(terminal: Arc<PipeStream>) -> Self {
        Self { stdout: Some(terminal), stderr: None }
    }

    fn get(&self, stream: OutputStream) -> Option<&PipeStream> {
        match stream {
            OutputStream::Stdout => self.stdout.as_deref(),
            OutputStream::Stderr => self.stderr.as_deref(),
        }
    }

    fn close(&mut self, stream: OutputStream) {
        match stream {
            OutputStream::Stdout => self.stdout = None,
            OutputStream::Stderr => self.stderr = None,
        }
    }

    fn is_at_end(&self) -> bool {
        self.stdout.is_none() && self.stderr.is_none()
    }
}
