//! `test_sync_tool`: lets tests of the runtime observe which calls run at the same time.

use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::time::Duration;

use engine::ToolOutcome;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::watch;

use crate::tool::text;
use crate::{BuiltinTool, Offer, Standing, ToolCx, ToolError};

const TIMEOUT_MS: u64 = 1_000;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// How long to sleep first.
    sleep_before_ms: Option<u64>,
    /// How long to sleep at the end.
    sleep_after_ms: Option<u64>,
    /// Where to wait for other calls.
    barrier: Option<BarrierArgs>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BarrierArgs {
    /// Calls with the same id wait for each other.
    id: String,
    /// How many calls have to arrive before any goes on.
    participants: usize,
    /// How long to wait for the others. Default: 1000.
    timeout_ms: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
pub struct TestSyncTool;

impl BuiltinTool for TestSyncTool {
    const NAME: &'static str = "test_sync_tool";
    const ABOUT: &'static str = "For tests of the runtime: sleep, or wait until other calls have arrived.";
    const PARALLEL: bool = true;
    type Args = Args;

    fn standing(offer: &Offer) -> Standing {
        Standing::offered_if(offer.knows(Self::NAME))
    }

    async fn call(&self, args: Args, _: &ToolCx) -> Result<ToolOutcome, ToolError> {
        sleep(args.sleep_before_ms).await;
        if let Some(barrier) = &args.barrier {
            meet(barrier).await?;
        }
        sleep(args.sleep_after_ms).await;
        Ok(text("ok"))
    }
}

async fn sleep(milliseconds: Option<u64>) {
    if let Some(milliseconds) = milliseconds.filter(|milliseconds| *milliseconds > 0) {
        tokio::time::sleep(Duration::from_millis(milliseconds)).await;
    }
}

/// Process-wide, so that calls of different threads can meet too.
static MEETINGS: Mutex<Option<HashMap<String, Meeting>>> = Mutex::new(None);

/// Calls that wait for each other. Removed when all have arrived, or none waits.
#[derive(Debug)]
struct Meeting {
    participants: usize,
    arrived: usize,
    complete: watch::Sender<bool>,
}

fn meetings() -> MutexGuard<'static, Option<HashMap<String, Meeting>>> {
    MEETINGS.lock()
}

async fn meet(barrier: &BarrierArgs) -> Result<(), ToolError> {
    let BarrierArgs { id, participants, timeout_ms } = barrier;
    let timeout_ms = timeout_ms.unwrap_or(TIMEOUT_MS);
    if *participants == 0 || timeout_ms == 0 {
        return Err(ToolError::Failed(
            "a barrier needs participants and a timeout of more than 0".to_owned(),
        ));
    }
    let Some(mut waiting) = arrive(id, *participants)? else { return Ok(()) };
    let all =
        tokio::time::timeout(Duration::from_millis(timeout_ms), waiting.complete.wait_for(|done| *done));
    // The last call may have arrived at the timeout.
    if all.await.is_err() && !*waiting.complete.borrow() {
        return Err(ToolError::Failed(format!(
            "the others did not arrive at barrier {id} within {timeout_ms} ms"
        )));
    }
    Ok(())
}

/// `None` for the last call to arrive, which releases the others.
fn arrive(id: &str, participants: usize) -> Result<Option<Arrived>, ToolError> {
    let mut all = meetings();
    let all = all.get_or_insert_default();
    let meeting = all.entry(id.to_owned()).or_insert_with(|| Meeting {
        participants,
        arrived: 0,
        complete: watch::Sender::new(false),
    });
    if meeting.participants != participants {
        let others = meeting.participants;
        return Err(ToolError::Failed(format!("others wait at barrier {id} for {others} participants")));
    }
    meeting.arrived += 1;
    if meeting.arrived < participants {
        return Ok(Some(Arrived { id: id.to_owned(), complete: meeting.complete.subscribe() }));
    }
    meeting.complete.send_replace(true);
    all.remove(id);
    Ok(None)
}

/// Counts as arrived until dropped.
#[derive(Debug)]
struct Arrived {
    id: String,
    complete: watch::Receiver<bool>,
}

impl Drop for Arrived {
    fn drop(&mut self) {
        let mut all = meetings();
        // A completed meeting is already removed; one with the same id is another meeting.
        if *self.complete.borrow() {
            return;
        }
        let Some(all) = all.as_mut() else { return };
        if let Some(meeting) = all.get_mut(&self.id) {
            meeting.arrived -= 1;
            if meeting.arrived == 0 {
                all.remove(&self.id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use futures_util::FutureExt;
    use serde_json::{Value, json};

    use super::*;
    use crate::scene::Scene;

    async fn run(arguments: Value) -> (String, bool) {
        Scene::in_folder(Path::new("/")).run_text("test_sync_tool", arguments).await
    }

    fn at(id: &str, participants: usize, timeout_ms: u64) -> Value {
        json!({"barrier": {"id": id, "participants": participants, "timeout_ms": timeout_ms}})
    }

    #[tokio::test(start_paused = true)]
    async fn it_sleeps() {
        let began = tokio::time::Instant::now();
        let (text, success) = run(json!({"sleep_before_ms": 30_000, "sleep_after_ms": 40_000})).await;
        assert_eq!((text.as_str(), success), ("ok", true));
        assert_eq!(began.elapsed().as_secs(), 70);
        assert_eq!(run(json!({})).await.0, "ok");
    }

    #[tokio::test(start_paused = true)]
    async fn calls_continue_when_all_have_arrived() {
        for _ in 0..3 {
            let call = || run(at("all", 3, 1_000));
            let (one, two, three) = tokio::join!(call(), call(), call());
            assert_eq!([one.0, two.0, three.0], ["ok"; 3]);
        }
        assert_eq!(run(at("alone", 1, 1_000)).await.0, "ok");
    }

    #[tokio::test(start_paused = true)]
    async fn a_cancelled_call_no_longer_counts() {
        let (text, success) = run(at("late", 2, 50)).await;
        assert_eq!(
            (text.as_str(), success),
            ("the others did not arrive at barrier late within 50 ms", false)
        );
        // Dropped while it waits.
        assert_eq!(run(at("late", 2, 1_000)).now_or_never(), None);
        let (text, _) = run(at("late", 2, 50)).await;
        assert!(text.contains("did not arrive"), "{text}");
        assert!(meetings().as_ref().is_none_or(|all| !all.contains_key("late")));
    }

    #[tokio::test(start_paused = true)]
    async fn an_invalid_barrier_is_refused() {
        let waiting = run(at("disputed", 2, 1_000));
        let mut waiting = std::pin::pin!(waiting);
        assert_eq!(waiting.as_mut().now_or_never(), None);
        assert_eq!(run(at("disputed", 3, 50)).await.0, "others wait at barrier disputed for 2 participants");
        let zero = "a barrier needs participants and a timeout of more than 0";
        assert_eq!(run(at("none", 0, 50)).await.0, zero);
        assert_eq!(run(at("none", 2, 0)).await.0, zero);
    }
}
