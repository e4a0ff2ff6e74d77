//! `spawn_agents_on_csv`: starts a child agent for each row of a CSV file, and writes their reports to another file.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use engine::ToolOutcome;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::FEATURE;
use super::board::JobBoard;
use super::csv::CsvTable;
use super::job::{AgentJob, JobItem, JobLimits, JobState};
use crate::builtin::apply_patch;
use crate::digest::digest_of;
use crate::files::access::{FileAccess, StopFlag, Stoppable, with_file_access};
use crate::files::shown::{cut, room};
use crate::{BuiltinTool, Offer, Standing, ToolCx, ToolError, agents};

/// Limit of the file.
const MOST_BYTES: u64 = 16 << 20;
const MOST_ROWS: usize = 10_000;
const CONCURRENCY: u64 = 16;
const MOST_CONCURRENCY: u64 = 64;
const RUNTIME_SECONDS: u64 = 1_800;
/// Limit of row problems in the result.
const SHOWN_PROBLEMS: usize = 5;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// The CSV file. Its first row names the columns.
    csv_path: String,
    /// The task of each agent. `{column}` stands for the row's value of a column.
    instruction: String,
    /// The column whose values name the rows. Default: rows are numbered.
    id_column: Option<String>,
    /// Where to write the results, as CSV. Must not exist. Default: beside the CSV file.
    output_csv_path: Option<String>,
    /// How many agents work at a time. Default: 16; at most 64, and no more than the configuration allows.
    max_concurrency: Option<u64>,
    /// The same as max_concurrency.
    max_workers: Option<u64>,
    /// How many seconds an agent has for its row. Default: 1800.
    max_runtime_seconds: Option<u64>,
    /// JSON Schema of the results.
    #[schemars(with = "Option<Map<String, Value>>")]
    output_schema: Option<Value>,
}

#[derive(Debug, Clone, Copy)]
pub struct SpawnAgentsOnCsv;

impl BuiltinTool for SpawnAgentsOnCsv {
    const NAME: &'static str = "spawn_agents_on_csv";
    const ABOUT: &'static str = "Process a CSV by spawning one worker sub-agent per row. The instruction string is a \
        template where `{column}` placeholders are replaced with row values. Each worker must call \
        `report_agent_job_result` with a JSON object (matching `output_schema` when provided); missing reports are \
        treated as failures. This call blocks until all rows finish and automatically exports results to \
        `output_csv_path` (or a default path).";
    const NEEDS_PLACE: bool = true;
    const ASKS: bool = true;
    type Args = Args;

    fn standing(offer: &Offer) -> Standing {
        match offer.has_feature(FEATURE) {
            true => agents::standing(offer),
            false => Standing::Absent,
        }
    }

    async fn call(&self, args: Args, cx: &ToolCx) -> Result<ToolOutcome, ToolError> {
        let failed = |problem: &str| ToolError::Failed(problem.to_owned());
        if cx.elsewhere().is_some() {
            return Err(failed(
                "jobs read files of the server's own machine only, and this thread works elsewhere",
            ));
        }
        let Some(folder) = cx.bench().options().jobs.clone() else {
            return Err(failed("there is no place to keep the reports of a job"));
        };
        let limits = limits(&args, cx.bench().options().job_seconds)?;
        let path = args.csv_path.clone();
        let table = with_file_access(cx, move |access, stop| read(access, &path, stop)).await?;
        let items = items(&table, args.id_column.as_deref())?;
        let output = output_path(cx.cwd(), &args, cx)?;
        let id = digest_of(&json!([cx.thread_id(), cx.turn_id(), cx.call_id()]));
        let id: String = id.chars().filter(char::is_ascii_hexdigit).rev().take(24).collect();
        let board = JobBoard::of(&folder, &id).ok_or_else(|| failed("the job has no id"))?;
        let job = AgentJob {
            id,
            cx,
            board,
            columns: &table.columns,
            instruction: &args.instruction,
            schema: args.output_schema.as_ref(),
            limits,
        };
        let state = job.run(items).await?;
        export(&job, &state, &output).await
    }
}

fn limits(args: &Args, configured: Option<u64>) -> Result<JobLimits, ToolError> {
    let failed = |problem: &str| Err(ToolError::Failed(problem.to_owned()));
    if args.instruction.trim().is_empty() {
        return failed("instruction must not be empty");
    }
    let wanted = args.max_concurrency.or(args.max_workers).unwrap_or(CONCURRENCY);
    let seconds = args.max_runtime_seconds.or(configured).unwrap_or(RUNTIME_SECONDS);
    if wanted == 0 {
        return failed("max_concurrency must be >= 1");
    }
    if seconds == 0 {
        return failed("max_runtime_seconds must be >= 1");
    }
    let at_once = usize::try_from(wanted.min(MOST_CONCURRENCY)).unwrap_or(1);
    Ok(JobLimits { at_once, runtime: Duration::from_secs(seconds.min(24 * 3_600)) })
}

fn read(access: &FileAccess, path: &str, stop: &StopFlag) -> Result<CsvTable, ToolError> {
    let failed = |problem: String| ToolError::Failed(format!("{path}: {problem}"));
    let opened = access.open(path)?;
    let too_long = || failed(format!("it is longer than {} MiB: split the file", MOST_BYTES >> 20));
    if opened.metadata.len() > MOST_BYTES {
        return Err(too_long());
    }
    let mut bytes = Vec::new();
    // The file may grow while it is read.
    let mut source = Stoppable { inner: opened.file.take(MOST_BYTES + 1), stop };
    source.read_to_end(&mut bytes).map_err(|error| failed(error.to_string()))?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(too_long());
    }
    let text = String::from_utf8(bytes).map_err(|_| failed("it is not UTF-8 text".to_owned()))?;
    let table = CsvTable::read(&text, MOST_ROWS).map_err(failed)?;
    match table.rows.is_empty() {
        true => Err(failed("it has no rows after the first, which names the columns".to_owned())),
        false => Ok(table),
    }
}

/// The rows with their unique ids.
fn items(table: &CsvTable, id_column: Option<&str>) -> Result<Vec<JobItem>, ToolError> {
    let column = match id_column.filter(|name| !name.trim().is_empty()) {
        Some(name) => Some(table.columns.iter().position(|column| column == name).ok_or_else(|| {
            let known = table.columns.join(", ");
            ToolError::Failed(format!("id_column `{name}` is no column: there are {known}"))
        })?),
        None => None,
    };
    let mut seen = std::collections::HashSet::new();
    let item = |(at, fields): (usize, &Vec<String>)| {
        let source_id = column.map(|column| fields[column].trim().to_owned()).filter(|id| !id.is_empty());
        let base = source_id.clone().unwrap_or_else(|| format!("row-{}", at + 1));
        let numbered = (2_u32..).map(|number| format!("{base}-{number}"));
        let id = std::iter::once(base.clone()).chain(numbered).find(|id| !seen.contains(id)).unwrap_or(base);
        seen.insert(id.clone());
        JobItem { id, index: at, source_id, fields: fields.clone() }
    };
    Ok(table.rows.iter().enumerate().map(item).collect())
}

fn output_path(cwd: &Path, args: &Args, cx: &ToolCx) -> Result<PathBuf, ToolError> {
    let given = args.output_csv_path.as_deref().filter(|path| !path.trim().is_empty());
    let path = match given {
        Some(path) => cwd.join(crate::files::access::well_formed(path)?),
        None => {
            let source = cwd.join(&args.csv_path);
            let stem = source.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let call: String = cx.call_id().chars().filter(char::is_ascii_alphanumeric).collect();
            let call = &call[call.len().saturating_sub(8)..];
            source.with_file_name(format!("{stem}.agent-job-{call}.csv"))
        }
    };
    match path.symlink_metadata() {
        Ok(_) => Err(ToolError::Failed(format!(
            "{} exists already: choose another output_csv_path",
            path.display()
        ))),
        Err(_) => Ok(path),
    }
}

/// Writes the results as a patch, which is shown, decided and recorded.
async fn export(job: &AgentJob<'_>, state: &JobState, output: &Path) -> Result<ToolOutcome, ToolError> {
    let lines: String = state.csv(job).lines().map(|line| format!("+{line}\n")).collect();
    let patch = format!("*** Begin Patch\n*** Add File: {}\n{lines}*** End Patch\n", output.display());
    let written = apply_patch::apply(job.cx, patch).await;
    let problem = match &written {
        Ok(outcome) if outcome.success => None,
        Ok(outcome) => Some(format!("{:?}", outcome.output)),
        Err(error) => Some(error.to_string()),
    };
    let board = job.board.clone();
    let _ = tokio::task::spawn_blocking(move || board.close()).await;
    let problems: Vec<Value> = state.problems().take(SHOWN_PROBLEMS).collect();
    let mut result = json!({
        "job_id": job.id,
        "status": if problem.is_some() { "failed" } else if state.is_stopped { "cancelled" } else { "completed" },
        "output_csv_path": output.to_string_lossy(),
        "total_items": state.total(),
        "completed_items": state.completed(),
        "failed_items": state.total() - state.completed(),
    });
    if let Some(problem) = &problem {
        result["job_error"] = json!(format!("the results could not be written: {problem}"));
        // The rows are returned in the result, so that the work is not lost.
        result["results_csv"] = json!(cut(&state.csv(job), room(job.cx.step()) / 2));
    }
    if !problems.is_empty() {
        result["failed_item_errors"] = json!(problems);
    }
    let text = ToolOutcome::text(result.to_string());
    Ok(match written {
        Ok(outcome) => ToolOutcome { output: text.output, success: problem.is_none(), ..outcome },
        Err(_) => ToolOutcome { success: false, ..text },
    })
}
