//! One source of configuration.

use std::fmt;
use std::path::{Path, PathBuf};

use protocol::{AbsolutePath, ConfigLayerMetadata, ConfigLayerSource};
use toml::Table;
use workspace::Reader;

use crate::ConfigError;
use crate::keys::Keys;
use crate::paths::{PathBase, resolve_paths};
use crate::typed::{TypeMismatch, typed};

/// Limit of a settings file of the user or the machine.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// The values of one source, before merging. Its paths are absolute already.
#[derive(Clone)]
pub struct SettingsLayer {
    pub source: ConfigLayerSource,
    /// The folder with this layer's skills, rules, agents and hooks. None for session flags.
    pub folder: Option<PathBuf>,
    pub table: Table,
    /// Set if the layer is listed but has no effect.
    pub disabled_reason: Option<String>,
    /// The file that the table was read from, for error positions.
    file: Option<(PathBuf, String)>,
}

impl SettingsLayer {
    pub(crate) fn new(source: ConfigLayerSource, folder: Option<PathBuf>) -> Self {
        Self { source, folder, table: Table::new(), disabled_reason: None, file: None }
    }

    /// Reads the file into the layer; a missing file leaves it empty. Returns whether there was one.
    pub(crate) fn read(&mut self, path: &Path, base: PathBase<'_>) -> Result<bool, ConfigError> {
        let Some(text) = read_optional(path)? else { return Ok(false) };
        self.parse(path, text, base)?;
        Ok(true)
    }

    /// Takes the text of a file that was read already.
    pub(crate) fn parse(&mut self, path: &Path, text: String, base: PathBase<'_>) -> Result<(), ConfigError> {
        self.table = toml::from_str(&text).map_err(|error| ConfigError::in_file(path, &text, &error))?;
        resolve_paths(&mut self.table, base);
        self.file = Some((path.to_owned(), text));
        Ok(())
    }

    pub fn is_enabled(&self) -> bool {
        self.disabled_reason.is_none()
    }

    pub(crate) fn file(&self) -> Option<&Path> {
        self.file.as_ref().map(|(path, _)| path.as_path())
    }

    /// The text of the file, kept while the configuration is resolved.
    pub(crate) fn text(&self) -> Option<&str> {
        self.file.as_ref().map(|(_, text)| text.as_str())
    }

    /// The text is only needed while the configuration is resolved.
    pub(crate) fn forget_text(&mut self) {
        if let Some((_, text)) = &mut self.file {
            *text = String::new();
        }
    }

    pub(crate) fn metadata(&self) -> ConfigLayerMetadata {
        ConfigLayerMetadata { name: self.source.clone(), version: self.version() }
    }

    /// The error of this layer's values alone, with its position.
    fn fault(&self) -> Option<(String, ConfigError)> {
        let misfit = typed::<Keys>(&self.table).err()?;
        let error = match &self.file {
            Some((path, text)) => misfit.in_file(path, text),
            None => ConfigError::InvalidFlag { message: misfit.sentence() },
        };
        Some((misfit.message, error))
    }
}

impl fmt::Debug for SettingsLayer {
    /// Without the values, which may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Layer")
            .field("source", &self.source)
            .field("disabled_reason", &self.disabled_reason)
            .finish_non_exhaustive()
    }
}

/// Finds the layer with the invalid value: one with the same error, otherwise any with an error.
pub(crate) fn blame(layers: &[SettingsLayer], misfit: &TypeMismatch) -> ConfigError {
    let faults: Vec<_> =
        layers.iter().rev().filter(|layer| layer.is_enabled()).filter_map(SettingsLayer::fault).collect();
    let same = faults.iter().find(|(message, _)| *message == misfit.message);
    match same.or(faults.first()) {
        Some((_, fault)) => fault.clone(),
        None => ConfigError::value(misfit.sentence()),
    }
}

/// A file of ours or the user's. None if it does not exist.
pub(crate) fn read_optional(path: &Path) -> Result<Option<String>, ConfigError> {
    match Reader::default().read_text(path, MAX_FILE_BYTES) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.is_missing() => Ok(None),
        Err(error) => Err(ConfigError::unreadable(error)),
    }
}

/// A path for the wire, which requires absolute ones.
pub(crate) fn absolute_path(path: &Path) -> Result<AbsolutePath, ConfigError> {
    AbsolutePath::new(path.to_string_lossy())
        .ok_or_else(|| ConfigError::value(format!("{} is not an absolute path", path.display())))
}
