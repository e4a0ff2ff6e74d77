//! The hooks of one thread: run for the engine before a prompt and before the end of a turn, and around commands.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use config::ResolvedConfig;
use engine::{
    HookDecision, HookOccasion, HookPoints, HookVerdict, Reach, Step, ToolCall, ToolOutcome, ToolPayload,
};
use futures_util::future::BoxFuture;
use hooks::{FinishedHook, HookFacts, HookNotifier, HookSet, HookSite, HookTrigger, decide};
use parking_lot::RwLock;
use protocol::{
    FunctionCallOutputBody, HookEventName, HookRunStatus, ReadOnlyAccess, SandboxPolicy, ServerNotification,
};
use serde_json::Value;
use support::Clock;
use tools::{Bench, CallScope, Sink};

use crate::thread::tool_jobs::Progress;

/// Tools whose arguments contain the command they run.
const SHELLS: &[&str] = &["exec_command", "shell", "shell_command", "local_shell", "container.exec"];

/// The thread's hooks and their context.
#[derive(Debug, Default)]
pub struct ThreadHooks {
    set: RwLock<Arc<HookSet>>,
    /// The thread existed before this process.
    is_resumed: bool,
    /// The path of its record.
    transcript: Option<PathBuf>,
    /// Hooks for the start of a session have run, or had the chance to.
    is_started: AtomicBool,
}

/// One run of hooks: its step, and where to report it.
#[derive(Debug)]
pub(crate) struct HookJob {
    pub(crate) step: Arc<Step>,
    pub(crate) bench: Arc<Bench>,
    pub(crate) progress: Progress,
    pub(crate) scope: CallScope,
    pub(crate) clock: Arc<dyn Clock>,
}

impl HookNotifier for HookJob {
    fn notify(&self, notification: ServerNotification) -> BoxFuture<'_, ()> {
        self.progress.notify_later(notification)
    }

    fn now_ms(&self) -> i64 {
        self.clock.now_ms()
    }
}

impl ThreadHooks {
    pub fn new(config: &ResolvedConfig, is_resumed: bool, transcript: Option<PathBuf>) -> Self {
        let set = RwLock::new(Arc::new(HookSet::of(config)));
        Self { set, is_resumed, transcript, is_started: AtomicBool::new(false) }
    }

    /// Replaces the hooks from now on.
    pub fn replace(&self, config: &ResolvedConfig) {
        *self.set.write() = Arc::new(HookSet::of(config));
    }

    fn set(&self) -> Arc<HookSet> {
        self.set.read().clone()
    }

    /// The points at which a turn waits for hooks.
    pub(crate) fn points(&self) -> HookPoints {
        let set = self.set();
        let starts = set.has(HookEventName::SessionStart) && !self.is_started.load(Ordering::Relaxed);
        HookPoints {
            prompt: starts || set.has(HookEventName::UserPromptSubmit),
            stop: set.has(HookEventName::Stop),
        }
    }

    /// Runs the hooks that the engine waits for.
    pub(crate) async fn run(self: Arc<Self>, occasion: HookOccasion, job: HookJob) -> HookVerdict {
        match occasion {
            HookOccasion::Prompt { text } => {
                let mut contexts = Vec::new();
                if !self.is_started.swap(true, Ordering::Relaxed) {
                    let start = HookTrigger::SessionStart { is_resumed: self.is_resumed };
                    let verdict = decide(&self.run_all(&start, &job).await);
                    contexts = verdict.contexts;
                    if verdict.decision == HookDecision::Stop {
                        return HookVerdict { contexts, decision: HookDecision::Stop };
                    }
                }
                let prompt = HookTrigger::UserPromptSubmit { prompt: text };
                let verdict = decide(&self.run_all(&prompt, &job).await);
                contexts.extend(verdict.contexts);
                HookVerdict { contexts, decision: verdict.decision }
            }
            HookOccasion::Stop { is_repeated, last_message } => {
                let stop = HookTrigger::Stop { is_repeated, last_message };
                decide(&self.run_all(&stop, &job).await)
            }
        }
    }

    /// Runs a tool with the hooks before and after it. Most calls have none.
    pub(crate) async fn around(
        self: Arc<Self>,
        call: ToolCall,
        job: HookJob,
        tool: BoxFuture<'static, ToolOutcome>,
    ) -> ToolOutcome {
        let set = self.set();
        let concerns = [HookEventName::PreToolUse, HookEventName::PostToolUse].map(|event| set.has(event));
        let command = command_of(&call).filter(|_| concerns.contains(&true));
        let Some(command) = command else { return tool.await };
        let call_id = call.call_id;
        let before = HookTrigger::PreToolUse { call_id: call_id.clone(), command: command.clone() };
        if let Some(reason) = reasons(&self.run_all(&before, &job).await) {
            return ToolOutcome::failure(format!("Command blocked by a hook: {reason}"));
        }
        let outcome = tool.await;
        let response = match &outcome.output {
            FunctionCallOutputBody::Text(text) => Value::String(text.clone()),
            other => serde_json::to_value(other).unwrap_or_default(),
        };
        let finished = self.run_all(&HookTrigger::PostToolUse { call_id, command, response }, &job).await;
        let output = reasons(&finished).map_or(outcome.output, FunctionCallOutputBody::Text);
        ToolOutcome { output, contexts: decide(&finished).contexts, ..outcome }
    }

    async fn run_all(&self, trigger: &HookTrigger, job: &HookJob) -> Vec<FinishedHook> {
        let set = self.set();
        if !set.has(trigger.event()) {
            return Vec::new();
        }
        let options = job.bench.options();
        let facts = HookFacts {
            thread_id: job.progress.thread_id().clone(),
            turn_id: job.progress.turn_id().clone(),
            transcript_path: self.transcript.as_ref().map(|path| path.to_string_lossy().into_owned()),
            cwd: job.step.cwd.clone(),
            model: job.step.model.slug.clone(),
            approval_policy: job.step.approval_policy.clone(),
        };
        let (cwd, sandbox) = place(&job.step, options.env.get("HOME"));
        let site = HookSite {
            shell: options.shell.clone(),
            cwd,
            env: options.env.clone(),
            sandbox,
            off_limits: options.off_limits.clone(),
            landlock_only: options.landlock_only,
        };
        let guard: sandbox::CommandGuard = Arc::new(job.scope.hold());
        set.run(trigger, &facts, &site, job, &guard).await
    }
}

/// Folder and sandbox of hooks, which run on this machine. If the thread works elsewhere, the home folder replaces its
/// folder, and the thread's write permissions do not apply.
fn place(step: &Step, home: Option<&String>) -> (PathBuf, SandboxPolicy) {
    if !step.primary().is_some_and(|place| matches!(place.reach, Reach::Command { .. })) {
        return (PathBuf::from(&step.cwd), step.sandbox.clone());
    }
    let folder = home.map_or_else(|| PathBuf::from("/"), PathBuf::from);
    let sandbox = match &step.sandbox {
        SandboxPolicy::WorkspaceWrite { .. } => {
            SandboxPolicy::ReadOnly { access: ReadOnlyAccess::FullAccess, network_access: false }
        }
        other => other.clone(),
    };
    (folder, sandbox)
}

/// Why hooks blocked or stopped, one reason per hook.
fn reasons(finished: &[FinishedHook]) -> Option<String> {
    let blocks = |status| matches!(status, HookRunStatus::Blocked | HookRunStatus::Stopped);
    let blocked = finished.iter().filter(|hook| blocks(hook.judged.status));
    let reasons: Vec<&str> = blocked.filter_map(|hook| hook.judged.reason.as_deref()).collect();
    (!reasons.is_empty()).then(|| reasons.join("\n\n"))
}

/// The command of a call, if the tool runs commands. A call with invalid arguments runs none.
fn command_of(call: &ToolCall) -> Option<String> {
    let ToolPayload::Function { arguments } = &call.payload else { return None };
    if call.namespace.is_some() || !SHELLS.contains(&call.name.as_str()) {
        return None;
    }
    let arguments: Value = serde_json::from_str(arguments).ok()?;
    match arguments.get("cmd").or_else(|| arguments.get("command"))? {
        Value::String(command) => Some(command.clone()),
        Value::Array(words) => {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            Some(match words.as_slice() {
                // The shell's script is the command.
                [_, "-c" | "-lc", script] => (*script).to_owned(),
                words => words.join(" "),
            })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn commands_are_found_in_every_shell_tool() {
        let call = |name: &str, arguments: Value| ToolCall {
            call_id: "c".to_owned(),
            name: name.to_owned(),
            namespace: None,
            payload: ToolPayload::Function { arguments: arguments.to_string() },
        };
        for (name, arguments, expected) in [
            ("exec_command", json!({"cmd": "ls -l"}), Some("ls -l")),
            ("shell_command", json!({"command": "ls"}), Some("ls")),
            ("shell", json!({"command": ["bash", "-lc", "a; b"]}), Some("a; b")),
            ("local_shell", json!({"command": ["git", "status"]}), Some("git status")),
            ("shell", json!({"command": 5}), None),
            ("exec_command", json!("no object"), None),
            ("read_file", json!({"command": "ls"}), None),
        ] {
            assert_eq!(command_of(&call(name, arguments)).as_deref(), expected, "{name}");
        }
    }
}
