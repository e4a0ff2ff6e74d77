//! Text for the eyes of whoever approves: nothing in it can hide, reorder or overwrite.

use std::fmt::Write as _;

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

/// Format characters, fillers, variation selectors, tags, and what stands for no character at all.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}'
        | '\u{34f}'
        | '\u{600}'..='\u{605}'
        | '\u{61c}'
        | '\u{6dd}'
        | '\u{70f}'
        | '\u{890}'..='\u{891}'
        | '\u{8e2}'
        | '\u{115f}'..='\u{1160}'
        | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{2800}'
        | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}'
        | '\u{110bd}'
        | '\u{110cd}'
        | '\u{13430}'..='\u{1343f}'
        | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}'
        | '\u{e000}'..='\u{f8ff}'
        | '\u{e0000}'..='\u{e0fff}'
        | '\u{f0000}'..='\u{10ffff}')
}
