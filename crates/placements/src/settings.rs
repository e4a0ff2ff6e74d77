//! How a placement is described: settings as a configuration has them, and the reference by which one is found again.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::PlacementError;

/// `[placements.NAME]`: the backend and its choices. None of them may hold a secret: they are kept in references.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "backend", rename_all = "lowercase")]
pub enum PlacementSettings {
    Local(LocalSettings),
    Docker(ContainerSettings),
    Podman(ContainerSettings),
    Ssh(SshSettings),
    Kubernetes(KubernetesSettings),
    Command(CommandPlaceSettings),
}

impl PlacementSettings {
    /// From a table of the configuration. `field` is its name there, for the error.
    pub fn from_json(field: &str, json: &serde_json::Value) -> Result<Self, PlacementError> {
        Deserialize::deserialize(json)
            .map_err(|error: serde_json::Error| PlacementError::invalid(field, error.to_string()))
    }

    /// From `BACKEND` or `BACKEND:WHAT`: the image of docker, podman and kubernetes, the host of ssh.
    pub fn from_words(words: &str) -> Option<Self> {
        let (backend, what) = words.split_once(':').unwrap_or((words, ""));
        let (what, is_given) = (what.to_owned(), !what.is_empty());
        match backend {
            "local" if !is_given => Some(Self::Local(LocalSettings::default())),
            "docker" if is_given => {
                Some(Self::Docker(ContainerSettings { image: what, ..ContainerSettings::default() }))
            }
            "podman" if is_given => {
                Some(Self::Podman(ContainerSettings { image: what, ..ContainerSettings::default() }))
            }
            "ssh" if is_given => Some(Self::Ssh(SshSettings { host: what, ..SshSettings::default() })),
            "kubernetes" if is_given => Some(Self::Kubernetes(KubernetesSettings {
                image: Some(what),
                ..KubernetesSettings::default()
            })),
            _ => None,
        }
    }

    pub fn backend(&self) -> &'static str {
        match self {
            Self::Local(_) => "local",
            Self::Docker(_) => "docker",
            Self::Podman(_) => "podman",
            Self::Ssh(_) => "ssh",
            Self::Kubernetes(_) => "kubernetes",
            Self::Command(_) => "command",
        }
    }

    pub fn set_workspace(&mut self, path: String) {
        let workspace = match self {
            Self::Local(settings) => &mut settings.workspace,
            Self::Docker(settings) | Self::Podman(settings) => &mut settings.workspace,
            Self::Ssh(settings) => &mut settings.workspace,
            Self::Kubernetes(settings) => &mut settings.workspace,
            Self::Command(settings) => &mut settings.workspace,
        };
        *workspace = Some(path);
    }

    /// Whether the place itself confines what runs in it. Elsewhere the machine is one like any other.
    pub fn is_boundary(&self) -> bool {
        match self {
            Self::Local(_) | Self::Ssh(_) => false,
            Self::Docker(_) | Self::Podman(_) | Self::Kubernetes(_) | Self::Command(_) => true,
        }
    }

    /// Whether processes there can reach a network, as far as the settings say.
    pub fn has_network(&self) -> bool {
        match self {
            Self::Docker(settings) | Self::Podman(settings) => settings.network.as_deref() != Some("none"),
            _ => true,
        }
    }

    /// Whether places with these settings are on this machine, so that nobody elsewhere has made any.
    pub fn is_made_here(&self) -> bool {
        matches!(self, Self::Local(_) | Self::Docker(_) | Self::Podman(_))
    }

    /// Whether the place is this machine with its files, where programs of ours need not be copied.
    pub fn is_this_machine(&self) -> bool {
        matches!(self, Self::Local(_))
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LocalSettings {
    /// A folder that exists. Unset: a folder of the placement's own, removed with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// Where own folders are made; `~/.local/share/oarlock/placements` unless set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
}

/// `docker` and `podman`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ContainerSettings {
    pub image: String,
    /// The command and its global options; `["docker"]` or `["podman"]` unless set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pids: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// As for `--volume`: `/here:/there[:ro]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<String>,
    #[serde(default)]
    pub pull: PullPolicy,
    #[serde(default, skip_serializing_if = "CommandSeparation::is_default")]
    pub separation: CommandSeparation,
    /// More options for `create`, before the image.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PullPolicy {
    Always,
    #[default]
    Missing,
    Never,
}

/// Who runs the commands of a container whose runtime is root.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CommandSeparation {
    /// The owner of the workspace, where that is not root.
    #[default]
    User,
    /// Root as well: a command may install packages, and may speak for the runtime.
    None,
}

impl CommandSeparation {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SshSettings {
    /// `host`, `user@host`, or an alias of the user's ssh configuration.
    pub host: String,
    /// `["ssh"]` unless set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KubernetesSettings {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// A file with a pod, in place of `image`. Name and labels are added; its container has to stay alive by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The container of the template; its first one unless set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// `["kubectl"]` unless set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// Until the pod is ready; 180 unless set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready_seconds: Option<u64>,
}

/// A placement behind commands of the user's own. `{id}`, `{workspace}` and `{handle}` are replaced in every word;
/// `{handle}` is the first line that `create` prints.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CommandPlaceSettings {
    /// Runs what follows it.
    pub argv: Vec<String>,
    /// Variables of the host that `argv` needs. Most commands pass their environment on, so it gets no others
    /// than PATH, HOME, LANG, USER and TMPDIR.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub environment: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub create: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub destroy: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suspend: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wake: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
}

pub(crate) const REFERENCE_VERSION: u32 = 1;

/// How a placement is found again, by any host that serves its site. Without secrets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlacementReference {
    pub version: u32,
    pub id: String,
    /// The host that made it, as in its labels.
    pub owner: String,
    /// The workspace's path there.
    pub workspace: String,
    /// The container, the pod, the folder, or the first line of `create`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handle: Option<String>,
    /// `UID:GID`, where commands are to run as another user than the runtime: the owner of the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_user: Option<String>,
    pub settings: PlacementSettings,
}

impl PlacementReference {
    /// From JSON of this version. Another version is refused by its number, before its fields are read.
    pub fn from_json(json: &serde_json::Value) -> Result<Self, PlacementError> {
        match json.get("version").and_then(serde_json::Value::as_u64) {
            Some(version) if version == u64::from(REFERENCE_VERSION) => {}
            Some(version) => {
                let problem = format!(
                    "this release reads version {REFERENCE_VERSION}, not {version}; use the release that wrote it"
                );
                return Err(PlacementError::invalid("reference.version", problem));
            }
            None => return Err(PlacementError::invalid("reference.version", "it is missing")),
        }
        let reference: Self = Deserialize::deserialize(json)
            .map_err(|error| PlacementError::invalid("reference", error.to_string()))?;
        check_name("reference.id", &reference.id)?;
        check_name("reference.owner", &reference.owner)?;
        Ok(reference)
    }

    pub fn to_json(&self) -> Result<serde_json::Value, PlacementError> {
        serde_json::to_value(self).map_err(|error| PlacementError::invalid("reference", error.to_string()))
    }
}

/// Ids and owners are parts of container names, labels, pod names and paths.
pub(crate) fn check_name(field: &str, name: &str) -> Result<(), PlacementError> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let ends_well = !name.starts_with('-') && !name.ends_with('-');
    match (1..=50).contains(&name.len()) && name.bytes().all(is_plain) && ends_well {
        true => Ok(()),
        false => {
            let problem = format!(
                "{name:?} must be 1 to 50 lower-case letters, digits and hyphens, with no hyphen at its ends"
            );
            Err(PlacementError::invalid(field, problem))
        }
    }
}

pub(crate) const PLACEMENT_LABEL: &str = "dev.oarlock.placement";
pub(crate) const OWNER_LABEL: &str = "dev.oarlock.owner";
pub(crate) const CREATED_LABEL: &str = "dev.oarlock.created";

/// The labels of everything that is made for a placement.
#[derive(Debug, Clone)]
pub(crate) struct Labels {
    pub(crate) id: String,
    pub(crate) owner: String,
    pub(crate) created_s: u64,
}

impl Labels {
    pub(crate) fn pairs(&self) -> BTreeMap<&'static str, String> {
        BTreeMap::from([
            (PLACEMENT_LABEL, self.id.clone()),
            (OWNER_LABEL, self.owner.clone()),
            (CREATED_LABEL, self.created_s.to_string()),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_reference_survives_json() {
        let json = json!({
            "version": 1, "id": "p-1", "owner": "host-a", "workspace": "/workspace", "handle": "c0ffee",
            "settings": {"backend": "docker", "image": "debian:12", "pull": "missing"}
        });
        let reference = PlacementReference::from_json(&json).unwrap();
        assert_eq!(reference.to_json().unwrap(), json);
    }

    #[test]
    fn a_few_words_make_settings() {
        let docker = PlacementSettings::from_words("docker:debian:12").unwrap();
        assert_eq!(serde_json::to_value(&docker).unwrap()["image"], "debian:12");
        assert!(docker.is_boundary() && docker.has_network());
        assert_eq!(PlacementSettings::from_words("ssh:me@box").unwrap().backend(), "ssh");
        for words in ["docker", "docker:", "local:x", "vm:x", ""] {
            assert_eq!(PlacementSettings::from_words(words), None, "{words}");
        }
    }

    #[test]
    fn other_versions_ids_and_settings_are_refused() {
        let check = |json: serde_json::Value, said: &str| {
            let error = PlacementReference::from_json(&json).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        };
        check(json!({"version": 2}), "reads version 1, not 2");
        check(json!({}), "reference.version");
        let with = |id: &str, settings: serde_json::Value| json!({"version": 1, "id": id, "owner": "o", "workspace": "/w", "settings": settings});
        check(with("../up", json!({"backend": "local"})), "reference.id");
        check(with("a", json!({"backend": "ssh", "host": "h", "password": "x"})), "unknown field `password`");
        check(with("a", json!({"backend": "vm"})), "unknown variant `vm`");
    }
}
