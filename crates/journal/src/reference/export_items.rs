//! A turn's items as events of the reference.

use protocol::{
    CommandAction, CommandExecutionSource, FileUpdateChange, McpToolCallResult, PatchChangeKind, ThreadItem,
    TurnId, UserInput, WebSearchAction,
};
use serde_json::{Map, Value, json};

/// The events of one item. None if the reference has no event for it.
pub(super) fn events_of(turn_id: &TurnId, item: &ThreadItem) -> Vec<Value> {
    match item {
        ThreadItem::UserMessage { content, .. } => vec![user_message(content)],
        ThreadItem::AgentMessage { text, phase, .. } => {
            vec![json!({ "type": "agent_message", "message": text, "phase": phase, "memory_citation": null })]
        }
        ThreadItem::Reasoning { summary, content, .. } => {
            let summary = summary.iter().map(|text| json!({ "type": "agent_reasoning", "text": text }));
            let raw = |text| json!({ "type": "agent_reasoning_raw_content", "text": text });
            summary.chain(content.iter().map(raw)).collect()
        }
        ThreadItem::ContextCompaction { .. } => vec![json!({ "type": "context_compacted" })],
        ThreadItem::EnteredReviewMode { review, .. } => vec![json!({
            "type": "entered_review_mode",
            "target": { "type": "custom", "instructions": review },
            "user_facing_hint": review,
        })],
        ThreadItem::ExitedReviewMode { review, .. } => vec![json!({
            "type": "exited_review_mode",
            "review_output": {
                "findings": [], "overall_correctness": "", "overall_explanation": review,
                "overall_confidence_score": 0.0,
            },
        })],
        ThreadItem::Plan { id, text } => vec![json!({
            "type": "item_completed", "thread_id": "", "turn_id": turn_id,
            "item": { "type": "Plan", "id": id, "text": text },
        })],
        ThreadItem::HookPrompt { .. } | ThreadItem::CollabAgentToolCall { .. } => Vec::new(),
        tool => vec![tool_event(turn_id, tool)],
    }
}

fn user_message(content: &[UserInput]) -> Value {
    let (mut message, mut images, mut local_images) = (String::new(), Vec::new(), Vec::new());
    for input in content {
        match input {
            UserInput::Text { text, .. } => message.push_str(text),
            UserInput::Image { url } => images.push(url),
            UserInput::LocalImage { path } => local_images.push(path),
            UserInput::Skill { .. } | UserInput::Mention { .. } => {}
        }
    }
    json!({ "type": "user_message", "message": message, "images": images, "local_images": local_images,
        "text_elements": [] })
}

fn tool_event(turn_id: &TurnId, item: &ThreadItem) -> Value {
    match item {
        ThreadItem::CommandExecution {
            id,
            command,
            cwd,
            process_id,
            source,
            status,
            command_actions,
            aggregated_output,
            exit_code,
            duration_ms,
        } => json!({
            "type": "exec_command_end", "call_id": id, "process_id": process_id, "turn_id": turn_id,
            "command": words(command), "cwd": cwd,
            "parsed_cmd": command_actions.iter().map(parsed).collect::<Vec<_>>(),
            "source": source_word(*source), "stdout": "", "stderr": "",
            "aggregated_output": aggregated_output.as_deref().unwrap_or_default(),
            "exit_code": exit_code.unwrap_or(-1), "duration": duration(*duration_ms), "formatted_output": "",
            "status": status,
        }),
        ThreadItem::FileChange { id, changes, status, reason } => json!({
            "type": "patch_apply_end", "call_id": id, "turn_id": turn_id, "stdout": "",
            "stderr": reason.as_deref().unwrap_or_default(),
            "success": json!(status) == "completed",
            "changes": changes.iter().map(change).collect::<Map<_, _>>(), "status": status,
        }),
        ThreadItem::McpToolCall { id, server, tool, arguments, result, error, duration_ms, .. } => json!({
            "type": "mcp_tool_call_end", "call_id": id,
            "invocation": { "server": server, "tool": tool, "arguments": arguments },
            "duration": duration(*duration_ms),
            "result": match (result, error) {
                (Some(McpToolCallResult { content, structured_content }), _) => {
                    json!({ "Ok": { "content": content, "structuredContent": structured_content } })
                }
                (None, error) => json!({ "Err": error.as_ref().map_or("", |error| error.message.as_str()) }),
            },
        }),
        ThreadItem::DynamicToolCall {
            id,
            namespace,
            tool,
            arguments,
            content_items,
            success,
            duration_ms,
            ..
        } => {
            let mut event = json!({
                "type": "dynamic_tool_call_response", "call_id": id, "turn_id": turn_id, "tool": tool,
                "arguments": arguments, "content_items": content_items.clone().unwrap_or_default(),
                "success": success.unwrap_or(false), "error": null, "duration": duration(*duration_ms),
            });
            if let Some(namespace) = namespace {
                event["namespace"] = json!(namespace);
            }
            event
        }
        ThreadItem::WebSearch { id, query, action } => json!({
            "type": "web_search_end", "call_id": id, "query": query, "action": search_action(action.as_ref(), query),
        }),
        ThreadItem::ImageView { id, path } => {
            json!({ "type": "view_image_tool_call", "call_id": id, "path": path })
        }
        ThreadItem::ImageGeneration { id, status, revised_prompt, result, saved_path } => json!({
            "type": "image_generation_end", "call_id": id, "status": status, "revised_prompt": revised_prompt,
            "result": result, "saved_path": saved_path,
        }),
        _ => Value::Null,
    }
}

fn parsed(action: &CommandAction) -> Value {
    match action {
        CommandAction::Read { command, name, path } => {
            json!({ "type": "read", "cmd": command, "name": name, "path": path })
        }
        CommandAction::ListFiles { command, path } => {
            json!({ "type": "list_files", "cmd": command, "path": path })
        }
        CommandAction::Search { command, path, query } => {
            json!({ "type": "search", "cmd": command, "query": query, "path": path })
        }
        CommandAction::Unknown { command } => json!({ "type": "unknown", "cmd": command }),
    }
}

fn source_word(source: CommandExecutionSource) -> &'static str {
    match source {
        CommandExecutionSource::Agent => "agent",
        CommandExecutionSource::UserShell => "user_shell",
        CommandExecutionSource::UnifiedExecStartup => "unified_exec_startup",
        CommandExecutionSource::UnifiedExecInteraction => "unified_exec_interaction",
    }
}

fn change(change: &FileUpdateChange) -> (String, Value) {
    let json = match &change.kind {
        PatchChangeKind::Add => json!({ "type": "add", "content": change.diff }),
        PatchChangeKind::Delete => json!({ "type": "delete", "content": change.diff }),
        PatchChangeKind::Update { move_path } => {
            let note = move_path.as_ref().map(|to| format!("\n\nMoved to: {to}")).unwrap_or_default();
            let diff = change.diff.strip_suffix(note.as_str()).unwrap_or(&change.diff);
            json!({ "type": "update", "unified_diff": diff, "move_path": move_path })
        }
    };
    (change.path.clone(), json)
}

fn search_action(action: Option<&WebSearchAction>, query: &str) -> Value {
    match action {
        Some(WebSearchAction::Search { query, queries }) => {
            json!({ "type": "search", "query": query, "queries": queries })
        }
        Some(WebSearchAction::OpenPage { url }) => json!({ "type": "open_page", "url": url }),
        Some(WebSearchAction::FindInPage { url, pattern }) => {
            json!({ "type": "find_in_page", "url": url, "pattern": pattern })
        }
        Some(WebSearchAction::Other) => json!({ "type": "other" }),
        None => json!({ "type": "search", "query": query }),
    }
}

fn duration(duration_ms: Option<i64>) -> Value {
    let ms = duration_ms.unwrap_or(0).max(0);
    json!({ "secs": ms / 1_000, "nanos": ms % 1_000 * 1_000_000 })
}

/// The words of a shell-quoted line; an invalid line is a single word.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut in_word) = (Vec::new(), String::new(), false);
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\'' | '"' => {
                in_word = true;
                let mut is_closed = false;
                while let Some(inner) = letters.next() {
                    match inner {
                        inner if inner == letter => {
                            is_closed = true;
                            break;
                        }
                        '\\' if letter == '"' => word.extend(letters.next()),
                        inner => word.push(inner),
                    }
                }
                if !is_closed {
                    return vec![line.to_owned()];
                }
            }
            '\\' => {
                in_word = true;
                word.extend(letters.next());
            }
            ' ' | '\t' | '\n' => {
                if std::mem::take(&mut in_word) {
                    words.push(std::mem::take(&mut word));
                }
            }
            letter => {
                in_word = true;
                word.push(letter);
            }
        }
    }
    words.extend(in_word.then_some(word));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_line_becomes_its_words() {
        assert_eq!(words("/bin/bash -lc 'echo hi'"), ["/bin/bash", "-lc", "echo hi"]);
        assert_eq!(words(r#"a "b \" c" '' d\ e"#), ["a", "b \" c", "", "d e"]);
        assert_eq!(words("it's"), ["it's"]);
        assert_eq!(words("'it'\\''s'"), ["it's"]);
    }
}
