//! A thread under test: feeds inputs, keeps a readable trace of effects, and checks the invariants.
#![allow(dead_code, reason = "each test file uses its own part")]
#![allow(clippy::expect_used, clippy::needless_pass_by_value, reason = "test code reads better without")]

use std::collections::BTreeSet;
use std::sync::Arc;

use model::{ModelFailure, StreamEvent, parse_event};
use oarlock_engine::{
    Effect, HookOccasion, Input, ModelInfo, Proposal, Question, Refusal, Reply, Stamp, Step, StorageFailure,
    ThreadMachine, ThreadSeed, ToolKind, ToolSpec, Truncation, UserText,
};
use protocol::{
    AskForApproval, CommandExecutionSource, CommandExecutionStatus, ItemId, OperationDecision,
    OperationRecord, OperationType, ReadOnlyAccess, RolloutRecord, SandboxPolicy, ServerNotification,
    ThreadId, ThreadItem, ToolEffects, TurnId, UserInput,
};
use serde_json::{Value, json};

pub(crate) fn step() -> Step {
    let tool = |name: &str, kind| ToolSpec {
        namespace: None,
        name: name.to_owned(),
        kind,
        json: Some(Arc::new(json!({ "type": "function", "name": name }))),
        parallel: true,
        gate: oarlock_engine::Gate::Open,
        effects: Default::default(),
    };
    Step {
        model: ModelInfo {
            slug: "test-model".into(),
            context_window: Some(272_000),
            effective_window_percent: 95,
            auto_compact_token_limit: None,
            supports_reasoning_summaries: true,
            supports_parallel_tool_calls: true,
            truncation: Truncation::Bytes(10_000),
            stream_max_retries: 2,
            price: None,
        },
        base_instructions: "Be useful.".into(),
        approval_policy: AskForApproval::Never,
        sandbox: SandboxPolicy::ReadOnly { access: ReadOnlyAccess::FullAccess, network_access: false },
        shell: "bash".into(),
        current_date: "2026-11-15".into(),
        tools: vec![tool("update_plan", ToolKind::Builtin), tool("lookup", ToolKind::Dynamic)],
        ..Step::bare("test-model", "/repo")
    }
}

pub(crate) fn said(text: &str) -> UserText {
    UserText::typed(text)
}

/// The event with this JSON.
pub(crate) fn event(value: Value) -> StreamEvent {
    parse_event(&value.to_string()).expect("a good event").expect("a known event")
}

/// A full local disk.
pub(crate) fn storage_failed(message: &str) -> Input {
    Input::StorageFailed(Box::new(StorageFailure { message: message.into(), ..StorageFailure::default() }))
}

pub(crate) fn message(id: &str, text: &str) -> Value {
    let content = if text.is_empty() { json!([]) } else { json!([{ "type": "output_text", "text": text }]) };
    json!({ "type": "message", "role": "assistant", "id": id, "content": content })
}

pub(crate) fn call(id: &str, name: &str, arguments: &str) -> Value {
    json!({ "type": "function_call", "id": "fc", "call_id": id, "name": name, "arguments": arguments })
}

pub(crate) fn added(item: Value) -> StreamEvent {
    event(json!({ "type": "response.output_item.added", "item": item }))
}
pub(crate) fn done(item: Value) -> StreamEvent {
    event(json!({ "type": "response.output_item.done", "item": item }))
}
pub(crate) fn text(delta: &str) -> StreamEvent {
    event(json!({ "type": "response.output_text.delta", "delta": delta }))
}
pub(crate) fn completed(total: i64) -> StreamEvent {
    event(json!({ "type": "response.completed", "response": { "id": "r", "usage": {
        "input_tokens": total - 1, "output_tokens": 1, "total_tokens": total } } }))
}

pub(crate) struct Fixture {
    pub(crate) thread: ThreadMachine,
    pub(crate) step: Step,
    pub(crate) trace: Vec<String>,
    pub(crate) attempt: u64,
    pub(crate) last_request: Option<Value>,
    pub(crate) now_ms: i64,
    watch: Watch,
}

/// The invariants of every case.
#[derive(Default)]
struct Watch {
    open_items: BTreeSet<String>,
    recorded_items: Vec<ThreadItem>,
    in_turn: bool,
    completed_turns: u32,
    /// Operations recorded as started and not as ended.
    begun: BTreeSet<String>,
    /// Those of them that outlive their call.
    away: BTreeSet<String>,
    /// Questions that are open, by call.
    asked: BTreeSet<String>,
    /// Calls of clients' tools. An ended call stays here: its id is not used again in its turn.
    called: BTreeSet<String>,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        Self {
            thread: ThreadMachine::new(ThreadSeed::new(ThreadId::new("t"))),
            step: step(),
            trace: vec![],
            attempt: 0,
            last_request: None,
            now_ms: 1_000,
            watch: Watch::default(),
        }
    }

    pub(crate) fn start(&mut self, turn: &str, text: &str) -> &mut Self {
        let step = Arc::new(self.step.clone());
        let input = Input::Start { turn_id: TurnId::new(turn), text: said(text), output_schema: None, step };
        self.on(input).expect("the turn starts");
        self
    }

    pub(crate) fn model(&mut self, event: StreamEvent) -> &mut Self {
        let attempt = self.attempt;
        self.on(Input::Model { attempt, event: Ok(event) }).expect("accepted");
        self
    }

    pub(crate) fn breaks(&mut self, failure: ModelFailure) -> &mut Self {
        let attempt = self.attempt;
        self.on(Input::Model { attempt, event: Err(failure) }).expect("accepted");
        self
    }

    pub(crate) fn put(&mut self, input: Input) -> &mut Self {
        self.on(input).expect("accepted");
        self
    }

    pub(crate) fn captured(&mut self) -> &mut Self {
        let step = Arc::new(self.step.clone());
        self.put(Input::StepCaptured(step))
    }

    pub(crate) fn on(&mut self, input: Input) -> Result<Vec<Effect>, Refusal> {
        self.now_ms += 10;
        let stamp = Stamp { now_ms: self.now_ms, entropy: self.now_ms as u128 };
        if let Input::ToolFinished { call_id, outcome } = &input
            && outcome.goes_on
        {
            self.watch.lets_go(call_id);
        }
        let mut twin = self.thread.clone();
        let effects = self.thread.on(stamp, input.clone());
        assert_eq!(twin.on(stamp, input), effects, "same inputs, same effects");
        for effect in effects.iter().flatten() {
            self.see(effect);
        }
        effects
    }

    fn see(&mut self, effect: &Effect) {
        self.watch.check(effect);
        if let Effect::RequestModel { attempt, request } = effect {
            assert!(*attempt > self.attempt, "attempts only grow");
            self.attempt = *attempt;
            self.last_request = serde_json::to_value(&*request.body).ok();
        }
        self.trace.push(shown(effect));
    }

    /// The trace since it was last taken.
    pub(crate) fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.trace)
    }

    /// The texts of the last request's input, each with its role or type.
    pub(crate) fn prompt(&self) -> Vec<String> {
        let input = self
            .last_request
            .as_ref()
            .and_then(|request| request["input"].as_array())
            .cloned()
            .unwrap_or_default();
        input.iter().map(prompt_line).collect()
    }

    pub(crate) fn assert_all_closed(&self) {
        let open: Vec<_> = self.watch.open_items.iter().filter(|id| !id.starts_with(OUTLIVING)).collect();
        assert!(open.is_empty(), "started and never completed: {open:?}");
        assert!(!self.watch.in_turn);
    }

    /// Clients saw the call's item start and not end.
    pub(crate) fn shows(&self, call_id: &str) -> bool {
        self.watch.open_items.contains(call_id)
    }

    /// A tool proposes one operation at a time.
    pub(crate) fn may_propose(&self, call_id: &str) -> bool {
        !self.watch.asked.contains(call_id)
            && !self.watch.begun.iter().any(|id| id.contains(&format!(":{call_id}")))
    }

    /// A client answers a tool's question.
    pub(crate) fn answer(&mut self, call_id: &str, reply: Result<Reply, String>) -> &mut Self {
        self.watch.asked.remove(call_id);
        self.put(Input::Answered { call_id: call_id.to_owned(), reply: Box::new(reply) })
    }

    /// A restart left this operation started.
    pub(crate) fn begun_before(&mut self, id: &str) {
        self.watch.begun.insert(id.to_owned());
    }

    /// An operation that outlives its call.
    pub(crate) fn away(&self) -> Option<&str> {
        self.watch.away.first().map(String::as_str)
    }

    pub(crate) fn completed_turns(&self) -> u32 {
        self.watch.completed_turns
    }
}

fn prompt_line(item: &Value) -> String {
    let text = |part: &Value| {
        part["text"].as_str().unwrap_or("(image)").lines().next().unwrap_or_default().to_owned()
    };
    match item["type"].as_str() {
        Some("message") => {
            let parts: Vec<String> = item["content"].as_array().into_iter().flatten().map(text).collect();
            format!("{}: {}", item["role"].as_str().unwrap_or_default(), parts.join(" | "))
        }
        Some("function_call_output") => format!("output {}: {}", item["call_id"], item["output"]),
        Some(other) => format!("{other} {}", item["call_id"]),
        None => item.to_string(),
    }
}

impl Watch {
    /// A started operation may outlive its call. One of a client's tool ends with the client's answer.
    fn lets_go(&mut self, call_id: &str) {
        if self.called.contains(call_id) {
            return;
        }
        let is_its_own = |id: &String| id.split(':').any(|part| part == call_id);
        let (away, begun) = std::mem::take(&mut self.begun).into_iter().partition(is_its_own);
        self.begun = begun;
        let away: BTreeSet<String> = away;
        self.away.extend(away);
    }

    fn check(&mut self, effect: &Effect) {
        match effect {
            Effect::Record(record) => {
                if let RolloutRecord::ThreadItem { item, .. } = &**record {
                    self.recorded_items.push(item.clone());
                }
                if let RolloutRecord::Operation { operation } = &**record {
                    self.check_operation(operation);
                }
            }
            Effect::Decide { call_id, number, decision } if decision.is_approved() => {
                let name = operation_name(call_id, *number);
                assert!(
                    self.begun.iter().any(|id| id.ends_with(&name)),
                    "{name} runs without a record of it"
                );
            }
            Effect::AskClient { call_id, question } => {
                let open = match **question {
                    Question::DynamicTool(_) => &mut self.called,
                    _ => &mut self.asked,
                };
                assert!(open.insert(call_id.clone()), "one question of a call at a time");
            }
            Effect::WithdrawQuestion { call_id } => {
                let was_open = self.asked.remove(call_id) || self.called.remove(call_id);
                assert!(was_open, "withdrawn without being open");
            }
            Effect::Emit(notification) => self.check_told(notification),
            Effect::Finish(_) => assert!(!self.in_turn, "turn/completed comes before the end"),
            _ => {}
        }
    }

    fn check_operation(&mut self, operation: &OperationRecord) {
        match operation {
            OperationRecord::Started { operation_id, .. } => {
                assert!(self.begun.insert(operation_id.to_string()), "begun twice: {operation_id}");
            }
            // The client starts its own tool.
            OperationRecord::Proposed { operation_id, kind: OperationType::Function, .. } => {
                assert!(self.begun.insert(operation_id.to_string()), "proposed twice: {operation_id}");
            }
            OperationRecord::Withdrawn { operation_id, .. } => {
                self.begun.remove(operation_id.as_str());
            }
            OperationRecord::Finished { operation_id, .. } => {
                let was_open =
                    self.begun.remove(operation_id.as_str()) || self.away.remove(operation_id.as_str());
                assert!(was_open, "ended without a beginning: {operation_id}");
            }
            _ => {}
        }
    }

    fn check_told(&mut self, notification: &ServerNotification) {
        let params = serde_json::to_value(notification).expect("serialises");
        let id = params["item"]["id"].as_str().unwrap_or_default().to_owned();
        match notification {
            ServerNotification::TurnStarted(_) => {
                assert!(!self.in_turn);
                self.in_turn = true;
            }
            ServerNotification::TurnCompleted(_) => {
                assert!(self.in_turn, "one end per turn");
                let open: Vec<_> = self.open_items.iter().filter(|id| !id.starts_with(OUTLIVING)).collect();
                assert!(open.is_empty(), "open at the end: {open:?}");
                assert!(self.begun.is_empty(), "begun and not ended: {:?}", self.begun);
                self.called.clear();
                self.in_turn = false;
                self.completed_turns += 1;
            }
            ServerNotification::TurnSuspended(_) => {
                assert!(self.in_turn, "only a turn that runs is put away");
                (self.in_turn, self.open_items, self.asked, self.called) = Default::default();
            }
            ServerNotification::ItemStarted(_) => {
                assert!(self.in_turn && self.open_items.insert(id), "started twice or outside a turn");
            }
            ServerNotification::ItemCompleted(done) => {
                assert!(self.open_items.remove(&id), "completed without a start: {id}");
                assert!(self.recorded_items.contains(&done.item), "told before it was recorded");
            }
            _ => {
                if let Some(item) = params["itemId"].as_str() {
                    assert!(self.open_items.contains(item), "a delta outside its item");
                }
            }
        }
    }
}

fn operation_name(call_id: &str, number: u32) -> String {
    if number == 0 { format!(":{call_id}") } else { format!(":{call_id}:{number}") }
}

/// A tool's proposal: a command, with or without a question.
pub(crate) fn proposal(call_id: &str, number: u32, asks: bool) -> Box<Proposal> {
    let item = ThreadItem::CommandExecution {
        id: ItemId::new(call_id),
        command: "touch x".into(),
        cwd: "/repo".into(),
        process_id: None,
        source: CommandExecutionSource::Agent,
        status: CommandExecutionStatus::InProgress,
        command_actions: vec![],
        aggregated_output: None,
        exit_code: None,
        duration_ms: None,
    };
    let question = serde_json::from_value(json!({
        "threadId": "", "turnId": "", "itemId": "", "command": "touch x", "cwd": "/repo",
        "proposedExecpolicyAmendment": ["touch", "a b"],
    }));
    Box::new(Proposal {
        number,
        kind: OperationType::Command,
        effects: ToolEffects::Once,
        item: Some(Box::new(item)),
        outlives: call_id.starts_with(OUTLIVING),
        arguments: json!({ "argv": ["touch", "x"] }),
        digest: "sha256:d".into(),
        question: asks.then(|| Box::new(Question::Command(question.expect("fits")))),
        session_keys: vec!["touch x".into()],
    })
}

/// Items of such calls may outlive their turn.
pub(crate) const OUTLIVING: &str = "long";

/// One effect as one short line.
fn shown(effect: &Effect) -> String {
    match effect {
        Effect::Record(record) => {
            let value = serde_json::to_value(&**record).expect("serialises");
            let detail = match &**record {
                RolloutRecord::ResponseItem { item, .. } => {
                    let item = serde_json::to_value(item).expect("serialises");
                    format!(" {}", prompt_line(&item))
                }
                RolloutRecord::ThreadItem { item, .. } => format!(" {}", item_line(item)),
                RolloutRecord::TurnEnded { status, .. } => format!(" {status:?}"),
                RolloutRecord::Operation { .. } => {
                    format!(
                        " {}",
                        value["operation"]["state"].as_str().or(value["state"].as_str()).unwrap_or("?")
                    )
                }
                _ => String::new(),
            };
            format!("record {}{detail}", value["kind"].as_str().unwrap_or_default())
        }
        Effect::Emit(notification) => told(notification),
        Effect::RequestModel { attempt, .. } => format!("request {attempt}"),
        Effect::CancelModel { attempt } => format!("cancel {attempt}"),
        Effect::RunTool { call, .. } => format!("run {} {}", call.call_id, call.name),
        Effect::RunHooks { id, occasion, .. } => match occasion {
            HookOccasion::Prompt { text } => format!("hooks {id} prompt {text:?}"),
            HookOccasion::Stop { is_repeated, last_message } => {
                format!("hooks {id} stop {is_repeated} {last_message:?}")
            }
        },
        Effect::CancelTool { call_id } => format!("cancel tool {call_id}"),
        Effect::AnswerNested { call_id, .. } => format!("answer {call_id}"),
        Effect::AskClient { call_id, question } => match &**question {
            Question::DynamicTool(params) => format!("ask {call_id} {}", params.tool),
            Question::Command(params) => {
                format!("ask {call_id} command {}", params.command.as_deref().unwrap_or(""))
            }
            Question::FileChange(_) => format!("ask {call_id} patch"),
            Question::Permissions(_) => format!("ask {call_id} permissions"),
            Question::UserInput(_) => format!("ask {call_id} input"),
            Question::Elicitation(_) => format!("ask {call_id} elicitation"),
            Question::Tool(params) => format!("ask {call_id} tool {}", params.tool),
        },
        Effect::Decide { call_id, number, decision: decided } => {
            let decision = match &decided.decision {
                OperationDecision::Approve { .. } => format!("run agreed={}", decided.by_client),
                OperationDecision::Replace { command: Some(command), .. } => {
                    format!("instead {}", command.join(" "))
                }
                OperationDecision::Replace { .. } => {
                    format!("instead the patch {}", decided.other_patch().unwrap_or_default())
                }
                _ if decided.permissions().is_some() => "permissions".to_owned(),
                _ if decided.answers().is_some() => "input".to_owned(),
                _ => "declined".to_owned(),
            };
            format!("decide {call_id} {number} {decision}")
        }
        Effect::SaveRule { prefix } => format!("save rule {}", prefix.join(" ")),
        Effect::WithdrawQuestion { call_id } => format!("withdraw {call_id}"),
        Effect::Wake { .. } => "wake".to_owned(),
        Effect::Deadline { attempt, .. } => format!("deadline {attempt}"),
        Effect::PursueGoal => "pursue".to_owned(),
        Effect::ReadBack { .. } => "read back".to_owned(),
        Effect::CaptureStep => "capture".to_owned(),
        Effect::AwaitStopped => "await stopped".to_owned(),
        Effect::Suspended => "suspended".to_owned(),
        Effect::Finish(status) => format!("finish {status:?}"),
    }
}

fn told(notification: &ServerNotification) -> String {
    let params = serde_json::to_value(notification).expect("serialises");
    let detail = match notification {
        ServerNotification::ThreadStatusChanged(_) => {
            params["status"]["type"].as_str().unwrap_or_default().to_owned()
        }
        ServerNotification::TurnCompleted(_) => {
            params["turn"]["status"].as_str().unwrap_or_default().to_owned()
        }
        ServerNotification::ThreadGoalUpdated(updated) => format!("{:?}", updated.goal.status),
        ServerNotification::ItemGuardianApprovalReviewCompleted(done) => format!("{:?}", done.review.status),
        ServerNotification::ItemStarted(started) => item_line(&started.item),
        ServerNotification::ItemCompleted(done) => item_line(&done.item),
        ServerNotification::Error(_) => {
            format!(
                "{} retry={}",
                params["error"]["message"].as_str().unwrap_or_default(),
                params["willRetry"]
            )
        }
        _ => params["delta"].as_str().unwrap_or_default().to_owned(),
    };
    let method = notification.method();
    if detail.is_empty() { method.to_owned() } else { format!("{method} {detail}") }
}

fn item_line(item: &ThreadItem) -> String {
    match item {
        ThreadItem::UserMessage { content, .. } => match content.first() {
            Some(UserInput::Text { text, .. }) => format!("user {text:?}"),
            _ => "user".to_owned(),
        },
        ThreadItem::AgentMessage { text, .. } => format!("agent {text:?}"),
        ThreadItem::Plan { text, .. } => format!("plan {text:?}"),
        ThreadItem::Reasoning { summary, .. } => format!("reasoning {summary:?}"),
        ThreadItem::DynamicToolCall { status, .. } => format!("dynamic {status:?}"),
        ThreadItem::ContextCompaction { .. } => "compaction".to_owned(),
        ThreadItem::CommandExecution { status, .. } => format!("command {status:?}"),
        ThreadItem::EnteredReviewMode { review, .. } => format!("entered {review:?}"),
        ThreadItem::ExitedReviewMode { review, .. } => format!("exited {review:?}"),
        other => format!("{other:?}"),
    }
}
