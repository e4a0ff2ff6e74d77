//! Read-only git commands, with the options that keep them read-only.

use crate::safe::has_option;

/// Options of `git log`, `diff`, `show` and `status` that write a file or run a program.
const WRITES_OR_RUNS: &[&str] = &[
    "--output",
    "--ext-diff",
    "--textconv",
    "--exec",
    "--paginate",
    "--open-files-in-pager",
    "--show-signature",
    "--ext-grep",
    "--output-directory",
    "--tool",
    "--extcmd",
];

const LISTS_BRANCHES: &[&str] = &[
    "-a",
    "--all",
    "-r",
    "--remotes",
    "-v",
    "-vv",
    "--verbose",
    "-l",
    "--list",
    "--show-current",
    "--no-color",
    "--color",
    "--no-column",
    "--column",
];

/// Options before the command that only reduce git's effects.
const CALMING: &[&str] = &["--no-pager", "-P", "--no-optional-locks"];

/// Other options before the command choose another repository, another pager or other settings.
pub(crate) fn is_read_only(arguments: &[String]) -> bool {
    let calm = arguments.iter().take_while(|word| CALMING.contains(&word.as_str())).count();
    let Some((command, options)) = arguments[calm..].split_first() else { return false };
    match command.as_str() {
        "status" | "log" | "diff" | "show" => {
            !has_option(options, WRITES_OR_RUNS, "") && !options.iter().any(|word| is_signature_format(word))
        }
        "branch" => lists_branches(options),
        _ => false,
    }
}

/// Options before the command that take the next word as their value.
const GLOBAL_VALUES: &[&str] = &[
    "-C",
    "-c",
    "--git-dir",
    "--work-tree",
    "--namespace",
    "--exec-path",
    "--super-prefix",
    "--config-env",
    "--attr-source",
];

/// The git command and its arguments.
pub(crate) fn subcommand(mut arguments: &[String]) -> Option<(&str, &[String])> {
    while let Some((word, rest)) = arguments.split_first() {
        if !word.starts_with('-') {
            return Some((word, rest));
        }
        // `--exec-path` alone prints.
        let takes_next = GLOBAL_VALUES.contains(&word.as_str()) && word != "--exec-path";
        arguments = if takes_next { rest.get(1..).unwrap_or_default() } else { rest };
    }
    None
}

/// The folders in options before the command, in order.
pub(crate) fn folders(arguments: &[String]) -> impl Iterator<Item = &str> {
    let until = subcommand(arguments).map_or(arguments.len(), |(_, rest)| arguments.len() - rest.len());
    arguments[..until].windows(2).filter(|pair| pair[0] == "-C").map(|pair| pair[1].as_str())
}

/// A format may check signatures, which runs the program that the repository configures.
fn is_signature_format(word: &str) -> bool {
    word.contains("%G") || word.contains("signature")
}

/// A name would create a branch, unless `--list` makes it a pattern.
fn lists_branches(options: &[String]) -> bool {
    let listing = options.iter().any(|word| matches!(word.as_str(), "-l" | "--list"));
    options.iter().all(|word| {
        LISTS_BRANCHES.contains(&word.as_str())
            || (word.starts_with("--format=") && !is_signature_format(word))
            || (word.starts_with("--sort=") && !is_signature_format(word))
            || (listing && !word.starts_with('-'))
    })
}
