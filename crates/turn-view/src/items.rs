//! One line for each thing the agent does.

use std::path::Path;

use policy::{read_script, shell_script};
use protocol::{
    CollabAgentTool, CollabAgentToolCallStatus, CommandAction, CommandExecutionStatus,
    DynamicToolCallOutputContentItem, DynamicToolCallStatus, FileUpdateChange, McpToolCallStatus,
    PatchApplyStatus, PatchChangeKind, ThreadItem, UserInput,
};
use serde_json::Value;

use crate::safe::clean;

/// How a piece of work stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkStatus {
    Running,
    Done,
    Failed,
}

/// A piece of work, ready to be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WorkItem {
    pub(crate) what: String,
    pub(crate) standing: WorkStatus,
    /// How it ended, in a few words.
    pub(crate) ending: String,
    /// The output of the work.
    pub(crate) output: Option<String>,
    pub(crate) output_kind: OutputKind,
    pub(crate) kind: WorkKind,
    /// Somebody or something said no.
    pub(crate) is_refused: bool,
    /// Why it was refused or failed, where the output does not say so.
    pub(crate) reason: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkKind {
    Command,
    Edit,
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputKind {
    Text,
    /// Lines that came and went.
    Diff,
}

/// None for what is said rather than done. Changed files are named as seen from `folder`.
pub(crate) fn work(item: &ThreadItem, folder: Option<&Path>) -> Option<WorkItem> {
    match item {
        ThreadItem::CommandExecution {
            command,
            command_actions,
            status,
            exit_code,
            duration_ms,
            aggregated_output,
            ..
        } => {
            let standing = match status {
                CommandExecutionStatus::InProgress => WorkStatus::Running,
                CommandExecutionStatus::Completed => WorkStatus::Done,
                CommandExecutionStatus::Failed | CommandExecutionStatus::Declined => WorkStatus::Failed,
            };
            // A negative one stands for a command that never began.
            let look = look(command, command_actions, folder);
            let code = exit_code.filter(|_| look.is_none()).map(|code| match code {
                ..0 => "not started".to_owned(),
                code => format!("exit code {code}"),
            });
            let declined = matches!(status, CommandExecutionStatus::Declined).then(|| "refused".to_owned());
            let ending = [declined.or(code), duration(*duration_ms)];
            Some(WorkItem {
                what: look.unwrap_or_else(|| format!("run {}", script(command))),
                standing,
                ending: ending.into_iter().flatten().collect::<Vec<_>>().join(", "),
                output: match status {
                    // The reason names the command as it would have been run, which says less to a person.
                    CommandExecutionStatus::Declined => {
                        aggregated_output.as_ref().map(|why| why.replacen(command, &script(command), 1))
                    }
                    _ => aggregated_output.clone(),
                },
                output_kind: OutputKind::Text,
                kind: WorkKind::Command,
                is_refused: matches!(status, CommandExecutionStatus::Declined),
                reason: None,
            })
        }
        ThreadItem::FileChange { .. } => edit(item, folder),
        ThreadItem::McpToolCall { .. } | ThreadItem::DynamicToolCall { .. } => call(item),
        ThreadItem::CollabAgentToolCall { tool, status, prompt, .. } => {
            let what = match tool {
                CollabAgentTool::SpawnAgent => "start an agent",
                CollabAgentTool::SendInput => "tell an agent",
                CollabAgentTool::ResumeAgent => "wake an agent",
                CollabAgentTool::Wait => "wait for agents",
                CollabAgentTool::CloseAgent => "end an agent",
            };
            let standing = match status {
                CollabAgentToolCallStatus::InProgress => WorkStatus::Running,
                CollabAgentToolCallStatus::Completed => WorkStatus::Done,
                CollabAgentToolCallStatus::Failed => WorkStatus::Failed,
            };
            let prompt = prompt.as_ref().map(|prompt| format!(": {prompt}")).unwrap_or_default();
            Some(plain(format!("{what}{prompt}"), standing))
        }
        ThreadItem::WebSearch { query, action, .. } => {
            let standing = if action.is_some() { WorkStatus::Done } else { WorkStatus::Running };
            Some(plain(format!("search the web for {query}"), standing))
        }
        ThreadItem::ImageView { path, .. } => Some(plain(format!("look at {path}"), WorkStatus::Done)),
        ThreadItem::ImageGeneration { saved_path, .. } => {
            let place = saved_path.as_ref().map(|path| format!(" {path}")).unwrap_or_default();
            Some(plain(format!("make an image{place}"), WorkStatus::Done))
        }
        ThreadItem::FunctionCallOutput { name, .. } => {
            Some(plain(format!("hear from {name}"), WorkStatus::Done))
        }
        ThreadItem::EnteredReviewMode { review, .. } => {
            Some(plain(format!("review {review}"), WorkStatus::Done))
        }
        ThreadItem::ContextCompaction { .. } => {
            Some(plain("shorten the history to a summary".to_owned(), WorkStatus::Done))
        }
        ThreadItem::UserMessage { .. }
        | ThreadItem::HookPrompt { .. }
        | ThreadItem::AgentMessage { .. }
        | ThreadItem::Plan { .. }
        | ThreadItem::Reasoning { .. }
        | ThreadItem::ExitedReviewMode { .. } => None,
    }
}

/// A patch, with the lines that came and went.
fn edit(item: &ThreadItem, folder: Option<&Path>) -> Option<WorkItem> {
    let ThreadItem::FileChange { changes, status, reason, .. } = item else { return None };
    let (standing, ending) = match status {
        PatchApplyStatus::InProgress => (WorkStatus::Running, ""),
        PatchApplyStatus::Completed => (WorkStatus::Done, ""),
        PatchApplyStatus::Failed => (WorkStatus::Failed, "not applied"),
        PatchApplyStatus::Declined => (WorkStatus::Failed, "refused"),
    };
    let diff = changes.iter().map(diff).collect::<String>();
    let seen = |path: &str| seen_from(folder, path);
    let changes = changes.iter().map(|change| match &change.kind {
        PatchChangeKind::Add => format!("add {}", seen(&change.path)),
        PatchChangeKind::Delete => format!("delete {}", seen(&change.path)),
        PatchChangeKind::Update { move_path: None } => format!("update {}", seen(&change.path)),
        PatchChangeKind::Update { move_path: Some(to) } => {
            format!("move {} to {}", seen(&change.path), seen(to))
        }
    });
    let what = changes.collect::<Vec<_>>().join(", ");
    Some(WorkItem {
        what: format!("edit {what}"),
        standing,
        ending: ending.to_owned(),
        output: Some(diff),
        output_kind: OutputKind::Diff,
        kind: WorkKind::Edit,
        is_refused: matches!(status, PatchApplyStatus::Declined),
        reason: reason.clone(),
    })
}

fn plain(what: String, standing: WorkStatus) -> WorkItem {
    WorkItem {
        what,
        standing,
        ending: String::new(),
        output: None,
        output_kind: OutputKind::Text,
        kind: WorkKind::Other,
        is_refused: false,
        reason: None,
    }
}

/// Tools that look at files are shown as commands whose action says all.
const LOOKS: &[&str] = &["read_file ", "list_dir ", "grep_files "];

fn look(command: &str, actions: &[CommandAction], folder: Option<&Path>) -> Option<String> {
    let [action] = actions else { return None };
    if !LOOKS.iter().any(|tool| command.starts_with(tool)) {
        return None;
    }
    match action {
        CommandAction::Read { path, .. } => Some(format!("read {}", seen_from(folder, path))),
        CommandAction::ListFiles { path, .. } => {
            Some(format!("list {}", seen_from(folder, path.as_deref().unwrap_or("."))))
        }
        CommandAction::Search { path, query, .. } => {
            let (query, path) = (query.as_deref().unwrap_or_default(), path.as_deref().unwrap_or("."));
            Some(format!("search {} for {query}", seen_from(folder, path)))
        }
        CommandAction::Unknown { .. } => None,
    }
}

fn seen_from(folder: Option<&Path>, path: &str) -> String {
    let relative = folder.and_then(|folder| Path::new(path).strip_prefix(folder).ok());
    match relative {
        Some(path) if path.as_os_str().is_empty() => ".".to_owned(),
        Some(path) => path.display().to_string(),
        None => path.to_owned(),
    }
}

/// The script, without the shell that runs it.
fn script(command: &str) -> String {
    let words =
        read_script(command).filter(|line| line.commands.len() == 1).map(|line| line.commands.concat());
    let words: Vec<String> = words.into_iter().flatten().map(|word| word.text).collect();
    shell_script(&words).map_or_else(|| command.to_owned(), |call| call.script.to_owned())
}

/// The lines of one file that came and went; of a new or deleted one, all.
fn diff(change: &FileUpdateChange) -> String {
    let marked = |mark: char| change.diff.lines().map(|line| format!("{mark}{line}\n")).collect();
    match &change.kind {
        PatchChangeKind::Add => marked('+'),
        PatchChangeKind::Delete => marked('-'),
        PatchChangeKind::Update { .. } => format!("{}\n", change.diff.trim_end_matches('\n')),
    }
}

fn call(item: &ThreadItem) -> Option<WorkItem> {
    let (name, arguments, standing, duration_ms, output) = match item {
        ThreadItem::McpToolCall { server, tool, arguments, status, error, result, duration_ms, .. } => {
            let standing = match status {
                McpToolCallStatus::InProgress => WorkStatus::Running,
                McpToolCallStatus::Completed => WorkStatus::Done,
                McpToolCallStatus::Failed => WorkStatus::Failed,
            };
            let texts = result.iter().flat_map(|result| &result.content);
            let texts = texts.filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n");
            let output = error.as_ref().map(|error| error.message.clone()).or(Some(texts));
            (format!("{server}.{tool}"), arguments, standing, duration_ms, output)
        }
        ThreadItem::DynamicToolCall {
            namespace,
            tool,
            arguments,
            status,
            content_items,
            duration_ms,
            ..
        } => {
            let standing = match status {
                DynamicToolCallStatus::InProgress => WorkStatus::Running,
                DynamicToolCallStatus::Completed => WorkStatus::Done,
                DynamicToolCallStatus::Failed => WorkStatus::Failed,
            };
            let texts = content_items.iter().flatten().map(|part| match part {
                DynamicToolCallOutputContentItem::InputText { text } => text.as_str(),
                DynamicToolCallOutputContentItem::InputImage { .. } => "(an image)",
            });
            let output = Some(texts.collect::<Vec<_>>().join("\n"));
            let name = namespace.iter().map(|group| format!("{group}.{tool}")).next();
            (name.unwrap_or_else(|| tool.clone()), arguments, standing, duration_ms, output)
        }
        _ => return None,
    };
    let ending = duration(*duration_ms).unwrap_or_default();
    let what = format!("call {name} {}", compact(arguments));
    Some(WorkItem { ending, output, ..plain(what, standing) })
}

fn compact(arguments: &Value) -> String {
    match arguments {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// One line about any item of a thread that is over.
pub fn describe(item: &ThreadItem, folder: &Path) -> String {
    let said = |who: &str, text: &str| format!("{who}: {}", first_line(text));
    match item {
        ThreadItem::UserMessage { content, .. } => {
            let text = content.iter().find_map(|part| match part {
                UserInput::Text { text, .. } => Some(text.as_str()),
                _ => None,
            });
            said("you", text.unwrap_or("(an image)"))
        }
        ThreadItem::AgentMessage { text, .. } => said("agent", text),
        ThreadItem::Plan { text, .. } => said("proposed plan", text),
        ThreadItem::Reasoning { summary, .. } => said("thinking", &summary.join(" ")),
        ThreadItem::HookPrompt { fragments, .. } => {
            said("hook", fragments.first().map_or("", |fragment| &fragment.text))
        }
        ThreadItem::ExitedReviewMode { review, .. } => said("review", review),
        item => work(item, Some(folder)).map(|work| first_line(&work.what)).unwrap_or_default(),
    }
}

fn first_line(text: &str) -> String {
    const CHARACTERS: usize = 90;
    let text = clean(text);
    let line = text.lines().next().unwrap_or_default();
    let short: String = line.chars().take(CHARACTERS).collect();
    if short.len() < text.trim_end().len() { format!("{short} …") } else { short }
}

/// In words a person reads at a glance.
pub(crate) fn duration(milliseconds: Option<i64>) -> Option<String> {
    milliseconds.map(|all| match all {
        ..1_000 => format!("{all} ms"),
        1_000..60_000 => format!("{}.{} s", all / 1_000, all % 1_000 / 100),
        _ => format!("{} min {} s", all / 60_000, all % 60_000 / 1_000),
    })
}

#[cfg(test)]
mod tests {
    use super::{duration, script, seen_from};
    use std::path::Path;

    #[test]
    fn paths_are_short_where_they_can_be() {
        let seen = |path| seen_from(Some(Path::new("/w/x")), path);
        assert_eq!([seen("/w/x/a/b"), seen("/w/xy/a"), seen("a")], ["a/b", "/w/xy/a", "a"]);
        assert_eq!(seen_from(None, "/w/x/a"), "/w/x/a");
    }

    #[test]
    fn the_shell_around_a_script_is_left_out() {
        let cases = [
            ("/bin/bash -lc 'ls -a .'", "ls -a ."),
            (r#"/bin/bash -c "printf '%s\\n' 'x' > a""#, r"printf '%s\n' 'x' > a"),
            ("git status", "git status"),
            ("bash build.sh", "bash build.sh"),
            ("sh -c 'unfinished", "sh -c 'unfinished"),
        ];
        for (command, expected) in cases {
            assert_eq!(script(command), expected);
        }
    }

    #[test]
    fn durations_read_well() {
        let shown =
            [0, 999, 1_000, 59_999, 60_000, 125_400].map(|all| duration(Some(all)).unwrap_or_default());
        assert_eq!(shown, ["0 ms", "999 ms", "1.0 s", "59.9 s", "1 min 0 s", "2 min 5 s"]);
        assert_eq!(duration(None), None);
    }
}
