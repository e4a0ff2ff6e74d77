//! `report_agent_job_result`: the agent of one row reports its result.

use engine::ToolOutcome;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::FEATURE;
use super::board::{JobBoard, JobReport, LONGEST_RESULT};
use crate::tool::text;
use crate::{BuiltinTool, Offer, Standing, ToolCx, ToolError};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// From the task.
    job_id: String,
    /// From the task.
    item_id: String,
    /// The findings, as an object.
    #[schemars(with = "Map<String, Value>")]
    result: Value,
    /// True: begin no more rows of this job.
    stop: Option<bool>,
}

#[derive(Debug, Clone, Copy)]
pub struct ReportAgentJobResult;

impl BuiltinTool for ReportAgentJobResult {
    const NAME: &'static str = "report_agent_job_result";
    const ABOUT: &'static str = "Reports the result of your row of a job that spawn_agents_on_csv started. Call it \
        once, with the job_id and item_id of your task. No other agent needs it.";
    type Args = Args;

    fn standing(offer: &Offer) -> Standing {
        Standing::offered_if(offer.has_feature(FEATURE) && offer.is_child)
    }

    async fn call(&self, args: Args, cx: &ToolCx) -> Result<ToolOutcome, ToolError> {
        let Value::Object(result) = args.result else {
            return Err(ToolError::Failed("result must be a JSON object".to_owned()));
        };
        if json!(result).to_string().len() > LONGEST_RESULT {
            let kib = LONGEST_RESULT >> 10;
            return Err(ToolError::Failed(format!(
                "the result is longer than {kib} KiB: write what is long to a file and report its path"
            )));
        }
        let folder = cx.bench().options().jobs.clone();
        let Some(board) = folder.and_then(|folder| JobBoard::of(&folder, &args.job_id)) else {
            return Ok(text(json!({"accepted": false}).to_string()));
        };
        let at_ms = cx.bench().now_ms();
        let report = JobReport { item_id: args.item_id, result, stop: args.stop.unwrap_or(false), at_ms };
        let reported = tokio::task::spawn_blocking(move || board.report(&report)).await;
        match reported {
            Ok(Ok(accepted)) => Ok(text(json!({"accepted": accepted}).to_string())),
            Ok(Err(error)) => Err(ToolError::Failed(format!("the report could not be written: {error}"))),
            Err(error) => Err(ToolError::Failed(format!("the report broke off: {error}"))),
        }
    }
}
