//! Project layers: which folders have one, which are trusted, and which settings apply.

use std::fs;
use std::path::{Path, PathBuf};

use policy::RuleFile;
use protocol::ConfigLayerSource;
use toml::{Table, Value};
use workspace::{Access, READ_LIMIT, ReadError, Reader, within};

use crate::hook_file::{HOOKS, MAX_HOOK_BYTES};
use crate::layer::{SettingsLayer, absolute_path};
use crate::paths::{PathBase, normalize};
use crate::review::{Own, Review, digest, restrict, shorten};
use crate::rule_file::read_rules;
use crate::{ConfigError, Home, HookFile, HookOrigin, SettingWarning, Trust, git};

const FOLDER: &str = ".codex";
const FILE: &str = "config.toml";
const RULES: &str = "rules";

/// Far more than any real settings file.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The inputs for reading a project. Owned, because it is read on a separate thread.
#[derive(Debug, Clone)]
pub(crate) struct ProjectPlan {
    pub(crate) cwd: PathBuf,
    pub(crate) markers: Vec<String>,
    /// The merged values of all layers except projects'.
    pub(crate) settings: Table,
    pub(crate) home: Home,
    /// The user's home folder.
    pub(crate) user: Option<PathBuf>,
}

/// A project as it was read.
#[derive(Debug)]
pub(crate) struct FoundProject {
    pub(crate) root: PathBuf,
    pub(crate) trust: Option<Trust>,
    pub(crate) layers: Vec<SettingsLayer>,
    pub(crate) rules: Vec<RuleFile>,
    pub(crate) hooks: Vec<HookFile>,
    /// Settings of the layers that exceed the user's own.
    pub(crate) reviews: Vec<Review>,
}

impl ProjectPlan {
    /// Reads everything, within a time limit: the file system may hang.
    pub(crate) fn read(self) -> Result<FoundProject, ConfigError> {
        let cwd = self.cwd.clone();
        within(&cwd, READ_LIMIT, move || TrustFolders::new(&self).read()).map_err(ConfigError::unreadable)?
    }
}

/// The working directory and the folders under which its trust is looked up.
#[derive(Debug)]
struct TrustFolders<'a> {
    plan: &'a ProjectPlan,
    root: PathBuf,
    git_root: Option<PathBuf>,
    /// `[projects]`, from layers that no project can write.
    decisions: Option<&'a Table>,
}

impl<'a> TrustFolders<'a> {
    fn new(plan: &'a ProjectPlan) -> Self {
        Self {
            root: git::marked_ancestor(&plan.cwd, &plan.markers).unwrap_or(&plan.cwd).to_owned(),
            git_root: git::repository_root(&plan.cwd),
            decisions: plan.settings.get("projects").and_then(Value::as_table),
            plan,
        }
    }

    /// One layer for each folder from the root to the working directory with its own settings.
    fn read(self) -> Result<FoundProject, ConfigError> {
        let mut found = FoundProject {
            root: self.root.clone(),
            trust: self.trust(),
            layers: Vec::new(),
            rules: Vec::new(),
            hooks: Vec::new(),
            reviews: Vec::new(),
        };
        let access = Access { hidden: hidden(&self.plan.home, &self.root), ..Access::default() };
        // A missing folder has no settings.
        let Ok(reader) = Reader::new(access).beneath(&self.root) else { return Ok(found) };
        let mut folders: Vec<&Path> =
            self.plan.cwd.ancestors().take_while(|folder| folder.starts_with(&self.root)).collect();
        folders.reverse();
        for folder in folders {
            let settings = folder.join(FOLDER);
            let kind = reader.find(&settings);
            let is_there = match &kind {
                Ok(found) => found.metadata.is_dir(),
                Err(error) => error.is_refused(),
            };
            if is_there && !is_home(&settings, &self.plan.home) {
                self.layer(folder, &reader, kind.err(), &mut found)?;
            }
        }
        Ok(found)
    }

    /// Trust is determined before anything in the folder is read.
    fn layer(
        &self,
        folder: &Path,
        reader: &Reader,
        refused: Option<ReadError>,
        found: &mut FoundProject,
    ) -> Result<(), ConfigError> {
        let settings = folder.join(FOLDER);
        let source = ConfigLayerSource::Project { dot_codex_folder: absolute_path(&settings)? };
        let mut layer = SettingsLayer::new(source, Some(settings.clone()));
        // Rules matter too: one that allows a command removes the sandbox.
        let has_a_say = [FILE, RULES, HOOKS].iter().any(|name| reader.has_entry(&settings, name));
        if let Some(error) = refused {
            layer.disabled_reason = Some(format!("{error}. Put the settings into the project itself."));
        } else if has_a_say && !self.is_trusted(folder) {
            layer.disabled_reason = Some(format!(
                "{} is not a trusted project. To use its settings, add it to {} with trust_level = \"trusted\" \
                 under [projects.\"{}\"].",
                folder.display(),
                self.plan.home.config_file().display(),
                self.root.display(),
            ));
        } else if has_a_say {
            self.fill(&mut layer, &settings, reader, found)?;
        }
        found.layers.push(layer);
        Ok(())
    }

    /// Reads a trusted layer. Settings that exceed the user's apply only if the user has reviewed exactly this content.
    fn fill(
        &self,
        layer: &mut SettingsLayer,
        settings: &Path,
        reader: &Reader,
        found: &mut FoundProject,
    ) -> Result<(), ConfigError> {
        let file = settings.join(FILE);
        let base = PathBase { folder: settings, user: self.plan.user.as_deref() };
        match reader.read_text(&file, MAX_FILE_BYTES) {
            Ok(text) => layer.parse(&file, text, base)?,
            Err(error) if error.is_missing() => {}
            Err(error) if error.is_refused() => {
                layer.disabled_reason = Some(format!("{error}. Put the settings into the project itself."));
                return Ok(());
            }
            Err(error) => return Err(ConfigError::unreadable(error)),
        }
        let rules = read_rules(reader, &settings.join(RULES));
        let hooks = match reader.read_text(&settings.join(HOOKS), MAX_HOOK_BYTES) {
            Ok(text) => Some(Ok(text)),
            Err(error) if error.is_missing() => None,
            Err(error) => Some(Err(error.to_string())),
        };
        let text = hooks.as_ref().map(|text| text.as_deref().unwrap_or_default());
        let digest = digest(layer.text(), &rules, text);
        let is_reviewed = self.reviewed(settings).is_some_and(|reviewed| reviewed == digest);
        let own = Own {
            settings: &self.plan.settings,
            trust: self.trust(),
            root: &self.root,
            home: &self.plan.home,
        };
        let asked = match is_reviewed {
            true => Vec::new(),
            false => restrict(&mut layer.table, &own),
        };
        let hooks = hooks.map(|text| HookFile {
            is_accepted: is_reviewed,
            ..HookFile::new(settings.join(HOOKS), HookOrigin::Project, text)
        });
        let asked = asked_with(asked, hooks.as_ref().filter(|_| !is_reviewed));
        found.hooks.extend(hooks);
        let (folder, root) = (settings.to_owned(), self.root.clone());
        let review = Review { settings: folder, root, digest, asked, rules: rules.clone() };
        let accept = review.how_to_accept(&self.plan.home);
        let rule = |rule: RuleFile| RuleFile { accept: (!is_reviewed).then(|| accept.clone()), ..rule };
        let has_rules = !rules.is_empty();
        found.rules.extend(rules.into_iter().map(rule));
        if !is_reviewed && (has_rules || !review.asked.is_empty()) {
            found.reviews.push(review);
        }
        Ok(())
    }

    /// The trust decision for defaults: about the working directory itself, else about its repository.
    fn trust(&self) -> Option<Trust> {
        self.decision(&self.plan.cwd).or_else(|| self.decision(self.git_root.as_deref()?))
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

    /// The digest of the content that the user has reviewed for this settings folder.
    fn reviewed(&self, settings: &Path) -> Option<&'a str> {
        let of_project = |project: &'a Value| project.get("reviewed")?.get(settings.to_str()?)?.as_str();
        self.decisions?.values().find_map(of_project)
    }
}

/// Hooks run programs at any moment, so all of them need a review.
fn asked_with(mut asked: Vec<String>, hooks: Option<&HookFile>) -> Vec<String> {
    let Some(hooks) = hooks else { return asked };
    let commands = hooks.commands();
    if commands.is_empty() {
        asked.push(HOOKS.to_owned());
    }
    asked.extend(commands.iter().map(|command| format!("{HOOKS} runs {}", shorten(command))));
    asked
}

/// Paths from which a project must not read settings: our own folders, and always the keys.
fn hidden(home: &Home, root: &Path) -> Vec<PathBuf> {
    let mut hidden =
        vec![home.credentials_file(), home.reading().join("auth.json"), home.state().join("auth.json")];
    let folders = [home.reading(), home.state()];
    hidden.extend(folders.into_iter().filter(|folder| !root.starts_with(folder)).map(Path::to_owned));
    hidden
}

/// The project of a named file: `root`, if the file is in it and not our own.
pub(crate) fn project_of<'a>(path: &Path, root: Option<&'a Path>, home: &Home) -> Option<&'a Path> {
    let is_own = path.starts_with(home.reading()) || path.starts_with(home.state());
    root.filter(|root| path.starts_with(root) && !is_own)
}

/// Reads a text file named by a setting. One in the project is read with the project's limits.
pub(crate) fn read_named(path: &Path, root: Option<&Path>, home: &Home) -> Result<String, ReadError> {
    let reader = match project_of(path, root, home) {
        Some(root) => {
            Reader::new(Access { hidden: hidden(home, root), ..Access::default() }).beneath(root)?
        }
        None => Reader::default(),
    };
    let named = path.to_owned();
    within(path, READ_LIMIT, move || reader.read_text(&named, MAX_FILE_BYTES))?
}

/// `project_root_markers`; a list of the wrong kind is refused later, with its position.
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

/// One warning for all project folders whose settings have no effect.
pub(crate) fn untrusted_warning(layers: &[SettingsLayer]) -> Option<SettingWarning> {
    let mut reasons = Vec::new();
    for layer in layers.iter().filter(|layer| matches!(layer.source, ConfigLayerSource::Project { .. })) {
        reasons.extend(layer.disabled_reason.as_deref());
    }
    (!reasons.is_empty()).then(|| {
        let summary =
            "The settings of some project folders are not used, because the folders are not trusted.";
        SettingWarning::with_details(summary, reasons.join("\n"))
    })
}
