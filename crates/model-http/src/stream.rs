//! The events of one HTTP response.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_core::Stream;
use http::{ResponseBody, SseReader};
use model::{ModelFailure, StreamEvent};
use tokio::time::{Instant, Sleep, sleep};
use wires::Decoder;

use crate::headers;
use crate::transport::{Accepted, Carrier};

pub(crate) type Sending = Pin<Box<dyn Future<Output = Result<Accepted, ModelFailure>> + Send>>;
type EventResult = Result<StreamEvent, ModelFailure>;

/// Sends the request, then reads the response. It has no task of its own: a slow consumer slows the provider, and
/// dropping the stream closes the connection.
pub(crate) struct ResponseStream {
    state: ResponseState,
    carrier: Arc<Carrier>,
}

enum ResponseState {
    Sending(Sending),
    Reading(Box<Reading>),
    Ended,
}

impl ResponseStream {
    pub(crate) fn new(sending: Sending, carrier: Arc<Carrier>) -> Self {
        Self { state: ResponseState::Sending(sending), carrier }
    }
}

impl Stream for ResponseStream {
    type Item = EventResult;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<EventResult>> {
        let this = &mut *self;
        let event = loop {
            match &mut this.state {
                ResponseState::Sending(sending) => match ready!(sending.as_mut().poll(context)) {
                    Ok(accepted) => {
                        this.state = ResponseState::Reading(Box::new(Reading::new(accepted, &this.carrier)));
                    }
                    Err(failure) => break Err(failure),
                },
                ResponseState::Reading(reading) => break ready!(reading.poll_event(context, &this.carrier)),
                ResponseState::Ended => return Poll::Ready(None),
            }
        };
        let event = cleaned(event, &this.carrier);
        // A failed response is reported at once, not at the end of the connection: later data cannot change the result.
        if event.as_ref().map_or(true, StreamEvent::is_terminal) {
            this.state = ResponseState::Ended;
        }
        Poll::Ready(Some(event))
    }
}

/// Removes secrets: a provider's failure message may quote the key it was given.
fn cleaned(event: EventResult, carrier: &Carrier) -> EventResult {
    let clean = |failure: ModelFailure| ModelFailure {
        message: carrier.clean(failure.message),
        details: failure.details.map(|details| carrier.clean(details)),
        ..failure
    };
    match event {
        Err(failure) => Err(clean(failure)),
        Ok(StreamEvent::Failed(failure)) => Ok(StreamEvent::Failed(clean(failure))),
        other => other,
    }
}

struct Reading {
    /// Parsed and not returned yet, in reverse order; initially those of the headers.
    events: Vec<StreamEvent>,
    decoder: Decoder,
    body: ResponseBody,
    reader: SseReader,
    /// The beginning of the body, until an event was read: it says what came instead of events.
    beginning: Option<Vec<u8>>,
    silence: IdleTimer,
}

/// An error that comes in place of events is short.
const MAX_BEGINNING: usize = 16 << 10;

impl Reading {
    fn new(accepted: Accepted, carrier: &Carrier) -> Self {
        let Accepted { response, decoder } = accepted;
        Self {
            events: headers::opening_events(&response.headers).into_iter().rev().collect(),
            decoder,
            body: response.body,
            reader: SseReader::new(carrier.max_event_bytes),
            beginning: Some(Vec::new()),
            silence: IdleTimer::default(),
        }
    }

    fn poll_event(&mut self, context: &mut Context<'_>, carrier: &Carrier) -> Poll<EventResult> {
        loop {
            if let Some(event) = self.events.pop() {
                return Poll::Ready(Ok(event));
            }
            let failure = match self.reader.next_event() {
                Ok(Some(data)) => {
                    self.silence.end();
                    self.beginning = None;
                    self.decoder.push(&data.text(), &mut self.events);
                    self.events.reverse();
                    continue;
                }
                Ok(None) => match self.poll_chunk(context) {
                    Poll::Ready(Ok(Some(chunk))) => {
                        if let Some(beginning) = &mut self.beginning {
                            let room = MAX_BEGINNING.saturating_sub(beginning.len());
                            beginning.extend_from_slice(&chunk[..chunk.len().min(room)]);
                        }
                        self.reader.push(chunk);
                        continue;
                    }
                    Poll::Ready(Ok(None)) => self.no_stream(carrier),
                    Poll::Ready(Err(failure)) => Some(failure),
                    Poll::Pending => {
                        ready!(self.silence.poll(context, carrier.patience));
                        Some(ModelFailure::stream("idle timeout waiting for the provider"))
                    }
                },
                Err(too_long) => Some(ModelFailure::stream(too_long)),
            };
            self.decoder.close(failure, &mut self.events);
            self.events.reverse();
            if let Some(StreamEvent::Failed(failure)) =
                self.events.pop_if(|event| matches!(event, StreamEvent::Failed(_)))
            {
                return Poll::Ready(Err(failure));
            }
        }
    }

    /// The failure that a body without any event stands for.
    fn no_stream(&mut self, carrier: &Carrier) -> Option<ModelFailure> {
        let beginning = self.beginning.take()?;
        wires::no_stream(&String::from_utf8_lossy(&beginning), carrier.shown_url())
    }

    fn poll_chunk(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, ModelFailure>> {
        let chunk = match ready!(self.body.poll_chunk(context)) {
            Some(Ok(chunk)) => Ok(Some(chunk)),
            Some(Err(error)) => Err(ModelFailure::stream(error)),
            None => Ok(None),
        };
        Poll::Ready(chunk)
    }
}

/// The time spent waiting for an event. Starts with the wait, not with the previous event: the consumer's time does not
/// count.
#[derive(Default)]
struct IdleTimer {
    /// Created once per stream and reset for each wait.
    timer: Option<Pin<Box<Sleep>>>,
    is_waiting: bool,
}

impl IdleTimer {
    fn end(&mut self) {
        self.is_waiting = false;
    }

    /// Ready when the wait was too long.
    fn poll(&mut self, context: &mut Context<'_>, patience: Duration) -> Poll<()> {
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(patience)));
        if !std::mem::replace(&mut self.is_waiting, true) {
            timer.as_mut().reset(Instant::now() + patience);
        }
        timer.as_mut().poll(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;
    use tokio::time::advance;

    const PATIENCE: Duration = Duration::from_millis(100);

    fn is_over(silence: &mut IdleTimer) -> bool {
        silence.poll(&mut Context::from_waker(Waker::noop()), PATIENCE).is_ready()
    }

    #[tokio::test(start_paused = true)]
    async fn only_the_time_we_wait_counts() {
        let mut silence = IdleTimer::default();
        assert!(!is_over(&mut silence));
        advance(PATIENCE * 9 / 10).await;
        assert!(!is_over(&mut silence));
        // An event comes, and the consumer is slow.
        silence.end();
        advance(PATIENCE * 5).await;
        assert!(!is_over(&mut silence));
        advance(PATIENCE * 9 / 10).await;
        assert!(!is_over(&mut silence));
        advance(PATIENCE / 5).await;
        assert!(is_over(&mut silence));
    }
}
