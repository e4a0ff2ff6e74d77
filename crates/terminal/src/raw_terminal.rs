//! The terminal while keys are read one by one. Whatever happens, it is given back as it was.

use std::io::{self, Write};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste, KeyCode, KeyEvent, KeyModifiers};
use crossterm::{cursor, execute, terminal};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

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
/// How long the rest of a key may take whose beginning has come.
const REST_OF_KEY: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// Keys that were pressed before they were read one by one. The terminal kept them as lines, in which Enter is a line
/// break.
pub(crate) fn typed_ahead() -> Vec<KeyEvent> {
    let stdin = io::stdin();
    let mut bytes = Vec::new();
    loop {
        let waiting = rustix::io::ioctl_fionread(&stdin).unwrap_or(0).min(MOST_AHEAD);
        let mut more = vec![0; usize::try_from(waiting).unwrap_or_default()];
        let read = match more.is_empty() {
            true => 0,
            false => rustix::io::read(&stdin, &mut more).unwrap_or(0),
        };
        bytes.extend_from_slice(&more[..read]);
        let (keys, is_whole) = keys_of(&bytes);
        let mut rest = [PollFd::new(&stdin, PollFlags::IN)];
        if is_whole || !poll(&mut rest, Some(&REST_OF_KEY)).is_ok_and(|ready| ready > 0) {
            return keys;
        }
    }
}

/// The keys, and whether the last one is whole.
fn keys_of(bytes: &[u8]) -> (Vec<KeyEvent>, bool) {
    let cut_letter = std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none());
    let text = String::from_utf8_lossy(bytes);
    let mut letters = text.chars().peekable();
    let mut keys = Vec::new();
    let mut is_whole = !cut_letter;
    while let Some(letter) = letters.next() {
        if letter != '\u{1b}' {
            keys.push(plain_key(letter));
            continue;
        }
        let Some(next) = letters.next() else {
            keys.push(KeyCode::Esc.into());
            is_whole = false;
            break;
        };
        if !matches!(next, '[' | 'O') {
            keys.push(KeyEvent { modifiers: KeyModifiers::ALT, ..plain_key(next) });
            continue;
        }
        let mut sequence = String::new();
        let is_end = |letter: char| letter.is_ascii_alphabetic() || letter == '~';
        while let Some(letter) = letters.next_if(|_| !sequence.ends_with(is_end)) {
            sequence.push(letter);
        }
        is_whole &= sequence.ends_with(is_end);
        keys.extend(named_key(&sequence).map(KeyEvent::from));
    }
    (keys, is_whole)
}

fn plain_key(letter: char) -> KeyEvent {
    match letter {
        '\n' | '\r' => KeyCode::Enter.into(),
        '\t' => KeyCode::Tab.into(),
        '\u{7f}' | '\u{8}' => KeyCode::Backspace.into(),
        // Ctrl and a letter.
        '\u{1}'..='\u{1a}' => {
            let letter = char::from(b'a' - 1 + letter as u8);
            KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL)
        }
        letter => KeyCode::Char(letter).into(),
    }
}

/// The key of a sequence behind `ESC [` or `ESC O`. None for one that means nothing here.
fn named_key(sequence: &str) -> Option<KeyCode> {
    Some(match sequence {
        "A" => KeyCode::Up,
        "B" => KeyCode::Down,
        "C" => KeyCode::Right,
        "D" => KeyCode::Left,
        "H" | "1~" | "7~" => KeyCode::Home,
        "F" | "4~" | "8~" => KeyCode::End,
        "3~" => KeyCode::Delete,
        _ => return None,
    })
}

/// Until the shell lets it go on.
pub(crate) fn stop_process() {
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TSTP);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(text: &[u8]) -> (String, bool) {
        let (keys, is_whole) = keys_of(text);
        let shown = |key: &KeyEvent| match (key.code, key.modifiers) {
            (KeyCode::Char(letter), KeyModifiers::NONE) => letter.to_string(),
            (KeyCode::Char(letter), modifiers) => format!("<{modifiers}-{letter}>"),
            (code, _) => format!("<{code}>"),
        };
        (keys.iter().map(shown).collect(), is_whole)
    }

    #[test]
    fn keys_that_were_pressed_early_are_not_lost() {
        let whole = |text: &str| (text.to_owned(), true);
        assert_eq!(typed("say grüß\nyes\r".as_bytes()), whole("say grüß<Enter>yes<Enter>"));
        assert_eq!(typed(b"\x1b[A\x1bOBx\x1b[3~\x7f"), whole("<Up><Down>x<Del><Backspace>"));
        assert_eq!(typed(b"\x15\x03\t\x1bb"), whole("<Control-u><Control-c><Tab><Alt-b>"));
        assert_eq!(typed(b"a\x1b[200~b\x1bOPc"), whole("abc"));
    }

    #[test]
    fn of_a_key_that_is_cut_the_rest_is_waited_for() {
        assert_eq!(typed(b"a\x1b["), ("a".to_owned(), false));
        assert_eq!(typed(b"a\x1b"), ("a<Esc>".to_owned(), false));
        assert!(!typed("ü".as_bytes().split_at(1).0).1);
    }
}
