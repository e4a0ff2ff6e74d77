//! A placement in the store, and as clients see it.

use std::collections::BTreeMap;

use placements::{EarlierWorkspaces, PlacementReference, PlacementSettings};
use protocol::{PlacementInfo, PlacementSeparation, PlacementStatus, ThreadId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::{PlacementRow, StoreError, TaskStore};

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
