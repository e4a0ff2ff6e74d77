//! `write_stdin`: types into a running command, or waits for more of its output.

use std::time::Duration;

use engine::{Proposal, Question, ToolOutcome};
use policy::SandboxChoice;
use protocol::{OperationType, ServerNotification, TerminalInteractionNotification, ToolEffects};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::time::Instant;

use crate::builtin::exec_command::max_tokens;
use crate::digest::digest_of;
use crate::exec::terminals::{Session, TerminalReport, chunk_id, exceeds};
use crate::exec::{Setting, confinement, may_ask, typing_question};
use crate::{BuiltinTool, Offer, ShellForm, Standing, ToolCx, ToolError};

const WAIT_MS: u64 = 250;
/// After typing.
const WAITS_MS: (u64, u64) = (250, 30_000);
/// Without typing: frequent polling only costs calls.
const LEAST_POLL_MS: u64 = 5_000;
/// Control-C.
const INTERRUPT: &str = "\u{3}";
/// Time for a program to react before its output is read.
const REACTION: Duration = Duration::from_millis(100);

// No doc comment on the type: the model would read it as well.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Args {
    /// The session ID that exec_command returned.
    session_id: i64,
    /// What to type; may be empty to wait for output only. Control characters are sent as they are, so "\u0003" is
    /// Ctrl-C.
    #[serde(default)]
    chars: Option<String>,
    /// How many milliseconds to wait for output. Default: 250.
    yield_time_ms: Option<u64>,
    /// How much output to return at most; the middle of what is longer is left out. Default: 10000.
    max_output_tokens: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
pub struct WriteStdin;

impl BuiltinTool for WriteStdin {
    const NAME: &'static str = "write_stdin";
    const ABOUT: &'static str = "Type into a command that exec_command left running, or wait for more of its output. \
        Returns what it wrote since the last look.";
    type Args = Args;

    fn standing(offer: &Offer) -> Standing {
        Standing::offered_if(offer.shell == ShellForm::Terminals)
    }

    async fn call(&self, args: Args, cx: &ToolCx) -> Result<ToolOutcome, ToolError> {
        let began = Instant::now();
        let id = u32::try_from(args.session_id).ok();
        let Some(session) = id.and_then(|id| cx.bench().terminals().get(id)) else {
            let problem = format!("there is no session {}; it may have ended", args.session_id);
            return Err(failed(&problem));
        };
        let chars = args.chars.unwrap_or_default();
        let most = cx.bench().options().max_background_wait_ms;
        // Clients are notified of the typed text after earlier output, and before the end it may cause.
        let attending = session.attend();
        if !chars.is_empty() {
            allow_typing(cx, &session, &chars).await?;
            type_into(&session, &chars).await?;
        }
        let wait = waiting_time(chars.is_empty(), args.yield_time_ms.unwrap_or(WAIT_MS), most);
        let waiting = Instant::now();
        session.shown(cx.bench().clock(), wait).await;
        let interaction = TerminalInteractionNotification {
            thread_id: cx.thread_id().clone(),
            turn_id: cx.turn_id().clone(),
            item_id: session.item_id.clone(),
            process_id: session.id.to_string(),
            stdin: chars,
        };
        cx.notify(ServerNotification::TerminalInteraction(interaction)).await;
        drop(attending);
        let collected = session.collect(cx.bench().clock(), wait.saturating_sub(waiting.elapsed())).await;
        if collected.exit.is_some() {
            cx.bench().terminals().remove(session.id);
        }
        let report = TerminalReport {
            command: &session.command,
            session_id: session.id,
            wall_time: began.elapsed(),
            collected: &collected,
            max_tokens: max_tokens(cx, args.max_output_tokens),
            remark: None,
        };
        Ok(report.outcome(&chunk_id()))
    }
}

/// A terminal keeps the permissions it was opened with. If a command that starts now would have fewer, typing needs
/// approval like a command. Interrupting is always allowed.
async fn allow_typing(cx: &ToolCx, session: &Session, chars: &str) -> Result<(), ToolError> {
    let setting = Setting::of(cx);
    let now = confinement(&setting, SandboxChoice::AsPolicy, None);
    if !session.tty || chars == INTERRUPT || !exceeds(session.confinement.as_ref(), now.as_ref()) {
        return Ok(());
    }
    let id = session.id;
    if !setting.ask_always && !may_ask(&setting.approval) {
        return Err(failed(&format!(
            "session {id} was opened with more rights than commands have now, and nobody can be asked; open a new one \
             with exec_command"
        )));
    }
    let arguments = json!({ "sessionId": id, "command": session.command, "chars": chars });
    let key = digest_of(&json!(["write_stdin", id, session.item_id, now]));
    let reason = format!(
        "session {id} ({}) was opened with more rights than commands have now; type this into it?",
        session.command
    );
    let proposal = Proposal {
        number: 0,
        kind: OperationType::Command,
        effects: ToolEffects::Once,
        item: None,
        outlives: false,
        digest: digest_of(&json!([arguments, now])),
        arguments,
        question: Some(Box::new(Question::Command(typing_question(&setting, chars, &reason)))),
        session_keys: vec![key],
    };
    match cx.propose(proposal).await {
        decided if decided.is_approved() => Ok(()),
        _ => Err(failed(&format!("the user does not want this to be typed into session {id}"))),
    }
}

async fn type_into(session: &Session, chars: &str) -> Result<(), ToolError> {
    if !session.tty {
        return Err(failed(
            "the command has no terminal to type into; start it again with exec_command and `tty` set to true",
        ));
    }
    // A terminal that just ended still has unread output.
    if let Err(error) = session.write(chars).await
        && session.process.exit().is_none()
    {
        return Err(failed(&error.to_string()));
    }
    tokio::time::sleep(REACTION).await;
    Ok(())
}

fn waiting_time(is_poll: bool, wanted_ms: u64, longest_poll_ms: u64) -> Duration {
    Duration::from_millis(match is_poll {
        true => wanted_ms.clamp(LEAST_POLL_MS, longest_poll_ms.max(LEAST_POLL_MS)),
        false => wanted_ms.clamp(WAITS_MS.0, WAITS_MS.1),
    })
}

fn failed(problem: &str) -> ToolError {
    ToolError::Failed(format!("write_stdin failed: {problem}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_limited() {
        let cases = [
            (false, 0, 250),
            (false, 1_000, 1_000),
            (false, 600_000, 30_000),
            (true, 250, 5_000),
            (true, 60_000, 60_000),
            (true, 600_000, 300_000),
        ];
        for (is_poll, wanted, expected) in cases {
            assert_eq!(waiting_time(is_poll, wanted, 300_000), Duration::from_millis(expected));
        }
        assert_eq!(waiting_time(true, 9_000, 100), Duration::from_millis(5_000));
    }
}
