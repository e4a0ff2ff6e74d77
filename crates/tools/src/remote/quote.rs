//! Quoting for shells.

/// The word, quoted so that every shell reads it back. It must not contain NUL.
pub(crate) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn shells_read_back_what_was_quoted() {
        let hostile = [
            "",
            "plain",
            "two words",
            "line\nbreak\n",
            "it's",
            "'",
            "''\\''",
            "\"double\"",
            "$(touch x) `touch x` $HOME ${x}",
            "-n",
            "--",
            "* ? [a-z] ~",
            "a;b&c|d>e<f",
            "back\\slash\\",
            "!history ^x",
            "\u{1}\u{7f}\t\r",
            "žluťoučký 漢字 \u{81}\u{88} 🦀",
            "#comment",
        ];
        for shell in ["sh", "dash", "bash"] {
            for word in hostile {
                let script = format!("printf '%s.' {}", quoted(word));
                // Shells that are not installed are skipped.
                let Ok(output) = Command::new(shell).args(["-c", &script]).output() else { continue };
                assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{word}."), "{shell}");
            }
        }
    }
}
