//! Runs all hooks of one event concurrently, and combines their decisions.

use std::sync::Arc;

use engine::{HookDecision, HookVerdict};
use futures_util::future::{BoxFuture, join_all};
use protocol::{
    HookCompletedNotification, HookExecutionMode, HookPromptFragment, HookRunStatus, HookRunSummary,
    HookScope, HookStartedNotification, ServerNotification,
};
use sandbox::CommandGuard;

use crate::definition::{HANDLER, Hook, HookSet, word};
use crate::judge::{JudgedRun, judge};
use crate::payload::{HookFacts, HookTrigger};
use crate::run::{HookSite, run};

/// Notifies clients of runs, and provides the time.
pub trait HookNotifier: Send + Sync {
    fn notify(&self, notification: ServerNotification) -> BoxFuture<'_, ()>;
    /// Unix milliseconds.
    fn now_ms(&self) -> i64;
}

/// A hook that has run.
#[derive(Debug, Clone)]
pub struct FinishedHook {
    pub run_id: String,
    pub judged: JudgedRun,
}

impl HookSet {
    /// Runs every matching hook, and returns when all have ended, in the order of the hooks.
    pub async fn run(
        &self,
        trigger: &HookTrigger,
        facts: &HookFacts,
        site: &HookSite,
        notifier: &dyn HookNotifier,
        guard: &CommandGuard,
    ) -> Vec<FinishedHook> {
        let stdin = Arc::new(trigger.payload(facts).to_string().into_bytes());
        let hooks = self.matching(trigger.event(), trigger.subject());
        let runs = hooks.map(|(order, hook)| {
            let (site, stdin, guard) = (site.clone(), stdin.to_vec(), guard.clone());
            async move {
                let mut summary = summary(hook, order, notifier.now_ms());
                notifier.notify(started(facts, &summary)).await;
                let judged = judge(hook.event, &run(hook, site, stdin, guard).await);
                let now_ms = notifier.now_ms();
                summary.status = judged.status;
                summary.entries = judged.entries.clone();
                summary.duration_ms = Some((now_ms - summary.started_at).max(0));
                (summary.started_at, summary.completed_at) = (summary.started_at / 1000, Some(now_ms / 1000));
                let run_id = summary.id.clone();
                notifier.notify(completed(facts, summary)).await;
                FinishedHook { run_id, judged }
            }
        });
        join_all(runs).await
    }
}

/// While it runs, `started_at` is in milliseconds.
fn summary(hook: &Hook, order: usize, now_ms: i64) -> HookRunSummary {
    HookRunSummary {
        id: format!("{}:{order}:{}", snake(word(hook.event)), hook.source_path.display()),
        event_name: hook.event,
        handler_type: HANDLER,
        execution_mode: HookExecutionMode::Sync,
        scope: match hook.event {
            protocol::HookEventName::SessionStart => HookScope::Thread,
            _ => HookScope::Turn,
        },
        source_path: hook.source_path.to_string_lossy().into_owned(),
        display_order: i64::try_from(order).unwrap_or(i64::MAX),
        status: HookRunStatus::Running,
        status_message: hook.status_message.clone(),
        started_at: now_ms,
        completed_at: None,
        duration_ms: None,
        entries: Vec::new(),
    }
}

fn started(facts: &HookFacts, summary: &HookRunSummary) -> ServerNotification {
    let run = HookRunSummary { started_at: summary.started_at / 1000, ..summary.clone() };
    let (thread_id, turn_id) = (facts.thread_id.clone(), Some(facts.turn_id.clone()));
    ServerNotification::HookStarted(HookStartedNotification { thread_id, turn_id, run })
}

fn completed(facts: &HookFacts, run: HookRunSummary) -> ServerNotification {
    let (thread_id, turn_id) = (facts.thread_id.clone(), Some(facts.turn_id.clone()));
    ServerNotification::HookCompleted(HookCompletedNotification { thread_id, turn_id, run })
}

/// `PreToolUse` becomes `pre_tool_use`.
pub(crate) fn snake(word: &str) -> String {
    let mut text = String::with_capacity(word.len() + 4);
    for (at, letter) in word.char_indices() {
        if letter.is_ascii_uppercase() && at > 0 {
            text.push('_');
        }
        text.push(letter.to_ascii_lowercase());
    }
    text
}

/// The combined verdict: stop overrides block, and block overrides the rest.
pub fn decide(finished: &[FinishedHook]) -> HookVerdict {
    let contexts = finished.iter().filter_map(|hook| hook.judged.context.clone()).collect();
    let has = |status| finished.iter().any(|hook| hook.judged.status == status);
    let fragment = |hook: &FinishedHook| {
        let text = hook.judged.reason.clone().filter(|_| hook.judged.status == HookRunStatus::Blocked)?;
        Some(HookPromptFragment { text, hook_run_id: hook.run_id.clone() })
    };
    let decision = if has(HookRunStatus::Stopped) {
        HookDecision::Stop
    } else if has(HookRunStatus::Blocked) {
        HookDecision::Block(finished.iter().filter_map(fragment).collect())
    } else {
        HookDecision::Proceed
    };
    HookVerdict { contexts, decision }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_in_snake_case() {
        assert_eq!(snake("PreToolUse"), "pre_tool_use");
        assert_eq!(snake("Stop"), "stop");
    }

    #[test]
    fn the_strictest_run_decides() {
        let hook = |status, text: &str| FinishedHook {
            run_id: text.to_owned(),
            judged: JudgedRun {
                status,
                entries: Vec::new(),
                reason: Some(text.to_owned()),
                context: Some(format!("{text} context")),
            },
        };
        use HookRunStatus::{Blocked, Completed, Failed, Stopped};
        let proceed = decide(&[hook(Completed, "a"), hook(Failed, "b")]);
        assert_eq!((proceed.decision, proceed.contexts.len()), (HookDecision::Proceed, 2));
        let block = decide(&[hook(Blocked, "a"), hook(Completed, "b"), hook(Blocked, "c")]);
        let HookDecision::Block(parts) = block.decision else { panic!("it blocks") };
        assert_eq!(parts.iter().map(|part| part.text.as_str()).collect::<Vec<_>>(), ["a", "c"]);
        assert_eq!(decide(&[hook(Blocked, "a"), hook(Stopped, "b")]).decision, HookDecision::Stop);
    }
}
