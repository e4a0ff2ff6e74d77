//! From a request and the configuration files to a thread's configuration and settings.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use config::{ConfigError, LoadRequest, Loader, ProviderConfig, ResolvedConfig};
use environments::stored_choice;
use journal::ThreadHistory;
use protocol::{SessionMeta, ThreadForkParams, ThreadResumeParams, ThreadStartParams};
use serde_json::Value;

use crate::error::RuntimeError;
use crate::providers::bridge::Bridge;
use crate::step::tool_settings::tool_settings;
use catalogue::{Catalogue, Overrides};
use delegation::HostChoices;
use driver::{StepWork, ThreadSettings};
use skills::SkillChoices;
use workspace::InstructionOptions;

/// The configuration part of a request to open a thread.
#[derive(Debug, Clone, Default)]
pub(crate) struct ConfigRequest {
    cwd: Option<String>,
    /// Configuration keys with their values.
    keys: Option<BTreeMap<String, Value>>,
    overrides: config::RequestOverrides,
    /// The host's provider, which replaces every configured one.
    provider: Option<ProviderConfig>,
    /// The provider of a stored thread, which may not be configured any more.
    stored_provider: Option<String>,
    /// No other provider is allowed: the thread's content is for its host only.
    is_bridged: bool,
}

/// The fields that all requests to open a thread share.
macro_rules! config_request {
    ($params:ident) => {
        ConfigRequest {
            cwd: $params.cwd.clone(),
            keys: $params.config.clone(),
            overrides: config::RequestOverrides {
                model: $params.model.clone(),
                model_provider: $params.model_provider.clone(),
                approval_policy: $params.approval_policy.clone(),
                approvals_reviewer: $params.approvals_reviewer,
                sandbox_mode: $params.sandbox,
                base_instructions: $params.base_instructions.clone(),
                developer_instructions: $params.developer_instructions.clone(),
                service_tier: $params.service_tier.clone(),
                ..config::RequestOverrides::default()
            },
            provider: None,
            stored_provider: None,
            is_bridged: false,
        }
    };
}

impl ConfigRequest {
    pub(crate) fn of_start(params: &ThreadStartParams, bridge: Option<&Bridge>) -> Self {
        let mut request = config_request!(params);
        request.overrides.personality = params.personality;
        request.provider = bridge.map(Bridge::provider);
        request
    }

    /// A stored thread keeps its folder and settings, unless the request overrides them.
    pub(crate) fn of_resume(params: &ThreadResumeParams, stored: &StoredSettings) -> Self {
        let mut request = config_request!(params);
        request.overrides.personality = params.personality;
        if !request.chooses_model() {
            request.keep_model(stored);
        }
        // The proposals of a resumed turn were made for the turn's folder.
        let last_cwd = stored.last_cwd.clone().filter(|_| params.resume_turn);
        request.cwd = request.cwd.or(last_cwd);
        request.go_on(stored)
    }

    /// A copy uses the configured model, like a new thread. With another provider than the `configured` one it keeps
    /// its source's model, which the other provider may not have.
    pub(crate) fn of_fork(params: &ThreadForkParams, stored: &StoredSettings, configured: &str) -> Self {
        let mut request = config_request!(params);
        let is_elsewhere = stored.model_provider.as_deref().is_some_and(|provider| provider != configured);
        if is_elsewhere && !request.chooses_model() {
            request.keep_model(stored);
        }
        request.go_on(stored)
    }

    fn keep_model(&mut self, stored: &StoredSettings) {
        self.overrides.model.clone_from(&stored.model);
        self.overrides.effort = stored.effort;
        self.stored_provider.clone_from(&stored.model_provider);
    }

    fn go_on(mut self, stored: &StoredSettings) -> Self {
        self.cwd = self.cwd.or_else(|| stored.cwd.clone());
        if stored.is_bridged && !self.chooses_provider() {
            self.stored_provider.clone_from(&stored.model_provider);
            self.is_bridged = true;
        }
        let instructions = &mut self.overrides;
        instructions.base_instructions =
            instructions.base_instructions.take().or_else(|| stored.base_instructions.clone());
        instructions.developer_instructions =
            instructions.developer_instructions.take().or_else(|| stored.developer_instructions.clone());
        self
    }

    /// For a thread that this process starts itself.
    pub(crate) fn of_child(cwd: &str, keys: Option<BTreeMap<String, Value>>) -> Self {
        Self { cwd: Some(cwd.to_owned()), keys, ..Self::default() }
    }

    /// Uses this provider, if it is still configured.
    pub(crate) fn going_on(mut self, provider: &str) -> Self {
        self.stored_provider = Some(provider.to_owned());
        self
    }

    /// Uses the provider of a host that carries the requests itself.
    pub(crate) fn with_provider(mut self, provider: Option<ProviderConfig>) -> Self {
        self.provider = provider.or(self.provider);
        self
    }

    /// The URL of the thread's bridge, if its host runs one.
    pub(crate) fn bridge_url(&self) -> Option<&str> {
        self.provider.as_ref()?.base_url.as_deref()
    }

    fn chooses_model(&self) -> bool {
        self.overrides.model.is_some()
            || self.chooses_provider()
            || self.has_key("model")
            || self.has_key("model_reasoning_effort")
    }

    pub(crate) fn chooses_provider(&self) -> bool {
        self.overrides.model_provider.is_some() || self.has_key("model_provider")
    }

    fn has_key(&self, key: &str) -> bool {
        self.keys.as_ref().is_some_and(|keys| keys.contains_key(key))
    }
}

/// A thread's last settings, as far as its record has them.
#[derive(Debug, Default)]
pub(crate) struct StoredSettings {
    /// The thread's first folder.
    cwd: Option<String>,
    /// The folder of its last turn.
    last_cwd: Option<String>,
    model: Option<String>,
    model_provider: Option<String>,
    effort: Option<protocol::ReasoningEffort>,
    base_instructions: Option<String>,
    developer_instructions: Option<String>,
    is_bridged: bool,
}

impl StoredSettings {
    pub(crate) fn of(history: &ThreadHistory) -> Self {
        let summary = &history.summary;
        let context = history.turn_context.as_ref();
        // An environment's folder is not the thread's own.
        let of_thread = context.filter(|_| stored_choice(context).is_none_or(|chosen| chosen.is_empty()));
        let last_cwd = of_thread.and_then(|context| context["cwd"].as_str());
        let meta = history.meta.as_ref();
        let text = |choose: fn(&SessionMeta) -> Option<String>| meta.and_then(choose);
        Self {
            cwd: summary.cwd.clone(),
            last_cwd: last_cwd.map(str::to_owned),
            model: summary.model.clone(),
            model_provider: summary.model_provider.clone(),
            effort: summary.reasoning_effort,
            base_instructions: text(|meta| meta.base_instructions.clone()),
            developer_instructions: text(|meta| meta.developer_instructions.clone()),
            is_bridged: HostChoices::of(history).is_bridged,
        }
    }
}

impl ConfigRequest {
    /// Reads the files each time, so that configuration is never stale. Blocking.
    pub(crate) fn load(&self, loader: &Loader) -> Result<ResolvedConfig, RuntimeError> {
        let mut request = LoadRequest {
            cwd: Some(absolute(self.cwd.as_deref())),
            config: self.keys.as_ref(),
            overrides: self.overrides.clone(),
            ..LoadRequest::default()
        };
        if let Some(provider) = &self.provider {
            // The default provider always exists, so a broken configured one does not matter.
            request.overrides.model_provider = Some(ProviderConfig::DEFAULT_ID.to_owned());
            let mut config =
                loader.load(&request).map_err(|error| RuntimeError::Config(error.to_string()))?;
            config.provider = provider.clone();
            config.providers.insert(config.provider.id.clone(), config.provider.clone());
            return Ok(config);
        }
        let loaded = match &self.stored_provider {
            None => loader.load(&request),
            Some(stored) => {
                request.overrides.model_provider = Some(stored.clone());
                match loader.load(&request) {
                    Err(ConfigError::UnknownProvider { id, .. }) if self.is_bridged => {
                        return Err(RuntimeError::NoBridge(id));
                    }
                    Err(ConfigError::UnknownProvider { .. }) => {
                        request.overrides.model_provider = None;
                        loader.load(&request)
                    }
                    loaded => loaded,
                }
            }
        };
        loaded.map_err(|error| RuntimeError::Config(error.to_string()))
    }
}

/// The provider of threads that choose none.
pub(crate) fn current_provider(loader: &Loader) -> String {
    loader.startup(None).config.provider.id
}

/// The settings that follow from this configuration.
pub(crate) fn settings_of(config: &ResolvedConfig, catalogue: &Catalogue) -> ThreadSettings {
    let model = config.model.name.clone().unwrap_or_else(|| default_model(config, catalogue));
    ThreadSettings {
        model,
        model_provider: config.provider.id.clone(),
        service_tier: config.model.service_tier.clone(),
        cwd: config.cwd.clone().unwrap_or_default().to_string_lossy().into_owned(),
        approval_policy: config.permissions.approval_policy.clone(),
        approvals_reviewer: config.permissions.approvals_reviewer,
        reviewer_instructions: config.requirements.guardian_developer_instructions.as_deref().map(Arc::from),
        sandbox: config.permissions.sandbox_policy.clone(),
        effort: config.model.effort,
        summary: config.model.summary,
        verbosity: config.model.verbosity,
        personality: config.model.personality,
        base_instructions: config.instructions.base.as_deref().map(Arc::from),
        compact_prompt: config.instructions.compact_prompt.as_deref().map(Arc::from),
        developer_instructions: config.instructions.developer.as_deref().map(Arc::from),
        collaboration_mode: None,
        dynamic_tools: Arc::default(),
        tools: Arc::new(tool_settings(config)),
        host: Arc::default(),
        agent_depth: 0,
        environments: None,
        prices: Arc::new(config.prices.clone()),
        model_overrides: Overrides {
            context_window: config.model.context_window,
            auto_compact_token_limit: config.model.auto_compact_token_limit,
            tool_output_token_limit: config.model.tool_output_token_limit,
            supports_reasoning_summaries: config.model.supports_reasoning_summaries,
            stream_max_retries: Some(config.provider.stream_max_retries),
        },
        skills: Arc::new(SkillChoices::of(config)),
        off_limits: Arc::new(config.off_limits()),
        memories: None,
        review_model: config.model.review.clone(),
        plan_effort: config.model.plan_mode_effort,
        work: StepWork::Turn,
        instruction_options: Arc::new(InstructionOptions {
            max_bytes: config.project_docs.max_bytes as u64,
            fallback_filenames: config.project_docs.fallback_filenames.clone(),
            root_markers: config.project_docs.root_markers.clone(),
        }),
    }
}

fn default_model(config: &ResolvedConfig, catalogue: &Catalogue) -> String {
    match config.provider.kind {
        config::ProviderKind::Offline => model_http::OfflineModel::NAME.to_owned(),
        _ => config.provider.default_model.clone().unwrap_or_else(|| catalogue.default_model().to_owned()),
    }
}

/// Relative to the server's folder; the path need not exist.
fn absolute(cwd: Option<&str>) -> PathBuf {
    let here = || std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
    match cwd {
        None => here(),
        Some(cwd) => std::path::absolute(cwd).unwrap_or_else(|_| here()),
    }
}
