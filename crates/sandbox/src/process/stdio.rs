//! The three standard streams of a command, seen from both sides.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};
use rustix::pipe::{PipeFlags, pipe_with};

use super::input::CommandInput;
use super::output::Source;
use super::stream::PipeStream;
use super::terminal::{Terminal, TerminalSize};

/// The files or the terminal that a command reads from and writes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Io {
    /// Nothing to read; output and errors are apart.
    Null,
    /// Reads what is written to it; output and errors are apart.
    Pipe,
    /// One terminal for everything. All that comes out of it counts as output.
    Terminal(TerminalSize),
}

/// The ends that the command gets as its descriptors 0, 1 and 2.
pub(crate) struct Theirs {
    pub(crate) stdin: OwnedFd,
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
}

/// The ends that the server keeps.
pub(crate) struct Ours {
    pub(crate) input: CommandInput,
    pub(crate) output: Source,
}

pub(crate) fn open(io: Io) -> io::Result<(Ours, Theirs)> {
    let (input, stdin) = match io {
        Io::Terminal(size) => return open_terminal(size),
        Io::Null => (
            CommandInput::none(),
            rustix::fs::open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?,
        ),
        Io::Pipe => {
            let (theirs, ours) = pipe()?;
            (CommandInput::pipe(PipeStream::new(ours)?), theirs)
        }
    };
    let (our_stdout, stdout) = pipe()?;
    let (our_stderr, stderr) = pipe()?;
    let output = Source::pipes(PipeStream::new(our_stdout)?, PipeStream::new(our_stderr)?);
    Ok((Ours { input, output }, Theirs { stdin, stdout, stderr }))
}

fn open_terminal(size: TerminalSize) -> io::Result<(Ours, Theirs)> {
    let Terminal { ours, theirs } = Terminal::open(size)?;
    let terminal = Arc::new(PipeStream::new(ours)?);
    let ours = Ours { input: CommandInput::terminal(terminal.clone()), output: Source::terminal(terminal) };
    let theirs = Theirs { stdin: theirs.try_clone()?, stdout: theirs.try_clone()?, stderr: theirs };
    Ok((ours, theirs))
}

/// The reading end first. Neither is inherited by anything that another thread starts meanwhile.
pub(crate) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(pipe_with(PipeFlags::CLOEXEC)?)
}
