//! The events of one HTTP response.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use std::vec;

use bytes::Bytes;
use futures_core::Stream;
use hyper::Response;
use hyper::body::{Body as _, Incoming};
use model::{ModelFailure, StreamEvent};
use tokio::time::{Instant, Sleep, sleep};

use crate::client::causes;
use crate::event::{CLOSED_EARLY, read_event};
use crate::headers;
use crate::sse::SseReader;
use crate::transport::Carrier;

pub(crate) type Sending = Pin<Box<dyn Future<Output = Result<Response<Incoming>, ModelFailure>> + Send>>;
type Event = Result<StreamEvent, ModelFailure>;

/// Sends, then reads. Nothing runs beside it: what is not polled is not read, so a slow consumer slows the provider, and
/// dropping the stream closes the connection.
pub(crate) struct ResponseStream {
    state: State,
    carrier: Arc<Carrier>,
}

enum State {
    Sending(Sending),
    Reading(Reading),
    Ended,
}

impl ResponseStream {
    pub(crate) fn new(sending: Sending, carrier: Arc<Carrier>) -> Self {
        Self { state: State::Sending(sending), carrier }
    }
}

impl Stream for ResponseStream {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Event>> {
        let this = &mut *self;
        let event = loop {
            match &mut this.state {
                State::Sending(sending) => match ready!(sending.as_mut().poll(context)) {
                    Ok(response) => this.state = State::Reading(Reading::new(response, &this.carrier)),
                    Err(failure) => break Err(failure),
                },
                State::Reading(reading) => break ready!(reading.poll_event(context, &this.carrier)),
                State::Ended => return Poll::Ready(None),
            }
        };
        let event = cleaned(event, &this.carrier);
        // A failed response is told at once and not when the connection ends: nothing the provider may still send can
        // change the outcome, and a connection that stays open would only delay it.
        if event.as_ref().map_or(true, StreamEvent::is_terminal) {
            this.state = State::Ended;
        }
        Poll::Ready(Some(event))
    }
}

/// What a provider says about a failure may quote the key it was given.
fn cleaned(event: Event, carrier: &Carrier) -> Event {
    let clean = |failure: ModelFailure| ModelFailure { message: carrier.clean(failure.message), ..failure };
    match event {
        Err(failure) => Err(clean(failure)),
        Ok(StreamEvent::Failed(failure)) => Ok(StreamEvent::Failed(clean(failure))),
        other => other,
    }
}

struct Reading {
    /// Made from the headers; come before anything of the body.
    opening: vec::IntoIter<StreamEvent>,
    body: Incoming,
    reader: SseReader,
    silence: Silence,
}

impl Reading {
    fn new(response: Response<Incoming>, carrier: &Carrier) -> Self {
        let (head, body) = response.into_parts();
        Self {
            opening: headers::opening_events(&head.headers).into_iter(),
            body,
            reader: SseReader::new(carrier.max_event_bytes),
            silence: Silence::default(),
        }
    }

    fn poll_event(&mut self, context: &mut Context<'_>, carrier: &Carrier) -> Poll<Event> {
        if let Some(event) = self.opening.next() {
            return Poll::Ready(Ok(event));
        }
        loop {
            match self.reader.next_event() {
                Ok(Some(data)) => {
                    self.silence.end();
                    if let Some(event) = read_event(&data.text()).transpose() {
                        return Poll::Ready(event);
                    }
                }
                Ok(None) => match self.poll_chunk(context) {
                    Poll::Ready(Ok(chunk)) => self.reader.push(chunk),
                    Poll::Ready(Err(failure)) => return Poll::Ready(Err(failure)),
                    Poll::Pending => {
                        ready!(self.silence.poll(context, carrier.patience));
                        return Poll::Ready(Err(ModelFailure::stream(
                            "idle timeout waiting for the provider",
                        )));
                    }
                },
                Err(too_long) => return Poll::Ready(Err(ModelFailure::stream(too_long))),
            }
        }
    }

    fn poll_chunk(&mut self, context: &mut Context<'_>) -> Poll<Result<Bytes, ModelFailure>> {
        let chunk = match ready!(Pin::new(&mut self.body).poll_frame(context)) {
            // Trailers say nothing to us.
            Some(Ok(frame)) => Ok(frame.into_data().unwrap_or_default()),
            Some(Err(error)) => Err(ModelFailure::stream(causes(&error))),
            None => Err(ModelFailure::stream(CLOSED_EARLY)),
        };
        Poll::Ready(chunk)
    }
}

/// How long we have been waiting for an event. Starts with the wait, not with the event before: the time a consumer takes
/// is not the provider's.
#[derive(Default)]
struct Silence {
    /// Made once per stream and set again for each wait.
    timer: Option<Pin<Box<Sleep>>>,
    is_waiting: bool,
}

impl Silence {
    fn end(&mut self) {
        self.is_waiting = false;
    }

    /// Ready when it has been too long.
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

    fn is_over(silence: &mut Silence) -> bool {
        silence.poll(&mut Context::from_waker(Waker::noop()), PATIENCE).is_ready()
    }

    #[tokio::test(start_paused = true)]
    async fn only_the_time_we_wait_counts() {
        let mut silence = Silence::default();
        assert!(!is_over(&mut silence));
        advance(PATIENCE * 9 / 10).await;
        assert!(!is_over(&mut silence));
        // An event comes, and the consumer takes its time with it.
        silence.end();
        advance(PATIENCE * 5).await;
        assert!(!is_over(&mut silence));
        advance(PATIENCE * 9 / 10).await;
        assert!(!is_over(&mut silence));
        advance(PATIENCE / 5).await;
        assert!(is_over(&mut silence));
    }
}
