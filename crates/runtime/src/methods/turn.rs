//! Turns, as clients start and change them.

use std::collections::BTreeMap;
use std::time::Duration;

use engine::{OutsideMessage, UserText};
use protocol::{
    AdditionalContextEntry, FunctionCallOutputBody, FunctionCallOutputContentItem, ItemId, ThreadId,
    ThreadRollbackParams, ThreadShellCommandParams, Turn, TurnId, TurnInterruptParams, TurnStartParams,
    TurnStatus, TurnSteerParams, TurnSuspendMode, TurnSuspendParams, TurnSuspendResponse, TurnToolOutput,
    UserInput,
};

use crate::error::RuntimeError;
use crate::open::opened::{HostAnswer, OpenedThread};
use crate::runtime::Runtime;
use crate::step::input::{MAX_INPUT_CHARS, input_chars};
use driver::{SettingsChange, ThreadError, ThreadHandle, TurnOptions, check_thread_id};
use support::Responder;

/// How long a turn may take to reach a safe point, unless the caller chooses otherwise.
const SUSPEND_LIMIT: Duration = Duration::from_secs(30);

/// Identifies a client within the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ClientId(pub u64);

impl Runtime {
    /// Responds with the turn when it is durable, before its notifications. If another turn runs, the input joins it,
    /// and the response is that turn.
    pub async fn start_turn(&self, params: TurnStartParams, responder: Responder<Turn, RuntimeError>) {
        match self.turn_options(params).await {
            Ok((thread_id, options)) => {
                let started_at = self.state.now_ms().div_euclid(1_000);
                let own_id = options.turn_id.clone();
                let responder = Responder::new(move |turn: Result<TurnId, RuntimeError>| {
                    // The start time of a turn that was joined is not known here.
                    responder.respond(turn.map(|id| begun((id == own_id).then_some(started_at), id)));
                });
                match self.thread(&thread_id) {
                    Ok(thread) => thread.start_turn_then(options, responder.from_error()).await,
                    Err(error) => responder.respond(Err(error)),
                }
            }
            Err(error) => responder.respond(Err(error)),
        }
    }

    async fn turn_options(
        &self,
        mut params: TurnStartParams,
    ) -> Result<(ThreadId, TurnOptions), RuntimeError> {
        check_length(&params.input)?;
        let additional = additional_context(params.additional_context.take())?;
        let thread = self.thread(&params.thread_id)?;
        let outside = params.tool_output.take().map(outside_message).transpose()?;
        self.check_requirements(&thread, &params)?;
        let cwd = params.cwd.map(std::path::absolute).transpose();
        let cwd = cwd.map_err(|error| RuntimeError::Config(format!("cwd: {error}")))?;
        let text = self.state.read_input(&thread, cwd.as_deref(), params.input).await?;
        let id = params.input_id.take().map(ItemId::new);
        let text = UserText { id, outside, additional, ..text };
        let chosen = params.environments;
        let environments = chosen.map(|chosen| self.state.environments.choose(thread.id(), chosen));
        let change = SettingsChange {
            cwd: cwd.map(|cwd| cwd.to_string_lossy().into_owned()),
            approval_policy: params.approval_policy,
            approvals_reviewer: params.approvals_reviewer,
            sandbox: params.sandbox_policy,
            model: params.model,
            service_tier: params.service_tier,
            effort: params.effort,
            summary: params.summary,
            personality: params.personality,
            collaboration_mode: params.collaboration_mode,
            environments: environments.transpose()?,
        };
        let options = TurnOptions {
            turn_id: params.turn_id.unwrap_or_else(|| self.new_turn_id()),
            text,
            output_schema: params.output_schema,
            change,
            service_tier: params.service_tier_for_turn,
        };
        Ok((thread.id().clone(), options))
    }

    /// The administrator's limits apply to every turn.
    fn check_requirements(
        &self,
        thread: &ThreadHandle,
        params: &TurnStartParams,
    ) -> Result<(), RuntimeError> {
        let Some(loaded) = self.state.loaded(thread.id()) else { return Ok(()) };
        let requirements = &loaded.identity.requirements;
        let approval =
            params.approval_policy.as_ref().map(|policy| requirements.allow_approval_policy(policy));
        let sandbox = params.sandbox_policy.as_ref().map(|policy| requirements.allow_sandbox(policy));
        for checked in [approval, sandbox].into_iter().flatten() {
            checked.map_err(|error| RuntimeError::Forbidden(error.to_string()))?;
        }
        Ok(())
    }

    pub async fn steer_turn(&self, params: TurnSteerParams) -> Result<TurnId, RuntimeError> {
        let thread = self.thread(&params.thread_id)?;
        if params.expected_turn_id.as_str().is_empty() {
            return Err(ThreadError::NoExpectedTurn.into());
        }
        check_length(&params.input)?;
        let additional = additional_context(params.additional_context)?;
        let text = self.state.read_input(&thread, None, params.input).await?;
        let text = UserText { id: params.input_id.map(ItemId::new), additional, ..text };
        Ok(thread.steer(params.expected_turn_id, text).await?)
    }

    /// Responds when the turn has stopped.
    pub async fn interrupt_turn(&self, params: TurnInterruptParams, responder: Responder<(), RuntimeError>) {
        // Without an id, any running turn.
        let expected = Some(params.turn_id).filter(|id| !id.as_str().is_empty());
        match self.thread(&params.thread_id) {
            Ok(thread) => thread.interrupt_then(expected, responder.from_error()).await,
            Err(error) => responder.respond(Err(error)),
        }
    }

    /// Suspends a turn. Responds when all of it is recorded.
    pub async fn suspend_turn(
        &self,
        params: TurnSuspendParams,
        responder: Responder<TurnSuspendResponse, RuntimeError>,
    ) {
        let TurnSuspendParams { thread_id, turn_id, mode, deadline_ms } = params;
        let responder = Responder::new(move |waiting: Result<_, RuntimeError>| {
            responder.respond(waiting.map(|pending_operations| TurnSuspendResponse { pending_operations }));
        });
        let limit = deadline_ms.map_or(SUSPEND_LIMIT, Duration::from_millis);
        match self.thread(&thread_id) {
            Ok(thread) => {
                let when_pending = mode == TurnSuspendMode::WhenPending;
                thread.suspend_then(Some(turn_id), when_pending, limit, responder.from_error()).await;
            }
            Err(error) => responder.respond(Err(error)),
        }
    }

    /// Runs a command of the user outside any sandbox. Responds when it is accepted.
    pub async fn shell_command(
        &self,
        params: ThreadShellCommandParams,
        responder: Responder<(), RuntimeError>,
    ) {
        let ThreadShellCommandParams { thread_id, command } = params;
        match self.thread(&thread_id) {
            Ok(_) if command.trim().is_empty() => responder.respond(Err(RuntimeError::EmptyCommand)),
            Ok(thread) => thread.shell_then(self.new_turn_id(), command, responder.from_error()).await,
            Err(error) => responder.respond(Err(error)),
        }
    }

    /// A client asks the user something outside the protocol: until the answer, the time limits of the thread's
    /// commands are paused. Responds with the number of such open questions.
    pub fn open_elicitation(&self, thread_id: &ThreadId, client: ClientId) -> Result<u64, RuntimeError> {
        Ok(self.clock(thread_id)?.hold(client.0))
    }

    /// Such a question was answered: one of this client, or of another if it has none open.
    pub fn close_elicitation(&self, thread_id: &ThreadId, client: ClientId) -> Result<u64, RuntimeError> {
        self.clock(thread_id)?.release(client.0).ok_or(RuntimeError::NoElicitation)
    }

    /// The client disconnected, so its questions will not be answered.
    pub fn close_elicitations(&self, client: ClientId) {
        self.state.threads.clocks().iter().for_each(|clock| clock.release_all(client.0));
    }

    fn clock(&self, thread_id: &ThreadId) -> Result<sandbox::CommandClock, RuntimeError> {
        let id = check_thread_id(thread_id)?;
        Ok(self.state.loaded(&id).ok_or(RuntimeError::UnknownThread(id))?.clock)
    }

    /// Ends the processes that the thread's commands left running.
    pub async fn clear_terminals(&self, thread_id: &ThreadId) -> Result<(), RuntimeError> {
        Ok(self.thread(thread_id)?.clear_terminals().await?)
    }

    /// Starts a turn that replaces the history by a summary.
    pub async fn compact(&self, thread_id: &ThreadId, responder: Responder<(), RuntimeError>) {
        match self.thread(thread_id) {
            Ok(thread) => thread.compact_then(self.new_turn_id(), responder.from_error()).await,
            Err(error) => responder.respond(Err(error)),
        }
    }

    /// Drops the last turns, and responds with the remaining ones.
    pub async fn roll_back(&self, params: &ThreadRollbackParams) -> Result<OpenedThread, RuntimeError> {
        let thread = self.thread(&params.thread_id)?;
        let loaded =
            self.state.loaded(thread.id()).ok_or_else(|| RuntimeError::UnknownThread(thread.id().clone()))?;
        if params.num_turns > 0 && loaded.identity.ephemeral {
            return Err(RuntimeError::NoRollbackInMemory);
        }
        thread.roll_back(params.num_turns, self.new_turn_id()).await?;
        Ok(loaded.respond(thread.snapshot(true).await?, HostAnswer::default()))
    }
}

/// Limit of a key of additional context.
const MAX_CONTEXT_KEY: usize = 64;

/// Keys must be plain names: they become tags, which nothing else may look like.
fn additional_context(
    given: Option<BTreeMap<String, AdditionalContextEntry>>,
) -> Result<BTreeMap<String, AdditionalContextEntry>, RuntimeError> {
    let given = given.unwrap_or_default();
    let is_plain = |key: &str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
        (1..=MAX_CONTEXT_KEY).contains(&key.len()) && key.bytes().all(plain)
    };
    match given.keys().find(|key| !is_plain(key)) {
        Some(key) => Err(RuntimeError::ContextKey(key.clone())),
        None => Ok(given),
    }
}

/// A message from another program needs the name of the tool that delivers it.
fn outside_message(given: TurnToolOutput) -> Result<OutsideMessage, RuntimeError> {
    let TurnToolOutput { name, namespace, output, .. } = given;
    if name.trim().is_empty() {
        let problem = "must not be empty".to_owned();
        return Err(RuntimeError::Field { field: "toolOutput.name", problem });
    }
    let text = |part: &FunctionCallOutputContentItem| match part {
        FunctionCallOutputContentItem::InputText { text } => text.chars().count(),
        FunctionCallOutputContentItem::InputImage { .. } => 0,
    };
    let actual = match &output {
        FunctionCallOutputBody::Text(text) => text.chars().count(),
        FunctionCallOutputBody::Content(parts) => parts.iter().map(text).sum(),
    };
    if actual > MAX_INPUT_CHARS {
        return Err(RuntimeError::InputTooLarge { max: MAX_INPUT_CHARS, actual });
    }
    Ok(OutsideMessage { name, namespace, output })
}

fn check_length(input: &[UserInput]) -> Result<(), RuntimeError> {
    let actual = input_chars(input);
    if actual > MAX_INPUT_CHARS {
        return Err(RuntimeError::InputTooLarge { max: MAX_INPUT_CHARS, actual });
    }
    Ok(())
}

fn begun(started_at: Option<i64>, id: TurnId) -> Turn {
    Turn {
        id,
        items: Vec::new(),
        status: TurnStatus::InProgress,
        error: None,
        started_at,
        completed_at: None,
        duration_ms: None,
        plan: None,
    }
}
