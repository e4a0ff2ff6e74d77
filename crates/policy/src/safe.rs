//! Read-only commands: recognised by their words, and only if their names resolve to the system's own programs.

use std::path::PathBuf;

use crate::argv::{base_name, commands_of};
use crate::git;

/// Whatever their options, they write nothing and start nothing.
const READ_ONLY: &[&str] = &[
    "cat", "cut", "echo", "expr", "false", "grep", "head", "id", "ls", "nl", "numfmt", "paste", "pwd", "rev",
    "seq", "stat", "tac", "tail", "tr", "true", "uname", "wc", "which", "whoami",
];

/// Only in a shell, and without any effect that outlives it.
const HARMLESS_BUILTINS: &[&str] = &["cd", "echo", "false", "pwd", "true"];

pub(crate) const FIND_ACTIONS: &[&str] =
    &["-exec", "-execdir", "-ok", "-okdir", "-delete", "-fls", "-fprint", "-fprint0", "-fprintf"];

/// The first of these runs a program per file; the others run one to read or name things.
pub(crate) const RIPGREP_HELPERS: &[&str] = &["--pre", "--hostname-bin", "--search-zip"];

/// Whether every command of the line is read-only. `resolve` returns the trusted file of a name.
pub fn is_known_safe(argv: &[String], resolve: &dyn Fn(&str) -> Option<PathBuf>) -> bool {
    let commands = commands_of(argv);
    let read = commands.plain && !commands.complex;
    read && commands.shells.iter().all(|shell| resolve(shell).is_some())
        && commands.list.iter().all(|words| is_read_only(words, commands.expands, resolve))
}

/// Whether one command is read-only. `expands`: the shell may replace words, so that a file name could become an
/// option.
pub(crate) fn is_read_only(
    words: &[String],
    expands: bool,
    resolve: &dyn Fn(&str) -> Option<PathBuf>,
) -> bool {
    let Some((program, arguments)) = words.split_first() else { return false };
    if program == "cd" {
        return true;
    }
    let name = base_name(program);
    let by_words = READ_ONLY.contains(&name) || (!expands && is_read_only_with(name, arguments));
    by_words && resolve(program).is_some()
}

/// Whether a shell runs this itself, without other effects.
pub(crate) fn is_harmless_builtin(words: &[String]) -> bool {
    words.first().is_some_and(|program| HARMLESS_BUILTINS.contains(&program.as_str()))
}

/// Whether the command reads the configuration of its repository, which may name programs to run.
pub(crate) fn obeys_repository(words: &[String]) -> bool {
    words.first().is_some_and(|program| base_name(program) == "git")
}

/// Programs whose options decide.
fn is_read_only_with(name: &str, arguments: &[String]) -> bool {
    match name {
        "base64" => !has_option(arguments, &["--output"], "o"),
        "find" => !arguments.iter().any(|word| FIND_ACTIONS.contains(&word.as_str())),
        "rg" => !has_option(arguments, RIPGREP_HELPERS, "z"),
        "sed" => prints_lines(arguments),
        "uniq" => only_reads_one(arguments),
        "git" => git::is_read_only(arguments),
        _ => false,
    }
}

/// Whether one of the options occurs: a long one in full, abbreviated or with a value, a short one also in a cluster.
pub(crate) fn has_option(arguments: &[String], long: &[&str], short: &str) -> bool {
    arguments.iter().any(|word| match word.strip_prefix("--") {
        Some("") => false,
        Some(rest) => {
            let name = rest.split('=').next().unwrap_or(rest);
            long.iter().any(|option| option.trim_start_matches('-').starts_with(name))
        }
        None => word.strip_prefix('-').is_some_and(|cluster| cluster.contains(|c| short.contains(c))),
    })
}

/// `sed -n 5p FILE`, `sed -n 1,5p FILE` and the same without a file.
fn prints_lines(arguments: &[String]) -> bool {
    match arguments {
        [quiet, range] | [quiet, range, _] if quiet == "-n" && is_line_range(range) => {
            arguments.get(2).is_none_or(|file| !file.starts_with('-'))
        }
        _ => false,
    }
}

/// The second operand of `uniq` is a file that it writes.
pub(crate) fn only_reads_one(arguments: &[String]) -> bool {
    let operands = arguments.iter().filter(|word| !word.starts_with('-') || *word == "-").count();
    operands <= 1 && !arguments.iter().any(|word| word == "--")
}

/// `5p` or `1,5p`.
pub(crate) fn is_line_range(text: &str) -> bool {
    let Some(numbers) = text.strip_suffix('p') else { return false };
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    match numbers.split_once(',') {
        Some((from, to)) => is_number(from) && is_number(to),
        None => is_number(numbers),
    }
}
