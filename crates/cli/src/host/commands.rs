//! `oarlock tasks`, `pending`, `approve`, `reject`, `respond`, `retry` and `task`: what waits, and what is done about it.

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use runtime::{Clock, SystemClock};
use serde_json::{Value, json};

use super::client::{HostChoice, HostConnection};
use super::pending::{code, listed, what};
use super::table::{age, table};
use crate::terminal::escaped_json;

pub(crate) const EXAMPLES: &str = "\
Examples:
  oarlock pending                     what waits, since when, and what exactly would run
  oarlock approve 3f9a01c2            the one with this code
  oarlock reject 3f9a01c2 --message \"not on a Friday\"
  oarlock respond 3f9a01c2 \"it is done already\"
  oarlock retry 3f9a01c2              run it again, where the outcome is unknown";

/// Fewer letters of a code name nothing.
const FEWEST: usize = 4;

#[derive(Debug, Args)]
pub(crate) struct TasksOptions {
    #[command(flatten)]
    host: HostChoice,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PendingOptions {
    #[command(flatten)]
    host: HostChoice,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Which operation is decided: by its id, or by its code in `oarlock pending`.
#[derive(Debug, Args)]
pub(crate) struct DecideOptions {
    #[command(flatten)]
    host: HostChoice,
    /// The operation's code in `oarlock pending`, or its id.
    id: String,
    /// The name of the person who decided, where you only pass it on.
    #[arg(long, value_name = "NAME")]
    on_behalf_of: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ApproveOptions {
    #[command(flatten)]
    decide: DecideOptions,
    /// Also approve the same thing again, for as long as the session lasts.
    #[arg(long)]
    session: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RejectOptions {
    #[command(flatten)]
    decide: DecideOptions,
    /// Told to the model.
    #[arg(long)]
    message: Option<String>,
    /// Also end the turn.
    #[arg(long)]
    end_turn: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RespondOptions {
    #[command(flatten)]
    decide: DecideOptions,
    /// The result for the model; nothing runs.
    text: String,
    /// The result is a failure.
    #[arg(long)]
    failed: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TaskOptions {
    #[command(flatten)]
    host: HostChoice,
    #[command(subcommand)]
    command: TaskCommandLine,
}

#[derive(Debug, Subcommand)]
enum TaskCommandLine {
    /// Show a task and what waits in it.
    Show { id: String },
    /// End its runtime; its turn stays where it is.
    Suspend {
        id: String,
        /// Then also keep the workspace of its placement as it is.
        #[arg(long)]
        snapshot: bool,
    },
    /// Start its runtime; its turn goes on.
    Resume { id: String },
    /// Remove it with its records, for good.
    Delete { id: String },
}

pub(super) fn print(value: &Value) -> Result<ExitCode> {
    println!("{}", escaped_json(&serde_json::to_string_pretty(value)?));
    Ok(ExitCode::SUCCESS)
}

/// A list, as JSON or as a table; or a sentence where there is nothing in it.
pub(super) fn print_list(
    is_json: bool,
    list: &Value,
    (head, nothing): (&[&str], &str),
    row: impl Fn(&Value) -> Vec<String>,
) -> Result<ExitCode> {
    if is_json {
        return print(list);
    }
    let rows: Vec<Vec<String>> = list.as_array().into_iter().flatten().map(row).collect();
    match rows.is_empty() {
        true => println!("{nothing}"),
        false => print!("{}", table(head, &rows)),
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

pub(crate) fn tasks(options: &TasksOptions) -> Result<ExitCode> {
    let mut host = HostConnection::open(&options.host)?;
    let listed = host.ask("task/list", &json!({ "limit": 200 }))?;
    let now = SystemClock.now_ms();
    let row = |task: &Value| {
        let name = text(&task["name"]);
        vec![
            text(&task["id"]),
            text(&task["state"]),
            task["waitingOperations"].to_string(),
            age(task["updatedAtMs"].as_i64().unwrap_or(now), now),
            if name.is_empty() { text(&task["preview"]) } else { name },
        ]
    };
    let head = ["ID", "STATE", "WAITS", "AGE", "TASK"];
    print_list(options.json, &listed["data"], (&head, "no tasks yet"), row)
}

fn waiting(host: &mut HostConnection) -> Result<Vec<Value>> {
    let listed = host.ask("operation/list", &json!({ "limit": 200 }))?;
    Ok(listed["data"].as_array().cloned().unwrap_or_default())
}

pub(crate) fn pending(options: &PendingOptions) -> Result<ExitCode> {
    let mut host = HostConnection::open(&options.host)?;
    let operations = waiting(&mut host)?;
    if options.json {
        return print(&Value::Array(operations));
    }
    if operations.is_empty() {
        println!("nothing waits");
        return Ok(ExitCode::SUCCESS);
    }
    let tasks = host.ask("task/list", &json!({ "limit": 200 }))?;
    let titles = |id: &str| {
        let task = tasks["data"].as_array().into_iter().flatten().find(|task| task["id"] == id);
        task.map(|task| (text(&task["name"]), text(&task["preview"]), text(&task["cwd"]))).unwrap_or_default()
    };
    print!("{}", listed(&operations, titles, &options.host.words(), SystemClock.now_ms()));
    Ok(ExitCode::SUCCESS)
}

/// By its code or the beginning of it, or by its whole id.
fn chosen(operations: &[Value], id: &str) -> Result<Value> {
    let fits = |operation: &&Value| {
        operation["operationId"] == id || (id.len() >= FEWEST && code(operation).starts_with(id))
    };
    let found: Vec<&Value> = operations.iter().filter(fits).collect();
    match found.as_slice() {
        [one] => Ok((*one).clone()),
        [] => bail!("nothing that waits has the code {id}; `oarlock pending` lists what does"),
        _ => bail!("{id} could mean {} operations; give the whole code from `oarlock pending`", found.len()),
    }
}

fn decide(options: &DecideOptions, decision: &Value) -> Result<ExitCode> {
    let mut host = HostConnection::open(&options.host)?;
    let operation = chosen(&waiting(&mut host)?, &options.id)?;
    let mut params = json!({
        "operationId": operation["operationId"],
        "argumentsDigest": operation["argumentsDigest"],
        "decision": decision,
    });
    if let Some(name) = &options.on_behalf_of {
        params["onBehalfOf"] = json!(name);
    }
    host.ask("operation/decide", &params)?;
    println!("{}: {}", text(&decision["type"]), what(&operation));
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn approve(options: &ApproveOptions) -> Result<ExitCode> {
    let scope = if options.session { "session" } else { "call" };
    decide(&options.decide, &json!({ "type": "approve", "scope": scope }))
}

pub(crate) fn reject(options: &RejectOptions) -> Result<ExitCode> {
    let mut decision = json!({ "type": "reject", "endTurn": options.end_turn });
    if let Some(message) = &options.message {
        decision["message"] = json!(message);
    }
    decide(&options.decide, &decision)
}

pub(crate) fn respond(options: &RespondOptions) -> Result<ExitCode> {
    let content = json!([{ "type": "inputText", "text": options.text }]);
    decide(
        &options.decide,
        &json!({ "type": "respond", "contentItems": content, "success": !options.failed }),
    )
}

pub(crate) fn retry(options: &DecideOptions) -> Result<ExitCode> {
    decide(options, &json!({ "type": "retry" }))
}

pub(crate) fn task(options: &TaskOptions) -> Result<ExitCode> {
    let mut host = HostConnection::open(&options.host)?;
    let (method, id) = match &options.command {
        TaskCommandLine::Show { id } => ("task/read", id),
        TaskCommandLine::Suspend { id, .. } => ("thread/suspend", id),
        TaskCommandLine::Resume { id } => ("task/resume", id),
        TaskCommandLine::Delete { id } => ("task/delete", id),
    };
    let mut params = json!({ "threadId": id });
    if let TaskCommandLine::Suspend { snapshot: true, .. } = &options.command {
        params["snapshot"] = json!(true);
    }
    let answer = host.ask(method, &params)?;
    match &options.command {
        TaskCommandLine::Show { .. } => print(&answer),
        TaskCommandLine::Delete { .. } => {
            println!("deleted {id}");
            Ok(ExitCode::SUCCESS)
        }
        TaskCommandLine::Suspend { .. } | TaskCommandLine::Resume { .. } => {
            println!("{id} is {}", text(&answer["task"]["state"]));
            if let Some(snapshot) = answer["placement"]["snapshot"].as_str() {
                println!("its workspace is kept as {snapshot}");
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}
