//! What is to be started and within which walls: the one message from the server to the helper process that starts it.

use std::collections::BTreeMap;
use std::path::PathBuf;

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
    /// Names that are read-only directly beneath every writable root, whether or not they exist yet.
    pub protected: Vec<String>,
    /// Absolute paths that cannot even be read, such as stored credentials.
    pub hidden: Vec<PathBuf>,
    pub network: bool,
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
