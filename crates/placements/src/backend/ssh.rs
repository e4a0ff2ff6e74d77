//! A machine behind ssh. Processes share connections: a server admits about ten sessions over one, so a new master
//! connection is opened for every eight.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Mutex;

use super::{Labeled, MadePlace, PlaceBackend, PlaceFuture, PlaceState, Prefix, folder};
use crate::error::PlacementError;
use crate::progress::ProgressSink;
use crate::scratch::ScratchDir;
use crate::search::find_tool;
use crate::settings::{Labels, PlacementReference, SshSettings};
use crate::tool::{ToolRun, words};

const SESSIONS_PER_MASTER: usize = 8;
/// A connection that hears nothing for this long, three times, is broken.
const OPTIONS: &[&str] = &[
    "-T",
    "-o",
    "BatchMode=yes",
    "-o",
    "ConnectTimeout=15",
    "-o",
    "ServerAliveInterval=10",
    "-o",
    "ServerAliveCountMax=3",
];
const CONNECT_LIMIT: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct Ssh {
    pub(crate) settings: SshSettings,
    pub(crate) connections: Arc<SshConnections>,
}

/// The master connections of this process, to all hosts.
#[derive(Debug, Default)]
pub(crate) struct SshConnections {
    open: Mutex<OpenMasters>,
}

#[derive(Debug, Default)]
struct OpenMasters {
    sockets: Option<Arc<ScratchDir>>,
    masters: Vec<Arc<SshMaster>>,
    opened: usize,
}

/// Ended when nobody uses it, by the last session or with the process.
#[derive(Debug)]
struct SshMaster {
    tool: Vec<String>,
    host: String,
    socket: String,
    /// It looked alive and did not answer. Its sessions go on for as long as they can; new ones go over another one.
    is_given_up: AtomicBool,
    /// The socket lies in it.
    _sockets: Arc<ScratchDir>,
}

/// A place in a master connection, for one process.
#[derive(Debug)]
pub(crate) struct SshSession(Arc<SshMaster>);

impl SshSession {
    pub(crate) fn give_up(&self) {
        self.0.is_given_up.store(true, Ordering::Relaxed);
    }
}

impl Drop for SshMaster {
    fn drop(&mut self) {
        let argv = words(&self.tool, &["-S", &self.socket, "-O", "exit", "--", &self.host]);
        let null = std::process::Stdio::null;
        // It answers from a local socket. A master that is gone already is no problem.
        let Ok(program) = find_tool(&argv[0]) else { return };
        let _ = std::process::Command::new(program)
            .args(&argv[1..])
            .stdin(null())
            .stdout(null())
            .stderr(null())
            .status();
    }
}

impl SshConnections {
    async fn session(&self, tool: &[String], host: &str) -> Result<SshSession, PlacementError> {
        let mut open = self.open.lock().await;
        // The socket of a master that ended is gone.
        open.masters.retain(|master| {
            !master.is_given_up.load(Ordering::Relaxed) && std::fs::exists(&master.socket).unwrap_or(false)
        });
        let has_room = |master: &&Arc<SshMaster>| {
            master.tool == tool && master.host == host && Arc::strong_count(master) <= SESSIONS_PER_MASTER
        };
        if let Some(master) = open.masters.iter().find(has_room) {
            return Ok(SshSession(Arc::clone(master)));
        }
        let sockets = match &open.sockets {
            Some(sockets) => Arc::clone(sockets),
            None => Arc::clone(open.sockets.insert(Arc::new(ScratchDir::new()?))),
        };
        open.opened += 1;
        let socket = sockets.path().join(open.opened.to_string()).to_string_lossy().into_owned();
        let mut argv = words(tool, OPTIONS);
        // It ends by itself when this process could not end it.
        argv.extend(
            ["-M", "-N", "-f", "-S", &socket, "-o", "ControlPersist=60", "--", host].map(str::to_owned),
        );
        ToolRun { limit: CONNECT_LIMIT, ..ToolRun::new("connecting", &argv) }.succeed().await?;
        let master = Arc::new(SshMaster {
            tool: tool.to_vec(),
            host: host.to_owned(),
            socket,
            is_given_up: AtomicBool::new(false),
            _sockets: sockets,
        });
        open.masters.push(Arc::clone(&master));
        Ok(SshSession(master))
    }
}

impl Ssh {
    fn tool(&self) -> Vec<String> {
        match self.settings.tool.is_empty() {
            true => vec!["ssh".to_owned()],
            false => self.settings.tool.clone(),
        }
    }

    async fn there(&self) -> Result<Prefix, PlacementError> {
        let host = &self.settings.host;
        if host.is_empty() || host.starts_with('-') || host.contains(char::is_whitespace) {
            return Err(PlacementError::invalid(
                "host",
                format!("{host:?} is no host; give user@host or an alias of your ssh configuration"),
            ));
        }
        let tool = self.tool();
        let session = self.connections.session(&tool, host).await?;
        let mut argv = words(&tool, OPTIONS);
        argv.extend(["-S", &session.0.socket, "-o", "ControlMaster=no", "--", host].map(str::to_owned));
        Ok(Prefix { argv, login_shell: true, session: Some(Arc::new(session)), ..Prefix::default() })
    }
}

impl PlaceBackend for Ssh {
    fn make<'a>(&'a self, labels: &'a Labels, _: &'a ProgressSink) -> PlaceFuture<'a, MadePlace> {
        Box::pin(async move {
            folder::make(&self.there().await?, self.settings.workspace.as_deref(), None, labels).await
        })
    }

    fn prefix<'a>(&'a self, _: &'a PlacementReference) -> PlaceFuture<'a, Prefix> {
        Box::pin(self.there())
    }

    fn state<'a>(&'a self, place: &'a PlacementReference) -> PlaceFuture<'a, PlaceState> {
        Box::pin(async move { folder::state(&self.there().await?, place).await })
    }

    fn suspend<'a>(&'a self, place: &'a PlacementReference) -> PlaceFuture<'a, ()> {
        Box::pin(async move { folder::end_processes(&self.there().await?, place).await })
    }

    fn wake<'a>(&'a self, _: &'a PlacementReference) -> PlaceFuture<'a, ()> {
        Box::pin(async move { self.there().await.map(drop) })
    }

    fn destroy<'a>(&'a self, place: &'a PlacementReference) -> PlaceFuture<'a, ()> {
        Box::pin(async move { folder::destroy(&self.there().await?, place).await })
    }

    fn leftovers<'a>(&'a self) -> PlaceFuture<'a, Vec<Labeled>> {
        Box::pin(async move { folder::leftovers(&self.there().await?, None).await })
    }
}
