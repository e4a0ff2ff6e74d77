//! The span of a task that is at work. What the runtime and the host do for it belongs below it.

use protocol::ThreadId;
use traces::{Span, TraceContext, Tracer};

/// One span from when a task has something to do until it rests or waits without a runtime.
#[derive(Debug)]
pub(super) struct TaskSpans {
    tracer: Tracer,
    task: Option<Span>,
    /// Of the last request that gave it work: what goes on after a pause belongs to the same trace.
    caller: Option<TraceContext>,
}

impl TaskSpans {
    pub(super) fn new(tracer: Tracer) -> Self {
        Self { tracer, task: None, caller: None }
    }

    /// The task has something to do, for this request or for itself.
    pub(super) fn at_work(&mut self, id: &ThreadId, caller: Option<TraceContext>) {
        self.caller = caller.or(self.caller.take());
        let begin = || {
            let mut span = self.tracer.start("task", self.caller.clone());
            span.word("oarlock.thread.id", id.as_str());
            span
        };
        self.task.get_or_insert_with(begin);
    }

    pub(super) fn at_rest(&mut self) {
        self.task = None;
    }

    /// For what is done for the task.
    pub(super) fn task(&self) -> Option<TraceContext> {
        self.task.as_ref().and_then(Span::context)
    }
}
