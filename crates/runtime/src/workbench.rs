//! From configuration to what a thread's tools work with.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use config::{AgentOptions, Config, Features, Home};
use engine::{EnvironmentState, Step, StepEnvironment};
use protocol::{AskForApproval, ModeKind, SandboxPolicy, WebSearchMode, WebSearchToolConfig};
use tools::{Bench, BenchOptions, Offer, PatchForm, Registry, ShellForm};

use crate::agents::role_lines;
use crate::models::{ApplyPatchType, ModelEntry, ShellType, WebSearchContent};
use crate::settings::ThreadSettings;

/// What configuration says about a thread's tools.
#[derive(Debug, Clone)]
pub struct ToolSettings {
    /// Keys of the features that are on.
    pub features: BTreeSet<String>,
    pub login_shell: bool,
    pub view_image: Option<bool>,
    /// Under the sandbox at hand, and without any.
    pub web_search: (WebSearchMode, WebSearchMode),
    pub web_search_options: Option<WebSearchToolConfig>,
    /// Which child agents there may be.
    pub agents: AgentOptions,
}

impl Default for ToolSettings {
    /// No feature is on, so only what every model has is offered.
    fn default() -> Self {
        Self {
            features: BTreeSet::new(),
            login_shell: true,
            view_image: None,
            web_search: (WebSearchMode::Disabled, WebSearchMode::Disabled),
            web_search_options: None,
            agents: AgentOptions::default(),
        }
    }
}

impl ToolSettings {
    pub(crate) fn of(config: &Config) -> Self {
        let confined = SandboxPolicy::ReadOnly { access: Default::default(), network_access: false };
        Self {
            features: enabled(&config.features),
            login_shell: config.permissions.allow_login_shell,
            view_image: config.tools.view_image,
            web_search: (
                config.web_search_under(&confined),
                config.web_search_under(&SandboxPolicy::DangerFullAccess),
            ),
            web_search_options: config.tools.web_search_options.clone(),
            agents: config.agents.clone(),
        }
    }

    fn has(&self, key: &str) -> bool {
        self.features.contains(key)
    }
}

fn enabled(features: &Features) -> BTreeSet<String> {
    let on = features.iter().filter(|(_, on)| *on);
    on.map(|(key, _)| key.to_owned()).collect()
}

/// Which tools a model is offered with these settings and in these places.
pub(crate) fn offer(
    settings: &ThreadSettings,
    entry: &ModelEntry,
    environments: &[StepEnvironment],
    registry: &Registry,
) -> Offer {
    let tools = &settings.tools;
    let web_search = match settings.sandbox {
        SandboxPolicy::DangerFullAccess => tools.web_search.1,
        _ => tools.web_search.0,
    };
    let allow = settings.host.allowed();
    let asks_for = |name: &str| allow.as_ref().is_some_and(|names| names.iter().any(|other| other == name));
    Offer {
        deny: settings.host.denied(registry),
        features: tools.features.clone(),
        shell: shell_form(tools, entry.shell_type, asks_for),
        patch: match entry.apply_patch {
            Some(ApplyPatchType::Freeform) => Some(PatchForm::Freeform),
            Some(ApplyPatchType::Function) => Some(PatchForm::Function),
            None => {
                (tools.has("apply_patch_freeform") || asks_for("apply_patch")).then_some(PatchForm::Freeform)
            }
        },
        experimental: entry.experimental_tools.iter().map(ToString::to_string).collect(),
        images: entry.takes_images() && tools.view_image != Some(false),
        web_search,
        web_search_options: tools.web_search_options.clone(),
        web_search_images: entry.web_search == WebSearchContent::TextAndImage,
        mode: settings.collaboration_mode.as_ref().map_or(ModeKind::Default, |mode| mode.mode),
        is_child: settings.agent_depth > 0,
        may_spawn: usize::try_from(settings.agent_depth).is_ok_and(|depth| depth < tools.agents.max_depth),
        roles: role_lines(&tools.agents.roles),
        login_shell: tools.login_shell,
        has_deferred: settings.dynamic_tools.iter().any(|tool| tool.defer_loading),
        has_environment: environments.iter().any(|one| one.state == EnvironmentState::Attached),
        allow,
    }
}

fn shell_form(tools: &ToolSettings, trained_with: ShellType, asks_for: impl Fn(&str) -> bool) -> ShellForm {
    match trained_with {
        _ if !tools.has("shell_tool") => ShellForm::Disabled,
        // A host that lists tools gets those it lists.
        _ if asks_for("exec_command") => ShellForm::Terminals,
        _ if asks_for("shell_command") => ShellForm::Script,
        ShellType::Local if asks_for("shell") => ShellForm::Local,
        _ if asks_for("shell") => ShellForm::Words,
        _ if tools.has("shell_zsh_fork") => ShellForm::Script,
        // The better one, whatever the model was trained with.
        _ if tools.has("unified_exec") => ShellForm::Terminals,
        ShellType::Default => ShellForm::Words,
        ShellType::Local => ShellForm::Local,
        ShellType::ShellCommand => ShellForm::Script,
        ShellType::UnifiedExec => ShellForm::Terminals,
        ShellType::Disabled => ShellForm::Disabled,
    }
}

/// What the tools of a thread are set up with.
pub(crate) fn bench_options(config: &Config, thread_id: &str) -> BenchOptions {
    let mut env = config.permissions.shell_environment.apply(variables());
    env.insert("CODEX_THREAD_ID".to_owned(), thread_id.to_owned());
    let home = &config.home;
    let mut off_limits = config.off_limits();
    off_limits.shown.push(outputs_folder(home, thread_id));
    BenchOptions {
        shell: login_shell(),
        login_shell: config.permissions.allow_login_shell,
        env,
        rule_folders: config.rule_folders(),
        project_rules: config.project_rules.clone(),
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
    }
}

/// What a thread's tools have come to know since it was opened, put into a step of it.
pub(crate) fn complete(step: &mut Step, bench: &Bench) {
    step.reveal(&bench.discovered());
    if let Some(agents) = bench.agents() {
        step.subagents = agents.roster();
    }
    // No other policy has its model told of them.
    if step.approval_policy == AskForApproval::OnRequest {
        step.approved_prefixes = bench.approved_prefixes();
    }
}

/// Where outputs of a thread's commands are kept that are too long to be shown.
pub(crate) fn outputs_folder(home: &Home, thread_id: &str) -> PathBuf {
    home.state().join("outputs").join(thread_id)
}

/// The variables of this process, as far as they are text.
pub(crate) fn variables() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

/// What the user's account says, else what every system has.
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
