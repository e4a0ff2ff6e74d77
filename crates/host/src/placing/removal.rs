//! Removing placements: one by its id, those that no task uses, and what hosts that were killed have left.

use std::collections::BTreeSet;

use placements::{
    ContainerSettings, LeftoverPlacement, PlacementReference, PlacementSettings, find_tool, owner_has_ended,
};
use protocol::RemovedPlacement;
use serde_json::json;

use crate::error::TaskError;
use crate::placing::PlaceRow;
use crate::shared::HostShared;

/// Where things that no row leads to are looked for. Each place that is looked at is a connection and a command there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LabelSearch {
    Nowhere,
    /// With the settings that a placement of the store has.
    InUse,
    /// Also with those of the configuration, and at the engines of this machine.
    Everywhere,
}

impl HostShared {
    pub(crate) async fn remove_place(&self, id: &str, by: &str) -> Result<(), TaskError> {
        self.places.for_clients.end_placement(id).await;
        let snapshot = {
            let lock = self.places.change_lock(id);
            let _changing = lock.lock().await;
            let Some(row) = PlaceRow::load(&self.store, id).await? else { return Ok(()) };
            if let Some(reference) = row.record.reference {
                self.places.placements.attach(reference).destroy().await?;
            }
            self.places.forget(id);
            self.audited_part(by, "placement/delete", (id, None), json!({})).delete_placement(id).await?;
            row.snapshot
        };
        self.drop_snapshot(snapshot).await;
        Ok(())
    }

    /// Without a name of who removes them, only says which.
    pub(crate) async fn remove_unused(
        &self,
        spared_ms: i64,
        by: Option<&str>,
        search: LabelSearch,
    ) -> Result<Vec<RemovedPlacement>, TaskError> {
        let before_ms = self.now_ms().saturating_sub(spared_ms);
        let mut removed = Vec::new();
        for row in self.store.unused_placements(before_ms).await? {
            let (id, backend) = (row.id, row.backend);
            let outcome = match by {
                Some(by) => self.remove_place(&id, by).await,
                None => Ok(()),
            };
            removed.push(RemovedPlacement { id, backend, problem: outcome.err().map(|e| e.to_string()) });
        }
        if search == LabelSearch::Nowhere {
            return Ok(removed);
        }
        let (mut known, mut making) = (BTreeSet::new(), Vec::new());
        let mut settings = match search {
            LabelSearch::Everywhere => self.known_settings(),
            LabelSearch::InUse | LabelSearch::Nowhere => Vec::new(),
        };
        for row in self.store.list_placements().await? {
            let row = PlaceRow::read(row)?;
            if self.places.change_lock(&row.id).try_lock().is_err() {
                making.push(format!("{}-", row.id));
            }
            known.extend(row.record.reference.map(|reference| reference.id));
            if !settings.contains(&row.record.settings) {
                settings.push(row.record.settings);
            }
        }
        let gone: BTreeSet<String> = removed.iter().map(|one| one.id.clone()).collect();
        for settings in &settings {
            let found = self.leftovers(settings, &mut known, before_ms).await;
            // A place that is just being made has no row yet.
            let left = found.into_iter().filter(|left| !making.iter().any(|row| left.id.starts_with(row)));
            for reference in left {
                let (id, backend) = (reference.id.clone(), settings.backend().to_owned());
                let outcome = match by {
                    Some(by) => self.remove_leftover(reference, by).await,
                    None => Ok(()),
                };
                removed.push(RemovedPlacement { id, backend, problem: outcome.err().map(|e| e.to_string()) });
            }
        }
        // A row that would be removed leads to a place that is not listed a second time.
        removed.retain(|one| !gone.iter().any(|id| one.id != *id && one.id.starts_with(id)));
        removed.extend(self.remove_snapshots(before_ms, by.is_none()).await?);
        Ok(removed)
    }

    async fn remove_leftover(&self, reference: PlacementReference, by: &str) -> Result<(), TaskError> {
        let id = reference.id.clone();
        self.places.placements.attach(reference).destroy().await?;
        // Afterwards: one that cannot be removed is tried again and again.
        let details = json!({ "leftover": true });
        Ok(self.audited_part(by, "placement/delete", (&id, None), details).note().await?)
    }

    /// Of the configuration, and of engines that `docker:IMAGE` and `podman:IMAGE` lead to without any.
    fn known_settings(&self) -> Vec<PlacementSettings> {
        let mut settings: Vec<PlacementSettings> = self.places.options.configured.values().cloned().collect();
        let engines = [
            ("docker", PlacementSettings::Docker(ContainerSettings::default())),
            ("podman", PlacementSettings::Podman(ContainerSettings::default())),
        ];
        settings.extend(engines.into_iter().filter(|(tool, _)| find_tool(tool).is_ok()).map(|(_, it)| it));
        settings
    }

    /// Things with this host's labels, or those of a process that has ended, that are older and that no row leads to.
    async fn leftovers(
        &self,
        settings: &PlacementSettings,
        known: &mut BTreeSet<String>,
        before_ms: i64,
    ) -> Vec<PlacementReference> {
        let found = match self.places.placements.leftovers(settings).await {
            Ok(found) => found,
            Err(error) => {
                tracing::warn!(%error, backend = settings.backend(), "leftovers cannot be looked for");
                return Vec::new();
            }
        };
        let options = &self.places.options;
        let long_ago_ms = before_ms.min(self.now_ms().saturating_sub(options.unused_for_ms));
        let mut is_left = |left: &LeftoverPlacement| {
            let made_ms = i64::try_from(left.created_s.saturating_mul(1_000)).unwrap_or(i64::MAX);
            let owner = &left.reference.owner;
            let made_before = match (*owner == options.owner, owner_has_ended(owner)) {
                (true, _) => before_ms,
                (false, true) if settings.is_made_here() => before_ms,
                // Machines that were copied take each other's processes for their own.
                (false, true) => long_ago_ms,
                (false, false) => return false,
            };
            made_ms < made_before && known.insert(left.reference.id.clone())
        };
        found.into_iter().filter(&mut is_left).map(|left| left.reference).collect()
    }
}
