//! The terminal while keys are read one by one. Whatever happens, it is given back as it was.

use std::io::{self, Write};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use crossterm::{cursor, execute, terminal};

static IS_RAW: AtomicBool = AtomicBool::new(false);
static HOOK: Once = Once::new();

/// Raw until this is dropped.
#[derive(Debug)]
pub(crate) struct RawTerminal(());

impl RawTerminal {
    pub(crate) fn enter() -> io::Result<Self> {
        // A panic is told on a terminal that can show it.
        HOOK.call_once(|| {
            let earlier = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                restore();
                earlier(panic);
            }));
        });
        terminal::enable_raw_mode()?;
        IS_RAW.store(true, Ordering::SeqCst);
        let raw = Self(());
        execute!(io::stdout(), EnableBracketedPaste)?;
        Ok(raw)
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        restore();
    }
}

fn restore() {
    if IS_RAW.swap(false, Ordering::SeqCst) {
        // A terminal that is gone needs no care.
        let _ = execute!(io::stdout(), DisableBracketedPaste, cursor::Show);
        let _ = io::stdout().flush();
        let _ = terminal::disable_raw_mode();
    }
}

/// Until the shell lets it go on.
pub(crate) fn stop_process() {
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TSTP);
}
