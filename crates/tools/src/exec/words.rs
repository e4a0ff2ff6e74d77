//! Finds the words in a shell script that name files to be run: at the start of commands, and right after interpreters.
//! A heuristic: words it misses stay unchanged.

use std::ops::Range;
use std::path::PathBuf;

/// Limit of nested scripts.
const MOST_DEEP: usize = 3;

/// Commands that run their arguments.
const WRAPPERS: &[&str] = &[
    "!", "builtin", "command", "env", "eval", "exec", "nice", "nohup", "setsid", "stdbuf", "sudo", "time",
    "timeout",
];
/// A command follows these.
const OPENERS: &[&str] = &["if", "then", "elif", "else", "while", "until", "do", "{"];
/// Their first argument that is no option is a file they run.
const INTERPRETERS: &[&str] = &[
    ".", "source", "sh", "bash", "dash", "zsh", "ksh", "python", "perl", "ruby", "php", "lua", "node",
    "nodejs", "deno", "bun", "tsx", "expect", "Rscript", "tclsh",
];
/// The interpreters that take a script as an argument.
const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh"];
/// Commands that change no files. After any other command, a later file name may mean a changed file on purpose.
const HARMLESS: &[&str] = &[
    "cd", "pushd", "export", "set", "echo", "printf", "test", "[", "true", ":", "pwd", "ls", "cat", "head",
    "tail", "wc", "sleep", "date", "id", "which", "type", "mkdir", "chmod", "ulimit", "umask", "fi", "done",
    "}",
];

/// A word that names a program or script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProgramWord {
    pub(super) range: Range<usize>,
    /// The word's path without quotes, relative to the script's first folder.
    pub(super) name: String,
    /// The interpreter that runs it, if any.
    pub(super) interpreter: Option<String>,
}

#[derive(Debug)]
enum ShellToken {
    Word(Range<usize>, String),
    /// A new command starts.
    Break,
    /// The next word is a file to read or write.
    Redirection,
}

/// In order, up to the first command that may change files.
pub(super) fn places(script: &str) -> Vec<ProgramWord> {
    let mut reader = ShellWordReader::default();
    reader.read(script, 0);
    reader.found
}

#[derive(Default)]
struct ShellWordReader {
    found: Vec<ProgramWord>,
    /// The current folder, relative to the first one. Unset if unknown.
    folder: ScriptFolder,
    /// A command may have changed files.
    is_over: bool,
    depth: usize,
}

enum ScriptFolder {
    Known(PathBuf),
    Unknown,
}

impl Default for ScriptFolder {
    fn default() -> Self {
        Self::Known(PathBuf::new())
    }
}

enum WordState {
    /// A command may start.
    Command,
    /// An interpreter was named; the flag says that its script is an argument.
    Operand(String, bool),
    /// A folder is named.
    Folder,
    /// Arguments.
    Rest,
}

impl ShellWordReader {
    fn read(&mut self, script: &str, offset: usize) {
        // Subshells may change the folder and back, which is not tracked.
        let nests = script.contains(['(', ')', '`', '|']);
        let (mut state, mut skips) = (WordState::Command, false);
        for token in tokens(script) {
            let (range, word) = match token {
                ShellToken::Break => {
                    state = WordState::Command;
                    continue;
                }
                ShellToken::Redirection => {
                    skips = true;
                    continue;
                }
                ShellToken::Word(..) if std::mem::take(&mut skips) => continue,
                ShellToken::Word(range, word) => (range, word),
            };
            if self.is_over {
                return;
            }
            state = match state {
                WordState::Rest => WordState::Rest,
                WordState::Command if is_prefix(&word) => WordState::Command,
                WordState::Command => self.begin(range.start + offset..range.end + offset, word),
                WordState::Folder => {
                    self.enter(&word, nests);
                    WordState::Rest
                }
                WordState::Operand(name, script) if word.starts_with('-') && word.len() > 1 => {
                    WordState::Operand(name, script || !word.starts_with("--") && word.contains('c'))
                }
                WordState::Operand(name, true) if SHELLS.contains(&name.as_str()) => {
                    self.look_into(script, range, offset);
                    self.is_over = true;
                    WordState::Rest
                }
                WordState::Operand(name, _) => {
                    self.note(range.start + offset..range.end + offset, word, Some(name));
                    self.is_over = true;
                    WordState::Rest
                }
            };
        }
    }

    fn begin(&mut self, range: Range<usize>, word: String) -> WordState {
        let name = word.rsplit('/').next().unwrap_or(&word).to_owned();
        let unversioned = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.').to_owned();
        let interpreter = [name, unversioned].into_iter().find(|name| INTERPRETERS.contains(&name.as_str()));
        let is_harmless = HARMLESS.contains(&word.as_str());
        let is_cd = matches!(word.as_str(), "cd" | "pushd" | "popd");
        self.note(range, word, None);
        match interpreter {
            Some(name) => WordState::Operand(name, false),
            None if is_cd => WordState::Folder,
            None => {
                self.is_over = !is_harmless;
                WordState::Rest
            }
        }
    }

    fn note(&mut self, range: Range<usize>, word: String, interpreter: Option<String>) {
        let is_plain = !word.contains(['$', '*', '?', '[', '~']) || word == "[";
        let name = match &self.folder {
            _ if !is_plain => return,
            // A bare name is looked up on the path.
            _ if interpreter.is_none() && !word.contains('/') => word,
            _ if word.starts_with('/') => word,
            ScriptFolder::Unknown => return,
            ScriptFolder::Known(folder) if folder.as_os_str().is_empty() => word,
            ScriptFolder::Known(folder) => folder.join(word).to_string_lossy().into_owned(),
        };
        self.found.push(ProgramWord { range, name, interpreter });
    }

    fn enter(&mut self, word: &str, nests: bool) {
        let is_plain = !nests && !word.starts_with('-') && !word.contains(['$', '*', '?', '[', '~']);
        self.folder = match std::mem::take(&mut self.folder) {
            ScriptFolder::Known(folder) if is_plain => ScriptFolder::Known(folder.join(word)),
            _ => ScriptFolder::Unknown,
        };
    }

    /// Looks into a nested script, if its text is quoted literally.
    fn look_into(&mut self, script: &str, range: Range<usize>, offset: usize) {
        let raw = &script[range.clone()];
        let inner = ['\'', '"'].into_iter().find_map(|quote| raw.strip_prefix(quote)?.strip_suffix(quote));
        let (inner, begin) = match inner {
            Some(inner) => (inner, range.start + 1),
            None => (raw, range.start),
        };
        self.depth += 1;
        if self.depth <= MOST_DEEP && !inner.contains(['\'', '"', '\\']) {
            self.read(inner, begin + offset);
        }
        self.depth -= 1;
    }
}

/// Assignments, wrappers with their options, and shell keywords.
fn is_prefix(word: &str) -> bool {
    let is_assignment = word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    });
    // The argument of `timeout 5s` and the like.
    let is_number = word.starts_with(|c: char| c.is_ascii_digit()) && !word.contains('/');
    is_assignment || is_number || word.starts_with('-') || WRAPPERS.contains(&word) || OPENERS.contains(&word)
}

fn tokens(script: &str) -> Vec<ShellToken> {
    let mut tokens = Vec::new();
    let bytes = script.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b' ' | b'\t' => at += 1,
            b'\n' | b';' | b'|' | b'&' | b'(' | b')' | b'`' => {
                tokens.push(ShellToken::Break);
                at += 1;
            }
            // After a here-document starts, the rest is text and no command.
            b'<' if bytes[at..].starts_with(b"<<") && !bytes[at..].starts_with(b"<<<") => return tokens,
            b'<' | b'>' => {
                let length =
                    bytes[at..].iter().take_while(|byte| matches!(byte, b'<' | b'>' | b'&' | b'|')).count();
                tokens.push(ShellToken::Redirection);
                at += length;
            }
            b'#' => at += bytes[at..].iter().take_while(|byte| **byte != b'\n').count(),
            _ => {
                let (end, word) = word(script, at);
                let is_number = word.bytes().all(|byte| byte.is_ascii_digit());
                let redirects = matches!(bytes.get(end), Some(b'<' | b'>'));
                if !(is_number && redirects) {
                    tokens.push(ShellToken::Word(at..end, word));
                }
                at = end;
            }
        }
    }
    tokens
}

/// The end of the word that starts here, and its text without quotes.
fn word(script: &str, start: usize) -> (usize, String) {
    let mut word = String::new();
    let mut quote = None;
    let mut escaped = false;
    for (offset, c) in script[start..].char_indices() {
        match (quote, c) {
            _ if std::mem::take(&mut escaped) => word.push(c),
            (None | Some('"'), '\\') => escaped = true,
            (Some(open), c) if c == open => quote = None,
            (Some(_), c) => word.push(c),
            (None, '\'' | '"') => quote = Some(c),
            (None, ' ' | '\t' | '\n' | ';' | '|' | '&' | '(' | ')' | '<' | '>' | '`') => {
                return (start + offset, word);
            }
            (None, c) => word.push(c),
        }
    }
    (script.len(), word)
}
