//! Builds a model request from the history and the step.

use std::sync::Arc;

use model::{
    Metadata, OutputFormat, PreparedRequest, Purpose, Reasoning, RequestBody, TextOptions, ToolChoice,
};
use protocol::{ReasoningSummary, ResponseItem, SandboxPolicy, ThreadId, TurnId};
use serde_json::Value;

use crate::Step;

/// The parts that differ between the requests of a turn.
pub(crate) struct RequestParts<'a> {
    pub(crate) thread_id: &'a ThreadId,
    pub(crate) turn_id: &'a TurnId,
    pub(crate) step: &'a Step,
    pub(crate) purpose: Purpose,
    pub(crate) output_schema: Option<&'a Value>,
    pub(crate) turn_state: Option<&'a str>,
    pub(crate) agent_path: &'a Arc<[String]>,
    pub(crate) segment: u32,
    pub(crate) attempt: u32,
}

pub(crate) fn prepare(ask: &RequestParts<'_>, input: Vec<Arc<ResponseItem>>) -> PreparedRequest {
    let step = ask.step;
    let with_tools = ask.purpose != Purpose::Compaction;
    let reasoning = step.model.supports_reasoning_summaries.then(|| Reasoning {
        effort: step.effort,
        summary: step.summary.filter(|summary| *summary != ReasoningSummary::None),
    });
    let include = if reasoning.is_some() { vec!["reasoning.encrypted_content".to_owned()] } else { vec![] };
    let body = RequestBody {
        model: step.model.slug.clone(),
        instructions: step.base_instructions.to_string(),
        input,
        tools: if with_tools { step.tools_json() } else { vec![] },
        tool_choice: ToolChoice::Auto,
        parallel_tool_calls: with_tools && step.model.supports_parallel_tool_calls,
        reasoning,
        store: false,
        stream: true,
        include,
        service_tier: step.service_tier.clone(),
        // A reviewer's requests start with another history than the thread's.
        prompt_cache_key: match ask.purpose {
            Purpose::Review | Purpose::Memory => ask.turn_id.to_string(),
            Purpose::Turn | Purpose::Compaction => ask.thread_id.to_string(),
        },
        text: text_options(step, ask.output_schema),
    };
    PreparedRequest {
        body: Arc::new(body),
        metadata: Metadata {
            thread_id: ask.thread_id.clone(),
            turn_id: ask.turn_id.clone(),
            purpose: ask.purpose,
            sandbox: sandbox_word(&step.sandbox),
            turn_state: ask.turn_state.map(str::to_owned),
            segment: ask.segment,
            attempt: ask.attempt,
            agent_path: ask.agent_path.clone(),
            tool_set_digest: step.tool_set_digest.clone(),
            workspaces: step.repository.clone(),
        },
    }
}

fn sandbox_word(sandbox: &SandboxPolicy) -> &'static str {
    match sandbox {
        SandboxPolicy::DangerFullAccess => "none",
        SandboxPolicy::ExternalSandbox { .. } => "external",
        SandboxPolicy::ReadOnly { .. } | SandboxPolicy::WorkspaceWrite { .. } => "seccomp",
    }
}

fn text_options(step: &Step, output_schema: Option<&Value>) -> Option<TextOptions> {
    let format = output_schema.map(|schema| OutputFormat::JsonSchema {
        strict: true,
        schema: schema.clone(),
        name: "codex_output_schema".to_owned(),
    });
    (step.verbosity.is_some() || format.is_some())
        .then_some(TextOptions { verbosity: step.verbosity, format })
}
