//! From what a thread asks for to the settings of its placement, and what its sandbox can be there.

use placements::{PlacementSettings, WorkspaceManifest};
use protocol::{PlacementChoice, PlacementSpec, SandboxMode, SandboxPolicy, ThreadStartParams};
use serde_json::{Value, json};

use crate::error::TaskError;
use crate::placing::PlaceOptions;

/// The place of a new thread.
#[derive(Debug, PartialEq)]
pub(crate) enum ChosenPlace {
    /// This machine, in the thread's own folder: nothing has to be made.
    Here,
    Made {
        /// As it was asked for.
        name: String,
        settings: Box<PlacementSettings>,
        manifest: Option<Value>,
    },
}

fn field(problem: String) -> TaskError {
    TaskError::Field { field: "placement", problem }
}

impl ChosenPlace {
    pub(crate) fn of(options: &PlaceOptions, params: &ThreadStartParams) -> Result<Self, TaskError> {
        let spec = match &params.placement {
            Some(PlacementChoice::Described(spec)) => spec.clone(),
            Some(PlacementChoice::Named(name)) => named(name),
            None => named(options.default.as_deref().unwrap_or("local")),
        };
        let mut settings = options.settings(&spec.backend)?;
        let PlacementSpec { backend: name, workspace, manifest } = spec;
        if let Some(manifest) = &manifest {
            WorkspaceManifest::from_json(manifest).map_err(|error| field(error.to_string()))?;
        }
        if let Some(workspace) = workspace {
            if !workspace.starts_with('/') {
                return Err(field(format!("workspace {workspace:?} must be an absolute path there")));
            }
            settings.set_workspace(workspace);
        }
        let is_plain = matches!(&settings, PlacementSettings::Local(local) if local.workspace.is_none());
        if is_plain && manifest.is_none() && name == "local" {
            return Ok(Self::Here);
        }
        Ok(Self::Made { name, settings: Box::new(settings), manifest })
    }
}

fn named(name: &str) -> PlacementSpec {
    PlacementSpec { backend: name.to_owned(), workspace: None, manifest: None }
}

impl PlaceOptions {
    /// Of a name of the configuration, or of `BACKEND:WHAT`.
    pub fn settings(&self, name: &str) -> Result<PlacementSettings, TaskError> {
        if let Some(settings) = self.configured.get(name) {
            return Ok(settings.clone());
        }
        PlacementSettings::from_words(name).ok_or_else(|| {
            let known: Vec<&str> = self.configured.keys().map(String::as_str).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            field(format!(
                "there is no placement {name:?}; the configuration has: {known}; or give `local`, `docker:IMAGE`, \
                 `podman:IMAGE`, `ssh:HOST` or `kubernetes:IMAGE`"
            ))
        })
    }
}

/// A sandbox that a place which is itself the boundary cannot hold. Refused, never widened.
pub(crate) fn refused_sandbox(mode: Option<SandboxMode>) -> Option<&'static str> {
    match mode {
        Some(SandboxMode::ReadOnly) => Some("read-only"),
        Some(SandboxMode::WorkspaceWrite) => Some("workspace-write"),
        Some(SandboxMode::DangerFullAccess) | None => None,
    }
}

/// The policy in effect where the place is the boundary.
pub(crate) fn boundary_sandbox(settings: &PlacementSettings) -> Option<SandboxPolicy> {
    let network = if settings.has_network() { "enabled" } else { "restricted" };
    let policy = json!({ "type": "externalSandbox", "networkAccess": network });
    settings.is_boundary().then(|| serde_json::from_value(policy).ok()).flatten()
}
