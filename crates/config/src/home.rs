//! The locations of our files.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf, absolute};

use crate::ConfigError;

/// The folder with settings, and the folder with our own files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    reading: PathBuf,
    state: PathBuf,
}

impl Home {
    const OWN_VARIABLE: &'static str = "OARLOCK_HOME";
    const SHARED_VARIABLE: &'static str = "CODEX_HOME";

    /// `OARLOCK_HOME` (created if missing), else `CODEX_HOME` (which must exist; our own files are in its subfolder
    /// `oarlock`), else `~/.oarlock`.
    pub fn find(env: &dyn Fn(&str) -> Option<OsString>) -> Result<Self, ConfigError> {
        Self::find_or(env, IfMissing::IsMade)
    }

    fn find_or(env: &dyn Fn(&str) -> Option<OsString>, missing: IfMissing) -> Result<Self, ConfigError> {
        let set = |name: &str| env(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        if let Some(path) = set(Self::OWN_VARIABLE) {
            let refuse = |problem: String| ConfigError::Home {
                variable: Self::OWN_VARIABLE,
                path: path.clone(),
                problem,
            };
            if missing == IfMissing::IsMade {
                create_private(&path).map_err(|error| refuse(format!("cannot be made: {error}")))?;
            }
            let folder = match path.canonicalize() {
                Err(error) if missing == IfMissing::Stays && error.kind() == ErrorKind::NotFound => {
                    absolute(&path)
                }
                Ok(found) if !found.is_dir() => return Err(refuse("is not a directory".to_owned())),
                found => found,
            };
            return Ok(Self::at(folder.map_err(|error| refuse(format!("cannot be used: {error}")))?));
        }
        if let Some(path) = set(Self::SHARED_VARIABLE) {
            let refuse = |problem: String| ConfigError::Home {
                variable: Self::SHARED_VARIABLE,
                path: path.clone(),
                problem,
            };
            let reading = path.canonicalize().map_err(|error| refuse(format!("cannot be used: {error}")))?;
            if !reading.is_dir() {
                return Err(refuse("is not a directory".to_owned()));
            }
            return Ok(Self { state: reading.join("oarlock"), reading });
        }
        let user = set("HOME").filter(|path| path.is_absolute());
        user.map(|user| Self::at(user.join(".oarlock"))).ok_or(ConfigError::NoHome)
    }

    /// As [`Home::find`], in the environment of this process.
    pub fn from_env() -> Result<Self, ConfigError> {
        Self::find(&variable)
    }

    /// Like [`Home::from_env`], without creating anything.
    pub fn look_from_env() -> Result<Self, ConfigError> {
        Self::find_or(&variable, IfMissing::Stays)
    }

    /// One folder for both. It need not exist.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        let folder = folder.into();
        Self { reading: folder.clone(), state: folder }
    }

    /// The folder of config.toml, AGENTS.md, skills and rules. Reported to clients as `codexHome`.
    pub fn reading(&self) -> &Path {
        &self.reading
    }

    /// The folder of our own files. Writers create it with [`Home::create_state`].
    pub fn state(&self) -> &Path {
        &self.state
    }

    /// Creates the state folder, for its owner only.
    pub fn create_state(&self) -> Result<(), ConfigError> {
        create_private(&self.state).map_err(|error| ConfigError::write(&self.state, error))
    }

    /// The user's settings.
    pub fn config_file(&self) -> PathBuf {
        self.reading.join("config.toml")
    }

    /// The settings file that we may write: the user's, or a separate one if the user's belongs to another program.
    pub fn own_config_file(&self) -> PathBuf {
        self.state.join("config.toml")
    }

    /// The stored API key.
    pub fn credentials_file(&self) -> PathBuf {
        self.state.join("credentials.json")
    }
}

/// What to do if a named folder does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IfMissing {
    IsMade,
    Stays,
}

/// A variable of this process.
fn variable(name: &str) -> Option<OsString> {
    let value = std::env::var_os(name);
    // If HOME is unset, the system may still know the user's folder.
    if name == "HOME" { value.or_else(|| Some(std::env::home_dir()?.into_os_string())) } else { value }
}

/// Mode 0700 for every folder that is new, whatever the umask.
pub(crate) fn create_private(folder: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}
