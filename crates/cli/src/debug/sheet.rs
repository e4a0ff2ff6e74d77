//! A described request on paper: its pieces with their names, roles and sizes, for people and for programs.

use std::fmt::Write as _;

use protocol::{PromptPiece, PromptPieces};
use runtime::PromptDescription;
use serde_json::{Value, json};

use crate::terminal::{Paint, TextStyle, clean};

/// How much of a text is shown on its line.
const SHOWN: usize = 60;

/// The pieces in the order the model reads them.
#[derive(Debug)]
pub(super) struct Sheet {
    /// Facts for the heading.
    facts: Vec<(&'static str, Value)>,
    chapters: [Chapter; 4],
}

#[derive(Debug)]
struct Chapter {
    /// In JSON.
    key: &'static str,
    /// For people.
    title: &'static str,
    pieces: Vec<PromptPiece>,
}

impl Chapter {
    fn tokens(&self) -> i64 {
        self.pieces.iter().map(|piece| piece.tokens).sum()
    }
}

impl Sheet {
    pub(super) fn of(described: &PromptDescription) -> Self {
        let facts = vec![
            ("thread", json!(described.thread_id)),
            ("model", json!(described.model)),
            ("modelProvider", json!(described.model_provider)),
            ("cwd", json!(described.cwd)),
            ("contextWindow", json!(described.context_window)),
        ];
        let PromptPieces { instructions, tools, history, next } = described.pieces();
        let chapter = |key, title, pieces| Chapter { key, title, pieces };
        let chapters = [
            chapter("instructions", "Base instructions", instructions),
            chapter("tools", "Tools", tools),
            chapter("history", "History", history),
            chapter("next", "Added next, before the user's words", next),
        ];
        Self { facts, chapters }
    }

    fn tokens(&self) -> i64 {
        self.chapters.iter().map(Chapter::tokens).sum()
    }

    /// Every text whole.
    pub(super) fn json(&self) -> Value {
        let mut document = json!({});
        for (key, value) in &self.facts {
            document[*key] = value.clone();
        }
        let mut tokens = json!({});
        for chapter in &self.chapters {
            let pieces = chapter.pieces.iter().map(|piece| {
                json!({
                    "name": piece.name, "role": piece.role, "bytes": piece.bytes,
                    "tokens": piece.tokens, "text": piece.text,
                })
            });
            document[chapter.key] = pieces.collect();
            tokens[chapter.key] = chapter.tokens().into();
        }
        tokens["total"] = self.tokens().into();
        document["tokens"] = tokens;
        document
    }

    /// One line for each piece; with `full`, its text below it.
    pub(super) fn text(&self, paint: Paint, full: bool) -> String {
        let mut text = String::new();
        for (key, value) in &self.facts {
            let value = match value {
                Value::Null if *key == "thread" => "new".to_owned(),
                Value::Null => "unknown".to_owned(),
                Value::String(value) => clean(value).into_owned(),
                other => other.to_string(),
            };
            let _ = writeln!(text, "{} {value}", paint.text(TextStyle::Faint, format!("{:<14}", label(key))));
        }
        let width = self.chapters.iter().flat_map(|chapter| &chapter.pieces);
        let width = width.map(|piece| piece.name.chars().count()).max().unwrap_or(0);
        for chapter in &self.chapters {
            if chapter.pieces.is_empty() {
                continue;
            }
            let _ = writeln!(text, "\n{}", paint.text(TextStyle::Strong, chapter.title));
            for piece in &chapter.pieces {
                let line = line(piece, width);
                let _ = writeln!(text, "{}", line.trim_end());
                if full {
                    text.push_str(&indented(&piece.text));
                }
            }
        }
        let _ = writeln!(text, "\n{}", paint.text(TextStyle::Strong, "Tokens, about"));
        for chapter in &self.chapters {
            let _ = writeln!(text, "  {:<14} {:>9}", chapter.key, chapter.tokens());
        }
        let _ = writeln!(text, "  {:<14} {:>9}", "total", self.tokens());
        text
    }
}

fn label(key: &str) -> &str {
    match key {
        "modelProvider" => "provider",
        "cwd" => "folder",
        "contextWindow" => "context window",
        other => other,
    }
}

fn line(piece: &PromptPiece, width: usize) -> String {
    let PromptPiece { role, bytes, tokens, .. } = piece;
    let name = clean(&piece.name);
    let shown = if piece.is_message { shortened(&piece.text) } else { String::new() };
    format!("  {role:<9} {name:<width$}  {bytes:>8} bytes  {tokens:>7} tokens  {shown}")
}

/// The beginning of a text, on one line.
fn shortened(text: &str) -> String {
    let line = clean(text).split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

fn indented(text: &str) -> String {
    let mut indented = String::new();
    for line in text.trim_end().lines() {
        let line = clean(line);
        indented.push_str(if line.is_empty() { "" } else { "      " });
        indented.push_str(&line);
        indented.push('\n');
    }
    indented.push('\n');
    indented
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use protocol::{ResponseItem, ThreadId};
    use runtime::PromptSection;

    use super::*;
    use crate::terminal::Color;

    fn item(value: Value) -> Arc<ResponseItem> {
        Arc::new(serde_json::from_value(value).expect("an item"))
    }

    fn message(role: &str, text: &str) -> Arc<ResponseItem> {
        let kind = if role == "assistant" { "output_text" } else { "input_text" };
        item(json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]}))
    }

    fn sheet() -> Sheet {
        let section = |name: &str, text: &str| PromptSection { name: name.into(), text: text.into() };
        let call =
            json!({"type": "function_call", "call_id": "c", "name": "look", "arguments": "{\"at\":1}"});
        let output = json!({"type": "function_call_output", "call_id": "c", "output": "seen\u{1b}[2J"});
        Sheet::of(&PromptDescription {
            thread_id: Some(ThreadId::new("t")),
            model: "m".into(),
            model_provider: "p".into(),
            cwd: "/w".into(),
            context_window: Some(1_000),
            instructions: vec![section("core", "Work well."), section("look", "Look first.")],
            tools: vec![Arc::new(json!({"name": "look"})), Arc::new(json!({"type": "web_search"}))],
            history: vec![
                message("user", "<environment_context>\n</environment_context>"),
                message("user", "hello\nthere"),
                item(call),
                item(output),
                message("assistant", &"long ".repeat(40)),
            ],
            next: Vec::new(),
        })
    }

    #[test]
    fn every_piece_has_its_line() {
        let text = sheet().text(Paint::choose(Color::Never, false), false);
        let lines: Vec<String> =
            text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        for expected in [
            "thread t",
            "context window 1000",
            "system core 10 bytes 3 tokens",
            "tool web_search 21 bytes 6 tokens",
            "user environment 44 bytes 11 tokens",
            "user message 11 bytes 3 tokens hello there",
            "assistant call look 8 bytes 2 tokens {\"at\":1}",
            "tool output 8 bytes 2 tokens seen[2J",
            "total 84",
        ] {
            assert!(lines.iter().any(|line| line == expected), "{expected}\n{text}");
        }
        assert!(!text.contains("Added next") && !text.contains("Work well."), "{text}");
        assert!(lines.iter().any(|line| line.ends_with("long…") || line.contains("long long")), "{text}");
    }

    #[test]
    fn texts_are_whole_when_asked_for() {
        let text = sheet().text(Paint::choose(Color::Never, false), true);
        assert!(text.contains("      Work well.\n") && text.contains("      hello\n      there\n"), "{text}");
        let document = sheet().json();
        assert_eq!(document["instructions"][1]["text"], "Look first.");
        assert_eq!(document["history"][0]["name"], "environment");
        assert_eq!((&document["thread"], &document["next"]), (&json!("t"), &json!([])));
        assert_eq!(document["tokens"]["total"], 84);
    }
}
