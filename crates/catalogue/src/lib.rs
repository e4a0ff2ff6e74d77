//! Owns the catalogue of models: their names, their properties, and the default. Must not know providers, threads or
//! how requests are sent.

mod bundled;
mod entry;
mod file;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

use protocol::ModelListResponse;
use workspace::Reader;

pub use entry::{ApplyPatchType, Instructions, ModelEntry, Overrides, ShellType, Upgrade, WebSearchContent};

/// Limit of a catalogue file, including instructions.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// Never empty, and ordered by priority.
#[derive(Debug, Clone, PartialEq)]
pub struct Catalogue {
    entries: Vec<ModelEntry>,
}

/// Why the catalogue or the page is invalid.
#[derive(Debug, thiserror::Error)]
pub enum CatalogueError {
    #[error("invalid cursor: {0}")]
    InvalidCursor(String),
    #[error("cursor {cursor} exceeds total models {total}")]
    CursorTooLarge { cursor: usize, total: usize },
    #[error("cannot read the model catalogue {}: {reason}", path.display())]
    Unreadable { path: PathBuf, reason: std::io::Error },
    #[error("the model catalogue {} is not valid: {reason}", path.display())]
    Invalid { path: PathBuf, reason: String },
}

impl Catalogue {
    /// The built-in catalogue.
    pub fn bundled() -> Self {
        Self { entries: bundled::ROWS.iter().map(ModelEntry::from).collect() }
    }

    /// The models of a `model_catalog_json` file, and no others.
    pub fn from_file(path: &Path) -> Result<Self, CatalogueError> {
        let invalid = |reason: String| CatalogueError::Invalid { path: path.to_owned(), reason };
        let bytes = Reader::default()
            .read_whole(path, MAX_FILE_BYTES)
            .map_err(|error| CatalogueError::Unreadable { path: path.to_owned(), reason: error.into_io() })?;
        let file: file::CatalogueFile =
            serde_json::from_slice(&bytes).map_err(|reason| invalid(reason.to_string()))?;
        if let Some(problem) = file.models.iter().find_map(file::FileEntry::problem) {
            return Err(invalid(problem));
        }
        let mut entries: Vec<_> = file.models.into_iter().map(file::FileEntry::into_entry).collect();
        let mut seen = HashSet::new();
        if let Some(twice) = entries.iter().find(|entry| !seen.insert(&entry.slug)) {
            return Err(invalid(format!("the model `{}` is there twice", twice.slug)));
        }
        if entries.is_empty() {
            return Err(invalid("it names no models".to_owned()));
        }
        entries.sort_by_key(|entry| entry.priority);
        Ok(Self { entries })
    }

    /// The models that a provider lists, with properties known here: name, display name, window. None if it lists none.
    pub fn of_provider<'a>(
        &self,
        listed: impl Iterator<Item = (&'a str, Option<&'a str>, Option<i64>)>,
        default: Option<&str>,
    ) -> Option<Self> {
        let mut entries: Vec<ModelEntry> = Vec::new();
        for (name, display_name, window) in listed {
            let known = self.lookup(name);
            let display_name = display_name.map(|name| Cow::Owned(name.to_owned()));
            entries.push(ModelEntry {
                display_name: display_name.unwrap_or_else(|| known.display_name.clone()),
                context_window: window.or(known.context_window),
                listed: true,
                supported_in_api: true,
                // The default comes first; the rest keeps the server's order.
                priority: i64::from(Some(name) != default),
                ..known
            });
        }
        let mut seen = HashSet::new();
        entries.retain(|entry| seen.insert(entry.slug.clone()));
        entries.sort_by_key(|entry| entry.priority);
        (!entries.is_empty()).then_some(Self { entries })
    }

    /// Adds the offline model as the default. For the offline provider only.
    pub fn with_offline(mut self) -> Self {
        self.entries.retain(|entry| entry.slug != OFFLINE);
        self.entries.insert(0, ModelEntry::from(&bundled::OFFLINE));
        self
    }

    /// The model to use if none was chosen.
    pub fn default_model(&self) -> &str {
        // A catalogue is never empty, so the fallback is never used.
        self.default_entry().map_or(OFFLINE, |entry| &entry.slug)
    }

    fn default_entry(&self) -> Option<&ModelEntry> {
        let mut usable = self.entries.iter().filter(|entry| entry.supported_in_api);
        usable.clone().find(|entry| entry.listed).or_else(|| usable.next()).or(self.entries.first())
    }

    /// The entry of a model by this name. An extended name, for example with a date, matches the longest known prefix;
    /// a provider's prefix (`vendor/name`) is ignored. The entry keeps the given name.
    pub fn lookup(&self, name: &str) -> ModelEntry {
        let found = self.longest_prefix(name).or_else(|| self.longest_prefix(without_namespace(name)?));
        match found {
            Some(entry) => ModelEntry { slug: Cow::Owned(name.to_owned()), ..entry.clone() },
            None if name == OFFLINE => ModelEntry::from(&bundled::OFFLINE),
            None => bundled::fallback(name),
        }
    }

    /// Whether a model has exactly this name.
    pub fn knows(&self, name: &str) -> bool {
        self.entries.iter().any(|entry| entry.slug == name)
    }

    /// The names of all that can be used.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().filter(|entry| entry.supported_in_api).map(|entry| entry.slug.as_ref())
    }

    fn longest_prefix(&self, name: &str) -> Option<&ModelEntry> {
        let known = self.entries.iter().filter(|entry| name.starts_with(entry.slug.as_ref()));
        known.min_by_key(|entry| Reverse(entry.slug.len()))
    }

    /// A page of `model/list`. Cursors are decimal offsets; without a limit the rest is one page.
    pub fn page(
        &self,
        cursor: Option<&str>,
        limit: Option<u32>,
        include_hidden: bool,
    ) -> Result<ModelListResponse, CatalogueError> {
        let shown: Vec<_> = self
            .entries
            .iter()
            .filter(|entry| entry.supported_in_api && (entry.listed || include_hidden))
            .collect();
        let total = shown.len();
        let start = match cursor {
            None => 0,
            Some(text) => text.parse().map_err(|_| CatalogueError::InvalidCursor(text.to_owned()))?,
        };
        if start > total {
            return Err(CatalogueError::CursorTooLarge { cursor: start, total });
        }
        // An empty page would never end.
        let length = limit.map_or(total, |limit| usize::try_from(limit.max(1)).unwrap_or(total));
        let end = start.saturating_add(length).min(total);
        let default = self.default_model();
        Ok(ModelListResponse {
            data: shown[start..end].iter().map(|entry| entry.to_wire(entry.slug == default)).collect(),
            next_cursor: (end < total).then(|| end.to_string()),
        })
    }
}

/// The name of the model inside the binary.
const OFFLINE: &str = "offline";

/// The name after a provider's prefix, if it has exactly one.
fn without_namespace(name: &str) -> Option<&str> {
    let (namespace, rest) = name.split_once('/')?;
    let plain = !namespace.is_empty() && namespace.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    (plain && !rest.contains('/')).then_some(rest)
}
