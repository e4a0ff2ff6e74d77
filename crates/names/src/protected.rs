//! The names that control the next start of an agent or of git.

use std::ffi::OsStr;

use crate::is_invisible;

/// The folders with the agent's settings and a repository's history, as written.
pub const PROTECTED_NAMES: [&str; 4] = [".agents", ".codex", ".git", ".oarlock"];

/// Short names of old file systems keep this many characters before the tilde.
const SHORT_NAME: usize = 6;

/// Whether a file system, or a reader, could take a name for a protected one. File systems ignore case, drop invisible
/// characters, cut trailing dots and spaces, support streams (`.git::$DATA`) and short names (`GIT~1`), and split names
/// at backslashes. Full-width letters and dots count as plain ones.
#[must_use]
pub fn is_protected(name: &OsStr) -> bool {
    let bytes = name.as_encoded_bytes();
    // A fast path without a copy, because nearly every name is plain.
    if bytes.iter().all(|byte| is_plain(*byte)) {
        let end = bytes.iter().rposition(|byte| *byte != b'.').map_or(0, |last| last + 1);
        return PROTECTED_NAMES.iter().any(|known| bytes[..end].eq_ignore_ascii_case(known.as_bytes()));
    }
    let text = name.to_string_lossy();
    text.split(['\\', '\u{ff3c}']).any(is_twin)
}

/// Whether a byte is unambiguous everywhere, except for case and trailing dots.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-')
}

fn is_twin(name: &str) -> bool {
    let plain: String = name
        .chars()
        // Invalid UTF-8 may be invisible, or lost when the name is copied.
        .filter(|c| !(is_invisible(*c) || c.is_control() || *c == '\u{fffd}'))
        .filter(|c| *c == ' ' || !c.is_whitespace())
        .map(plain)
        .collect();
    // Twice, because some letters are equal only in the other case.
    let folded = plain.to_uppercase().to_lowercase();
    let named = folded.split(':').next().unwrap_or(&folded);
    let named = named.trim_start_matches(' ').trim_end_matches([' ', '.']);
    PROTECTED_NAMES.iter().any(|known| named == *known || is_short_name(named, known))
}

/// `git~1`, `agents~1`, `oarloc~2`.
fn is_short_name(name: &str, known: &str) -> bool {
    let known = known.trim_start_matches('.');
    let kept = &known[..known.len().min(SHORT_NAME)];
    let number = name.strip_prefix(kept).and_then(|rest| rest.strip_prefix('~'));
    number.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The plain form of a wide or small character, or of another dot.
fn plain(c: char) -> char {
    match c {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c),
        '\u{2024}' | '\u{fe52}' | '\u{ff61}' | '\u{3002}' => '.',
        '\u{fe55}' | '\u{a789}' | '\u{2236}' => ':',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn protected_names_are_known_under_every_disguise() {
        for name in [
            ".git",
            ".GIT",
            ".Git",
            ".codex",
            ".CODEX",
            ".agents",
            ".oarlock",
            ".agent\u{17f}",
            ".oarloc\u{212a}",
            ".g\u{200c}it",
            ".g\u{200d}it",
            "\u{200b}.git",
            ".git\u{feff}",
            ".\u{ad}git",
            ".gi\u{2060}t",
            ".g\u{34f}it",
            ".co\u{fe0f}dex",
            ".g\u{e0061}it",
            ".g\u{202e}it",
            ".g\u{180b}it",
            ".g\u{200a}it",
            ".git.",
            ".git...",
            ".git ",
            ".git . .",
            " .git",
            ".git::$INDEX_ALLOCATION",
            ".git:stream",
            ".GIT::$DATA",
            "GIT~1",
            "git~2",
            "AGENTS~1",
            "CODEX~1",
            "OARLOC~1",
            "\u{ff0e}git",
            "\u{2024}git",
            "\u{fe52}git",
            "\u{3002}git",
            ".\u{ff47}\u{ff49}\u{ff54}",
            ".\u{ff27}\u{ff29}\u{ff34}",
            ".git\u{ff1a}x",
            ".git\\hooks",
            "x\\.git",
            ".g\u{7}it",
            ".agents\u{3164}",
        ] {
            assert!(is_protected(OsStr::new(name)), "{name:?}");
        }
        assert!(is_protected(OsStr::from_bytes(b".g\xffit")));
    }

    #[test]
    fn other_names_are_free() {
        for name in [
            "",
            ".",
            "..",
            "git",
            ".gitignore",
            ".gitattributes",
            ".github",
            ".gitmodules",
            "codex",
            "agents",
            "AGENTS.md",
            "agents.md",
            ".agent",
            ".codexrc",
            "x.git",
            "..git",
            "repo.git",
            "git~",
            "git~x",
            "a~1",
            "file~1",
            ".git-credentials",
            "größe",
            "文.rs",
            ".gіt",
        ] {
            assert!(!is_protected(OsStr::new(name)), "{name:?}");
        }
    }

    #[test]
    fn long_names_are_looked_through() {
        let long = format!(".g{}it", "\u{200b}".repeat(5_000));
        assert!(is_protected(OsStr::new(&long)));
        assert!(!is_protected(OsStr::new(&"a".repeat(100_000))));
    }
}
