//! `oarlock tasks` and `oarlock task`: the tasks of a host, and one of them.

use std::fmt::Write as _;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};
use runtime::{Clock, SystemClock};
use serde_json::{Value, json};

use super::chosen::chosen_task;
use super::client::{HostChoice, HostConnection};
use super::commands::{every, print, print_list, text};
use super::pending::listed;
use super::table::{age, shown_id};
use crate::terminal::clean_line;

#[derive(Debug, Args)]
pub(crate) struct TasksOptions {
    #[command(flatten)]
    host: HostChoice,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TaskOptions {
    #[command(flatten)]
    host: HostChoice,
    #[command(subcommand)]
    command: TaskCommandLine,
}

/// Which task: by its id, the beginning of it, or its name.
#[derive(Debug, Args)]
struct TaskName {
    #[arg(value_name = "TASK")]
    task: String,
}

#[derive(Debug, Subcommand)]
enum TaskCommandLine {
    /// Show a task and what waits in it.
    Show {
        #[command(flatten)]
        name: TaskName,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// End its runtime; its turn stays where it is.
    Suspend {
        #[command(flatten)]
        name: TaskName,
        /// Then also keep the workspace of its placement as it is.
        #[arg(long)]
        snapshot: bool,
    },
    /// Start its runtime; its turn goes on.
    Resume(TaskName),
    /// Remove it with its records, for good.
    Delete(TaskName),
}

pub(crate) fn tasks(options: &TasksOptions) -> Result<ExitCode> {
    let mut host = HostConnection::open(&options.host)?;
    let listed = every(&mut host, "task/list", json!({}))?;
    let now = SystemClock.now_ms();
    let row = |task: &Value| {
        vec![
            shown_id(&text(&task["id"])),
            text(&task["state"]),
            task["waitingOperations"].to_string(),
            age(task["updatedAtMs"].as_i64().unwrap_or(now), now),
            title(task),
        ]
    };
    let head = ["ID", "STATE", "WAITS", "AGE", "TASK"];
    print_list(options.json, &Value::Array(listed), (&head, "no tasks yet"), row)
}

/// Its name, or how it began.
fn title(task: &Value) -> String {
    let name = text(&task["name"]);
    if name.is_empty() { text(&task["preview"]) } else { name }
}

pub(crate) fn task(options: &TaskOptions) -> Result<ExitCode> {
    let (method, name) = match &options.command {
        TaskCommandLine::Show { name, .. } => ("task/read", name),
        TaskCommandLine::Suspend { name, .. } => ("thread/suspend", name),
        TaskCommandLine::Resume(name) => ("task/resume", name),
        TaskCommandLine::Delete(name) => ("task/delete", name),
    };
    let mut host = HostConnection::open(&options.host)?;
    let id = chosen_task(&mut host, &name.task)?;
    let mut params = json!({ "threadId": id });
    if let TaskCommandLine::Suspend { snapshot: true, .. } = &options.command {
        params["snapshot"] = json!(true);
    }
    let answer = host.ask(method, &params)?;
    match &options.command {
        TaskCommandLine::Show { json: true, .. } => return print(&answer),
        TaskCommandLine::Show { .. } => {
            print!("{}", shown(&answer, &options.host.words(), SystemClock.now_ms()));
        }
        TaskCommandLine::Delete(_) => println!("deleted {id}"),
        TaskCommandLine::Suspend { .. } | TaskCommandLine::Resume(_) => {
            println!("{id} is {}", text(&answer["task"]["state"]));
            if let Some(snapshot) = answer["placement"]["snapshot"].as_str() {
                println!("its workspace is kept as {snapshot}");
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The facts of a task, a line each, and what waits in it.
fn shown(answer: &Value, host: &str, now_ms: i64) -> String {
    let task = &answer["task"];
    let since = |key: &str| format!("{} ago", age(task[key].as_i64().unwrap_or(now_ms), now_ms));
    let runtime = if task["hasRuntime"] == true { "" } else { ", without a runtime" };
    let archived = if task["isArchived"] == true { ", archived" } else { "" };
    let labels = task["labels"].as_object().into_iter().flatten();
    let labels: Vec<String> = labels.map(|(key, value)| format!("{key}={}", text(value))).collect();
    let last = &task["lastTurn"];
    let why = last["error"].as_str().map(|error| format!(": {error}")).unwrap_or_default();
    let children = task["children"].as_u64().filter(|count| *count > 0);
    let facts = [
        ("task", text(&task["id"])),
        ("title", title(task)),
        ("state", format!("{}{runtime}{archived}", text(&task["state"]))),
        ("last turn", format!("{}{why}", text(&last["status"]))),
        ("folder", text(&task["cwd"])),
        ("model", text(&task["model"])),
        ("placement", text(&task["placementId"])),
        ("labels", labels.join(", ")),
        ("agent", text(&task["agent"])),
        ("agents", children.map(|count| count.to_string()).unwrap_or_default()),
        ("begun", since("createdAtMs")),
        ("changed", since("updatedAtMs")),
    ];
    let mut shown = String::new();
    for (name, value) in facts.iter().filter(|(_, value)| !value.is_empty()) {
        // Writing to a text cannot fail.
        let _ = writeln!(shown, "{name:<10} {}", clean_line(value));
    }
    let operations = answer["operations"].as_array().map(Vec::as_slice).unwrap_or_default();
    if !operations.is_empty() {
        let titles = |_: &str| (text(&task["name"]), text(&task["preview"]), text(&task["cwd"]));
        let _ = write!(shown, "\n{}", listed(operations, titles, host, now_ms));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_shown_in_lines() {
        let operation = json!({
            "operationId": "o", "taskId": "t1", "state": "proposed", "type": "command",
            "arguments": { "command": ["bash", "-lc", "make deploy"], "cwd": "/srv/app" },
            "availableDecisions": ["accept"], "reason": null, "createdAtMs": 0, "attempt": 0,
        });
        let task = json!({
            "id": "t1", "name": null, "preview": "ship\nit\u{1b}[2J", "state": "suspended", "hasRuntime": false,
            "cwd": "/srv/app", "model": "m", "placementId": null, "labels": { "team": "web" }, "agent": null,
            "children": 0, "isArchived": false, "createdAtMs": 0, "updatedAtMs": 3_600_000,
            "lastTurn": { "id": "u", "status": "failed", "error": "429" },
        });
        let shown = shown(&json!({ "task": task, "operations": [operation] }), "", 7_200_000);
        let expected = "\
task       t1
title      ship it[2J
state      suspended, without a runtime
last turn  failed: 429
folder     /srv/app
model      m
labels     team=web
begun      2h ago
changed    1h ago

";
        assert!(shown.starts_with(expected), "{shown}");
        assert!(shown.contains("   | make deploy\n   in /srv/app\n   oarlock approve "), "{shown}");
    }
}
