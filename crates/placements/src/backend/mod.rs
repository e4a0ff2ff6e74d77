//! One file per backend: how its place is made and ended, and the argv prefix that runs what follows it there.

pub(crate) mod command;
mod container;
pub(crate) mod docker;
mod folder;
pub(crate) mod kubernetes;
pub(crate) mod local;
pub(crate) mod podman;
pub(crate) mod ssh;

use std::fmt::Debug;
use std::pin::Pin;
use std::sync::Arc;

use support::Clock;
use tokio::process::Command;

use crate::error::PlacementError;
use crate::progress::ProgressSink;
use crate::script::quote_for_login_shell;
use crate::settings::{Labels, PlacementReference, PlacementSettings};

pub(crate) type PlaceFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, PlacementError>> + Send + 'a>>;

/// A place that was made.
#[derive(Debug)]
pub(crate) struct MadePlace {
    pub(crate) handle: Option<String>,
    pub(crate) workspace: String,
    /// `UID:GID` of the workspace's owner, where commands are to run as that user and the runtime is root.
    pub(crate) command_user: Option<String>,
    /// The workspace is a part of the image, or somebody's folder.
    pub(crate) had_workspace: bool,
}

impl MadePlace {
    /// A place whose commands run as its runtime does.
    fn new(handle: Option<String>, workspace: String) -> Self {
        Self { handle, workspace, command_user: None, had_workspace: false }
    }
}

/// Whether a placement can be used, as its backend sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceState {
    Running,
    /// It can be woken.
    Suspended,
    /// It has to be made again, from a snapshot or a manifest.
    Gone,
}

/// The part that differs between backends. Everything else goes through the prefix.
pub(crate) trait PlaceBackend: Send + Sync {
    fn make<'a>(&'a self, labels: &'a Labels, progress: &'a ProgressSink) -> PlaceFuture<'a, MadePlace>;
    fn prefix<'a>(&'a self, place: &'a PlacementReference) -> PlaceFuture<'a, Prefix>;
    /// The same for what is to run as the user of commands. `None` where that is the user of the runtime.
    fn command_prefix(&self, _: &PlacementReference) -> Result<Option<Prefix>, PlacementError> {
        Ok(None)
    }
    fn state<'a>(&'a self, place: &'a PlacementReference) -> PlaceFuture<'a, PlaceState>;
    fn suspend<'a>(&'a self, place: &'a PlacementReference) -> PlaceFuture<'a, ()>;
    /// The place as it is afterwards: one that had to be made again has lost its workspace.
    fn wake<'a>(&'a self, place: &'a PlacementReference) -> PlaceFuture<'a, ()>;
    /// Succeeds where there is nothing any more.
    fn destroy<'a>(&'a self, place: &'a PlacementReference) -> PlaceFuture<'a, ()>;
    /// Everything of this kind that carries our labels, whichever host made it.
    fn leftovers<'a>(&'a self) -> PlaceFuture<'a, Vec<Labeled>>;
    /// Whether suspending ends the place, so that its workspace has to be snapshotted before.
    fn suspend_loses_workspace(&self) -> bool {
        false
    }
}

/// The name alone: to print the values behind it, the program would carry the `Debug` code of all their types.
impl Debug for dyn PlaceBackend + '_ {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PlaceBackend")
    }
}

/// Something that was found by its labels.
#[derive(Debug)]
pub(crate) struct Labeled {
    pub(crate) labels: Labels,
    pub(crate) place: MadePlace,
}

/// What the backends of one host share.
#[derive(Debug)]
pub(crate) struct PlaceServices {
    pub(crate) ssh: Arc<ssh::SshConnections>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl PlaceServices {
    /// Seconds since 1970, for labels.
    pub(crate) fn now_s(&self) -> u64 {
        seconds(&*self.clock)
    }
}

pub(crate) fn seconds(clock: &dyn Clock) -> u64 {
    u64::try_from(clock.now_ms() / 1_000).unwrap_or(0)
}

pub(crate) fn backend(settings: &PlacementSettings, services: &PlaceServices) -> Box<dyn PlaceBackend> {
    match settings.clone() {
        PlacementSettings::Local(settings) => Box::new(local::LocalPlace(settings)),
        PlacementSettings::Docker(settings) => Box::new(docker::docker(settings)),
        PlacementSettings::Podman(settings) => Box::new(podman::podman(settings)),
        PlacementSettings::Ssh(settings) => {
            Box::new(ssh::Ssh { settings, connections: Arc::clone(&services.ssh) })
        }
        PlacementSettings::Kubernetes(settings) => {
            Box::new(kubernetes::Kubernetes { settings, clock: Arc::clone(&services.clock) })
        }
        PlacementSettings::Command(settings) => Box::new(command::CommandPlace(settings)),
    }
}

/// An argv that runs what follows it in the place, with clean pipes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Prefix {
    pub(crate) argv: Vec<String>,
    /// The words after it are joined and read by a login shell there.
    pub(crate) login_shell: bool,
    /// The process would get a copy of our own environment, which is none of its business.
    pub(crate) clear_environment: bool,
    /// Variables that the prefix itself needs.
    pub(crate) environment: Vec<String>,
    /// Held while a process runs.
    pub(crate) session: Option<Arc<ssh::SshSession>>,
}

/// All that a process on this machine gets of our environment.
const INHERITED: &[&str] = &["PATH", "HOME", "LANG", "USER", "TMPDIR"];

impl Prefix {
    /// The whole command line for these words.
    pub(crate) fn around(&self, words: &[&str]) -> Vec<String> {
        let mut argv = self.argv.clone();
        match self.login_shell {
            true => {
                let quoted: Vec<String> = words.iter().map(|word| quote_for_login_shell(word)).collect();
                argv.push(quoted.join(" "));
            }
            false => argv.extend(words.iter().map(|&word| word.to_owned())),
        }
        argv
    }

    /// After nothing came back in time: the next prefix leads over another connection, where there is one.
    pub(crate) fn give_up(&self) {
        if let Some(session) = &self.session {
            session.give_up();
        }
    }

    /// For sentences: the prefix alone, or the shell where there is none.
    pub(crate) fn shown_argv(&self) -> Vec<String> {
        match self.argv.is_empty() {
            true => vec!["sh".to_owned()],
            false => self.argv.clone(),
        }
    }

    pub(crate) fn set_environment(&self, command: &mut Command) {
        if self.clear_environment {
            command.env_clear();
            command.envs(
                INHERITED
                    .iter()
                    .copied()
                    .chain(self.environment.iter().map(String::as_str))
                    .filter_map(|name| Some((name, std::env::var_os(name)?))),
            );
        }
    }
}
