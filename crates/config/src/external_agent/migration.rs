//! A home or a repository: the locations of the other agent's files and of ours.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use protocol::{
    ExternalAgentConfigMigrationItem as MigrationItem, ExternalAgentConfigMigrationItemType as ItemType,
};
use serde_json::Value;
use toml::Table;
use workspace::{Access, ReadError, Reader};

use super::folders::{copy_skill, missing_skills};
use super::inside::InnerFolder;
use super::rewrite::rewritten;
use super::{ExternalAgentError, trouble};
use crate::edit::{fill_config, missing_keys};
use crate::home::{Home, create_private};

/// Limit of a settings or instructions file.
const MAX_BYTES: u64 = 1 << 20;

#[derive(Debug, Clone)]
pub(super) struct Migration {
    /// Unset for the user's home.
    repository: Option<PathBuf>,
    /// Paths that are never read, even inside a repository.
    hidden: Vec<PathBuf>,
    settings_from: PathBuf,
    /// The files with our settings; the last one is written.
    settings_to: Vec<PathBuf>,
    skills_from: PathBuf,
    skills_to: PathBuf,
    /// The first one with content counts.
    instructions_from: Vec<PathBuf>,
    /// The files with our instructions; the last one is written.
    instructions_to: Vec<PathBuf>,
}

impl Migration {
    pub(super) fn home(user: &Path, home: &Home) -> Self {
        let theirs = user.join(".claude");
        let mut settings_to = vec![home.config_file(), home.own_config_file()];
        let mut instructions_to =
            [home.reading(), home.state()].map(|folder| folder.join("AGENTS.md")).to_vec();
        settings_to.dedup();
        instructions_to.dedup();
        Self {
            repository: None,
            hidden: Vec::new(),
            settings_from: theirs.join("settings.json"),
            settings_to,
            skills_from: theirs.join("skills"),
            skills_to: user.join(".agents/skills"),
            instructions_from: vec![theirs.join("CLAUDE.md")],
            instructions_to,
        }
    }

    pub(super) fn repository(root: &Path, home: &Home) -> Self {
        let theirs = root.join(".claude");
        Self {
            repository: Some(root.to_owned()),
            hidden: vec![home.reading().to_owned(), home.state().to_owned()],
            settings_from: theirs.join("settings.json"),
            settings_to: vec![root.join(".codex/config.toml")],
            skills_from: theirs.join("skills"),
            skills_to: root.join(".agents/skills"),
            instructions_from: vec![root.join("CLAUDE.md"), theirs.join("CLAUDE.md")],
            instructions_to: vec![root.join("AGENTS.md")],
        }
    }

    /// Items that the other agent has and we lack.
    pub(super) fn missing(&self) -> Result<Vec<MigrationItem>, ExternalAgentError> {
        let mut items = Vec::new();
        if !self.missing_settings()?.is_empty() {
            let description = taken("settings", &self.settings_from, last(&self.settings_to));
            items.push(self.item(ItemType::Config, description));
        }
        let skills = self.missing_skills()?;
        if !skills.is_empty() {
            let names = format!("skills ({})", skills.join(", "));
            items.push(self.item(ItemType::Skills, taken(&names, &self.skills_from, &self.skills_to)));
        }
        if let Some((from, _)) = self.missing_instructions()? {
            let description = taken("instructions", &from, last(&self.instructions_to));
            items.push(self.item(ItemType::AgentsMd, description));
        }
        Ok(items)
    }

    fn item(&self, item_type: ItemType, description: String) -> MigrationItem {
        let cwd = self.repository.as_ref().map(|root| root.to_string_lossy().into_owned());
        MigrationItem { item_type, description, cwd }
    }

    pub(super) fn take_over(&self, item_type: ItemType) -> Result<(), ExternalAgentError> {
        match item_type {
            ItemType::Config => {
                let missing = self.missing_settings()?;
                let target = last(&self.settings_to);
                if missing.is_empty() {
                    return Ok(());
                }
                match self.inner_folder(target)? {
                    None => fill_config(target, &missing),
                    Some(folder) => {
                        let file = folder.file(file_name(target)).map_err(|error| trouble(target, error))?;
                        fill_config(&file, &missing)
                    }
                }
                .map_err(ExternalAgentError::Write)
            }
            ItemType::Skills => self.missing_skills()?.iter().try_for_each(|name| self.copy_skill(name)),
            ItemType::AgentsMd => match self.missing_instructions()? {
                Some((_, text)) => self.write_instructions(last(&self.instructions_to), &rewritten(&text)),
                None => Ok(()),
            },
            // Never detected, so there is nothing to import.
            ItemType::McpServerConfig => Ok(()),
        }
    }

    fn missing_settings(&self) -> Result<Table, ExternalAgentError> {
        let Some(text) = self.read(&self.settings_from)? else { return Ok(Table::new()) };
        let settings: Value = serde_json::from_str(&text)
            .map_err(|error| trouble(&self.settings_from, format!("not JSON: {error}")))?;
        if !settings.is_object() {
            return Err(trouble(&self.settings_from, "not a JSON object"));
        }
        let files: Vec<&Path> = self.settings_to.iter().map(PathBuf::as_path).collect();
        missing_keys(&files, &translated(&settings)).map_err(ExternalAgentError::Settings)
    }

    fn missing_skills(&self) -> Result<Vec<String>, ExternalAgentError> {
        let reader = self.reader().map_err(|error| trouble(&self.skills_from, error.problem))?;
        missing_skills(&reader, &self.skills_from, &self.skills_to)
    }

    fn copy_skill(&self, name: &str) -> Result<(), ExternalAgentError> {
        let reader = self.reader().map_err(|error| trouble(&self.skills_from, error.problem))?;
        match self.inner_folder(&self.skills_to.join(name))? {
            None => copy_skill(&reader, &self.skills_from, &self.skills_to, name),
            Some(folder) => copy_skill(&reader, &self.skills_from, &folder.path(), name),
        }
    }

    /// In a repository, the folder of a file to be written. Links in the user's home are allowed.
    fn inner_folder(&self, path: &Path) -> Result<Option<InnerFolder>, ExternalAgentError> {
        let (Some(root), Some(folder)) = (&self.repository, path.parent()) else { return Ok(None) };
        InnerFolder::make(root, folder).map(Some).map_err(|error| trouble(folder, error))
    }

    /// Creates the file, or fills a blank one.
    fn write_instructions(&self, path: &Path, text: &str) -> Result<(), ExternalAgentError> {
        let written = match self.inner_folder(path)? {
            Some(folder) => folder.append(file_name(path), text),
            None => append(path, text),
        };
        written.map_err(|error| trouble(path, error))
    }

    /// A repository's files are read inside its root, without following links out of it.
    fn reader(&self) -> Result<Reader, ReadError> {
        match &self.repository {
            Some(root) => {
                let hidden = self.hidden.clone();
                Reader::new(Access { hidden, ..Access::default() }).beneath(root)
            }
            None => Ok(Reader::default()),
        }
    }

    /// The whole text; none if there is no file.
    fn read(&self, path: &Path) -> Result<Option<String>, ExternalAgentError> {
        match self.reader().and_then(|reader| reader.read_whole(path, MAX_BYTES)) {
            Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
            Err(error) if error.is_missing() => Ok(None),
            Err(error) => Err(trouble(path, error.problem)),
        }
    }

    /// The source file with its text, unless we have instructions already.
    fn missing_instructions(&self) -> Result<Option<(PathBuf, String)>, ExternalAgentError> {
        for path in &self.instructions_to {
            if self.read(path)?.is_some_and(|text| !text.trim().is_empty()) {
                return Ok(None);
            }
        }
        for path in &self.instructions_from {
            if let Some(text) = self.read(path)?.filter(|text| !text.trim().is_empty()) {
                return Ok(Some((path.clone(), text)));
            }
        }
        Ok(None)
    }
}

/// The description for display.
fn taken(what: &str, from: &Path, to: &Path) -> String {
    format!("Take {what} over from {} into {}", from.display(), to.display())
}

/// The last one, which is written.
fn last(paths: &[PathBuf]) -> &Path {
    paths.last().map_or(Path::new(""), PathBuf::as_path)
}

/// The settings with an equivalent here: variables of commands, and whether commands are sandboxed.
fn translated(settings: &Value) -> Table {
    let mut table = Table::new();
    if settings["sandbox"]["enabled"] == Value::Bool(true) {
        table.insert("sandbox_mode".to_owned(), "workspace-write".into());
    }
    let as_text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    };
    let variables = settings["env"].as_object().into_iter().flatten();
    let set: Table =
        variables.filter_map(|(name, value)| Some((name.clone(), as_text(value)?.into()))).collect();
    if !set.is_empty() {
        let mut policy = Table::new();
        policy.insert("inherit".to_owned(), "core".into());
        policy.insert("set".to_owned(), set.into());
        table.insert("shell_environment_policy".to_owned(), policy.into());
    }
    table
}

fn file_name(path: &Path) -> &Path {
    path.file_name().map_or(Path::new(""), Path::new)
}

/// Appends, so that anything written since the check stays in the file.
fn append(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        create_private(folder)?;
    }
    let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn settings_are_translated() {
        for (settings, expected) in [
            (json!({}), ""),
            (json!({"sandbox": {"enabled": false}, "env": {"A": null, "B": [1]}, "model": "x"}), ""),
            (json!({"sandbox": {"enabled": true}}), "sandbox_mode = \"workspace-write\""),
            (
                json!({"env": {"A": "x", "B": 2, "C": true}}),
                "shell_environment_policy = {inherit = \"core\", set = {A = \"x\", B = \"2\", C = \"true\"}}",
            ),
        ] {
            assert_eq!(translated(&settings), toml::from_str(expected).expect("TOML"), "{settings}");
        }
    }
}
