//! `oarlock usage`: what tasks used, and what it cost.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, ValueEnum};
use runtime::{Clock, SystemClock};
use serde_json::{Value, json};
use turn_view::shown_id;

use super::chosen::chosen_task;
use super::client::{HostChoice, HostConnection};
use super::commands::print_list;

#[derive(Debug, Clone, Copy, ValueEnum)]
enum GroupWord {
    Task,
    Model,
    Provider,
    Day,
}

#[derive(Debug, Args)]
pub(crate) struct UsageOptions {
    #[command(flatten)]
    host: HostChoice,
    /// Of this task alone: by its id, the beginning of it, or its name.
    #[arg(long, value_name = "TASK")]
    task: Option<String>,
    /// Of the last so many days; all of it when unset.
    #[arg(long, value_name = "DAYS")]
    days: Option<u32>,
    /// One line for each.
    #[arg(long, value_enum, default_value = "day")]
    by: GroupWord,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn usage(options: &UsageOptions) -> Result<ExitCode> {
    let mut host = HostConnection::open(&options.host)?;
    let by = match options.by {
        GroupWord::Task => "task",
        GroupWord::Model => "model",
        GroupWord::Provider => "provider",
        GroupWord::Day => "day",
    };
    let mut params = json!({ "groupBy": by });
    if let Some(task) = &options.task {
        params["threadId"] = json!(chosen_task(&mut host, task)?);
    }
    if let Some(days) = options.days {
        let now = SystemClock.now_ms();
        params["sinceMs"] = json!(now - i64::from(days) * 86_400_000);
    }
    let listed = host.ask("usage/list", &params)?;
    let key = |key: &Value| match options.by {
        GroupWord::Task => shown_id(key.as_str().unwrap_or_default()),
        GroupWord::Model | GroupWord::Provider | GroupWord::Day => {
            key.as_str().unwrap_or_default().to_owned()
        }
    };
    let cell = |row: &Value, name: &str| row[name].to_string();
    let row = |row: &Value| {
        let micros = row["costMicros"].as_i64().unwrap_or_default();
        vec![
            key(&row["key"]),
            cell(row, "requests"),
            cell(row, "inputTokens"),
            cell(row, "cachedInputTokens"),
            cell(row, "outputTokens"),
            format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000),
        ]
    };
    let group = by.to_uppercase();
    let head = [group.as_str(), "REQUESTS", "INPUT", "CACHED", "OUTPUT", "COST"];
    print_list(options.json, &listed["data"], (&head, "nothing was used yet"), row)
}
