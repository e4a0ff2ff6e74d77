//! Calls that a running tool makes, such as those of a script. They are decided, recorded and shown like the model's
//! calls. Their outputs go to that tool and not into the history.

use std::sync::Arc;

use protocol::FunctionCallOutputBody;

use crate::Effect;
use crate::calls::{OpenCall, Runner, StoppedBy, ToolCall, unsupported};
use crate::truncate::truncate_output;
use crate::turn::TurnMachine;
use crate::turn::work::Transition;
use crate::{Step, ToolKind, Truncation};

/// Limit of open nested calls.
const MOST_NESTED: usize = 16;
/// Limit of one output for a script.
const LONGEST_OUTPUT: Truncation = Truncation::Bytes(1 << 20);

/// A call and the id of the call that made it.
#[derive(Debug, Clone)]
pub(crate) struct NestedCall {
    pub(crate) parent: String,
    pub(crate) open: OpenCall,
}

impl TurnMachine {
    pub(crate) fn on_nested_call(
        &mut self,
        work: &mut Transition<'_>,
        parent: &str,
        call: ToolCall,
        began_in: &Step,
    ) {
        let text = |text: &str| Some(FunctionCallOutputBody::Text(text.to_owned()));
        let is_known = self.call_of(&call.call_id).is_some();
        let refusal = if self.open_call(parent, Runner::Tool).is_none() || is_known {
            text("the call it was made from is over")
        } else if self.nested.len() >= MOST_NESTED {
            text("too many calls at once: wait for some of them to end")
        } else {
            match self.step.called(&call) {
                Some(tool) if tool.kind != ToolKind::Hosted => None,
                _ => Some(unsupported(&call)),
            }
        };
        let (began_ms, runner) = (work.stamp.now_ms, Runner::Nobody);
        let mut open = match refusal {
            Some(_) => {
                OpenCall { call, began_ms, runner, parallel: true, active: None, output: refusal, step: None }
            }
            // A tool that runs again after a restart repeats its calls. Their effects are not repeated.
            None => self.resume_call(work, call),
        };
        open.step = self.step_in_environments_of(began_in);
        if open.output.is_none() {
            self.start_call(work, &mut open);
        }
        self.nested.push(NestedCall { parent: parent.to_owned(), open });
        self.answer_nested(work);
    }

    /// This turn's step with the environments of another. A script from another turn stays in its environments; tools,
    /// approvals and sandbox are those of this turn.
    fn step_in_environments_of(&self, began_in: &Step) -> Option<Arc<Step>> {
        let Step { cwd, environments, shell, .. } = began_in;
        let is_here =
            (&self.step.cwd, &self.step.environments, &self.step.shell) == (cwd, environments, shell);
        let there = || Step {
            cwd: cwd.clone(),
            environments: environments.clone(),
            shell: shell.clone(),
            ..(*self.step).clone()
        };
        (!is_here).then(|| Arc::new(there()))
    }

    /// Sends finished outputs to the tools that made the calls.
    pub(crate) fn answer_nested(&mut self, work: &mut Transition<'_>) {
        for nested in self.nested.extract_if(.., |nested| nested.open.output.is_some()) {
            let OpenCall { call, output: Some(output), .. } = nested.open else { continue };
            let output = truncate_output(output, LONGEST_OUTPUT);
            work.effects.push(Effect::AnswerNested { call_id: call.call_id, output });
        }
    }

    /// Stops the nested calls of one call, or all of them.
    pub(crate) fn stop_nested(&mut self, work: &mut Transition<'_>, parent: Option<&str>, by: StoppedBy) {
        let is_meant = |nested: &mut NestedCall| parent.is_none_or(|parent| nested.parent == parent);
        let stopped: Vec<_> = self.nested.extract_if(.., is_meant).collect();
        for NestedCall { open, .. } in stopped {
            self.stop_running(work, &open, by);
        }
    }
}
