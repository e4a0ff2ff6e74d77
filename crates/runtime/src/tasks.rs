//! What runs beside an actor: model streams, tools, questions and timers. Each reports by an input, and none outlives
//! the actor.

use std::collections::HashMap;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use engine::{Input, Question, ToolOutcome, Verdict};
use futures_util::{FutureExt, StreamExt};
use model::{ModelFailure, ModelTransport, PreparedRequest};
use protocol::{ThreadId, TurnId};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

use crate::audience::Audience;
use crate::tools::{Progress, ToolJob, ToolRunner, Verdicts};

/// How many inputs may wait for the actor. A stream that is ahead of its readers stops here.
const WAITING_INPUTS: usize = 256;

#[derive(Debug)]
pub(crate) struct Tasks {
    set: JoinSet<()>,
    inputs: mpsc::Sender<Input>,
    streams: HashMap<u64, AbortHandle>,
    calls: HashMap<String, AbortHandle>,
    questions: HashMap<String, AbortHandle>,
    verdicts: Verdicts,
    timer: Option<AbortHandle>,
}

/// Said of a tool, a client or a transport whose code panicked. Its details are in the log.
const PANICKED: &str = "failed because of a defect in this program";

impl Tasks {
    pub(crate) fn new() -> (Self, mpsc::Receiver<Input>) {
        let (inputs, finished) = mpsc::channel(WAITING_INPUTS);
        (
            Self {
                set: JoinSet::new(),
                inputs,
                streams: HashMap::new(),
                calls: HashMap::new(),
                questions: HashMap::new(),
                verdicts: Verdicts::default(),
                timer: None,
            },
            finished,
        )
    }

    /// Carries a request and hands on its events. The end is always told, whatever the transport does.
    pub(crate) fn stream(
        &mut self,
        transport: &Arc<dyn ModelTransport>,
        attempt: u64,
        request: PreparedRequest,
    ) {
        let inputs = self.inputs.clone();
        let mut events = transport.open(request);
        let handle = self.set.spawn(async move {
            loop {
                let next = AssertUnwindSafe(events.next()).catch_unwind().await;
                let event = next
                    .unwrap_or_else(|_| {
                        Some(Err(ModelFailure::stream(format_args!("the transport {PANICKED}"))))
                    })
                    .unwrap_or_else(|| Err(ModelFailure::stream("the stream ended early")));
                let is_last = event.as_ref().map_or(true, model::StreamEvent::is_terminal);
                if inputs.send(Input::Model { attempt, event }).await.is_err() || is_last {
                    return;
                }
            }
        });
        self.streams.insert(attempt, handle);
    }

    pub(crate) fn stop_stream(&mut self, attempt: u64) {
        if let Some(handle) = self.streams.remove(&attempt) {
            handle.abort();
        }
    }

    /// The way back from a call of this turn.
    pub(crate) fn progress(&self, thread_id: ThreadId, turn_id: TurnId, call_id: String) -> Progress {
        let (inputs, verdicts) = (self.inputs.clone(), self.verdicts.clone());
        Progress { thread_id, turn_id, call_id, inputs, verdicts }
    }

    pub(crate) fn run_tool(&mut self, tools: &Arc<dyn ToolRunner>, job: ToolJob) {
        let call_id = job.call.call_id.clone();
        let outcome = tools.run(job);
        let failed = ToolOutcome::failure(format!("the tool {PANICKED}"));
        let handle = self.report(call_id.clone(), outcome, failed, |call_id, outcome| Input::ToolFinished {
            call_id,
            outcome,
        });
        self.calls.insert(call_id, handle);
    }

    /// A tool goes on, or hears that it may not.
    pub(crate) fn decide(&self, call_id: String, number: u32, verdict: Verdict) {
        self.verdicts.give(call_id, number, verdict);
    }

    pub(crate) fn ask(&mut self, audience: &Arc<dyn Audience>, call_id: String, question: Question) {
        let panicked = format!("the question {PANICKED}");
        let handle = match question {
            Question::DynamicTool(params) => {
                let answer = audience.call_tool(params);
                self.report(call_id.clone(), answer, Err(panicked), |call_id, answer| {
                    Input::DynamicToolAnswered { call_id, answer }
                })
            }
            question => {
                let answer = audience.ask(question);
                self.report(call_id.clone(), answer, Err(panicked), |call_id, reply| Input::Answered {
                    call_id,
                    reply: Box::new(reply),
                })
            }
        };
        self.questions.insert(call_id, handle);
    }

    /// It always ends: with what the work gives, or, should it panic, with `failed`.
    fn report<T: Send + 'static>(
        &mut self,
        call_id: String,
        work: impl Future<Output = T> + Send + 'static,
        failed: T,
        input: fn(String, T) -> Input,
    ) -> AbortHandle {
        let inputs = self.inputs.clone();
        self.set.spawn(async move {
            let ended = AssertUnwindSafe(work).catch_unwind().await.unwrap_or(failed);
            let _ = inputs.send(input(call_id, ended)).await;
        })
    }

    pub(crate) fn stop_call(&mut self, call_id: &str) {
        self.verdicts.forget(call_id);
        if let Some(handle) = self.calls.remove(call_id) {
            handle.abort();
        }
    }

    pub(crate) fn withdraw(&mut self, call_id: &str) {
        if let Some(handle) = self.questions.remove(call_id) {
            handle.abort();
        }
    }

    pub(crate) fn wake_after(&mut self, pause: Duration) {
        self.stop_timer();
        let inputs = self.inputs.clone();
        self.timer = Some(self.set.spawn(async move {
            tokio::time::sleep(pause).await;
            let _ = inputs.send(Input::Woken).await;
        }));
    }

    /// A turn that is over waits for nothing; its timer must not wake the next one.
    pub(crate) fn stop_timer(&mut self) {
        if let Some(timer) = self.timer.take() {
            timer.abort();
        }
    }

    /// Forgets tasks that have ended.
    pub(crate) fn tidy(&mut self) {
        while self.set.try_join_next().is_some() {}
        self.streams.retain(|_, handle| !handle.is_finished());
        self.calls.retain(|_, handle| !handle.is_finished());
        self.questions.retain(|_, handle| !handle.is_finished());
    }

    pub(crate) async fn stop(&mut self) {
        self.set.shutdown().await;
    }
}
