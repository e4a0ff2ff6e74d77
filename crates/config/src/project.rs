//! Project layers: which folders have one, and which of them are trusted.

use std::fs;
use std::path::{Path, PathBuf};

use protocol::ConfigLayerSource;
use serde::Deserialize;
use toml::{Table, Value};

use crate::layer::{Layer, absolute_path};
use crate::paths::{Base, normalize};
use crate::{ConfigError, ConfigWarning, Home, git};

const FOLDER: &str = ".codex";
const FILE: &str = "config.toml";
const RULES: &str = "rules";

/// What the user decided about a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Trust {
    Trusted,
    Untrusted,
}

/// The working directory and the folders that stand for it when trust is looked up.
#[derive(Debug)]
pub(crate) struct Project<'a> {
    cwd: &'a Path,
    root: PathBuf,
    git_root: Option<PathBuf>,
    /// `[projects]`, from layers that no project can write.
    decisions: Option<&'a Table>,
}

impl<'a> Project<'a> {
    /// `settings` are the merged values of all layers but those of projects.
    pub(crate) fn new(cwd: &'a Path, markers: &[String], settings: &'a Table) -> Self {
        Self {
            cwd,
            root: git::marked_ancestor(cwd, markers).unwrap_or(cwd).to_owned(),
            git_root: git::repository_root(cwd),
            decisions: settings.get("projects").and_then(Value::as_table),
        }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The decision that defaults depend on: about the working directory itself, or else about its repository.
    pub(crate) fn trust(&self) -> Option<Trust> {
        self.decision(self.cwd).or_else(|| self.decision(self.git_root.as_deref()?))
    }

    /// One layer for each folder from the root down to the working directory that has settings of its own.
    pub(crate) fn layers(&self, home: &Home, user: Option<&Path>) -> Result<Vec<Layer>, ConfigError> {
        let mut folders: Vec<&Path> =
            self.cwd.ancestors().take_while(|folder| folder.starts_with(&self.root)).collect();
        folders.reverse();
        folders
            .into_iter()
            .filter(|folder| folder.join(FOLDER).is_dir() && !is_home(&folder.join(FOLDER), home))
            .map(|folder| self.layer(folder, home, user))
            .collect()
    }

    fn layer(&self, folder: &Path, home: &Home, user: Option<&Path>) -> Result<Layer, ConfigError> {
        let settings = folder.join(FOLDER);
        let source = ConfigLayerSource::Project { dot_codex_folder: absolute_path(&settings)? };
        let mut layer = Layer::new(source, Some(settings.clone()));
        let read = layer.read(&settings.join(FILE), Base { folder: &settings, user });
        // Rules alone have a say as well: one that allows a command takes the walls around it away.
        let has_a_say = !matches!(read, Ok(false)) || settings.join(RULES).exists();
        if has_a_say && !self.is_trusted(folder) {
            layer.disabled_reason = Some(format!(
                "{} is not a trusted project. To use its settings, add it to {} with trust_level = \"trusted\" \
                 under [projects.\"{}\"].",
                folder.display(),
                home.config_file().display(),
                self.root.display(),
            ));
            return Ok(layer);
        }
        read.map(|_| layer)
    }

    fn is_trusted(&self, folder: &Path) -> bool {
        let decision = self
            .decision(folder)
            .or_else(|| self.decision(&self.root))
            .or_else(|| self.decision(self.git_root.as_deref()?));
        decision == Some(Trust::Trusted)
    }

    fn decision(&self, folder: &Path) -> Option<Trust> {
        let decisions = self.decisions?;
        let at = |path: &Path| match decisions.get(path.to_str()?)?.get("trust_level")?.as_str()? {
            "trusted" => Some(Trust::Trusted),
            "untrusted" => Some(Trust::Untrusted),
            _ => None,
        };
        at(folder).or_else(|| at(&normalize(folder))).or_else(|| at(&fs::canonicalize(folder).ok()?))
    }
}

/// `project_root_markers`; a list of the wrong kind is refused later, with its place.
pub(crate) fn markers(settings: &Table) -> Vec<String> {
    match settings.get("project_root_markers").and_then(Value::as_array) {
        Some(markers) => markers.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        None => vec![".git".to_owned()],
    }
}

fn is_home(folder: &Path, home: &Home) -> bool {
    folder == home.reading()
        || matches!((fs::canonicalize(folder), fs::canonicalize(home.reading())), (Ok(a), Ok(b)) if a == b)
}

/// One warning for all project folders whose settings are not used.
pub(crate) fn untrusted_warning(layers: &[Layer]) -> Option<ConfigWarning> {
    let mut reasons = Vec::new();
    for layer in layers.iter().filter(|layer| matches!(layer.source, ConfigLayerSource::Project { .. })) {
        reasons.extend(layer.disabled_reason.as_deref());
    }
    (!reasons.is_empty()).then(|| {
        let summary =
            "The settings of some project folders are not used, because the folders are not trusted.";
        ConfigWarning::with_details(summary, reasons.join("\n"))
    })
}
