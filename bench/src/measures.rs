//! The measures: each does its work on one server once and returns samples, or an error if the work was not done.

mod concurrent;
mod delegated_flood;
mod delegated_record;
mod delegated_stream;
mod delegated_turn;
mod exec;
mod initialize;
mod list;
mod long_thread;
mod output;
pub(crate) mod prompt;
mod resume;
mod stream;
mod threads;
mod turn;
mod wire_stream;
mod wire_turn;

use std::sync::Arc;

use anyhow::Result;
use clap::ValueEnum;

use crate::command::ServerCommand;
use crate::home::SandboxMode;
use crate::metrics::Sample;
use crate::session::Bench;
use crate::sse::{MockWire, Reply};
use crate::store::Store;

/// All measures, in the order in which they run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Measure {
    /// Spawn to the answer to initialize, in a fresh and in a used home.
    Initialize,
    /// Resident memory at rest and with threads started; thread/start.
    Threads,
    /// A turn without tools, minus the time inside the mock model.
    Turn,
    /// A turn with one command, minus the time inside the mock model.
    Exec,
    /// The same in the sandbox that lets a command write in the workspace only.
    SandboxedExec,
    /// One turn of very many deltas.
    Stream,
    /// thread/list over many stored threads.
    List,
    /// thread/resume of a long thread.
    Resume,
    /// Many threads that stream at once.
    Concurrent,
    /// A turn whose command writes very much.
    Output,
    /// A turn without tools whose model request the host carries, and a direct one beside it.
    DelegatedTurn,
    /// One turn of very many deltas that the host hands over.
    DelegatedStream,
    /// Time added to a turn when the host keeps the record and the server waits for acknowledgements.
    DelegatedRecord,
    /// A host that sends without pause and reads nothing.
    DelegatedUnread,
    /// A host that sends without pause and acknowledges nothing.
    DelegatedUnacknowledged,
    /// Turns without tools over each wire.
    WireTurn,
    /// One turn of very many deltas over each wire.
    WireStream,
    /// Turns in a thread that grows, over each wire.
    LongThread,
    /// Size of the native executable.
    Size,
    /// A request with a long history, made by the engine this program is built with.
    Prompt,
}

/// A server under test and what it keeps from one repetition to the next.
#[derive(Debug)]
pub(crate) struct Subject<'run> {
    pub(crate) command: &'run ServerCommand,
    pub(crate) store: Option<Store>,
    pub(crate) binary_mb: f64,
    pub(crate) delegates: bool,
    /// Whether it asks models by Chat and Messages, too.
    pub(crate) speaks_all_wires: bool,
}

/// An ability that a measure needs and not every server has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ability {
    Delegation,
    AllWires,
}

impl Measure {
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// The size of a file is the same every time.
    pub(crate) fn repetitions(self, asked: usize) -> usize {
        if self == Self::Size { 1 } else { asked }
    }

    /// Whether this is about this program's own engine and not about a server.
    pub(crate) fn is_in_process(self) -> bool {
        self == Self::Prompt
    }

    /// The ability that only some servers have and this needs. Such a measure compares a server with itself.
    pub(crate) fn needs(self) -> Option<Ability> {
        match self {
            Self::DelegatedTurn
            | Self::DelegatedStream
            | Self::DelegatedRecord
            | Self::DelegatedUnread
            | Self::DelegatedUnacknowledged => Some(Ability::Delegation),
            Self::WireTurn | Self::WireStream | Self::LongThread => Some(Ability::AllWires),
            _ => None,
        }
    }

    pub(crate) fn run(self, bench: &Bench<'_>, subject: &mut Subject<'_>) -> Result<Vec<Sample>> {
        match self {
            Self::Initialize => initialize::run(bench, subject.command),
            Self::Threads => threads::run(bench, subject.command),
            Self::Turn => turn::run(bench, subject.command),
            Self::Exec => exec::run(bench, subject.command, SandboxMode::FullAccess),
            Self::SandboxedExec => exec::run(bench, subject.command, SandboxMode::WorkspaceWrite),
            Self::Stream => stream::run(bench, subject.command),
            Self::List => list::run(bench, subject.command, subject.stored(bench)?),
            Self::Resume => resume::run(bench, subject.command, subject.stored(bench)?),
            Self::Concurrent => concurrent::run(bench, subject.command),
            Self::Output => output::run(bench, subject.command),
            Self::DelegatedTurn => delegated_turn::run(bench, subject.command),
            Self::DelegatedStream => delegated_stream::run(bench, subject.command),
            Self::DelegatedRecord => delegated_record::run(bench, subject.command),
            Self::DelegatedUnread => delegated_flood::unread(bench, subject.command),
            Self::DelegatedUnacknowledged => delegated_flood::unacknowledged(bench, subject.command),
            Self::WireTurn => wire_turn::run(bench, subject.command),
            Self::WireStream => wire_stream::run(bench, subject.command),
            Self::LongThread => long_thread::run(bench, subject.command),
            Self::Size => Ok(vec![crate::metrics::BINARY.sample(subject.binary_mb)]),
            Self::Prompt => prompt::run(&bench.workload),
        }
    }
}

/// Whether a turn over each wire comes to its end.
pub(crate) fn speaks_all_wires(bench: &Bench<'_>, command: &ServerCommand) -> bool {
    let turns = || -> Result<()> {
        let home = bench.home_with_wires()?;
        let mut session = bench.start(command, &home)?;
        for wire in MockWire::ALL {
            let thread = session.start_thread_on(wire)?;
            bench.turn(&mut session, &thread, "hi", &Arc::new(Reply::said(wire, "ok")))?;
        }
        session.client.close();
        Ok(())
    };
    turns().is_ok()
}

impl Ability {
    /// Said of a server that has it not.
    pub(crate) fn absence(self) -> &'static str {
        match self {
            Self::Delegation => "it does not delegate",
            Self::AllWires => "it does not ask models by every wire",
        }
    }
}

impl Subject<'_> {
    pub(crate) fn has(&self, ability: Ability) -> bool {
        match ability {
            Ability::Delegation => self.delegates,
            Ability::AllWires => self.speaks_all_wires,
        }
    }

    /// Built when it is first needed.
    fn stored(&mut self, bench: &Bench<'_>) -> Result<&Store> {
        let store = match self.store.take() {
            Some(store) => store,
            None => Store::build(bench, self.command)?,
        };
        Ok(self.store.insert(store))
    }
}
