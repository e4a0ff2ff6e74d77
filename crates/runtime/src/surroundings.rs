//! Where a thread's work happens, as its model is told: the model's entry in the catalogue, the date, the shell, the
//! instructions of the place and the tools. Also who runs those tools.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use config::Home;
use engine::{Gate, Reach, SkillLine, Step, StepEnvironment, ToolKind, ToolOutcome, ToolSpec, effective_cwd};
use environments::{Environments, Places, governing};
use protocol::{DynamicToolSpec, EffectiveTool, EnvironmentId, Personality, ToolEffects};
use serde_json::json;
use tools::Registry;

use crate::audience::BoxFuture;
use crate::delegation::{shape, shape_offer};
use crate::instructions::{read_global_instructions, read_instructions};
use crate::models::{Catalogue, ModelEntry};
use crate::prompts::BASE_INSTRUCTIONS;
use crate::reading::{in_time, is_restricted, reader_of};
use crate::settings::{StepMaker, ThreadSettings};
use crate::skills::Skills;
use crate::tool_set::tool_set_digest;
use crate::tools::{ToolJob, ToolRunner};
use crate::workbench::{login_shell, offer};

/// Shared by all threads; whatever differs between them is in their settings.
#[derive(Debug)]
pub(crate) struct Surroundings {
    catalogue: Arc<Catalogue>,
    registry: Registry,
    environments: Arc<Environments>,
    /// Where the user's own instructions are.
    homes: Vec<PathBuf>,
    shell: String,
    skills: Arc<Skills>,
}

/// The tools of a step, and those its model has to look for.
struct Offered {
    tools: Vec<ToolSpec>,
    deferred: Vec<ToolSpec>,
}

impl Surroundings {
    pub(crate) fn new(
        catalogue: Arc<Catalogue>,
        home: &Home,
        environments: Arc<Environments>,
        skills: Arc<Skills>,
    ) -> Self {
        let mut homes = vec![home.reading().to_owned(), home.state().to_owned()];
        homes.dedup();
        Self {
            catalogue,
            environments,
            registry: Registry::builtin(),
            homes,
            shell: shell_name(&login_shell()),
            skills,
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

    pub(crate) fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The model, as far as the provider lets it be what it is.
    fn entry(&self, settings: &ThreadSettings) -> ModelEntry {
        let mut entry = self.catalogue.lookup(&settings.model);
        if let Some(capabilities) = settings.host.capabilities() {
            shape(&mut entry, capabilities);
        }
        entry
    }

    fn offered(
        &self,
        settings: &ThreadSettings,
        entry: &ModelEntry,
        environments: &[StepEnvironment],
    ) -> Offered {
        let capabilities = settings.host.capabilities();
        let mut offer = offer(settings, entry, environments, &self.registry);
        if let Some(capabilities) = capabilities {
            shape_offer(&mut offer, capabilities);
        }
        let mut tools = self.registry.specs(&offer);
        let (mut deferred, dynamic): (Vec<_>, Vec<_>) =
            settings.dynamic_tools.iter().partition(|tool| tool.defer_loading);
        let spec = |tool: &DynamicToolSpec| dynamic_spec(tool, settings.host.effects_of(&tool.name));
        if capabilities.is_none_or(|capabilities| capabilities.tools) {
            tools.extend(dynamic.into_iter().map(spec));
        } else {
            deferred.clear();
        }
        let mut deferred = deferred.into_iter().map(spec).collect();
        settings.host.govern(&mut tools, &self.registry);
        settings.host.govern(&mut deferred, &self.registry);
        Offered { tools, deferred }
    }

    /// What the model of a thread with these settings is offered, as a host is told.
    pub(crate) fn effective_tools(&self, settings: &ThreadSettings) -> Vec<EffectiveTool> {
        let Places { environments, .. } =
            self.environments.places(settings.environments.as_ref(), &settings.cwd);
        let Offered { tools, deferred } = self.offered(settings, &self.entry(settings), &environments);
        settings.host.effective_tools(&tools, &deferred, &self.registry)
    }

    /// What AGENTS.md files say. Those of a project count where its folder is on this machine.
    fn written_instructions(
        &self,
        settings: &ThreadSettings,
        environments: &[StepEnvironment],
        cwd: &str,
    ) -> Option<Arc<str>> {
        match governing(environments).map(|environment| &environment.reach) {
            Some(Reach::Command { .. }) => read_global_instructions(&self.homes),
            Some(Reach::Local) | None => {
                let (homes, options) = (self.homes.clone(), settings.instruction_options.clone());
                let (folder, reader) = (PathBuf::from(cwd), reader_of(settings, Path::new(cwd)));
                let read = move || read_instructions(&homes, &folder, &options, &reader);
                in_time(Path::new(cwd), read).ok()?
            }
        }
    }

    /// What the model may open when a task calls for it. The files are on this machine, so tools elsewhere have none.
    fn offered_skills(
        &self,
        settings: &ThreadSettings,
        environments: &[StepEnvironment],
        cwd: &str,
    ) -> Arc<[SkillLine]> {
        match governing(environments).map(|environment| &environment.reach) {
            Some(Reach::Command { .. }) => Arc::new([]),
            Some(Reach::Local) | None => {
                let limits = is_restricted(settings).then(|| reader_of(settings, Path::new(cwd)));
                self.skills.lines(Path::new(cwd), &settings.skills, limits.as_ref())
            }
        }
    }
}

impl StepMaker for Surroundings {
    fn capture(&self, settings: &ThreadSettings) -> Step {
        // Looked at once: what the model is told, is offered and gets done cannot differ.
        let Places { environments, shell } =
            self.environments.places(settings.environments.as_ref(), &settings.cwd);
        let entry = self.entry(settings);
        let now = jiff::Zoned::now();
        let Offered { tools, deferred } = self.offered(settings, &entry, &environments);
        let effective = settings.host.effective_tools(&tools, &deferred, &self.registry);
        let cwd = effective_cwd(&environments, &settings.cwd);
        let instructions = self.written_instructions(settings, &environments, &cwd);
        let skills = self.offered_skills(settings, &environments, &cwd);
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
            personality_is_baked: match entry.instructions {
                Some(_) => settings.base_instructions.is_none(),
                // The usual tone, which nobody has to choose, is that of our own instructions.
                None => settings.personality == Some(Personality::Pragmatic),
            },
            skills,
            subagents: Arc::new([]),
            approval_policy: settings.approval_policy.clone(),
            sandbox: settings.sandbox.clone(),
            approved_prefixes: Arc::new([]),
            cwd,
            environments,
            shell: shell.unwrap_or_else(|| self.shell.clone()),
            current_date: now.date().to_string(),
            timezone: now.time_zone().iana_name().unwrap_or("Etc/UTC").to_owned(),
            tool_set_digest: tool_set_digest(&effective).into(),
            tools,
            deferred,
        }
    }
}

impl ToolRunner for Surroundings {
    fn run(&self, job: ToolJob) -> BoxFuture<'static, ToolOutcome> {
        let ToolJob { call, step, grants, bench, progress, scope } = job;
        let caller = tools::Caller {
            thread_id: progress.thread_id().clone(),
            turn_id: progress.turn_id().clone(),
            sink: Arc::new(progress),
            bench,
            grants,
            scope,
        };
        let far_away = behind_command(&step);
        let running = self.registry.run(call, step, caller);
        let Some(place) = far_away else { return running };
        let environments = self.environments.clone();
        Box::pin(async move {
            let outcome = running.await;
            if !outcome.success {
                // Perhaps because the place is gone, and then the next request should say so.
                environments.doubt(&place).await;
            }
            outcome
        })
    }
}

/// Where the step's calls run, if that is not this machine.
fn behind_command(step: &Step) -> Option<EnvironmentId> {
    let primary = step.primary()?;
    matches!(primary.reach, Reach::Command { .. }).then(|| primary.id.clone())
}

fn dynamic_spec(tool: &DynamicToolSpec, effects: ToolEffects) -> ToolSpec {
    let json = json!({
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "strict": false,
        "parameters": tool.input_schema,
    });
    // Clients are asked one at a time.
    let json = Some(Arc::new(json));
    let (name, kind) = (tool.name.clone(), ToolKind::Dynamic);
    ToolSpec { name, kind, json, parallel: false, gate: Gate::Open, effects }
}

/// The file name of the user's shell.
fn shell_name(shell: &Path) -> String {
    shell.file_name().map_or_else(|| "sh".to_owned(), |name| name.to_string_lossy().into_owned())
}
