//! Commands that delete without confirmation.

use crate::argv::{base_name, commands_of, shell_script};
use crate::git;
use crate::launch::{commands_in, with_inner};
use crate::safe::has_option;

/// Whether a command of the line is a forced removal, also behind `sudo`, `env` and the like and inside scripts.
pub fn is_dangerous(argv: &[String]) -> bool {
    commands_of(argv).list.iter().any(|words| destroys(words) || seems_to_destroy(words))
}

/// Whether the command, or a nested one, removes without confirmation.
pub(crate) fn destroys(words: &[String]) -> bool {
    // A parsable script's commands are in the list; other scripts count as uncertain.
    shell_script(words).is_none() && with_inner(words).iter().any(|words| removes(words))
}

/// Whether an unparsable script seems to contain such a command.
pub(crate) fn seems_to_destroy(words: &[String]) -> bool {
    let commands = shell_script(words).map(|call| commands_in(call.script)).unwrap_or_default();
    commands.iter().any(|words| with_inner(words).iter().any(|words| removes(words)))
}

fn removes(words: &[String]) -> bool {
    let Some((program, arguments)) = words.split_first() else { return false };
    match base_name(program) {
        "rm" | "grm" => forces(arguments) || arguments.iter().any(|word| is_silenced(word)),
        "shred" => has_option(until_operands(arguments), &["--remove"], "u"),
        "srm" | "wipefs" => true,
        "find" | "gfind" | "bfs" => arguments.iter().any(|word| word == "-delete"),
        "fd" | "fdfind" => runs_rm(arguments),
        "git" => git::subcommand(arguments).is_some_and(|(command, options)| match command {
            "clean" => forces(options),
            "rm" => forces(options),
            _ => false,
        }),
        _ => false,
    }
}

fn forces(arguments: &[String]) -> bool {
    has_option(until_operands(arguments), &["--force"], "f")
}

/// All spellings of `--interactive=never`.
fn is_silenced(word: &str) -> bool {
    word.split_once('=').is_some_and(|(option, value)| {
        option.len() > 2 && "--interactive".starts_with(option) && matches!(value, "never" | "no" | "none")
    })
}

/// `fd PATTERN -x rm`: the words after the option are a command.
fn runs_rm(arguments: &[String]) -> bool {
    let runs = |word: &String| matches!(word.as_str(), "-x" | "-X" | "--exec" | "--exec-batch");
    let after = arguments.iter().position(runs).map(|at| &arguments[at + 1..]);
    after.is_some_and(|words| with_inner(words).iter().any(|words| removes(words)))
}

/// The arguments before `--`: everything after it is a file.
fn until_operands(arguments: &[String]) -> &[String] {
    let end = arguments.iter().position(|word| word == "--").unwrap_or(arguments.len());
    &arguments[..end]
}
