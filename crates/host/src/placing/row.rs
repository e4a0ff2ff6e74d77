//! A placement in the store, and as clients see it.

use std::collections::BTreeMap;

use std::path::{Path, PathBuf};

use placements::{PlacementReference, PlacementSettings};
use protocol::{PlacementInfo, PlacementSeparation, PlacementStatus, ThreadId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::{PlacementRow, StoreError, TaskStore};

/// Workspaces that a placement is known to have had; older ones are forgotten.
const MAX_EARLIER: usize = 32;

/// How far a placement is, by its word in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlaceStage {
    Creating,
    Ready,
    Suspended,
    Lost,
}

const STAGES: &[(PlaceStage, &str)] = &[
    (PlaceStage::Creating, "creating"),
    (PlaceStage::Ready, "ready"),
    (PlaceStage::Suspended, "suspended"),
    (PlaceStage::Lost, "lost"),
];

impl PlaceStage {
    fn word(self) -> &'static str {
        STAGES.iter().find(|(stage, _)| *stage == self).map_or("lost", |(_, word)| word)
    }

    /// A word of a later release: whatever it is, it cannot be used as it is.
    fn parse(word: &str) -> Self {
        STAGES.iter().find(|(_, known)| *known == word).map_or(Self::Lost, |(stage, _)| *stage)
    }
}

/// The part of a row that only the host reads. Without secrets: a manifest names them.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PlaceRecord {
    pub(crate) name: String,
    pub(crate) settings: PlacementSettings,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) manifest: Option<Value>,
    /// Absent until it is made, and when it is lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reference: Option<PlacementReference>,
    /// The name of what is being made: of a host that is killed meanwhile, it stays behind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) making: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) snapshot_at_ms: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) snapshot_bytes: Option<u64>,
    /// Waking it wants the snapshot back.
    #[serde(default)]
    pub(crate) wants_snapshot: bool,
    /// When it was last made again, and from which time its workspace is; from its manifest where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) remade_at_ms: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) remade_from_ms: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) has_other_user: Option<bool>,
    #[serde(default, skip_serializing_if = "EarlierWorkspaces::is_empty")]
    pub(crate) earlier: EarlierWorkspaces,
}

impl PlaceRecord {
    /// The manifest names these commits from now on, instead of branches and tags. By the paths of its entries.
    pub(crate) fn keep_commits(&mut self, commits: &BTreeMap<String, String>) {
        let entries = self.manifest.as_mut().and_then(|manifest| manifest.get_mut("entries"));
        let Some(entries) = entries.and_then(Value::as_object_mut) else { return };
        for (path, commit) in commits {
            if let Some(entry) = entries.get_mut(path).and_then(Value::as_object_mut) {
                entry.insert("rev".to_owned(), Value::from(commit.as_str()));
            }
        }
    }

    /// The place is given up: the next use makes another one.
    pub(crate) fn leave(&mut self) {
        if let Some(reference) = self.reference.take() {
            self.earlier.add(reference.workspace);
        }
    }
}

/// The workspaces that a placement had before it was made again. Their folders may still be there, with files that no
/// longer count.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct EarlierWorkspaces(Vec<String>);

impl EarlierWorkspaces {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn add(&mut self, workspace: String) {
        self.0.retain(|known| *known != workspace);
        self.0.push(workspace);
        let surplus = self.0.len().saturating_sub(MAX_EARLIER);
        self.0.drain(..surplus);
    }

    /// The folder in the present workspace for one in an earlier workspace. `None` for every other folder.
    pub(crate) fn moved(&self, folder: &str, present: &str) -> Option<String> {
        let folder = Path::new(folder);
        if folder.starts_with(present) {
            return None;
        }
        let inner = self.0.iter().find_map(|earlier| folder.strip_prefix(earlier).ok())?;
        let moved = match inner.as_os_str().is_empty() {
            true => PathBuf::from(present),
            false => Path::new(present).join(inner),
        };
        Some(moved.to_string_lossy().into_owned())
    }
}

/// A placement as it is stored, read.
#[derive(Debug, Clone)]
pub(crate) struct PlaceRow {
    pub(crate) id: String,
    /// Hosts that serve it reach the place.
    pub(crate) site: String,
    pub(crate) stage: PlaceStage,
    pub(crate) record: PlaceRecord,
    pub(crate) snapshot: Option<String>,
    pub(crate) created_at_ms: i64,
    pub(crate) used_at_ms: i64,
}

impl PlaceRow {
    pub(crate) fn read(row: PlacementRow) -> Result<Self, StoreError> {
        Ok(Self {
            record: serde_json::from_value(row.reference)?,
            stage: PlaceStage::parse(&row.state),
            id: row.id,
            site: row.site,
            snapshot: row.snapshot,
            created_at_ms: row.created_at_ms,
            used_at_ms: row.used_at_ms,
        })
    }

    pub(crate) async fn load(store: &TaskStore, id: &str) -> Result<Option<Self>, StoreError> {
        store.placement(id).await?.map(Self::read).transpose()
    }

    pub(crate) async fn save(&self, store: &TaskStore) -> Result<(), StoreError> {
        store.put_placement(self.stored()?).await
    }

    pub(crate) fn stored(&self) -> Result<PlacementRow, StoreError> {
        Ok(PlacementRow {
            id: self.id.clone(),
            backend: self.record.settings.backend().to_owned(),
            site: self.site.clone(),
            state: self.stage.word().to_owned(),
            reference: serde_json::to_value(&self.record)?,
            snapshot: self.snapshot.clone(),
            created_at_ms: self.created_at_ms,
            used_at_ms: self.used_at_ms,
        })
    }

    pub(crate) fn shown(&self, thread_ids: Vec<ThreadId>) -> PlacementInfo {
        let has_other_user = self.record.has_other_user;
        PlacementInfo {
            id: self.id.clone(),
            name: self.record.name.clone(),
            backend: self.record.settings.backend().to_owned(),
            site: self.site.clone(),
            status: match self.stage {
                PlaceStage::Creating => PlacementStatus::Creating,
                PlaceStage::Ready => PlacementStatus::Ready,
                PlaceStage::Suspended => PlacementStatus::Suspended,
                PlaceStage::Lost => PlacementStatus::Lost,
            },
            workspace: self.record.reference.as_ref().map(|reference| reference.workspace.clone()),
            snapshot: self.snapshot.clone(),
            snapshot_at_ms: self.record.snapshot_at_ms,
            separation: has_other_user.map(|has_it| match has_it {
                true => PlacementSeparation::User,
                false => PlacementSeparation::None,
            }),
            thread_ids,
            created_at_ms: self.created_at_ms,
            used_at_ms: self.used_at_ms,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_folder_of_an_earlier_workspace_becomes_one_of_the_present() {
        let mut earlier = EarlierWorkspaces::default();
        assert_eq!(earlier.moved("/p/a/workspace", "/p/b/workspace"), None);
        earlier.add("/p/a/workspace".to_owned());
        for (folder, expected) in [
            ("/p/a/workspace", Some("/p/b/workspace")),
            ("/p/a/workspace/x/y", Some("/p/b/workspace/x/y")),
            ("/p/a/workspace2", None),
            ("/p/b/workspace/x", None),
            ("/elsewhere", None),
        ] {
            assert_eq!(earlier.moved(folder, "/p/b/workspace").as_deref(), expected, "{folder}");
        }
        // A workspace of the user's own is the same one again.
        assert_eq!(earlier.moved("/p/a/workspace/x", "/p/a/workspace"), None);
        for number in 0..100 {
            earlier.add(format!("/p/{number}"));
        }
        assert_eq!((earlier.0.len(), earlier.0.last().map(String::as_str)), (MAX_EARLIER, Some("/p/99")));
    }

    #[test]
    fn a_row_survives_the_store_and_names_no_secret_value() {
        let record = json!({
            "name": "docker:debian:12",
            "settings": {"backend": "docker", "image": "debian:12", "pull": "missing"},
            "manifest": {"env": {"T": {"secret": "github"}}},
            "wantsSnapshot": false,
        });
        let read: PlaceRecord = serde_json::from_value(record.clone()).expect("a record");
        assert_eq!(serde_json::to_value(&read).expect("JSON"), record);
        let stages = STAGES.iter().map(|(stage, _)| PlaceStage::parse(stage.word()));
        assert!(stages.eq(STAGES.iter().map(|(stage, _)| *stage)));
        assert_eq!(PlaceStage::parse("of a later release"), PlaceStage::Lost);
    }
}
