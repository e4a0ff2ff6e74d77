//! Text for the eyes of whoever approves: nothing in it can hide, reorder or overwrite.

use std::fmt::Write as _;

use names::is_invisible;

/// Shows control characters, and characters that have no shape of their own or change the direction of others, as
/// `\u{202e}`. Newlines and tabs stay.
pub fn escape_for_display(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_deceptive(c) {
            // Writing to a string does not fail.
            let _ = write!(shown, "\\u{{{:x}}}", u32::from(c));
        } else {
            shown.push(c);
        }
    }
    shown
}

fn is_deceptive(c: char) -> bool {
    match c {
        '\n' | '\t' | ' ' => false,
        _ if c.is_control() => true,
        // Spaces that look like the plain one, or like nothing.
        _ if c.is_whitespace() => true,
        _ => is_invisible(c),
    }
}
