//! The offline model that follows a script.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use model::{EventStream, ModelTransport, PreparedRequest, RequestBody};
use parking_lot::Mutex;
use serde_json::Value;

use super::reply::{OfflineReply, OfflineRequest, OfflineResponder, ReplyStream};
use super::script_step::ScriptStep;

/// Answers request after request from a list of steps. Clones share the list.
///
/// The file is a JSON array; each request takes one step:
/// ~~~json
/// [
///   {"expect": {"lastUserContains": "list", "toolOffered": "exec_command"},
///    "call": {"name": "exec_command", "arguments": {"cmd": "ls"}}},
///   {"fail": {"status": 500, "body": {"error": {"message": "busy"}}}, "delayMs": 10},
///   {"text": "done", "usage": {"inputTokens": 100, "outputTokens": 5}},
///   {"events": [{"type": "response.created", "response": {"id": "r"}}], "hang": true}
/// ]
/// ~~~
/// A request that does not fit its step, or comes after the last one, is refused with status 400 and a sentence that says
/// why, and [`ModelScript::finish`] reports it. Over HTTP, remember that the client retries a status of 500 and more, and that every
/// retry takes a step.
#[derive(Debug, Clone)]
pub struct ModelScript {
    state: Arc<Mutex<ScriptState>>,
}

#[derive(Debug)]
struct ScriptState {
    steps: VecDeque<ScriptStep>,
    total: usize,
    requests: Vec<RequestBody>,
    problems: Vec<String>,
}

/// A script that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    #[error("the script is not a JSON array of steps: {0}")]
    NotAList(String),
    #[error("step {number} of the script {problem}")]
    BadStep { number: usize, problem: String },
}

/// A script that was not played as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// Steps that no request took.
    pub unused: usize,
    /// The errors of requests that did not fit.
    pub problems: Vec<String>,
}

impl fmt::Display for Leftover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unused = match self.unused {
            0 => None,
            1 => Some("1 step of the script was not used".to_owned()),
            unused => Some(format!("{unused} steps of the script were not used")),
        };
        let all = Vec::from_iter(unused.into_iter().chain(self.problems.iter().cloned()));
        f.write_str(&all.join("; "))
    }
}

impl std::error::Error for Leftover {}

impl ModelScript {
    pub fn from_json(text: &str) -> Result<Self, ScriptError> {
        let steps: Vec<Value> =
            serde_json::from_str(text).map_err(|error| ScriptError::NotAList(error.to_string()))?;
        let steps = steps.into_iter().zip(1..).map(|(step, number)| {
            let bad = |problem: String| ScriptError::BadStep { number, problem };
            let step: ScriptStep =
                serde_json::from_value(step).map_err(|error| bad(format!("cannot be read: {error}")))?;
            match step.complaint() {
                Some(problem) => Err(bad(problem.to_owned())),
                None => Ok(step),
            }
        });
        let steps: VecDeque<ScriptStep> = steps.collect::<Result<_, _>>()?;
        let state = ScriptState { total: steps.len(), steps, requests: Vec::new(), problems: Vec::new() };
        Ok(Self { state: Arc::new(Mutex::new(state)) })
    }

    /// Whether every step was used and every request fitted.
    pub fn finish(&self) -> Result<(), Leftover> {
        self.with(|state| {
            if state.steps.is_empty() && state.problems.is_empty() {
                return Ok(());
            }
            Err(Leftover { unused: state.steps.len(), problems: state.problems.clone() })
        })
    }

    /// The requests that took a step, oldest first.
    pub fn requests(&self) -> Vec<RequestBody> {
        self.with(|state| state.requests.clone())
    }

    fn with<T>(&self, work: impl FnOnce(&mut ScriptState) -> T) -> T {
        // A state is whole between any two statements, so a panic elsewhere leaves nothing half done.
        work(&mut self.state.lock())
    }
}

impl ScriptState {
    fn answer(&mut self, body: &RequestBody) -> OfflineReply {
        let Some(step) = self.steps.pop_front() else {
            return self.refuse(format!("the script has {} steps and all are used", self.total));
        };
        self.requests.push(body.clone());
        match step.mismatch(body) {
            Some(mismatch) => {
                let number = self.total - self.steps.len();
                self.refuse(format!("the request does not fit step {number} of the script: {mismatch}"))
            }
            None => step.reply(body),
        }
    }

    fn refuse(&mut self, problem: String) -> OfflineReply {
        self.problems.push(problem.clone());
        OfflineReply::refused(400, problem)
    }
}

impl OfflineResponder for ModelScript {
    fn respond(&self, request: OfflineRequest<'_>) -> OfflineReply {
        self.with(|state| state.answer(request.body))
    }
}

impl ModelTransport for ModelScript {
    fn open(&self, request: PreparedRequest) -> EventStream {
        Box::pin(ReplyStream::new(self.clone(), request))
    }
}
