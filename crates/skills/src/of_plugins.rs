//! The skills of plugins, and the list of plugins for the model.

use std::path::Path;
use std::sync::Arc;

use config::{ResolvedConfig, SkillRules};
use engine::{PluginLine, PluginText};
use plugins::{InstalledPlugin, Manifest, plugin_apps, plugin_mcp_servers};
use protocol::SkillSummary;
use workspace::Access;

use super::cache::Skills;
use super::roots::{SkillProject, SkillRoot, roots_of};
use super::scan::scan;

/// Limit of a plugin's description, in characters.
const MAX_DESCRIPTION: usize = 1_024;

/// A plugin in the list for the model.
pub(super) fn line(plugin: &InstalledPlugin) -> PluginLine {
    let description = plugin.manifest.description.as_deref().unwrap_or_default();
    PluginLine {
        name: plugin.name().to_owned(),
        description: description.chars().take(MAX_DESCRIPTION).collect(),
    }
}

/// The contents of a plugin, for a message that mentions it. Reads its files.
pub(super) fn text(plugin: &InstalledPlugin, has_skills: bool) -> PluginText {
    let servers = plugin_mcp_servers(&plugin.folder, &plugin.manifest);
    let apps = plugin_apps(&plugin.folder, &plugin.manifest);
    PluginText {
        name: plugin.name().to_owned(),
        has_skills,
        servers: servers.into_iter().map(|(name, _)| name).collect(),
        apps: apps.into_iter().map(|app| app.name).collect(),
    }
}

impl Skills {
    /// Plugins were installed or removed: every directory is read again on next use.
    pub fn plugins_changed(&self) {
        self.forget_all();
    }

    /// The skills of the plugin in this folder, installed or not. Nothing outside the folder is read, not even through
    /// links.
    pub fn of_plugin(
        &self,
        config: &ResolvedConfig,
        folder: &Path,
        plugin: &str,
        manifest: &Manifest,
    ) -> Vec<SkillSummary> {
        let project = Arc::new(SkillProject { root: folder.to_owned(), access: Access::default() });
        let roots = roots_of(folder, manifest.name.as_deref().unwrap_or(plugin), manifest).into_iter();
        let roots: Vec<_> = roots.map(|root| SkillRoot { project: Some(project.clone()), ..root }).collect();
        let found = scan(&roots);
        let (session, user) = (config.session_skill_rules(), config.skill_rules());
        let is_on = |skill: &super::Skill| {
            let verdict = |rules: &SkillRules| rules.verdict(&skill.path, &skill.name);
            verdict(&session).or_else(|| verdict(&user)).unwrap_or(true)
        };
        let summary = |skill: &super::Skill| SkillSummary {
            name: skill.name.clone(),
            description: skill.description.clone(),
            short_description: skill.short_description.clone(),
            interface: skill.interface.clone(),
            path: skill.path.to_string_lossy().into_owned(),
            enabled: is_on(skill),
        };
        found.skills.iter().map(summary).collect()
    }
}
