//! Text that is shown before something runs.

use oarlock_policy::escape_for_display;

#[test]
fn deceptive_characters_are_escaped() {
    for (text, shown) in [
        ("good\u{202e}gnp.sh", "good\\u{202e}gnp.sh"),
        ("a\u{200b}b", "a\\u{200b}b"),
        ("a\u{feff}b", "a\\u{feff}b"),
        ("a\u{2066}b\u{2069}", "a\\u{2066}b\\u{2069}"),
        ("\u{1b}[2Jls", "\\u{1b}[2Jls"),
        ("ls\rrm", "ls\\u{d}rm"),
        ("a\u{8}b", "a\\u{8}b"),
        ("a\u{a0}b", "a\\u{a0}b"),
        ("a\u{3000}b", "a\\u{3000}b"),
        ("a\u{ad}b", "a\\u{ad}b"),
        ("a\u{e0041}b", "a\\u{e0041}b"),
        ("a\u{fe0f}b", "a\\u{fe0f}b"),
        ("a\u{9b}b", "a\\u{9b}b"),
        ("a\u{2028}b", "a\\u{2028}b"),
        ("\u{3164}", "\\u{3164}"),
        ("\0", "\\u{0}"),
    ] {
        assert_eq!(escape_for_display(text), shown);
    }
}

#[test]
fn visible_text_is_unchanged() {
    for text in ["ls -l\n\tcat x", "naïve 日本語 العربية עברית", "\u{1f600} ∀x", "", "a\\u{202e}b"]
    {
        assert_eq!(escape_for_display(text), text);
    }
}
