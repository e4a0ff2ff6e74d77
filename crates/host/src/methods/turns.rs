//! Input, which is durable before anything else happens, and requests that a runtime answers.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use protocol::{ThreadId, Turn, TurnId, TurnStartParams, TurnStatus, TurnSteerParams};
use rpc::ErrorObject;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use store::{InboxEntry, InboxPut, InboxRow, InboxState, TaskRow};
use support::kill_point;

use crate::error::TaskError;
use crate::ids::check_thread_id;
use crate::link::{LinkAnswer, OrderedAnswer};
use crate::messages::{TaskCommand, TaskPass, TurnReply};
use crate::options::HostOptions;
use crate::settings::{TaskSettings, shown_to_clients};
use crate::task_host::TaskHost;

/// A runtime that takes longer is answered for: the input is in the store.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// Longer ids are a mistake.
const MAX_INPUT_ID: usize = 200;

type TurnAnswer = Box<dyn FnOnce(Result<Turn, TaskError>) + Send>;

impl TaskHost {
    /// Returns when the input is committed; the answer comes from the runtime, or from the row when that takes long.
    pub async fn start_turn(
        &self,
        mut params: TurnStartParams,
        by: &str,
        answer: impl FnOnce(Result<Turn, TaskError>) + Send + 'static,
    ) {
        let answer: TurnAnswer = Box::new(answer);
        let input_id = params.input_id.take();
        let turn_id = params.turn_id.take().unwrap_or_else(|| TurnId::new(self.shared.new_uuid()));
        let thread = params.thread_id.clone();
        if let Err(error) = self.check_turn_sandbox(&params).await {
            return answer(Err(error));
        }
        match self.put(("turn/start", by), &thread, input_id, turn_id, &params).await {
            Ok(InboxPut::Known(row)) => answer(first_answer(&row)),
            Ok(InboxPut::Received(row)) => {
                if let Err(error) = self.change_settings(&row.thread, &params).await {
                    tracing::warn!(%error, "what a turn changes is not kept for the next runtime");
                }
                self.hand_over(row, answer).await;
            }
            Err(error) => answer(Err(error)),
        }
    }

    pub async fn steer_turn(
        &self,
        mut params: TurnSteerParams,
        by: &str,
        answer: impl FnOnce(Result<Turn, TaskError>) + Send + 'static,
    ) {
        let answer: TurnAnswer = Box::new(answer);
        let input_id = params.input_id.take();
        let (thread, turn_id) = (params.thread_id.clone(), params.expected_turn_id.clone());
        match self.put(("turn/steer", by), &thread, input_id, turn_id, &params).await {
            Ok(InboxPut::Known(row)) => answer(first_answer(&row)),
            Ok(InboxPut::Received(row)) => self.hand_over(row, answer).await,
            Err(error) => answer(Err(error)),
        }
    }

    async fn put(
        &self,
        (method, by): (&str, &str),
        thread: &ThreadId,
        input_id: Option<String>,
        turn_id: TurnId,
        params: &impl Serialize,
    ) -> Result<InboxPut, TaskError> {
        let field = |problem: &str| TaskError::Field { field: "inputId", problem: problem.to_owned() };
        if input_id.as_ref().is_some_and(|id| id.is_empty() || id.len() > MAX_INPUT_ID) {
            return Err(field("must have between 1 and 200 bytes"));
        }
        let thread = check_thread_id(thread)?;
        let row = self.root_of(&thread).await?;
        if row.id != thread {
            return Err(TaskError::Field {
                field: "threadId",
                problem: "input goes to the root of a task; its agents pass it on".to_owned(),
            });
        }
        if row.is_archived {
            return Err(TaskError::UnknownThread(thread));
        }
        let params =
            serde_json::to_value(params).map_err(|error| TaskError::Unreadable(error.to_string()))?;
        let entry = InboxEntry {
            thread,
            input_id: input_id.unwrap_or_else(|| self.shared.new_uuid()),
            method: method.to_owned(),
            turn_id,
            params,
        };
        let (turn, details) = (entry.turn_id.clone(), json!({ "inputId": entry.input_id }));
        let part = (turn.as_str(), Some(&entry.thread));
        let audited = self.shared.audited_part(by, method, part, details);
        kill_point!("host.input.before");
        let put = audited.put_input(entry).await?;
        kill_point!("host.input.after");
        Ok(put)
    }

    async fn change_settings(&self, thread: &ThreadId, params: &TurnStartParams) -> Result<(), TaskError> {
        let params = params.clone();
        let change = move |stored: &mut Value| {
            TaskSettings::change(stored, |settings| settings.changed_by_turn(&params));
        };
        self.shared.store.change_settings(thread, change).await?;
        Ok(())
    }

    async fn hand_over(&self, row: InboxRow, answer: TurnAnswer) {
        let (thread, own_turn) = (row.thread.clone(), row.turn_id.clone());
        let turn = own_turn.clone();
        let waiting = Arc::new(Mutex::new(Some(answer)));
        let (late, late_turn) = (Arc::clone(&waiting), own_turn.clone());
        tokio::spawn(async move {
            tokio::time::sleep(ANSWER_WITHIN).await;
            let answer = late.lock().take();
            if let Some(answer) = answer {
                answer(Ok(in_progress(late_turn, None)));
            }
        });
        let (first, clock) = (Arc::clone(&waiting), Arc::clone(&self.shared.options.clock));
        let reply: TurnReply = Box::new(move |turn: Result<TurnId, ErrorObject>| {
            let answer = first.lock().take();
            if let Some(answer) = answer {
                let begun = |id: TurnId| {
                    let started_at = (id == own_turn).then(|| clock.now_ms().div_euclid(1_000));
                    in_progress(id, started_at)
                };
                answer(turn.map(begun).map_err(TaskError::Refused));
            }
        });
        let trace = traces::current();
        let command = TaskCommand::Turn { row: Box::new(row), reply: Some(reply), trace };
        if let Err(error) = self.send(&thread, command).await {
            let answer = waiting.lock().take();
            if let Some(answer) = answer {
                answer(if is_left_to_others(&error) { Ok(in_progress(turn, None)) } else { Err(error) });
            }
        }
    }

    /// Stops the turn, wherever it is: a task without a runtime gets one for that.
    pub async fn interrupt_turn(
        &self,
        thread: &ThreadId,
        params: &impl Serialize,
        by: &str,
        answer: impl FnOnce(Result<(), TaskError>) + Send + 'static,
    ) {
        if let Err(error) = self.reject_unknown(thread, by).await {
            return answer(Err(error));
        }
        self.pass_for(thread, ("turn/interrupt", by), params, move |result| answer(result.map(drop))).await;
    }

    /// As [`TaskHost::pass`], for what starts or stops something: it has an entry in the audit trail.
    pub async fn pass_for(
        &self,
        thread: &ThreadId,
        (method, by): (&str, &str),
        params: &impl Serialize,
        answer: impl FnOnce(Result<Box<RawValue>, TaskError>) + Send + 'static,
    ) {
        let noted = match self.passable(thread).await {
            Ok(row) => self.note(by, method, &row.id).await.map_err(TaskError::from),
            Err(error) => Err(error),
        };
        match noted {
            Ok(()) => self.pass(thread, method, params, answer).await,
            Err(error) => answer(Err(error)),
        }
    }

    /// Passes a request about a thread on to its runtime, starting one first where there is none. The answer is given in
    /// the order of the runtime's messages.
    pub async fn pass(
        &self,
        thread: &ThreadId,
        method: &str,
        params: &impl Serialize,
        answer: impl FnOnce(Result<Box<RawValue>, TaskError>) + Send + 'static,
    ) {
        let row = match self.passable(thread).await {
            Ok(row) => row,
            Err(error) => return answer(Err(error)),
        };
        let params = match to_raw_value(params) {
            Ok(params) => params,
            Err(error) => return answer(Err(TaskError::Unreadable(error.to_string()))),
        };
        let (gone, shared) = (thread.clone(), self.shared.clone());
        let (shown, id) = (row.clone(), row.id);
        // Whoever fails to deliver it may still have to answer it.
        let waiting = Arc::new(Mutex::new(Some(answer)));
        let first = Arc::clone(&waiting);
        let ordered: OrderedAnswer = Box::new(move |result: LinkAnswer| {
            let answer = first.lock().take();
            if let Some(answer) = answer {
                let result = result.map(|result| with_row(result, &shown, &shared.options));
                answer(result.map_err(|error| match error {
                    Some(error) => TaskError::Refused(error),
                    None => TaskError::RuntimeGone(gone),
                }));
            }
        });
        let pass = TaskPass::Request { method: method.to_owned(), params, answer: ordered };
        if let Err(error) = self.send(&id, TaskCommand::Pass { pass, trace: traces::current() }).await {
            let answer = waiting.lock().take();
            if let Some(answer) = answer {
                answer(Err(error));
            }
        }
    }

    async fn passable(&self, thread: &ThreadId) -> Result<TaskRow, TaskError> {
        let row = self.root_of(&check_thread_id(thread)?).await?;
        match row.is_archived {
            true => Err(TaskError::UnknownThread(row.id)),
            false => Ok(row),
        }
    }
}

/// The input is in the store, and whoever owns the task takes it from there: an error would say that it was refused.
fn is_left_to_others(error: &TaskError) -> bool {
    match error {
        TaskError::OwnedElsewhere { .. } | TaskError::OwnerLost(_) => true,
        TaskError::Store(error) => error.is_temporary(),
        _ => false,
    }
}

/// A runtime's answer that shows the thread, with what the host alone knows of it.
fn with_row(result: Box<RawValue>, row: &TaskRow, options: &HostOptions) -> Box<RawValue> {
    if !result.get().starts_with("{\"thread\":") {
        return result;
    }
    let Ok(mut shown) = serde_json::from_str::<Value>(result.get()) else { return result };
    if shown["thread"]["id"] != row.id.as_str() {
        return result;
    }
    shown["thread"]["preview"] = json!(row.preview);
    shown["thread"]["name"] = json!(row.name);
    TaskSettings::read(&row.settings).name_carried(&mut shown);
    shown_to_clients(&mut shown, options);
    to_raw_value(&shown).unwrap_or(result)
}

/// A repeated input gets its first answer again; one that nobody has answered yet is under way.
fn first_answer(row: &InboxRow) -> Result<Turn, TaskError> {
    match (&row.state, &row.answer) {
        (InboxState::Refused, Some(answer)) => {
            let error = &answer["error"];
            Err(TaskError::Refused(ErrorObject {
                code: error["code"].as_i64().unwrap_or(-32603),
                message: error["message"].as_str().unwrap_or_default().to_owned(),
                data: None,
            }))
        }
        (_, Some(answer)) => {
            let turn = answer["turnId"].as_str().map_or_else(|| row.turn_id.clone(), TurnId::new);
            Ok(in_progress(turn, None))
        }
        (_, None) => Ok(in_progress(row.turn_id.clone(), None)),
    }
}

fn in_progress(id: TurnId, started_at: Option<i64>) -> Turn {
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
