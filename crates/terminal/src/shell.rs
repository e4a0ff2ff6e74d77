//! The one line that the wire shows of a command, taken apart again.

/// The words of a line as a shell would read it, where that needs no more than quotes. None for anything else.
pub fn words(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = line.chars();
    while let Some(c) = characters.next() {
        match c {
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match characters.next()? {
                        '\'' => break,
                        c => word.push(c),
                    }
                }
            }
            '"' => double_quoted(&mut characters, word.get_or_insert_default())?,
            '\\' => word.get_or_insert_default().push(characters.next()?),
            c if c.is_whitespace() => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Some(words)
}

fn double_quoted(characters: &mut std::str::Chars<'_>, word: &mut String) -> Option<()> {
    loop {
        match characters.next()? {
            '"' => return Some(()),
            '\\' => match characters.next()? {
                c @ ('"' | '\\' | '$' | '`') => word.push(c),
                '\n' => {}
                c => word.extend(['\\', c]),
            },
            c => word.push(c),
        }
    }
}

/// A shell with its option, and the script it runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ShellCall {
    pub(crate) shell: Vec<String>,
    pub(crate) script: String,
}

/// `bash -lc SCRIPT` and the like.
pub(crate) fn shell_call(line: &str) -> Option<ShellCall> {
    let [shell, option, script] = <[String; 3]>::try_from(words(line)?).ok()?;
    let name = shell.rsplit('/').next().unwrap_or_default();
    let is_shell = ["bash", "sh", "zsh", "dash"].contains(&name) && ["-c", "-lc"].contains(&option.as_str());
    is_shell.then(|| ShellCall { shell: vec![shell, option], script })
}

/// The script alone where there is one, else the line.
pub(crate) fn script(line: &str) -> String {
    shell_call(line).map_or_else(|| line.to_owned(), |call| call.script)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_undone() {
        let cases = [
            ("a 'b c' \"d \\\"e\\\" \\n\" f\\ g ''", Some(vec!["a", "b c", "d \"e\" \\n", "f g", ""])),
            ("  ", Some(vec![])),
            ("'open", None),
            ("\"open", None),
            ("open\\", None),
        ];
        for (line, expected) in cases {
            let expected = expected.map(|words| words.into_iter().map(str::to_owned).collect::<Vec<_>>());
            assert_eq!(words(line), expected, "{line}");
        }
    }

    #[test]
    fn the_shell_around_a_script_is_known() {
        assert_eq!(script("/bin/bash -lc 'ls -a .'"), "ls -a .");
        assert_eq!(script("git status"), "git status");
        assert_eq!(script("bash build.sh now"), "bash build.sh now");
    }
}
