//! Owns the environments of one process: which there are, whether they can be used, and which threads have chosen
//! them. Must not know how turns work or who the clients are.

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

/// The most that can be known at once.
const MAX_KNOWN: usize = 256;
/// How long whoever asks waits for an answer that is not stale. The next requests of a client wait as long.
const PATIENCE_OF_CLIENTS: Duration = Duration::from_secs(2);
/// How long the outcome of a call that failed is held back until it is known whether its place is gone.
const PATIENCE_OF_CALLS: Duration = Duration::from_secs(10);

/// The selection of a thread, shared by whoever works with it. As long as one of them lives, its environments are
/// watched.
pub type Chosen = Arc<[EnvironmentSelection]>;

/// The clients of a thread, who are notified when one of its environments comes or goes.
pub trait Subscribers: Send + Sync {
    /// Delivers in order.
    fn notify<'a>(
        &'a self,
        thread: &'a ThreadId,
        notification: ServerNotification,
    ) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>>;
}

/// The name alone: to print the values behind it, the program would carry the `Debug` code of all their types.
impl fmt::Debug for dyn Subscribers + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Subscribers")
    }
}

#[derive(Debug)]
pub struct Environments {
    subscribers: Arc<dyn Subscribers>,
    /// Finds the user's shell on this machine, when a client asks for it.
    shell: fn() -> PathBuf,
    table: Mutex<Table>,
}

/// Where the calls of one step run.
#[derive(Debug)]
pub struct Places {
    pub environments: Arc<[StepEnvironment]>,
    /// The name of the shell there, when that is not this machine's.
    pub shell: Option<String>,
}

impl Environments {
    /// `shell` finds the user's shell on this machine.
    pub fn new(subscribers: Arc<dyn Subscribers>, shell: fn() -> PathBuf) -> Arc<Self> {
        Arc::new(Self { subscribers, shell, table: Mutex::default() })
    }

    /// Makes an environment known. One behind a command is connected to from now on, with `env` for the command.
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
        // A thread that was resumed before its environment was known again has waited for this.
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

    /// As it is now; one that takes its time to answer is told as it was last seen.
    pub async fn status(&self, id: &EnvironmentId) -> EnvironmentStatusResponse {
        let found = self.table.lock().find(id);
        let seen = match found {
            None => return EnvironmentStatusResponse { status: EnvironmentStatus::Unknown, error: None },
            Some(FoundEnvironment::Here(cwd)) => Seen::of_folder(cwd.as_str()),
            Some(FoundEnvironment::Behind(place)) => {
                place.look_again(PATIENCE_OF_CLIENTS).await;
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

    /// Whether these can be chosen.
    pub fn check(&self, chosen: &[EnvironmentSelection]) -> Result<(), EnvironmentError> {
        self.table.lock().check(chosen)
    }

    /// Chooses for a thread. The same choice once more is no change.
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

    /// The selection a thread had when it was stored. Environments no longer known cannot be used until added again:
    /// work meant for another place never falls back on this machine.
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
            // Something may have changed since it was looked at.
            choice.wake();
            table.choices.push(choice);
            table.want_look(&chosen);
        }
        chosen
    }

    /// Where the calls of the next step run. `None`: nobody has chosen anything.
    pub fn places(&self, chosen: Option<&Chosen>, cwd: &str) -> Places {
        let Some(chosen) = chosen else {
            return Places { environments: Arc::new([StepEnvironment::here(cwd)]), shell: None };
        };
        let found = self.table.lock().find_all(chosen);
        let seen = chosen.iter().zip(&found).map(|(one, found)| step_environment(one, found.as_ref()));
        let (environments, mut shells): (Vec<_>, Vec<_>) = seen.unzip();
        if found.iter().any(|found| matches!(found, Some(FoundEnvironment::Here(_)))) {
            // A folder that came or went since is news.
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

    /// A call failed in this environment: perhaps because it is gone. Returns when that is known, or after a while.
    pub async fn doubt(&self, id: &EnvironmentId) {
        let found = self.table.lock().find(id);
        if let Some(FoundEnvironment::Behind(place)) = found {
            place.look_again(PATIENCE_OF_CALLS).await;
        }
    }

    /// Folders are looked for without the lock: a file system may be slow.
    fn see_all(&self, chosen: &[EnvironmentSelection]) -> Vec<Seen> {
        let found = self.table.lock().find_all(chosen);
        chosen.iter().zip(&found).map(|(one, found)| Seen::of(one, found.as_ref())).collect()
    }

    fn want_look(&self, chosen: &[EnvironmentSelection]) {
        self.table.lock().want_look(chosen);
    }
}

fn wake(registry: &Weak<Environments>, id: &EnvironmentId) {
    if let Some(registry) = registry.upgrade() {
        registry.table.lock().wake(id);
    }
}

/// The one that decides about the surroundings: where calls run, else where they will, else where they should have.
pub fn governing(environments: &[StepEnvironment]) -> Option<&StepEnvironment> {
    governing_at(environments).map(|at| &environments[at])
}

fn governing_at(environments: &[StepEnvironment]) -> Option<usize> {
    let first = |state| environments.iter().position(|environment| environment.state == state);
    first(EnvironmentState::Attached)
        .or_else(|| first(EnvironmentState::Starting))
        .or_else(|| (!environments.is_empty()).then_some(0))
}

/// The environments that a child of this step's turn, or a review of it, may work in: those attached. `None` when
/// nobody has chosen anything, so that it works where its parent's thread does.
pub fn attached_selections(step: &Step) -> Option<Vec<EnvironmentSelection>> {
    let is_chosen = step.environments.is_empty() || step.environments.iter().any(|one| one.is_chosen);
    let attached = step.environments.iter().filter(|one| one.state == EnvironmentState::Attached);
    let selection =
        |one: &StepEnvironment| EnvironmentSelection { environment_id: one.id.clone(), cwd: one.cwd.clone() };
    is_chosen.then(|| attached.map(selection).collect())
}

#[cfg(test)]
mod tests;
