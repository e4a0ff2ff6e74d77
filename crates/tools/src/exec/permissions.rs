//! Permissions that the model requests with a command: to leave the sandbox, or to extend it.

use std::path::Path;

use policy::Escalation;
use protocol::{
    AbsolutePath, AdditionalFileSystemPermissions, AdditionalNetworkPermissions, AdditionalPermissionProfile,
    GrantedPermissionProfile,
};
use sandbox::OffLimits;
use schemars::JsonSchema;
use serde::Deserialize;

use super::setting::Setting;
use crate::ToolError;

/// The feature that allows extending the sandbox for one command.
pub(crate) const WIDENING: &str = "exec_permission_approvals";

// No doc comments on the types: the model would read them as well.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SandboxPermissions {
    #[default]
    UseDefault,
    RequireEscalated,
    WithAdditionalPermissions,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WantedPermissions {
    network: Option<WantedNetwork>,
    file_system: Option<WantedFiles>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WantedNetwork {
    /// True to reach the network.
    enabled: Option<bool>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WantedFiles {
    /// Paths to read, absolute or relative to the working directory of the command.
    read: Option<Vec<String>>,
    /// Paths to write to, absolute or relative to the working directory of the command.
    write: Option<Vec<String>>,
}

/// The permission arguments of all command tools.
#[derive(Debug, Clone, Default)]
pub(crate) struct PermissionArgs {
    pub(crate) sandbox: SandboxPermissions,
    pub(crate) justification: Option<String>,
    pub(crate) prefix_rule: Option<Vec<String>>,
    pub(crate) additional: Option<WantedPermissions>,
}

/// The checked arguments.
#[derive(Debug, Clone, Default)]
pub(crate) struct CommandPermissions {
    pub(crate) escalation: Escalation,
    pub(crate) justification: Option<String>,
    pub(crate) prefix_rule: Option<Vec<String>>,
    pub(crate) additional: Option<AdditionalPermissionProfile>,
}

impl PermissionArgs {
    /// The error text is for the model. Permissions that were granted before are not requested again. Whether the
    /// policy allows asking is decided with the command, so that clients see refused requests.
    pub(crate) fn checked(self, setting: &Setting, cwd: &Path) -> Result<CommandPermissions, ToolError> {
        let refused = |text: &str| Err(ToolError::Refused(text.to_owned()));
        let Self { sandbox, justification, prefix_rule, additional } = self;
        let may_widen = setting.options.features.contains(WIDENING);
        let (mut escalation, mut profile) = match (sandbox, additional) {
            (SandboxPermissions::WithAdditionalPermissions, _) if let Some(place) = &setting.elsewhere => {
                return Err(ToolError::Refused(format!(
                    "environment `{}` has no sandbox that could be widened; leave sandbox_permissions out",
                    place.id()
                )));
            }
            (SandboxPermissions::WithAdditionalPermissions, _) if !may_widen => {
                return refused("sandbox_permissions cannot be `with_additional_permissions` here");
            }
            (SandboxPermissions::WithAdditionalPermissions, additional) => {
                let profile = additional.map(|wanted| wanted.absolute(cwd)).transpose()?;
                let Some(profile) = profile.filter(|profile| *profile != NOTHING) else {
                    return refused(
                        "additional_permissions must say what is needed with `with_additional_permissions`",
                    );
                };
                refuse_sealed(&setting.options.off_limits, profile.file_system.as_ref())?;
                (Escalation::WithAdditional, Some(profile))
            }
            (_, Some(_)) => {
                return refused(
                    "additional_permissions needs sandbox_permissions to be `with_additional_permissions`",
                );
            }
            (SandboxPermissions::RequireEscalated, None) => (Escalation::RequireEscalated, None),
            (SandboxPermissions::UseDefault, None) => (Escalation::Default, None),
        };
        if profile.as_ref().is_some_and(|profile| covers(&setting.grants, profile)) {
            (escalation, profile) = (Escalation::Default, None);
        }
        let prefix_rule = prefix_rule.filter(|words| !words.is_empty());
        Ok(CommandPermissions { escalation, justification, prefix_rule, additional: profile })
    }
}

/// Refuses permissions that no client can grant.
pub(crate) fn refuse_sealed(
    off_limits: &OffLimits,
    files: Option<&AdditionalFileSystemPermissions>,
) -> Result<(), ToolError> {
    let lists = files.into_iter().flat_map(|files| [&files.read, &files.write]);
    let sealed = lists.flatten().flatten().find(|path| off_limits.is_sealed(Path::new(path.as_str())));
    match sealed {
        Some(path) => Err(ToolError::Refused(format!(
            "{} holds keys, rules and records of this program; commands never get access to it, whoever is asked",
            path.as_str()
        ))),
        None => Ok(()),
    }
}

const NOTHING: AdditionalPermissionProfile =
    AdditionalPermissionProfile { network: None, file_system: None, macos: None };

impl WantedPermissions {
    fn absolute(self, cwd: &Path) -> Result<AdditionalPermissionProfile, ToolError> {
        let paths = |paths: Option<Vec<String>>| -> Result<Option<Vec<AbsolutePath>>, ToolError> {
            let paths = paths.unwrap_or_default().into_iter().map(|path| {
                let joined = cwd.join(crate::files::access::well_formed(&path)?);
                let usable = joined.to_str().and_then(AbsolutePath::new);
                usable.ok_or_else(|| ToolError::Refused(format!("{path} is not a usable path")))
            });
            let paths = paths.collect::<Result<Vec<_>, _>>()?;
            Ok((!paths.is_empty()).then_some(paths))
        };
        let wants_network = self.network.and_then(|network| network.enabled) == Some(true);
        let WantedFiles { read, write } = self.file_system.unwrap_or_default();
        let (read, write) = (paths(read)?, paths(write)?);
        let any_file = read.is_some() || write.is_some();
        Ok(AdditionalPermissionProfile {
            network: wants_network.then_some(AdditionalNetworkPermissions { enabled: Some(true) }),
            file_system: any_file.then_some(AdditionalFileSystemPermissions { read, write }),
            macos: None,
        })
    }
}

/// Whether all of it was granted already. A folder covers everything inside it, but no path that leaves it by `..`.
fn covers(granted: &GrantedPermissionProfile, wanted: &AdditionalPermissionProfile) -> bool {
    type Pick = fn(&AdditionalFileSystemPermissions) -> Option<&Vec<AbsolutePath>>;
    let paths = |pick: Pick, files: &Option<AdditionalFileSystemPermissions>| -> Vec<AbsolutePath> {
        files.as_ref().and_then(pick).cloned().unwrap_or_default()
    };
    let all_within = |pick: Pick| {
        let granted = paths(pick, &granted.file_system);
        paths(pick, &wanted.file_system).iter().all(|path| {
            let path = Path::new(path.as_str());
            let climbs = path.components().any(|part| part == std::path::Component::ParentDir);
            !climbs && granted.iter().any(|folder| path.starts_with(folder.as_str()))
        })
    };
    let network = |enabled: Option<&AdditionalNetworkPermissions>| {
        enabled.and_then(|network| network.enabled) == Some(true)
    };
    (network(granted.network.as_ref()) || !network(wanted.network.as_ref()))
        && all_within(|files| files.read.as_ref())
        && all_within(|files| files.write.as_ref())
}

#[cfg(test)]
mod tests {
    use protocol::AskForApproval;
    use serde_json::{Value, json};

    use super::*;

    fn check(
        features: &[&str],
        granted: Value,
        sandbox: &str,
        additional: Value,
    ) -> Result<CommandPermissions, String> {
        let setting = Setting {
            approval: AskForApproval::OnRequest,
            grants: serde_json::from_value(granted).expect("grants"),
            ..Setting::for_tests(features)
        };
        let asked = PermissionArgs {
            sandbox: serde_json::from_value(json!(sandbox)).expect("known"),
            additional: serde_json::from_value(additional).expect("permissions"),
            ..PermissionArgs::default()
        };
        asked.checked(&setting, Path::new("/w")).map_err(|error| error.to_string())
    }

    #[test]
    fn contradicting_arguments_are_refused() {
        let refused = [
            (&[][..], "with_additional_permissions", json!({"network": {"enabled": true}})),
            (&[WIDENING], "with_additional_permissions", json!(null)),
            (&[WIDENING], "with_additional_permissions", json!({"network": {"enabled": false}})),
            (&[WIDENING], "with_additional_permissions", json!({"file_system": {"read": ["a\0b"]}})),
            (&[WIDENING], "use_default", json!({"network": {"enabled": true}})),
            (&[WIDENING], "require_escalated", json!({"file_system": {"read": ["/x"]}})),
        ];
        for (features, sandbox, additional) in refused {
            let result = check(features, json!({}), sandbox, additional.clone());
            assert!(result.is_err(), "{sandbox} {additional}");
        }
    }

    #[test]
    fn paths_are_made_absolute() {
        let wanted = json!({"file_system": {"write": ["out", "/abs"]}});
        let permissions =
            check(&[WIDENING], json!({}), "with_additional_permissions", wanted).expect("it fits");
        assert_eq!(permissions.escalation, Escalation::WithAdditional);
        let profile = serde_json::to_value(permissions.additional).expect("plain data");
        assert_eq!(profile["fileSystem"]["write"], json!(["/w/out", "/abs"]));
    }

    #[test]
    fn granted_permissions_are_not_requested_again() {
        let granted = json!({"network": {"enabled": true}, "fileSystem": {"read": null, "write": ["/w"]}});
        let cases = [
            (json!({"file_system": {"write": ["out"]}}), Escalation::Default),
            (json!({"network": {"enabled": true}}), Escalation::Default),
            (json!({"file_system": {"write": ["/elsewhere"]}}), Escalation::WithAdditional),
            (json!({"file_system": {"write": ["../w2"]}}), Escalation::WithAdditional),
            (json!({"file_system": {"read": ["/etc"]}}), Escalation::WithAdditional),
        ];
        for (wanted, expected) in cases {
            let permissions =
                check(&[WIDENING], granted.clone(), "with_additional_permissions", wanted.clone());
            assert_eq!(permissions.expect("it fits").escalation, expected, "{wanted}");
        }
    }
}
