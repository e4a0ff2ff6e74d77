//! The trace spans of a thread: its turn, and within it model requests and operations.

use engine::{Question, ToolCall, ToolOutcome};
use model::{ModelFailure, PreparedRequest, Purpose, StreamEvent};
use protocol::{ThreadId, TurnId, TurnStatus};
use traces::{Span, TraceContext, Tracer};

/// The span of the running turn.
#[derive(Debug)]
pub(crate) struct ThreadSpans {
    tracer: Tracer,
    turn: Span,
    is_running: bool,
    /// The trace context of the current command.
    caller: Option<TraceContext>,
}

impl ThreadSpans {
    pub(crate) fn new(tracer: Tracer) -> Self {
        Self { tracer, turn: Span::default(), is_running: false, caller: None }
    }

    /// A turn that the next command starts belongs to this context.
    pub(crate) fn set_caller(&mut self, caller: Option<TraceContext>) {
        self.caller = caller;
    }

    /// Starts the span of a new turn.
    pub(crate) fn follow(&mut self, thread: &ThreadId, active: Option<&TurnId>) {
        let was_running = std::mem::replace(&mut self.is_running, active.is_some());
        if let Some(turn) = active.filter(|_| !was_running) {
            self.turn = self.tracer.start("turn", self.caller.clone());
            self.turn.word("oarlock.thread.id", thread.as_str());
            self.turn.word("oarlock.turn.id", turn.as_str());
        }
    }

    /// The turn has ended; without a status, it was suspended.
    pub(crate) fn end_turn(&mut self, status: Option<TurnStatus>) {
        let outcome = match status {
            None => "suspended",
            Some(TurnStatus::Completed) => "completed",
            Some(TurnStatus::Interrupted) => "interrupted",
            Some(TurnStatus::Failed) => "failed",
            Some(TurnStatus::InProgress) => "inProgress",
        };
        self.turn.word("oarlock.outcome", outcome);
        if status == Some(TurnStatus::Failed) {
            self.turn.fail(outcome);
        }
        self.turn = Span::default();
    }

    /// Updates the span after a failed record, because no notification of the turn's end may have come.
    pub(crate) fn record_lost(&mut self, is_running: bool) {
        self.is_running = is_running;
        if !is_running {
            self.end_turn(Some(TurnStatus::Failed));
        }
    }

    pub(crate) fn turn(&self) -> Option<TraceContext> {
        self.turn.context()
    }

    pub(crate) fn model_request(&self, request: &PreparedRequest) -> Span {
        let mut span = self.tracer.start("model.request", self.turn());
        span.word("gen_ai.request.model", &request.body.model);
        span.word("oarlock.purpose", purpose(request.metadata.purpose));
        span.number("oarlock.attempt", request.metadata.attempt.into());
        span
    }

    pub(crate) fn operation(&self, call: &ToolCall) -> Span {
        self.operation_of(&call.name, &call.call_id)
    }

    /// The span of a client's tool. Other questions belong to an operation with its own span.
    pub(crate) fn question(&self, question: &Question) -> Option<Span> {
        match question {
            Question::DynamicTool(call) => Some(self.operation_of(&call.tool, &call.call_id)),
            _ => None,
        }
    }

    fn operation_of(&self, tool: &str, call_id: &str) -> Span {
        let mut span = self.tracer.start("operation", self.turn());
        span.word("gen_ai.tool.name", tool);
        span.word("gen_ai.tool.call.id", call_id);
        span
    }
}

fn purpose(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Turn => "turn",
        Purpose::Compaction => "compaction",
        Purpose::Review => "review",
        Purpose::Memory => "memory",
    }
}

/// Ends the span of a model request with its last event.
pub(crate) fn end_request(mut span: Span, event: &Result<StreamEvent, ModelFailure>) {
    match event {
        Ok(StreamEvent::Completed { usage: Some(usage), .. }) => {
            span.number("gen_ai.usage.input_tokens", usage.input_tokens);
            span.number("gen_ai.usage.output_tokens", usage.output_tokens);
        }
        Ok(StreamEvent::Failed(failure)) | Err(failure) => span.fail(&format!("{:?}", failure.class)),
        Ok(_) => {}
    }
}

/// Ends the span of an operation.
pub(crate) fn end_operation(mut span: Span, outcome: &ToolOutcome) {
    if !outcome.success {
        span.fail("tool");
    }
}
