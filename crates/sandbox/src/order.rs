//! The command to start and its sandbox: the only message from the server to the helper process.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Weak};

use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};

/// One command. The helper gets it as JSON on an inherited descriptor, never by argument or environment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Order {
    pub argv: Vec<String>,
    pub cwd: PathBuf,
    /// The whole environment of the command; nothing else is inherited.
    pub env: BTreeMap<String, String>,
    /// `None`: no sandbox, as the user who started the server, but still supervised.
    pub confinement: Option<Confinement>,
    pub limits: Limits,
    /// Standard input, output and error are one terminal, which becomes the command's controlling terminal.
    pub terminal: bool,
}

/// The sandbox around a command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Confinement {
    pub strength: Strength,
    pub read: ReadAccess,
    /// Absolute. Everything else is read-only.
    pub writable: Vec<PathBuf>,
    /// The targets of writable roots when they were decided. If one has changed by the time the command starts, the
    /// command is refused.
    #[serde(default)]
    pub resolved: Vec<(PathBuf, PathBuf)>,
    /// Names that are read-only inside every writable root, whether or not they exist yet.
    pub protected: Vec<String>,
    /// Existing absolute paths beneath the writable roots that are read-only, such as the `.git` of a nested
    /// repository.
    pub protected_paths: Vec<PathBuf>,
    /// Absolute paths that can neither be read nor written, such as stored credentials.
    pub hidden: Vec<PathBuf>,
    /// Hidden paths whose names are reserved while they do not exist, so that a command can neither create them nor see
    /// them later.
    #[serde(default)]
    pub reserved: Vec<PathBuf>,
    /// Absolute paths inside hidden ones that can be read nevertheless.
    pub shown: Vec<PathBuf>,
    /// The user's home folder. If the server runs as root, only it and the roots count as the user's own; everything
    /// else is accessible only if it is for everyone.
    #[serde(default)]
    pub home: Option<PathBuf>,
    pub network: bool,
    /// TCP ports of this machine that are closed even with network: the server's own listeners.
    pub closed_ports: Vec<u16>,
    /// Unix sockets outside the sandbox that may be connected to if there is network.
    pub unix_sockets: Vec<PathBuf>,
}

/// The paths that no sandboxed command of a thread can reach, whatever its policy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OffLimits {
    /// Our own state, keys, tokens and sockets. They cannot be granted.
    pub sealed: Vec<PathBuf>,
    /// Paths of the user's credentials. A granted read permission makes one accessible.
    pub credentials: Arc<[PathBuf]>,
    /// Paths inside those that commands can read nevertheless: skills, outputs of their own thread, and what the user
    /// allows.
    pub shown: Vec<PathBuf>,
    /// Existing paths with protected names inside the writable roots.
    pub protected: Vec<PathBuf>,
    /// TCP ports on which this process listens.
    pub ports: Vec<u16>,
    /// Unix sockets that the user lets commands connect to.
    pub unix_sockets: Vec<PathBuf>,
    /// Listeners that this process opened later.
    pub later: LaterListeners,
}

/// Listeners of this process, shared by all threads: additions apply from the next command on, also in open threads.
#[derive(Debug, Clone, Default)]
pub struct LaterListeners(Arc<Mutex<Listeners>>);

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Listeners {
    ports: Vec<u16>,
    files: Vec<PathBuf>,
}

impl LaterListeners {
    /// Adds ports that cannot be connected to, and files of ours, such as sockets and tokens.
    pub fn add(&self, ports: impl IntoIterator<Item = u16>, files: impl IntoIterator<Item = PathBuf>) {
        let mut known = self.lock();
        known.ports.extend(ports);
        known.files.extend(files);
    }

    fn lock(&self) -> MutexGuard<'_, Listeners> {
        self.0.lock()
    }
}

impl PartialEq for LaterListeners {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || *self.lock() == other.lock().clone()
    }
}

impl Eq for LaterListeners {}

impl OffLimits {
    /// Including later additions.
    pub(crate) fn now(&self) -> Cow<'_, Self> {
        let later = self.later.lock();
        let ports: Vec<u16> = later.ports.iter().filter(|port| !self.ports.contains(port)).copied().collect();
        let files: Vec<PathBuf> =
            later.files.iter().filter(|file| !self.sealed.contains(file)).cloned().collect();
        if ports.is_empty() && files.is_empty() {
            return Cow::Borrowed(self);
        }
        drop(later);
        let mut now = self.clone();
        now.ports.extend(ports);
        now.sealed.extend(files);
        Cow::Owned(now)
    }

    /// Everything hidden, before the command's folder and grants are known.
    pub fn hidden(&self) -> Vec<PathBuf> {
        self.sealed.iter().chain(self.credentials.iter()).cloned().collect()
    }

    /// One list for all threads that have the same: there are hundreds of such places.
    pub fn share_credentials(places: Vec<PathBuf>) -> Arc<[PathBuf]> {
        static LAST: Mutex<Option<Weak<[PathBuf]>>> = Mutex::new(None);
        let mut last = LAST.lock();
        if let Some(same) = last.as_ref().and_then(Weak::upgrade).filter(|known| is_same(known, &places)) {
            return same;
        }
        let places: Arc<[PathBuf]> = places.into();
        *last = Some(Arc::downgrade(&places));
        places
    }
}

/// As they are written, which is quicker than comparing them part by part.
fn is_same(one: &[PathBuf], other: &[PathBuf]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| one.as_os_str() == other.as_os_str())
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum ReadAccess {
    Everything,
    /// These, and what programs need to run at all.
    Only(Vec<PathBuf>),
    /// These and nothing else, not even the system's own folders.
    Exactly(Vec<PathBuf>),
}

/// Which layers are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Strength {
    /// Namespaces, Landlock and seccomp.
    Full,
    /// Landlock and seccomp only, where namespaces are not to be had. Must be asked for by name: it cannot hide files,
    /// protect names that do not exist yet, or keep processes apart.
    LandlockOnly,
}

/// The memory and the processes that a command may use up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    pub processes: u64,
    /// In bytes, for the whole tree where a cgroup can be had, else for each process. `None`: most of what the machine
    /// or its container has, where a cgroup can be had, else no limit. Reserving much and using little is common, so
    /// that a limit for each process is only for whoever asks.
    pub memory: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { processes: 512, memory: None }
    }
}
