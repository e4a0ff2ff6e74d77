//! One line for each thing the agent does.

use protocol::{
    CollabAgentTool, CollabAgentToolCallStatus, CommandExecutionStatus, DynamicToolCallOutputContentItem,
    DynamicToolCallStatus, McpToolCallStatus, PatchApplyStatus, PatchChangeKind, ThreadItem, UserInput,
};
use serde_json::Value;

use super::paint::clean;

/// How a piece of work stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    Running,
    Done,
    Failed,
}

/// A piece of work, ready to be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Work {
    pub(super) what: String,
    pub(super) standing: Standing,
    /// How it ended, in a few words.
    pub(super) ending: String,
    /// What came of it.
    pub(super) output: Option<String>,
}

/// None for what is said rather than done.
pub(super) fn work(item: &ThreadItem) -> Option<Work> {
    match item {
        ThreadItem::CommandExecution {
            command, status, exit_code, duration_ms, aggregated_output, ..
        } => {
            let standing = match status {
                CommandExecutionStatus::InProgress => Standing::Running,
                CommandExecutionStatus::Completed => Standing::Done,
                CommandExecutionStatus::Failed | CommandExecutionStatus::Declined => Standing::Failed,
            };
            let code = exit_code.map(|code| format!("exit code {code}"));
            let declined = matches!(status, CommandExecutionStatus::Declined).then(|| "refused".to_owned());
            let ending = [declined.or(code), duration(*duration_ms)];
            Some(Work {
                what: format!("run {command}"),
                standing,
                ending: ending.into_iter().flatten().collect::<Vec<_>>().join(", "),
                output: aggregated_output.clone(),
            })
        }
        ThreadItem::FileChange { changes, status, .. } => {
            let (standing, ending) = match status {
                PatchApplyStatus::InProgress => (Standing::Running, ""),
                PatchApplyStatus::Completed => (Standing::Done, ""),
                PatchApplyStatus::Failed => (Standing::Failed, "not applied"),
                PatchApplyStatus::Declined => (Standing::Failed, "refused"),
            };
            let changes = changes.iter().map(|change| match &change.kind {
                PatchChangeKind::Add => format!("add {}", change.path),
                PatchChangeKind::Delete => format!("delete {}", change.path),
                PatchChangeKind::Update { move_path: None } => format!("update {}", change.path),
                PatchChangeKind::Update { move_path: Some(to) } => format!("move {} to {to}", change.path),
            });
            let what = changes.collect::<Vec<_>>().join(", ");
            Some(Work { what: format!("edit {what}"), standing, ending: ending.to_owned(), output: None })
        }
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
                CollabAgentToolCallStatus::InProgress => Standing::Running,
                CollabAgentToolCallStatus::Completed => Standing::Done,
                CollabAgentToolCallStatus::Failed => Standing::Failed,
            };
            let prompt = prompt.as_ref().map(|prompt| format!(": {prompt}")).unwrap_or_default();
            Some(plain(format!("{what}{prompt}"), standing))
        }
        ThreadItem::WebSearch { query, action, .. } => {
            let standing = if action.is_some() { Standing::Done } else { Standing::Running };
            Some(plain(format!("search the web for {query}"), standing))
        }
        ThreadItem::ImageView { path, .. } => Some(plain(format!("look at {path}"), Standing::Done)),
        ThreadItem::ImageGeneration { saved_path, .. } => {
            let place = saved_path.as_ref().map(|path| format!(" {path}")).unwrap_or_default();
            Some(plain(format!("make an image{place}"), Standing::Done))
        }
        ThreadItem::EnteredReviewMode { review, .. } => {
            Some(plain(format!("review {review}"), Standing::Done))
        }
        ThreadItem::ContextCompaction { .. } => {
            Some(plain("shorten the history to a summary".to_owned(), Standing::Done))
        }
        ThreadItem::UserMessage { .. }
        | ThreadItem::HookPrompt { .. }
        | ThreadItem::AgentMessage { .. }
        | ThreadItem::Plan { .. }
        | ThreadItem::Reasoning { .. }
        | ThreadItem::ExitedReviewMode { .. } => None,
    }
}

fn plain(what: String, standing: Standing) -> Work {
    Work { what, standing, ending: String::new(), output: None }
}

fn call(item: &ThreadItem) -> Option<Work> {
    let (name, arguments, standing, duration_ms, output) = match item {
        ThreadItem::McpToolCall { server, tool, arguments, status, error, result, duration_ms, .. } => {
            let standing = match status {
                McpToolCallStatus::InProgress => Standing::Running,
                McpToolCallStatus::Completed => Standing::Done,
                McpToolCallStatus::Failed => Standing::Failed,
            };
            let texts = result.iter().flat_map(|result| &result.content);
            let texts = texts.filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n");
            let output = error.as_ref().map(|error| error.message.clone()).or(Some(texts));
            (format!("{server}.{tool}"), arguments, standing, duration_ms, output)
        }
        ThreadItem::DynamicToolCall { tool, arguments, status, content_items, duration_ms, .. } => {
            let standing = match status {
                DynamicToolCallStatus::InProgress => Standing::Running,
                DynamicToolCallStatus::Completed => Standing::Done,
                DynamicToolCallStatus::Failed => Standing::Failed,
            };
            let texts = content_items.iter().flatten().map(|part| match part {
                DynamicToolCallOutputContentItem::InputText { text } => text.as_str(),
                DynamicToolCallOutputContentItem::InputImage { .. } => "(an image)",
            });
            let output = Some(texts.collect::<Vec<_>>().join("\n"));
            (tool.clone(), arguments, standing, duration_ms, output)
        }
        _ => return None,
    };
    let ending = duration(*duration_ms).unwrap_or_default();
    Some(Work { what: format!("call {name} {}", compact(arguments)), standing, ending, output })
}

fn compact(arguments: &Value) -> String {
    match arguments {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// One line about any item of a thread that is over.
pub(crate) fn describe(item: &ThreadItem) -> String {
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
        item => work(item).map(|work| first_line(&work.what)).unwrap_or_default(),
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
pub(super) fn duration(milliseconds: Option<i64>) -> Option<String> {
    milliseconds.map(|all| match all {
        ..1_000 => format!("{all} ms"),
        1_000..60_000 => format!("{}.{} s", all / 1_000, all % 1_000 / 100),
        _ => format!("{} min {} s", all / 60_000, all % 60_000 / 1_000),
    })
}

#[cfg(test)]
mod tests {
    use super::duration;

    #[test]
    fn durations_read_well() {
        let shown =
            [0, 999, 1_000, 59_999, 60_000, 125_400].map(|all| duration(Some(all)).unwrap_or_default());
        assert_eq!(shown, ["0 ms", "999 ms", "1.0 s", "59.9 s", "1 min 0 s", "2 min 5 s"]);
        assert_eq!(duration(None), None);
    }
}
