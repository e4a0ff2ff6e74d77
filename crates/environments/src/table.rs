//! The known environments by id.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use engine::{EnvironmentState, Reach, StepEnvironment};
use protocol::{
    AbsolutePath, EnvironmentId, EnvironmentInfoResponse, EnvironmentSelection, EnvironmentShell,
    EnvironmentSpec,
};
use tokio::task::JoinHandle;

use super::checks::{EnvironmentKind, LOCAL, check_chosen};
use super::choice::WatchedChoice;
use super::error::EnvironmentError;
use super::place::EnvironmentPlace;

#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) known: BTreeMap<EnvironmentId, KnownEnvironment>,
    pub(super) choices: Vec<WatchedChoice>,
}

#[derive(Debug)]
pub(super) enum KnownEnvironment {
    Local { cwd: AbsolutePath },
    Command { place: Arc<EnvironmentPlace>, _watch: WatchTask },
}

/// A task that ends when this is dropped.
#[derive(Debug)]
pub(super) struct WatchTask(pub(super) JoinHandle<()>);

impl Drop for WatchTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The state of one chosen environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) state: EnvironmentState,
    /// Why it cannot be used.
    pub(super) reason: Option<String>,
}

/// The environment behind an id.
pub(super) enum FoundEnvironment {
    Here(AbsolutePath),
    Behind(Arc<EnvironmentPlace>),
}

impl Table {
    pub(super) fn find(&self, id: &EnvironmentId) -> Option<FoundEnvironment> {
        match self.known.get(id) {
            Some(KnownEnvironment::Local { cwd }) => Some(FoundEnvironment::Here(cwd.clone())),
            Some(KnownEnvironment::Command { place, .. }) => Some(FoundEnvironment::Behind(place.clone())),
            None if id.as_str() == LOCAL => own_folder().map(FoundEnvironment::Here),
            None => None,
        }
    }

    pub(super) fn find_all(&self, chosen: &[EnvironmentSelection]) -> Vec<Option<FoundEnvironment>> {
        chosen.iter().map(|one| self.find(&one.environment_id)).collect()
    }

    pub(super) fn check(&self, chosen: &[EnvironmentSelection]) -> Result<(), EnvironmentError> {
        let kind_of = |id: &EnvironmentId| match self.known.get(id) {
            Some(KnownEnvironment::Local { .. }) => Some(EnvironmentKind::Local),
            Some(KnownEnvironment::Command { .. }) => Some(EnvironmentKind::Command),
            None => (id.as_str() == LOCAL).then_some(EnvironmentKind::Local),
        };
        check_chosen(chosen, kind_of, || self.names())
    }

    pub(super) fn names(&self) -> String {
        let known = self.known.keys().map(|id| format!(", `{id}`"));
        std::iter::once(format!("`{LOCAL}`")).chain(known).collect()
    }

    pub(super) fn is_chosen(&self, id: &EnvironmentId) -> bool {
        self.choices.iter().any(|choice| choice.includes(id))
    }

    pub(super) fn wake(&self, id: &EnvironmentId) {
        self.choices.iter().filter(|choice| choice.includes(id)).for_each(WatchedChoice::wake);
    }

    pub(super) fn request_check(&self, chosen: &[EnvironmentSelection]) {
        for one in chosen {
            if let Some(KnownEnvironment::Command { place, .. }) = self.known.get(&one.environment_id) {
                place.request_check();
            }
        }
    }
}

/// With the name of its shell, if it is not this machine's.
pub(super) fn step_environment(
    one: &EnvironmentSelection,
    found: Option<&FoundEnvironment>,
) -> (StepEnvironment, Option<String>) {
    let (id, cwd) = (one.environment_id.clone(), one.cwd.clone());
    let (reach, state, shell) = match found {
        Some(FoundEnvironment::Here(_)) => (Reach::Local, Seen::of_folder(&cwd).state, None),
        Some(FoundEnvironment::Behind(place)) => {
            let sight = place.sight();
            let shell = sight.shell.map_or_else(|| "sh".to_owned(), |shell| shell.name);
            (Reach::Command { argv: place.argv() }, sight.state, Some(shell))
        }
        // Nothing runs there, and must not run here.
        None => {
            (Reach::Command { argv: Arc::new([]) }, EnvironmentState::Disconnected, Some("sh".to_owned()))
        }
    };
    (StepEnvironment { id, cwd, reach, state, is_chosen: true }, shell)
}

impl Seen {
    pub(super) fn of(one: &EnvironmentSelection, found: Option<&FoundEnvironment>) -> Self {
        match found {
            Some(FoundEnvironment::Here(_)) => Self::of_folder(&one.cwd),
            Some(FoundEnvironment::Behind(place)) => Self::of_place(place),
            None => Self::lost("no environment has this id any more; add it again".to_owned()),
        }
    }

    pub(super) fn of_folder(cwd: &str) -> Self {
        if Path::new(cwd).is_dir() {
            return Self { state: EnvironmentState::Attached, reason: None };
        }
        Self::lost(format!("{cwd} is not a folder of this machine"))
    }

    pub(super) fn of_place(place: &EnvironmentPlace) -> Self {
        let sight = place.sight();
        Self { state: sight.state, reason: sight.error }
    }

    fn lost(reason: String) -> Self {
        Self { state: EnvironmentState::Disconnected, reason: Some(reason) }
    }
}

pub(super) fn info_here(id: &EnvironmentId, cwd: AbsolutePath, shell: &Path) -> EnvironmentInfoResponse {
    let name = shell.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let shell = EnvironmentShell { name, path: shell.to_string_lossy().into_owned() };
    let found = Path::new(cwd.as_str()).is_dir().then(|| cwd.to_string());
    EnvironmentInfoResponse {
        environment_id: id.clone(),
        environment: EnvironmentSpec::Local { cwd },
        shell: Some(shell),
        cwd: found,
    }
}

/// This process's folder; the root if that is gone or no valid text.
fn own_folder() -> Option<AbsolutePath> {
    let own = std::env::current_dir().ok().and_then(|own| own.into_os_string().into_string().ok());
    own.and_then(AbsolutePath::new).or_else(|| AbsolutePath::new("/"))
}
