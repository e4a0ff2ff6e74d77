//! A running job: starts agents, waits for them, closes them, and collects their reports.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use engine::{ToolCall, ToolPayload, UNKNOWN_OUTCOME};
use protocol::FunctionCallOutputBody;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::board::{JobBoard, JobReport};
use super::csv::row;
use crate::child_agents::{AgentStatus, ChildAgents};
use crate::{ToolCx, ToolError, agents};

/// How often starting an agent is retried after another has ended.
const MOST_TRIES: u32 = 100;
/// How often the time limits are checked.
const LOOK: Duration = Duration::from_secs(5);

/// One row.
#[derive(Debug, Clone)]
pub(super) struct JobItem {
    pub(super) id: String,
    /// Starts at 0.
    pub(super) index: usize,
    pub(super) source_id: Option<String>,
    pub(super) fields: Vec<String>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct JobLimits {
    pub(super) at_once: usize,
    /// Time limit of one agent.
    pub(super) runtime: Duration,
}

pub(super) struct AgentJob<'a> {
    pub(super) id: String,
    pub(super) cx: &'a ToolCx,
    pub(super) board: JobBoard,
    pub(super) columns: &'a [String],
    pub(super) instruction: &'a str,
    pub(super) schema: Option<&'a Value>,
    pub(super) limits: JobLimits,
}

/// The results of the rows so far.
#[derive(Debug, Default)]
pub(super) struct JobState {
    ended: Vec<EndedItem>,
    /// How many agents may run at the same time, once that is known.
    at_once: Option<usize>,
    /// An agent requested that no further row is started.
    pub(super) is_stopped: bool,
}

#[derive(Debug)]
struct EndedItem {
    item: JobItem,
    attempts: u32,
    outcome: Result<JobReport, String>,
    at_ms: i64,
}

/// A row with a running agent.
struct RunningRow {
    item: JobItem,
    agent: String,
    since: Instant,
}

impl AgentJob<'_> {
    pub(super) async fn run(&self, items: Vec<JobItem>) -> Result<JobState, ToolError> {
        let agents = agents::of(self.cx)?;
        let (board, ids) = (self.board.clone(), items.iter().map(|item| item.id.clone()).collect::<Vec<_>>());
        let opened = tokio::task::spawn_blocking(move || board.open(&ids)).await;
        if let Ok(Err(error)) = opened {
            return Err(ToolError::Failed(format!("the reports of the job cannot be kept: {error}")));
        }
        let mut waiting: VecDeque<(JobItem, u32)> = items.into_iter().map(|item| (item, 0)).collect();
        let (mut running, mut state) = (Vec::new(), JobState::default());
        while !waiting.is_empty() || !running.is_empty() {
            self.fill(&mut waiting, &mut running, &mut state).await;
            if running.is_empty() {
                continue;
            }
            self.wait(agents.as_ref(), &mut running, &mut state).await;
            if state.is_stopped {
                let never = waiting.drain(..).map(|(item, attempts)| EndedItem {
                    item,
                    attempts,
                    outcome: Err("the job was stopped before this row was begun".to_owned()),
                    at_ms: self.cx.bench().now_ms(),
                });
                state.ended.extend(never);
            }
        }
        state.ended.sort_by_key(|ended| ended.item.index);
        Ok(state)
    }

    /// Starts agents up to the limit.
    async fn fill(
        &self,
        waiting: &mut VecDeque<(JobItem, u32)>,
        running: &mut Vec<RunningRow>,
        state: &mut JobState,
    ) {
        while running.len() < state.at_once.unwrap_or(self.limits.at_once)
            && let Some((item, tries)) = waiting.pop_front()
        {
            let message = self.message(&item);
            let call = format!("{}-row-{}-{tries}", self.cx.call_id(), item.index + 1);
            match self.call(call, "spawn_agent", json!({"message": message})).await {
                Ok(spawned) if spawned["agent_id"].is_string() => {
                    let agent = spawned["agent_id"].as_str().unwrap_or_default().to_owned();
                    running.push(RunningRow { item, agent, since: Instant::now() });
                }
                // The limit of agents may be reached: retry after another row has ended. But an agent whose start a
                // crash interrupted may exist, and another one would work on the same row.
                Err(problem)
                    if !running.is_empty() && tries < MOST_TRIES && !problem.contains(UNKNOWN_OUTCOME) =>
                {
                    state.at_once = Some(running.len());
                    waiting.push_front((item, tries + 1));
                    return;
                }
                Ok(other) => state.fail(item, tries + 1, other.to_string(), self.cx.bench().now_ms()),
                Err(problem) => state.fail(item, tries + 1, problem, self.cx.bench().now_ms()),
            }
        }
    }

    /// Waits until at least one agent has ended or run out of time.
    async fn wait(&self, agents: &dyn ChildAgents, running: &mut Vec<RunningRow>, state: &mut JobState) {
        let reports = self.reports().await;
        let mut ended = BTreeMap::new();
        for one in running.iter() {
            if let Some(status) = taken_up(agents, one, reports.contains_key(&one.item.id)).await {
                ended.insert(one.agent.clone(), status);
            }
        }
        if ended.is_empty() {
            let ids: Vec<_> = running.iter().map(|one| one.agent.clone()).collect();
            ended = agents.wait(&ids, LOOK).await;
        }
        let reports = self.reports().await;
        let all = std::mem::take(running);
        for one in all {
            let status = ended.get(&one.agent);
            let is_late = one.since.elapsed() >= self.limits.runtime;
            let report = reports.get(&one.item.id).cloned();
            if status.is_none() && !is_late {
                running.push(one);
                continue;
            }
            let close = format!("{}-row-{}-close", self.cx.call_id(), one.item.index + 1);
            let _ = self.call(close, "close_agent", json!({"target": one.agent})).await;
            match report {
                Some(report) => {
                    state.is_stopped |= report.stop;
                    state.end(one.item, Ok(report), self.cx.bench().now_ms());
                }
                None => {
                    let problem = match status {
                        Some(AgentStatus::Errored(problem)) => format!("the agent failed: {problem}"),
                        Some(AgentStatus::Interrupted) => {
                            "the agent was cut off before it reported".to_owned()
                        }
                        Some(_) => "the agent ended without calling report_agent_job_result".to_owned(),
                        None => format!("no report within {} seconds", self.limits.runtime.as_secs()),
                    };
                    state.end(one.item, Err(problem), self.cx.bench().now_ms());
                }
            }
        }
    }

    async fn reports(&self) -> BTreeMap<String, JobReport> {
        let board = self.board.clone();
        tokio::task::spawn_blocking(move || board.reports()).await.unwrap_or_default()
    }

    async fn call(&self, call_id: String, name: &str, arguments: Value) -> Result<Value, String> {
        let payload = ToolPayload::Function { arguments: arguments.to_string() };
        let call = ToolCall { call_id, name: name.to_owned(), namespace: None, payload };
        match self.cx.sink().call_tool(call, self.cx.shared_step()).await {
            FunctionCallOutputBody::Text(text) => serde_json::from_str(&text).map_err(|_| text),
            FunctionCallOutputBody::Content(_) => Err("it gave no JSON".to_owned()),
        }
    }

    fn message(&self, item: &JobItem) -> String {
        let row: BTreeMap<_, _> = self.columns.iter().zip(&item.fields).collect();
        let schema = self.schema.map(|schema| format!("\nThe result must fit this JSON Schema: {schema}"));
        format!(
            "You work on one row of a job.\n\nTask:\n{}\n\nThe row: {}\n\nWhen you are done, call \
             report_agent_job_result once with job_id \"{}\", item_id {} and your result as a JSON object. A row \
             without a report counts as failed.{}",
            filled(self.instruction, self.columns, &item.fields),
            json!(row),
            self.id,
            json!(item.id),
            schema.unwrap_or_default(),
        )
    }
}

/// The status of an agent that has ended without a notification: from before a restart, when its turn ended with its
/// process, or stopped by a client.
async fn taken_up(agents: &dyn ChildAgents, row: &RunningRow, is_reported: bool) -> Option<AgentStatus> {
    match agents.status(&row.agent).await {
        AgentStatus::Interrupted => Some(AgentStatus::Interrupted),
        // Its row was done before the restart, and it was closed.
        AgentStatus::NotFound if is_reported => Some(AgentStatus::Completed(None)),
        // Not loaded until it is used.
        AgentStatus::NotFound => {
            let _ = agents.resume(&row.agent).await;
            match agents.status(&row.agent).await {
                AgentStatus::Running => None,
                AgentStatus::PendingInit | AgentStatus::NotFound => Some(AgentStatus::Interrupted),
                status => Some(status),
            }
        }
        _ => None,
    }
}

/// Replaces `{column}` by the row's value. Values are not expanded again.
fn filled(template: &str, columns: &[String], fields: &[String]) -> String {
    let (mut text, mut rest) = (String::new(), template);
    while let Some(at) = rest.find('{') {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        let name = rest.find('}').map(|end| &rest[1..end]);
        match name.and_then(|name| columns.iter().position(|column| column == name).map(|at| (name, at))) {
            Some((name, at)) => {
                text.push_str(&fields[at]);
                rest = &rest[name.len() + 2..];
            }
            None => {
                text.push('{');
                rest = &rest[1..];
            }
        }
    }
    text + rest
}

impl JobState {
    fn fail(&mut self, item: JobItem, attempts: u32, problem: String, at_ms: i64) {
        self.ended.push(EndedItem { item, attempts, outcome: Err(problem), at_ms });
    }

    fn end(&mut self, item: JobItem, outcome: Result<JobReport, String>, at_ms: i64) {
        self.ended.push(EndedItem { item, attempts: 1, outcome, at_ms });
    }

    pub(super) fn total(&self) -> usize {
        self.ended.len()
    }

    pub(super) fn completed(&self) -> usize {
        self.ended.iter().filter(|ended| ended.outcome.is_ok()).count()
    }

    pub(super) fn problems(&self) -> impl Iterator<Item = Value> {
        self.ended.iter().filter_map(|ended| {
            let problem = ended.outcome.as_ref().err()?;
            Some(json!({"item_id": ended.item.id, "source_id": ended.item.source_id, "last_error": problem}))
        })
    }

    /// The input rows with their results.
    pub(super) fn csv(&self, job: &AgentJob<'_>) -> String {
        const MORE: [&str; 10] = [
            "job_id",
            "item_id",
            "row_index",
            "source_id",
            "status",
            "attempt_count",
            "last_error",
            "result_json",
            "reported_at",
            "completed_at",
        ];
        let mut text = row(job.columns.iter().map(String::as_str).chain(MORE));
        for EndedItem { item, attempts, outcome, at_ms } in &self.ended {
            let time = |ms: i64| jiff::Timestamp::from_millisecond(ms).unwrap_or_default().to_string();
            let (status, problem, result, reported) = match outcome {
                Ok(report) => ("completed", "", json!(report.result).to_string(), time(report.at_ms)),
                Err(problem) => ("failed", problem.as_str(), String::new(), String::new()),
            };
            let (index, attempts, at) = (item.index.to_string(), attempts.to_string(), time(*at_ms));
            let source = item.source_id.as_deref().unwrap_or_default();
            let more = [
                job.id.as_str(),
                &item.id,
                &index,
                source,
                status,
                &attempts,
                problem,
                &result,
                &reported,
                &at,
            ];
            text.push_str(&row(item.fields.iter().map(String::as_str).chain(more)));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_columns_are_replaced() {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let (columns, fields) = (words(&["name", "city"]), words(&["{city}", "Bergen"]));
        for (template, expected) in [
            ("greet {name} in {city}", "greet {city} in Bergen"),
            ("{other} {city", "{other} {city"),
            ("{{city}}", "{Bergen}"),
            ("json {\"a\": \"{city}\"}", "json {\"a\": \"Bergen\"}"),
        ] {
            assert_eq!(filled(template, &columns, &fields), expected);
        }
    }
}
