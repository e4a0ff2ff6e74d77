//! Which skills are enabled: `[[skills.config]]` and `skills.bundled.enabled`.

use std::fs;
use std::path::{Path, PathBuf};

use protocol::ConfigLayerSource;
use toml::{Table, Value};

use crate::edit::{self, remove_rule, set_rule};
use crate::paths::{PathBase, absolute};
use crate::{ConfigError, LoadRequest, Loader, ResolvedConfig, SettingsLayer};

/// The file that identifies a skill.
const FILE: &str = "SKILL.md";

/// Which skills a rule is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SkillSelector {
    /// The resolved path of its `SKILL.md`.
    Path(PathBuf),
    /// Every skill of this name.
    Name(String),
}

impl SkillSelector {
    /// Follows links; the folder of a skill means its `SKILL.md`.
    pub fn path(path: &Path) -> Self {
        let file = if path.is_dir() { path.join(FILE) } else { path.to_owned() };
        Self::Path(fs::canonicalize(&file).unwrap_or(file))
    }
}

/// Rules in the order they were read: the last match counts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SkillRules(Vec<(SkillSelector, bool)>);

impl SkillRules {
    /// The verdict of the last rule that matches, if there is one.
    pub fn verdict(&self, path: &Path, name: &str) -> Option<bool> {
        let fits = |selector: &SkillSelector| match selector {
            SkillSelector::Path(of) => of == path,
            SkillSelector::Name(of) => of == name,
        };
        self.0.iter().rev().find(|(selector, _)| fits(selector)).map(|(_, enabled)| *enabled)
    }

    fn read(table: &Table, base: PathBase<'_>) -> Self {
        let rules = table.get("skills").and_then(|skills| skills.get("config")).and_then(Value::as_array);
        let rule = |rule: &Value| {
            let text = |key| rule.get(key).and_then(Value::as_str);
            Some((selector_of(text("path"), text("name"), base)?, rule.get("enabled")?.as_bool()?))
        };
        Self(rules.into_iter().flatten().filter_map(rule).collect())
    }

    fn of_layers<'a>(layers: impl Iterator<Item = &'a SettingsLayer>) -> Self {
        // Paths of layers are absolute already.
        let base = PathBase { folder: Path::new("/"), user: None };
        Self(layers.flat_map(|layer| Self::read(&layer.table, base).0).collect())
    }
}

/// None for a rule with both or neither.
pub(crate) fn selector_of(
    path: Option<&str>,
    name: Option<&str>,
    base: PathBase<'_>,
) -> Option<SkillSelector> {
    match (path, name.map(str::trim)) {
        (Some(path), None) if !path.is_empty() => Some(SkillSelector::path(&absolute(path, base))),
        (None, Some(name)) if !name.is_empty() => Some(SkillSelector::Name(name.to_owned())),
        _ => None,
    }
}

impl ResolvedConfig {
    /// The user's rules. Those of projects do not count.
    pub fn skill_rules(&self) -> SkillRules {
        SkillRules::of_layers(self.layers.iter().filter(|layer| is_user(layer)))
    }

    /// The rules of flags and of the request, which come after the user's.
    pub fn session_skill_rules(&self) -> SkillRules {
        SkillRules::of_layers(self.layers.iter().filter(|layer| is_session(layer)))
    }

    /// Whether the bundled skills are enabled.
    pub fn bundled_skills(&self) -> bool {
        let skills = self.merged.get("skills");
        let enabled =
            skills.and_then(|skills| skills.get("bundled")).and_then(|bundled| bundled.get("enabled"));
        enabled.and_then(Value::as_bool).unwrap_or(true)
    }
}

impl Loader {
    /// Enables or disables skills in the settings file that we may write, and returns their new state. Enabling removes
    /// rules; an enabling rule is written only if another would still disable the skill. `known` are the path and name
    /// of the skill.
    pub fn set_skill(
        &self,
        selector: &SkillSelector,
        known: (&Path, &str),
        enabled: bool,
    ) -> Result<bool, ConfigError> {
        let config = self.load(&LoadRequest::default())?;
        let own = self.home().own_config_file();
        let user = self.user_home();
        let base = PathBase { folder: self.home().state(), user: user.as_deref() };
        let others = config.layers.iter().filter(|layer| is_user(layer) && layer.file() != Some(&own));
        let others = SkillRules::of_layers(others);
        let session = config.session_skill_rules();
        edit::edit(self.home(), |document| {
            let stand = |text: String| -> Result<bool, ConfigError> {
                let table: Table =
                    toml::from_str(&text).map_err(|error| ConfigError::in_file(&own, &text, &error))?;
                let own = SkillRules::read(&table, base);
                let (path, name) = known;
                let verdicts = [&session, &own, &others].map(|rules| rules.verdict(path, name));
                Ok(verdicts.into_iter().flatten().next().unwrap_or(true))
            };
            remove_rule(document, selector, base)?;
            if !enabled || !stand(document.to_string())? {
                set_rule(document, selector, enabled)?;
            }
            stand(document.to_string())
        })
    }
}

fn is_user(layer: &SettingsLayer) -> bool {
    matches!(layer.source, ConfigLayerSource::User { .. })
}

fn is_session(layer: &SettingsLayer) -> bool {
    matches!(layer.source, ConfigLayerSource::SessionFlags)
}
