//! Text from outside, made safe to show: models, files and providers write whatever they like.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

use crate::paint::CODES;

/// Characters that a terminal obeys instead of showing, or that make a text look like another: controls old and new,
/// marks of direction, separators of lines, and characters without a shape. Joiners are part of writing in many
/// languages.
fn is_obeyed(c: char) -> bool {
    (c.is_control() && !matches!(c, '\n' | '\t'))
        || matches!(
            c,
            '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}'
        )
}

/// Without all of it.
pub fn clean(text: &str) -> Cow<'_, str> {
    if text.contains(is_obeyed) { text.replace(is_obeyed, "").into() } else { text.into() }
}

/// The same on one line.
pub fn clean_line(text: &str) -> String {
    clean(text).replace(['\n', '\t'], " ")
}

/// A whole text for the screen, in which the colours are ours: the last line of defence behind [`clean`] for each part.
pub fn screened(text: &str) -> Cow<'_, str> {
    if !text.contains(is_obeyed) {
        return text.into();
    }
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(is_obeyed) {
        let (before, after) = rest.split_at(at);
        kept.push_str(before);
        let code = CODES.iter().find(|code| after.starts_with(**code));
        let length = code.map_or_else(|| after.chars().next().map_or(1, char::len_utf8), |code| code.len());
        kept.push_str(code.unwrap_or(&""));
        rest = &after[length..];
    }
    kept.push_str(rest);
    kept.into()
}

/// JSON that says the same and holds nothing a terminal obeys. JSON itself only escapes the oldest controls.
pub fn escaped_json(json: &str) -> Cow<'_, str> {
    if !json.contains(is_obeyed) {
        return json.into();
    }
    let mut escaped = String::with_capacity(json.len() + 32);
    for c in json.chars() {
        match is_obeyed(c) {
            // Outside of texts there are none, so every one can be escaped as in a text.
            true => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(escaped, "\\u{unit:04x}");
                }
            }
            false => escaped.push(c),
        }
    }
    escaped.into()
}

/// Standard error for log lines, which hold what others wrote.
#[derive(Debug, Clone, Copy, Default)]
pub struct SafeStderr;

impl Write for SafeStderr {
    /// Log lines come whole.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        io::stderr().write_all(clean(&text).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clear screen, a title, a clipboard, a link, C1, a backspace, directions, tags and a line that overwrites.
    const LOUD: &str = "a\u{1b}[2Jb\u{1b}]0;t\u{7}c\u{1b}]52;c;eA==\u{1b}\\d\u{1b}]8;;http://x\u{7}e\u{9b}31mf\u{8}g\
                        \u{202e}h\u{2066}i\u{200f}j\u{e0041}k\u{feff}l\rm\u{2028}n\u{7f}o";

    #[test]
    fn nothing_a_terminal_obeys_gets_through() {
        assert_eq!(clean("a\u{1b}[2Jb\r\u{9b}c\td\n"), "a[2Jbc\td\n");
        assert!(matches!(clean("plain"), Cow::Borrowed(_)));
        for text in [clean(LOUD), screened(LOUD), escaped_json(LOUD)] {
            assert!(!text.contains(is_obeyed), "{text:?}");
            assert!("abcdefghijklmno".chars().all(|letter| text.contains(letter)), "{text}");
        }
        assert_eq!(clean("می\u{200c}خواهم 👩\u{200d}🚀"), "می\u{200c}خواهم 👩\u{200d}🚀", "words stay words");
        assert_eq!(clean_line("a\n\tb"), "a  b");
    }

    #[test]
    fn only_our_own_colours_pass() {
        assert_eq!(screened("\u{1b}[31mred\u{1b}[0m \u{1b}[8mgone"), "\u{1b}[31mred\u{1b}[0m [8mgone");
    }

    #[test]
    fn json_says_the_same() {
        let json = serde_json::json!({ "text": LOUD }).to_string();
        let escaped = escaped_json(&json);
        assert!(escaped.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()), "{escaped}");
        let read: serde_json::Value = serde_json::from_str(&escaped).expect("JSON");
        assert_eq!(read["text"], LOUD);
    }
}
