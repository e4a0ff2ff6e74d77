//! From a request and the configuration files to the settings of a thread.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use config::{Config, ConfigError, LoadRequest, ProviderConfig};
use environments::stored_choice;
use journal::History;
use protocol::{SessionMeta, ThreadForkParams, ThreadResumeParams, ThreadStartParams};
use serde_json::Value;

use crate::bridge::Bridge;
use crate::error::RuntimeError;
use crate::host_choices::HostChoices;
use crate::instructions::InstructionOptions;
use crate::models::Overrides;
use crate::reading::off_worker;
use crate::runtime::{Runtime, blocking};
use crate::settings::ThreadSettings;
use crate::skills::SkillChoices;
use crate::workbench::ToolSettings;

/// What a request says about configuration.
#[derive(Debug, Default)]
pub(crate) struct Wishes<'a> {
    pub(crate) cwd: Option<&'a str>,
    pub(crate) config: Option<&'a BTreeMap<String, Value>>,
    pub(crate) overrides: config::Overrides,
    /// The host's own, instead of every configured provider.
    provider: Option<ProviderConfig>,
    /// The provider a stored thread was made with, which may be gone by now.
    stored_provider: Option<&'a str>,
    /// No other provider will do: what is said in the thread is for its host alone.
    is_bridged: bool,
}

/// The fields that the three ways to open a thread share.
macro_rules! wishes {
    ($params:ident) => {
        Wishes {
            cwd: $params.cwd.as_deref(),
            config: $params.config.as_ref(),
            overrides: config::Overrides {
                model: $params.model.clone(),
                model_provider: $params.model_provider.clone(),
                approval_policy: $params.approval_policy.clone(),
                approvals_reviewer: $params.approvals_reviewer,
                sandbox_mode: $params.sandbox,
                base_instructions: $params.base_instructions.clone(),
                developer_instructions: $params.developer_instructions.clone(),
                service_tier: $params.service_tier.clone(),
                ..config::Overrides::default()
            },
            provider: None,
            stored_provider: None,
            is_bridged: false,
        }
    };
}

impl<'a> Wishes<'a> {
    pub(crate) fn of_start(params: &'a ThreadStartParams, bridge: Option<&'a Bridge>) -> Self {
        let mut wishes = wishes!(params);
        wishes.overrides.personality = params.personality;
        wishes.provider = bridge.map(Bridge::provider);
        wishes
    }

    /// A stored thread goes on where, and with what, it was, unless the request chooses otherwise.
    pub(crate) fn of_resume(params: &'a ThreadResumeParams, stored: &'a Stored) -> Self {
        let mut wishes = wishes!(params);
        wishes.overrides.personality = params.personality;
        if !wishes.chooses_model() {
            wishes.keep_model(stored);
        }
        // What a turn that goes on proposed before was meant for the folder it was in.
        let last_cwd = stored.last_cwd.as_deref().filter(|_| params.resume_turn);
        wishes.cwd = wishes.cwd.or(last_cwd);
        wishes.go_on(stored)
    }

    /// A copy begins with the configured model, as a new thread does. With another provider than the `configured` one
    /// it keeps its source's: elsewhere nobody might know the model.
    pub(crate) fn of_fork(params: &'a ThreadForkParams, stored: &'a Stored, configured: &str) -> Self {
        let mut wishes = wishes!(params);
        let is_elsewhere = stored.model_provider.as_deref().is_some_and(|provider| provider != configured);
        if is_elsewhere && !wishes.chooses_model() {
            wishes.keep_model(stored);
        }
        wishes.go_on(stored)
    }

    fn keep_model(&mut self, stored: &'a Stored) {
        self.overrides.model.clone_from(&stored.model);
        self.overrides.effort = stored.effort;
        self.stored_provider = stored.model_provider.as_deref();
    }

    fn go_on(mut self, stored: &'a Stored) -> Self {
        self.cwd = self.cwd.or(stored.cwd.as_deref());
        if stored.is_bridged && !self.chooses_provider() {
            self.stored_provider = stored.model_provider.as_deref();
            self.is_bridged = true;
        }
        let instructions = &mut self.overrides;
        instructions.base_instructions =
            instructions.base_instructions.take().or_else(|| stored.base_instructions.clone());
        instructions.developer_instructions =
            instructions.developer_instructions.take().or_else(|| stored.developer_instructions.clone());
        self
    }

    /// Of a thread that this process starts by itself.
    pub(crate) fn of_child(cwd: &'a str, config: Option<&'a BTreeMap<String, Value>>) -> Self {
        Self { cwd: Some(cwd), config, ..Self::default() }
    }

    /// With this provider as long as there is one by its name.
    pub(crate) fn going_on(mut self, provider: &'a str) -> Self {
        self.stored_provider = Some(provider);
        self
    }

    /// With the provider of a host that carries the requests itself.
    pub(crate) fn with_provider(mut self, provider: Option<ProviderConfig>) -> Self {
        self.provider = provider.or(self.provider);
        self
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
        self.config.is_some_and(|config| config.contains_key(key))
    }
}

/// What a record says about the settings its thread last had.
#[derive(Debug, Default)]
pub(crate) struct Stored {
    /// Where the thread began.
    cwd: Option<String>,
    /// Where its last turn was.
    last_cwd: Option<String>,
    model: Option<String>,
    model_provider: Option<String>,
    effort: Option<protocol::ReasoningEffort>,
    base_instructions: Option<String>,
    developer_instructions: Option<String>,
    is_bridged: bool,
}

impl Stored {
    pub(crate) fn of(history: &History) -> Self {
        let summary = &history.summary;
        let context = history.turn_context.as_ref();
        // The folder of an environment is not the thread's own.
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

impl Runtime {
    /// The configuration of a thread that is to be opened. What the user requires and is not there is an error, as its
    /// absence is what they excluded.
    pub(crate) async fn load_for_thread(&self, wishes: &Wishes<'_>) -> Result<Config, RuntimeError> {
        let config = self.load_later(wishes).await?;
        match config.required_mcp_servers().first() {
            None => Ok(config),
            Some(name) => Err(RuntimeError::Config(format!(
                "MCP server `{name}` is required and cannot be started: MCP servers are not supported yet; set \
                 mcp_servers.{name}.required = false to go on without it"
            ))),
        }
    }

    /// Read from disk anew: configuration is never stale.
    pub(crate) fn load(&self, wishes: &Wishes<'_>) -> Result<Config, RuntimeError> {
        off_worker(|| self.load_now(wishes))
    }

    /// As [`Runtime::load`], for a task that has other things to do meanwhile: a folder may be on a file system that hangs.
    async fn load_later(&self, wishes: &Wishes<'_>) -> Result<Config, RuntimeError> {
        let runtime = self.clone();
        let (cwd, stored) = (wishes.cwd.map(str::to_owned), wishes.stored_provider.map(str::to_owned));
        let (config, overrides) = (wishes.config.cloned(), wishes.overrides.clone());
        let (provider, is_bridged) = (wishes.provider.clone(), wishes.is_bridged);
        let load = move || {
            let (cwd, stored_provider) = (cwd.as_deref(), stored.as_deref());
            let config = config.as_ref();
            runtime.load_now(&Wishes { cwd, config, overrides, provider, stored_provider, is_bridged })
        };
        blocking(load).await?
    }

    fn load_now(&self, wishes: &Wishes<'_>) -> Result<Config, RuntimeError> {
        let mut request = LoadRequest {
            cwd: Some(absolute(wishes.cwd)),
            config: wishes.config,
            overrides: wishes.overrides.clone(),
            ..LoadRequest::default()
        };
        let loader = &self.inner.loader;
        if let Some(provider) = &wishes.provider {
            // One that is always there, so that nothing depends on the configured one.
            request.overrides.model_provider = Some(ProviderConfig::DEFAULT_ID.to_owned());
            let mut config =
                loader.load(&request).map_err(|error| RuntimeError::Config(error.to_string()))?;
            config.provider = provider.clone();
            config.providers.insert(config.provider.id.clone(), config.provider.clone());
            return Ok(config);
        }
        let loaded = match wishes.stored_provider {
            None => loader.load(&request),
            Some(stored) => {
                request.overrides.model_provider = Some(stored.to_owned());
                match loader.load(&request) {
                    Err(ConfigError::UnknownProvider(id)) if wishes.is_bridged => {
                        return Err(RuntimeError::NoBridge(id));
                    }
                    Err(ConfigError::UnknownProvider(_)) => {
                        request.overrides.model_provider = None;
                        loader.load(&request)
                    }
                    loaded => loaded,
                }
            }
        };
        loaded.map_err(|error| RuntimeError::Config(error.to_string()))
    }

    /// The provider of threads that choose none.
    pub(crate) fn current_provider(&self) -> String {
        self.inner.loader.startup(None).config.provider.id
    }

    pub(crate) fn settings(&self, config: &Config) -> ThreadSettings {
        let model = config.model.name.clone().unwrap_or_else(|| self.default_model(config));
        ThreadSettings {
            model,
            model_provider: config.provider.id.clone(),
            service_tier: config.model.service_tier.clone(),
            cwd: config.cwd.clone().unwrap_or_default().to_string_lossy().into_owned(),
            approval_policy: config.permissions.approval_policy.clone(),
            approvals_reviewer: config.permissions.approvals_reviewer,
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
            tools: Arc::new(ToolSettings::of(config)),
            host: Arc::default(),
            agent_depth: 0,
            environments: None,
            model_overrides: Overrides {
                context_window: config.model.context_window,
                auto_compact_token_limit: config.model.auto_compact_token_limit,
                tool_output_token_limit: config.model.tool_output_token_limit,
                supports_reasoning_summaries: config.model.supports_reasoning_summaries,
                stream_max_retries: Some(config.provider.stream_max_retries),
            },
            skills: Arc::new(SkillChoices::of(config)),
            off_limits: Arc::new(config.off_limits()),
            instruction_options: Arc::new(InstructionOptions {
                max_bytes: config.project_docs.max_bytes as u64,
                fallback_filenames: config.project_docs.fallback_filenames.clone(),
                root_markers: config.project_docs.root_markers.clone(),
            }),
        }
    }

    fn default_model(&self, config: &Config) -> String {
        match config.provider.kind {
            config::ProviderKind::Offline => model_http::OfflineModel::NAME.to_owned(),
            _ => self.inner.catalogue.default_model().to_owned(),
        }
    }
}

/// Relative to where the server runs; the folder need not exist.
fn absolute(cwd: Option<&str>) -> PathBuf {
    let here = || std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
    match cwd {
        None => here(),
        Some(cwd) => std::path::absolute(cwd).unwrap_or_else(|_| here()),
    }
}
