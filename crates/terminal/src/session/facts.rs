//! Facts about the thread and its turn, for the status line.

use std::time::Duration;

use serde_json::Value;

use super::{TerminalState, ThreadChoices};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OpenThread {
    pub(super) id: String,
    pub(super) name: Option<String>,
    pub(super) model: String,
    pub(super) provider: String,
    pub(super) folder: String,
    pub(super) approvals: String,
    pub(super) sandbox: String,
    /// There is something to go on with.
    pub(super) has_turns: bool,
}

impl OpenThread {
    /// From the answer to `thread/start` and `thread/resume`.
    pub(super) fn read(answer: &Value) -> Option<Self> {
        let thread = &answer["thread"];
        Some(Self {
            id: thread["id"].as_str()?.to_owned(),
            name: thread["name"].as_str().map(str::to_owned),
            model: text(&answer["model"]),
            provider: text(&answer["modelProvider"]),
            folder: text(&answer["cwd"]),
            approvals: match &answer["approvalPolicy"] {
                Value::String(word) => word.clone(),
                Value::Object(kinds) => kinds.keys().next().cloned().unwrap_or_default(),
                _ => String::new(),
            },
            sandbox: sandbox_word(&text(&answer["sandbox"]["type"])).to_owned(),
            has_turns: thread["turns"].as_array().is_some_and(|turns| !turns.is_empty()),
        })
    }

    /// Takes over what is chosen for the next turn.
    pub(super) fn choose(&mut self, choices: &ThreadChoices) {
        let chosen = [
            (&mut self.model, &choices.model),
            (&mut self.approvals, &choices.approvals),
            (&mut self.sandbox, &choices.sandbox),
        ];
        for (field, chosen) in chosen {
            if let Some(chosen) = chosen {
                field.clone_from(chosen);
            }
        }
    }

    /// Enough to tell it from others.
    pub(super) fn short_id(&self) -> &str {
        short_id(&self.id)
    }
}

/// The first two groups: ids begin with the time, and the first group alone stays the same for a minute.
pub(super) fn short_id(id: &str) -> &str {
    id.get(..13).unwrap_or(id)
}

fn sandbox_word(kind: &str) -> &str {
    match kind {
        "readOnly" => "read-only",
        "workspaceWrite" => "workspace-write",
        "dangerFullAccess" => "danger-full-access",
        "externalSandbox" => "external-sandbox",
        other => other,
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RunningTurn {
    /// None until the server has told it.
    pub(super) id: Option<String>,
    pub(super) began: Duration,
    pub(super) is_stopping: bool,
}

/// Tokens and money.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Spending {
    pub(super) input: i64,
    pub(super) output: i64,
    /// Tokens of the last request, and how many the model takes.
    pub(super) last: i64,
    pub(super) window: Option<i64>,
    pub(super) cost: Option<f64>,
}

impl Spending {
    pub(super) fn update(&mut self, usage: &Value) {
        let number = |value: &Value| value.as_i64().unwrap_or_default();
        self.input = number(&usage["total"]["inputTokens"]);
        self.output = number(&usage["total"]["outputTokens"]);
        self.last = number(&usage["last"]["totalTokens"]);
        self.window = usage["modelContextWindow"].as_i64().filter(|window| *window > 0).or(self.window);
    }

    /// In percent.
    pub(super) fn context_left(&self) -> Option<i64> {
        let window = self.window?;
        Some((100 * (window - self.last) / window).clamp(0, 100))
    }

    pub(super) fn money(&self) -> Option<String> {
        self.cost.map(|cost| if cost < 0.1 { format!("${cost:.4}") } else { format!("${cost:.2}") })
    }
}

impl TerminalState {
    /// Of the thread; before there is one, the user's.
    pub(super) fn folder(&self) -> String {
        self.thread.as_ref().map_or_else(|| self.options.folder.clone(), |thread| thread.folder.clone())
    }

    /// Thread and turn that can be stopped or steered.
    pub(super) fn running(&self) -> Option<(String, String)> {
        let thread = self.thread.as_ref()?.id.clone();
        Some((thread, self.turn.as_ref()?.id.clone()?))
    }

    /// The id of the thread; before there is one, nothing.
    pub(super) fn own_id(&self) -> String {
        self.thread.as_ref().map(|thread| thread.id.clone()).unwrap_or_default()
    }

    pub(super) fn is_ours(&self, thread: &Value) -> bool {
        self.thread.as_ref().is_some_and(|ours| thread.as_str() == Some(&ours.id))
    }
}

pub(super) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// In a few characters.
pub(super) fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
    }
}

/// As a person would say it.
pub(super) fn span(milliseconds: i64) -> String {
    match milliseconds {
        ..1_000 => format!("{milliseconds} ms"),
        1_000..60_000 => format!("{}.{} s", milliseconds / 1_000, milliseconds % 1_000 / 100),
        _ => format!("{} min {} s", milliseconds / 60_000, milliseconds % 60_000 / 1_000),
    }
}

pub(super) fn thousands(count: i64) -> String {
    match count {
        ..1_000 => count.to_string(),
        1_000..1_000_000 => format!("{}.{}k", count / 1_000, count % 1_000 / 100),
        _ => format!("{}.{}M", count / 1_000_000, count % 1_000_000 / 100_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(
            [0, 59, 61, 3_700].map(|all| clock(Duration::from_secs(all))),
            ["0s", "59s", "1m01s", "1h01m"]
        );
        assert_eq!([5, 1_500, 61_000].map(span), ["5 ms", "1.5 s", "1 min 1 s"]);
        assert_eq!([5, 1_500, 2_100_000].map(thousands), ["5", "1.5k", "2.1M"]);
    }

    #[test]
    fn the_context_is_never_less_than_empty() {
        let left = |last, window| Spending { last, window, ..Spending::default() }.context_left();
        assert_eq!(left(25, Some(100)), Some(75));
        assert_eq!(left(250, Some(100)), Some(0));
        assert_eq!(left(1, None), None);
    }
}
