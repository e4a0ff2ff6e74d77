//! The terminal while keys are read one by one. Whatever happens, it is given back as it was.

use std::io::{self, Write};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste, KeyCode};
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

/// The most bytes that a terminal keeps for a program.
const MOST_AHEAD: u64 = 4_096;

/// Keys that were pressed before they were read one by one. The terminal kept them as lines, in which Enter is a line
/// break.
pub(crate) fn typed_ahead() -> Vec<KeyCode> {
    let stdin = io::stdin();
    let waiting = rustix::io::ioctl_fionread(&stdin).unwrap_or(0).min(MOST_AHEAD);
    let mut bytes = vec![0; usize::try_from(waiting).unwrap_or_default()];
    let read = match bytes.is_empty() {
        true => 0,
        false => rustix::io::read(&stdin, &mut bytes).unwrap_or(0),
    };
    keys_of(&bytes[..read])
}

/// Letters and Enter. Other keys, which come as sequences, are left out.
fn keys_of(bytes: &[u8]) -> Vec<KeyCode> {
    let text = String::from_utf8_lossy(bytes);
    let mut letters = text.chars().peekable();
    let mut keys = Vec::new();
    while let Some(letter) = letters.next() {
        match letter {
            '\n' | '\r' => keys.push(KeyCode::Enter),
            '\u{1b}' if matches!(letters.peek(), Some('[' | 'O')) => {
                letters.next();
                letters.find(|letter| letter.is_ascii_alphabetic() || *letter == '~');
            }
            letter if letter.is_control() => {}
            letter => keys.push(KeyCode::Char(letter)),
        }
    }
    keys
}

/// Until the shell lets it go on.
pub(crate) fn stop_process() {
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TSTP);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_was_typed_early_is_its_letters_and_enter() {
        let typed = |text: &str| {
            let keys = keys_of(text.as_bytes()).into_iter();
            keys.map(|key| key.as_char().unwrap_or(if key == KeyCode::Enter { '|' } else { '?' }))
                .collect::<String>()
        };
        assert_eq!(typed("say grüß\nyes\r"), "say grüß|yes|");
        assert_eq!(typed("a\u{1b}[Ab\u{1b}OPc\u{1b}[3~d\u{1b}\te\u{7f}"), "abcde");
        assert_eq!(typed("end\u{1b}["), "end");
    }
}
