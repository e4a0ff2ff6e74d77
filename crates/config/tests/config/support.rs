//! A made-up machine: a home, a system folder, a project and an environment, all below one temporary folder.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use oarlock_config::{
    ConfigError, Env, Home, LoadRequest, Loader, LoaderOptions, RequestOverrides, ResolvedConfig, parse_flag,
};
use serde_json::Value;
use tempfile::TempDir;

pub(crate) struct Machine {
    folder: TempDir,
    pub(crate) flags: Vec<String>,
    pub(crate) variables: BTreeMap<String, String>,
    pub(crate) profile: Option<String>,
    pub(crate) config: BTreeMap<String, Value>,
    pub(crate) overrides: RequestOverrides,
    pub(crate) runtime_features: BTreeMap<String, bool>,
    /// Below the temporary folder.
    pub(crate) cwd: Option<&'static str>,
}

impl Machine {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::create_dir(folder.path().join("base")).expect("a home");
        Self {
            folder,
            flags: Vec::new(),
            variables: BTreeMap::new(),
            profile: None,
            config: BTreeMap::new(),
            overrides: RequestOverrides::default(),
            runtime_features: BTreeMap::new(),
            cwd: None,
        }
    }

    /// With the user's config file.
    pub(crate) fn with(config: &str) -> Self {
        Self::new().file("base/config.toml", config)
    }

    /// `$` in the text stands for the temporary folder.
    pub(crate) fn file(self, path: &str, text: &str) -> Self {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
        fs::write(path, self.text(text)).expect("a file");
        self
    }

    pub(crate) fn dir(self, path: &str) -> Self {
        fs::create_dir_all(self.path(path)).expect("a folder");
        self
    }

    pub(crate) fn flag(mut self, flag: &str) -> Self {
        self.flags.push(self.text(flag));
        self
    }

    pub(crate) fn request(mut self, key: &str, value: Value) -> Self {
        self.config.insert(key.to_owned(), value);
        self
    }

    pub(crate) fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.insert(name.to_owned(), value.to_owned());
        self
    }

    pub(crate) fn profile(mut self, name: &str) -> Self {
        self.profile = Some(name.to_owned());
        self
    }

    pub(crate) fn cwd(mut self, cwd: &'static str) -> Self {
        self.cwd = Some(cwd);
        self
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    pub(crate) fn text(&self, text: &str) -> String {
        text.replace('$', &self.folder.path().to_string_lossy())
    }

    /// The text with the temporary folder written as `$`.
    pub(crate) fn plain(&self, text: impl std::fmt::Display) -> String {
        text.to_string().replace(&*self.folder.path().to_string_lossy(), "$")
    }

    pub(crate) fn env(&self) -> Env {
        Env::fixed(self.variables.clone())
    }

    pub(crate) fn loader(&self) -> Loader {
        let flags = self.flags.iter().map(|flag| parse_flag(flag).expect("a flag"));
        let options = LoaderOptions {
            system_file: Some(self.path("etc/config.toml")),
            managed_file: Some(self.path("etc/managed_config.toml")),
            requirements_file: Some(self.path("etc/requirements.toml")),
            environment: self.env(),
        };
        let loader = Loader::new(Home::at(self.path("base")), flags.collect(), options);
        loader.set_runtime_features(&self.runtime_features).expect("flags that clients may switch");
        loader
    }

    pub(crate) fn cwd_path(&self) -> Option<PathBuf> {
        self.cwd.map(|cwd| self.path(cwd))
    }

    pub(crate) fn try_load(&self) -> Result<ResolvedConfig, ConfigError> {
        self.loader().load(&LoadRequest {
            cwd: self.cwd_path(),
            profile: self.profile.clone(),
            config: Some(&self.config),
            overrides: self.overrides.clone(),
        })
    }

    pub(crate) fn load(&self) -> ResolvedConfig {
        self.try_load().expect("a configuration")
    }

    pub(crate) fn error(&self) -> String {
        self.plain(self.try_load().expect_err("an error"))
    }

    pub(crate) fn warnings(&self) -> Vec<String> {
        self.load().warnings.iter().map(|warning| self.plain(&warning.summary)).collect()
    }

    pub(crate) fn model(&self) -> String {
        self.load().model.name.unwrap_or_default()
    }
}

/// A value as JSON.
pub(crate) fn json(value: impl serde::Serialize) -> Value {
    serde_json::to_value(value).expect("JSON")
}

#[cfg(unix)]
pub(crate) fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    fs::metadata(path).expect("metadata").permissions().mode() & 0o777
}
