//! How names and lines of files are formatted for the model.

use std::ffi::OsStr;
use std::fmt::Write;

use engine::{Step, Truncation};

/// Longer names and lines are cut here.
pub(crate) const LONGEST: usize = 500;

/// How many bytes of a result the model gets. A longer one loses its middle, so tools that return pages end before
/// that.
pub(crate) fn room(step: &Step) -> usize {
    match step.model.truncation {
        Truncation::Bytes(bytes) => bytes,
        Truncation::Tokens(tokens) => tokens.saturating_mul(4),
    }
}

/// At most this many bytes, in whole characters.
pub(crate) fn cut(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// A file name or path on one line: line breaks are escaped.
pub(crate) fn one_line(name: &OsStr) -> String {
    let name = name.to_string_lossy();
    let mut line = String::with_capacity(name.len());
    for character in name.chars() {
        if character.is_control() {
            let _ = write!(line, "{}", character.escape_default());
        } else {
            line.push(character);
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn characters_stay_whole() {
        assert_eq!(cut("aé", 2), "a");
        assert_eq!(cut("aé", 3), "aé");
        assert_eq!(cut("a", 9), "a");
        assert_eq!(cut("é", 0), "");
    }

    #[test]
    fn a_name_never_breaks_its_line() {
        assert_eq!(one_line(OsStr::new("a\nb\u{1b}[2K")), "a\\nb\\u{1b}[2K");
        assert_eq!(one_line(OsStr::from_bytes(b"caf\xff")), "caf\u{fffd}");
    }
}
