//! A pseudo-terminal: the command's end and the server's.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// Control-C: interrupts the foreground program, unless it handles the key itself.
pub(crate) const INTERRUPT_KEY: u8 = 0x03;
/// Control-D: at the start of a line, the end of the input.
pub(crate) const END_KEY: u8 = 0x04;

/// In characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalSize {
    pub rows: u16,
    pub cols: u16,
}

impl Default for TerminalSize {
    fn default() -> Self {
        Self { rows: 24, cols: 80 }
    }
}

pub(crate) struct Terminal {
    pub(crate) ours: OwnedFd,
    pub(crate) theirs: OwnedFd,
}

impl Terminal {
    pub(crate) fn open(size: TerminalSize) -> io::Result<Self> {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&ours)?;
        unlockpt(&ours)?;
        // It must not become the server's controlling terminal.
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let theirs = rustix::fs::open(ptsname(&ours, Vec::new())?, flags, Mode::empty())?;
        resize(&ours, size)?;
        Ok(Self { ours, theirs })
    }
}

/// The system notifies the programs on the terminal.
pub(crate) fn resize(terminal: impl AsFd, size: TerminalSize) -> io::Result<()> {
    let size = Winsize { ws_row: size.rows, ws_col: size.cols, ws_xpixel: 0, ws_ypixel: 0 };
    Ok(tcsetwinsize(terminal, size)?)
}
