//! Making placements, waking them, and making those again that were lost.

use std::time::Duration;

use placements::{
    FileRequest, PlaceProgress, PlaceState, Placement, PlacementError, PlacementOrder, PlacementStep,
    PreparedManifest, ProgressSink, ResolvedEnv, StagedRuntime, WorkspaceLimits, WorkspaceManifest,
    WorkspaceStart,
};
use protocol::{
    PlacementProgressNotification, PlacementProgressStep, PlacementStatusChangedNotification,
    ServerNotification, ThreadId,
};
use serde_json::json;
use serde_json::value::RawValue;
use store::{AuditedChange, StoreError};
use tokio::sync::mpsc;

use crate::error::TaskError;
use crate::placing::launch::LaunchFailure;
use crate::placing::{PlaceRow, PlaceStage};
use crate::shared::HostShared;

/// Reports of progress that wait; more are dropped.
const WAITING_REPORTS: usize = 64;
/// How long a daemon or a network may be away before a task counts that as a failure.
const AWAY: Duration = Duration::from_secs(30);
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// A placement that can be used.
#[derive(Debug)]
pub(crate) struct UsablePlace {
    pub(crate) placement: Placement,
    pub(super) row: PlaceRow,
}

impl HostShared {
    /// The placement as the store has it, made where it is not there. That it is still alive shows when it is used.
    pub(crate) async fn usable_place(&self, id: &str, task: &ThreadId) -> Result<UsablePlace, LaunchFailure> {
        let lock = self.places.change_lock(id);
        let _changing = lock.lock().await;
        let row = self.place_row(id).await?;
        match (row.stage, row.record.reference.clone()) {
            (PlaceStage::Ready, Some(reference)) => {
                Ok(UsablePlace { placement: self.places.placements.attach(reference), row })
            }
            (PlaceStage::Suspended, Some(reference)) => {
                let placement = self.places.placements.attach(reference);
                self.woken(placement, row, task).await
            }
            _ => self.made(row, task).await,
        }
    }

    /// After a use failed: looks at the place, wakes it or makes it again. Waits for a daemon that is away.
    pub(crate) async fn mended_place(
        &self,
        id: &str,
        task: &ThreadId,
        error: PlacementError,
    ) -> Result<UsablePlace, LaunchFailure> {
        let lock = self.places.change_lock(id);
        let _changing = lock.lock().await;
        self.places.forget(id);
        let mut row = self.place_row(id).await?;
        let Some(reference) = row.record.reference.clone() else { return self.made(row, task).await };
        let placement = self.places.placements.attach(reference);
        if row.stage == PlaceStage::Suspended {
            // A part of it may run already: a waking that broke off has left it.
            return self.wake(placement, row, task).await;
        }
        tracing::warn!(%error, placement = id, "a placement cannot be used; looking at it");
        let begun = tokio::time::Instant::now();
        loop {
            match placement.state().await {
                Ok(PlaceState::Running) => return Ok(UsablePlace { placement, row }),
                Ok(PlaceState::Suspended) => return self.woken(placement, row, task).await,
                Ok(PlaceState::Gone) => break,
                Err(error) if begun.elapsed() > AWAY => return Err(error.into()),
                Err(_) => tokio::time::sleep(LOOK_AGAIN).await,
            }
        }
        row.stage = PlaceStage::Lost;
        row.record.leave();
        self.save_place(&row).await?;
        self.made(row, task).await
    }

    /// A request about files, carried out in the place.
    pub(crate) async fn use_files(
        &self,
        request: &FileRequest,
        task: &ThreadId,
    ) -> Result<Box<RawValue>, TaskError> {
        let id = &request.placement_id;
        let failed = |failure: LaunchFailure| TaskError::Placement(failure.message);
        let usable = self.usable_place(id, task).await.map_err(failed)?;
        let answer = match usable.placement.use_files(request).await {
            Err(error) if error.may_mean_loss() => {
                let usable = self.mended_place(id, task, error).await.map_err(failed)?;
                usable.placement.use_files(request).await
            }
            answer => answer,
        };
        self.note_use(id).await;
        Ok(answer?)
    }

    async fn place_row(&self, id: &str) -> Result<PlaceRow, LaunchFailure> {
        let row = PlaceRow::load(&self.store, id).await?;
        row.ok_or_else(|| LaunchFailure::lasting(format!("placement {id} was deleted")))
    }

    async fn woken(
        &self,
        placement: Placement,
        row: PlaceRow,
        task: &ThreadId,
    ) -> Result<UsablePlace, LaunchFailure> {
        self.options.tracer.spanned("placement.wake", self.wake(placement, row, task)).await
    }

    async fn wake(
        &self,
        placement: Placement,
        mut row: PlaceRow,
        task: &ThreadId,
    ) -> Result<UsablePlace, LaunchFailure> {
        let snapshot = if row.record.wants_snapshot { self.snapshot_of(&row) } else { None };
        if row.record.wants_snapshot && snapshot.is_none() {
            tracing::warn!(
                placement = row.id,
                "the snapshot of a suspended placement is gone; it is made anew"
            );
            // Of a waking that broke off, something may be there.
            let _ = placement.destroy().await;
            row.record.leave();
            return self.make(row, task).await;
        }
        match placement.wake(snapshot.as_ref(), &self.progress(&row.id, task)).await {
            Ok(()) => {}
            Err(error) => match placement.state().await {
                Ok(PlaceState::Gone) => {
                    tracing::warn!(%error, placement = row.id, "a suspended placement is gone");
                    row.record.leave();
                    return self.made(row, task).await;
                }
                _ => return Err(error.into()),
            },
        }
        row.stage = PlaceStage::Ready;
        row.record.wants_snapshot = false;
        self.save_place(&row).await?;
        Ok(UsablePlace { placement, row })
    }

    async fn made(&self, row: PlaceRow, task: &ThreadId) -> Result<UsablePlace, LaunchFailure> {
        self.options.tracer.spanned("placement.create", self.make(row, task)).await
    }

    /// From the last snapshot, else from the manifest. Every making has a name of its own: an earlier one may still be
    /// there where nobody could reach it.
    async fn make(&self, mut row: PlaceRow, task: &ThreadId) -> Result<UsablePlace, LaunchFailure> {
        self.places.forget(&row.id);
        let was_there = row.stage != PlaceStage::Creating;
        let snapshot = self.snapshot_of(&row);
        let manifest = row.record.manifest.as_ref().map(WorkspaceManifest::from_json).transpose()?;
        let env = match &manifest {
            Some(manifest) => ResolvedEnv::resolve(&manifest.env, &*self.places.options.secrets.0)?,
            None => ResolvedEnv::default(),
        };
        let prepared = match (&snapshot, manifest) {
            (None, Some(manifest)) => {
                Some(PreparedManifest::new(manifest, WorkspaceLimits::default()).await?)
            }
            _ => None,
        };
        let start = match (&snapshot, &prepared) {
            (Some(snapshot), _) => WorkspaceStart::Snapshot(snapshot),
            (None, Some(prepared)) => WorkspaceStart::Manifest(prepared, &env),
            (None, None) => WorkspaceStart::Empty,
        };
        if let Some(prepared) = &prepared {
            // A place that is made again has what the task began with, and not what a branch has become since.
            row.record.keep_commits(prepared.commits());
        }
        self.remove_unfinished(&row).await;
        let suffix: String = self.new_uuid().chars().rev().take(6).collect();
        let id = format!("{}-{suffix}", row.id);
        row.record.making = Some(id.clone());
        row.save(&self.store).await?;
        let order = PlacementOrder { id, settings: row.record.settings.clone(), start };
        let placement = self.places.placements.create(order, &self.progress(&row.id, task)).await?;
        row.record.reference = Some(placement.reference().clone());
        row.record.making = None;
        row.record.wants_snapshot = false;
        row.stage = PlaceStage::Ready;
        if was_there {
            row.record.remade_at_ms = Some(self.now_ms());
            row.record.remade_from_ms = row.record.snapshot_at_ms.filter(|_| snapshot.is_some());
        }
        let (own_name, part) = (self.own_name(), (row.id.as_str(), Some(task)));
        let audited = self.audited_part(&own_name, "placement/make", part, json!({ "again": was_there }));
        if let Err(error) = self.save_place_as(&row, audited).await {
            let _ = placement.destroy().await;
            return Err(error.into());
        }
        Ok(UsablePlace { placement, row })
    }

    /// Removes what was begun by a host that did not live to note it. What cannot be found now is left to `host gc`.
    async fn remove_unfinished(&self, row: &PlaceRow) {
        let Some(name) = &row.record.making else { return };
        let found = match self.places.placements.leftovers(&row.record.settings).await {
            Ok(found) => found,
            Err(error) => {
                tracing::warn!(%error, placement = row.id, "what was begun to be made cannot be looked for");
                return;
            }
        };
        for left in found.into_iter().filter(|left| left.reference.id == *name) {
            if let Err(error) = self.places.placements.attach(left.reference).destroy().await {
                tracing::warn!(%error, placement = row.id, "what was begun to be made cannot be removed");
            }
        }
    }

    pub(crate) async fn save_place(&self, row: &PlaceRow) -> Result<(), StoreError> {
        row.save(&self.store).await?;
        self.report_place(row).await
    }

    /// As [`HostShared::save_place`], with an entry in the audit trail.
    pub(crate) async fn save_place_as(
        &self,
        row: &PlaceRow,
        audited: AuditedChange,
    ) -> Result<(), StoreError> {
        audited.put_placement(row.stored()?).await?;
        self.report_place(row).await
    }

    async fn report_place(&self, row: &PlaceRow) -> Result<(), StoreError> {
        let tasks = self.store.tasks_by_placement().await?.remove(&row.id).unwrap_or_default();
        let thread = tasks.first().cloned().unwrap_or_else(|| ThreadId::new(""));
        let told = PlacementStatusChangedNotification { placement: row.shown(tasks) };
        self.clients.placement_changed(&thread, ServerNotification::PlacementStatusChanged(told)).await;
        Ok(())
    }

    /// The binary for the place's machine, copied there where it is not.
    pub(super) async fn staged(
        &self,
        place: &UsablePlace,
        task: &ThreadId,
    ) -> Result<StagedRuntime, PlacementError> {
        let known = self.places.staged.lock().get(&place.row.id).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let builds = self.places.options.builds.all().await?;
        let progress = self.progress(&place.row.id, task);
        let staging = place.placement.stage(builds, &progress);
        let staged = self.options.tracer.spanned("placement.stage", staging).await?;
        self.places.staged.lock().insert(place.row.id.clone(), staged.clone());
        Ok(staged)
    }

    /// Passes reports on as notifications; when clients are slow, some are left out.
    fn progress(&self, placement: &str, task: &ThreadId) -> ProgressSink {
        let (send, mut reports) = mpsc::channel::<PlaceProgress>(WAITING_REPORTS);
        let (clients, task, placement) = (self.clients.clone(), task.clone(), placement.to_owned());
        tokio::spawn(async move {
            while let Some(report) = reports.recv().await {
                let told = PlacementProgressNotification {
                    placement_id: placement.clone(),
                    thread_id: task.clone(),
                    step: step_of(report.step),
                    done: report.done,
                    total: report.total,
                    line: report.line,
                };
                clients.placement_changed(&task, ServerNotification::PlacementProgress(told)).await;
            }
        });
        ProgressSink::new(move |report| drop(send.try_send(report)))
    }
}

fn step_of(step: PlacementStep) -> PlacementProgressStep {
    match step {
        PlacementStep::Pulling => PlacementProgressStep::Pulling,
        PlacementStep::Creating => PlacementProgressStep::Creating,
        PlacementStep::Staging => PlacementProgressStep::Staging,
        PlacementStep::Workspace => PlacementProgressStep::Workspace,
        PlacementStep::Setup => PlacementProgressStep::Setup,
    }
}
