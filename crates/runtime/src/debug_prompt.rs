//! What the next request of a thread would tell its model. Made the way real requests are, and nothing comes of it: no
//! request, no turn, no record, no lock.

use std::slice;
use std::sync::Arc;

use config::Config;
use engine::{FragmentText, Step, describe};
use environments::stored_choice;
use journal::{History, JournalError};
use protocol::{ResponseItem, ThreadId, ThreadResumeParams, ThreadStartParams};
use serde_json::Value;
use tools::{Bench, BenchOptions, Registry};

use crate::bridge::Bridge;
use crate::delegation::Terms;
use crate::error::RuntimeError;
use crate::host_choices::HostChoices;
use crate::ids::check_thread_id;
use crate::load::{Stored, Wishes};
use crate::open::rediscover;
use crate::open_checks::{check_dynamic_tools, unsupported_start};
use crate::recover::recover;
use crate::runtime::Runtime;
use crate::settings::{StepMaker, ThreadSettings};
use crate::tool_set::asked_tool_set;
use crate::workbench::{bench_options, complete};

/// Whose next request is described.
#[derive(Debug, Clone)]
pub enum PromptOf {
    /// A thread that would be started with these choices.
    New(Box<ThreadStartParams>),
    /// A stored thread that would be resumed with these choices. Its record alone counts, also while it is in memory.
    Stored(Box<ThreadResumeParams>),
}

/// A request but for what the user is going to say.
#[derive(Debug, Clone, PartialEq)]
pub struct PromptDescription {
    /// Unset for a thread that does not exist.
    pub thread_id: Option<ThreadId>,
    pub model: String,
    pub model_provider: String,
    pub cwd: String,
    /// The tokens the model has room for, as clients are told.
    pub context_window: Option<i64>,
    /// The base instructions, cut at their sections. A blank line stands between two.
    pub instructions: Vec<PromptSection>,
    /// The tools as the request offers them.
    pub tools: Vec<Arc<Value>>,
    /// What was said before, as it is sent again.
    pub history: Vec<Arc<ResponseItem>>,
    /// What is told of the surroundings before the user's words.
    pub next: Vec<FragmentText>,
}

/// A part of the base instructions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptSection {
    /// A tool's name; `core` for what belongs to none, `configured` for instructions that somebody set.
    pub name: String,
    pub text: String,
}

/// What a request is made from.
struct Material {
    thread_id: Option<ThreadId>,
    settings: ThreadSettings,
    config: Config,
    history: History,
}

impl Runtime {
    /// Reads configuration, instructions, skills and, for a stored thread, its record. Writes nothing.
    pub fn describe_prompt(&self, of: &PromptOf) -> Result<PromptDescription, RuntimeError> {
        let material = match of {
            PromptOf::New(params) => self.material_of_start(params)?,
            PromptOf::Stored(params) => self.material_of_resume(params)?,
        };
        let Material { thread_id, settings, config, history } = material;
        let ask_always = settings.host.manual_tool_execution;
        let bench = Bench::new(BenchOptions { ask_always, ..bench_options(&config, "") });
        rediscover(&bench, &settings, &history.model);
        let mut step = self.inner.surroundings.capture(&settings);
        complete(&mut step, &bench);
        Ok(PromptDescription {
            thread_id,
            model: step.model.slug.clone(),
            model_provider: settings.model_provider,
            cwd: step.cwd.clone(),
            context_window: step.model.usable_window(),
            instructions: sections(&step, settings.base_instructions.is_some()),
            tools: step.tools.iter().filter_map(|tool| tool.json.clone()).collect(),
            next: describe(history.told_context.as_ref(), &step),
            history: engine::History::new(history.model).prompt(),
        })
    }

    fn material_of_start(&self, params: &ThreadStartParams) -> Result<Material, RuntimeError> {
        unsupported_start(params)?;
        // A host agrees on one first, and here there is none.
        asked_tool_set(params.tool_set.as_ref(), &Terms::default())?;
        let dynamic_tools = params.dynamic_tools.clone().unwrap_or_default();
        check_dynamic_tools(&dynamic_tools)?;
        self.inner.environments.check(params.environments.as_deref().unwrap_or_default())?;
        let choices = HostChoices::of_start(params)?;
        let bridge = params.sdk_delegation.as_ref().map(Bridge::of).transpose()?;
        let config = self.load(&Wishes::of_start(params, bridge.as_ref()))?;
        let mut settings = self.settings(&config);
        settings.dynamic_tools = dynamic_tools.into();
        settings.host = Arc::new(choices);
        settings.environments = params.environments.clone().map(Into::into);
        Ok(Material { thread_id: None, settings, config, history: History::default() })
    }

    fn material_of_resume(&self, params: &ThreadResumeParams) -> Result<Material, RuntimeError> {
        asked_tool_set(params.tool_set.as_ref(), &Terms::default())?;
        let id = check_thread_id(&params.thread_id)?;
        let mut history = self.look_up(&id)?;
        recover(&mut history, 0);
        let (stored, choices) = (Stored::of(&history), HostChoices::of(&history));
        let config = self.load(&Wishes::of_resume(params, &stored))?;
        let mut settings = self.settings(&config);
        let theirs = choices.dynamic_tools();
        settings.host = Arc::new(choices);
        // As it was chosen, without anybody being told to look whether it is still there.
        settings.environments = stored_choice(history.turn_context.as_ref()).map(Into::into);
        let dynamic_tools = history.meta.as_ref().and_then(|meta| meta.dynamic_tools.clone());
        settings.dynamic_tools = theirs.unwrap_or_else(|| dynamic_tools.unwrap_or_default().into());
        Ok(Material { thread_id: Some(id), settings, config, history })
    }

    /// A record as it is on the disk, without the store, which would take care of its index and its folders.
    fn look_up(&self, id: &ThreadId) -> Result<History, RuntimeError> {
        match journal::look_up(self.inner.loader.home().state(), id) {
            Ok(read) if read.row.is_archived => Err(RuntimeError::NoRecord(id.clone())),
            Ok(read) => Ok(read.history),
            Err(JournalError::NotFound(_)) => Err(RuntimeError::NoRecord(id.clone())),
            Err(error) => Err(error.into()),
        }
    }
}

/// The text is cut where the sections of the offered tools are found at its end, so the parts are always the whole.
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
