//! Owns the environments of one process: their list, whether they can be used, and which threads have chosen them. Must
//! not know how turns work or who the clients are.

mod checks;
mod choice;
mod error;
mod place;
mod probe;
mod stored;
mod table;

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use engine::{EnvironmentState, Step, StepEnvironment};
use protocol::{
    EnvironmentAddParams, EnvironmentId, EnvironmentInfoResponse, EnvironmentSelection, EnvironmentSpec,
    EnvironmentStatus, EnvironmentStatusResponse, ServerNotification, ThreadId,
};

use checks::check_added;
use choice::WatchedChoice;
pub use error::EnvironmentError;
use place::EnvironmentPlace;
use probe::Prober;
pub use stored::stored_choice;
use table::{FoundEnvironment, KnownEnvironment, Seen, Table, WatchTask, info_here, step_environment};

/// Limit of known environments.
const MAX_KNOWN: usize = 256;
/// How long a client's request waits for a current status. Its next requests wait as long.
const PATIENCE_OF_CLIENTS: Duration = Duration::from_secs(2);
/// How long a failed call is delayed to find out whether its environment is gone.
const PATIENCE_OF_CALLS: Duration = Duration::from_secs(10);

/// The selection of a thread, shared by its users. While one of them lives, its environments are watched.
pub type Chosen = Arc<[EnvironmentSelection]>;

/// The clients of a thread, which are notified of changes of its environments.
pub trait Subscribers: Send + Sync {
    /// Delivers in order.
    fn notify<'a>(
        &'a self,
        thread: &'a ThreadId,
        notification: ServerNotification,
    ) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>>;
}

/// Prints only the name: printing the fields would add the `Debug` code of all their types to the program.
impl fmt::Debug for dyn Subscribers + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Subscribers")
    }
}

#[derive(Debug)]
pub struct Environments {
    subscribers: Arc<dyn Subscribers>,
    /// Finds the user's shell on this machine, on a client's request.
    shell: fn() -> PathBuf,
    table: Mutex<Table>,
}

/// The environments of one step's calls.
#[derive(Debug)]
pub struct Places {
    pub environments: Arc<[StepEnvironment]>,
    /// The name of the shell there, if it is not this machine's.
    pub shell: Option<String>,
}

impl Environments {
    /// `shell` finds the user's shell on this machine.
    pub fn new(subscribers: Arc<dyn Subscribers>, shell: fn() -> PathBuf) -> Arc<Self> {
        Arc::new(Self { subscribers, shell, table: Mutex::default() })
    }

    /// Registers an environment. One behind a command is connected from now on, with `env` for the command.
    pub fn add(
        self: &Arc<Self>,
        params: EnvironmentAddParams,
        env: BTreeMap<String, String>,
    ) -> Result<(), EnvironmentError> {
        let connect = check_added(&params)?;
        let EnvironmentAddParams { environment_id: id, environment, .. } = params;
        let mut table = self.table.lock();
        if table.known.contains_key(&id) && table.is_chosen(&id) {
            return Err(EnvironmentError::InUse(id));
        }
        if !table.known.contains_key(&id) && table.known.len() >= MAX_KNOWN {
            return Err(EnvironmentError::TooMany(MAX_KNOWN));
        }
        let known = match environment {
            EnvironmentSpec::Local { cwd } => KnownEnvironment::Local { cwd },
            EnvironmentSpec::Command { argv, cwd, probe } => {
                let prober = Prober {
                    argv: argv.clone().into(),
                    probe: probe.clone().unwrap_or_else(|| vec!["true".to_owned()]),
                    cwd: cwd.clone(),
                    env,
                };
                let spec = EnvironmentSpec::Command { argv, cwd, probe };
                let place = Arc::new(EnvironmentPlace::new(spec, prober, connect));
                let (registry, of) = (Arc::downgrade(self), id.clone());
                let changed = move || wake(&registry, &of);
                let watch = tokio::spawn(place.clone().keep_watch(changed));
                KnownEnvironment::Command { place, _watch: WatchTask(watch) }
            }
        };
        table.known.insert(id.clone(), known);
        // A resumed thread may have waited for this environment.
        table.wake(&id);
        Ok(())
    }

    pub fn info(&self, id: &EnvironmentId) -> Result<EnvironmentInfoResponse, EnvironmentError> {
        let table = self.table.lock();
        let place = match table.find(id) {
            Some(FoundEnvironment::Here(cwd)) => return Ok(info_here(id, cwd, &(self.shell)())),
            Some(FoundEnvironment::Behind(place)) => place,
            None => {
                let (field, known) = ("environmentId".to_owned(), table.names());
                return Err(EnvironmentError::Unknown { field, id: id.clone(), known });
            }
        };
        let sight = place.sight();
        let (environment_id, environment) = (id.clone(), place.spec.clone());
        Ok(EnvironmentInfoResponse { environment_id, environment, shell: sight.shell, cwd: sight.cwd })
    }

    /// The current status; if the check takes too long, the last known one.
    pub async fn status(&self, id: &EnvironmentId) -> EnvironmentStatusResponse {
        let found = self.table.lock().find(id);
        let seen = match found {
            None => return EnvironmentStatusResponse { status: EnvironmentStatus::Unknown, error: None },
            Some(FoundEnvironment::Here(cwd)) => Seen::of_folder(cwd.as_str()),
            Some(FoundEnvironment::Behind(place)) => {
                place.check_again(PATIENCE_OF_CLIENTS).await;
                Seen::of_place(&place)
            }
        };
        let status = match seen.state {
            EnvironmentState::Attached => EnvironmentStatus::Attached,
            EnvironmentState::Starting => EnvironmentStatus::Starting,
            EnvironmentState::Disconnected => EnvironmentStatus::Disconnected,
        };
        EnvironmentStatusResponse { status, error: seen.reason }
    }

    /// Checks that these can be chosen.
    pub fn check(&self, chosen: &[EnvironmentSelection]) -> Result<(), EnvironmentError> {
        self.table.lock().check(chosen)
    }

    /// Sets a thread's choice. An equal choice is no change.
    pub fn choose(
        self: &Arc<Self>,
        thread: &ThreadId,
        chosen: Vec<EnvironmentSelection>,
    ) -> Result<Chosen, EnvironmentError> {
        let told = self.see_all(&chosen);
        let mut table = self.table.lock();
        table.check(&chosen)?;
        Ok(self.remember(&mut table, thread, chosen, told))
    }

    /// Restores the stored selection of a thread. Unknown environments cannot be used until they are added again: work
    /// for another environment never falls back to this machine.
    pub fn choose_again(self: &Arc<Self>, thread: &ThreadId, chosen: Vec<EnvironmentSelection>) -> Chosen {
        let told = self.see_all(&chosen);
        self.remember(&mut self.table.lock(), thread, chosen, told)
    }

    fn remember(
        self: &Arc<Self>,
        table: &mut Table,
        thread: &ThreadId,
        chosen: Vec<EnvironmentSelection>,
        told: Vec<Seen>,
    ) -> Chosen {
        table.choices.retain(WatchedChoice::is_alive);
        if let Some(same) = table.choices.iter().find_map(|choice| choice.same(thread, &chosen)) {
            return same;
        }
        let chosen: Chosen = chosen.into();
        if !chosen.is_empty() {
            let choice = WatchedChoice::follow(self, thread, &chosen, told);
            // Checks for changes since the last check.
            choice.wake();
            table.choices.push(choice);
            table.request_check(&chosen);
        }
        chosen
    }

    /// The environments of the next step's calls. `None`: no choice.
    pub fn places(&self, chosen: Option<&Chosen>, cwd: &str) -> Places {
        let Some(chosen) = chosen else {
            return Places { environments: Arc::new([StepEnvironment::here(cwd)]), shell: None };
        };
        let found = self.table.lock().find_all(chosen);
        let seen = chosen.iter().zip(&found).map(|(one, found)| step_environment(one, found.as_ref()));
        let (environments, mut shells): (Vec<_>, Vec<_>) = seen.unzip();
        if found.iter().any(|found| matches!(found, Some(FoundEnvironment::Here(_)))) {
            // A folder that appeared or disappeared since is reported.
            self.table
                .lock()
                .choices
                .iter()
                .filter(|choice| choice.is_of(chosen))
                .for_each(WatchedChoice::wake);
        }
        let shell = governing_at(&environments).and_then(|at| shells[at].take());
        Places { environments: environments.into(), shell }
    }

    /// A call failed in this environment, which may be gone. Returns when that is known, or after a while.
    pub async fn doubt(&self, id: &EnvironmentId) {
        let found = self.table.lock().find(id);
        if let Some(FoundEnvironment::Behind(place)) = found {
            place.check_again(PATIENCE_OF_CALLS).await;
        }
    }

    /// Checks folders without the lock, because a file system may be slow.
    fn see_all(&self, chosen: &[EnvironmentSelection]) -> Vec<Seen> {
        let found = self.table.lock().find_all(chosen);
        chosen.iter().zip(&found).map(|(one, found)| Seen::of(one, found.as_ref())).collect()
    }

    fn request_check(&self, chosen: &[EnvironmentSelection]) {
        self.table.lock().request_check(chosen);
    }
}

fn wake(registry: &Weak<Environments>, id: &EnvironmentId) {
    if let Some(registry) = registry.upgrade() {
        registry.table.lock().wake(id);
    }
}

/// The environment that determines the context: the first attached one, else one that is starting, else the first
/// chosen one.
pub fn governing(environments: &[StepEnvironment]) -> Option<&StepEnvironment> {
    governing_at(environments).map(|at| &environments[at])
}

fn governing_at(environments: &[StepEnvironment]) -> Option<usize> {
    let first = |state| environments.iter().position(|environment| environment.state == state);
    first(EnvironmentState::Attached)
        .or_else(|| first(EnvironmentState::Starting))
        .or_else(|| (!environments.is_empty()).then_some(0))
}

/// The environments for a child agent or review of this step's turn: the attached ones. `None` if there is no choice,
/// so that it works where its parent's thread does.
pub fn attached_selections(step: &Step) -> Option<Vec<EnvironmentSelection>> {
    let is_chosen = step.environments.is_empty() || step.environments.iter().any(|one| one.is_chosen);
    let attached = step.environments.iter().filter(|one| one.state == EnvironmentState::Attached);
    let selection =
        |one: &StepEnvironment| EnvironmentSelection { environment_id: one.id.clone(), cwd: one.cwd.clone() };
    is_chosen.then(|| attached.map(selection).collect())
}

#[cfg(test)]
mod tests;
