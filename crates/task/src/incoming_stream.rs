//! One stream of a client that carries a model request: batches come in, events go out, in order and within bounds. A
//! state machine without I/O.

use std::collections::VecDeque;
use std::fmt;

use protocol::{
    ModelError, ModelStreamEventResponse, Raw, StreamAbortReason, StreamCredit, TokenUsageBreakdown,
};
use serde_json::{Value, json};

/// The window of each stream. What was acknowledged and what is under way may both wait: two windows at most.
pub const STREAM_WINDOW: StreamCredit = StreamCredit { events: 256, bytes: 1024 * 1024 };
/// The most of the notification form, which nobody can refuse.
const MOST_UNACKNOWLEDGED: StreamCredit = StreamCredit { events: 65_536, bytes: 16 * 1024 * 1024 };
/// All events of one stream.
const MOST_BYTES: u64 = 64 * 1024 * 1024;
/// Each event costs its message and its place in a queue, beside its text.
const EVENT_COST: u64 = 64;

/// Called once with the answer to a batch. Must not block.
pub type BatchResponder = Box<dyn FnOnce(Result<ModelStreamEventResponse, ClientStreamError>) + Send>;

/// Why a message about a stream is refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ClientStreamError {
    #[error("this connection has no model request {0}")]
    UnknownRequest(String),
    #[error("model request {0} is over: it was canceled, or another attempt has taken its place")]
    StaleRequest(String),
    #[error("seq {given} leaves a gap: {expected} is expected")]
    SequenceGap { given: u64, expected: u64 },
    #[error("the stream has ended; its {next_seq} events were taken and nothing more is")]
    StreamClosed { next_seq: u64 },
    #[error("event {seq}: {problem}")]
    BadEvent { seq: u64, problem: String },
    #[error("the batch is larger than the credit that is left; send it again after the next answer")]
    CreditExceeded { next_seq: u64, credit: StreamCredit },
    #[error("a batch of {events} events does not fit a window of {window}; split it")]
    BatchTooLarge { events: usize, window: u32 },
}

impl ClientStreamError {
    /// Whether the very same message may succeed later.
    pub fn is_overload(&self) -> bool {
        matches!(self, Self::CreditExceeded { .. })
    }

    /// The fields that a client must act on, with the words of a runtime whose host carries requests.
    pub fn data(&self) -> Value {
        match self {
            Self::UnknownRequest(_) => json!({ "code": "unknownRequest" }),
            Self::StaleRequest(_) => json!({ "code": "staleRequest" }),
            Self::SequenceGap { expected, .. } => json!({ "code": "sequenceGap", "expected": expected }),
            Self::StreamClosed { next_seq } => json!({ "code": "streamClosed", "nextSeq": next_seq }),
            Self::BadEvent { seq, .. } => json!({ "code": "badEvent", "seq": seq }),
            Self::CreditExceeded { next_seq, credit } => {
                json!({ "code": "creditExceeded", "nextSeq": next_seq, "credit": credit })
            }
            Self::BatchTooLarge { window, .. } => json!({ "code": "batchTooLarge", "windowEvents": window }),
        }
    }
}

/// The end of a stream that has no terminal event.
#[derive(Debug, Clone, PartialEq)]
pub enum StreamBreak {
    /// The client does not carry the request. Nothing was sent.
    Rejected(ModelError),
    Aborted(StreamAbort),
    /// The connection of the client ended.
    CarrierGone,
}

/// As `model/streamAborted` says it.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamAbort {
    pub reason: StreamAbortReason,
    pub error: Option<ModelError>,
    pub usage: Option<TokenUsageBreakdown>,
    pub replay_safe: bool,
}

impl StreamAbort {
    /// Nobody said more than that it is over.
    pub fn plain(reason: StreamAbortReason, replay_safe: bool) -> Self {
        Self { reason, error: None, usage: None, replay_safe }
    }
}

impl StreamBreak {
    pub fn plain(reason: StreamAbortReason, replay_safe: bool) -> Self {
        Self::Aborted(StreamAbort::plain(reason, replay_safe))
    }
}

/// The next thing that a stream has.
#[derive(Debug, PartialEq)]
pub enum StreamNews {
    Event(CarriedEvent),
    Broken(StreamBreak),
}

/// An event as it came, with what the host has to know of it.
#[derive(Debug, Clone, PartialEq)]
pub struct CarriedEvent {
    pub raw: Raw,
    pub kind: EventKind,
}

/// The host passes events on as they are; of these it takes notice.
#[derive(Debug, Clone, PartialEq)]
pub enum EventKind {
    Delta,
    Other,
    /// Terminal: the answer is whole, or as whole as it gets.
    Completed(Option<TokenUsageBreakdown>),
    /// Terminal: there is no answer.
    Failed,
}

impl EventKind {
    pub fn is_terminal(&self) -> bool {
        matches!(self, Self::Completed(_) | Self::Failed)
    }
}

/// The events of one request at one client.
#[derive(Default)]
pub struct IncomingStream {
    next_seq: u64,
    waiting: VecDeque<CarriedEvent>,
    waiting_bytes: u64,
    total_bytes: u64,
    /// A batch that used up the credit is acknowledged when there is some to give.
    unanswered: Option<BatchResponder>,
    /// Given out after the events that wait.
    broken: Option<StreamBreak>,
    /// Nothing more is taken.
    is_over: bool,
}

impl fmt::Debug for IncomingStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IncomingStream").field("next_seq", &self.next_seq).finish_non_exhaustive()
    }
}

impl IncomingStream {
    /// Takes a batch, whole or not at all, but for the part of it that was taken before.
    pub fn take(&mut self, seq: u64, events: Vec<Raw>, responder: BatchResponder) {
        let fresh = match self.fresh(seq, events) {
            Ok(Some(fresh)) => fresh,
            Ok(None) => return responder(Ok(self.acknowledgement(true))),
            Err(error) => return responder(Err(error)),
        };
        if fresh.len() > STREAM_WINDOW.events as usize {
            let (events, window) = (fresh.len(), STREAM_WINDOW.events);
            return responder(Err(ClientStreamError::BatchTooLarge { events, window }));
        }
        let bytes = bytes_of(&fresh);
        let fits = (self.waiting.len() + fresh.len()) as u64 <= 2 * u64::from(STREAM_WINDOW.events)
            && (self.waiting.is_empty() || self.waiting_bytes + bytes <= 2 * STREAM_WINDOW.bytes);
        if !fits {
            let (next_seq, credit) = (self.next_seq, self.credit());
            return responder(Err(ClientStreamError::CreditExceeded { next_seq, credit }));
        }
        if let Err(error) = self.append(fresh, bytes) {
            return responder(Err(error));
        }
        if let Some(before) = self.unanswered.replace(responder) {
            // The answer to this batch says what credit there is; the one before need not wait for that.
            before(Ok(self.acknowledgement(false)));
        }
        self.answer();
    }

    /// A batch that nobody is answered about. What cannot be taken ends the stream.
    pub fn hear(&mut self, seq: u64, events: Vec<Raw>) -> Result<(), ClientStreamError> {
        let fresh = self.fresh(seq, events).inspect_err(|_| self.break_protocol())?;
        let Some(fresh) = fresh else { return Ok(()) };
        let bytes = bytes_of(&fresh);
        let count = (self.waiting.len() + fresh.len()) as u64;
        if count > u64::from(MOST_UNACKNOWLEDGED.events)
            || self.waiting_bytes + bytes > MOST_UNACKNOWLEDGED.bytes
        {
            self.break_protocol();
            let (next_seq, credit) = (self.next_seq, self.credit());
            return Err(ClientStreamError::CreditExceeded { next_seq, credit });
        }
        self.append(fresh, bytes)
    }

    /// The end without a terminal event. A stream that has ended stays as it is.
    pub fn end(&mut self, how: StreamBreak) {
        if !self.is_over {
            self.is_over = true;
            self.broken = Some(how);
        }
        self.answer();
    }

    pub fn pop(&mut self) -> Option<StreamNews> {
        if let Some(event) = self.waiting.pop_front() {
            self.waiting_bytes = self.waiting_bytes.saturating_sub(cost_of(&event.raw));
            self.answer();
            return Some(StreamNews::Event(event));
        }
        self.broken.take().map(StreamNews::Broken)
    }

    /// The part that was not taken before; nothing when all of it was.
    fn fresh(&self, seq: u64, mut events: Vec<Raw>) -> Result<Option<Vec<Raw>>, ClientStreamError> {
        let expected = self.next_seq;
        let end = seq.saturating_add(events.len() as u64);
        if end <= expected && !(events.is_empty() && seq == expected) {
            return Ok(None);
        }
        if self.is_over {
            return Err(ClientStreamError::StreamClosed { next_seq: expected });
        }
        if seq > expected {
            return Err(ClientStreamError::SequenceGap { given: seq, expected });
        }
        events.drain(..usize::try_from(expected - seq).unwrap_or(usize::MAX).min(events.len()));
        Ok(Some(events))
    }

    fn append(&mut self, fresh: Vec<Raw>, bytes: u64) -> Result<(), ClientStreamError> {
        let mut read = Vec::with_capacity(fresh.len());
        for (raw, seq) in fresh.into_iter().zip(self.next_seq..) {
            if read.last().is_some_and(|event: &CarriedEvent| event.kind.is_terminal()) {
                self.break_protocol();
                let problem = "the event before it ended the stream".to_owned();
                return Err(ClientStreamError::BadEvent { seq, problem });
            }
            match kind_of(&raw) {
                Ok(kind) => read.push(CarriedEvent { raw, kind }),
                Err(problem) => {
                    self.break_protocol();
                    return Err(ClientStreamError::BadEvent { seq, problem });
                }
            }
        }
        self.total_bytes += bytes;
        if self.total_bytes > MOST_BYTES {
            self.break_protocol();
            let problem = format!("a stream may have {MOST_BYTES} bytes, and this one has more");
            return Err(ClientStreamError::BadEvent { seq: self.next_seq, problem });
        }
        self.next_seq += read.len() as u64;
        self.is_over = read.last().is_some_and(|event| event.kind.is_terminal());
        self.waiting_bytes += bytes;
        self.waiting.extend(read);
        Ok(())
    }

    /// The client sent what makes no sense: its request fails, and nothing else.
    fn break_protocol(&mut self) {
        self.end(StreamBreak::plain(StreamAbortReason::ProtocolError, false));
    }

    /// Acknowledges once half a window is free, or nothing more comes.
    fn answer(&mut self) {
        let credit = self.credit();
        let has_room = credit.events >= STREAM_WINDOW.events / 2 && credit.bytes >= STREAM_WINDOW.bytes / 2;
        if (has_room || self.is_over)
            && let Some(responder) = self.unanswered.take()
        {
            responder(Ok(self.acknowledgement(false)));
        }
    }

    fn acknowledgement(&self, duplicate: bool) -> ModelStreamEventResponse {
        ModelStreamEventResponse { next_seq: self.next_seq, credit: self.credit(), duplicate }
    }

    fn credit(&self) -> StreamCredit {
        let used = u32::try_from(self.waiting.len()).unwrap_or(u32::MAX);
        StreamCredit {
            events: STREAM_WINDOW.events.saturating_sub(used),
            bytes: STREAM_WINDOW.bytes.saturating_sub(self.waiting_bytes),
        }
    }
}

fn cost_of(raw: &Raw) -> u64 {
    raw.get().len() as u64 + EVENT_COST
}

fn bytes_of(events: &[Raw]) -> u64 {
    events.iter().map(cost_of).sum()
}

#[derive(serde::Deserialize)]
struct CarriedEventHead {
    r#type: String,
}

#[derive(serde::Deserialize)]
struct LastEvent {
    #[serde(default)]
    response: Option<LastResponse>,
}

#[derive(serde::Deserialize)]
struct LastResponse {
    #[serde(default)]
    usage: Option<ResponseUsage>,
}

#[derive(serde::Deserialize)]
struct ResponseUsage {
    #[serde(default)]
    input_tokens: i64,
    #[serde(default)]
    output_tokens: i64,
    #[serde(default)]
    total_tokens: Option<i64>,
    #[serde(default)]
    input_tokens_details: Option<TokenDetails>,
    #[serde(default)]
    output_tokens_details: Option<TokenDetails>,
}

#[derive(Default, serde::Deserialize)]
struct TokenDetails {
    #[serde(default)]
    cached_tokens: Option<i64>,
    #[serde(default)]
    reasoning_tokens: Option<i64>,
}

impl From<ResponseUsage> for TokenUsageBreakdown {
    fn from(usage: ResponseUsage) -> Self {
        let (input, output) = (usage.input_tokens.max(0), usage.output_tokens.max(0));
        Self {
            total_tokens: usage.total_tokens.unwrap_or_else(|| input.saturating_add(output)).max(0),
            input_tokens: input,
            cached_input_tokens: usage
                .input_tokens_details
                .and_then(|details| details.cached_tokens)
                .unwrap_or(0)
                .clamp(0, input),
            output_tokens: output,
            reasoning_output_tokens: usage
                .output_tokens_details
                .and_then(|details| details.reasoning_tokens)
                .unwrap_or(0)
                .max(0),
            cache_write_input_tokens: None,
            is_estimated: false,
        }
    }
}

fn kind_of(raw: &Raw) -> Result<EventKind, String> {
    let head: CarriedEventHead = serde_json::from_str(raw.get()).map_err(|error| error.to_string())?;
    match head.r#type.as_str() {
        "response.completed" | "response.incomplete" => {
            let event: LastEvent = serde_json::from_str(raw.get()).map_err(|error| error.to_string())?;
            let usage = event.response.and_then(|response| response.usage);
            Ok(EventKind::Completed(usage.map(Into::into)))
        }
        "response.failed" | "error" => Ok(EventKind::Failed),
        kind if kind.ends_with(".delta") => Ok(EventKind::Delta),
        _ => Ok(EventKind::Other),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};

    use super::*;

    type Answer = Result<ModelStreamEventResponse, ClientStreamError>;

    fn raw(event: &Value) -> Raw {
        Raw::parse(event.to_string()).expect("JSON")
    }

    fn delta(text: &str) -> Raw {
        raw(&json!({"type": "response.output_text.delta", "delta": text}))
    }

    fn completed() -> Raw {
        let usage =
            json!({"input_tokens": 10, "output_tokens": 4, "input_tokens_details": {"cached_tokens": 3}});
        raw(&json!({"type": "response.completed", "response": {"id": "r", "usage": usage}}))
    }

    fn send(stream: &mut IncomingStream, seq: u64, events: Vec<Raw>) -> Receiver<Answer> {
        let (sender, answers) = channel();
        stream.take(seq, events, Box::new(move |answer| drop(sender.send(answer))));
        answers
    }

    fn refused(stream: &mut IncomingStream, seq: u64, events: Vec<Raw>) -> ClientStreamError {
        send(stream, seq, events).recv().expect("an answer").expect_err("refused")
    }

    fn drained(stream: &mut IncomingStream) -> Vec<StreamNews> {
        std::iter::from_fn(|| stream.pop()).collect()
    }

    #[test]
    fn events_come_out_as_they_went_in_with_the_tokens_of_the_last() {
        let mut stream = IncomingStream::default();
        let first = send(&mut stream, 0, vec![delta("a")]).recv().expect("an answer").expect("taken");
        assert_eq!((first.next_seq, first.credit.events, first.duplicate), (1, 255, false));
        // Sent again with more behind it: the part that is known is passed over.
        let second = send(&mut stream, 0, vec![delta("a"), completed()]).recv().expect("an answer");
        assert_eq!(second.expect("taken").next_seq, 2);
        let news = drained(&mut stream);
        let [StreamNews::Event(text), StreamNews::Event(last)] = news.as_slice() else { panic!("{news:?}") };
        assert_eq!((text.raw.get(), &text.kind), (delta("a").get(), &EventKind::Delta));
        let EventKind::Completed(Some(usage)) = &last.kind else { panic!("{last:?}") };
        assert_eq!((usage.total_tokens, usage.input_tokens, usage.cached_input_tokens), (14, 10, 3));
        let again = send(&mut stream, 0, vec![delta("a")]).recv().expect("an answer").expect("known");
        assert!(again.duplicate);
        assert_eq!(
            refused(&mut stream, 2, vec![delta("b")]),
            ClientStreamError::StreamClosed { next_seq: 2 }
        );
    }

    #[test]
    fn a_gap_is_refused_and_breaks_nothing() {
        let mut stream = IncomingStream::default();
        let gap = refused(&mut stream, 3, vec![delta("d")]);
        assert_eq!(gap, ClientStreamError::SequenceGap { given: 3, expected: 0 });
        assert!(send(&mut stream, 0, vec![completed()]).recv().expect("an answer").is_ok());
    }

    #[test]
    fn a_reader_that_is_slow_holds_the_answer_back_and_what_is_sent_all_the_same_is_refused() {
        let mut stream = IncomingStream::default();
        let texts = |count: usize| (0..count).map(|_| delta("x")).collect::<Vec<_>>();
        let first = send(&mut stream, 0, texts(200));
        assert!(first.try_recv().is_err(), "there is no credit worth the name");
        let second = send(&mut stream, 200, texts(56));
        assert!(first.recv().expect("the first is answered by the second").is_ok());
        // The client goes on without credit: as much again is kept, and no more.
        let third = send(&mut stream, 256, texts(256));
        assert!(second.recv().expect("an answer").is_ok());
        let beyond = refused(&mut stream, 512, texts(1));
        assert!(matches!(beyond, ClientStreamError::CreditExceeded { next_seq: 512, .. }), "{beyond:?}");
        for _ in 0..383 {
            assert!(stream.pop().is_some() && third.try_recv().is_err());
        }
        assert!(stream.pop().is_some());
        assert_eq!(third.recv().expect("an answer").expect("taken").credit.events, 128);
        let large = refused(&mut stream, 512, texts(300));
        assert_eq!(large, ClientStreamError::BatchTooLarge { events: 300, window: 256 });
    }

    #[test]
    fn garbage_ends_the_stream_and_says_which_event() {
        for (events, at) in [
            (vec![raw(&json!(7))], 0),
            (vec![delta("a"), raw(&json!({"kind": "x"}))], 1),
            (vec![completed(), delta("late")], 1),
        ] {
            let mut stream = IncomingStream::default();
            let error = refused(&mut stream, 0, events);
            assert!(matches!(error, ClientStreamError::BadEvent { seq, .. } if seq == at), "{error:?}");
            let broken = StreamBreak::plain(StreamAbortReason::ProtocolError, false);
            assert_eq!(drained(&mut stream), [StreamNews::Broken(broken)], "nothing of the batch counts");
            assert!(matches!(
                refused(&mut stream, 0, vec![delta("a")]),
                ClientStreamError::StreamClosed { .. }
            ));
        }
    }

    #[test]
    fn an_end_comes_after_the_events_and_the_first_end_counts() {
        let mut stream = IncomingStream::default();
        drop(send(&mut stream, 0, vec![delta("a")]));
        stream.end(StreamBreak::CarrierGone);
        stream.end(StreamBreak::plain(StreamAbortReason::Canceled, false));
        let news = drained(&mut stream);
        assert!(matches!(
            news.as_slice(),
            [StreamNews::Event(_), StreamNews::Broken(StreamBreak::CarrierGone)]
        ));
    }

    #[test]
    fn notifications_are_taken_up_to_a_bound_that_ends_the_stream() {
        let mut stream = IncomingStream::default();
        let long = "x".repeat(1024 * 1024);
        let refusal = (0..).find_map(|seq| stream.hear(seq, vec![delta(&long)]).err());
        assert!(
            matches!(refusal, Some(ClientStreamError::CreditExceeded { next_seq: 15, .. })),
            "{refusal:?}"
        );
        assert_eq!(drained(&mut stream).len(), 16, "what was taken, and the end");
        let mut gap = IncomingStream::default();
        assert!(gap.hear(1, vec![delta("b")]).is_err());
        assert_eq!(drained(&mut gap).len(), 1, "nobody sends it again");
    }

    #[test]
    fn a_stream_without_end_is_cut() {
        let mut stream = IncomingStream::default();
        let long = "x".repeat(900_000);
        let error = (0..).find_map(|seq| {
            let answer = send(&mut stream, seq, vec![delta(&long)]);
            while stream.pop().is_some_and(|news| matches!(news, StreamNews::Event(_))) {}
            answer.recv().expect("an answer").err()
        });
        assert!(matches!(error, Some(ClientStreamError::BadEvent { seq: 74, .. })), "{error:?}");
    }
}
