//! Parses hook files into hooks.

use std::path::PathBuf;
use std::time::Duration;

use config::{HookFile, HookOrigin, ResolvedConfig};
use protocol::{HookErrorInfo, HookEventName, HookHandlerType};
use regex_automata::meta::Regex;
use serde::Deserialize;
use serde_json::Value;

/// The default time limit of a run.
const DEFAULT_TIMEOUT_SEC: u64 = 600;
/// The maximum time limit, a day.
const MAX_TIMEOUT_SEC: u64 = 86_400;
/// Limit of all layers together.
const MAX_HOOKS: usize = 100;
/// Limit of an event's groups in one file: each may have a pattern, which takes time to compile.
const MAX_GROUPS: usize = 100;
/// Limit of a compiled pattern.
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// One command, and when it runs.
#[derive(Debug, Clone)]
pub struct Hook {
    pub event: HookEventName,
    /// As written; none matches everything.
    pub matcher: Option<String>,
    pattern: Option<Regex>,
    pub command: String,
    pub timeout: Duration,
    pub status_message: Option<String>,
    pub source_path: PathBuf,
    pub origin: HookOrigin,
    /// Indexes of the group and of the handler in their file.
    pub place: (usize, usize),
    /// False if the user has not reviewed it: it is listed, and does not run.
    pub is_accepted: bool,
}

/// All hooks of a configuration, in the order of layers.
#[derive(Debug, Clone, Default)]
pub struct HookSet {
    pub(crate) hooks: Vec<Hook>,
    /// Skipped hooks, with reasons.
    pub warnings: Vec<String>,
    /// Invalid files.
    pub errors: Vec<HookErrorInfo>,
}

#[derive(Deserialize)]
struct HookGroup {
    #[serde(default)]
    matcher: Option<String>,
    #[serde(default)]
    hooks: Vec<Value>,
}

#[derive(Deserialize)]
struct HookHandler {
    #[serde(rename = "type")]
    kind: HookHandlerKind,
    command: Option<String>,
    #[serde(alias = "timeoutSec")]
    timeout: Option<u64>,
    #[serde(default, rename = "async")]
    is_async: bool,
    #[serde(rename = "statusMessage")]
    status_message: Option<String>,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum HookHandlerKind {
    Command,
    Prompt,
    Agent,
}

impl HookSet {
    pub fn of(config: &ResolvedConfig) -> Self {
        Self::read(&config.hooks)
    }

    pub fn read(files: &[HookFile]) -> Self {
        let mut set = Self::default();
        for file in files {
            let events = match &file.events {
                Ok(Value::Object(events)) => events,
                Ok(Value::Null) => continue,
                Ok(_) => {
                    set.refuse(file, "`hooks` is not an object of events");
                    continue;
                }
                Err(problem) => {
                    set.refuse(file, problem);
                    continue;
                }
            };
            for (name, groups) in events {
                match event_of(name) {
                    Some(event) => set.add_groups(file, event, groups),
                    None => set.refuse(file, &format!("`{name}` is no event that hooks run at")),
                }
            }
        }
        // By event, then in file order; serde's maps are sorted, files are not.
        set.hooks.sort_by_key(|hook| order_of(hook.event));
        set
    }

    fn refuse(&mut self, file: &HookFile, problem: &str) {
        let path = file.path.to_string_lossy().into_owned();
        self.errors.push(HookErrorInfo { path, message: problem.to_owned() });
    }

    fn add_groups(&mut self, file: &HookFile, event: HookEventName, groups: &Value) {
        let name = word(event);
        let groups: Vec<HookGroup> = match serde_json::from_value(groups.clone()) {
            Ok(groups) => groups,
            Err(error) => return self.refuse(file, &format!("{name}: {error}")),
        };
        if groups.len() > MAX_GROUPS {
            return self.refuse(file, &format!("{name}: there are more than {MAX_GROUPS} groups"));
        }
        for (number, group) in groups.into_iter().enumerate() {
            let matcher = group.matcher.filter(|text| !text.is_empty() && text != "*" && has_matcher(event));
            // Patterns of unreviewed hooks need no compiling: the hooks do not run.
            let compiled = matcher.as_deref().filter(|_| file.is_accepted).map(compile);
            let pattern = match compiled.transpose() {
                Ok(pattern) => pattern,
                Err(problem) => {
                    self.refuse(file, &format!("{name}: matcher {matcher:?}: {problem}"));
                    continue;
                }
            };
            for (at, handler) in group.hooks.into_iter().enumerate() {
                match command_of(handler) {
                    Err(problem) => self.refuse(file, &format!("{name}: {problem}")),
                    Ok(Err(skipped)) => {
                        self.warnings.push(format!("{}: {name}: {skipped}", file.path.display()));
                    }
                    Ok(Ok(_)) if self.hooks.len() >= MAX_HOOKS => {
                        return self.refuse(file, &format!("there are more than {MAX_HOOKS} hooks"));
                    }
                    Ok(Ok(HookCommand { command, timeout, status_message })) => self.hooks.push(Hook {
                        event,
                        matcher: matcher.clone(),
                        pattern: pattern.clone(),
                        command,
                        timeout,
                        status_message,
                        source_path: file.path.clone(),
                        origin: file.origin,
                        place: (number, at),
                        is_accepted: file.is_accepted,
                    }),
                }
            }
        }
    }

    /// Whether any hook runs at this event.
    pub fn has(&self, event: HookEventName) -> bool {
        self.hooks.iter().any(|hook| hook.event == event && hook.is_accepted)
    }

    /// The matching hooks that run, with their indexes.
    pub(crate) fn matching<'a>(
        &'a self,
        event: HookEventName,
        subject: &'a str,
    ) -> impl Iterator<Item = (usize, &'a Hook)> {
        let runs = move |hook: &Hook| {
            hook.event == event
                && hook.is_accepted
                && hook.pattern.as_ref().is_none_or(|pattern| pattern.is_match(subject))
        };
        self.hooks.iter().enumerate().filter(move |(_, hook)| runs(hook))
    }
}

struct HookCommand {
    command: String,
    timeout: Duration,
    status_message: Option<String>,
}

/// The inner error is why a valid handler is skipped.
fn command_of(handler: Value) -> Result<Result<HookCommand, String>, String> {
    let handler: HookHandler = serde_json::from_value(handler).map_err(|error| error.to_string())?;
    if handler.kind != HookHandlerKind::Command {
        return Ok(Err("only handlers of the type `command` run; this one is skipped".to_owned()));
    }
    if handler.is_async {
        return Ok(Err("a hook cannot be `async`; this one is skipped".to_owned()));
    }
    let command = handler.command.unwrap_or_default();
    if command.trim().is_empty() {
        return Err("`command` is empty: write the command to run".to_owned());
    }
    let seconds = handler.timeout.unwrap_or(DEFAULT_TIMEOUT_SEC).clamp(1, MAX_TIMEOUT_SEC);
    let timeout = Duration::from_secs(seconds);
    Ok(Ok(HookCommand { command, timeout, status_message: handler.status_message }))
}

fn compile(pattern: &str) -> Result<Regex, String> {
    let config = Regex::config().nfa_size_limit(Some(MAX_PATTERN_BYTES));
    let built = Regex::builder().configure(config).build(pattern);
    built.map_err(|error| match error.syntax_error() {
        Some(syntax) => syntax.to_string(),
        None => error.to_string(),
    })
}

fn has_matcher(event: HookEventName) -> bool {
    !matches!(event, HookEventName::UserPromptSubmit | HookEventName::Stop)
}

const EVENTS: &[(HookEventName, &str)] = &[
    (HookEventName::SessionStart, "SessionStart"),
    (HookEventName::UserPromptSubmit, "UserPromptSubmit"),
    (HookEventName::PreToolUse, "PreToolUse"),
    (HookEventName::PostToolUse, "PostToolUse"),
    (HookEventName::Stop, "Stop"),
];

fn event_of(name: &str) -> Option<HookEventName> {
    EVENTS.iter().find(|(_, word)| *word == name).map(|(event, _)| *event)
}

fn order_of(event: HookEventName) -> usize {
    EVENTS.iter().position(|(other, _)| *other == event).unwrap_or(EVENTS.len())
}

/// The event in the spelling of files and hooks.
pub(crate) fn word(event: HookEventName) -> &'static str {
    EVENTS.iter().find(|(other, _)| *other == event).map_or("", |(_, word)| *word)
}

/// The only supported type.
pub(crate) const HANDLER: HookHandlerType = HookHandlerType::Command;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn set(events: Value) -> HookSet {
        let path = PathBuf::from("/h/hooks.json");
        HookSet::read(&[HookFile { path, origin: HookOrigin::User, events: Ok(events), is_accepted: true }])
    }

    #[test]
    fn handlers_are_read_and_the_others_named() {
        let read = set(json!({
            "Stop": [{"matcher": "never", "hooks": [{"type": "command", "command": "s"}]}],
            "PreToolUse": [
                {"matcher": "^Ba", "hooks": [
                    {"type": "command", "command": "a", "timeout": 0, "statusMessage": "m"},
                    {"type": "command", "command": "b", "timeoutSec": 5},
                    {"type": "prompt", "prompt": "x"},
                    {"type": "command", "command": "c", "async": true},
                    {"type": "command", "command": " "},
                    {"type": "nothing"},
                ]},
                {"matcher": "*", "hooks": [{"type": "command", "command": "d", "timeout": 999_999_999}]},
                {"matcher": "(", "hooks": [{"type": "command", "command": "e"}]},
            ],
            "Later": [],
            "SessionStart": 5,
        }));
        let shown = |hook: &Hook| format!("{} {} {}", word(hook.event), hook.command, hook.timeout.as_secs());
        let hooks: Vec<String> = read.hooks.iter().map(shown).collect();
        assert_eq!(hooks, ["PreToolUse a 1", "PreToolUse b 5", "PreToolUse d 86400", "Stop s 600"]);
        assert_eq!(read.warnings.len(), 2, "{:?}", read.warnings);
        assert_eq!(read.errors.len(), 5, "{:?}", read.errors);
        let commands = |event, subject| {
            let found: Vec<&str> =
                read.matching(event, subject).map(|(_, hook)| hook.command.as_str()).collect();
            found.join(" ")
        };
        assert_eq!(commands(HookEventName::PreToolUse, "Bash"), "a b d");
        assert_eq!(commands(HookEventName::PreToolUse, "Other"), "d");
        assert_eq!(commands(HookEventName::Stop, ""), "s");
        assert!(!read.has(HookEventName::SessionStart));
    }

    #[test]
    fn patterns_of_unreviewed_hooks_are_not_compiled_and_groups_are_bounded() {
        let costly = r"(\w{50}|\W{50}){9}";
        let group = json!({"matcher": costly, "hooks": [{"type": "command", "command": "a"}]});
        let read = |count: usize, is_accepted: bool| {
            let path = PathBuf::from("/h/hooks.json");
            let events = Ok(json!({"PreToolUse": vec![group.clone(); count]}));
            HookSet::read(&[HookFile { path, origin: HookOrigin::Project, events, is_accepted }])
        };
        let unreviewed = read(100, false);
        assert_eq!((unreviewed.hooks.len(), unreviewed.errors.len()), (100, 0));
        assert!(unreviewed.hooks.iter().all(|hook| hook.pattern.is_none() && hook.matcher.is_some()));
        assert!(!unreviewed.has(HookEventName::PreToolUse));
        let many = read(101, true);
        assert_eq!((many.hooks.len(), many.errors.len()), (0, 1));
    }

    #[test]
    fn a_file_that_is_no_hooks_file_is_named() {
        let path = PathBuf::from("/h/hooks.json");
        for events in [Ok(json!([])), Ok(json!("x")), Err("no JSON".to_owned())] {
            let file = HookFile { path: path.clone(), origin: HookOrigin::User, events, is_accepted: true };
            assert_eq!(HookSet::read(&[file]).errors.len(), 1);
        }
        let many: Vec<Value> = (0..200).map(|_| json!({"type": "command", "command": "x"})).collect();
        let read = set(json!({"Stop": [{"hooks": many}]}));
        assert_eq!((read.hooks.len(), read.errors.len()), (100, 1));
    }
}
