//! The same responses, received directly and through a host that splits, repeats, loses and resends them, give the same
//! history.

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use engine::{
    Effect, Gate, Input, ModelInfo, Stamp, Step, ThreadMachine, ThreadSeed, ToolKind, ToolOutcome, ToolSpec,
    Truncation, UserText,
};
use model::{
    EventStream, ModelFailure, ModelTransport, PreparedRequest, ResponseHead, StreamEvent, parse_event,
};
use protocol::{
    AskForApproval, ModelStreamAbortedParams, ModelStreamEventResponse, Raw, SandboxPolicy,
    StreamAbortReason, ThreadId, TurnId,
};
use serde_json::{Value, json};

use super::error::DelegationError;
use super::failure;
use super::session::HostSession;
use super::testing::{ScriptedHost, THREAD, terms};
use super::transport::DelegatedTransport;
use support::Responder;

/// Each turn has one or more streams, received directly once, and through several hosts that misbehave differently.
/// Overridden by `DELEGATION_TURNS`; `scripts/figures` runs 5,000.
const TURNS: u64 = 1_000;
const HOSTS_EACH: u64 = 6;
/// Streams of a turn times its hosts, each with its own schedule.
const SCHEDULES_EACH: u64 = 10;

/// SplitMix64.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Below `n`.
    fn roll(&mut self, n: usize) -> usize {
        usize::try_from(self.next() % n.max(1) as u64).expect("small")
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.roll(n) == 0
    }
}

/// One attempt: the provider's events, and whether it ends properly.
#[derive(Debug, Clone)]
struct Attempt {
    events: Arc<[Raw]>,
    breaks: bool,
    /// The events that the turn must get.
    needed: Arc<[usize]>,
    /// The number of events up to and including the terminal one.
    end: usize,
}

impl Attempt {
    fn new(events: &[Value], breaks: bool) -> Self {
        let events: Arc<[Raw]> = events.iter().map(raw).collect();
        let read = |raw: &Raw| parse_event(raw.get()).expect("a good event");
        let read: Vec<Option<StreamEvent>> = events.iter().map(read).collect();
        let is_terminal = |event: &Option<StreamEvent>| event.as_ref().is_some_and(StreamEvent::is_terminal);
        let end = read.iter().position(is_terminal).map_or(events.len(), |at| at + 1);
        let needed = (0..events.len()).filter(|at| read[*at].is_some()).collect();
        Self { events, breaks, needed, end }
    }
}

fn raw(value: &Value) -> Raw {
    Raw::parse(value.to_string()).expect("JSON")
}

/// Mostly valid; sometimes events come in an order that no provider should send.
fn attempt(dice: &mut Dice, number: usize) -> Attempt {
    let mut events = vec![json!({"type": "response.created", "response": {"id": "r"}})];
    for item in 0..dice.roll(3) {
        let id = format!("i{number}-{item}");
        let whole = match dice.roll(4) {
            0 => {
                json!({"type": "reasoning", "id": id, "summary": [{"type": "summary_text", "text": "why"}]})
            }
            1 => {
                json!({"type": "function_call", "id": id, "call_id": format!("c-{id}"), "name": "update_plan", "arguments": "{}"})
            }
            _ => {
                json!({"type": "message", "id": id, "role": "assistant", "content": [{"type": "output_text", "text": "so it is"}]})
            }
        };
        events.push(json!({"type": "response.output_item.added", "item": whole}));
        events.push(json!({"type": "response.content_part.added", "item_id": id}));
        for piece in 0..dice.roll(6) {
            events.push(match whole["type"].as_str() {
                Some("reasoning") => json!({"type": "response.reasoning_summary_text.delta", "summary_index": 0, "delta": format!("{piece} ")}),
                Some("message") => json!({"type": "response.output_text.delta", "delta": format!("{piece} é")}),
                _ => json!({"type": "response.function_call_arguments.delta", "delta": "{}"}),
            });
        }
        events.push(json!({"type": "response.output_item.done", "item": whole}));
    }
    if dice.one_in(6) && events.len() > 2 {
        let (one, other) = (dice.roll(events.len()), dice.roll(events.len()));
        events.swap(one, other);
    }
    let breaks = dice.one_in(4);
    if breaks {
        events.truncate(dice.roll(events.len() + 1));
    } else {
        let usage = json!({"input_tokens": 7, "output_tokens": 3, "total_tokens": 10});
        events.push(match dice.roll(12) {
            0 => json!({"type": "response.failed", "response": {"error": {"code": "x", "message": "no"}}}),
            1 => {
                json!({"type": "response.incomplete", "response": {"incomplete_details": {"reason": "max"}}})
            }
            _ => json!({"type": "response.completed", "response": {"id": "r", "usage": usage}}),
        });
        // A second end has no effect.
        if dice.one_in(5) {
            events.push(json!({"type": "response.completed", "response": {"id": "again"}}));
        }
    }
    Attempt::new(&events, breaks)
}

fn lost() -> ModelStreamAbortedParams {
    ModelStreamAbortedParams {
        thread_id: ThreadId::new(THREAD),
        model_request_id: "unused".into(),
        seq: 0,
        reason: StreamAbortReason::Disconnected,
        error: None,
        usage: None,
        replay_safe: true,
    }
}

/// The required outcome of an attempt, event by event.
trait Carrier {
    fn open(&mut self, request: PreparedRequest, attempt: Attempt);
    fn next(&mut self) -> Option<Result<StreamEvent, ModelFailure>>;
}

#[derive(Default)]
struct Direct {
    waiting: VecDeque<Result<StreamEvent, ModelFailure>>,
}

impl Carrier for Direct {
    fn open(&mut self, _: PreparedRequest, attempt: Attempt) {
        let read = |raw: &Raw| parse_event(raw.get()).expect("a good event").map(Ok);
        self.waiting = attempt.events.iter().filter_map(read).collect();
        self.waiting.push_front(Ok(StreamEvent::Opened(ResponseHead::default())));
        if attempt.breaks {
            self.waiting.push_back(Err(failure::of_abort(&lost())));
        }
    }

    fn next(&mut self) -> Option<Result<StreamEvent, ModelFailure>> {
        self.waiting.pop_front()
    }
}

type Taken = Result<ModelStreamEventResponse, DelegationError>;
type Acks = Arc<Mutex<Vec<Result<ModelStreamEventResponse, DelegationError>>>>;

/// A host that treats a stream like networks, restarts and bugs do.
struct Delegated {
    dice: Dice,
    host: Arc<ScriptedHost>,
    session: Arc<HostSession>,
    transport: DelegatedTransport,
    reading: Option<EventStream>,
    attempt: Attempt,
    /// The number of needed events that the turn has got.
    got: usize,
    sent: usize,
    is_over: bool,
    acked: u64,
    acks: Acks,
}

impl Delegated {
    fn new(seed: u64) -> Self {
        let mut dice = Dice(seed ^ 0x5eed);
        let host = Arc::new(ScriptedHost::default());
        let stream = json!({"windowEvents": 1 + dice.roll(9), "windowBytes": 64 + dice.roll(2_000)});
        let session = Arc::new(HostSession::new(ThreadId::new(THREAD), terms(&stream), host.clone()));
        let transport = DelegatedTransport::new(session.clone());
        let attempt = Attempt::new(&[], true);
        Self {
            dice,
            host,
            session,
            transport,
            reading: None,
            attempt,
            got: 0,
            sent: 0,
            is_over: false,
            acked: 0,
            acks: Acks::default(),
        }
    }

    fn push(&mut self, from: usize, to: usize) -> Option<Taken> {
        let events = self.attempt.events.clone();
        self.push_these(from, &events[from..to])
    }

    /// The response, unless it comes later.
    fn push_these(&mut self, from: usize, events: &[Raw]) -> Option<Taken> {
        let id = self.host.last_request();
        let (stream, is_newest) = self.session.stream(self.host.number(), &id).expect("the stream is known");
        assert!(is_newest);
        let acks = self.acks.clone();
        let before = acks.lock().len();
        let answer = Responder::new(move |answer| acks.lock().push(answer));
        stream.take(from as u64, events, answer);
        self.read_acks();
        let answers = self.acks.lock();
        // The response to an earlier batch may come with this one; this batch's own comes last, or later.
        answers.last().filter(|_| answers.len() > before).cloned()
    }

    fn read_acks(&mut self) {
        for ack in self.acks.lock().iter().flatten() {
            self.acked = self.acked.max(ack.next_seq);
        }
    }

    /// A random disturbance of the connection.
    fn disturb(&mut self) {
        let end = self.attempt.events.len();
        match self.dice.roll(10) {
            0 if self.sent > 0 => {
                // All of it was accepted before.
                let from = self.dice.roll(self.sent);
                let to = from + 1 + self.dice.roll(self.sent - from);
                let again = self.push(from, to).expect("an answer").expect("acknowledged");
                assert!(again.duplicate && again.next_seq == self.sent as u64);
            }
            1 if self.sent + 1 < end && !self.is_over => {
                let from = self.sent + 1 + self.dice.roll(end - self.sent - 1);
                let expected = self.sent as u64;
                let gap = self.push(from, end).expect("an answer");
                assert_eq!(gap, Err(DelegationError::SequenceGap { given: from as u64, expected }));
            }
            2 if self.is_over && self.sent == end => {
                // Events after the end are ignored.
                let extra = raw(&json!({"type": "response.output_text.delta", "delta": "late"}));
                let late = self.push_these(end, &[extra]).expect("an answer");
                assert!(matches!(late, Err(DelegationError::StreamClosed { .. })), "{late:?}");
            }
            _ => self.go_on(),
        }
    }

    /// Sends a batch, which may start with events that were accepted before.
    fn go_on(&mut self) {
        let end = self.attempt.events.len();
        if self.is_over {
            return;
        }
        if self.sent == end {
            let (stream, _) =
                self.session.stream(self.host.number(), &self.host.last_request()).expect("known");
            stream.end(failure::of_abort(&lost()));
            stream.end(failure::gone());
            self.is_over = true;
            return;
        }
        let to = self.sent + 1 + self.dice.roll((end - self.sent).min(12));
        let from = if self.dice.one_in(3) { self.dice.roll(self.sent + 1) } else { self.sent };
        match self.push(from, to) {
            Some(Err(DelegationError::OverCredit { next_seq, .. })) => assert_eq!(next_seq, self.sent as u64),
            Some(Err(DelegationError::BatchTooLarge { .. })) => {}
            Some(Err(error)) => panic!("{error}"),
            // Accepted: acknowledged now, or when there is credit again.
            Some(Ok(_)) | None => {
                self.sent = to;
                self.is_over = !self.attempt.breaks && to >= self.attempt.end;
            }
        }
    }
}

impl Carrier for Delegated {
    fn open(&mut self, request: PreparedRequest, attempt: Attempt) {
        self.attempt = attempt;
        (self.got, self.sent, self.acked, self.is_over) = (0, 0, 0, false);
        self.acks.lock().clear();
        self.reading = Some(self.transport.open(request));
    }

    fn next(&mut self) -> Option<Result<StreamEvent, ModelFailure>> {
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..10_000 {
            let reading = self.reading.as_mut().expect("open");
            match reading.as_mut().poll_next(&mut context) {
                Poll::Ready(event) => {
                    self.read_acks();
                    if let Some(Ok(event)) = &event
                        && !matches!(event, StreamEvent::Opened(_))
                    {
                        let at = self.attempt.needed[self.got];
                        self.got += 1;
                        assert!((at as u64) < self.acked, "event {at} has effects before it is acknowledged");
                    }
                    return event;
                }
                Poll::Pending => {
                    for _ in 0..=self.dice.roll(3) {
                        self.disturb();
                    }
                }
            }
        }
        panic!("the stream does not get on");
    }
}

fn step() -> Arc<Step> {
    let tool = ToolSpec {
        namespace: None,
        name: "update_plan".to_owned(),
        kind: ToolKind::Builtin,
        json: Some(Arc::new(json!({"type": "function", "name": "update_plan"}))),
        parallel: true,
        gate: Gate::Open,
        effects: Default::default(),
    };
    Arc::new(Step {
        model: ModelInfo {
            slug: "m".into(),
            context_window: None,
            effective_window_percent: 95,
            auto_compact_token_limit: None,
            supports_reasoning_summaries: false,
            supports_parallel_tool_calls: true,
            truncation: Truncation::Bytes(10_000),
            stream_max_retries: 2,
            price: None,
        },
        approval_policy: AskForApproval::Never,
        sandbox: SandboxPolicy::DangerFullAccess,
        tools: vec![tool],
        ..Step::bare("m", "/repo")
    })
}

/// Everything that follows from a turn: records, notifications and questions.
type Outcome = Vec<Effect>;

struct Play<'a> {
    thread: ThreadMachine,
    carrier: &'a mut dyn Carrier,
    attempts: VecDeque<Attempt>,
    step: Arc<Step>,
    clock: i64,
    current: u64,
    outcome: Outcome,
}

impl Play<'_> {
    fn feed(&mut self, input: Input) {
        self.clock += 1;
        let stamp = Stamp { now_ms: self.clock, entropy: self.clock.unsigned_abs().into() };
        let mut waiting: VecDeque<Effect> = self.thread.on(stamp, input).expect("accepted").into();
        while let Some(effect) = waiting.pop_front() {
            self.outcome.push(effect.clone());
            match effect {
                Effect::RequestModel { attempt, request } => {
                    self.current = attempt;
                    let script = self.attempts.pop_front().unwrap_or_else(plain_end);
                    self.carrier.open(request, script);
                }
                Effect::CaptureStep => self.feed(Input::StepCaptured(self.step.clone())),
                Effect::Wake { .. } => self.feed(Input::Woken),
                Effect::RunTool { call, .. } => {
                    let outcome = ToolOutcome::text("done".to_owned());
                    self.feed(Input::ToolFinished { call_id: call.call_id, outcome });
                }
                _ => {}
            }
        }
    }
}

fn plain_end() -> Attempt {
    Attempt::new(&[json!({"type": "response.completed", "response": {"id": "last"}})], false)
}

fn play(carrier: &mut dyn Carrier, attempts: &[Attempt], step: &Arc<Step>) -> Outcome {
    let mut play = Play {
        thread: ThreadMachine::new(ThreadSeed::new(ThreadId::new(THREAD))),
        carrier,
        attempts: attempts.iter().cloned().collect(),
        step: step.clone(),
        clock: 1_000,
        current: 0,
        outcome: Outcome::default(),
    };
    let text = UserText::typed("hi");
    play.feed(Input::Start { turn_id: TurnId::new("u1"), text, output_schema: None, step: step.clone() });
    while play.thread.active_turn().is_some() {
        let attempt = play.current;
        let event = play.carrier.next().expect("a turn that runs has more events to come");
        play.feed(Input::Model { attempt, event });
    }
    play.outcome
}

/// Returns the number of requests.
fn check(seed: u64, step: &Arc<Step>) -> u64 {
    let mut dice = Dice(seed);
    let attempts: Vec<Attempt> = (0..1 + dice.roll(3)).map(|number| attempt(&mut dice, number)).collect();
    let direct = play(&mut Direct::default(), &attempts, step);
    let mut requests = 0;
    for number in 0..HOSTS_EACH {
        let mut host = Delegated::new(seed * HOSTS_EACH + number);
        let delegated = play(&mut host, &attempts, step);
        assert!(direct == delegated, "seed {seed}, host {number}\n{direct:#?}\n{delegated:#?}");
        requests += host.host.requests();
    }
    requests
}

#[test]
fn a_host_that_misbehaves_within_the_rules_changes_nothing() {
    let step = step();
    let turns = std::env::var("DELEGATION_TURNS").ok().and_then(|turns| turns.parse().ok()).unwrap_or(TURNS);
    let half = |first: u64| {
        let timers = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("timers");
        let _context = timers.enter();
        (first..turns).step_by(2).map(|seed| check(seed, &step)).sum::<u64>()
    };
    let requests = std::thread::scope(|scope| {
        let other = scope.spawn(|| half(1));
        half(0) + other.join().expect("the other half")
    });
    assert!(requests >= turns * SCHEDULES_EACH, "{requests}");
}
