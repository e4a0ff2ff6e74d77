//! Starting a runtime in its place. The rest of the host sees two pipes, an end, and a few facts about the place.

use std::sync::Arc;
use std::time::Duration;

use placements::{
    AttachedProcess, EarlierWorkspaces, PlaceState, Placement, PlacementError, PlacementReference,
    PlacementSettings, ProcessEnd, ResolvedEnv, SpawnOptions, WorkspaceManifest,
};
use protocol::{SandboxPolicy, ThreadId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::StoreError;

use crate::clients::BoxFuture;
use crate::placing::bring_up::UsablePlace;
use crate::placing::home::with_home;
use crate::placing::{HostPlaces, LastSpawn, PlaceRow, boundary_sandbox};
use crate::shared::HostShared;
use runtime_link::{LaunchRequest, RuntimeEnd, RuntimeProcess};

/// How long the earlier runtime of a task may take to be found and ended.
const END_EARLIER_WITHIN: Duration = Duration::from_secs(60);

/// Of `app-server`: the folder whose owner commands run as.
const COMMAND_USER_OPTION: &str = "--command-user-of";

/// The runtime of which task, and where.
#[derive(Debug)]
pub(crate) struct LaunchOrder<'a> {
    pub(crate) task: &'a ThreadId,
    pub(crate) placement: Option<&'a str>,
    pub(crate) cwd: Option<String>,
    pub(crate) epoch: u64,
    /// No runtime has written a record of the task yet.
    pub(crate) is_new: bool,
}

/// How another host finds a runtime in a placement.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PlacedSpawn {
    placement: String,
    /// The place as it was then: it may have been made again since.
    reference: PlacementReference,
    spawn: String,
}

/// A runtime that was started.
#[derive(Debug)]
pub(crate) struct LaunchedRuntime {
    pub(crate) process: RuntimeProcess,
    pub(crate) place: Option<LaunchedPlace>,
}

/// The place of a runtime that is not simply this machine.
#[derive(Debug, Clone, Default)]
pub(crate) struct LaunchedPlace {
    /// The folder that the thread asked for, or the workspace where that is not there.
    pub(crate) cwd: String,
    /// The folder that it asked for in vain.
    pub(crate) missing_cwd: Option<String>,
    /// In effect where the place itself is the boundary.
    pub(crate) sandbox: Option<SandboxPolicy>,
    pub(crate) remade_at_ms: Option<i64>,
    pub(crate) remade_from_ms: Option<i64>,
    pub(crate) workspace: String,
    pub(crate) earlier: EarlierWorkspaces,
}

impl LaunchedPlace {
    /// The folder in this place for one in a workspace that was there before. `None` for every other folder.
    pub(crate) fn moved(&self, folder: &str) -> Option<String> {
        self.earlier.moved(folder, &self.workspace)
    }
}

/// Why a runtime could not be started.
#[derive(Debug)]
pub(crate) struct LaunchFailure {
    pub(crate) message: String,
    /// Trying again changes nothing.
    pub(crate) is_final: bool,
}

impl LaunchFailure {
    pub(crate) fn lasting(message: String) -> Self {
        Self { message, is_final: true }
    }

    pub(crate) fn into_final(self) -> Self {
        Self { is_final: true, ..self }
    }
}

impl From<PlacementError> for LaunchFailure {
    fn from(error: PlacementError) -> Self {
        let is_final = matches!(
            error,
            PlacementError::MissingTool { .. }
                | PlacementError::Invalid { .. }
                | PlacementError::TooLarge { .. }
        );
        Self { message: error.to_string(), is_final }
    }
}

impl From<StoreError> for LaunchFailure {
    fn from(error: StoreError) -> Self {
        Self { message: error.to_string(), is_final: false }
    }
}

/// All spawns of a task begin with this; none is the beginning of another.
fn spawns_of(task: &ThreadId) -> String {
    format!("{}-", task.as_str().replace('-', ""))
}

impl HostShared {
    /// A thread that is just being started is refused at the first failure: its caller waits for the answer.
    pub(crate) async fn launch(&self, order: &LaunchOrder<'_>) -> Result<LaunchedRuntime, LaunchFailure> {
        let launched = self.options.tracer.spanned("placement.start", self.try_launch(order)).await;
        launched.map_err(|failure| match order.is_new && order.placement.is_some() {
            true => failure.into_final(),
            false => failure,
        })
    }

    async fn try_launch(&self, order: &LaunchOrder<'_>) -> Result<LaunchedRuntime, LaunchFailure> {
        let Some(id) = order.placement else {
            let request = LaunchRequest { task: order.task.clone(), cwd: order.cwd.clone() };
            let failed = |message| LaunchFailure { message, is_final: false };
            let process = self.options.launcher.launch(request).await.map_err(failed)?;
            return Ok(LaunchedRuntime { process, place: None });
        };
        let usable = self.usable_place(id, order.task).await?;
        match self.launch_in(usable, order).await {
            Ok(launched) => Ok(launched),
            // It may be suspended or gone. Looked at only now: asking first would cost every start as much again.
            Err(error) if error.may_mean_loss() => {
                if matches!(error, PlacementError::TimedOut { .. }) {
                    // Something may have started of which nothing was heard.
                    self.places.note_unseen(order);
                }
                let usable = self.mended_place(id, order.task, error).await?;
                Ok(self.launch_in(usable, order).await?)
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn launch_in(
        &self,
        usable: UsablePlace,
        order: &LaunchOrder<'_>,
    ) -> Result<LaunchedRuntime, PlacementError> {
        self.places.end_earlier(&usable.placement, order).await?;
        let UsablePlace { placement, row } = &usable;
        let workspace = placement.reference().workspace.clone();
        let earlier = row.record.earlier.clone();
        // A folder of an earlier workspace may still be there, but the thread's files are in this one.
        let moved = |cwd: &String| earlier.moved(cwd, &workspace).unwrap_or_else(|| cwd.clone());
        let cwd = order.cwd.as_ref().map(moved);
        let names = (order.task.as_str(), spawn_name(order));
        let options = self.runtime_in(&usable, order.task, names, cwd.clone()).await?;
        let process = placement.spawn(&options).await?;
        self.note_use(&row.id).await;
        let place = LaunchedPlace {
            cwd: cwd.clone().filter(|_| process.cwd_exists()).unwrap_or_else(|| workspace.clone()),
            missing_cwd: cwd.filter(|_| !process.cwd_exists()),
            sandbox: boundary_sandbox(&row.record.settings),
            remade_at_ms: row.record.remade_at_ms,
            remade_from_ms: row.record.remade_from_ms,
            workspace,
            earlier,
        };
        let spawn = PlacedSpawn {
            placement: row.id.clone(),
            reference: placement.reference().clone(),
            spawn: process.id().to_owned(),
        };
        Ok(LaunchedRuntime { process: self.places.watched(process, order.task, spawn), place: Some(place) })
    }
}

impl HostShared {
    /// Whether commands of the place run as another user than its runtime, as the runtime has found out by trying.
    pub(crate) async fn note_separation(&self, id: &str, has_other_user: bool) -> Result<(), StoreError> {
        let lock = self.places.change_lock(id);
        let _changing = lock.lock().await;
        let Some(mut row) = PlaceRow::load(&self.store, id).await? else { return Ok(()) };
        if !row.record.settings.is_boundary() || row.record.has_other_user == Some(has_other_user) {
            return Ok(());
        }
        row.record.has_other_user = Some(has_other_user);
        self.save_place(&row).await
    }

    /// The command that starts a runtime in the place, with the name of its home there and its own.
    pub(super) async fn runtime_in(
        &self,
        usable: &UsablePlace,
        task: &ThreadId,
        (home_name, name): (&str, String),
        cwd: Option<String>,
    ) -> Result<SpawnOptions, PlacementError> {
        let record = &usable.row.record;
        let manifest = record.manifest.as_ref().map(WorkspaceManifest::from_json).transpose()?;
        let variables = manifest.map(|manifest| manifest.env).unwrap_or_default();
        let mut env = ResolvedEnv::resolve(&variables, &*self.places.options.secrets.0)?;
        if record.settings.is_this_machine() {
            return self.places.local_options(cwd, env, name);
        }
        let staged = self.staged(usable, task).await?;
        let mut program = external_sandbox(&record.settings);
        program.push(staged.path);
        program.extend(self.places.options.arguments.iter().cloned());
        let reference = usable.placement.reference();
        if reference.command_user.is_some() {
            program.extend([COMMAND_USER_OPTION.to_owned(), reference.workspace.clone()]);
        }
        let argv = with_home(&self.places.options.home, home_name, &mut env, program)?;
        Ok(SpawnOptions { argv, cwd, env, name: Some(name) })
    }

    /// For the removal of what nobody uses. Whoever changes the placement right now notes it as well.
    pub(crate) async fn note_use(&self, id: &str) {
        let lock = self.places.change_lock(id);
        let Ok(_changing) = lock.try_lock() else { return };
        let noted = match PlaceRow::load(&self.store, id).await {
            Ok(Some(row)) => PlaceRow { used_at_ms: self.now_ms(), ..row }.save(&self.store).await,
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = noted {
            tracing::warn!(%error, placement = id, "that a placement was used is not stored");
        }
    }
}

impl HostShared {
    /// Ends the runtime that whoever had the task before has started, and confirms it. What ran in a place that is gone or
    /// at rest, or that was given up, is over.
    pub(crate) async fn end_previous(&self, task: &ThreadId, reference: &Value) -> Result<(), String> {
        let Ok(previous) = serde_json::from_value::<PlacedSpawn>(reference.clone()) else {
            return self.options.launcher.end_previous(reference).await;
        };
        let seen = |last: &LastSpawn| last.is_over && last.name == previous.spawn;
        if self.places.last.lock().get(task).is_some_and(seen) {
            return Ok(());
        }
        let row =
            PlaceRow::load(&self.store, &previous.placement).await.map_err(|error| error.to_string())?;
        let now = row.and_then(|row| row.record.reference).map(|reference| reference.id);
        if now.as_ref() == Some(&previous.reference.id) {
            let placement = self.places.placements.attach(previous.reference);
            end_there(&placement, placement.end_spawn(&previous.spawn)).await.map_err(|error| {
                format!("placementUnreachable: placement {}: {error}", previous.placement)
            })?;
        }
        let ended = LastSpawn { name: previous.spawn, is_over: true };
        self.places.last.lock().insert(task.clone(), ended);
        Ok(())
    }
}

/// Nothing runs in a place that does not run itself.
async fn end_there(
    placement: &Placement,
    ending: impl Future<Output = Result<(), PlacementError>>,
) -> Result<(), PlacementError> {
    let limit = END_EARLIER_WITHIN;
    let ended = tokio::time::timeout(limit, ending).await.unwrap_or_else(|_| {
        let (action, command) = ("ending the earlier runtime".to_owned(), placement.reference().id.clone());
        Err(PlacementError::TimedOut { action, command, limit })
    });
    match ended {
        Ok(()) => Ok(()),
        Err(error) => match placement.state().await {
            Ok(PlaceState::Gone | PlaceState::Suspended) => Ok(()),
            _ => Err(error),
        },
    }
}

/// Tells the runtime that the place confines what runs in it.
fn external_sandbox(settings: &PlacementSettings) -> Vec<String> {
    let network = if settings.has_network() { "enabled" } else { "restricted" };
    let words = ["env".to_owned(), format!("OARLOCK_EXTERNAL_SANDBOX={network}")];
    if settings.is_boundary() { words.to_vec() } else { Vec::new() }
}

fn spawn_name(order: &LaunchOrder<'_>) -> String {
    format!("{}{:016x}", spawns_of(order.task), order.epoch)
}

impl HostPlaces {
    fn local_options(
        &self,
        cwd: Option<String>,
        mut env: ResolvedEnv,
        name: String,
    ) -> Result<SpawnOptions, PlacementError> {
        let options = &self.options;
        let mut argv = vec![options.program.to_string_lossy().into_owned()];
        argv.extend(options.arguments.iter().chain(&options.local_arguments).cloned());
        for (name, value) in &options.local_environment {
            env.set(name, value)?;
        }
        Ok(SpawnOptions { argv, cwd, env, name: Some(name) })
    }

    /// The next start of the task ends first what this one has left.
    fn note_unseen(&self, order: &LaunchOrder<'_>) {
        let last = LastSpawn { name: spawn_name(order), is_over: false };
        self.last.lock().insert(order.task.clone(), last);
    }

    /// Ends what an earlier runtime of the task has left, and confirms it, unless its end was seen here. Two runtimes
    /// would work in one folder, and a command that is said to be lost would still run.
    async fn end_earlier(
        &self,
        placement: &Placement,
        order: &LaunchOrder<'_>,
    ) -> Result<(), PlacementError> {
        let was_seen = self.last.lock().get(order.task).map(|last| last.is_over);
        if was_seen.unwrap_or(order.is_new) {
            return Ok(());
        }
        let names = spawns_of(order.task);
        let ending = placement.end_spawns(&names);
        tokio::time::timeout(END_EARLIER_WITHIN, ending).await.unwrap_or_else(|_| {
            Err(PlacementError::TimedOut {
                action: "ending the earlier runtime".to_owned(),
                command: placement.reference().id.clone(),
                limit: END_EARLIER_WITHIN,
            })
        })
    }

    /// The process as the rest of the host has it, with somebody who notes its end.
    fn watched(&self, mut process: AttachedProcess, task: &ThreadId, spawn: PlacedSpawn) -> RuntimeProcess {
        let name = spawn.spawn.clone();
        self.last.lock().insert(task.clone(), LastSpawn { name: name.clone(), is_over: false });
        let (input, output, stderr) = (process.stdin.take(), process.stdout.take(), process.stderr.take());
        if let Some(mut stderr) = stderr {
            tokio::spawn(async move { tokio::io::copy(&mut stderr, &mut tokio::io::stderr()).await });
        }
        let process = Arc::new(process);
        let (last, task) = (Arc::clone(&self.last), task.clone());
        let note_over = Arc::new(move || {
            if let Some(last) = last.lock().get_mut(&task).filter(|last| last.name == name) {
                last.is_over = true;
            }
        });
        let end = PlacedEnd { process: Arc::clone(&process), spawn, note_over: note_over.clone() };
        tokio::spawn(async move {
            match process.wait().await {
                ProcessEnd::Exited(0) => note_over(),
                // Whoever kills it notes it.
                ProcessEnd::Killed => {}
                // It may have left commands behind.
                ProcessEnd::Exited(_) | ProcessEnd::Lost(_) => {
                    if process.kill().await.is_ok() {
                        note_over();
                    }
                }
            }
        });
        RuntimeProcess {
            input: input.map_or_else(|| Box::new(tokio::io::sink()) as _, |input| Box::new(input) as _),
            output: output.map_or_else(|| Box::new(tokio::io::empty()) as _, |output| Box::new(output) as _),
            end: Box::new(end),
        }
    }
}

/// Dropping it kills the process.
struct PlacedEnd {
    process: Arc<AttachedProcess>,
    spawn: PlacedSpawn,
    note_over: Arc<dyn Fn() + Send + Sync>,
}

impl std::fmt::Debug for PlacedEnd {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("PlacedEnd").field("process", &self.process).finish_non_exhaustive()
    }
}

impl RuntimeEnd for PlacedEnd {
    fn wait(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.process.wait().await;
        })
    }

    fn kill(&mut self) {
        let (process, note_over) = (Arc::clone(&self.process), self.note_over.clone());
        tokio::spawn(async move {
            match process.kill().await {
                Ok(()) => note_over(),
                Err(error) => {
                    tracing::warn!(%error, "a runtime could not be ended; its place is looked at first");
                }
            }
        });
    }

    fn reference(&self) -> Option<Value> {
        serde_json::to_value(&self.spawn).ok()
    }
}

impl Drop for PlacedEnd {
    fn drop(&mut self) {
        if !self.process.has_ended() && tokio::runtime::Handle::try_current().is_ok() {
            self.kill();
        }
    }
}
