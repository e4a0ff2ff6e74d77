//! Text from outside, made safe to show: models, commands and providers write whatever they like.

use std::fmt::Write as _;

use names::is_invisible;

/// How far apart tabs stop.
const TAB: usize = 4;

/// Whether a terminal would obey the character, or show nothing where something is.
pub(crate) fn is_obeyed(c: char) -> bool {
    // Joiners are part of writing in many languages, and selectors part of many emoji.
    c.is_control() || (is_invisible(c) && !matches!(c, '\u{200c}' | '\u{200d}' | '\u{fe0e}' | '\u{fe0f}'))
}

/// For reading: whole colour codes and other commands to the terminal go, what is left of them is not obeyed, and
/// of a line that was written over, the last state stays. Line breaks and tabs are kept.
pub(crate) fn readable(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut line_start = 0;
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '\u{1b}' => skip_command(&mut characters),
            '\r' if characters.peek() != Some(&'\n') && characters.peek().is_some() => {
                kept.truncate(line_start);
            }
            '\u{8}' => {
                if kept.len() > line_start {
                    kept.pop();
                }
            }
            '\n' => {
                kept.push('\n');
                line_start = kept.len();
            }
            '\t' => kept.push('\t'),
            c if is_obeyed(c) => {}
            c => kept.push(c),
        }
    }
    kept
}

/// Skips what follows an escape character: `[…letter`, `]…BEL`, or nothing that is known.
fn skip_command(characters: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match characters.peek() {
        Some('[') => {
            characters.next();
            while let Some(c) = characters.peek() {
                let is_parameter = matches!(c, ' '..='?');
                let is_last = matches!(c, '@'..='~');
                if !is_parameter && !is_last {
                    return;
                }
                characters.next();
                if is_last {
                    return;
                }
            }
        }
        Some(']' | 'P' | '_' | '^' | 'X') => {
            // A text that nobody ends would swallow the rest, so it may not go beyond its line.
            while let Some(c) = characters.next_if(|c| *c != '\n') {
                let is_end = c == '\u{7}' || (c == '\u{1b}' && characters.next_if_eq(&'\\').is_some());
                if is_end {
                    return;
                }
            }
        }
        Some('(' | ')' | '#' | ' ' | '%') => {
            characters.next();
            characters.next_if(|c| !c.is_control());
        }
        _ => {}
    }
}

/// For deciding: every character that cannot be seen is shown by its number, so that what is read is what would run.
/// Line breaks are kept.
pub(crate) fn escaped(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => shown.push('\n'),
            '\t' => shown.push_str("\\t"),
            '\r' => shown.push_str("\\r"),
            c if c.is_control() || is_invisible(c) => {
                let _ = write!(shown, "\\u{{{:x}}}", u32::from(c));
            }
            // Spaces that are none.
            c if c != ' ' && c.is_whitespace() => {
                let _ = write!(shown, "\\u{{{:x}}}", u32::from(c));
            }
            c => shown.push(c),
        }
    }
    shown
}

/// On one line, and short.
pub(crate) fn one_line(text: &str) -> String {
    let readable = readable(text);
    let words: Vec<&str> = readable.split_whitespace().collect();
    words.join(" ")
}

/// Tabs as spaces, for a line that begins at the left edge.
pub(crate) fn without_tabs(line: &str) -> String {
    if !line.contains('\t') {
        return line.to_owned();
    }
    let mut spread = String::with_capacity(line.len() + 8);
    let mut column = 0;
    for c in line.chars() {
        let count = if c == '\t' { TAB - column % TAB } else { 1 };
        let c = if c == '\t' { ' ' } else { c };
        spread.extend(std::iter::repeat_n(c, count));
        column += count;
    }
    spread
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOUD: &str = "a\u{1b}[2Jb\u{1b}]0;t\u{7}c\u{1b}]52;c;eA==\u{1b}\\d\u{1b}]8;;http://x\u{7}e\u{9b}31mf\
                        \u{202e}h\u{2066}i\u{200f}j\u{e0041}k\u{feff}l\u{2028}n\u{7f}o\u{1b}";

    #[test]
    fn nothing_a_terminal_obeys_is_left() {
        for text in [readable(LOUD), escaped(LOUD)] {
            assert!(!text.contains(is_obeyed), "{text:?}");
            assert!("abcdefhijklno".chars().all(|letter| text.contains(letter)), "{text}");
        }
        assert_eq!(readable("\u{1b}[31mred\u{1b}[0m \u{1b}(Bplain"), "red plain");
    }

    #[test]
    fn what_is_decided_about_is_shown_whole() {
        assert_eq!(escaped("rm \u{202e}x\u{1b}[2K\ty"), "rm \\u{202e}x\\u{1b}[2K\\ty");
        assert_eq!(escaped("a\u{a0}b\u{200b}c"), "a\\u{a0}b\\u{200b}c");
        assert_eq!(escaped("one\ntwo"), "one\ntwo");
    }

    #[test]
    fn lines_written_over_show_their_last_state() {
        assert_eq!(readable("10%\r50%\r100%\nnext\r\n"), "100%\nnext\n");
        assert_eq!(readable("abc\u{8}d"), "abd");
    }

    #[test]
    fn an_open_command_ends_with_its_line() {
        assert_eq!(readable("a\u{1b}]0;title\nb"), "a\nb");
        assert_eq!(readable("a\u{1b}[12\nb"), "a\nb");
    }

    #[test]
    fn words_stay_words() {
        assert_eq!(readable("می\u{200c}خواهم 👩\u{200d}🚀"), "می\u{200c}خواهم 👩\u{200d}🚀");
        assert_eq!(one_line(" a\n\tb  c "), "a b c");
        assert_eq!(without_tabs("a\tb\tc"), "a   b   c");
    }
}
