//! Answers that a model paused: it is asked to go on, and whoever reads the answer gets one.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use model::protocol::{CodexErrorInfo, ResponseItem, TokenUsageBreakdown};
use model::{EventStream, FailureClass, FailureVerdict, ModelFailure, PreparedRequest, StreamEvent};

/// The most pauses of one answer after which a model is asked to go on.
const MOST_PAUSES: u32 = 3;

/// Asks the model once.
type Ask = Box<dyn Fn(PreparedRequest) -> EventStream + Send>;

/// One answer, put together from as many as the model made of it.
pub(crate) struct WholeAnswer {
    ask: Ask,
    /// As it was sent last.
    request: PreparedRequest,
    events: EventStream,
    /// Items that came since.
    given: Vec<Arc<ResponseItem>>,
    pauses: u32,
    /// By the parts that ended with a pause.
    spent: Option<TokenUsageBreakdown>,
}

impl WholeAnswer {
    pub(crate) fn new(ask: Ask, request: PreparedRequest) -> Self {
        let events = ask(request.clone());
        Self { ask, request, events, given: Vec::new(), pauses: 0, spent: None }
    }

    /// Nothing for what the reader need not see.
    fn take(
        &mut self,
        event: Result<StreamEvent, ModelFailure>,
    ) -> Option<Result<StreamEvent, ModelFailure>> {
        match event {
            Ok(StreamEvent::Failed(failure)) | Err(failure) if failure.class == FailureClass::Paused => {
                self.after_pause(failure)
            }
            Ok(StreamEvent::Failed(failure)) => Some(Ok(StreamEvent::Failed(self.with_spent(failure)))),
            Err(failure) => Some(Err(self.with_spent(failure))),
            // The reader knows of one answer, which has begun.
            Ok(StreamEvent::Opened(_)) if self.pauses > 0 => None,
            Ok(StreamEvent::ItemDone(item)) => {
                self.given.push(Arc::from(item.clone()));
                Some(Ok(StreamEvent::ItemDone(item)))
            }
            Ok(StreamEvent::Completed { response_id, usage }) => {
                Some(Ok(StreamEvent::Completed { response_id, usage: sum(self.spent.take(), usage) }))
            }
            Ok(event) => Some(Ok(event)),
        }
    }

    fn with_spent(&mut self, failure: ModelFailure) -> ModelFailure {
        ModelFailure { spent: sum(self.spent.take(), failure.spent.clone()), ..failure }
    }

    fn after_pause(&mut self, failure: ModelFailure) -> Option<Result<StreamEvent, ModelFailure>> {
        self.spent = sum(self.spent.take(), failure.spent.clone());
        let is_call = |item: &Arc<ResponseItem>| {
            matches!(**item, ResponseItem::FunctionCall { .. } | ResponseItem::CustomToolCall { .. })
        };
        if self.given.iter().any(is_call) {
            // It goes on with their outputs, which are the reader's to send.
            let usage = self.spent.take();
            return Some(Ok(StreamEvent::Completed { response_id: String::new(), usage }));
        }
        if self.pauses == MOST_PAUSES {
            let verdict = Some(FailureVerdict { info: CodexErrorInfo::Other, may_retry: false });
            let failure = ModelFailure { class: FailureClass::Stream, verdict, ..failure };
            return Some(Err(self.with_spent(ModelFailure { spent: None, ..failure })));
        }
        self.pauses += 1;
        Arc::make_mut(&mut self.request.body).input.append(&mut self.given);
        self.events = (self.ask)(self.request.clone());
        None
    }
}

impl Stream for WholeAnswer {
    type Item = Result<StreamEvent, ModelFailure>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            let Some(event) = ready!(self.events.as_mut().poll_next(context)) else {
                return Poll::Ready(None);
            };
            if let Some(event) = self.take(event) {
                return Poll::Ready(Some(event));
            }
        }
    }
}

fn sum(one: Option<TokenUsageBreakdown>, other: Option<TokenUsageBreakdown>) -> Option<TokenUsageBreakdown> {
    let (Some(one), Some(other)) = (&one, &other) else { return one.or(other) };
    let written = one.cache_write_input_tokens.unwrap_or(0) + other.cache_write_input_tokens.unwrap_or(0);
    Some(TokenUsageBreakdown {
        total_tokens: one.total_tokens.saturating_add(other.total_tokens),
        input_tokens: one.input_tokens.saturating_add(other.input_tokens),
        cached_input_tokens: one.cached_input_tokens.saturating_add(other.cached_input_tokens),
        output_tokens: one.output_tokens.saturating_add(other.output_tokens),
        reasoning_output_tokens: one.reasoning_output_tokens.saturating_add(other.reasoning_output_tokens),
        cache_write_input_tokens: (written > 0).then_some(written),
        is_estimated: one.is_estimated || other.is_estimated,
    })
}
