//! Commands of the user's own, beside the model's work or in a turn of their own.

use std::sync::Arc;

use protocol::{FunctionCallOutputBody, TurnId, TurnStatus};

use crate::calls::{OpenCall, Runner, StoppedBy, ToolCall, ToolPayload};
use crate::context::{UserShellCommand, alone};
use crate::grants::NOTHING;
use crate::input::ToolOutcome;
use crate::truncate::truncate_output;
use crate::turn::{Kind, Phase, Turn};
use crate::work::Work;
use crate::{Effect, Step};

/// The tool that runs them. It is never offered to a model.
pub const USER_SHELL: &str = "user_shell";

impl Turn {
    pub(crate) fn shell(
        work: &mut Work<'_>,
        id: TurnId,
        call_id: String,
        command: String,
        step: Arc<Step>,
    ) -> Self {
        let mut turn = Self::new(work, id, Kind::Shell, step);
        turn.record_start(work);
        turn.tell_start(work);
        turn.begin_shell(work, call_id, command);
        turn
    }

    pub(crate) fn begin_shell(&mut self, work: &mut Work<'_>, call_id: String, command: String) {
        let payload = ToolPayload::Custom { input: command };
        let call = ToolCall { call_id, name: USER_SHELL.to_owned(), namespace: None, payload };
        let (began_ms, runner) = (work.stamp.now_ms, Runner::Tool);
        let open = OpenCall { call, began_ms, runner, parallel: true, doing: None, output: None };
        work.effects.push(Effect::RunTool {
            call: open.call.clone(),
            turn_id: self.id.clone(),
            step: self.step.clone(),
            grants: NOTHING,
        });
        self.shells.push(open);
    }

    pub(crate) fn on_shell_finished(
        mut self,
        work: &mut Work<'_>,
        call_id: &str,
        outcome: ToolOutcome,
    ) -> Option<Self> {
        self.on_tool_finished(work, call_id, outcome);
        if let Some(at) = self.shells.iter().position(|shell| shell.call.call_id == call_id) {
            let shell = self.shells.remove(at);
            self.tell_shell(shell);
        }
        self.settle(work)
    }

    /// The turn is done when the model is and no command of the user's runs any more.
    pub(crate) fn settle(mut self, work: &mut Work<'_>) -> Option<Self> {
        let at_rest = self.kind == Kind::Shell || self.phase.is_done();
        if !self.shells.is_empty() || !at_rest {
            return Some(self);
        }
        if self.queued.is_empty() && !self.has_news {
            return self.finish(work, TurnStatus::Completed, None);
        }
        // What was said meanwhile is for the model.
        self.kind = Kind::Regular;
        self.await_step(work);
        Some(self)
    }

    /// For the model to read with the next request.
    fn tell_shell(&mut self, shell: OpenCall) {
        let OpenCall { call, output: Some(output), .. } = shell else { return };
        let (ToolPayload::Custom { input: command }, FunctionCallOutputBody::Text(result)) =
            (call.payload, truncate_output(output, self.step.model.truncation))
        else {
            return;
        };
        self.untold.push(alone(&UserShellCommand { command: &command, result: &result }));
    }

    pub(crate) fn stop_shells(&mut self, work: &mut Work<'_>, by: StoppedBy) {
        for shell in std::mem::take(&mut self.shells) {
            work.effects.push(Effect::CancelTool { call_id: shell.call.call_id.clone() });
            self.stop_doing(work, &shell, by);
        }
    }
}

impl Phase {
    /// Nothing is asked of the model or of its tools.
    pub(crate) fn is_done(&self) -> bool {
        match self {
            Self::Sampling(sampling) => sampling.is_done(),
            _ => false,
        }
    }
}
