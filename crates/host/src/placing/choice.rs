//! From what a thread asks for to the settings of its placement, and what its sandbox can be there.

use std::collections::BTreeMap;

use placements::{EnvValue, ManifestEntry, PlacementSettings, WorkspaceManifest};
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
        let mut settings = match own_table(params, &spec.backend) {
            Some(table) => {
                let named = format!("config.placements.{}", spec.backend);
                PlacementSettings::from_json(&named, table).map_err(|error| field(error.to_string()))?
            }
            None => options.settings(&spec.backend)?,
        };
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

/// The placement as the thread's own configuration has it, which only clients of this machine may give.
fn own_table<'a>(params: &'a ThreadStartParams, name: &str) -> Option<&'a Value> {
    params.config.as_ref()?.get(&format!("placements.{name}"))
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

    /// Why somebody on another machine may not choose this: places go by the names of the configuration, and manifests
    /// hold content. The rest reads files, uses credentials or lends secrets of the host.
    pub(crate) fn network_refusal(&self, choice: &PlacementChoice) -> Option<String> {
        let spec = match choice {
            PlacementChoice::Described(spec) => spec.clone(),
            PlacementChoice::Named(name) => named(name),
        };
        let name = &spec.backend;
        if !self.configured.contains_key(name) && name != self.default.as_deref().unwrap_or("local") {
            return Some(format!("placement {name:?}: the host's configuration has none of this name"));
        }
        if spec.workspace.is_some() {
            return Some("placement.workspace: it is as the host's configuration says".to_owned());
        }
        // One that cannot be read is refused with the reason when the place is chosen.
        let manifest = WorkspaceManifest::from_json(spec.manifest.as_ref()?).ok()?;
        let is_content = |entry: &ManifestEntry| match entry {
            ManifestEntry::Text { .. } | ManifestEntry::Bytes { .. } | ManifestEntry::Dir { .. } => true,
            ManifestEntry::LocalFile { .. } | ManifestEntry::LocalDir { .. } | ManifestEntry::Git { .. } => {
                false
            }
        };
        let mut entries = manifest.entries.iter();
        if let Some((path, _)) = entries.find(|(_, entry)| !is_content(entry)) {
            return Some(format!("placement.manifest.entries[{path:?}]: give its content"));
        }
        let mut variables = manifest.env.iter();
        let secret = variables.find(|(_, value)| matches!(value, EnvValue::Secret { .. }));
        secret.map(|(name, _)| format!("placement.manifest.env[{name:?}]: secrets are the host's own"))
    }
}

/// A sandbox that somebody asked for by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AskedSandbox {
    /// The parameter or setting that asks for it.
    pub(crate) by: &'static str,
    /// Its name, where a place that is itself the boundary cannot enforce it.
    pub(crate) refused: Option<&'static str>,
}

impl AskedSandbox {
    /// By the parameters of `thread/start`, `thread/resume` and `thread/fork`. The runtime ranks them in the same order.
    pub(crate) fn of(mode: Option<SandboxMode>, config: Option<&BTreeMap<String, Value>>) -> Option<Self> {
        if let Some(mode) = mode {
            return Some(Self { by: "sandbox", refused: refused_mode(mode) });
        }
        let config = config?;
        if let Some(mode) = config.get("sandbox_mode") {
            // The runtime refuses words that it does not know.
            let mode = serde_json::from_value(mode.clone()).ok()?;
            return Some(Self { by: "config.sandbox_mode", refused: refused_mode(mode) });
        }
        // Permission profiles are not supported and mean `read-only`.
        let by = "config.default_permissions";
        config.contains_key("default_permissions").then_some(Self { by, refused: Some("read-only") })
    }

    /// By the configuration of the host.
    pub(crate) fn of_host(mode: Option<SandboxMode>) -> Option<Self> {
        Some(Self { by: "sandbox_mode of the host's configuration", refused: refused_mode(mode?) })
    }
}

fn refused_mode(mode: SandboxMode) -> Option<&'static str> {
    match mode {
        SandboxMode::ReadOnly => Some("read-only"),
        SandboxMode::WorkspaceWrite => Some("workspace-write"),
        SandboxMode::DangerFullAccess => None,
    }
}

/// Refuses a sandbox that this place cannot enforce. It is never widened.
pub(crate) fn check_sandbox(
    settings: &PlacementSettings,
    asked: Option<AskedSandbox>,
) -> Result<(), TaskError> {
    match asked {
        Some(AskedSandbox { by, refused: Some(asked) }) if settings.is_boundary() => {
            Err(TaskError::SandboxUnavailable { by, asked, backend: settings.backend() })
        }
        _ => Ok(()),
    }
}

/// The policy in effect where the place is the boundary.
pub(crate) fn boundary_sandbox(settings: &PlacementSettings) -> Option<SandboxPolicy> {
    let network = if settings.has_network() { "enabled" } else { "restricted" };
    let policy = json!({ "type": "externalSandbox", "networkAccess": network });
    settings.is_boundary().then(|| serde_json::from_value(policy).ok()).flatten()
}
