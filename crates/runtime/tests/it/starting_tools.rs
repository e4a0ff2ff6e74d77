//! A request's step has the tools of every source, even if a source becomes ready while the step is captured.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use engine::{Step, ToolCall, ToolOutcome, ToolSpec};
use oarlock_runtime::{StepMaker, ThreadSettings};
use serde_json::json;
use tools::{BoxFuture, Offer, ToolCx, ToolError, ToolSource};

use crate::support::bench;
use crate::thread_stage::{FixedSteps, ThreadStage, seed, turn};

/// Starting until its tools were listed once, like a server that becomes ready right after.
#[derive(Debug, Default)]
struct ReadyAfterFirstListing {
    listings: AtomicUsize,
}

impl ToolSource for ReadyAfterFirstListing {
    fn specs(&self, _: &Offer) -> Vec<ToolSpec> {
        Vec::new()
    }

    fn has(&self, _: &str) -> bool {
        false
    }

    fn run(&self, _: ToolCall, _: ToolCx) -> BoxFuture<'static, Result<ToolOutcome, ToolError>> {
        Box::pin(async { Ok(ToolOutcome::text("")) })
    }

    fn starting(&self) -> Option<BoxFuture<'static, ()>> {
        let is_starting = self.listings.load(Ordering::SeqCst) == 0;
        is_starting.then(|| -> BoxFuture<'static, ()> { Box::pin(std::future::ready(())) })
    }
}

/// Steps whose instructions contain the number of tool listings so far.
#[derive(Debug)]
struct CountedSteps(Arc<ReadyAfterFirstListing>);

impl StepMaker for CountedSteps {
    fn capture(&self, settings: &ThreadSettings, sources: &[Arc<dyn ToolSource>]) -> Step {
        let listing = self.0.listings.fetch_add(1, Ordering::SeqCst);
        let step = FixedSteps { panics: false }.capture(settings, sources);
        Step { base_instructions: format!("listing {listing}").into(), ..step }
    }
}

#[tokio::test]
async fn a_step_that_was_captured_before_a_source_was_ready_is_captured_again() {
    let root = tempfile::tempdir().expect("a folder");
    let stage = ThreadStage::new(root.path(), &json!([{ "text": "done" }]));
    let source = Arc::new(ReadyAfterFirstListing::default());
    let bench = Arc::into_inner(bench()).expect("nobody else has it").with_sources(vec![source.clone()]);
    let steps = Arc::new(CountedSteps(source));
    let thread = stage.open_with(Arc::new(bench), seed(), None, steps);
    thread.start_turn(turn("u1", "hi")).await.expect("accepted");
    stage.notified("turn/completed", 1).await;
    assert_eq!(stage.script.requests()[0].instructions, "listing 1");
}
