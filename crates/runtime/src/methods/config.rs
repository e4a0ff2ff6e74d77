//! `config/value/write`, `config/batchWrite`, `experimentalFeature/enablement/set` and `hooks/list`.

use config::ConfigWriteError;
use hooks::HookSet;
use protocol::{
    ConfigBatchWriteParams, ConfigEdit, ConfigValueWriteParams, ConfigWriteResponse,
    ExperimentalFeatureEnablementSetParams, ExperimentalFeatureEnablementSetResponse, HooksListParams,
    HooksListResponse,
};

use crate::error::RuntimeError;
use crate::open::config_request::ConfigRequest;
use crate::runtime::Runtime;
use crate::state::RuntimeState;
use support::blocking;

impl Runtime {
    /// Writes one value to the user's file.
    pub async fn write_config_value(
        &self,
        params: ConfigValueWriteParams,
    ) -> Result<ConfigWriteResponse, RuntimeError> {
        let ConfigValueWriteParams { key_path, value, merge_strategy, file_path, expected_version } = params;
        let edits = vec![ConfigEdit { key_path, value, merge_strategy }];
        let batch = ConfigBatchWriteParams { edits, file_path, expected_version, reload_user_config: false };
        self.write_config(batch).await
    }

    /// Writes several values, all or none. With `reloadUserConfig` they apply to the threads in memory too.
    pub async fn write_config(
        &self,
        params: ConfigBatchWriteParams,
    ) -> Result<ConfigWriteResponse, RuntimeError> {
        let (loader, state) = (self.state.loader.clone(), self.state.clone());
        let write = move || {
            let written = loader.write(&params)?;
            if params.reload_user_config {
                reload(&state);
            }
            Ok(written)
        };
        blocking(write).await?.map_err(|error| refused(&error))
    }

    /// The hooks of each folder, including those that do not run.
    pub async fn list_hooks(&self, params: HooksListParams) -> Result<HooksListResponse, RuntimeError> {
        let own = || std::env::current_dir().map(|folder| folder.to_string_lossy().into_owned());
        let cwds = match params.cwds.is_empty() {
            true => own().into_iter().collect(),
            false => params.cwds,
        };
        let loader = self.state.loader.clone();
        let list = move || {
            let entry = |cwd: String| {
                let config = ConfigRequest::of_child(&cwd, None).load(&loader)?;
                Ok(HookSet::of(&config).list(cwd))
            };
            cwds.into_iter().map(entry).collect::<Result<Vec<_>, RuntimeError>>()
        };
        Ok(HooksListResponse { data: blocking(list).await?? })
    }

    /// Switches feature flags until this process ends.
    pub fn set_feature_enablement(
        &self,
        params: ExperimentalFeatureEnablementSetParams,
    ) -> Result<ExperimentalFeatureEnablementSetResponse, RuntimeError> {
        let set = self.state.loader.set_runtime_features(&params.enablement);
        set.map_err(RuntimeError::FeatureEnablement)?;
        Ok(ExperimentalFeatureEnablementSetResponse { enablement: params.enablement })
    }
}

/// Applies user settings that affect threads in memory: rules about skills, hooks and `notify`.
fn reload(state: &RuntimeState) {
    state.skills.rules_changed();
    for id in state.threads.ids() {
        let Some(loaded) = state.threads.get(&id) else { continue };
        match ConfigRequest::of_child(&loaded.identity.meta.cwd, None).load(&state.loader) {
            Ok(config) => {
                loaded.hooks.replace(&config);
                loaded.notify.replace(config.notify);
            }
            Err(error) => tracing::warn!(%error, thread = %id, "its hooks stay as they were"),
        }
    }
}

/// With the code by which clients distinguish refusals.
fn refused(error: &ConfigWriteError) -> RuntimeError {
    let code = match error {
        ConfigWriteError::ReadOnlyLayer => "configLayerReadonly",
        ConfigWriteError::VersionConflict => "configVersionConflict",
        ConfigWriteError::Invalid(_) => "configValidationError",
        ConfigWriteError::PathNotFound(_) => "configPathNotFound",
        ConfigWriteError::Failed(error) => return RuntimeError::ConfigWrite(error.to_string()),
    };
    RuntimeError::ConfigEdit { code, message: error.to_string() }
}
