//! What is to be started and within which walls: the one message from the server to the helper process that starts it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use serde::{Deserialize, Serialize};

/// One command. The helper gets it as JSON on an inherited descriptor, never by argument or environment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Order {
    pub argv: Vec<String>,
    pub cwd: PathBuf,
    /// The whole environment of the command; nothing else is inherited.
    pub env: BTreeMap<String, String>,
    /// `None`: as the user who started the server, only watched over.
    pub confinement: Option<Confinement>,
    pub limits: Limits,
    /// Standard input, output and error are one terminal, which the command is to control.
    pub terminal: bool,
}

/// Walls around a command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Confinement {
    pub strength: Strength,
    pub read: ReadAccess,
    /// Absolute. Everything else is read-only.
    pub writable: Vec<PathBuf>,
    /// Where writable roots led when they were decided on, symbolic links resolved. One that leads elsewhere by the time
    /// the command starts was turned by somebody, and the command is refused.
    #[serde(default)]
    pub resolved: Vec<(PathBuf, PathBuf)>,
    /// Names that are read-only beneath every writable root, whether or not they exist yet.
    pub protected: Vec<String>,
    /// Existing absolute paths beneath the writable roots that are read-only, such as the `.git` of a nested repository.
    pub protected_paths: Vec<PathBuf>,
    /// Absolute paths that can neither be read nor written, wherever they lie, such as stored credentials.
    pub hidden: Vec<PathBuf>,
    /// Those of the hidden paths whose name is held while there is nothing behind it, so that a command can neither make
    /// it nor see it once it is made.
    #[serde(default)]
    pub reserved: Vec<PathBuf>,
    /// Absolute paths beneath hidden ones that can be read all the same.
    pub shown: Vec<PathBuf>,
    /// The home folder of the user. For a server that runs as root, it and the roots are what still counts as the
    /// user's own; everything else has to be readable for anybody.
    #[serde(default)]
    pub home: Option<PathBuf>,
    pub network: bool,
    /// TCP ports of this machine that cannot be connected to even with network: the server's own listeners.
    pub closed_ports: Vec<u16>,
    /// Local sockets outside the sandbox that may be connected to when there is network.
    pub unix_sockets: Vec<PathBuf>,
}

/// What stays out of reach of every sandboxed command of a thread, whatever its policy says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OffLimits {
    /// Our own state, keys, tokens and sockets. Nobody can grant these.
    pub sealed: Vec<PathBuf>,
    /// Places where people keep credentials. A granted permission to read one opens it.
    pub credentials: Arc<[PathBuf]>,
    /// What commands read all the same of the above: skills, the outputs of their own thread, what the user allows.
    pub shown: Vec<PathBuf>,
    /// Existing paths with protected names beneath the writable roots.
    pub protected: Vec<PathBuf>,
    /// TCP ports on which this process listens.
    pub ports: Vec<u16>,
    /// Local sockets that the user lets commands connect to.
    pub unix_sockets: Vec<PathBuf>,
}

impl OffLimits {
    /// Everything that cannot be read, before it is known where a command works and what its user granted.
    pub fn hidden(&self) -> Vec<PathBuf> {
        self.sealed.iter().chain(self.credentials.iter()).cloned().collect()
    }

    /// One list for all threads that have the same: there are hundreds of such places.
    pub fn share_credentials(places: Vec<PathBuf>) -> Arc<[PathBuf]> {
        static LAST: Mutex<Option<Weak<[PathBuf]>>> = Mutex::new(None);
        let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(same) = last.as_ref().and_then(Weak::upgrade).filter(|known| **known == *places) {
            return same;
        }
        let places: Arc<[PathBuf]> = places.into();
        *last = Some(Arc::downgrade(&places));
        places
    }
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

/// What a command may use up.
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
