//! Recognises command lines that consist of a patch.

use crate::parse::looks_like_patch;

/// The answer to the model for a patch in place of a command.
pub const IMPLICIT_REFUSAL: &str = "apply_patch verification failed: a patch is not a command; \
    call apply_patch with it: [\"apply_patch\", \"<patch>\"]";

/// The meaning of a command line to the patcher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Invocation {
    /// Any other command.
    None,
    /// Exactly one patch, to be applied in `dir`, relative to the command's directory.
    Patch { text: String, dir: Option<String> },
    /// A patch in place of a command, which must be refused.
    Implicit,
}

/// Parses a command line. Only what is certainly one patch and nothing else counts.
#[must_use]
pub fn invocation(argv: &[String]) -> Invocation {
    match argv {
        [body] if looks_like_patch(body) => Invocation::Implicit,
        [name, body] if is_patcher(name) => Invocation::Patch { text: body.clone(), dir: None },
        [shell, flag, script] if is_shell(shell) && matches!(flag.as_str(), "-lc" | "-c") => {
            script_of(script)
        }
        _ => Invocation::None,
    }
}

fn is_patcher(name: &str) -> bool {
    matches!(name, "apply_patch" | "applypatch")
}

fn is_shell(program: &str) -> bool {
    matches!(program.rsplit('/').next(), Some("bash" | "zsh" | "sh"))
}

fn script_of(script: &str) -> Invocation {
    if looks_like_patch(script) {
        return Invocation::Implicit;
    }
    match (Scanner { rest: script }).script() {
        Some((dir, text)) => Invocation::Patch { text, dir },
        None => Invocation::None,
    }
}

/// Parses `[cd DIR &&] apply_patch <<'X' … X` and nothing else of the shell's syntax.
struct Scanner<'s> {
    rest: &'s str,
}

impl<'s> Scanner<'s> {
    fn script(mut self) -> Option<(Option<String>, String)> {
        self.space();
        let mut word = self.word()?;
        let mut dir = None;
        if word == "cd" {
            self.blanks_at_least_one()?;
            dir = Some(self.directory()?);
            self.blanks();
            self.take("&&")?;
            self.space();
            word = self.word()?;
        }
        if !is_patcher(word) {
            return None;
        }
        self.blanks();
        self.take("<<")?;
        let indented = self.take("-").is_some();
        self.blanks();
        let delimiter = self.delimiter()?;
        self.blanks();
        self.take("\n")?;
        let text = self.here_document(delimiter, indented)?;
        Some((dir, text))
    }

    fn take(&mut self, token: &str) -> Option<()> {
        self.rest = self.rest.strip_prefix(token)?;
        Some(())
    }

    fn blanks(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
    }

    fn blanks_at_least_one(&mut self) -> Option<()> {
        let before = self.rest.len();
        self.blanks();
        (self.rest.len() < before).then_some(())
    }

    fn space(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n']);
    }

    /// Characters without a special meaning in any shell.
    fn word(&mut self) -> Option<&'s str> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "_./-+@%,:".contains(c) || !c.is_ascii();
        let end = self.rest.find(|c| !plain(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        (!word.is_empty()).then_some(word)
    }

    fn quoted(&mut self, quote: char) -> Option<&'s str> {
        let inner = self.rest.strip_prefix(quote)?;
        let (text, rest) = inner.split_once(quote)?;
        self.rest = rest;
        Some(text)
    }

    fn directory(&mut self) -> Option<String> {
        let dir = match self.rest.chars().next()? {
            '\'' => self.quoted('\'')?,
            '"' => self.quoted('"').filter(|text| !text.contains(['$', '`', '\\', '!']))?,
            _ => self.word()?,
        };
        // An option or `cd -` would lead to an unknown directory.
        (!dir.is_empty() && !dir.starts_with('-')).then(|| dir.to_owned())
    }

    fn delimiter(&mut self) -> Option<&'s str> {
        let word = match self.rest.chars().next()? {
            quote @ ('\'' | '"') => self.quoted(quote)?,
            _ => self.word()?,
        };
        let plain = !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        plain.then_some(word)
    }

    fn here_document(&self, delimiter: &str, indented: bool) -> Option<String> {
        let strip = |line: &'s str| if indented { line.trim_start_matches('\t') } else { line };
        let mut lines = self.rest.split('\n');
        let mut text = Vec::new();
        loop {
            let line = strip(lines.next()?);
            if line == delimiter {
                break;
            }
            text.push(line);
        }
        // Text after the document would be a second command.
        lines.all(|line| line.trim().is_empty()).then(|| text.join("\n"))
    }
}
