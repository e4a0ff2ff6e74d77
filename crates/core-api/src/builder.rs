//! How a manager is set up.

use std::ffi::OsString;
use std::path::PathBuf;

use runtime::config::{Env, Home, Loader, LoaderOptions};
use serde_json::Value;

use crate::error::ManagerError;
use crate::manager::ThreadManager;

/// Choices for a [`ThreadManager`]. Whatever is left out is as for the `oarlock` program.
#[derive(Debug, Clone, Default)]
#[must_use = "nothing happens before `build`"]
pub struct ThreadManagerBuilder {
    home: Option<PathBuf>,
    flags: Vec<(String, String)>,
    environment: Option<Env>,
    client_name: Option<String>,
}

impl ThreadManagerBuilder {
    /// The folder of settings and records. Unset: `OARLOCK_HOME`, else `CODEX_HOME`, else `~/.oarlock`.
    ///
    /// Several managers and programs may share a home; a thread is open in one of them at a time.
    pub fn home(mut self, folder: impl Into<PathBuf>) -> Self {
        self.home = Some(folder.into());
        self
    }

    /// The provider of new threads that choose none. `offline` needs no key and no network.
    pub fn provider(self, id: impl Into<String>) -> Self {
        self.config("model_provider", id.into())
    }

    /// The model of new threads that choose none.
    pub fn model(self, name: impl Into<String>) -> Self {
        self.config("model", name.into())
    }

    /// Sets a key of the configuration for all threads, above what the files say. Later ones win.
    pub fn config(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        // JSON's way to write texts, numbers, lists and booleans is TOML's as well.
        self.flags.push((key.into(), value.into().to_string()));
        self
    }

    /// As [`ThreadManagerBuilder::config`], with the value as `-c key=value` of the program has it.
    pub fn flag(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.flags.push((key.into(), value.into()));
        self
    }

    /// Reads keys and settings from these variables instead of those of the process.
    ///
    /// Commands of the agent still inherit the environment of the process.
    pub fn environment<N: Into<String>, V: Into<OsString>>(
        mut self,
        variables: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        self.environment = Some(Env::fixed(variables));
        self
    }

    /// The name of your program, as providers and the records of threads have it.
    pub fn client_name(mut self, name: impl Into<String>) -> Self {
        self.client_name = Some(name.into());
        self
    }

    /// Makes the manager. Reads and writes nothing; a folder that `OARLOCK_HOME` names is made when it is missing.
    pub fn build(self) -> Result<ThreadManager, ManagerError> {
        let home = match self.home {
            Some(folder) => Home::at(
                std::path::absolute(&folder)
                    .map_err(|error| ManagerError::Home(format!("{}: {error}", folder.display())))?,
            ),
            None => Home::from_env().map_err(|error| ManagerError::Home(error.to_string()))?,
        };
        let mut options = LoaderOptions::default();
        if let Some(environment) = self.environment {
            options.environment = environment;
        }
        Ok(ThreadManager::new(Loader::new(home, self.flags, options), self.client_name))
    }
}
