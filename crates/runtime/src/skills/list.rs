//! Skills as clients ask for them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use config::{LoadRequest, SkillSelector};
use protocol::{
    SkillErrorInfo, SkillMetadata, SkillsConfigWriteParams, SkillsConfigWriteResponse, SkillsListEntry,
    SkillsListParams, SkillsListResponse,
};

use super::Skill;
use super::cache::{SkillChoices, Skills};
use super::scan::name_of;
use crate::error::RuntimeError;
use crate::runtime::{Runtime, blocking};

impl Runtime {
    /// What is found for each folder. Found once, until asked to look again or something there changes.
    pub async fn list_skills(&self, params: SkillsListParams) -> Result<SkillsListResponse, RuntimeError> {
        let extra = extra_roots(&params)?;
        let skills = self.inner.skills.clone();
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

    /// Switches a skill on or off in the user's settings, for all threads and at once.
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
        let skills = self.inner.skills.clone();
        let write = move || match selector {
            Ok(path) => skills.switch(&SkillSelector::path(Path::new(path.as_str())), params.enabled),
            Err(name) => skills.switch(&SkillSelector::Name(name), params.enabled),
        };
        let effective_enabled = blocking(write).await??;
        Ok(SkillsConfigWriteResponse { effective_enabled })
    }
}

impl Skills {
    fn list(&self, cwd: String, force: bool, extra: &[PathBuf]) -> SkillsListEntry {
        let place = std::path::absolute(&cwd).unwrap_or_else(|_| PathBuf::from(&cwd));
        let request = LoadRequest { cwd: Some(place.clone()), ..LoadRequest::default() };
        let choices = match self.loader.load(&request) {
            Ok(config) => SkillChoices::of(&config),
            Err(error) => {
                let error = SkillErrorInfo { path: cwd.clone(), message: error.to_string() };
                return SkillsListEntry { cwd, skills: Vec::new(), errors: vec![error] };
            }
        };
        let known = self.known(&place).filter(|_| !force);
        let directory = known.map_or_else(|| self.reload(&place, extra), Ok);
        let directory = directory.unwrap_or_else(|_| self.directory(&place));
        let skills = directory.skills(&choices).into_iter().map(|(skill, enabled)| shown(skill, enabled));
        SkillsListEntry { cwd, skills: skills.collect(), errors: directory.errors() }
    }

    fn switch(&self, selector: &SkillSelector, enabled: bool) -> Result<bool, RuntimeError> {
        let name = match selector {
            SkillSelector::Path(path) => name_of(path).unwrap_or_default(),
            SkillSelector::Name(name) => name.clone(),
        };
        let path = match selector {
            SkillSelector::Path(path) => path.as_path(),
            SkillSelector::Name(_) => Path::new(""),
        };
        let stands = self.loader.set_skill(selector, (path, &name), enabled);
        let stands = stands.map_err(|error| RuntimeError::ConfigWrite(error.to_string()))?;
        self.rules_changed();
        Ok(stands)
    }
}

/// By working directory, as the client wrote it.
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

fn shown(skill: Skill, enabled: bool) -> SkillMetadata {
    SkillMetadata {
        name: skill.name,
        description: skill.description,
        short_description: skill.short_description,
        interface: skill.interface,
        dependencies: skill.dependencies,
        path: skill.path.to_string_lossy().into_owned(),
        scope: skill.scope,
        enabled,
    }
}
