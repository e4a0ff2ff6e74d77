//! What there is to choose from: models, features, and the configuration as it stands.

use config::{ConfigError, FEATURES, LoadRequest};
use protocol::{
    AppsListParams, AppsListResponse, CollaborationModeListResponse, CollaborationModeMask, ConfigReadParams,
    ConfigReadResponse, ConfigRequirementsReadResponse, ExperimentalFeatureListParams,
    ExperimentalFeatureListResponse, ModeKind, ModelListParams, ModelListResponse, ReasoningEffort,
};

use crate::error::RuntimeError;
use crate::runtime::{Runtime, blocking};

impl Runtime {
    pub fn list_models(&self, params: &ModelListParams) -> Result<ModelListResponse, RuntimeError> {
        let hidden = params.include_hidden.unwrap_or(false);
        let page = self.inner.catalogue.page(params.cursor.as_deref(), params.limit, hidden);
        page.map_err(|error| RuntimeError::Cursor(error.to_string()))
    }

    /// The modes a client can offer. `Default` comes last, as the one to go back to.
    pub fn list_collaboration_modes(&self) -> CollaborationModeListResponse {
        let mask = |name: &str, mode, reasoning_effort| CollaborationModeMask {
            name: name.to_owned(),
            mode: Some(mode),
            model: None,
            reasoning_effort,
        };
        let plan = mask("Plan", ModeKind::Plan, Some(ReasoningEffort::Medium));
        CollaborationModeListResponse { data: vec![plan, mask("Default", ModeKind::Default, None)] }
    }

    /// Apps come with a ChatGPT login, which this program does not offer, so there are none.
    pub fn list_apps(&self, params: &AppsListParams) -> Result<AppsListResponse, RuntimeError> {
        if let Some(id) = &params.thread_id {
            self.thread(id)?;
        }
        match &params.cursor {
            Some(cursor) => Err(RuntimeError::InvalidCursor(cursor.clone())),
            None => Ok(AppsListResponse { data: Vec::new(), next_cursor: None }),
        }
    }

    pub fn list_features(
        &self,
        params: &ExperimentalFeatureListParams,
    ) -> Result<ExperimentalFeatureListResponse, RuntimeError> {
        let startup = self.inner.loader.startup(None);
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
        let loader = self.inner.loader.clone();
        let read = move || {
            let config = loader.load(&LoadRequest { cwd, ..LoadRequest::default() })?;
            config.read_response(params.include_layers)
        };
        blocking(read).await?.map_err(|error: ConfigError| RuntimeError::InvalidConfig(error.to_string()))
    }

    /// What an administrator requires, read anew.
    pub fn read_requirements(&self) -> Result<ConfigRequirementsReadResponse, RuntimeError> {
        let loaded = self.inner.loader.load(&LoadRequest::default());
        let config = loaded.map_err(|error| RuntimeError::InvalidConfig(error.to_string()))?;
        Ok(ConfigRequirementsReadResponse { requirements: config.requirements.to_wire() })
    }
}
