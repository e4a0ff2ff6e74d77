//! The order together with the layers that a test wants left out.

use serde::{Deserialize, Serialize};

use super::failure::At;
use super::wire::{Failure, Stage};
use crate::Order;

/// One wall. A test leaves it out to prove that its attempts notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Layer {
    /// The new root with its read-only mounts.
    Mounts,
    ProcessNamespace,
    NetworkNamespace,
    IpcNamespace,
    Landlock,
    Seccomp,
    /// Another user inside, and no capabilities.
    Privileges,
    /// A user that nobody else is, for a server that is root.
    OwnUser,
    ProtectedNames,
    HiddenPaths,
    /// Read-only parts of `/proc`.
    ProcMasks,
    /// The supervisor that makes a command's connections when there is network.
    Connections,
    /// The supervisor that makes folders, links and other names for a command.
    Names,
}

/// What the helper reads: an order, and in test builds what to leave out.
#[derive(Debug, Deserialize)]
pub(crate) struct Request {
    #[serde(flatten)]
    pub(crate) order: Order,
    /// The limit on open files that the server was started with, where it has another one now.
    #[serde(default)]
    pub(crate) open_files: Option<u64>,
    #[serde(default)]
    without: Vec<Layer>,
    /// How many files with pinned contents the command gets.
    #[serde(default)]
    pub(crate) pinned: u32,
}

impl Request {
    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
        let request: Self = serde_json::from_str(text).at(Stage::Order, "read the order")?;
        // A released build has no way to be weaker than asked.
        if !request.without.is_empty() && !cfg!(debug_assertions) {
            return Err(Failure::new(Stage::Order, "leaving out a layer is for tests only"));
        }
        Ok(request)
    }

    pub(crate) fn has(&self, layer: Layer) -> bool {
        !self.without.contains(&layer)
    }
}
