//! A thread as text for the extraction: messages and actions, without the model's context. Pure.

use protocol::{ThreadItem, Turn, UserInput};

/// Limit of one item.
const MOST_ITEM_BYTES: usize = 4 << 10;
/// Limit of a thread. Its middle is left out beyond that.
const MOST_BYTES: usize = 192 << 10;
const LEFT_OUT: &str = "\n[… left out …]\n";

/// Whether the thread may contain external content: results of MCP servers or web searches.
pub(crate) fn has_foreign_results(turns: &[Turn]) -> bool {
    let is_foreign =
        |item: &ThreadItem| matches!(item, ThreadItem::McpToolCall { .. } | ThreadItem::WebSearch { .. });
    turns.iter().flat_map(|turn| &turn.items).any(is_foreign)
}

/// `None` for a thread without messages.
pub(crate) fn transcript(turns: &[Turn]) -> Option<String> {
    let items = turns.iter().flat_map(|turn| &turn.items);
    let is_said = |item: &ThreadItem| matches!(item, ThreadItem::UserMessage { .. });
    items.clone().any(is_said).then(|| {
        let mut text = String::new();
        for (heading, body) in items.filter_map(shown) {
            text.push_str(&format!("## {heading}\n{}\n\n", shortened(&body, MOST_ITEM_BYTES)));
        }
        shortened(&text, MOST_BYTES)
    })
}

fn shown(item: &ThreadItem) -> Option<(String, String)> {
    let (heading, body) = match item {
        ThreadItem::UserMessage { content, .. } => {
            let texts = content.iter().filter_map(|part| match part {
                UserInput::Text { text, .. } => Some(text.as_str()),
                _ => None,
            });
            ("user".to_owned(), texts.collect::<Vec<_>>().join("\n"))
        }
        ThreadItem::AgentMessage { text, .. } => ("agent".to_owned(), text.clone()),
        ThreadItem::Plan { text, .. } => ("plan".to_owned(), text.clone()),
        ThreadItem::CommandExecution { command, aggregated_output, exit_code, .. } => {
            let code =
                exit_code.map_or_else(|| "no exit code".to_owned(), |code| format!("exit code {code}"));
            let output = aggregated_output.as_deref().unwrap_or_default();
            (format!("command, {code}"), format!("{command}\n{output}"))
        }
        ThreadItem::FileChange { changes, .. } => {
            let paths = changes.iter().map(|change| change.path.to_string());
            ("changed files".to_owned(), paths.collect::<Vec<_>>().join("\n"))
        }
        ThreadItem::McpToolCall { server, tool, .. } => {
            ("call of an MCP tool".to_owned(), format!("{server} {tool}"))
        }
        ThreadItem::WebSearch { query, .. } => ("web search".to_owned(), query.clone()),
        _ => return None,
    };
    (!body.trim().is_empty()).then_some((heading, body))
}

/// The beginning and the end of a text that is too long.
fn shortened(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(most / 3);
    let tail = text.ceil_char_boundary(text.len() - (most - most / 3));
    format!("{}{LEFT_OUT}{}", &text[..head], &text[tail..])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn turns(items: &serde_json::Value) -> Vec<Turn> {
        let turn = json!([{ "id": "t", "items": items, "status": "completed", "error": null }]);
        protocol::from_value(&turn).expect("turns")
    }

    fn user(text: &str) -> serde_json::Value {
        json!({ "type": "userMessage", "id": "u", "content": [{ "type": "text", "text": text }] })
    }

    #[test]
    fn what_was_said_and_done_is_there() {
        let turns = turns(&json!([
            user("build it"),
            { "type": "reasoning", "id": "r", "summary": ["secret thought"], "content": [] },
            { "type": "commandExecution", "id": "c", "command": "make", "cwd": "/w", "processId": null,
              "status": "completed", "commandActions": [], "aggregatedOutput": "ok", "exitCode": 0,
              "durationMs": 1 },
            { "type": "agentMessage", "id": "a", "text": "Built.", "phase": null, "memoryCitation": null },
        ]));
        let text = transcript(&turns).expect("something");
        assert_eq!(text, "## user\nbuild it\n\n## command, exit code 0\nmake\nok\n\n## agent\nBuilt.\n\n");
        assert!(!has_foreign_results(&turns));
    }

    #[test]
    fn a_silent_thread_has_none_and_foreign_results_are_found() {
        let search = json!([{ "type": "webSearch", "id": "w", "query": "q", "action": null }]);
        assert_eq!(transcript(&turns(&search)), None);
        assert!(has_foreign_results(&turns(&search)));
    }

    #[test]
    fn a_long_thread_keeps_its_beginning_and_its_end() {
        let long = user(&"é".repeat(MOST_ITEM_BYTES));
        let mut items = vec![user("first")];
        items.extend(std::iter::repeat_n(long, 100));
        items.push(user("last"));
        let text = transcript(&turns(&json!(items))).expect("something");
        assert!(text.len() <= MOST_BYTES + LEFT_OUT.len(), "{}", text.len());
        assert!(text.starts_with("## user\nfirst\n") && text.ends_with("## user\nlast\n\n"));
    }
}
