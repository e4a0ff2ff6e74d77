//! Describes the next request of a thread. Built like a real request, without side effects: no request, no turn, no
//! record, no lock.

use std::slice;
use std::sync::Arc;

use delegation::{Terms, asked_tool_set};
use engine::{FragmentText, Step, describe};
use journal::JournalError;
use protocol::{ResponseItem, ThreadId, ThreadResumeParams, ThreadStartParams};
use serde_json::Value;
use tools::{Bench, BenchOptions, Registry};

use crate::error::RuntimeError;
use crate::open::OpenRequest;
use crate::open::pipeline::rediscover;
use crate::providers::identity::ClientIdentity;
use crate::runtime::Runtime;
use crate::step::tool_settings::bench_options;
use driver::{NextRequest, StepMaker, ThreadSettings, check_thread_id, complete_step, recover};

/// The thread whose next request is described.
#[derive(Debug, Clone)]
pub enum PromptOf {
    /// A thread that would be started with these options.
    New(Box<ThreadStartParams>),
    /// A stored thread that would be resumed with these options. Read from its record, even while it is in memory.
    Stored(Box<ThreadResumeParams>),
}

/// A request without the user's next message.
#[derive(Debug, Clone, PartialEq)]
pub struct PromptDescription {
    /// Unset for a thread that does not exist.
    pub thread_id: Option<ThreadId>,
    pub model: String,
    pub model_provider: String,
    pub cwd: String,
    /// The window in tokens, as reported to clients.
    pub context_window: Option<i64>,
    /// The base instructions, split into sections. A blank line separates two.
    pub instructions: Vec<PromptSection>,
    /// The tools in the form of the request.
    pub tools: Vec<Arc<Value>>,
    /// The history in the form of the request.
    pub history: Vec<Arc<ResponseItem>>,
    /// The context before the user's message.
    pub next: Vec<FragmentText>,
}

/// A part of the base instructions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptSection {
    /// A tool's name; `core` for text of no tool, `configured` for custom instructions.
    pub name: String,
    pub text: String,
}

impl Runtime {
    /// Reads configuration, instructions, skills and, for a stored thread, its record. Writes nothing.
    pub fn describe_prompt(&self, of: &PromptOf) -> Result<PromptDescription, RuntimeError> {
        let (thread_id, request) = match of {
            PromptOf::New(params) => (None, self.request_to_start(params)?),
            PromptOf::Stored(params) => {
                let id = check_thread_id(&params.thread_id)?;
                (Some(id.clone()), self.request_to_resume(id, params)?)
            }
        };
        let (config, settings) = request.resolve(&self.state)?;
        let history = request.history;
        let ask_always = settings.host.manual_tool_execution;
        let bench =
            Bench::new(BenchOptions { ask_always, ..bench_options(&config, "", self.state.clock.clone()) });
        rediscover(&bench, &settings, &history.model);
        let mut step = self.state.steps.capture(&settings, bench.sources());
        complete_step(&mut step, &bench);
        let told_context = history.told_context;
        Ok(PromptDescription::of(thread_id, &step, &settings, (history.model, told_context.as_ref())))
    }

    fn request_to_start(&self, params: &ThreadStartParams) -> Result<OpenRequest, RuntimeError> {
        self.state.environments.check(params.environments.as_deref().unwrap_or_default())?;
        // Without a host, so without any host capabilities.
        OpenRequest::of_start(params, ClientIdentity::default(), Terms::default())
    }

    fn request_to_resume(
        &self,
        id: ThreadId,
        params: &ThreadResumeParams,
    ) -> Result<OpenRequest, RuntimeError> {
        asked_tool_set(params.tool_set.as_ref(), &Terms::default())?;
        // Without the store, which would maintain its index and its folders.
        let mut history = match journal::look_up(self.state.loader.home().state(), &id) {
            Ok(read) if read.row.is_archived => return Err(RuntimeError::NoRecord(id)),
            Ok(read) => read.history,
            Err(JournalError::NotFound(_)) => return Err(RuntimeError::NoRecord(id)),
            Err(error) => return Err(error.into()),
        };
        recover(&mut history, 0);
        Ok(OpenRequest::of_resume(params, id, ClientIdentity::default(), Terms::default(), history))
    }
}

impl PromptDescription {
    /// Of a thread that is loaded. Waits for the disk.
    pub(crate) fn of_loaded(thread_id: ThreadId, next: NextRequest) -> Self {
        let step = next.capture();
        Self::of(Some(thread_id), &step, &next.settings, (next.history, next.told_context.as_ref()))
    }

    /// `remembered` is the model's history, and the context that it was told last.
    fn of(
        thread_id: Option<ThreadId>,
        step: &Step,
        settings: &ThreadSettings,
        remembered: (Vec<ResponseItem>, Option<&Value>),
    ) -> Self {
        let (history, told_context) = remembered;
        Self {
            thread_id,
            model: step.model.slug.clone(),
            model_provider: settings.model_provider.clone(),
            cwd: step.cwd.clone(),
            context_window: step.model.usable_window(),
            instructions: sections(step, settings.base_instructions.is_some()),
            tools: step.tools.iter().filter_map(|tool| tool.json.clone()).collect(),
            next: describe(told_context, step),
            history: engine::History::new(history).prompt(),
        }
    }
}

/// Splits the text at the known sections at its end, so that the parts always add up to the whole text.
fn sections(step: &Step, is_configured: bool) -> Vec<PromptSection> {
    let part = |name: &str, text: &str| PromptSection { name: name.to_owned(), text: text.to_owned() };
    if is_configured {
        return vec![part("configured", &step.base_instructions)];
    }
    let registry = Registry::builtin();
    let mut core: &str = &step.base_instructions;
    let mut parts = Vec::new();
    for tool in step.tools.iter().rev() {
        let section = registry.prompts(slice::from_ref(tool)).pop().map(str::trim);
        let Some(section) = section else { continue };
        if let Some(before) = core.strip_suffix(section).and_then(|before| before.strip_suffix("\n\n")) {
            parts.push(part(&tool.name, section));
            core = before;
        }
    }
    parts.push(part("core", core));
    parts.reverse();
    parts
}
