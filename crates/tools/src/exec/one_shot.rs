//! Commands that run to their end within their call.

use std::sync::Arc;
use std::time::Duration;

use engine::{Truncation, truncate_middle};
use protocol::ThreadItem;
use sandbox::{Chunk, CommandGuard, Excerpt, FinishedCommand, HeadTail, RunOptions, SpawnError, run_with};

use super::live::{Live, delta};
use super::{
    Authorization, Blocked, EndedCommand, Go, Overflow, Setting, WholeOutput, ended, not_started, run_there,
};

/// A command that has ended.
#[derive(Debug)]
pub(crate) struct Shot {
    pub(crate) exit_code: i32,
    pub(crate) duration: Duration,
    /// Standard output, then standard error, after a line about a timeout or a lost environment.
    pub(crate) output: String,
    pub(crate) timed_out: bool,
    /// Set if the exit is unknown, because the environment was lost.
    pub(crate) lost: Option<String>,
    /// The file with the whole output, for the model.
    pub(crate) whole: Option<WholeOutput>,
    pub(crate) item: ThreadItem,
}

/// The outcome of a command that was run to its end.
#[derive(Debug)]
pub(crate) enum OneShot {
    Ran(Box<Shot>),
    /// With the item for clients, if they have not seen one.
    Blocked(Blocked, Option<Box<ThreadItem>>),
}

/// Decides and runs a command; a second time without a sandbox, if that stopped it and a client approves. Dropping the
/// future kills it.
pub(crate) async fn run_once(mut authorization: Authorization, timeout: Duration) -> OneShot {
    let live = Live::new();
    let mut cleared = authorization.clear().await;
    loop {
        let go = match cleared {
            Ok(go) => go,
            Err(blocked) => return give_up(&authorization, blocked).await,
        };
        let confined = go.is_confined();
        match run(&authorization, &live, go, timeout).await {
            Err(blocked) => return give_up(&authorization, blocked).await,
            Ok(shot)
                if !shot.timed_out && authorization.may_retry(confined, shot.exit_code, &shot.output) =>
            {
                cleared = authorization.clear_unsandboxed().await;
            }
            Ok(shot) => return OneShot::Ran(Box::new(shot)),
        }
    }
}

/// Runs a command of the user.
pub(crate) async fn run_for_user(mut authorization: Authorization, timeout: Duration) -> OneShot {
    let live = Live::new();
    let ran = match authorization.clear_for_user().await {
        Ok(go) => run(&authorization, &live, go, timeout).await,
        Err(blocked) => Err(blocked),
    };
    match ran {
        Ok(shot) => OneShot::Ran(Box::new(shot)),
        Err(blocked) => give_up(&authorization, blocked).await,
    }
}

/// Shows clients a command that does not run.
pub(crate) async fn give_up(authorization: &Authorization, blocked: Blocked) -> OneShot {
    // A command that is refused or cannot run has no item yet, and clients should see the request.
    let is_unseen = !authorization.is_open() && !matches!(blocked, Blocked::Declined);
    if is_unseen {
        let Setting { thread_id, turn_id, sink, options, .. } = authorization.setting();
        sink.notify(options.item_started(thread_id, turn_id, authorization.item().clone())).await;
    }
    let is_shown = is_unseen || authorization.is_open();
    let item = is_shown.then(|| Box::new(not_started(authorization.item().clone(), &blocked)));
    OneShot::Blocked(blocked, item)
}

async fn run(authorization: &Authorization, live: &Live, go: Go, timeout: Duration) -> Result<Shot, Blocked> {
    let setting = authorization.setting();
    live.reopen();
    let clock = setting.clock.clone();
    let guard: CommandGuard = Arc::new(setting.scope.hold());
    let mut overflow = Overflow::new(setting.options.outputs.as_deref());
    let keep = |chunk: &Chunk| {
        overflow.push(&chunk.bytes);
        live.push(chunk);
    };
    let running = async {
        let finished = match go {
            Go::Here(here) => {
                let (order, extras) = here.into_parts(guard);
                let (timeout, clock) = (Some(timeout), clock.clone());
                let options = RunOptions { timeout, clock, extras, ..RunOptions::default() };
                match run_with(order, options, keep).await {
                    Ok(finished) => Ok((finished, None)),
                    Err(error) => Err(Blocked::Failed(why(&error))),
                }
            }
            Go::There(errand) => run_there(*errand, (timeout, &clock), guard, keep).await,
        };
        live.complete();
        finished
    };
    let telling = live.notify(|piece| setting.sink.notify(delta(setting, piece)));
    let (finished, ()) = tokio::join!(running, telling);
    let (finished, lost) = finished?;
    let whole = overflow.finish();
    let output = output(&finished, lost.as_deref());
    let FinishedCommand { exit, timed_out, duration, .. } = finished;
    let ending = EndedCommand { output, exit_code: exit.code, duration, whole };
    let item = ended(authorization.item().clone(), &ending);
    let EndedCommand { mut output, exit_code, whole, .. } = ending;
    if timed_out {
        // For the model only: clients see the exit code and the output.
        output.insert_str(0, &format!("command timed out after {} milliseconds\n", timeout.as_millis()));
    }
    // The model cannot read this machine's files from another environment.
    let whole = whole.filter(|_| setting.elsewhere.is_none());
    Ok(Shot { exit_code, duration, output, timed_out, lost, whole, item })
}

/// With the cause, if the error itself does not name it.
pub(crate) fn why(error: &SpawnError) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

/// Standard output, then standard error, after a line if the environment was lost.
fn output(finished: &FinishedCommand, lost: Option<&str>) -> String {
    let written = text_of(&finished.stdout) + &text_of(&finished.stderr);
    match lost {
        Some(lost) if !finished.timed_out => format!("{lost}\n{written}"),
        _ => written,
    }
}

/// The kept part, with a note about what was cut.
pub(crate) fn text_of(written: &HeadTail) -> String {
    let Excerpt { mut head, omitted_bytes, tail } = written.excerpt();
    if omitted_bytes > 0 {
        head.push_str(&format!("\n[… {omitted_bytes} bytes left out …]\n"));
        head.push_str(&tail);
    }
    head
}

/// The output truncated for the model, with the number of lines if it was cut.
pub(crate) fn output_of(output: &str, limit: Truncation) -> (String, Option<usize>) {
    let room = match limit {
        Truncation::Bytes(bytes) => bytes,
        Truncation::Tokens(tokens) => tokens.saturating_mul(4),
    };
    match output.len() > room {
        true => (truncate_middle(output, limit), Some(output.lines().count())),
        false => (output.to_owned(), None),
    }
}
