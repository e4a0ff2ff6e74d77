//! `oarlock tasks` and `oarlock task`: the tasks of a host, and one of them.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};
use runtime::{Clock, SystemClock};
use serde_json::{Value, json};
use turn_view::{age, shown_id, task_text, task_title};

use super::chosen::chosen_task;
use super::client::{HostChoice, HostConnection};
use super::commands::{code, every, print, print_list, text};

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
            task_title(task),
        ]
    };
    let head = ["ID", "STATE", "WAITS", "AGE", "TASK"];
    print_list(options.json, &Value::Array(listed), (&head, "no tasks yet"), row)
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
            print!("{}", task_text(&answer, code, &options.host.words(), SystemClock.now_ms()));
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
