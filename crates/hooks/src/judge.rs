//! The verdict of a run, from its exit code and output only.

use protocol::{HookEventName, HookOutputEntry, HookOutputEntryKind as Kind, HookRunStatus as Status};
use serde::Deserialize;
use serde_json::Value;

/// Limit of one run's text for the model.
const MAX_TEXT: usize = 16 * 1024;

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookEnd {
    Exited(i32),
    /// After this many seconds.
    TimedOut(u64),
    /// It could not be started, or was lost.
    Failed(String),
}

/// The exit code and output of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookRunOutput {
    pub end: HookEnd,
    pub stdout: String,
    pub stderr: String,
    /// Its output was cut.
    pub is_cut: bool,
}

/// The verdict.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgedRun {
    pub status: Status,
    pub entries: Vec<HookOutputEntry>,
    /// Why it blocked or stopped, for the model.
    pub reason: Option<String>,
    /// Context for the model.
    pub context: Option<String>,
}

impl JudgedRun {
    fn new(status: Status) -> Self {
        Self { status, entries: Vec::new(), reason: None, context: None }
    }

    /// The turn continues as if it had not run.
    fn failed(problem: impl Into<String>) -> Self {
        Self::new(Status::Failed).with(Kind::Error, problem.into())
    }

    fn blocked(reason: String) -> Self {
        Self { reason: Some(reason.clone()), ..Self::new(Status::Blocked) }.with(Kind::Feedback, reason)
    }

    fn stopped(reason: String) -> Self {
        Self { reason: Some(reason.clone()), ..Self::new(Status::Stopped) }.with(Kind::Stop, reason)
    }

    fn with(mut self, kind: Kind, text: String) -> Self {
        self.entries.push(HookOutputEntry { kind, text });
        self
    }

    fn with_context(mut self, text: Option<String>) -> Self {
        let text = text.map(|text| shorten(text.trim())).filter(|text| !text.is_empty());
        if let Some(text) = text {
            self.entries.push(HookOutputEntry { kind: Kind::Context, text: text.clone() });
            self.context = Some(text);
        }
        self
    }
}

/// An unknown key makes the whole output invalid: ignoring it silently would be misleading.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct HookWords {
    #[serde(rename = "continue")]
    goes_on: Option<bool>,
    stop_reason: Option<String>,
    suppress_output: Option<bool>,
    system_message: Option<String>,
    decision: Option<String>,
    reason: Option<String>,
    #[serde(default)]
    hook_specific_output: Option<EventWords>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct EventWords {
    #[serde(rename = "hookEventName")]
    event: Option<String>,
    additional_context: Option<String>,
    permission_decision: Option<String>,
    permission_decision_reason: Option<String>,
    updated_input: Option<Value>,
    #[serde(rename = "updatedMCPToolOutput")]
    updated_mcp_tool_output: Option<Value>,
}

/// The verdict of a run at this event.
pub fn judge(event: HookEventName, output: &HookRunOutput) -> JudgedRun {
    let stderr = output.stderr.trim();
    match &output.end {
        HookEnd::Failed(problem) => JudgedRun::failed(format!("the hook could not run: {problem}")),
        HookEnd::TimedOut(seconds) => {
            JudgedRun::failed(format!("the hook ran out of time after {seconds} s"))
        }
        HookEnd::Exited(0) => judge_words(event, output),
        HookEnd::Exited(2) if event == HookEventName::SessionStart => {
            JudgedRun::failed("the hook exited with code 2, which blocks nothing at the start of a session")
        }
        HookEnd::Exited(2) if stderr.is_empty() => {
            JudgedRun::failed("the hook exited with code 2 and said no reason on its standard error")
        }
        HookEnd::Exited(2) => JudgedRun::blocked(shorten(stderr)),
        HookEnd::Exited(code) => {
            let first = stderr.lines().next().unwrap_or_default();
            let separator = if first.is_empty() { "" } else { ": " };
            JudgedRun::failed(format!("the hook exited with code {code}{separator}{}", shorten(first)))
        }
    }
}

fn judge_words(event: HookEventName, output: &HookRunOutput) -> JudgedRun {
    let words = output.stdout.trim();
    if words.is_empty() {
        return JudgedRun::new(Status::Completed);
    }
    if words.starts_with(['{', '[']) {
        if output.is_cut {
            return JudgedRun::failed("the hook said more than is kept, so its JSON is not whole");
        }
        return match serde_json::from_str::<HookWords>(words) {
            Ok(said) => judge_said(event, said),
            Err(error) => JudgedRun::failed(format!("what the hook said is not valid: {error}")),
        };
    }
    match event {
        HookEventName::SessionStart | HookEventName::UserPromptSubmit => {
            JudgedRun::new(Status::Completed).with_context(Some(words.to_owned()))
        }
        HookEventName::PreToolUse | HookEventName::PostToolUse => JudgedRun::new(Status::Completed),
        HookEventName::Stop => JudgedRun::failed("what the hook said is no JSON"),
    }
}

fn judge_said(event: HookEventName, said: HookWords) -> JudgedRun {
    let warning = said.system_message.clone();
    let mut judged = match unsupported(event, &said) {
        Some(key) => JudgedRun::failed(format!("`{key}` is not supported here")),
        None => decide(event, said),
    };
    if let Some(text) = warning.filter(|text| !text.trim().is_empty()) {
        judged.entries.insert(0, HookOutputEntry { kind: Kind::Warning, text: shorten(&text) });
    }
    judged
}

/// A requested effect that is not supported.
fn unsupported(event: HookEventName, said: &HookWords) -> Option<&'static str> {
    let own = said.hook_specific_output.as_ref();
    let permission = own.and_then(|own| own.permission_decision.as_deref());
    let decision = said.decision.as_deref();
    let before = event == HookEventName::PreToolUse;
    let after = event == HookEventName::PostToolUse;
    let checks = [
        (before && said.goes_on == Some(false), "continue"),
        (before && said.stop_reason.is_some(), "stopReason"),
        ((before || after) && said.suppress_output.is_some(), "suppressOutput"),
        (before && own.is_some_and(|own| own.additional_context.is_some()), "additionalContext"),
        (own.is_some_and(|own| own.updated_input.is_some()), "updatedInput"),
        (own.is_some_and(|own| own.updated_mcp_tool_output.is_some()), "updatedMCPToolOutput"),
        (permission.is_some_and(|permission| !before || permission != "deny"), "permissionDecision"),
        (decision.is_some_and(|decision| decision != "block"), "decision"),
        (decision.is_some() && event == HookEventName::SessionStart, "decision"),
    ];
    checks.into_iter().find(|(is_asked, _)| *is_asked).map(|(_, key)| key)
}

fn decide(event: HookEventName, said: HookWords) -> JudgedRun {
    let own = said.hook_specific_output.unwrap_or_default();
    if let Some(named) = own.event.filter(|named| named != crate::definition::word(event)) {
        return JudgedRun::failed(format!("hookEventName is `{named}`, which is another event"));
    }
    let text = |text: Option<String>| text.map(|text| shorten(text.trim())).filter(|text| !text.is_empty());
    let reason = text(said.reason);
    if said.goes_on == Some(false) {
        let reason = text(said.stop_reason).or(reason).unwrap_or_else(|| "a hook stopped it".to_owned());
        return JudgedRun::stopped(reason).with_context(own.additional_context);
    }
    let blocks = said.decision.is_some();
    let denies = own.permission_decision.is_some();
    let reason = if denies { text(own.permission_decision_reason).or(reason) } else { reason };
    match (blocks || denies, reason) {
        (false, _) => JudgedRun::new(Status::Completed).with_context(own.additional_context),
        (true, Some(reason)) => JudgedRun::blocked(reason).with_context(own.additional_context),
        (true, None) => JudgedRun::failed("the hook blocks without a reason: say one in `reason`"),
    }
}

fn shorten(text: &str) -> String {
    if text.len() <= MAX_TEXT {
        return text.to_owned();
    }
    let end = (0..=MAX_TEXT).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    format!("{}… (cut)", &text[..end])
}

#[cfg(test)]
mod tests {
    use HookEventName::{PostToolUse, PreToolUse, SessionStart, Stop, UserPromptSubmit};

    use super::*;

    fn run(event: HookEventName, code: i32, stdout: &str, stderr: &str) -> JudgedRun {
        let end = HookEnd::Exited(code);
        let (stdout, stderr) = (stdout.to_owned(), stderr.to_owned());
        judge(event, &HookRunOutput { end, stdout, stderr, is_cut: false })
    }

    /// The status, the reason and the context.
    #[track_caller]
    fn check(event: HookEventName, code: i32, stdout: &str, expected: (Status, Option<&str>, Option<&str>)) {
        let judged = run(event, code, stdout, "why\n");
        let found = (judged.status, judged.reason.as_deref(), judged.context.as_deref());
        assert_eq!(found, expected, "{event:?} {code} {stdout}: {:?}", judged.entries);
    }

    #[test]
    fn exit_codes() {
        use Status::{Blocked, Completed, Failed};
        for event in [UserPromptSubmit, PreToolUse, PostToolUse, Stop] {
            check(event, 2, "", (Blocked, Some("why"), None));
        }
        check(SessionStart, 2, "", (Failed, None, None));
        for event in [SessionStart, UserPromptSubmit, PreToolUse, PostToolUse, Stop] {
            check(event, 1, "{\"decision\":\"block\",\"reason\":\"r\"}", (Failed, None, None));
            check(event, 0, " \n", (Completed, None, None));
            check(event, 0, "{ not json", (Failed, None, None));
            check(event, 0, "[1]", (Failed, None, None));
            check(event, 0, "{\"unknown\":1}", (Failed, None, None));
            check(event, 0, "{}", (Completed, None, None));
            assert_eq!(run(event, 2, "", " ").status, Failed);
        }
    }

    #[test]
    fn texts_and_decisions() {
        use Status::{Blocked, Completed, Failed, Stopped};
        check(SessionStart, 0, "know this", (Completed, None, Some("know this")));
        check(UserPromptSubmit, 0, "know this", (Completed, None, Some("know this")));
        check(PreToolUse, 0, "chatter", (Completed, None, None));
        check(Stop, 0, "chatter", (Failed, None, None));
        let block = r#"{"decision":"block","reason":"no"}"#;
        for event in [UserPromptSubmit, PreToolUse, PostToolUse, Stop] {
            check(event, 0, block, (Blocked, Some("no"), None));
            check(event, 0, r#"{"decision":"block"}"#, (Failed, None, None));
        }
        check(SessionStart, 0, block, (Failed, None, None));
        let stop = r#"{"continue":false,"stopReason":"enough"}"#;
        for event in [SessionStart, UserPromptSubmit, PostToolUse, Stop] {
            check(event, 0, stop, (Stopped, Some("enough"), None));
        }
        check(PreToolUse, 0, stop, (Failed, None, None));
        let context = |name: &str| {
            format!(r#"{{"hookSpecificOutput":{{"hookEventName":"{name}","additionalContext":"c"}}}}"#)
        };
        check(PostToolUse, 0, &context("PostToolUse"), (Completed, None, Some("c")));
        check(PostToolUse, 0, &context("Stop"), (Failed, None, None));
        check(PreToolUse, 0, &context("PreToolUse"), (Failed, None, None));
        let permission = |word: &str| {
            format!(
                r#"{{"hookSpecificOutput":{{"permissionDecision":"{word}","permissionDecisionReason":"p"}}}}"#
            )
        };
        check(PreToolUse, 0, &permission("deny"), (Blocked, Some("p"), None));
        check(PreToolUse, 0, &permission("allow"), (Failed, None, None));
        check(PostToolUse, 0, &permission("deny"), (Failed, None, None));
    }

    #[test]
    fn texts_of_a_hook_are_limited_in_whole_characters() {
        let judged = run(UserPromptSubmit, 0, &"ä".repeat(MAX_TEXT), "");
        assert!(judged.context.is_some_and(|text| text.len() < MAX_TEXT + 20 && text.ends_with("(cut)")));
        let cut = HookRunOutput {
            end: HookEnd::Exited(0),
            stdout: "{\"decision\":\"block\",\"reason\":\"r\"}".to_owned(),
            stderr: String::new(),
            is_cut: true,
        };
        assert_eq!(judge(Stop, &cut).status, Status::Failed);
        let warned = run(Stop, 0, r#"{"systemMessage":"careful"}"#, "");
        assert_eq!(warned.entries[0].kind, Kind::Warning);
    }
}
