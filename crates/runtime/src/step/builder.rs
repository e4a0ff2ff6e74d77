//! Builds steps: the model's catalogue entry, the date, the shell, the project's instructions and the tools, frozen for
//! one request. Also runs those tools.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use config::{Home, Price};
use engine::{
    DirectCalls, Gate, HookPoints, ModelInfo, PluginLine, Reach, SkillLine, Step, StepEnvironment,
    TokenPrice, ToolKind, ToolNamespace, ToolOutcome, ToolSpec, effective_cwd,
};
use environments::{Environments, Places, governing};
use protocol::{
    ApprovalsReviewer, AskForApproval, DynamicToolSpec, EffectiveTool, EnvironmentId, InputModality,
    Personality, ToolEffects,
};
use serde_json::json;
use support::Clock;
use tools::{Registry, ToolSource, describe_to_scripts};

use crate::providers::directory::ModelDirectory;
use crate::step::prompts::BASE_INSTRUCTIONS;
use crate::step::reading::{is_restricted, reader_of};
use crate::step::tool_settings::{login_shell, offer, shape_unknown};
use catalogue::{Catalogue, ModelEntry};
use delegation::tool_set_digest;
use delegation::{shape, shape_offer};
use driver::{BoxFuture, StepMaker, ThreadSettings, ToolJob, ToolRunner};
use skills::Skills;
use workspace::{git_info, git_root, in_time, read_global_instructions, read_instructions};

/// Shared by all threads; everything thread-specific is in their settings.
#[derive(Debug)]
pub(crate) struct StepBuilder {
    catalogue: Arc<Catalogue>,
    registry: Registry,
    environments: Arc<Environments>,
    /// Folders with the user's own instructions.
    homes: Vec<PathBuf>,
    shell: String,
    skills: Arc<Skills>,
    clock: Arc<dyn Clock>,
    /// The models that servers listed.
    directory: Option<Arc<ModelDirectory>>,
}

/// The tools of a step, and those found only by search.
struct Offered {
    tools: Vec<ToolSpec>,
    deferred: Vec<ToolSpec>,
    direct: Option<DirectCalls>,
}

impl StepBuilder {
    pub(crate) fn new(
        catalogue: Arc<Catalogue>,
        home: &Home,
        environments: Arc<Environments>,
        skills: Arc<Skills>,
        clock: Arc<dyn Clock>,
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
            clock,
            directory: None,
        }
    }

    pub(crate) fn with_directory(self, directory: Arc<ModelDirectory>) -> Self {
        Self { directory: Some(directory), ..self }
    }

    /// Contains a tool's section exactly if the tool is offered.
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

    /// The model's entry, limited to what the provider supports.
    fn entry(&self, settings: &ThreadSettings) -> ModelEntry {
        let mut entry = self.catalogue.lookup(&settings.model);
        let capabilities = settings.host.capabilities();
        if entry.is_fallback {
            shape_unknown(&settings.tools, capabilities, &mut entry);
            let directory = self.directory.as_ref();
            let told = directory.and_then(|all| all.window_of(&settings.model_provider, &settings.model));
            entry.context_window = told.or(entry.context_window);
        }
        if !settings.tools.takes_images {
            entry.input_modalities.retain(|modality| *modality != InputModality::Image);
        }
        if let Some(capabilities) = capabilities {
            shape(&mut entry, capabilities);
        }
        entry
    }

    fn offered(
        &self,
        settings: &ThreadSettings,
        entry: &ModelEntry,
        environments: &[StepEnvironment],
        sources: &[Arc<dyn ToolSource>],
    ) -> Offered {
        let capabilities = settings.host.capabilities();
        let mut offer = offer(settings, entry, environments, &self.registry);
        if let Some(capabilities) = capabilities {
            shape_offer(&mut offer, capabilities);
        }
        let mut tools = self.registry.specs_with(&offer, sources);
        let mut searched = Vec::new();
        if offer.tool_search && tools.iter().filter(|tool| is_of_server(tool)).count() >= MANY_TOOLS {
            offer.has_deferred = true;
            (searched, tools) = self.registry.specs_with(&offer, sources).into_iter().partition(is_of_server);
        }
        // A host that does not support tool groups gets none.
        let has_form = |tool: &&DynamicToolSpec| {
            tool.namespace.is_none() || capabilities.is_none_or(|capabilities| capabilities.namespaced_tools)
        };
        let (mut deferred, dynamic): (Vec<_>, Vec<_>) =
            settings.dynamic_tools.iter().filter(has_form).partition(|tool| tool.defer_loading);
        let spec = |tool: &DynamicToolSpec| dynamic_spec(tool, settings.host.effects_of(&tool.name));
        if capabilities.is_none_or(|capabilities| capabilities.tools) {
            tools.extend(dynamic.into_iter().map(spec));
        } else {
            deferred.clear();
        }
        let mut deferred: Vec<_> = searched.into_iter().chain(deferred.into_iter().map(spec)).collect();
        settings.host.govern(&mut tools, &self.registry);
        settings.host.govern(&mut deferred, &self.registry);
        let direct = direct_calls(&settings.tools.features, &tools);
        if direct.is_some_and(|direct| direct.hides_others) {
            describe_to_scripts(&mut tools);
        }
        Offered { tools, deferred, direct }
    }

    /// The tools that a thread with these settings is offered, in the form for hosts.
    pub(crate) fn effective_tools(&self, settings: &ThreadSettings) -> Vec<EffectiveTool> {
        let Places { environments, .. } =
            self.environments.places(settings.environments.as_ref(), &settings.cwd);
        let Offered { tools, deferred, .. } =
            self.offered(settings, &self.entry(settings), &environments, &[]);
        settings.host.effective_tools(&tools, &deferred, &self.registry)
    }

    /// The text of the AGENTS.md files. A project's files are used if its folder is on this machine.
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

    /// The git repository of a local folder: its commit and origin. Read for each step.
    fn repository(
        settings: &ThreadSettings,
        environments: &[StepEnvironment],
        cwd: &str,
    ) -> Option<Arc<serde_json::Value>> {
        if let Some(Reach::Command { .. }) = governing(environments).map(|environment| &environment.reach) {
            return None;
        }
        let (folder, reader) = (PathBuf::from(cwd), reader_of(settings, Path::new(cwd)));
        let read = move || Some((git_root(&folder)?, git_info(&folder, &reader)?));
        let (root, info) = in_time(Path::new(cwd), read).ok()??;
        let mut facts = serde_json::Map::new();
        if let Some(url) = info.origin_url {
            facts.insert("associated_remote_urls".to_owned(), json!({"origin": url}));
        }
        if let Some(sha) = info.sha {
            facts.insert("latest_git_commit_hash".to_owned(), json!(sha));
        }
        Some(Arc::new(json!({ root.to_string_lossy(): facts })))
    }

    /// Skills that the model may open, and the plugins some of them belong to. None for tools elsewhere, because the
    /// files are on this machine.
    fn offered_skills(
        &self,
        settings: &ThreadSettings,
        environments: &[StepEnvironment],
        cwd: &str,
    ) -> (Arc<[SkillLine]>, Arc<[PluginLine]>) {
        match governing(environments).map(|environment| &environment.reach) {
            Some(Reach::Command { .. }) => (Arc::new([]), Arc::new([])),
            Some(Reach::Local) | None => {
                let cwd = Path::new(cwd);
                let limits = is_restricted(settings).then(|| reader_of(settings, cwd));
                let skills = self.skills.lines(cwd, &settings.skills, limits.as_ref());
                (skills, self.skills.plugin_lines(cwd))
            }
        }
    }
}

impl StepMaker for StepBuilder {
    fn capture(&self, settings: &ThreadSettings, sources: &[Arc<dyn ToolSource>]) -> Step {
        // Read once, so that the description, the tools and the environment of calls agree.
        let Places { environments, shell } =
            self.environments.places(settings.environments.as_ref(), &settings.cwd);
        let entry = self.entry(settings);
        let now = zoned(self.clock.now_ms());
        let Offered { tools, deferred, direct } = self.offered(settings, &entry, &environments, sources);
        let effective = settings.host.effective_tools(&tools, &deferred, &self.registry);
        let cwd = effective_cwd(&environments, &settings.cwd);
        let instructions = self.written_instructions(settings, &environments, &cwd);
        let (skills, plugins) = self.offered_skills(settings, &environments, &cwd);
        let repository = Self::repository(settings, &environments, &cwd);
        Step {
            effort: settings.effort.or(entry.default_effort),
            summary: settings.summary.or(Some(entry.default_summary)),
            verbosity: settings.verbosity.or(entry.default_verbosity).filter(|_| entry.supports_verbosity),
            model: ModelInfo { price: price_of(settings), ..entry.info(&settings.model_overrides) },
            service_tier: settings.provider_tier(),
            base_instructions: self.instructions(settings, &entry, &tools),
            developer_instructions: settings.developer_instructions.clone(),
            compact_prompt: settings.compact_prompt.clone(),
            memories: settings.memories.as_ref().and_then(|folder| folder.guidance()).map(Arc::from),
            project_instructions: instructions,
            collaboration_mode: settings.collaboration_mode.clone(),
            personality: settings.personality,
            personality_is_baked: match entry.instructions {
                Some(_) => settings.base_instructions.is_none(),
                // The default personality is that of our own instructions.
                None => settings.personality == Some(Personality::Pragmatic),
            },
            skills,
            plugins,
            subagents: Arc::new([]),
            approval_policy: settings.approval_policy.clone(),
            reviews_approvals: settings.approvals_reviewer != ApprovalsReviewer::User
                && settings.approval_policy == AskForApproval::OnRequest,
            reviewer_instructions: settings.reviewer_instructions.clone(),
            sandbox: settings.sandbox.clone(),
            approved_prefixes: Arc::new([]),
            cwd,
            environments,
            shell: shell.unwrap_or_else(|| self.shell.clone()),
            current_date: now.date().to_string(),
            timezone: now.time_zone().iana_name().unwrap_or("Etc/UTC").to_owned(),
            tool_set_digest: tool_set_digest(&effective).into(),
            tools,
            is_preliminary: false,
            deferred,
            direct,
            recorded_with: settings.host.recorded(),
            hooks: HookPoints::default(),
            repository,
        }
    }
}

impl ToolRunner for StepBuilder {
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
                // The environment may be gone, which the next request should then say.
                environments.doubt(&place).await;
            }
            outcome
        })
    }
}

/// The environment of the step's calls, if it is not this machine.
fn behind_command(step: &Step) -> Option<EnvironmentId> {
    let primary = step.primary()?;
    matches!(primary.reach, Reach::Command { .. }).then(|| primary.id.clone())
}

/// If the model can search for tools, this many MCP tools or more are not advertised.
const MANY_TOOLS: usize = 100;

fn is_of_server(tool: &ToolSpec) -> bool {
    tool.name.starts_with("mcp__")
}

/// The tools that the model may call directly, if features require scripts for the others.
fn direct_calls(features: &BTreeSet<String>, tools: &[ToolSpec]) -> Option<DirectCalls> {
    let offers = |name: &str| tools.iter().any(|tool| tool.name == name && tool.json.is_some());
    if features.contains("code_mode_only") && offers("exec") {
        return Some(DirectCalls {
            names: &["exec", "wait"],
            hides_others: true,
            refusal: "direct tool calls are disabled; use exec and tools.NAME(...) instead",
        });
    }
    (features.contains("js_repl_tools_only") && offers("js_repl")).then_some(DirectCalls {
        names: &["js_repl", "js_repl_reset"],
        hides_others: false,
        refusal: "direct tool calls are disabled; use js_repl and codex.tool(...) instead",
    })
}

fn dynamic_spec(tool: &DynamicToolSpec, effects: ToolEffects) -> ToolSpec {
    let json = json!({
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "strict": false,
        "parameters": tool.input_schema,
    });
    let json = Some(Arc::new(json));
    let (name, kind) = (tool.name.clone(), ToolKind::Dynamic);
    let namespace = tool.namespace.clone().map(|name| {
        let description = tool.namespace_description.clone();
        let description = description.unwrap_or_else(|| format!("Tools in the {name} namespace."));
        Arc::new(ToolNamespace { name, description })
    });
    ToolSpec { name, namespace, kind, json, parallel: false, gate: Gate::Open, effects }
}

/// A time in the local time zone.
fn zoned(now_ms: i64) -> jiff::Zoned {
    let time = jiff::Timestamp::from_millisecond(now_ms).unwrap_or_default();
    time.to_zoned(jiff::tz::TimeZone::system())
}

/// The file name of the user's shell.
fn shell_name(shell: &Path) -> String {
    shell.file_name().map_or_else(|| "sh".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// The configured price of the thread's model.
fn price_of(settings: &ThreadSettings) -> Option<TokenPrice> {
    let Price { input, output, cached_input, cache_write } = settings.prices.of(&settings.model)?;
    let (cached_input, cache_write) = (cached_input.unwrap_or(input), cache_write.unwrap_or(input));
    Some(TokenPrice { input, cached_input, cache_write, output })
}
