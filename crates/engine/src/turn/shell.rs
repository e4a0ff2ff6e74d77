//! Commands that the user runs, beside the model or in their own turn.

use std::sync::Arc;
use std::time::Duration;

use protocol::{FunctionCallOutputBody, ThreadItem, TurnId, TurnStatus};

use crate::calls::{OpenCall, ProposalStage, Runner, StoppedBy, ToolCall, ToolPayload};
use crate::context::{UserShellCommand, alone};
use crate::grants::NOTHING;
use crate::input::ToolOutcome;
use crate::truncate::truncate_output;
use crate::turn::work::Transition;
use crate::turn::{TurnKind, TurnMachine, TurnPhase};
use crate::{Effect, Step};

/// The tool that runs them. Never offered to a model.
pub const USER_SHELL: &str = "user_shell";

/// Exit code of a command that was stopped or could not start.
pub const NO_EXIT: i32 = -1;

/// The output of a command that the user stopped.
pub const SHELL_ABORTED: &str = "command aborted by user";

/// The result of one, for the model.
pub fn user_shell_result(exit_code: i32, duration: Duration, output: &str) -> String {
    let seconds = duration.as_secs_f64();
    format!("Exit code: {exit_code}\nDuration: {seconds:.4} seconds\nOutput:\n{output}")
}

impl TurnMachine {
    pub(crate) fn shell(
        work: &mut Transition<'_>,
        id: TurnId,
        call_id: String,
        command: String,
        step: Arc<Step>,
    ) -> Self {
        let mut turn = Self::new(work, id, TurnKind::Shell, step);
        turn.record_start(work);
        turn.notify_started(work);
        turn.begin_shell(work, call_id, command);
        turn
    }

    pub(crate) fn begin_shell(&mut self, work: &mut Transition<'_>, call_id: String, command: String) {
        let payload = ToolPayload::Custom { input: command };
        let call = ToolCall { call_id, name: USER_SHELL.to_owned(), namespace: None, payload };
        let (began_ms, runner) = (work.stamp.now_ms, Runner::Tool);
        let open =
            OpenCall { call, began_ms, runner, parallel: true, active: None, output: None, step: None };
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
        work: &mut Transition<'_>,
        call_id: &str,
        outcome: ToolOutcome,
    ) -> Option<Self> {
        self.on_tool_finished(work, call_id, outcome);
        if let Some(at) = self.shells.iter().position(|shell| shell.call.call_id == call_id) {
            let shell = self.shells.remove(at);
            self.queue_shell_result(shell);
            // A command that ends while the model works needs another request. Afterwards its result waits for the next
            // turn.
            self.needs_request |= self.kind == TurnKind::Regular && !self.phase.is_done();
        }
        self.settle(work)
    }

    /// Ends the turn when the model is done and no command of the user is running.
    pub(crate) fn settle(mut self, work: &mut Transition<'_>) -> Option<Self> {
        let at_rest = self.kind == TurnKind::Shell || self.phase.is_done();
        if !self.shells.is_empty() || !at_rest || !self.hooks.is_empty() {
            return Some(self);
        }
        if self.queued.is_empty() && !self.needs_request {
            if self.must_ask_before_end(work) {
                return Some(self);
            }
            return self.finish(work, TurnStatus::Completed, None);
        }
        // There is new input, so the model continues.
        self.kind = TurnKind::Regular;
        self.await_step(work);
        Some(self)
    }

    /// Adds the command's result to the next request.
    fn queue_shell_result(&mut self, shell: OpenCall) {
        let OpenCall { call, output: Some(output), .. } = shell else { return };
        let (ToolPayload::Custom { input: command }, FunctionCallOutputBody::Text(result)) =
            (call.payload, truncate_output(output, self.step.model.truncation))
        else {
            return;
        };
        self.pending_messages.push(alone(&UserShellCommand { command: &command, result: &result }));
    }

    pub(crate) fn stop_shells(&mut self, work: &mut Transition<'_>, by: StoppedBy) {
        for mut shell in std::mem::take(&mut self.shells) {
            work.effects.push(Effect::CancelTool { call_id: shell.call.call_id.clone() });
            let is_aborted = by == StoppedBy::User && shell.output.is_none() && has_begun(&shell);
            if is_aborted {
                abort(&mut shell, work.stamp.now_ms);
            }
            self.stop_proposal(work, &shell, by);
            if is_aborted {
                self.queue_shell_result(shell);
            }
        }
    }
}

fn has_begun(shell: &OpenCall) -> bool {
    shell.active.as_ref().is_some_and(|active| active.stage == ProposalStage::Begun)
}

/// Sets output and item of a command that the user stopped.
fn abort(shell: &mut OpenCall, now_ms: i64) {
    let took_ms = (now_ms - shell.began_ms).max(0);
    let duration = Duration::from_millis(took_ms.unsigned_abs());
    let result = user_shell_result(NO_EXIT, duration, SHELL_ABORTED);
    shell.output = Some(FunctionCallOutputBody::Text(result));
    let item = shell.active.as_mut().and_then(|active| active.proposal.item.as_deref_mut());
    if let Some(ThreadItem::CommandExecution { aggregated_output, exit_code, duration_ms, .. }) = item {
        *aggregated_output = Some(SHELL_ABORTED.to_owned());
        *exit_code = Some(NO_EXIT);
        *duration_ms = Some(took_ms);
    }
}

impl TurnPhase {
    /// Nothing waits for the model or its tools.
    pub(crate) fn is_done(&self) -> bool {
        match self {
            Self::Sampling(sampling) => sampling.is_done(),
            _ => false,
        }
    }
}
