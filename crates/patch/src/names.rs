//! Escapes names for display: characters that could mislead are written as codes.

use std::fmt::Write as _;
use std::path::Path;

use names::is_invisible;

/// The path as text, with control, bidirectional and invisible characters written as `\u{…}`.
#[must_use]
pub fn shown(path: &Path) -> String {
    shown_text(&path.to_string_lossy())
}

pub(crate) fn shown_text(text: &str) -> String {
    if !text.chars().any(misleads) {
        return text.to_owned();
    }
    text.chars().fold(String::with_capacity(text.len() + 16), |mut out, character| {
        if misleads(character) {
            out.extend(character.escape_unicode());
        } else {
            out.push(character);
        }
        out
    })
}

/// The name as `git diff` writes it: quoted, with octal bytes, when it holds what could mislead or end the line.
pub(crate) fn git_quoted(name: &str) -> String {
    if !name.chars().any(|character| misleads(character) || matches!(character, '"' | '\\')) {
        return name.to_owned();
    }
    let mut out = String::from("\"");
    for character in name.chars() {
        match character {
            '"' | '\\' => out.extend(['\\', character]),
            _ if misleads(character) => {
                let mut bytes = [0; 4];
                for byte in character.encode_utf8(&mut bytes).bytes() {
                    // Writing to a string cannot fail.
                    let _ = write!(out, "\\{byte:03o}");
                }
            }
            _ => out.push(character),
        }
    }
    out.push('"');
    out
}

fn misleads(character: char) -> bool {
    character.is_control() || is_invisible(character)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_names_stay_and_misleading_ones_are_written_out() {
        for (name, seen, quoted) in [
            ("a b.txt", "a b.txt", "a b.txt"),
            ("größe/文.rs", "größe/文.rs", "größe/文.rs"),
            ("a\u{202e}txt.exe", "a\\u{202e}txt.exe", "\"a\\342\\200\\256txt.exe\""),
            ("zero\u{200b}width", "zero\\u{200b}width", "\"zero\\342\\200\\213width\""),
            ("q\"uote", "q\"uote", "\"q\\\"uote\""),
            ("back\\slash", "back\\slash", "\"back\\\\slash\""),
            ("bell\u{7}", "bell\\u{7}", "\"bell\\007\""),
        ] {
            assert_eq!(shown(Path::new(name)), seen);
            assert_eq!(git_quoted(name), quoted);
        }
    }
}
