//! From the configuration to a thread's tool settings.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use config::{Features, Home, ResolvedConfig, WireApi};
use driver::{StepWork, ThreadSettings, ToolSettings, images_folder};
use engine::{EnvironmentState, Reach, StepEnvironment};
use model_http::Capabilities;
use plugins::{MarketplaceSearch, list_marketplaces};
use protocol::{ModeKind, ModelCapabilities, ModelWire, SandboxPolicy, WebSearchMode};
use support::Clock;
use tools::{BenchOptions, Offer, PatchForm, Registry, ShellForm, Suggestion};

use crate::providers::identity::wire_of;
use crate::step::agent_roles::role_lines;
use catalogue::{ApplyPatchType, ModelEntry, ShellType, WebSearchContent};

/// The assumed window of an unknown model on a wire other than Responses.
pub(crate) const UNKNOWN_WINDOW: i64 = 128_000;

pub(crate) fn tool_settings(config: &ResolvedConfig) -> ToolSettings {
    let able = Capabilities::of(&config.provider.id, wire_of(config.provider.wire));
    let confined = SandboxPolicy::ReadOnly { access: Default::default(), network_access: false };
    ToolSettings {
        features: enabled(&config.features),
        login_shell: config.permissions.allow_login_shell,
        view_image: config.tools.view_image,
        web_search: (
            config.web_search_under(&confined),
            config.web_search_under(&SandboxPolicy::DangerFullAccess),
        ),
        web_search_options: config.tools.web_search_options.clone(),
        agents: config.agents.clone(),
        has_hosted_tools: config.provider.wire == WireApi::Responses,
        takes_images: able.images,
        parallel_calls: able.parallel_calls,
        node: node(config),
        suggestions: suggestions(config),
    }
}

/// The assumed abilities of an unknown model on a wire with many vendors: those of current models, limited by the
/// host's provider if there is one.
pub(crate) fn shape_unknown(tools: &ToolSettings, host: Option<&ModelCapabilities>, entry: &mut ModelEntry) {
    let is_of_responses = host.map_or(tools.has_hosted_tools, |able| able.wire == ModelWire::Responses);
    if is_of_responses {
        return;
    }
    entry.apply_patch.get_or_insert(ApplyPatchType::Function);
    entry.supports_parallel_tool_calls = tools.parallel_calls;
    // Requests reasoning in the wire's form; a model that refuses it is asked again without.
    entry.supports_reasoning_summaries = true;
    entry.context_window = Some(UNKNOWN_WINDOW);
}

fn enabled(features: &Features) -> BTreeSet<String> {
    let on = features.iter().filter(|(_, on)| *on);
    on.map(|(key, _)| key.to_owned()).collect()
}

/// The tools offered with these settings in these environments.
pub(crate) fn offer(
    settings: &ThreadSettings,
    entry: &ModelEntry,
    environments: &[StepEnvironment],
    registry: &Registry,
) -> Offer {
    let tools = &settings.tools;
    let web_search = match settings.sandbox {
        _ if !tools.has_hosted_tools || settings.work == StepWork::Review => WebSearchMode::Disabled,
        SandboxPolicy::DangerFullAccess => tools.web_search.1,
        _ => tools.web_search.0,
    };
    let allow = settings.host.allowed();
    let added = settings.host.added();
    let asks_for = |name: &str| allow.iter().flatten().chain(added).any(|other| other == name);
    let experimental = entry.experimental_tools.iter().map(ToString::to_string);
    Offer {
        deny: settings.host.denied(registry),
        features: tools.features.clone(),
        shell: match shell_form(tools, entry.shell_type, asks_for) {
            ShellForm::Local if !tools.has_hosted_tools => ShellForm::Words,
            form => form,
        },
        patch: match entry.apply_patch {
            Some(ApplyPatchType::Freeform) if tools.has_hosted_tools => Some(PatchForm::Freeform),
            Some(_) => Some(PatchForm::Function),
            None if tools.has("apply_patch_freeform") || asks_for("apply_patch") => {
                Some(if tools.has_hosted_tools { PatchForm::Freeform } else { PatchForm::Function })
            }
            None => None,
        },
        experimental: experimental.chain(added.iter().cloned()).collect(),
        images: entry.takes_images() && tools.view_image != Some(false),
        web_search,
        web_search_options: tools.web_search_options.clone(),
        web_search_images: entry.web_search == WebSearchContent::TextAndImage,
        image_generation: tools.has("image_generation") && tools.has_hosted_tools && entry.takes_images(),
        mode: settings.collaboration_mode.as_ref().map_or(ModeKind::Default, |mode| mode.mode),
        is_child: settings.agent_depth > 0,
        may_spawn: usize::try_from(settings.agent_depth).is_ok_and(|depth| depth < tools.agents.max_depth),
        roles: role_lines(&tools.agents.roles),
        login_shell: tools.login_shell,
        has_deferred: settings.dynamic_tools.iter().any(|tool| tool.defer_loading),
        tool_search: entry.searches_tools && tools.has("tool_search") && tools.has_hosted_tools,
        suggestions: tools.suggestions.clone(),
        node: tools.node.is_some() && is_here(environments),
        freeform: tools.has_hosted_tools,
        has_environment: environments.iter().any(|one| one.state == EnvironmentState::Attached),
        has_goal: settings.work == StepWork::Goal,
        allow: match settings.work {
            StepWork::Review => Some(review_tools(allow.as_deref(), entry)),
            StepWork::Turn | StepWork::Goal => allow,
        },
    }
}

/// Whether tools run on this machine.
fn is_here(environments: &[StepEnvironment]) -> bool {
    let primary = environments.iter().find(|one| one.state == EnvironmentState::Attached);
    primary.is_some_and(|primary| primary.reach == Reach::Local)
}

/// The Node.js that runs scripts: the configured one, else the first on the commands' path.
fn node(config: &ResolvedConfig) -> Option<PathBuf> {
    let is_wanted = ["js_repl", "code_mode"].iter().any(|key| config.features.enabled(key));
    is_wanted.then(|| {
        let chosen = config.merged.get("js_repl_node_path").and_then(|path| path.as_str());
        let path = config.permissions.shell_environment.apply(variables()).remove("PATH").unwrap_or_default();
        let folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
        let files = folders.map(|folder| folder.join("node"));
        let mut all = chosen.map(PathBuf::from).into_iter().chain(files.take_while(|_| chosen.is_none()));
        all.find(|file| file.is_absolute() && file.is_file())
    })?
}

/// Plugins in `tool_suggest.discoverables` that a marketplace has and that are not installed.
fn suggestions(config: &ResolvedConfig) -> Vec<Suggestion> {
    let named = config.merged.get("tool_suggest").and_then(|table| table.get("discoverables"));
    let named = named.and_then(|list| list.as_array()).into_iter().flatten();
    let named: BTreeSet<_> = named
        .filter(|one| one.get("type").and_then(|kind| kind.as_str()) == Some("plugin"))
        .filter_map(|one| one.get("id")?.as_str())
        .collect();
    if named.is_empty() || !config.features.enabled("tool_suggest") {
        return Vec::new();
    }
    let search = MarketplaceSearch {
        user: std::env::var_os("HOME").map(PathBuf::from),
        cwds: config.cwd.iter().cloned().collect(),
    };
    let (marketplaces, _) = list_marketplaces(config, &search);
    let plugins = marketplaces.into_iter().flat_map(|marketplace| marketplace.plugins);
    let missing = plugins.filter(|plugin| !plugin.installed && named.contains(plugin.id.as_str()));
    missing
        .map(|plugin| Suggestion {
            installed_at: plugins::install_folders(&config.home, &plugin.id),
            description: plugin
                .interface
                .as_ref()
                .and_then(|interface| interface.short_description.clone())
                .unwrap_or_default(),
            name: plugin.interface.and_then(|interface| interface.display_name).unwrap_or(plugin.name),
            id: plugin.id,
        })
        .collect()
}

/// A reviewer's tools: reading and running checks.
const REVIEW_TOOLS: &[&str] =
    &["exec_command", "write_stdin", "shell", "shell_command", "update_plan", "view_image"];

/// More of them, for models trained with them.
const TRAINED_REVIEW_TOOLS: &[&str] = &["list_dir", "read_file", "grep_files"];

/// Limited to the tools that the host allows.
fn review_tools(allowed: Option<&[String]>, entry: &ModelEntry) -> Vec<String> {
    let is_trained = |name: &&&str| entry.experimental_tools.iter().any(|other| other == **name);
    let trained = TRAINED_REVIEW_TOOLS.iter().filter(is_trained);
    let is_allowed = |name: &&&str| allowed.is_none_or(|names| names.iter().any(|other| other == **name));
    REVIEW_TOOLS.iter().chain(trained).filter(is_allowed).map(ToString::to_string).collect()
}

fn shell_form(tools: &ToolSettings, trained_with: ShellType, asks_for: impl Fn(&str) -> bool) -> ShellForm {
    match trained_with {
        _ if !tools.has("shell_tool") => ShellForm::Disabled,
        // A host's list of tools is used as it is.
        _ if asks_for("exec_command") => ShellForm::Terminals,
        _ if asks_for("shell_command") => ShellForm::Script,
        ShellType::Local if asks_for("shell") => ShellForm::Local,
        _ if asks_for("shell") => ShellForm::Words,
        _ if tools.has("shell_zsh_fork") => ShellForm::Script,
        // The better form, whatever the model was trained with.
        _ if tools.has("unified_exec") => ShellForm::Terminals,
        ShellType::Default => ShellForm::Words,
        ShellType::Local => ShellForm::Local,
        ShellType::ShellCommand => ShellForm::Script,
        ShellType::UnifiedExec => ShellForm::Terminals,
        ShellType::Disabled => ShellForm::Disabled,
    }
}

/// The options of a thread's tools, from its configuration.
pub(crate) fn bench_options(config: &ResolvedConfig, thread_id: &str, clock: Arc<dyn Clock>) -> BenchOptions {
    let mut env = config.permissions.shell_environment.apply(variables());
    env.insert("CODEX_THREAD_ID".to_owned(), thread_id.to_owned());
    let home = &config.home;
    let mut off_limits = config.off_limits();
    off_limits.shown.push(outputs_folder(home, thread_id));
    off_limits.shown.push(images_folder(home.state(), thread_id));
    BenchOptions {
        shell: login_shell(),
        login_shell: config.permissions.allow_login_shell,
        env,
        rule_folders: config.rule_folders(),
        project_rules: config.project_rules.clone(),
        required_rules: config.requirements.rules.clone(),
        rules_file: home.state().join("rules").join("default.rules"),
        outputs: Some(outputs_folder(home, thread_id)),
        off_limits,
        features: enabled(&config.features),
        landlock_only: config.features.enabled("use_legacy_landlock"),
        max_background_wait_ms: config.tools.background_terminal_max_timeout_ms,
        early: BenchOptions::EARLY,
        ask_always: false,
        ask_for: BTreeSet::new(),
        no_patches: false,
        node: node(config),
        suggestions: suggestions(config).into(),
        jobs: Some(home.state().join("jobs")),
        job_seconds: config.agents.job_max_runtime_seconds,
        clock,
    }
}

/// The folder for outputs of a thread's commands that are too long to show. Not in the home where commands run as a user
/// of their own: the home is closed to them.
pub(crate) fn outputs_folder(home: &Home, thread_id: &str) -> PathBuf {
    let all = match sandbox::has_command_user() {
        true => std::env::temp_dir().join("oarlock-outputs"),
        false => home.state().join("outputs"),
    };
    all.join(thread_id)
}

/// This process's environment variables that are valid text.
pub(crate) fn variables() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

/// The shell of the user's account, else one that every system has.
pub(crate) fn login_shell() -> PathBuf {
    let known = |shell: &Path| {
        let name = shell.file_name().and_then(|name| name.to_str());
        matches!(name, Some("bash" | "zsh" | "sh")) && shell.is_file()
    };
    let of_account = account_shell().filter(|shell| known(shell));
    let of_env = || std::env::var_os("SHELL").map(PathBuf::from).filter(|shell| known(shell));
    let usual = || [Path::new("/bin/bash"), Path::new("/bin/sh")].into_iter().find(|shell| shell.is_file());
    of_account
        .or_else(of_env)
        .or_else(|| usual().map(Path::to_owned))
        .unwrap_or_else(|| PathBuf::from("/bin/sh"))
}

fn account_shell() -> Option<PathBuf> {
    let uid = rustix::process::getuid().as_raw().to_string();
    let accounts = std::fs::read_to_string("/etc/passwd").ok()?;
    let line = accounts.lines().find(|line| line.split(':').nth(2) == Some(uid.as_str()))?;
    line.split(':').nth(6).map(PathBuf::from)
}
