//! Lists to choose from: models, modes, features, and the current configuration.

use std::sync::Arc;

use config::{ConfigError, FEATURES, LoadRequest};
use protocol::{
    CollaborationModeListResponse, CollaborationModeMask, ConfigReadParams, ConfigReadResponse,
    ConfigRequirementsReadResponse, ExperimentalFeatureListParams, ExperimentalFeatureListResponse, ModeKind,
    ModelListParams, ModelListResponse, ReasoningEffort,
};

use catalogue::Catalogue;

use crate::error::RuntimeError;
use crate::providers::directory::ModelDirectory;
use crate::providers::identity::ClientIdentity;
use crate::runtime::Runtime;
use support::blocking;

impl Runtime {
    /// The transport to the configured provider, for a host that carries other processes' requests. A missing key is no
    /// error here: the request fails with instructions.
    pub fn model_transport(
        &self,
        client: &ClientIdentity,
    ) -> Result<Arc<dyn model::ModelTransport>, RuntimeError> {
        let config = self.state.loader.startup(None).config;
        self.state.providers.transport(&config, client)
    }

    /// The models of the configured provider: from its server if it lists them, otherwise from the catalogue.
    pub async fn list_models(&self, params: &ModelListParams) -> Result<ModelListResponse, RuntimeError> {
        let hidden = params.include_hidden.unwrap_or(false);
        let told = self.told_models().await;
        let catalogue = told.as_ref().unwrap_or(&self.state.catalogue);
        let page = catalogue.page(params.cursor.as_deref(), params.limit, hidden);
        page.map_err(|error| RuntimeError::Cursor(error.to_string()))
    }

    async fn told_models(&self) -> Option<Catalogue> {
        let loader = self.state.loader.clone();
        let config = blocking(move || loader.startup(None).config).await.ok()?;
        if !ModelDirectory::can_tell(&config.provider) {
            return None;
        }
        let told = self.state.directory.models(&config.provider).await;
        let told = told.map_err(|error| tracing::debug!(error, "the provider lists no models")).ok()?;
        let default = config.model.name.or(config.provider.default_model);
        let rows =
            told.iter().map(|model| (model.id.as_str(), model.display_name.as_deref(), model.context_window));
        self.state.catalogue.of_provider(rows, default.as_deref())
    }

    /// The modes that a client can offer. `Default` comes last.
    pub fn list_collaboration_modes(&self) -> CollaborationModeListResponse {
        let mask = |name: &str, mode, reasoning_effort| CollaborationModeMask {
            name: name.to_owned(),
            mode: Some(mode),
            model: None,
            reasoning_effort,
        };
        let effort = self.state.loader.startup(None).config.model.plan_mode_effort;
        let plan = mask("Plan", ModeKind::Plan, Some(effort.unwrap_or(ReasoningEffort::Medium)));
        CollaborationModeListResponse { data: vec![plan, mask("Default", ModeKind::Default, None)] }
    }

    pub fn list_features(
        &self,
        params: &ExperimentalFeatureListParams,
    ) -> Result<ExperimentalFeatureListResponse, RuntimeError> {
        let startup = self.state.loader.startup(None);
        let all = startup.config.features.list();
        let start = match &params.cursor {
            None => 0,
            Some(cursor) => {
                cursor.parse::<usize>().map_err(|_| RuntimeError::InvalidCursor(cursor.clone()))?
            }
        };
        if start > all.len() {
            let total = FEATURES.len();
            return Err(RuntimeError::Cursor(format!("cursor {start} exceeds total feature flags {total}")));
        }
        let limit = params.limit.map_or(usize::MAX, |limit| limit.max(1) as usize);
        let end = start.saturating_add(limit).min(all.len());
        let next_cursor = (end < all.len()).then(|| end.to_string());
        Ok(ExperimentalFeatureListResponse { data: all[start..end].to_vec(), next_cursor })
    }

    pub async fn read_config(&self, params: ConfigReadParams) -> Result<ConfigReadResponse, RuntimeError> {
        let cwd = params.cwd.as_deref().map(std::path::absolute).transpose();
        let cwd = cwd.map_err(|error| RuntimeError::InvalidConfig(format!("cwd: {error}")))?;
        let loader = self.state.loader.clone();
        let read = move || {
            let config = loader.load(&LoadRequest { cwd, ..LoadRequest::default() })?;
            config.read_response(params.include_layers)
        };
        blocking(read).await?.map_err(|error: ConfigError| RuntimeError::InvalidConfig(error.to_string()))
    }

    /// The administrator's requirements, read again from disk.
    pub fn read_requirements(&self) -> Result<ConfigRequirementsReadResponse, RuntimeError> {
        let loaded = self.state.loader.load(&LoadRequest::default());
        let config = loaded.map_err(|error| RuntimeError::InvalidConfig(error.to_string()))?;
        Ok(ConfigRequirementsReadResponse { requirements: config.requirements.to_wire() })
    }
}
