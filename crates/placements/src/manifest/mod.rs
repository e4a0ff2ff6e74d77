//! A workspace as data: its entries, its environment, and the commands that set it up.

mod checkout;
mod env;
mod pack;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use serde::{Deserialize, Serialize};

use crate::error::PlacementError;
use crate::tar::relative_parts;

pub use env::{EnvValue, ResolvedEnv};
pub use pack::{PreparedManifest, WorkspaceLimits};

const MAX_SETUP: usize = 64;
/// Of the path of an entry, in bytes: what Linux takes.
const MAX_PATH: usize = 4_096;
const MAX_FOLDERS: usize = 256;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WorkspaceManifest {
    /// By path beneath the workspace; `.` is the workspace itself.
    #[serde(default)]
    pub entries: BTreeMap<String, ManifestEntry>,
    #[serde(default)]
    pub env: BTreeMap<String, EnvValue>,
    /// Run in the workspace, in order, when it is first made.
    #[serde(default)]
    pub setup: Vec<SetupCommand>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum ManifestEntry {
    Text {
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<u32>,
    },
    Bytes {
        base64: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<u32>,
    },
    Dir {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<u32>,
    },
    /// A file of this machine.
    LocalFile { path: String },
    /// A folder of this machine, with what the globs choose. Links that point out of the workspace are refused.
    LocalDir {
        path: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        include: Vec<String>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        exclude: Vec<String>,
    },
    /// Fetched on this machine, with its credentials, at one commit.
    Git {
        url: String,
        /// A branch, a tag or a whole commit; the remote's default branch unless set.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rev: Option<String>,
        /// How many commits of its history come along: one unless set, all with 0.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        depth: Option<u32>,
        /// A folder of the repository, which then comes alone: without the others, and without history.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        subpath: Option<String>,
    },
}

/// A line for `sh -c`, or an argv.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SetupCommand {
    Shell(String),
    Argv(Vec<String>),
}

impl SetupCommand {
    pub(crate) fn argv(&self) -> Vec<String> {
        match self {
            Self::Shell(line) => ["sh", "-c", line].map(str::to_owned).to_vec(),
            Self::Argv(argv) => argv.clone(),
        }
    }
}

impl WorkspaceManifest {
    pub fn from_json(json: &serde_json::Value) -> Result<Self, PlacementError> {
        let manifest: Self = Deserialize::deserialize(json)
            .map_err(|error| PlacementError::invalid("manifest", error.to_string()))?;
        manifest.validate()?;
        Ok(manifest)
    }

    /// Everything that can be said without looking at a file or a repository.
    pub fn validate(&self) -> Result<(), PlacementError> {
        let mut files = Vec::new();
        let mut paths = BTreeSet::new();
        for (path, entry) in &self.entries {
            let field = || format!("manifest.entries[{path:?}]");
            let Some(parts) = relative_parts(path.as_bytes()) else {
                return Err(PlacementError::invalid(field(), "the path must be relative and without `..`"));
            };
            let is_folder = matches!(
                entry,
                ManifestEntry::Dir { .. } | ManifestEntry::LocalDir { .. } | ManifestEntry::Git { .. }
            );
            if path.len() > MAX_PATH || parts.len() > MAX_FOLDERS {
                let problem =
                    format!("a path may have {MAX_PATH} bytes and {MAX_FOLDERS} parts, and no more");
                return Err(PlacementError::invalid(
                    format!("manifest.entries[{:?}]", begin_of(path)),
                    problem,
                ));
            }
            if parts.is_empty() && !is_folder {
                return Err(PlacementError::invalid(field(), "the workspace itself is a folder"));
            }
            entry.validate().map_err(|problem| PlacementError::invalid(field(), problem))?;
            if !is_folder {
                files.push((parts.clone(), path));
            }
            if !paths.insert(parts) {
                return Err(PlacementError::invalid(field(), "another entry has the same path"));
            }
        }
        for (file, path) in &files {
            // In their order, what lies beneath a path comes right after it.
            let mut behind = paths.range((Bound::Excluded(file.clone()), Bound::Unbounded));
            if behind.next().is_some_and(|other| other.starts_with(file)) {
                let problem = "it is a file, and another entry lies beneath it";
                return Err(PlacementError::invalid(format!("manifest.entries[{path:?}]"), problem));
            }
        }
        env::validate(&self.env)?;
        if self.setup.len() > MAX_SETUP {
            return Err(PlacementError::invalid(
                "manifest.setup",
                format!("at most {MAX_SETUP} commands are allowed"),
            ));
        }
        match self.setup.iter().position(|command| command.argv().first().is_none_or(String::is_empty)) {
            Some(empty) => Err(PlacementError::invalid(format!("manifest.setup[{empty}]"), "it is empty")),
            None => Ok(()),
        }
    }
}

/// Enough of a long path to know it by.
fn begin_of(path: &str) -> &str {
    &path[..path.floor_char_boundary(100)]
}

impl ManifestEntry {
    fn validate(&self) -> Result<(), String> {
        match self {
            Self::Text { mode, .. } | Self::Bytes { mode, .. } | Self::Dir { mode } => match mode {
                Some(mode) if *mode > 0o777 => {
                    Err(format!("mode {mode:o} has more than the nine permission bits"))
                }
                _ => Ok(()),
            },
            Self::LocalFile { path } | Self::LocalDir { path, .. } => match path.starts_with('/') {
                true => Ok(()),
                false => Err(format!("path {path:?} must be absolute")),
            },
            Self::Git { url, rev, subpath, .. } => {
                checkout::validate(url, rev.as_deref())?;
                let parts = subpath.as_deref().map(|path| relative_parts(path.as_bytes()));
                match parts {
                    None => Ok(()),
                    Some(Some(parts)) if !parts.is_empty() && parts[0] != b".git" => Ok(()),
                    Some(_) => Err("subpath must be a folder of the repository, without `..`".to_owned()),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn wrong_manifests_are_refused_by_the_field() {
        for (json, said) in [
            (json!({"entries": {"../a": {"type": "text", "text": ""}}}), "entries[\"../a\"]"),
            (json!({"entries": {"/a": {"type": "dir"}}}), "must be relative"),
            (json!({"entries": {".": {"type": "text", "text": ""}}}), "is a folder"),
            (json!({"entries": {"a": {"type": "text", "text": "", "mode": 0o4755}}}), "mode 4755"),
            (
                json!({"entries": {"a": {"type": "text", "text": ""}, "a/b": {"type": "dir"}}}),
                "lies beneath it",
            ),
            (json!({"entries": {"a": {"type": "dir"}, "./a/": {"type": "dir"}}}), "the same path"),
            (json!({"entries": {"a": {"type": "localFile", "path": "rel"}}}), "must be absolute"),
            (json!({"entries": {"a": {"type": "git", "url": "ext::sh -c id"}}}), "url"),
            (
                json!({"entries": {"a": {"type": "git", "url": "https://h/r", "rev": "--upload-pack=id"}}}),
                "rev",
            ),
            (json!({"entries": {"a": {"type": "device"}}}), "unknown variant"),
            (json!({"env": {"A=B": "x"}}), "env[\"A=B\"]"),
            (json!({"env": {"OARLOCK_SPAWN": "x"}}), "reserved"),
            (json!({"env": {"A": {"secret": ""}}}), "name of the secret"),
            (json!({"setup": [[]]}), "setup[0]"),
            (json!({"colour": 1}), "unknown field"),
        ] {
            let error = WorkspaceManifest::from_json(&json).unwrap_err().to_string();
            assert!(error.contains(said), "{json}: {error}");
        }
    }

    #[test]
    fn a_path_of_very_many_folders_is_refused_in_few_words() {
        for path in [format!("a{}", "/b".repeat(100_000)), "c".repeat(5_000)] {
            let json = json!({"entries": {path: {"type": "text", "text": ""}}});
            let error = WorkspaceManifest::from_json(&json).unwrap_err().to_string();
            assert!(error.contains("4096 bytes and 256 parts") && error.len() < 400, "{error}");
        }
    }

    #[test]
    fn very_many_entries_are_checked_at_once() {
        let entries = |count: usize| -> serde_json::Map<String, serde_json::Value> {
            let text = json!({"type": "text", "text": ""});
            (0..count).map(|number| (format!("d/f{number}"), text.clone())).collect()
        };
        let mut json = json!({ "entries": entries(100_000) });
        let began = std::time::Instant::now();
        WorkspaceManifest::from_json(&json).unwrap();
        json["entries"]["d/f7/below"] = json!({"type": "dir"});
        let error = WorkspaceManifest::from_json(&json).unwrap_err().to_string();
        assert!(error.contains("d/f7") && error.contains("lies beneath it"), "{error}");
        assert!(began.elapsed().as_secs() < 20, "each pair was compared");
    }

    #[test]
    fn a_whole_manifest_is_read() {
        let json = json!({
            "entries": {
                ".": {"type": "localDir", "path": "/src", "exclude": ["target"]},
                "a/run": {"type": "text", "text": "hi", "mode": 0o755},
                "b": {"type": "bytes", "base64": "AP8="},
                "repo": {"type": "git", "url": "git@host:me/repo.git", "rev": "main"}
            },
            "env": {"A": "x", "TOKEN": {"secret": "github"}},
            "setup": ["make", ["./configure", "--quick"]]
        });
        let manifest = WorkspaceManifest::from_json(&json).unwrap();
        assert_eq!(serde_json::to_value(&manifest).unwrap(), json);
    }
}
