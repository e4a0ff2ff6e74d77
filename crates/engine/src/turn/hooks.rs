//! A turn that waits for hooks: before a prompt is recorded, and before the turn ends.

use protocol::{HookPromptFragment, RolloutRecord, ThreadItem, TurnStatus, UserInput};

use crate::context::{HookContext, alone, hook_prompt};
use crate::hooks::{HookDecision, HookOccasion, HookVerdict};
use crate::turn::compaction::AfterCompaction;
use crate::turn::work::Transition;
use crate::turn::{Said, TurnKind, TurnMachine};
use crate::{Effect, UserText};

/// How often hooks may continue one turn. Without a limit a hook could keep it running for ever.
const MOST_CONTINUATIONS: u32 = 20;

/// Running hooks, and what waits for them.
#[derive(Debug, Clone)]
pub(crate) struct RunningHooks {
    pub(crate) id: String,
    subject: HookSubject,
}

#[derive(Debug, Clone)]
enum HookSubject {
    /// The turn's first prompt.
    First(Box<Said>),
    /// A later prompt.
    Later(Box<Said>),
    /// The end of the turn.
    End,
}

impl TurnMachine {
    /// The turn starts once the hooks accept its prompt.
    pub(crate) fn check_first_prompt(&mut self, work: &mut Transition<'_>, said: Said) {
        self.notify_started(work);
        let occasion = HookOccasion::Prompt { text: plain_text(&said.text) };
        self.run_hooks(work, HookSubject::First(Box::new(said)), occasion);
    }

    pub(crate) fn check_later_prompt(&mut self, work: &mut Transition<'_>, said: Said) {
        let occasion = HookOccasion::Prompt { text: plain_text(&said.text) };
        self.run_hooks(work, HookSubject::Later(Box::new(said)), occasion);
    }

    /// Runs the hooks that come before the turn's end. Returns false if they have run already, or there are none.
    pub(crate) fn must_ask_before_end(&mut self, work: &mut Transition<'_>) -> bool {
        if !self.step.hooks.stop || self.kind != TurnKind::Regular || self.may_end {
            return false;
        }
        let occasion = HookOccasion::Stop {
            is_repeated: self.continuations > 0,
            last_message: work.core.history.last_assistant_text(),
        };
        self.run_hooks(work, HookSubject::End, occasion);
        true
    }

    fn run_hooks(&mut self, work: &mut Transition<'_>, subject: HookSubject, occasion: HookOccasion) {
        self.hook_runs += 1;
        let id = format!("hooks:{}:{}", self.id, self.hook_runs);
        self.hooks.push(RunningHooks { id: id.clone(), subject });
        let (turn_id, step) = (self.id.clone(), self.step.clone());
        work.effects.push(Effect::RunHooks { id, turn_id, step, occasion });
    }

    /// A prompt that hooks have not accepted is not recorded, so the turn cannot be resumed.
    pub(crate) fn waits_for_first_prompt(&self) -> bool {
        self.hooks.iter().any(|running| matches!(running.subject, HookSubject::First(_)))
    }

    /// Stops running hooks. Drops the prompts that wait for them: no hook has accepted them.
    pub(crate) fn stop_hooks(&mut self, work: &mut Transition<'_>) {
        for running in std::mem::take(&mut self.hooks) {
            work.effects.push(Effect::CancelTool { call_id: running.id });
            if let HookSubject::First(said) | HookSubject::Later(said) = running.subject {
                self.pending_messages.extend(said.beside);
            }
        }
    }

    /// `None` when the turn has ended.
    pub(crate) fn on_hooks_finished(
        mut self,
        work: &mut Transition<'_>,
        id: &str,
        verdict: HookVerdict,
    ) -> Option<Self> {
        let Some(at) = self.hooks.iter().position(|running| running.id == id) else { return Some(self) };
        let RunningHooks { subject, .. } = self.hooks.remove(at);
        match subject {
            HookSubject::First(said) => self.after_first(work, *said, &verdict),
            HookSubject::Later(said) => {
                match verdict.decision {
                    HookDecision::Proceed => self.accept(work, *said, &verdict.contexts),
                    HookDecision::Block(_) | HookDecision::Stop => {
                        self.pending_messages.extend(said.beside);
                        self.pending_messages
                            .extend(verdict.contexts.iter().map(|text| alone(&HookContext(text))));
                    }
                }
                self.advance(work)
            }
            HookSubject::End => self.after_end(work, verdict),
        }
    }

    fn after_first(mut self, work: &mut Transition<'_>, said: Said, verdict: &HookVerdict) -> Option<Self> {
        if verdict.decision != HookDecision::Proceed {
            // The client's additional context counts as sent, so it stays.
            let contexts = verdict.contexts.iter().map(|text| alone(&HookContext(text)));
            said.beside.into_iter().chain(contexts).for_each(|message| work.remember(&self.id, message));
            return self.finish(work, TurnStatus::Completed, None);
        }
        self.accept(work, said, &verdict.contexts);
        self.go_on(work, false);
        Some(self)
    }

    fn after_end(mut self, work: &mut Transition<'_>, verdict: HookVerdict) -> Option<Self> {
        self.pending_messages.extend(verdict.contexts.iter().map(|text| alone(&HookContext(text))));
        match verdict.decision {
            HookDecision::Block(fragments) if self.continuations < MOST_CONTINUATIONS => {
                self.continuations += 1;
                self.say_for_hooks(work, fragments);
                self.go_on(work, true);
                Some(self)
            }
            HookDecision::Proceed | HookDecision::Block(_) | HookDecision::Stop => {
                self.may_end = true;
                self.settle(work)
            }
        }
    }

    /// Recorded before the model sees it, like every prompt.
    fn accept(&mut self, work: &mut Transition<'_>, mut said: Said, contexts: &[String]) {
        said.record(work, &self.id);
        said.after = contexts.iter().map(|text| alone(&HookContext(text))).collect();
        self.queued.push_back(said);
    }

    /// Notified live only in threads with raw events; always in the history.
    fn say_for_hooks(&mut self, work: &mut Transition<'_>, fragments: Vec<HookPromptFragment>) {
        self.pending_messages.push(hook_prompt(&fragments));
        let item = ThreadItem::HookPrompt { id: work.ids.item(), fragments };
        work.record(RolloutRecord::ThreadItem { turn_id: self.id.clone(), item: item.clone() });
        if work.core.raw_events {
            work.notify_completed(&self.id, item);
        }
    }

    fn go_on(&mut self, work: &mut Transition<'_>, keep_context: bool) {
        match self.is_full(work) {
            true => self.begin_compaction(work, AfterCompaction::Continue { keep_context }),
            false => self.await_step(work),
        }
    }
}

/// The text of a prompt, without images and mentions.
fn plain_text(text: &UserText) -> String {
    let words = text.shown.iter().filter_map(|part| match part {
        UserInput::Text { text, .. } => Some(text.as_str()),
        _ => None,
    });
    words.collect::<Vec<_>>().join("\n")
}
