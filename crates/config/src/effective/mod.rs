//! From keys to values: profile, overrides, defaults and requirements.

mod deprecations;
mod doubts;
mod features;
mod options;
mod permissions;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use toml::Table;

pub use self::doubts::key_problem;
use self::doubts::{doubts, refusal};
use crate::config::{AgentOptions, InstructionTexts, PermissionOptions};
use crate::hook_file::hook_files;
use crate::keys::{Keys, ProfileKeys};
use crate::loader::Layers;
use crate::{
    ConfigError, Credentials, Env, Features, Home, LoadRequest, ProviderConfig, ProviderKind, ProviderReason,
    RequestOverrides, Requirements, ResolvedConfig, SecretText, SettingWarning, closed_search_path, nearest,
    provider,
};

/// All that was read.
pub(crate) struct Merged {
    pub(crate) keys: Keys,
    pub(crate) merged: Table,
    pub(crate) layers: Layers,
    pub(crate) requirements: Requirements,
    /// Flags that a client switched.
    pub(crate) runtime_features: BTreeMap<String, bool>,
}

/// The inputs of every step.
struct Sources<'a> {
    home: &'a Home,
    env: &'a Env,
    cwd: Option<&'a PathBuf>,
    profile_name: Option<String>,
    profile: ProfileKeys,
    overrides: &'a RequestOverrides,
    keys: &'a Keys,
    requirements: &'a Requirements,
    layers: &'a Layers,
}

/// The parts that can be invalid.
struct Checked {
    features: Features,
    providers: BTreeMap<String, ProviderConfig>,
    provider: ProviderConfig,
    provider_reason: ProviderReason,
    permissions: PermissionOptions,
    instructions: InstructionTexts,
    agents: AgentOptions,
}

/// The effective configuration.
pub(crate) fn build(
    home: &Home,
    env: &Env,
    request: &LoadRequest<'_>,
    merged: Merged,
) -> Result<ResolvedConfig, ConfigError> {
    let keys = &merged.keys;
    let mut warnings = Vec::new();
    let (profile_name, profile) = choose_profile(request.profile.as_ref(), keys)?;
    let sources = Sources {
        home,
        env,
        cwd: request.cwd.as_ref(),
        profile_name,
        profile,
        overrides: &request.overrides,
        keys,
        requirements: &merged.requirements,
        layers: &merged.layers,
    };
    provider::refuse_misspelt(&merged.merged)?;
    let providers = provider::providers(keys, env, &mut warnings)?;
    if let Some(problem) = keys.prices.problem() {
        return Err(ConfigError::value(problem));
    }
    let (chosen, provider_reason) = sources.chosen_provider(&providers);
    let checked = Checked {
        features: sources.features(&merged.runtime_features, &mut warnings),
        provider: provider::choose(&providers, &chosen)?,
        provider_reason,
        providers,
        permissions: sources.permissions(&mut warnings)?,
        instructions: sources.instructions()?,
        agents: sources.agents()?,
    };
    warnings.extend(crate::off_limits::project_warning(&merged.layers.layers));
    let doubts = doubts(&merged.layers, &checked.features, home);
    if keys.strict_config == Some(true)
        && let Some(refusal) = refusal(&doubts)
    {
        return Err(refusal);
    }
    warnings.extend(doubts);
    let mut config = sources.assemble(checked, warnings);
    config.close_searches();
    config.require_residency(merged.requirements.residency());
    config.requirements = merged.requirements;
    config.merged = merged.merged;
    config.warnings.extend(merged.layers.reviews.iter().filter_map(|review| review.warning(home)));
    config.project_rules = merged.layers.project_rules;
    if config.features.enabled("codex_hooks") {
        config.hooks = hook_files(&merged.layers.layers, home.state(), merged.layers.project_hooks);
    }
    config.reviews = merged.layers.reviews;
    config.layers = merged.layers.layers;
    config.layers.iter_mut().for_each(crate::SettingsLayer::forget_text);
    config.tools.web_search = config.web_search_under(&config.permissions.sandbox_policy);
    Ok(config)
}

/// The configuration when no file can be read.
pub(crate) fn defaults(home: &Home, env: &Env) -> ResolvedConfig {
    let keys = Keys::default();
    let mut warnings = Vec::new();
    let providers = provider::built_in(&keys, env, &mut warnings);
    let checked = Checked {
        features: Features::default(),
        provider: providers[0].clone(),
        provider_reason: ProviderReason::Nothing,
        providers: providers.into_iter().map(|provider| (provider.id.clone(), provider)).collect(),
        permissions: PermissionOptions::default(),
        instructions: InstructionTexts::default(),
        agents: AgentOptions::default(),
    };
    let sources = Sources {
        home,
        env,
        cwd: None,
        profile_name: None,
        profile: ProfileKeys::default(),
        overrides: &RequestOverrides::default(),
        keys: &keys,
        requirements: &Requirements::default(),
        layers: &Layers::default(),
    };
    sources.assemble(checked, warnings)
}

/// Tells OpenAI in which region a request's data must stay.
const RESIDENCY: &str = "x-openai-internal-codex-residency";

impl ResolvedConfig {
    /// Adds the region that an administrator requires to requests to OpenAI. Other providers do not know the header.
    fn require_residency(&mut self, region: Option<&str>) {
        let Some(region) = region else { return };
        let providers = self.providers.values_mut().chain([&mut self.provider]);
        for provider in providers.filter(|provider| provider.kind == ProviderKind::OpenAi) {
            provider.http_headers.insert(RESIDENCY.to_owned(), SecretText::new(region));
        }
        if self.provider.kind == ProviderKind::Compatible {
            self.warnings.push(SettingWarning::new(format!(
                "enforce_residency = \"{region}\" of the administrator is not enforced with the provider {}: only \
                 OpenAI is told of it.",
                self.provider.id
            )));
        }
    }

    /// Programs that print tokens are not searched for in folders that commands could write.
    fn close_searches(&mut self) {
        let Some(path) = self.env.text("PATH") else { return };
        let writable = self.writable_roots();
        let providers = self.providers.values_mut().chain([&mut self.provider]);
        for auth in providers.filter_map(|provider| provider.auth.as_mut()) {
            auth.search = Some(closed_search_path(&path, &writable));
        }
    }
}

impl Sources<'_> {
    /// The named provider, else the one that the environment suggests, and why.
    fn chosen_provider(&self, providers: &BTreeMap<String, ProviderConfig>) -> (String, ProviderReason) {
        if let Some(id) = &self.overrides.model_provider {
            return (id.clone(), ProviderReason::Requested);
        }
        if let Some(id) = first([&self.profile.model_provider, &self.keys.model_provider]) {
            return (id, ProviderReason::Configured);
        }
        // An unreadable file is reported when the key is needed.
        let is_logged_in = || Credentials::new(self.home).load().is_ok_and(|stored| stored.is_some());
        provider::offered(providers, self.env, is_logged_in())
    }

    /// All values except the layers and what is derived from them.
    fn assemble(&self, checked: Checked, mut warnings: Vec<SettingWarning>) -> ResolvedConfig {
        let keys = self.keys;
        ResolvedConfig {
            home: self.home.clone(),
            cwd: self.cwd.cloned(),
            profile: self.profile_name.clone(),
            model: self.model(&checked.features),
            tools: self.tools(&checked.features, &mut warnings),
            provider: checked.provider,
            provider_reason: checked.provider_reason,
            prices: keys.prices.clone(),
            providers: checked.providers,
            permissions: checked.permissions,
            instructions: checked.instructions,
            project_docs: self.project_docs(),
            agents: checked.agents,
            memories: options::memories(keys),
            features: checked.features,
            login: self.login(),
            notify: keys.notify.clone().filter(|command| !command.is_empty()),
            hide_agent_reasoning: keys.hide_agent_reasoning.unwrap_or(false),
            feedback_enabled: keys.feedback.as_ref().and_then(|feedback| feedback.enabled).unwrap_or(true),
            off_limits: Arc::default(),
            suppress_unfinished: keys.suppress_unstable_features_warning.unwrap_or(false),
            requirements: Requirements::default(),
            warnings,
            deprecations: self.deprecations(),
            layers: Vec::new(),
            project_rules: Vec::new(),
            hooks: Vec::new(),
            reviews: Vec::new(),
            merged: Table::new(),
            env: self.env.clone(),
        }
    }
}

/// The profile of the request, else that of the files.
fn choose_profile(
    requested: Option<&String>,
    keys: &Keys,
) -> Result<(Option<String>, ProfileKeys), ConfigError> {
    let Some(name) = requested.or(keys.profile.as_ref()).filter(|name| !name.is_empty()) else {
        return Ok((None, ProfileKeys::default()));
    };
    match keys.profiles.get(name) {
        Some(profile) => Ok((Some(name.clone()), profile.clone())),
        None => {
            let near = nearest(name, keys.profiles.keys().map(String::as_str)).map(str::to_owned);
            Err(ConfigError::UnknownProfile { name: name.clone(), near })
        }
    }
}

/// The first that is set.
fn first<T: Clone, const N: usize>(choices: [&Option<T>; N]) -> Option<T> {
    choices.into_iter().find_map(Clone::clone)
}
