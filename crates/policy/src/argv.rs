//! The commands inside a command line, such as `bash -lc "…"`, and its display as one line.

use crate::script::{Word, read_here_document, read_script};

/// Limit of nested shells; a deeper one stays a command like any other.
const MAX_DEPTH: usize = 3;

/// The commands of a command line, as far as it can be parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandList {
    /// Each command's words, at least one. For a line that cannot be parsed, the line itself.
    pub list: Vec<Vec<String>>,
    /// Every word is known: no shell, or a plain script.
    pub plain: bool,
    /// One command with a here-document: the command is known, but not its input.
    pub complex: bool,
    /// Some words contain globs or tildes.
    pub expands: bool,
    /// The shells whose scripts were parsed, as written.
    pub shells: Vec<String>,
}

/// The parts of `[bash, -lc, script]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShellScript<'a> {
    pub shell: &'a str,
    pub flag: &'a str,
    pub script: &'a str,
}

/// Splits a call of bash, zsh or sh with exactly one script.
pub fn shell_script(argv: &[String]) -> Option<ShellScript<'_>> {
    let [shell, flag, script] = argv else { return None };
    let known = matches!(base_name(shell), "bash" | "zsh" | "sh");
    (known && matches!(flag.as_str(), "-c" | "-lc")).then_some(ShellScript { shell, flag, script })
}

/// Parses shell scripts, also nested ones, as far as they are plain.
pub fn commands_of(argv: &[String]) -> CommandList {
    let mut commands =
        CommandList { list: Vec::new(), plain: true, complex: false, expands: false, shells: Vec::new() };
    if !argv.is_empty() && !commands.look_into(argv, 0) {
        commands.list.push(argv.to_vec());
        commands.plain = shell_script(argv).is_none();
        if let Some(call) = shell_script(argv)
            && let Some(words) = read_here_document(call.script)
        {
            commands.shells.push(call.shell.to_owned());
            commands.complex = true;
            commands.expands = words.iter().any(|word| word.expands);
            commands.list = vec![texts(&words)];
        }
    }
    commands
}

impl CommandList {
    /// Whether `argv` is a shell with a plain script; its commands are then in the list.
    fn look_into(&mut self, argv: &[String], depth: usize) -> bool {
        let Some(call) = shell_script(argv).filter(|_| depth < MAX_DEPTH) else { return false };
        let Some(script) = read_script(call.script) else { return false };
        self.shells.push(call.shell.to_owned());
        for words in script.commands {
            let expands = words.iter().any(|word| word.expands);
            self.expands |= expands;
            let words = texts(&words);
            if expands || !self.look_into(&words, depth + 1) {
                self.list.push(words);
            }
        }
        true
    }
}

fn texts(words: &[Word]) -> Vec<String> {
    words.iter().map(|word| word.text.clone()).collect()
}

/// The part after the last slash.
pub(crate) fn base_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}
