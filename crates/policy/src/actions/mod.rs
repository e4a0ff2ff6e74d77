//! The actions of a command, for display: it reads a file, lists, searches, or something else. No decision depends on
//! it, but approvers see it: a command that may also write or run something is never shown as reading.

mod operands;
mod programs;
mod quiet;

use std::path::Path;

use protocol::CommandAction;

use crate::argv::shell_script;
use crate::quote::shell_line;
use crate::script::read_script;

/// The actions of a command line; one unknown action if any part of it is unknown. Paths are as written, relative to
/// where the line starts.
pub fn command_actions(argv: &[String]) -> Vec<CommandAction> {
    let Some(call) = shell_script(argv) else {
        let unknown = || CommandAction::Unknown { command: shell_line(argv) };
        return vec![programs::action(argv, None).unwrap_or_else(unknown)];
    };
    actions_of_script(call.script)
        .unwrap_or_else(|| vec![CommandAction::Unknown { command: call.script.to_owned() }])
}

fn actions_of_script(text: &str) -> Option<Vec<CommandAction>> {
    let script = read_script(text)?;
    let all: Vec<Vec<String>> =
        script.commands.into_iter().map(|words| words.into_iter().map(|word| word.text).collect()).collect();
    let telling = telling(&all);
    let mut folder: Option<String> = None;
    let mut actions: Vec<CommandAction> = Vec::new();
    for words in &telling {
        if words[0] == "cd" {
            folder = entered(folder.as_deref(), &words[1..]);
            continue;
        }
        let action = programs::action(words, folder.as_deref())?;
        if actions.last() != Some(&action) {
            actions.push(action);
        }
    }
    let only_steps = telling.iter().all(|words| words[0] == "cd");
    if actions.is_empty() && (!only_steps || telling.is_empty()) {
        return None;
    }
    if let [CommandAction::Read { command, .. }] = &mut *actions
        && script.pipes
        && all.iter().any(|words| words.starts_with(&["sed".to_owned(), "-n".to_owned()]))
    {
        // The line range is part of the action.
        text.clone_into(command);
    }
    Some(actions)
}

/// The commands that describe a line: without those that only format text or print something first.
fn telling(all: &[Vec<String>]) -> Vec<&[String]> {
    let mut left: Vec<&[String]> = all.iter().map(Vec::as_slice).collect();
    if left.len() > 1 {
        left.retain(|words| words[0] != "true" && !quiet::only_formats(words));
    }
    while left.len() > 1 && left[0][0] == "echo" {
        left.remove(0);
    }
    left
}

/// The folder after `cd`.
fn entered(folder: Option<&str>, arguments: &[String]) -> Option<String> {
    let target = arguments.iter().find(|word| !word.starts_with('-'))?;
    Some(beneath(folder, target))
}

/// The path relative to where the line starts.
fn beneath(folder: Option<&str>, path: &str) -> String {
    match folder {
        Some(folder) => Path::new(folder).join(path).to_string_lossy().into_owned(),
        None => path.to_owned(),
    }
}
