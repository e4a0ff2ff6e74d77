//! The user's terminal while another terminal is shown on it: every key goes through as it is.

use std::io;

use rustix::stdio::stdin;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use sandbox::TerminalSize;

/// Keys are passed on untouched until this is dropped.
#[derive(Debug)]
pub(super) struct RawMode {
    before: Termios,
}

impl RawMode {
    pub(super) fn enter() -> io::Result<Self> {
        let before = tcgetattr(stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(stdin(), OptionalActions::Flush, &raw)?;
        Ok(Self { before })
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        // A terminal that is gone needs no care.
        let _ = tcsetattr(stdin(), OptionalActions::Drain, &self.before);
    }
}

/// Of the user's terminal.
pub(super) fn size() -> TerminalSize {
    match tcgetwinsize(stdin()) {
        Ok(size) if size.ws_row > 0 && size.ws_col > 0 => {
            TerminalSize { rows: size.ws_row, cols: size.ws_col }
        }
        _ => TerminalSize::default(),
    }
}
