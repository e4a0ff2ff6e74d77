//! A command as a process: on this machine, or as a client of its environment. Both are read in the same way.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

use engine::NO_EXIT;
use sandbox::{
    CAPTURE_BYTES, Chunk, CommandClock, CommandGuard, Confinement, Exit, Extras, FinishedCommand, Frozen,
    HeadTail, Io, Order, Output, OutputStream, Process, TIMEOUT_CODE,
};
use tokio::time::Instant;

use super::{Blocked, why};
use crate::remote::{Elsewhere, Errand, MarkerFilter, START_LIMIT};

/// How long a client may take to end after its command there.
const END_LIMIT: Duration = Duration::from_secs(2);

/// An approved command, to be started at once.
#[derive(Debug)]
pub(crate) enum Go {
    Here(Box<Here>),
    There(Box<Errand>),
}

/// A command on this machine.
#[derive(Debug)]
pub(crate) struct Here {
    pub(crate) order: Order,
    /// Approved contents, under the paths in the order.
    pub(crate) pinned: Vec<OwnedFd>,
    /// Suspends all sandboxed processes until the command has started.
    pub(crate) frozen: Option<Frozen>,
}

impl Here {
    pub(crate) fn into_parts(self, guard: CommandGuard) -> (Order, Extras) {
        let Self { order, pinned, frozen } = self;
        (order, Extras { guard: Some(guard), pinned, frozen })
    }
}

impl Go {
    pub(crate) fn is_confined(&self) -> bool {
        self.confinement().is_some()
    }

    /// Other environments have no sandbox.
    pub(crate) fn confinement(&self) -> Option<&Confinement> {
        match self {
            Self::Here(here) => here.order.confinement.as_ref(),
            Self::There(_) => None,
        }
    }

    /// The writable roots, if it is sandboxed.
    pub(crate) fn writable(&self) -> &[PathBuf] {
        self.confinement().map_or(&[], |sandbox| &sandbox.writable)
    }
}

/// The output of a command.
#[derive(Debug)]
pub(crate) struct CommandOutlet {
    output: Output,
    far: Option<Far>,
}

/// The connection to a client.
#[derive(Debug)]
struct Far {
    place: Elsewhere,
    /// Standard output, which also carries the markers for start and end.
    gate: MarkerFilter,
    /// Standard error. Before its marker, the output is the client's.
    errors: MarkerFilter,
    process: Process,
    /// Output that arrived together with the start marker.
    ready: VecDeque<Chunk>,
    /// The client was told to end.
    is_cut: bool,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandExit {
    pub(crate) code: i32,
    /// Set if the exit is unknown, because the environment was lost.
    pub(crate) lost: Option<String>,
}

/// Starts it. In another environment, waits until it runs there.
pub(crate) async fn start(go: Go, io: Io, guard: CommandGuard) -> Result<(Process, CommandOutlet), Blocked> {
    match go {
        Go::Here(here) => {
            let (order, extras) = here.into_parts(guard);
            let spawned = Process::spawn_with(order, io, extras).await;
            let (process, output) = spawned.map_err(|error| Blocked::Failed(why(&error)))?;
            Ok((process, CommandOutlet { output, far: None }))
        }
        Go::There(errand) => start_there(*errand, guard).await.map_err(Blocked::Failed),
    }
}

async fn start_there(errand: Errand, guard: CommandGuard) -> Result<(Process, CommandOutlet), String> {
    let extras = Extras { guard: Some(guard), ..Extras::default() };
    let spawned = Process::spawn_with(errand.order.clone(), Io::Pipe, extras).await;
    let (process, output) = spawned.map_err(|error| errand.place.unreachable(why(&error)))?;
    let far = Far {
        place: errand.place.clone(),
        gate: MarkerFilter::new(&errand.marker),
        errors: MarkerFilter::new(&errand.marker),
        process: process.clone(),
        ready: VecDeque::new(),
        is_cut: false,
    };
    let mut outlet = CommandOutlet { output, far: Some(far) };
    let begin = async {
        // A client that ends before it has read everything is handled below.
        let (_, begun) = tokio::join!(process.write(errand.script.as_bytes()), outlet.begin());
        begun
    };
    let Ok(begun) = tokio::time::timeout(START_LIMIT, begin).await else {
        let seconds = START_LIMIT.as_secs();
        return Err(errand.place.unreachable(format_args!("it did not answer within {seconds} seconds")));
    };
    match begun {
        None => Ok((process, outlet)),
        Some(RemoteStartError::Refused(refusal)) => Err(errand.refused(&refusal)),
        Some(RemoteStartError::Ended(said)) => {
            let code = process.wait().await.code;
            let said = said.trim();
            Err(errand.place.unreachable(match said {
                "" => format!("its client ended with code {code}"),
                said => format!("its client ended with code {code}: {said}"),
            }))
        }
    }
}

/// Why a script did not start.
enum RemoteStartError {
    Refused(String),
    Ended(String),
}

impl Far {
    /// The part of a chunk that is output of the command; may be empty.
    fn output(&mut self, chunk: &Chunk) -> Chunk {
        let gate = match chunk.stream {
            OutputStream::Stdout => &mut self.gate,
            OutputStream::Stderr => &mut self.errors,
        };
        Chunk { bytes: gate.push(&chunk.bytes).into(), stream: chunk.stream }
    }

    /// Output that was held back as a possible marker, at the end of the stream.
    fn rest(&mut self) -> impl Iterator<Item = Chunk> + use<> {
        let rest = [(OutputStream::Stdout, self.gate.finish()), (OutputStream::Stderr, self.errors.finish())];
        let rest = rest.map(|(stream, bytes)| Chunk { stream, bytes: bytes.into() });
        rest.into_iter().filter(|chunk| !chunk.bytes.is_empty())
    }
}

impl CommandOutlet {
    pub(crate) fn set_drain_limit(&mut self, limit: Duration) {
        self.output.set_drain_limit(limit);
    }

    /// `None` when it has started.
    async fn begin(&mut self) -> Option<RemoteStartError> {
        let far = self.far.as_mut()?;
        while !far.gate.has_begun() {
            let Some(chunk) = self.output.next().await else {
                far.rest().for_each(drop);
                let said = [far.errors.noise(), far.gate.noise()].map(String::from_utf8_lossy).concat();
                return Some(RemoteStartError::Ended(said));
            };
            let chunk = far.output(&chunk);
            far.ready.extend((!chunk.bytes.is_empty()).then_some(chunk));
            if let Some(refusal) = far.gate.refusal() {
                return Some(RemoteStartError::Refused(refusal.to_owned()));
            }
        }
        None
    }

    /// `None` at the end. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Option<Chunk> {
        let Some(far) = &mut self.far else { return self.output.next().await };
        loop {
            if let Some(chunk) = far.ready.pop_front() {
                return Some(chunk);
            }
            let next = self.output.next();
            let next = match far.gate.code() {
                Some(_) if !far.is_cut => match tokio::time::timeout(END_LIMIT, next).await {
                    Ok(next) => next,
                    Err(_) => {
                        far.is_cut = true;
                        far.process.kill();
                        continue;
                    }
                },
                _ => next.await,
            };
            let Some(chunk) = next else {
                let rest = far.rest();
                far.ready.extend(rest);
                return far.ready.pop_front();
            };
            let chunk = far.output(&chunk);
            if !chunk.bytes.is_empty() {
                return Some(chunk);
            }
        }
    }

    /// For a process with this exit, after all its output was read.
    pub(crate) fn end(&self, exit: Exit) -> CommandExit {
        let Some(far) = &self.far else { return CommandExit { code: exit.code, lost: None } };
        match far.gate.code() {
            Some(code) => CommandExit { code, lost: None },
            None => {
                let why = format_args!("its client ended with code {} while the command ran", exit.code);
                CommandExit { code: NO_EXIT, lost: Some(far.place.lost(why)) }
            }
        }
    }
}

/// Runs a command in another environment to its end, like `sandbox::run_with` here. Dropping the future kills it.
pub(crate) async fn run_there(
    errand: Errand,
    (timeout, clock): (Duration, &CommandClock),
    guard: CommandGuard,
    mut on_chunk: impl FnMut(&Chunk),
) -> Result<(FinishedCommand, Option<String>), Blocked> {
    let (process, mut outlet) = start_there(errand, guard).await.map_err(Blocked::Failed)?;
    let began = Instant::now();
    let mut stdout = HeadTail::new(CAPTURE_BYTES / 2);
    let mut stderr = stdout.clone();
    let watch_the_clock = async {
        if clock.timeout(timeout, process.wait()).await.is_some() {
            return false;
        }
        process.kill();
        true
    };
    let read = async {
        while let Some(chunk) = outlet.next().await {
            match chunk.stream {
                OutputStream::Stdout => stdout.push(&chunk.bytes),
                OutputStream::Stderr => stderr.push(&chunk.bytes),
            }
            on_chunk(&chunk);
        }
    };
    let (timed_out, ()) = tokio::join!(watch_the_clock, read);
    let end = outlet.end(process.wait().await);
    let (code, lost) = match timed_out {
        true => (TIMEOUT_CODE, None),
        false => (end.code, end.lost),
    };
    let exit = Exit { code, signal: None };
    Ok((FinishedCommand { exit, stdout, stderr, timed_out, duration: began.elapsed() }, lost))
}
