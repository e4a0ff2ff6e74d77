//! Tasks of an actor: model streams, tools, questions and timers. Each reports by an input, and none outlives the
//! actor.

use std::collections::HashMap;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use engine::{HookVerdict, Input, ProposalDecision, Question, ToolOutcome};
use futures_util::{FutureExt, StreamExt};
use model::{EventStream, ModelFailure, ModelTransport, PreparedRequest, StreamEvent};
use protocol::{FunctionCallOutputBody, ThreadId, TurnId};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use traces::{Span, TraceContext, Tracer, within};

use tools::CallScope;

use crate::audience::Audience;
use crate::thread::hooks::{HookJob, ThreadHooks};
use crate::thread::images::ImageFolder;
use crate::thread::spans::{ThreadSpans, end_operation, end_request};
use crate::thread::tool_jobs::{NestedAnswers, Progress, ToolJob, ToolRunner, WaitingProposals};
use model::event_bytes;

/// Capacity of the input queue. Streams wait when it is full.
const WAITING_INPUTS: usize = 256;

/// A model event takes one place in the queue per this many bytes while it is sent, so that many small events may wait,
/// but few large ones.
const BYTES_PER_PLACE: usize = 1024;

#[derive(Debug)]
pub(crate) struct Tasks {
    set: JoinSet<()>,
    inputs: mpsc::Sender<Input>,
    streams: HashMap<u64, AbortHandle>,
    /// The deadlines of streams that have one.
    deadlines: HashMap<u64, AbortHandle>,
    /// Calls whose results the thread has not taken yet.
    calls: HashMap<String, RunningCall>,
    /// Stopped calls that may not have ended yet.
    stopped: Vec<CallScope>,
    questions: HashMap<String, AbortHandle>,
    proposals: WaitingProposals,
    nested: NestedAnswers,
    timer: Option<AbortHandle>,
    images: ImageFolder,
    pub(crate) spans: ThreadSpans,
}

/// A running tool and its processes.
#[derive(Debug)]
struct RunningCall {
    task: AbortHandle,
    scope: CallScope,
    trace: Option<TraceContext>,
}

/// The failure of a tool, client or transport whose code panicked. Details are in the log.
const PANICKED: &str = "failed because of a defect in this program";

impl Tasks {
    pub(crate) fn new(images: ImageFolder, tracer: Tracer) -> (Self, mpsc::Receiver<Input>) {
        let (inputs, finished) = mpsc::channel(WAITING_INPUTS);
        (
            Self {
                set: JoinSet::new(),
                inputs,
                streams: HashMap::new(),
                deadlines: HashMap::new(),
                calls: HashMap::new(),
                stopped: Vec::new(),
                questions: HashMap::new(),
                proposals: WaitingProposals::default(),
                nested: NestedAnswers::default(),
                timer: None,
                images,
                spans: ThreadSpans::new(tracer),
            },
            finished,
        )
    }

    /// Sends a request and forwards its events. Always reports an end, whatever the transport does.
    pub(crate) fn stream(
        &mut self,
        transport: &Arc<dyn ModelTransport>,
        attempt: u64,
        request: PreparedRequest,
    ) {
        let span = self.spans.model_request(&request);
        let (trace, events) = (span.context(), transport.open(request));
        let events = forward_events(events, span, attempt, self.inputs.clone(), self.images.clone());
        self.streams.insert(attempt, self.set.spawn(within(trace, events)));
    }

    pub(crate) fn stop_stream(&mut self, attempt: u64) {
        for handle in [self.streams.remove(&attempt), self.deadlines.remove(&attempt)].into_iter().flatten() {
            handle.abort();
        }
    }

    /// Reports when a stream has taken this long, unless it is stopped first.
    pub(crate) fn deadline(&mut self, attempt: u64, left: Duration) {
        let inputs = self.inputs.clone();
        let handle = self.set.spawn(async move {
            tokio::time::sleep(left).await;
            let _ = inputs.send(Input::DeadlinePassed { attempt }).await;
        });
        self.deadlines.insert(attempt, handle);
    }

    /// The channel from a call back to its turn.
    pub(crate) fn progress(&self, thread_id: ThreadId, turn_id: TurnId, call_id: String) -> Progress {
        let (inputs, proposals) = (self.inputs.clone(), self.proposals.clone());
        Progress { thread_id, turn_id, call_id, inputs, proposals, nested: self.nested.clone() }
    }

    /// Sends a tool the output of a nested call.
    pub(crate) fn answer_nested(&self, call_id: &str, output: FunctionCallOutputBody) {
        self.nested.give(call_id, output);
    }

    /// Runs a tool with the hooks before and after it.
    pub(crate) fn run_tool(
        &mut self,
        tools: &Arc<dyn ToolRunner>,
        job: ToolJob,
        (hooks, hook_job): (Arc<ThreadHooks>, HookJob),
    ) {
        let call_id = job.call.call_id.clone();
        let scope = job.scope.clone();
        let (held, call) = (scope.hold(), job.call.clone());
        let span = self.spans.operation(&call);
        let trace = span.context();
        let outcome = within(trace.clone(), hooks.around(call, hook_job, tools.run(job)));
        // The tool ends before its task, so that waiting for the task is enough.
        let outcome = async move {
            let _held = held;
            let outcome = outcome.await;
            end_operation(span, &outcome);
            outcome
        };
        let failed = ToolOutcome::failure(format!("the tool {PANICKED}"));
        let task = self.report(call_id.clone(), outcome, failed, |call_id, outcome| Input::ToolFinished {
            call_id,
            outcome,
        });
        self.calls.insert(call_id, RunningCall { task, scope, trace });
    }

    pub(crate) fn run_hooks(
        &mut self,
        id: String,
        scope: CallScope,
        verdict: impl Future<Output = HookVerdict> + Send + 'static,
    ) {
        let held = scope.hold();
        let verdict = async move {
            let _held = held;
            verdict.await
        };
        let task = self.report(id.clone(), verdict, HookVerdict::default(), |id, verdict| {
            Input::HooksFinished { id, verdict }
        });
        self.calls.insert(id, RunningCall { task, scope, trace: None });
    }

    /// Sends a tool the decision about its proposal.
    pub(crate) fn decide(&self, call_id: String, number: u32, decision: ProposalDecision) {
        self.proposals.give(call_id, number, decision);
    }

    pub(crate) fn ask(&mut self, audience: &Arc<dyn Audience>, call_id: String, question: Question) {
        let panicked = format!("the question {PANICKED}");
        let span = self.spans.question(&question);
        let of_call = || self.calls.get(&call_id).and_then(|call| call.trace.clone());
        let trace = span.as_ref().map_or_else(of_call, Span::context);
        let handle = match question {
            Question::DynamicTool(params) => {
                let answer = within(trace, audience.call_tool(params));
                let answer = async move {
                    let answer = answer.await;
                    drop(span);
                    answer
                };
                self.report(call_id.clone(), answer, Err(panicked), |call_id, answer| {
                    Input::DynamicToolAnswered { call_id, answer }
                })
            }
            question => {
                let answer = within(trace, audience.ask(question));
                self.report(call_id.clone(), answer, Err(panicked), |call_id, reply| Input::Answered {
                    call_id,
                    reply: Box::new(reply),
                })
            }
        };
        self.questions.insert(call_id, handle);
    }

    /// Always reports: the result of the work or, after a panic in a program that is built to unwind, `failed`.
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

    /// Stops a call and its processes.
    pub(crate) fn stop_call(&mut self, call_id: &str) {
        self.proposals.forget(call_id);
        if let Some(RunningCall { task, scope, .. }) = self.calls.remove(call_id) {
            scope.cancel();
            task.abort();
            self.stopped.push(scope);
        }
    }

    /// The scopes of stopped calls, to wait until everything in them has ended.
    pub(crate) fn take_stopped(&mut self) -> Vec<CallScope> {
        std::mem::take(&mut self.stopped)
    }

    /// The thread has the call's result; processes it left running continue.
    pub(crate) fn release_call(&mut self, call_id: &str) {
        if let Some(call) = self.calls.remove(call_id) {
            call.scope.release();
        }
    }

    pub(crate) fn withdraw(&mut self, call_id: &str) {
        if let Some(handle) = self.questions.remove(call_id) {
            handle.abort();
        }
    }

    pub(crate) fn wake_after(&mut self, pause: Duration) {
        self.wake_when(tokio::time::sleep(pause));
    }

    pub(crate) fn wake_when(&mut self, happened: impl Future<Output = ()> + Send + 'static) {
        self.stop_timer();
        let inputs = self.inputs.clone();
        self.timer = Some(self.set.spawn(async move {
            happened.await;
            let _ = inputs.send(Input::Woken).await;
        }));
    }

    /// An ended turn waits for nothing; its timer must not wake the next one.
    pub(crate) fn stop_timer(&mut self) {
        if let Some(timer) = self.timer.take() {
            timer.abort();
        }
    }

    /// Removes ended tasks.
    pub(crate) fn tidy(&mut self) {
        while self.set.try_join_next().is_some() {}
        self.streams.retain(|_, handle| !handle.is_finished());
        self.deadlines.retain(|_, handle| !handle.is_finished());
        self.questions.retain(|_, handle| !handle.is_finished());
    }

    pub(crate) async fn stop(&mut self) {
        self.set.shutdown().await;
    }
}

/// Forwards events until the last one, or until the receiver is gone.
async fn forward_events(
    mut events: EventStream,
    span: Span,
    attempt: u64,
    inputs: mpsc::Sender<Input>,
    images: ImageFolder,
) {
    let mut span = Some(span);
    loop {
        // Transports of programs that embed the runtime may panic.
        let next = AssertUnwindSafe(events.next()).catch_unwind().await;
        let event = next
            .unwrap_or_else(|_| Some(Err(ModelFailure::stream(format_args!("the transport {PANICKED}")))))
            .unwrap_or_else(|| Err(ModelFailure::stream("the stream ended early")));
        let is_last = event.as_ref().map_or(true, StreamEvent::is_terminal);
        if let Some(span) = span.take_if(|_| is_last) {
            end_request(span, &event);
        }
        // Saved before the event of its item, which contains the file name.
        if let Ok(StreamEvent::ItemDone(item)) = &event
            && let Some(path) = images.save(item).await
        {
            let event = Ok(StreamEvent::ImageSaved { path });
            if inputs.send(Input::Model { attempt, event }).await.is_err() {
                return;
            }
        }
        // Dropping the permits frees the places that are not needed.
        let Ok(mut places) = inputs.reserve_many(places(&event)).await else { return };
        if let Some(place) = places.next() {
            place.send(Input::Model { attempt, event });
        }
        if is_last {
            return;
        }
    }
}

/// How many places must be free for an event to take one. The largest needs an empty queue.
fn places(event: &Result<StreamEvent, ModelFailure>) -> usize {
    let bytes = event.as_ref().map_or(0, event_bytes);
    (1 + bytes / BYTES_PER_PLACE).min(WAITING_INPUTS)
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;

    /// How many events of this length wait for a busy actor. Checks that all arrive when it is free.
    async fn waiting(length: usize) -> usize {
        const EVENTS: usize = 1_000;
        let delta = move |_| Ok(StreamEvent::TextDelta { delta: "x".repeat(length) });
        let end = StreamEvent::Completed { response_id: "r".to_owned(), usage: None };
        let events = stream::iter(0..EVENTS).map(delta).chain(stream::iter([Ok(end)]));
        let (inputs, mut finished) = mpsc::channel(WAITING_INPUTS);
        let task = tokio::spawn(forward_events(
            Box::pin(events),
            Span::default(),
            1,
            inputs,
            ImageFolder::new("/nowhere".as_ref(), "t"),
        ));
        let mut waiting = 0;
        loop {
            tokio::task::yield_now().await;
            if finished.len() == waiting && waiting > 0 {
                break;
            }
            waiting = finished.len();
        }
        let mut heard = 0;
        while finished.recv().await.is_some() {
            heard += 1;
        }
        task.await.expect("it ends");
        assert_eq!(heard, EVENTS + 1);
        waiting
    }

    #[tokio::test]
    async fn many_small_events_may_wait_and_few_large_ones() {
        assert_eq!(waiting(10).await, WAITING_INPUTS);
        for length in [10_000, 100_000, 1_000_000] {
            let bytes = waiting(length).await * length;
            assert!(bytes <= 17 * 1024 * 1024, "{bytes} wait");
        }
        assert_eq!(waiting(1_000_000).await, 1);
    }
}
