//! Text in columns: how wide it is, cut to fit, and how wide the screen is.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Where a screen says nothing of itself.
const USUAL: usize = 80;
const USUAL_ROWS: usize = 24;
/// Narrower than this nothing fits, so lines are left to the terminal.
const NARROWEST: usize = 40;

/// How many columns the text takes.
pub fn display_width(text: &str) -> usize {
    text.width()
}

/// The beginning of a text, with `…` where something was cut off.
pub fn cut(text: &str, columns: usize) -> String {
    if display_width(text) <= columns {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut width = 1;
    for letter in text.chars() {
        width += letter.width().unwrap_or_default();
        if width > columns {
            break;
        }
        kept.push(letter);
    }
    kept.truncate(kept.trim_end().len());
    kept.push('…');
    kept
}

/// The end of a text, with `…` before it where something was cut off.
pub fn cut_front(text: &str, columns: usize) -> String {
    if display_width(text) <= columns {
        return text.to_owned();
    }
    let mut width = 1;
    let mut begin = text.len();
    for (at, letter) in text.char_indices().rev() {
        width += letter.width().unwrap_or_default();
        if width > columns {
            break;
        }
        begin = at;
    }
    format!("…{}", &text[begin..])
}

/// The lines of the terminal that standard error is.
pub fn screen_rows() -> usize {
    let told = rustix::termios::tcgetwinsize(std::io::stderr()).ok().map(|size| usize::from(size.ws_row));
    told.filter(|rows| *rows > 0).unwrap_or(USUAL_ROWS)
}

/// The width of the terminal that standard output or standard error is.
pub fn columns() -> usize {
    let of_variable = || std::env::var("COLUMNS").ok()?.trim().parse().ok();
    let size = rustix::termios::tcgetwinsize(std::io::stdout())
        .or_else(|_| rustix::termios::tcgetwinsize(std::io::stderr()));
    let told = size.ok().map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0);
    told.or_else(of_variable).unwrap_or(USUAL).max(NARROWEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_at_their_columns() {
        assert_eq!([cut("abcdef", 6), cut("abcdef", 4), cut("ab cdef", 4)], ["abcdef", "abc…", "ab…"]);
        assert_eq!([cut("日本語", 6), cut("日本語", 5), cut("日本語", 4)], ["日本語", "日本…", "日…"]);
        assert_eq!([cut_front("/a/b/c", 6), cut_front("/a/b/c", 4)], ["/a/b/c", "…b/c"]);
        assert_eq!(cut_front("日本語", 4), "…語");
    }
}
