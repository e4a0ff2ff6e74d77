//! Owns the environments of one process: which there are, whether they can be used, and which threads have chosen
//! them. Must not know how turns work or who the clients are.

mod checks;
mod choice;
mod error;
mod place;
mod probe;
mod stored;
mod table;

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use engine::{EnvironmentState, Step, StepEnvironment};
use protocol::{
    EnvironmentAddParams, EnvironmentId, EnvironmentInfoResponse, EnvironmentSelection, EnvironmentSpec,
    EnvironmentStatus, EnvironmentStatusResponse, ServerNotification, ThreadId,
};

use checks::check_added;
use choice::Choice;
pub use error::EnvironmentError;
use place::Place;
use probe::Prober;
pub use stored::stored_choice;
use table::{Found, Known, Seen, Table, Watch, info_here, step_environment};

/// The most that can be known at once.
const MAX_KNOWN: usize = 256;
/// How long whoever asks waits for an answer that is not stale. The next requests of a client wait as long.
const PATIENCE_OF_CLIENTS: Duration = Duration::from_secs(2);
/// How long the outcome of a call that failed is held back until it is known whether its place is gone.
const PATIENCE_OF_CALLS: Duration = Duration::from_secs(10);

/// What a thread has chosen, shared by whoever works with it. As long as one of them lives, its environments are
/// watched.
pub type Chosen = Arc<[EnvironmentSelection]>;

/// The clients of a thread, who are notified when one of its environments comes or goes.
pub trait Subscribers: fmt::Debug + Send + Sync {
    /// Delivers in order.
    fn notify<'a>(
        &'a self,
        thread: &'a ThreadId,
        notification: ServerNotification,
    ) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>>;
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
        let mut table = lock(&self.table);
        if table.known.contains_key(&id) && table.is_chosen(&id) {
            return Err(EnvironmentError::InUse(id));
        }
        if !table.known.contains_key(&id) && table.known.len() >= MAX_KNOWN {
            return Err(EnvironmentError::TooMany(MAX_KNOWN));
        }
        let known = match environment {
            EnvironmentSpec::Local { cwd } => Known::Local { cwd },
            EnvironmentSpec::Command { argv, cwd, probe } => {
                let prober = Prober {
                    argv: argv.clone().into(),
                    probe: probe.clone().unwrap_or_else(|| vec!["true".to_owned()]),
                    cwd: cwd.clone(),
                    env,
                };
                let spec = EnvironmentSpec::Command { argv, cwd, probe };
                let place = Arc::new(Place::new(spec, prober, connect));
                let (registry, of) = (Arc::downgrade(self), id.clone());
                let changed = move || wake(&registry, &of);
                let watch = tokio::spawn(place.clone().keep_watch(changed));
                Known::Command { place, _watch: Watch(watch) }
            }
        };
        table.known.insert(id.clone(), known);
        // A thread that was resumed before its environment was known again has waited for this.
        table.wake(&id);
        Ok(())
    }

    pub fn info(&self, id: &EnvironmentId) -> Result<EnvironmentInfoResponse, EnvironmentError> {
        let table = lock(&self.table);
        let place = match table.find(id) {
            Some(Found::Here(cwd)) => return Ok(info_here(id, cwd, &(self.shell)())),
            Some(Found::Behind(place)) => place,
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
        let found = lock(&self.table).find(id);
        let seen = match found {
            None => return EnvironmentStatusResponse { status: EnvironmentStatus::Unknown, error: None },
            Some(Found::Here(cwd)) => Seen::of_folder(cwd.as_str()),
            Some(Found::Behind(place)) => {
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
        lock(&self.table).check(chosen)
    }

    /// Chooses for a thread. The same choice once more is no change.
    pub fn choose(
        self: &Arc<Self>,
        thread: &ThreadId,
        chosen: Vec<EnvironmentSelection>,
    ) -> Result<Chosen, EnvironmentError> {
        let told = self.see_all(&chosen);
        let mut table = lock(&self.table);
        table.check(&chosen)?;
        Ok(self.remember(&mut table, thread, chosen, told))
    }

    /// What a thread had chosen when it was stored. What is not known any more cannot be used until it is added again:
    /// work meant for another place never falls back on this machine.
    pub fn choose_again(self: &Arc<Self>, thread: &ThreadId, chosen: Vec<EnvironmentSelection>) -> Chosen {
        let told = self.see_all(&chosen);
        self.remember(&mut lock(&self.table), thread, chosen, told)
    }

    fn remember(
        self: &Arc<Self>,
        table: &mut Table,
        thread: &ThreadId,
        chosen: Vec<EnvironmentSelection>,
        told: Vec<Seen>,
    ) -> Chosen {
        table.choices.retain(Choice::is_alive);
        if let Some(same) = table.choices.iter().find_map(|choice| choice.same(thread, &chosen)) {
            return same;
        }
        let chosen: Chosen = chosen.into();
        if !chosen.is_empty() {
            let choice = Choice::follow(self, thread, &chosen, told);
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
        let found = lock(&self.table).find_all(chosen);
        let seen = chosen.iter().zip(&found).map(|(one, found)| step_environment(one, found.as_ref()));
        let (environments, mut shells): (Vec<_>, Vec<_>) = seen.unzip();
        if found.iter().any(|found| matches!(found, Some(Found::Here(_)))) {
            // A folder that came or went since is news.
            lock(&self.table).choices.iter().filter(|choice| choice.is_of(chosen)).for_each(Choice::wake);
        }
        let shell = governing_at(&environments).and_then(|at| shells[at].take());
        Places { environments: environments.into(), shell }
    }

    /// A call failed in this environment: perhaps because it is gone. Returns when that is known, or after a while.
    pub async fn doubt(&self, id: &EnvironmentId) {
        let found = lock(&self.table).find(id);
        if let Some(Found::Behind(place)) = found {
            place.look_again(PATIENCE_OF_CALLS).await;
        }
    }

    /// Folders are looked for without the lock: a file system may be slow.
    fn see_all(&self, chosen: &[EnvironmentSelection]) -> Vec<Seen> {
        let found = lock(&self.table).find_all(chosen);
        chosen.iter().zip(&found).map(|(one, found)| Seen::of(one, found.as_ref())).collect()
    }

    fn want_look(&self, chosen: &[EnvironmentSelection]) {
        lock(&self.table).want_look(chosen);
    }
}

fn wake(registry: &Weak<Environments>, id: &EnvironmentId) {
    if let Some(registry) = registry.upgrade() {
        lock(&registry.table).wake(id);
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

/// What a child of this step's turn, or a review of it, may work in: what is attached. `None` when nobody has chosen
/// anything, so that it works where its parent's thread does.
pub fn attached_selections(step: &Step) -> Option<Vec<EnvironmentSelection>> {
    let is_chosen = step.environments.is_empty() || step.environments.iter().any(|one| one.is_chosen);
    let attached = step.environments.iter().filter(|one| one.state == EnvironmentState::Attached);
    let selection =
        |one: &StepEnvironment| EnvironmentSelection { environment_id: one.id.clone(), cwd: one.cwd.clone() };
    is_chosen.then(|| attached.map(selection).collect())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
