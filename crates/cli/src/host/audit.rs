//! `oarlock host audit`: who decided, started and stopped what.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use jiff::Timestamp;
use runtime::{Clock, SystemClock};
use serde_json::{Value, json};

use super::client::{HostChoice, HostConnection};
use super::commands::{print_list, text};

/// The most that a host gives at once.
const PAGE: u32 = 1_000;

#[derive(Debug, Args)]
pub(crate) struct AuditOptions {
    #[command(flatten)]
    host: HostChoice,
    /// About this task alone.
    #[arg(long, value_name = "ID")]
    task: Option<String>,
    /// Of the last so many days; all of it when unset.
    #[arg(long, value_name = "DAYS")]
    days: Option<u32>,
    /// At most so many entries, the newest ones.
    #[arg(long, value_name = "NUMBER", default_value_t = 50)]
    limit: u32,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn audit(options: &AuditOptions) -> Result<ExitCode> {
    let mut host = HostConnection::open(&options.host)?;
    let mut params = json!({});
    if let Some(task) = &options.task {
        params["threadId"] = json!(task);
    }
    if let Some(days) = options.days {
        params["sinceMs"] = json!(SystemClock.now_ms() - i64::from(days) * 86_400_000);
    }
    let entries = newest(&mut host, params, options.limit)?;
    let head = ["TIME", "WHO", "ACTION", "SUBJECT", "DETAILS"];
    print_list(options.json, &Value::Array(entries), (&head, "nothing was done yet"), row)
}

fn newest(host: &mut HostConnection, mut params: Value, limit: u32) -> Result<Vec<Value>> {
    let mut entries = Vec::new();
    loop {
        let left = limit.saturating_sub(u32::try_from(entries.len())?);
        params["limit"] = json!(left.min(PAGE));
        let mut listed = host.ask("audit/list", &params)?;
        if let Value::Array(page) = listed["data"].take() {
            entries.extend(page);
        }
        params["cursor"] = listed["nextCursor"].take();
        if params["cursor"].is_null() || entries.len() >= limit as usize {
            return Ok(entries);
        }
    }
}

fn row(entry: &Value) -> Vec<String> {
    let at_ms = entry["atMs"].as_i64().unwrap_or_default();
    let time = Timestamp::from_millisecond(at_ms).map(|time| time.strftime("%F %T").to_string());
    let details = &entry["details"];
    let is_empty = details.as_object().is_none_or(serde_json::Map::is_empty);
    vec![
        time.unwrap_or_default(),
        text(&entry["who"]),
        text(&entry["action"]),
        text(&entry["subject"]),
        if is_empty { String::new() } else { details.to_string() },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_says_when_who_and_what() {
        let entry = json!({
            "number": 3, "atMs": 1_759_622_460_000_i64, "who": "ana", "action": "operation/decide",
            "subject": "t:u:c", "taskId": "t", "details": {"decision": {"type": "retry"}},
        });
        let expected =
            ["2025-10-05 00:01:00", "ana", "operation/decide", "t:u:c", r#"{"decision":{"type":"retry"}}"#];
        assert_eq!(row(&entry), expected);
        assert_eq!(row(&json!({"atMs": 0, "details": {}}))[4], "");
    }
}
