//! A command on this process's own input and output.

use std::io::{self, IsTerminal};

use anyhow::{Context, Result};
use sandbox::{Chunk, Exit, Io, Order, Output, OutputStream, Process};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::raw_mode::{self, RawMode};

/// As much as a pipe holds.
const PIECE: usize = 64 * 1024;
/// The end of a program whose output nobody reads.
const BROKEN_PIPE: u8 = 128 + 13;

/// Runs the command to its end. Its exit code as a shell would give it.
pub(super) async fn run(order: Order) -> Result<u8> {
    let at_terminal = io::stdin().is_terminal() && io::stdout().is_terminal() && io::stderr().is_terminal();
    let io = if at_terminal { Io::Terminal(raw_mode::size()) } else { Io::Pipe };
    let mut signals = TerminalSignals::new()?;
    let (process, mut output) = Process::spawn(order, io).await?;
    let _raw = at_terminal.then(RawMode::enter).transpose().context("the terminal cannot be used")?;
    let feeding = tokio::spawn(feed(process.clone()));
    let mut interrupts = 0;
    let passed = {
        let passing = pass_on(&mut output);
        tokio::pin!(passing);
        loop {
            tokio::select! {
                passed = &mut passing => break passed,
                signal = signals.next() => match signal {
                    TerminalSignal::Resized => drop(process.resize(raw_mode::size())),
                    TerminalSignal::Interrupt if interrupts == 0 => {
                        interrupts += 1;
                        // One that has just ended cannot be told, and need not be.
                        let _ = process.interrupt().await;
                    }
                    TerminalSignal::Interrupt | TerminalSignal::End => process.kill(),
                },
            }
        }
    };
    feeding.abort();
    if passed.is_err() {
        // Nobody reads what it writes, as behind `| head`.
        process.kill();
        process.wait().await;
        return Ok(BROKEN_PIPE);
    }
    Ok(code(process.wait().await))
}

fn code(exit: Exit) -> u8 {
    u8::try_from(exit.code & 0xff).unwrap_or(u8::MAX)
}

/// Everything that can be read goes to the command, and then the end of it.
async fn feed(process: Process) {
    let mut stdin = tokio::io::stdin();
    let mut piece = vec![0; PIECE];
    loop {
        match stdin.read(&mut piece).await {
            Ok(0) | Err(_) => break,
            Ok(count) => {
                // A command that no longer reads is no error.
                if process.write(&piece[..count]).await.is_err() {
                    return;
                }
            }
        }
    }
    let _ = process.close_stdin().await;
}

async fn pass_on(output: &mut Output) -> io::Result<()> {
    let (mut stdout, mut stderr) = (tokio::io::stdout(), tokio::io::stderr());
    while let Some(Chunk { stream, bytes }) = output.next().await {
        match stream {
            OutputStream::Stdout => {
                stdout.write_all(&bytes).await?;
                stdout.flush().await?;
            }
            OutputStream::Stderr => {
                stderr.write_all(&bytes).await?;
                stderr.flush().await?;
            }
        }
    }
    Ok(())
}

enum TerminalSignal {
    Interrupt,
    End,
    Resized,
}

struct TerminalSignals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
    resized: Signal,
}

impl TerminalSignals {
    fn new() -> Result<Self> {
        let listen = |kind| signal(kind).context("signals cannot be received");
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hangup: listen(SignalKind::hangup())?,
            resized: listen(SignalKind::window_change())?,
        })
    }

    async fn next(&mut self) -> TerminalSignal {
        tokio::select! {
            _ = self.interrupt.recv() => TerminalSignal::Interrupt,
            _ = self.terminate.recv() => TerminalSignal::End,
            _ = self.hangup.recv() => TerminalSignal::End,
            _ = self.resized.recv() => TerminalSignal::Resized,
        }
    }
}
