//! Commands that only format the output of others.

use super::operands::operands;
use super::programs::{does_more, sed_parts};
use crate::safe::{has_option, is_line_range, only_reads_one};

/// Programs that need not be mentioned when `xargs` runs them.
const LOOKERS: &[&str] =
    &["cat", "echo", "egrep", "fgrep", "file", "grep", "head", "ls", "rg", "sort", "stat", "tail", "wc"];

/// Options of `sort` that write a file or run a program.
const SORT_DOES_MORE: &[&str] = &["--output", "--compress-program"];

/// Whether the command reads its input and writes nothing but its output.
pub(super) fn only_formats(words: &[String]) -> bool {
    let arguments = &words[1..];
    match words[0].as_str() {
        "column" | "cut" | "printf" | "tr" | "wc" | "yes" => true,
        "sort" => !has_option(arguments, SORT_DOES_MORE, "o"),
        "uniq" => only_reads_one(arguments),
        "tee" => operands(arguments, &[]).is_empty(),
        "xargs" => calls_looker(arguments),
        "head" | "tail" => {
            operands(arguments, &["-n", "-c", "--lines", "--bytes"]).is_empty() && !follows(arguments)
        }
        "awk" => super::programs::awk_file(arguments).is_none() && awk_only_prints(arguments),
        "sed" => {
            sed_parts(arguments).is_some_and(|sed| sed.files.is_empty() && sed_only_prints(&sed.scripts))
        }
        _ => false,
    }
}

fn follows(arguments: &[String]) -> bool {
    arguments.iter().any(|word| matches!(word.as_str(), "-f" | "-F" | "--follow"))
}

/// `xargs` alone echoes.
fn calls_looker(arguments: &[String]) -> bool {
    let options = ["-n", "-I", "-P", "-d", "-L", "-s", "-a", "-E"];
    let called = operands(arguments, &options);
    let Some(program) = called.first() else { return true };
    // Its own options are no operands of `xargs`.
    let at = arguments.iter().position(|word| word == program).unwrap_or_default();
    let words = &arguments[at..];
    LOOKERS.contains(program)
        && !does_more(words)
        && match *program {
            "sort" => !has_option(words, SORT_DOES_MORE, "o"),
            "file" => !has_option(words, &["--compile", "--magic-file"], "Cm"),
            _ => true,
        }
}

/// An `awk` program can run commands and write files, as can one in a file, a library or a debugger.
pub(super) fn awk_only_prints(arguments: &[String]) -> bool {
    let suspicious = ["system", "getline", "|", ">", "@"];
    let is_plain_option = |word: &str| word.starts_with("-F") || word.starts_with("-v");
    !arguments.iter().any(|word| {
        suspicious.iter().any(|part| word.contains(part)) || (word.starts_with('-') && !is_plain_option(word))
    })
}

/// So can a `sed` script: only printing lines and replacing text is certainly harmless.
fn sed_only_prints(scripts: &[&str]) -> bool {
    let replaces = |script: &str| {
        let mut chars = script.chars();
        let (Some('s'), Some(mark)) = (chars.next(), chars.next()) else { return false };
        let flags = script.rsplit(mark).next().unwrap_or_default();
        script.matches(mark).count() == 3
            && flags.chars().all(|c| matches!(c, 'g' | 'p' | 'i' | 'I' | '0'..='9'))
    };
    scripts.iter().all(|script| is_line_range(script) || replaces(script))
}
