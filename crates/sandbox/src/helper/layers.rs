//! The order, and the layers that a test leaves out.

use serde::{Deserialize, Serialize};

use super::failure::At;
use super::wire::{StartFailure, StartStage};
use crate::Order;
use crate::command_user::CommandUser;

/// One layer of the sandbox. A test leaves it out to prove that its attempts would succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SandboxLayer {
    /// The new root with its read-only mounts.
    Mounts,
    ProcessNamespace,
    NetworkNamespace,
    IpcNamespace,
    Landlock,
    Seccomp,
    /// Another user inside, without capabilities.
    Privileges,
    /// An unused user id, for a server that runs as root.
    OwnUser,
    ProtectedNames,
    HiddenPaths,
    /// Read-only parts of `/proc`.
    ProcMasks,
    /// The supervisor that makes a command's connections if there is network.
    Connections,
    /// The supervisor that creates folders, links and other names for a command.
    Names,
}

/// The helper's input: an order, and in test builds the layers to leave out.
#[derive(Debug, Deserialize)]
pub(crate) struct HelperRequest {
    #[serde(flatten)]
    pub(crate) order: Order,
    /// The original limit of open files, if the server has raised it.
    #[serde(default)]
    pub(crate) open_files: Option<u64>,
    #[serde(default)]
    without: Vec<SandboxLayer>,
    /// The number of files with pinned contents.
    #[serde(default)]
    pub(crate) pinned: u32,
    /// Whether a user mapping follows them.
    #[serde(default)]
    pub(crate) mapping: bool,
    /// The user of a command without a sandbox, if not this process's own.
    #[serde(default)]
    pub(crate) user: Option<CommandUser>,
}

impl HelperRequest {
    pub(crate) fn parse(text: &str) -> Result<Self, StartFailure> {
        let mut request: Self = serde_json::from_str(text).at(StartStage::Order, "read the order")?;
        if let Some(user) = &request.user {
            let home = user.home.display().to_string();
            request.order.env.entry("HOME".to_owned()).and_modify(|own| *own = home);
        }
        // A release build cannot be weakened.
        if !request.without.is_empty() && !cfg!(debug_assertions) {
            return Err(StartFailure::new(StartStage::Order, "leaving out a layer is for tests only"));
        }
        Ok(request)
    }

    pub(crate) fn has(&self, layer: SandboxLayer) -> bool {
        !self.without.contains(&layer)
    }
}
