//! Skills, as clients list them.

use std::path::{Path, PathBuf};

use config::{ConfigError, LoadRequest, SkillSelector};
use protocol::{SkillErrorInfo, SkillMetadata, SkillsListEntry};

use super::Skill;
use super::cache::{SkillChoices, Skills};
use super::scan::name_of;

impl Skills {
    /// Scanned once, until a reload is requested or something changes.
    pub fn list(&self, cwd: String, force: bool, extra: &[PathBuf]) -> SkillsListEntry {
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

    /// Enables or disables a skill in the user's settings, for all threads and at once.
    pub fn switch(&self, selector: &SkillSelector, enabled: bool) -> Result<bool, ConfigError> {
        let name = match selector {
            SkillSelector::Path(path) => name_of(path).unwrap_or_default(),
            SkillSelector::Name(name) => name.clone(),
        };
        let path = match selector {
            SkillSelector::Path(path) => path.as_path(),
            SkillSelector::Name(_) => Path::new(""),
        };
        let stands = self.loader.set_skill(selector, (path, &name), enabled)?;
        self.rules_changed();
        Ok(stands)
    }
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
