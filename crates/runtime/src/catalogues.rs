//! What there is to choose from: models, features, and the configuration as it stands.

use config::{FEATURES, LoadRequest};
use protocol::{
    ConfigReadParams, ConfigReadResponse, ConfigRequirementsReadResponse, ExperimentalFeatureListParams,
    ExperimentalFeatureListResponse, ModelListParams, ModelListResponse, SkillsListEntry, SkillsListParams,
    SkillsListResponse,
};

use crate::error::RuntimeError;
use crate::runtime::Runtime;

impl Runtime {
    pub fn list_models(&self, params: &ModelListParams) -> Result<ModelListResponse, RuntimeError> {
        let hidden = params.include_hidden.unwrap_or(false);
        let page = self.inner.catalogue.page(params.cursor.as_deref(), params.limit, hidden);
        page.map_err(|error| RuntimeError::Cursor(error.to_string()))
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

    pub fn read_config(&self, params: &ConfigReadParams) -> Result<ConfigReadResponse, RuntimeError> {
        let cwd = params.cwd.as_deref().map(std::path::absolute).transpose();
        let cwd = cwd.map_err(|error| RuntimeError::InvalidConfig(format!("cwd: {error}")))?;
        let loaded = self.inner.loader.load(&LoadRequest { cwd, ..LoadRequest::default() });
        let config = loaded.map_err(|error| RuntimeError::InvalidConfig(error.to_string()))?;
        let read = config.read_response(params.include_layers);
        read.map_err(|error| RuntimeError::InvalidConfig(error.to_string()))
    }

    /// What an administrator requires, read anew.
    pub fn read_requirements(&self) -> Result<ConfigRequirementsReadResponse, RuntimeError> {
        let loaded = self.inner.loader.load(&LoadRequest::default());
        let config = loaded.map_err(|error| RuntimeError::InvalidConfig(error.to_string()))?;
        Ok(ConfigRequirementsReadResponse { requirements: config.requirements.to_wire() })
    }

    /// Threads are offered no skills, so no folder has any. Clients ask before they open a thread and may give up
    /// when they are refused.
    pub fn list_skills(&self, params: &SkillsListParams) -> SkillsListResponse {
        let own = || std::env::current_dir().map(|folder| folder.to_string_lossy().into_owned());
        let folders = match params.cwds.is_empty() {
            true => own().into_iter().collect(),
            false => params.cwds.clone(),
        };
        let empty = |cwd| SkillsListEntry { cwd, skills: Vec::new(), errors: Vec::new() };
        SkillsListResponse { data: folders.into_iter().map(empty).collect() }
    }
}
