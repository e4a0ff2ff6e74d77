//! The summary of a thread, without its turns. The same fold is used for reading a file and for appended records, so
//! the index cannot diverge from the journals.

use protocol::{
    ContentItem, GitInfo, ReasoningEffort, ResponseItem, RolloutRecord, SessionMeta, SessionSource, ThreadId,
    ThreadItem, ThreadMetadataChange, UserInput,
};
use serde::Deserialize;
use serde_json::Value;

/// Editors put context before the user's message; this line separates the two.
const REQUEST_MARKER: &str = "## My request for Codex:";
/// The preview of a first message without text.
const IMAGE_PREVIEW: &str = "[Image]";
/// The limit of a preview.
const MAX_PREVIEW: usize = 10_000;

/// A thread's facts for lists. A field that no valid record sets is unset.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Summary {
    pub thread_id: Option<ThreadId>,
    pub session_id: Option<String>,
    pub created_at_ms: i64,
    pub updated_at_ms: i64,
    /// The user's first message. Searches look here.
    pub preview: Option<String>,
    pub name: Option<String>,
    pub cwd: Option<String>,
    pub originator: Option<String>,
    pub cli_version: Option<String>,
    pub source: Option<SessionSource>,
    pub thread_source: Option<String>,
    pub model_provider: Option<String>,
    pub model: Option<String>,
    pub reasoning_effort: Option<ReasoningEffort>,
    pub git_info: Option<GitInfo>,
    pub agent_nickname: Option<String>,
    pub agent_role: Option<String>,
    pub forked_from_id: Option<ThreadId>,
    /// All tokens used so far.
    pub tokens: Option<i64>,
}

/// The change of one record to a [`Summary`].
#[derive(Debug, Clone)]
pub(crate) enum Fact {
    Identity(Box<Summary>),
    UserMessage(String),
    Settings {
        model: Option<String>,
        reasoning_effort: Option<ReasoningEffort>,
    },
    Tokens(i64),
    Changed(Box<ThreadMetadataChange>),
    /// Only the time matters.
    Activity,
}

impl Fact {
    pub(crate) fn of(record: &RolloutRecord) -> Self {
        match record {
            RolloutRecord::SessionMeta { meta } => Self::Identity(Box::new(identity(meta))),
            RolloutRecord::ThreadItem { item: ThreadItem::UserMessage { content, .. }, .. } => {
                Self::UserMessage(preview(content))
            }
            // A history without turns starts with a user message too.
            RolloutRecord::ResponseItem {
                turn_id: None,
                item: ResponseItem::Message { role, content, .. },
            } if role == "user" => Self::UserMessage(spoken(content)),
            RolloutRecord::TurnContext { context, .. } => {
                Self::Settings { model: field(context, "model"), reasoning_effort: field(context, "effort") }
            }
            RolloutRecord::TokenUsage { usage, .. } => Self::Tokens(usage.total.total_tokens),
            RolloutRecord::Metadata { change } => Self::Changed(Box::new(change.clone())),
            RolloutRecord::TurnStarted { .. }
            | RolloutRecord::ResponseItem { .. }
            | RolloutRecord::ThreadItem { .. }
            | RolloutRecord::Compacted { .. }
            | RolloutRecord::RolledBack { .. }
            | RolloutRecord::TurnEnded { .. }
            | RolloutRecord::Operation { .. } => Self::Activity,
        }
    }
}

/// The first text of a person: context from programs is in tags, or under its own heading.
fn spoken(content: &[ContentItem]) -> String {
    let text = content.iter().find_map(|part| match part {
        ContentItem::InputText { text } => Some(text.trim()),
        _ => None,
    });
    let is_context = |text: &str| text.starts_with('<') || text.starts_with("# AGENTS.md");
    text.filter(|text| !is_context(text)).map(shortened).unwrap_or_default()
}

impl Summary {
    pub(crate) fn of_thread(thread_id: Option<ThreadId>) -> Self {
        Self { thread_id, ..Self::default() }
    }

    pub(crate) fn apply(&mut self, fact: Fact, at_ms: i64) {
        // Renaming is not work on the thread. But an empty change marks its return from the archive.
        let is_edit = matches!(&fact, Fact::Changed(change) if **change != ThreadMetadataChange::default());
        if !is_edit {
            self.updated_at_ms = self.updated_at_ms.max(at_ms);
        }
        if self.created_at_ms == 0 {
            self.created_at_ms = at_ms;
        }
        match fact {
            Fact::Identity(identity) => self.identify(*identity),
            Fact::UserMessage(text) => {
                if !text.is_empty() {
                    self.preview.get_or_insert(text);
                }
            }
            Fact::Settings { model, reasoning_effort } => {
                self.model = model.or(self.model.take());
                self.reasoning_effort = reasoning_effort;
            }
            Fact::Tokens(total) => self.tokens = Some(total),
            Fact::Changed(change) => self.change(*change),
            Fact::Activity => {}
        }
    }

    pub(crate) fn is_identified(&self) -> bool {
        self.session_id.is_some()
    }

    /// The first identity counts: a fork may contain its source's too.
    fn identify(&mut self, identity: Summary) {
        let is_other = self.thread_id.is_some() && self.thread_id != identity.thread_id;
        if self.is_identified() || is_other {
            return;
        }
        // Other known fields come from records after the identity.
        *self = Self {
            updated_at_ms: self.updated_at_ms,
            preview: self.preview.take(),
            name: self.name.take(),
            model: self.model.take().or(identity.model),
            reasoning_effort: self.reasoning_effort.take(),
            git_info: self.git_info.take().or(identity.git_info),
            tokens: self.tokens,
            ..identity
        };
    }

    fn change(&mut self, change: ThreadMetadataChange) {
        self.name = change.name.apply(self.name.take());
        self.git_info = change.git_info.apply(self.git_info.take());
        self.model = change.model.apply(self.model.take());
        self.reasoning_effort = change.reasoning_effort.apply(self.reasoning_effort.take());
    }

    /// Keeps earlier facts that a damaged file no longer contains.
    pub(crate) fn fill_from(&mut self, before: &Summary) {
        if self.is_identified() {
            return;
        }
        let before = before.clone();
        *self = Self {
            updated_at_ms: self.updated_at_ms.max(before.updated_at_ms),
            preview: self.preview.take().or(before.preview),
            name: self.name.take().or(before.name),
            model: self.model.take().or(before.model),
            reasoning_effort: self.reasoning_effort.take().or(before.reasoning_effort),
            git_info: self.git_info.take().or(before.git_info),
            tokens: self.tokens.or(before.tokens),
            ..before
        };
    }
}

fn identity(meta: &SessionMeta) -> Summary {
    Summary {
        thread_id: Some(meta.thread_id.clone()),
        session_id: Some(meta.session_id.clone()),
        created_at_ms: meta.created_at_ms,
        cwd: Some(meta.cwd.clone()),
        originator: Some(meta.originator.clone()),
        cli_version: Some(meta.cli_version.clone()),
        source: Some(meta.source.clone()),
        thread_source: meta.thread_source.clone(),
        model_provider: Some(meta.model_provider.clone()),
        model: meta.model.clone(),
        git_info: meta.git_info.clone(),
        agent_nickname: meta.agent_nickname.clone(),
        agent_role: meta.agent_role.clone(),
        forked_from_id: meta.forked_from_id.clone(),
        ..Summary::default()
    }
}

/// A field of a turn's settings, which belong to the engine; an unexpected value counts as unset.
fn field<T: for<'de> Deserialize<'de>>(context: &Value, name: &str) -> Option<T> {
    T::deserialize(context.get(name)?).ok()
}

/// The user's text, without context from an editor.
fn preview(content: &[UserInput]) -> String {
    let mut text = String::new();
    let mut has_image = false;
    for input in content {
        match input {
            UserInput::Text { text: part, .. } => text.push_str(part),
            UserInput::Image { .. } | UserInput::LocalImage { .. } => has_image = true,
            UserInput::Skill { .. } | UserInput::Mention { .. } => {}
        }
    }
    let typed = text.split_once(REQUEST_MARKER).map_or(text.as_str(), |(_, typed)| typed).trim();
    match typed {
        "" if has_image => IMAGE_PREVIEW.to_owned(),
        typed => shortened(typed),
    }
}

fn shortened(text: &str) -> String {
    text[..text.floor_char_boundary(MAX_PREVIEW)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(content: &[(&str, &str)], expected: &str) {
        let input = content.iter().map(|(kind, text)| match *kind {
            "text" => UserInput::Text { text: (*text).to_owned(), text_elements: Vec::new() },
            _ => UserInput::Image { url: (*text).to_owned() },
        });
        assert_eq!(preview(&input.collect::<Vec<_>>()), expected);
    }

    #[test]
    fn previews() {
        check(&[("text", "  hello\n")], "hello");
        check(&[("text", "# Files\nx\n## My request for Codex:\nfix it ")], "fix it");
        check(&[("image", "data:")], "[Image]");
        check(&[("image", "data:"), ("text", "what is "), ("text", "this")], "what is this");
        check(&[], "");
        check(&[("text", &"é".repeat(9_000))], &"é".repeat(5_000));
    }
}
