//! Invisible characters.

/// Whether a character is invisible, or changes how its neighbours are displayed. Includes all of Unicode's
/// default-ignorable and bidirectional control characters, all format characters, fillers, variation selectors, tags,
/// private use characters and non-characters. Excludes control characters and spaces.
#[must_use]
pub fn is_invisible(c: char) -> bool {
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
        | '\u{e000}'..='\u{f8ff}'
        | '\u{fdd0}'..='\u{fdef}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffc}'
        | '\u{fffe}'..='\u{ffff}'
        | '\u{110bd}'
        | '\u{110cd}'
        | '\u{13430}'..='\u{1343f}'
        | '\u{16fe4}'
        | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d159}'
        | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}'
        | '\u{f0000}'..='\u{10ffff}')
        // The last two code points of every plane are non-characters.
        || u32::from(c) & 0xfffe == 0xfffe
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Default_Ignorable_Code_Point of Unicode 17.
    const IGNORABLE: &[(u32, u32)] = &[
        (0xad, 0xad),
        (0x34f, 0x34f),
        (0x61c, 0x61c),
        (0x115f, 0x1160),
        (0x17b4, 0x17b5),
        (0x180b, 0x180f),
        (0x200b, 0x200f),
        (0x202a, 0x202e),
        (0x2060, 0x206f),
        (0x3164, 0x3164),
        (0xfe00, 0xfe0f),
        (0xfeff, 0xfeff),
        (0xffa0, 0xffa0),
        (0xfff0, 0xfff8),
        (0x1bca0, 0x1bca3),
        (0x1d173, 0x1d17a),
        (0xe0000, 0xe0fff),
    ];

    /// Bidi_Control.
    const BIDI: &[(u32, u32)] = &[(0x61c, 0x61c), (0x200e, 0x200f), (0x202a, 0x202e), (0x2066, 0x2069)];

    #[test]
    fn no_ignorable_or_bidirectional_character_is_missing() {
        for code in IGNORABLE.iter().chain(BIDI).flat_map(|(from, to)| *from..=*to) {
            let c = char::from_u32(code).unwrap();
            assert!(is_invisible(c), "{code:x}");
        }
    }

    #[test]
    fn what_is_written_and_read_is_visible() {
        for c in "aZ09 .-_~/\\:äßéñøπжאبहกあ漢한🙂→€\u{301}\u{fffd}".chars() {
            assert!(!is_invisible(c), "{c}");
        }
    }
}
