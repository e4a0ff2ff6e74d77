//! `oarlock placements` and `oarlock host gc`.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};
use runtime::{Clock, SystemClock};
use serde_json::{Value, json};
use turn_view::{age, shown_id};

use super::chosen::chosen_placement;
use super::client::{HostChoice, HostConnection};
use super::commands::{print, print_list, text};

#[derive(Debug, Args)]
pub(crate) struct PlacementsOptions {
    #[command(flatten)]
    host: HostChoice,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(subcommand)]
    command: Option<PlacementCommandLine>,
}

/// Which placement: by its id, the beginning of it, or its name.
#[derive(Debug, Args)]
struct PlacementName {
    #[arg(value_name = "PLACEMENT")]
    placement: String,
}

#[derive(Debug, Subcommand)]
enum PlacementCommandLine {
    /// Keep its workspace as it is now.
    Snapshot(PlacementName),
    /// Suspend its tasks and free what it need not hold.
    Suspend(PlacementName),
    /// Give it up: the next use makes it again from the last snapshot or from its manifest.
    Abandon(PlacementName),
    /// Remove it with its workspace.
    Delete(PlacementName),
}

#[derive(Debug, Args)]
pub(crate) struct GcOptions {
    #[command(flatten)]
    host: HostChoice,
    /// Only say what would be removed.
    #[arg(long)]
    dry_run: bool,
    /// Spare what was used within this time; the host's --placement-ttl unless set.
    #[arg(long, value_name = "SECONDS")]
    unused_for: Option<u64>,
}

pub(crate) fn placements(options: &PlacementsOptions) -> Result<ExitCode> {
    let mut host = HostConnection::open(&options.host)?;
    let (method, name) = match &options.command {
        None => return list(&mut host, options.json),
        Some(PlacementCommandLine::Snapshot(name)) => ("placement/snapshot", name),
        Some(PlacementCommandLine::Suspend(name)) => ("placement/suspend", name),
        Some(PlacementCommandLine::Abandon(name)) => ("placement/abandon", name),
        Some(PlacementCommandLine::Delete(name)) => ("placement/delete", name),
    };
    let id = chosen_placement(&mut host, &name.placement)?;
    let answer = host.ask(method, &json!({ "placementId": id }))?;
    if options.json {
        return print(&answer);
    }
    match &answer["placement"] {
        Value::Null => println!("deleted {id}"),
        placement => println!("{id} is {}", text(&placement["status"])),
    }
    Ok(ExitCode::SUCCESS)
}

fn list(host: &mut HostConnection, is_json: bool) -> Result<ExitCode> {
    let listed = host.ask("placement/list", &json!({}))?;
    let now = SystemClock.now_ms();
    let row = |placement: &Value| {
        vec![
            shown_id(&text(&placement["id"])),
            text(&placement["name"]),
            text(&placement["status"]),
            placement["threadIds"].as_array().map_or(0, Vec::len).to_string(),
            age(placement["createdAtMs"].as_i64().unwrap_or(now), now),
            placement["snapshotAtMs"].as_i64().map_or("-".to_owned(), |at| age(at, now)),
            text(&placement["workspace"]),
        ]
    };
    let head = ["ID", "NAME", "STATUS", "TASKS", "AGE", "SNAPSHOT", "WORKSPACE"];
    print_list(is_json, &listed["data"], (&head, "no placements but this machine"), row)
}

pub(crate) fn gc(options: &GcOptions) -> Result<ExitCode> {
    let mut host = HostConnection::open(&options.host)?;
    let mut params = json!({ "dryRun": options.dry_run });
    if let Some(seconds) = options.unused_for {
        params["unusedForSeconds"] = json!(seconds);
    }
    let removed = host.ask("placement/gc", &params)?;
    let removed = removed["data"].as_array().cloned().unwrap_or_default();
    let verb = if options.dry_run { "would remove" } else { "removed" };
    let mut code = ExitCode::SUCCESS;
    for one in &removed {
        let (id, backend) = (text(&one["id"]), text(&one["backend"]));
        match one["problem"].as_str() {
            None => println!("{verb} {id} ({backend})"),
            Some(problem) => {
                println!("still there: {id} ({backend}): {problem}");
                code = ExitCode::FAILURE;
            }
        }
    }
    if removed.is_empty() {
        println!("nothing to remove");
    }
    Ok(code)
}
