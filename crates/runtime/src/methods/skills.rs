//! `skills/*`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use config::SkillSelector;
use protocol::{
    ServerNotification, SkillsChangedNotification, SkillsConfigWriteParams, SkillsConfigWriteResponse,
    SkillsListParams, SkillsListResponse,
};
use skills::NotifySkillsChanged;

use crate::error::RuntimeError;
use crate::runtime::Runtime;
use driver::Audience;
use support::blocking;

impl Runtime {
    /// The skills of each folder. Cached until a client requests a reload or a file changes.
    pub async fn list_skills(&self, params: SkillsListParams) -> Result<SkillsListResponse, RuntimeError> {
        let extra = extra_roots(&params)?;
        let skills = self.state.skills.clone();
        let own = || std::env::current_dir().map(|folder| folder.to_string_lossy().into_owned());
        let cwds = match params.cwds.is_empty() {
            true => own().into_iter().collect(),
            false => params.cwds,
        };
        let list = move || {
            let entry = |cwd: String| {
                let extra = extra.get(&cwd).map_or(&[][..], Vec::as_slice);
                skills.list(cwd, params.force_reload, extra)
            };
            cwds.into_iter().map(entry).collect()
        };
        Ok(SkillsListResponse { data: blocking(list).await? })
    }

    /// Enables or disables a skill in the user's settings, for all threads and at once.
    pub async fn write_skill_config(
        &self,
        params: SkillsConfigWriteParams,
    ) -> Result<SkillsConfigWriteResponse, RuntimeError> {
        let named = params.name.as_deref().map(str::trim);
        let selector = match (params.path, named) {
            (Some(path), None) => Ok(path),
            (None, Some(name)) if !name.is_empty() => Err(name.to_owned()),
            _ => return Err(RuntimeError::SkillSelector),
        };
        let skills = self.state.skills.clone();
        let write = move || match selector {
            Ok(path) => skills.switch(&SkillSelector::path(Path::new(path.as_str())), params.enabled),
            Err(name) => skills.switch(&SkillSelector::Name(name), params.enabled),
        };
        let written = blocking(write).await?;
        let effective_enabled = written.map_err(|error| RuntimeError::ConfigWrite(error.to_string()))?;
        Ok(SkillsConfigWriteResponse { effective_enabled })
    }
}

/// Notifies the clients of a thread of changed skills.
pub(crate) fn notify_skills_changed(audience: &Arc<dyn Audience>) -> NotifySkillsChanged {
    let audience = audience.clone();
    Box::new(move |thread| {
        let audience = audience.clone();
        Box::pin(async move {
            let changed = ServerNotification::SkillsChanged(SkillsChangedNotification {});
            audience.notify(&thread, changed).await;
        })
    })
}

/// By working directory, as the client spelled it.
fn extra_roots(params: &SkillsListParams) -> Result<HashMap<String, Vec<PathBuf>>, RuntimeError> {
    let mut extra: HashMap<String, Vec<PathBuf>> = HashMap::new();
    for entry in params.per_cwd_extra_user_roots.iter().flatten() {
        let roots = extra.entry(entry.cwd.clone()).or_default();
        for root in &entry.extra_user_roots {
            if !Path::new(root).is_absolute() {
                return Err(RuntimeError::RelativeSkillRoot(root.clone()));
            }
            roots.push(PathBuf::from(root));
        }
    }
    Ok(extra)
}
