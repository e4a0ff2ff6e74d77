//! Where a thread's work happens, as its model is told: the model's entry in the catalogue, the date, the shell, the
//! instructions of the place and the tools. Also who runs those tools.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use config::Home;
use engine::{Step, ToolKind, ToolOutcome, ToolSpec};
use protocol::DynamicToolSpec;
use serde_json::json;
use tools::Registry;

use crate::audience::BoxFuture;
use crate::instructions::read_instructions;
use crate::models::{Catalogue, ModelEntry};
use crate::prompts::BASE_INSTRUCTIONS;
use crate::settings::{StepMaker, ThreadSettings};
use crate::tools::{ToolJob, ToolRunner};
use crate::workbench::{login_shell, offer};

/// Shared by all threads; whatever differs between them is in their settings.
#[derive(Debug)]
pub(crate) struct Surroundings {
    catalogue: Arc<Catalogue>,
    registry: Registry,
    home: PathBuf,
    shell: String,
}

impl Surroundings {
    pub(crate) fn new(catalogue: Arc<Catalogue>, home: &Home) -> Self {
        Self {
            catalogue,
            registry: Registry::builtin(),
            home: home.reading().to_owned(),
            shell: shell_name(&login_shell()),
        }
    }
}

impl Surroundings {
    /// The section of a tool is there exactly when the tool is.
    fn instructions(&self, settings: &ThreadSettings, entry: &ModelEntry, tools: &[ToolSpec]) -> Arc<str> {
        if let Some(text) = &settings.base_instructions {
            return text.clone();
        }
        let base = match &entry.instructions {
            Some(instructions) => Cow::Owned(instructions.render(settings.personality)),
            None => Cow::Borrowed(BASE_INSTRUCTIONS),
        };
        let sections = self.registry.prompts(tools);
        let parts = std::iter::once(base.trim_end()).chain(sections.into_iter().map(str::trim));
        parts.collect::<Vec<_>>().join("\n\n").into()
    }
}

impl StepMaker for Surroundings {
    fn capture(&self, settings: &ThreadSettings) -> Step {
        let entry = self.catalogue.lookup(&settings.model);
        let now = jiff::Zoned::now();
        let mut tools = self.registry.specs(&offer(settings, &entry));
        let (deferred, dynamic): (Vec<_>, Vec<_>) =
            settings.dynamic_tools.iter().partition(|tool| tool.defer_loading);
        tools.extend(dynamic.into_iter().map(dynamic_spec));
        let instructions =
            read_instructions(&self.home, Path::new(&settings.cwd), &settings.instruction_options);
        Step {
            effort: settings.effort.or(entry.default_effort),
            summary: settings.summary.or(Some(entry.default_summary)),
            verbosity: settings.verbosity.or(entry.default_verbosity).filter(|_| entry.supports_verbosity),
            model: entry.info(&settings.model_overrides),
            service_tier: settings.provider_tier(),
            base_instructions: self.instructions(settings, &entry, &tools),
            developer_instructions: settings.developer_instructions.clone(),
            compact_prompt: settings.compact_prompt.clone(),
            project_instructions: instructions,
            collaboration_mode: settings.collaboration_mode.clone(),
            personality: settings.personality,
            approval_policy: settings.approval_policy.clone(),
            sandbox: settings.sandbox.clone(),
            cwd: settings.cwd.clone(),
            shell: self.shell.clone(),
            current_date: now.date().to_string(),
            timezone: now.time_zone().iana_name().unwrap_or("Etc/UTC").to_owned(),
            tools,
            deferred: deferred.into_iter().map(dynamic_spec).collect(),
        }
    }
}

impl ToolRunner for Surroundings {
    fn run(&self, job: ToolJob) -> BoxFuture<'static, ToolOutcome> {
        let ToolJob { call, step, grants, bench, progress } = job;
        let caller = tools::Caller {
            thread_id: progress.thread_id().clone(),
            turn_id: progress.turn_id().clone(),
            sink: Arc::new(progress),
            bench,
            grants,
        };
        self.registry.run(call, step, caller)
    }
}

fn dynamic_spec(tool: &DynamicToolSpec) -> ToolSpec {
    let json = json!({
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "strict": false,
        "parameters": tool.input_schema,
    });
    // Clients are asked one at a time.
    ToolSpec { name: tool.name.clone(), kind: ToolKind::Dynamic, json: Some(Arc::new(json)), parallel: false }
}

/// The file name of the user's shell.
fn shell_name(shell: &Path) -> String {
    shell.file_name().map_or_else(|| "sh".to_owned(), |name| name.to_string_lossy().into_owned())
}
