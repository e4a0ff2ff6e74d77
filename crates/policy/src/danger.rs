//! Commands that destroy without asking back.

use crate::argv::{base_name, commands_of};

/// Options of `sudo` and the like that take the next word with them.
const SUDO_VALUES: &[&str] = &["-u", "-g", "-h", "-p", "-C", "-D", "-R", "-T", "-U", "-r", "-t"];

/// Whether a command of the line is a forced `rm`, also behind `sudo` and inside plain scripts.
pub fn is_dangerous(argv: &[String]) -> bool {
    commands_of(argv).list.iter().any(|words| destroys(words))
}

pub(crate) fn destroys(words: &[String]) -> bool {
    let mut rest = words;
    while let Some((program, arguments)) = rest.split_first() {
        match base_name(program) {
            "rm" => return arguments.first().is_some_and(|word| is_forced(word)),
            "sudo" | "doas" => rest = after_options(arguments),
            _ => return false,
        }
    }
    false
}

fn is_forced(option: &str) -> bool {
    match option.strip_prefix("--") {
        Some(long) => long == "force",
        None => option.strip_prefix('-').is_some_and(|cluster| cluster.contains('f')),
    }
}

fn after_options(mut arguments: &[String]) -> &[String] {
    while let Some((word, rest)) = arguments.split_first() {
        if SUDO_VALUES.contains(&word.as_str()) {
            arguments = rest.get(1..).unwrap_or_default();
        } else if word.starts_with('-') || word.contains('=') {
            arguments = rest;
        } else {
            break;
        }
    }
    arguments
}
