//! What runs beside an actor: model streams, tools, questions and timers. Each reports by an input, and none outlives
//! the actor.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use engine::{Input, Step, ToolCall};
use futures_util::StreamExt;
use model::{ModelFailure, ModelTransport, PreparedRequest};
use protocol::DynamicToolCallParams;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

use crate::audience::Audience;
use crate::tools::{Progress, ToolRunner};

/// How many inputs may wait for the actor. A stream that is ahead of its readers stops here.
const WAITING_INPUTS: usize = 256;

#[derive(Debug)]
pub(crate) struct Tasks {
    set: JoinSet<()>,
    inputs: mpsc::Sender<Input>,
    streams: HashMap<u64, AbortHandle>,
    calls: HashMap<String, AbortHandle>,
}

impl Tasks {
    pub(crate) fn new() -> (Self, mpsc::Receiver<Input>) {
        let (inputs, finished) = mpsc::channel(WAITING_INPUTS);
        (Self { set: JoinSet::new(), inputs, streams: HashMap::new(), calls: HashMap::new() }, finished)
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
                let event = events
                    .next()
                    .await
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

    pub(crate) fn run_tool(&mut self, tools: &Arc<dyn ToolRunner>, call: ToolCall, step: Arc<Step>) {
        let call_id = call.call_id.clone();
        let progress = Progress { call_id: call_id.clone(), inputs: self.inputs.clone() };
        let outcome = tools.run(call, step, progress);
        self.report(call_id, async move |call_id| Input::ToolFinished { call_id, outcome: outcome.await });
    }

    pub(crate) fn ask(&mut self, audience: &Arc<dyn Audience>, params: DynamicToolCallParams) {
        let call_id = params.call_id.clone();
        let answer = audience.call_tool(params);
        self.report(call_id, async move |call_id| Input::DynamicToolAnswered {
            call_id,
            answer: answer.await,
        });
    }

    fn report<F, R>(&mut self, call_id: String, work: F)
    where
        F: FnOnce(String) -> R,
        R: Future<Output = Input> + Send + 'static,
    {
        let inputs = self.inputs.clone();
        let input = work(call_id.clone());
        let handle = self.set.spawn(async move {
            let input = input.await;
            let _ = inputs.send(input).await;
        });
        self.calls.insert(call_id, handle);
    }

    pub(crate) fn stop_call(&mut self, call_id: &str) {
        if let Some(handle) = self.calls.remove(call_id) {
            handle.abort();
        }
    }

    pub(crate) fn wake_after(&mut self, pause: Duration) {
        let inputs = self.inputs.clone();
        self.set.spawn(async move {
            tokio::time::sleep(pause).await;
            let _ = inputs.send(Input::Woken).await;
        });
    }

    /// Forgets tasks that have ended. A panic of one is told as the end of what it did.
    pub(crate) fn tidy(&mut self) {
        while let Some(ended) = self.set.try_join_next() {
            if let Err(error) = ended
                && error.is_panic()
            {
                tracing::error!(%error, "a task of a thread panicked");
            }
        }
        self.streams.retain(|_, handle| !handle.is_finished());
        self.calls.retain(|_, handle| !handle.is_finished());
    }

    pub(crate) async fn stop(&mut self) {
        self.set.shutdown().await;
    }
}
