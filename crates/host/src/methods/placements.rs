//! `placement/*`: the placements of tasks, listed, kept, suspended, given up and removed.

use std::sync::Arc;
use std::time::Duration;

use placements::{EarlierWorkspaces, FileRequest, PlacementError, ProgressSink};
use protocol::{
    PlacementGcParams, PlacementInfo, RemovedPlacement, ThreadId, ThreadStartParams, TurnStartParams,
};
use serde_json::json;
use serde_json::value::RawValue;
use store::{TaskChange, TaskRow};

use crate::error::TaskError;
use crate::placing::{
    AskedSandbox, ChosenPlace, LabelSearch, PlaceRecord, PlaceRow, PlaceStage, check_sandbox, unholdable,
};
use crate::task_host::TaskHost;

/// How often placements that nobody uses are looked for in the store, at most.
const SWEEP_EVERY: Duration = Duration::from_secs(60);
/// How often they are looked for where they are, by their labels.
const SEARCH_EVERY: Duration = Duration::from_secs(3_600);

impl From<PlacementError> for TaskError {
    fn from(error: PlacementError) -> Self {
        // Fields of a request of the client.
        let known = ["path", "placementId"];
        match error {
            PlacementError::Invalid { field, problem } => match known.into_iter().find(|name| *name == field)
            {
                Some(field) => Self::Field { field, problem },
                None => Self::Placement(PlacementError::Invalid { field, problem }.to_string()),
            },
            error => Self::Placement(error.to_string()),
        }
    }
}

impl TaskHost {
    pub async fn list_placements(&self) -> Result<Vec<PlacementInfo>, TaskError> {
        let mut tasks = self.shared.store.tasks_by_placement().await?;
        let mut shown = Vec::new();
        for row in self.shared.store.list_placements().await? {
            let row = PlaceRow::read(row)?;
            shown.push(row.shown(tasks.remove(&row.id).unwrap_or_default()));
        }
        Ok(shown)
    }

    pub async fn read_placement(&self, id: &str) -> Result<PlacementInfo, TaskError> {
        let row = self.place(id).await?;
        self.shown_place(&row).await
    }

    /// Keeps the workspace as it is now, whether or not a turn runs.
    pub async fn snapshot_placement(&self, id: &str, by: &str) -> Result<PlacementInfo, TaskError> {
        let lock = self.shared.places.change_lock(id);
        let _changing = lock.lock().await;
        let mut row = self.place(id).await?;
        let Some(reference) = row.record.reference.clone() else {
            return Err(TaskError::Placement(format!("placement {id} is not there, so nothing can be kept")));
        };
        let placement = self.shared.places.placements.attach(reference);
        match row.stage {
            // Its snapshot is all there is of it.
            PlaceStage::Suspended if row.record.wants_snapshot => {}
            PlaceStage::Suspended => {
                placement.wake(None, &ProgressSink::none()).await?;
                let taken = self.shared.take_snapshot(&placement, &mut row, by).await;
                self.shared.suspend_place(&placement, &mut row, by).await?;
                taken?;
            }
            _ => self.shared.take_snapshot(&placement, &mut row, by).await?,
        }
        self.shown_place(&row).await
    }

    /// The tasks first: their turns stay where they are.
    pub async fn suspend_placement(&self, id: &str, by: &str) -> Result<PlacementInfo, TaskError> {
        self.place(id).await?;
        for task in self.shared.store.tasks_by_placement().await?.remove(id).unwrap_or_default() {
            self.suspend_task(&task, by).await?;
        }
        let row = self.rest_placement(id, by).await?;
        self.shown_place(&row).await
    }

    /// Nothing is asked of the place: it cannot be reached, or it does not matter any more. Its tasks go on at this host's
    /// site, in a place that is made again.
    pub async fn abandon_placement(&self, id: &str, by: &str) -> Result<PlacementInfo, TaskError> {
        self.place(id).await?;
        let tasks = self.shared.store.tasks_by_placement().await?.remove(id).unwrap_or_default();
        // Not awaited: it may be out of reach.
        let (for_clients, placement) = (Arc::clone(&self.shared.places.for_clients), id.to_owned());
        tokio::spawn(async move { for_clients.end_placement(&placement).await });
        {
            let lock = self.shared.places.change_lock(id);
            let _changing = lock.lock().await;
            let mut row = self.place(id).await?;
            row.stage = PlaceStage::Lost;
            row.record.leave();
            row.site = self.shared.site_of(&row.record.settings);
            self.shared.places.forget(id);
            for task in &tasks {
                let change = TaskChange { site: Some(row.site.clone()), ..TaskChange::default() };
                self.shared.store.update_task(task, change).await?;
            }
            let audited = self.shared.audited_part(by, "placement/abandon", (id, None), json!({}));
            self.shared.save_place_as(&row, audited).await?;
        }
        // One that cannot be suspended keeps no other at work in the place that was given up.
        let mut refused = None;
        for task in &tasks {
            if let Err(error) = self.suspend_task(task, by).await {
                refused = refused.or(Some(error));
            }
        }
        match refused {
            Some(error) => Err(error),
            None => self.shown_place(&self.place(id).await?).await,
        }
    }

    pub async fn delete_placement(&self, id: &str, by: &str) -> Result<(), TaskError> {
        self.place(id).await?;
        let tasks = self.shared.store.tasks_by_placement().await?.remove(id).unwrap_or_default().len();
        if tasks > 0 {
            return Err(TaskError::PlacementInUse { id: id.to_owned(), tasks });
        }
        self.shared.remove_place(id, by).await
    }

    /// Placements that no task uses, and things with this host's labels that no row leads to: a host that was killed while
    /// it made them knows nothing of them.
    pub async fn remove_unused_placements(
        &self,
        params: &PlacementGcParams,
        by: &str,
    ) -> Result<Vec<RemovedPlacement>, TaskError> {
        let spared = params.unused_for_seconds.and_then(|seconds| i64::try_from(seconds).ok());
        let spared_ms = spared.map_or(self.shared.places.options.unused_for_ms, |s| s.saturating_mul(1_000));
        self.shared.remove_unused(spared_ms, (!params.dry_run).then_some(by), LabelSearch::Everywhere).await
    }

    /// Looks for placements that nobody uses from time to time, for as long as the host lives.
    pub(crate) fn sweep_placements(&self) {
        let shared = Arc::downgrade(&self.shared);
        let options = &self.shared.places.options;
        let soonest = options.unused_for_ms.min(options.idle_for_ms).max(1_000);
        let every = SWEEP_EVERY.min(Duration::from_millis(soonest.unsigned_abs()));
        tokio::spawn(async move {
            let mut search_at = tokio::time::Instant::now();
            loop {
                tokio::time::sleep(every).await;
                let Some(shared) = shared.upgrade() else { return };
                let host = Self { shared };
                let spared_ms = host.shared.places.options.unused_for_ms;
                let search = match tokio::time::Instant::now() < search_at {
                    true => LabelSearch::Nowhere,
                    false => {
                        search_at = tokio::time::Instant::now() + SEARCH_EVERY;
                        LabelSearch::InUse
                    }
                };
                let own_name = host.shared.own_name();
                if let Err(error) = host.shared.remove_unused(spared_ms, Some(&own_name), search).await {
                    tracing::warn!(%error, "unused placements are not removed");
                }
                if let Err(error) = host.rest_idle_placements().await {
                    tracing::warn!(%error, "idle placements are not suspended");
                }
            }
        });
    }

    /// Suspends placements whose tasks have had no runtime for long: the next use wakes them.
    async fn rest_idle_placements(&self) -> Result<(), TaskError> {
        let before_ms = self.shared.now_ms().saturating_sub(self.shared.places.options.idle_for_ms);
        let mut tasks = self.shared.store.tasks_by_placement().await?;
        for row in self.shared.store.list_placements().await? {
            let row = PlaceRow::read(row)?;
            let tasks = tasks.remove(&row.id).unwrap_or_default();
            if row.stage != PlaceStage::Ready || row.used_at_ms >= before_ms || tasks.is_empty() {
                continue;
            }
            let mut is_idle = true;
            for task in &tasks {
                // One that another host has is that host's to look after.
                is_idle &= self.living(task).await.is_ok_and(|task| !task.view.borrow().has_runtime);
            }
            if !is_idle || self.shared.places.for_clients.uses(&row.id) {
                continue;
            }
            tracing::info!(placement = row.id, "an idle placement is suspended");
            if let Err(error) = self.rest_placement(&row.id, &self.shared.own_name()).await {
                tracing::warn!(%error, placement = row.id, "an idle placement is not suspended");
            }
        }
        Ok(())
    }

    /// Frees what the place need not hold. A runtime that is just being started wakes it again.
    async fn rest_placement(&self, id: &str, by: &str) -> Result<PlaceRow, TaskError> {
        self.shared.places.for_clients.end_placement(id).await;
        let lock = self.shared.places.change_lock(id);
        let _changing = lock.lock().await;
        let mut row = self.place(id).await?;
        if let (Some(reference), PlaceStage::Ready) = (row.record.reference.clone(), row.stage) {
            let placement = self.shared.places.placements.attach(reference);
            self.shared.suspend_place(&placement, &mut row, by).await?;
        }
        Ok(row)
    }

    /// `fs/*` about a placement. Wakes the place, or makes it, where that is needed.
    pub async fn use_files(&self, method: &str, params: &str) -> Result<Box<RawValue>, TaskError> {
        let request = FileRequest::read(method, params)?;
        let (_, task) = self.reachable_place(&request.placement_id).await?;
        self.shared.use_files(&request, &task).await
    }

    /// A placement that this host can use, and a task that uses it.
    pub(crate) async fn reachable_place(&self, id: &str) -> Result<(PlaceRow, ThreadId), TaskError> {
        let row = self.place(id).await?;
        let tasks = self.shared.store.tasks_by_placement().await?.remove(id).unwrap_or_default();
        let task = tasks.into_iter().next().unwrap_or_else(|| ThreadId::new(""));
        if self.shared.store.leases_expire() && !self.shared.replica().sites.contains(&row.site) {
            return Err(TaskError::PlacementUnreachable { thread: task, site: row.site });
        }
        Ok((row, task))
    }

    async fn place(&self, id: &str) -> Result<PlaceRow, TaskError> {
        let row = PlaceRow::load(&self.shared.store, id).await?;
        row.ok_or_else(|| TaskError::UnknownPlacement(id.to_owned()))
    }

    async fn shown_place(&self, row: &PlaceRow) -> Result<PlacementInfo, TaskError> {
        let tasks = self.shared.store.tasks_by_placement().await?.remove(&row.id).unwrap_or_default();
        Ok(row.shown(tasks))
    }

    /// The placement of a task whose workspace can be kept.
    pub(crate) async fn keepable_place(&self, row: &TaskRow) -> Result<String, TaskError> {
        let refused = |problem: String| Err(TaskError::Field { field: "snapshot", problem });
        let Some(id) = &row.placement_id else {
            return refused(
                "the task works on the host's own machine, which is not kept; leave it out".into(),
            );
        };
        match self.place(id).await?.record.reference {
            Some(_) => Ok(id.clone()),
            None => refused(format!("placement {id} is not there, so nothing can be kept")),
        }
    }

    /// Where a task runs that does not say where.
    pub fn default_placement(&self) -> &str {
        self.shared.places.options.default.as_deref().unwrap_or("local")
    }

    /// Why a thread that is started from another machine may not have its place.
    pub fn network_refusal(&self, params: &ThreadStartParams) -> Option<String> {
        self.shared.places.options.network_refusal(params.placement.as_ref()?)
    }

    /// The place of a new thread. Everything that can be refused is refused before anything is made.
    pub(crate) fn place_of(&self, params: &ThreadStartParams) -> Result<ChosenPlace, TaskError> {
        let options = &self.shared.places.options;
        let chosen = ChosenPlace::of(options, params)?;
        if let ChosenPlace::Made { settings, .. } = &chosen {
            let asked = AskedSandbox::of(params.sandbox, params.config.as_ref());
            let asked = asked.or_else(|| AskedSandbox::of_host(options.sandbox_mode));
            check_sandbox(settings, asked)?;
        }
        Ok(chosen)
    }

    /// Refuses a sandbox that is asked for when a thread is resumed or forked, and that its place cannot enforce.
    pub(crate) async fn check_sandbox_of(
        &self,
        row: &TaskRow,
        asked: Option<AskedSandbox>,
    ) -> Result<(), TaskError> {
        let (Some(id), Some(_)) = (&row.placement_id, &asked) else { return Ok(()) };
        check_sandbox(&self.place(id).await?.record.settings, asked)
    }

    /// The id of the new placement, and its site.
    pub(crate) async fn put_place(
        &self,
        chosen: ChosenPlace,
        task: &ThreadId,
        by: &str,
    ) -> Result<(Option<String>, String), TaskError> {
        let ChosenPlace::Made { name, settings, manifest } = chosen else {
            return Ok((None, self.shared.site().to_owned()));
        };
        let (now, site) = (self.shared.now_ms(), self.shared.site_of(&settings));
        // Nothing, until a runtime there has found out more. Where the place is no boundary, its sandbox keeps commands apart.
        let has_other_user = settings.is_boundary().then_some(false);
        let record = PlaceRecord {
            name,
            settings: *settings,
            manifest,
            reference: None,
            making: None,
            snapshot_at_ms: None,
            snapshot_bytes: None,
            wants_snapshot: false,
            remade_at_ms: None,
            remade_from_ms: None,
            has_other_user,
            earlier: EarlierWorkspaces::default(),
        };
        let id = format!("p-{}", self.shared.new_uuid().replace('-', ""));
        let stage = PlaceStage::Creating;
        let row = PlaceRow {
            id: id.clone(),
            site: site.clone(),
            stage,
            record,
            snapshot: None,
            created_at_ms: now,
            used_at_ms: now,
        };
        let part = (id.as_str(), Some(task));
        let details = json!({ "backend": row.record.settings.backend(), "name": row.record.name });
        let audited = self.shared.audited_part(by, "placement/create", part, details);
        audited.put_placement(row.stored()?).await?;
        Ok((Some(id), site))
    }

    /// Of a thread that could not be started.
    pub(crate) async fn drop_place_of(&self, row: &TaskRow, by: &str) {
        if let Some(id) = &row.placement_id
            && let Err(error) = self.shared.remove_place(id, by).await
        {
            tracing::warn!(%error, placement = id, "what was made for a thread that did not start is still there");
        }
    }

    pub(crate) async fn check_turn_sandbox(&self, params: &TurnStartParams) -> Result<(), TaskError> {
        let Some(asked) = params.sandbox_policy.as_ref().and_then(unholdable) else { return Ok(()) };
        let row = self.root_of(&params.thread_id).await?;
        self.check_sandbox_of(&row, Some(AskedSandbox { by: "sandboxPolicy", refused: Some(asked) })).await
    }
}
