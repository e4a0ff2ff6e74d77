//! Text for approvers: nothing in it can be hidden, reordered or overwritten.

use std::fmt::Write as _;

use names::is_invisible;

/// Shows control characters, invisible characters, and those that change the direction of text as `\u{202e}`. Newlines
/// and tabs stay.
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
        // Spaces that look like the plain one, or are invisible.
        _ if c.is_whitespace() => true,
        _ => is_invisible(c),
    }
}
