//! Reads the layers and resolves one configuration from them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use protocol::{
    ApprovalsReviewer, AskForApproval, ConfigLayerSource, Personality, ReasoningEffort, ReasoningSummary,
    SandboxMode, ServiceTier, TriState,
};
use serde_json::Value;
use toml::Table;

use crate::effective::{self, Merged};
use crate::features::RuntimeFeatures;
use crate::flags::session_table;
use crate::json::to_json;
use crate::keys::Keys;
use crate::layer::{SettingsLayer, absolute_path, blame};
use crate::merge::merge;
use crate::paths::{PathBase, resolve_paths};
use crate::project::{ProjectPlan, read_named, untrusted_warning};
use crate::typed::typed;
use crate::{
    AgentRole, ConfigError, Env, Home, HookFile, Requirements, ResolvedConfig, Review, RuleFile,
    SettingWarning, Trust, project, review,
};

/// The machine's files, and the environment. A file set to none is not read.
#[derive(Debug, Clone)]
pub struct LoaderOptions {
    /// Settings below the user's.
    pub system_file: Option<PathBuf>,
    /// Settings above all others.
    pub managed_file: Option<PathBuf>,
    /// The administrator's requirements.
    pub requirements_file: Option<PathBuf>,
    pub environment: Env,
}

impl Default for LoaderOptions {
    fn default() -> Self {
        Self {
            system_file: Some("/etc/codex/config.toml".into()),
            managed_file: Some("/etc/codex/managed_config.toml".into()),
            requirements_file: Some("/etc/codex/requirements.toml".into()),
            environment: Env::process(),
        }
    }
}

/// Typed options of one request. They override files and profile; unset ones have no effect.
#[derive(Debug, Clone, Default)]
pub struct RequestOverrides {
    pub model: Option<String>,
    pub review_model: Option<String>,
    pub model_provider: Option<String>,
    pub effort: Option<ReasoningEffort>,
    pub summary: Option<ReasoningSummary>,
    pub approval_policy: Option<AskForApproval>,
    pub approvals_reviewer: Option<ApprovalsReviewer>,
    pub sandbox_mode: Option<SandboxMode>,
    /// More writable folders under `workspace-write`.
    pub writable_roots: Vec<PathBuf>,
    pub base_instructions: Option<String>,
    pub developer_instructions: Option<String>,
    pub compact_prompt: Option<String>,
    pub personality: Option<Personality>,
    pub service_tier: TriState<ServiceTier>,
}

/// A request for a configuration: the folder, the profile and the overrides.
#[derive(Debug, Clone, Default)]
pub struct LoadRequest<'a> {
    /// Absolute. Without it there are no project layers.
    pub cwd: Option<PathBuf>,
    /// Overrides the key `profile`.
    pub profile: Option<String>,
    /// The `config` of a request: keys joined by dots.
    pub config: Option<&'a BTreeMap<String, Value>>,
    pub overrides: RequestOverrides,
}

/// A configuration to start with, even if files are invalid.
#[derive(Debug, Clone)]
pub struct Startup {
    pub config: ResolvedConfig,
    /// For the user, those of the configuration included.
    pub warnings: Vec<SettingWarning>,
}

/// Reads the configuration again at every call, so that nothing is stale.
#[derive(Debug, Clone)]
pub struct Loader {
    home: Home,
    flags: Vec<(String, String)>,
    options: LoaderOptions,
    runtime_features: RuntimeFeatures,
}

impl Loader {
    /// `flags` are those of `-c`, split by [`crate::parse_flag`]; later ones override.
    pub fn new(home: Home, flags: Vec<(String, String)>, options: LoaderOptions) -> Self {
        Self { home, flags, options, runtime_features: RuntimeFeatures::default() }
    }

    pub fn home(&self) -> &Home {
        &self.home
    }

    /// Switches flags while this loader and its clones live. The error is a sentence for the client.
    pub fn set_runtime_features(&self, flags: &BTreeMap<String, bool>) -> Result<(), String> {
        self.runtime_features.set(flags)
    }

    pub fn environment(&self) -> &Env {
        &self.options.environment
    }

    /// The configuration for one request.
    pub fn load(&self, request: &LoadRequest<'_>) -> Result<ResolvedConfig, ConfigError> {
        self.combine(self.layers(request)?, request)
    }

    /// The configuration to start a server with. If a file is invalid, all files are ignored, with a warning.
    pub fn startup(&self, cwd: Option<&Path>) -> Startup {
        let request = LoadRequest { cwd: cwd.map(Path::to_owned), ..LoadRequest::default() };
        let loaded = self.load(&request);
        match loaded {
            Ok(config) => {
                let warnings = untrusted_warning(&config.layers).into_iter().chain(config.warnings.clone());
                Startup { warnings: warnings.collect(), config }
            }
            Err(error) => {
                let warning = error.to_warning(
                    "The configuration has an error. Threads cannot be opened until it is mended.",
                );
                let (config, flag_error) = self.fallback(&request);
                let flag_warning = flag_error
                    .map(|error| error.to_warning("The values of -c cannot be used either and are ignored."));
                let warnings = [warning].into_iter().chain(flag_warning).chain(config.warnings.clone());
                Startup { warnings: warnings.collect(), config }
            }
        }
    }

    /// Defaults and flags, or only defaults.
    fn fallback(&self, request: &LoadRequest<'_>) -> (ResolvedConfig, Option<ConfigError>) {
        let with_flags = self.session_layer(request).and_then(|session| {
            let layers = Layers { layers: session.into_iter().collect(), ..Layers::default() };
            self.combine(layers, request)
        });
        match with_flags {
            Ok(config) => (config, None),
            Err(error) => (effective::defaults(&self.home, &self.options.environment), Some(error)),
        }
    }

    pub(crate) fn combine(
        &self,
        layers: Layers,
        request: &LoadRequest<'_>,
    ) -> Result<ResolvedConfig, ConfigError> {
        let mut merged = Table::new();
        for layer in layers.layers.iter().filter(|layer| layer.is_enabled()) {
            merge(&mut merged, &layer.table);
        }
        let keys: Keys = typed(&merged).map_err(|misfit| blame(&layers.layers, &misfit))?;
        let managed = layers.layers.iter().find(|layer| is_managed(layer));
        let requirements = Requirements::read(self.options.requirements_file.as_deref(), managed)?;
        let runtime_features = self.runtime_features.current();
        let merged = Merged { keys, merged, layers, requirements, runtime_features };
        effective::build(&self.home, &self.options.environment, request, merged)
    }

    /// All layers, the lowest first.
    pub(crate) fn layers(&self, request: &LoadRequest<'_>) -> Result<Layers, ConfigError> {
        let user_home = self.user_home();
        let user_home = user_home.as_deref();
        let mut below = Vec::new();
        if let Some(file) = &self.options.system_file {
            let source = ConfigLayerSource::System { file: absolute_path(file)? };
            below.push(file_layer(source, file, user_home)?.0);
        }
        let file = self.home.config_file();
        let source = ConfigLayerSource::User { file: absolute_path(&file)? };
        below.push(file_layer(source, &file, user_home)?.0);
        let own = self.home.own_config_file();
        if own != file {
            let source = ConfigLayerSource::User { file: absolute_path(&own)? };
            let (layer, is_there) = file_layer(source, &own, user_home)?;
            below.extend(is_there.then_some(layer));
        }
        let mut above: Vec<SettingsLayer> = self.session_layer(request)?.into_iter().collect();

        let mut settings = Table::new();
        below.iter().chain(&above).for_each(|layer| merge(&mut settings, &layer.table));
        let mut found = Layers { root_markers: project::markers(&settings), ..Layers::default() };
        if let Some(cwd) = &request.cwd {
            let plan = ProjectPlan {
                cwd: cwd.clone(),
                markers: found.root_markers.clone(),
                settings,
                home: self.home.clone(),
                user: user_home.map(Path::to_owned),
            };
            let project = plan.read()?;
            found.trust = project.trust;
            below.extend(project.layers);
            found.project_root = Some(project.root);
            found.project_hooks = project.hooks;
            (found.project_rules, found.reviews) = (project.rules, project.reviews);
        }
        if let Some(file) = &self.options.managed_file {
            let source = ConfigLayerSource::LegacyManagedConfigTomlFromFile { file: absolute_path(file)? };
            let (layer, is_there) = file_layer(source, file, user_home)?;
            above.extend(is_there.then_some(layer));
        }
        below.extend(above);
        Ok(Layers { layers: below, ..found })
    }

    /// Flags and the request's map, if there are any.
    fn session_layer(&self, request: &LoadRequest<'_>) -> Result<Option<SettingsLayer>, ConfigError> {
        let mut layer = SettingsLayer::new(ConfigLayerSource::SessionFlags, None);
        layer.table = session_table(&self.flags, request.config)?;
        let folder = request.cwd.as_deref().unwrap_or(self.home.reading());
        resolve_paths(&mut layer.table, PathBase { folder, user: self.user_home().as_deref() });
        Ok((!layer.table.is_empty()).then_some(layer))
    }

    /// The keys in a role's file. One in a project may only read files of that project.
    pub fn keys_of_role(&self, role: &AgentRole) -> Result<BTreeMap<String, Value>, ConfigError> {
        let Some(file) = &role.config_file else { return Ok(BTreeMap::new()) };
        let project = role.project.as_deref();
        let text = read_named(file, project, &self.home).map_err(|error| match error.is_missing() {
            true => ConfigError::value(format!("there is no file {}", file.display())),
            false => ConfigError::unreadable(error),
        })?;
        let folder = file.parent().unwrap_or(file);
        let mut layer = SettingsLayer::new(ConfigLayerSource::SessionFlags, None);
        layer.parse(file, text, PathBase { folder, user: self.user_home().as_deref() })?;
        if let Some(root) = project {
            review::restrict_role(&mut layer.table, root, &self.home);
        }
        Ok(layer.table.iter().map(|(key, value)| (key.clone(), to_json(value))).collect())
    }

    /// The folder of `~`.
    pub fn user_home(&self) -> Option<PathBuf> {
        self.options.environment.var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from)
    }
}

/// The layers, and data found while reading them.
#[derive(Debug)]
pub(crate) struct Layers {
    pub(crate) layers: Vec<SettingsLayer>,
    pub(crate) trust: Option<Trust>,
    pub(crate) project_root: Option<PathBuf>,
    pub(crate) root_markers: Vec<String>,
    pub(crate) project_rules: Vec<RuleFile>,
    pub(crate) project_hooks: Vec<HookFile>,
    pub(crate) reviews: Vec<Review>,
}

impl Default for Layers {
    fn default() -> Self {
        Self {
            layers: Vec::new(),
            trust: None,
            project_root: None,
            root_markers: project::markers(&Table::new()),
            project_rules: Vec::new(),
            project_hooks: Vec::new(),
            reviews: Vec::new(),
        }
    }
}

/// The layer of a file, and whether the file is there.
fn file_layer(
    source: ConfigLayerSource,
    file: &Path,
    user: Option<&Path>,
) -> Result<(SettingsLayer, bool), ConfigError> {
    let folder = file.parent().unwrap_or(file);
    let mut layer = SettingsLayer::new(source, Some(folder.to_owned()));
    let is_there = layer.read(file, PathBase { folder, user })?;
    Ok((layer, is_there))
}

fn is_managed(layer: &SettingsLayer) -> bool {
    matches!(layer.source, ConfigLayerSource::LegacyManagedConfigTomlFromFile { .. })
}
