//! From a step's sandbox policy and grants to the sandbox of one command.

use std::path::{Path, PathBuf};

use policy::SandboxChoice;
use protocol::{
    AbsolutePath, AdditionalFileSystemPermissions, AdditionalPermissionProfile, NetworkAccess, SandboxPolicy,
};
use sandbox::{Confinement, OffLimits, ReadAccess, Strength, is_named_within, split};

use super::setting::Setting;

/// The sandbox of a command; `None` for no sandbox.
pub(crate) fn confinement(
    setting: &Setting,
    choice: SandboxChoice,
    additional: Option<&AdditionalPermissionProfile>,
) -> Option<Confinement> {
    if choice == SandboxChoice::None {
        return None;
    }
    let mut confinement = of_policy(setting)?;
    let granted = &setting.grants;
    let files: Vec<_> =
        granted.file_system.iter().chain(additional.and_then(|more| more.file_system.as_ref())).collect();
    let mut networks = granted.network.iter().chain(additional.and_then(|more| more.network.as_ref()));
    let writable: Vec<_> = files.iter().flat_map(|files| paths(files.write.as_ref())).collect();
    if let ReadAccess::Only(readable) | ReadAccess::Exactly(readable) = &mut confinement.read {
        add(readable, files.iter().flat_map(|files| paths(files.read.as_ref())));
        add(readable, writable.iter().cloned());
    }
    open(&mut confinement, &setting.options.off_limits, &files);
    // A grant may cover more than was requested; it does not make hidden paths writable.
    let hidden = &confinement.hidden;
    let is_hidden = |path: &PathBuf| hidden.iter().any(|hidden| path.starts_with(hidden));
    let writable: Vec<_> = writable.into_iter().filter(|path| !is_hidden(path)).collect();
    add(&mut confinement.writable, writable);
    confinement.network |= networks.any(|network| network.enabled == Some(true));
    if choice == SandboxChoice::ReadOnlyNoNetwork {
        (confinement.writable, confinement.network) = (Vec::new(), false);
    }
    confinement.resolved = setting.roots.resolved(&confinement.writable);
    Some(confinement)
}

/// A path granted by name is no longer hidden, unless it belongs to this program. Granting a folder does not expose
/// hidden paths inside it.
fn open(confinement: &mut Confinement, off_limits: &OffLimits, files: &[&AdditionalFileSystemPermissions]) {
    let allowed = |path: &PathBuf| !off_limits.is_sealed(path);
    for path in files.iter().flat_map(|files| paths(files.write.as_ref())).filter(allowed) {
        let hidden = std::mem::take(&mut confinement.hidden);
        confinement.hidden = hidden.into_iter().flat_map(|place| split(place, &path)).collect();
    }
    for path in files.iter().flat_map(|files| paths(files.read.as_ref())).filter(allowed) {
        let is_inside = |place: &PathBuf| *place != path && is_named_within(&path, place);
        if confinement.hidden.iter().any(is_inside) {
            add(&mut confinement.shown, [path]);
        } else {
            confinement.hidden.retain(|place| !is_named_within(&path, place));
        }
    }
}

/// The folders that commands may write to under the policy, with or without a sandbox.
pub(crate) fn writable(setting: &Setting) -> Vec<PathBuf> {
    let (cwd, off_limits) = (Path::new(&setting.cwd), &setting.options.off_limits);
    let mut writable = Confinement::writable_under(&setting.sandbox, cwd, temporary(setting), off_limits);
    add(&mut writable, [PathBuf::from(&setting.cwd)]);
    add(&mut writable, setting.grants.file_system.iter().flat_map(|files| paths(files.write.as_ref())));
    writable
}

/// Whether a command can reach the network.
pub(crate) fn has_network(setting: &Setting, confinement: Option<&Confinement>) -> bool {
    match (confinement, &setting.sandbox) {
        (Some(confinement), _) => confinement.network,
        (None, SandboxPolicy::ExternalSandbox { network_access }) => {
            *network_access == NetworkAccess::Enabled
        }
        (None, _) => true,
    }
}

/// Whether the policy requires a sandbox.
pub(crate) fn is_sandboxed(setting: &Setting) -> bool {
    match setting.sandbox {
        SandboxPolicy::DangerFullAccess | SandboxPolicy::ExternalSandbox { .. } => false,
        SandboxPolicy::ReadOnly { .. } | SandboxPolicy::WorkspaceWrite { .. } => true,
    }
}

/// `None` if the policy requires no sandbox.
fn of_policy(setting: &Setting) -> Option<Confinement> {
    let options = &setting.options;
    let strength = if options.landlock_only { Strength::LandlockOnly } else { Strength::Full };
    let cwd = Path::new(&setting.cwd);
    Confinement::for_policy(&setting.sandbox, cwd, temporary(setting), strength, &options.off_limits)
}

fn temporary(setting: &Setting) -> Option<&Path> {
    setting.options.env.get("TMPDIR").map(Path::new).filter(|folder| folder.is_absolute())
}

fn add(list: &mut Vec<PathBuf>, more: impl IntoIterator<Item = PathBuf>) {
    for path in more {
        if !list.contains(&path) {
            list.push(path);
        }
    }
}

fn paths(list: Option<&Vec<AbsolutePath>>) -> impl Iterator<Item = PathBuf> {
    list.into_iter().flatten().map(|path| PathBuf::from(path.as_str()))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn setting(sandbox: Value, grants: Value) -> Setting {
        Setting {
            sandbox: serde_json::from_value(sandbox).expect("a policy"),
            cwd: "/usr".to_owned(),
            grants: serde_json::from_value(grants).expect("grants"),
            ..Setting::for_tests(&[])
        }
    }

    fn list(list: &[&str]) -> Vec<PathBuf> {
        list.iter().map(PathBuf::from).collect()
    }

    #[test]
    fn policies_become_sandboxes() {
        let confinement = |sandbox| confinement(&setting(sandbox, json!({})), SandboxChoice::AsPolicy, None);
        assert_eq!(confinement(json!({"type": "dangerFullAccess"})), None);
        assert_eq!(confinement(json!({"type": "externalSandbox"})), None);
        let read_only = confinement(json!({"type": "readOnly"})).expect("a sandbox");
        assert_eq!((read_only.writable, read_only.network), (vec![], false));
        assert_eq!(read_only.read, ReadAccess::Everything);
        assert_eq!(read_only.protected, sandbox::PROTECTED_NAMES);
        let roots = json!({"type": "workspaceWrite", "networkAccess": true, "writableRoots": ["/var"]});
        let workspace = confinement(roots).expect("a sandbox");
        assert_eq!((workspace.writable, workspace.network), (list(&["/usr", "/var", "/tmp"]), true));
        let narrow = json!({"type": "workspaceWrite", "excludeSlashTmp": true, "readOnlyAccess":
            {"type": "restricted", "includePlatformDefaults": false, "readableRoots": ["/etc"]}});
        let narrow = confinement(narrow).expect("a sandbox");
        assert_eq!(narrow.read, ReadAccess::Exactly(list(&["/usr", "/etc"])));
        assert_eq!(narrow.writable, list(&["/usr"]));
    }

    #[test]
    fn grants_extend_the_sandbox_and_known_safe_commands_get_less() {
        let grants =
            json!({"network": {"enabled": true}, "fileSystem": {"read": ["/etc"], "write": ["/var"]}});
        let restricted = json!({"type": "readOnly", "access": {"type": "restricted", "readableRoots": []}});
        let setting = setting(restricted, grants);
        let wide = confinement(&setting, SandboxChoice::AsPolicy, None).expect("a sandbox");
        assert_eq!((wide.writable, wide.network), (list(&["/var"]), true));
        assert_eq!(wide.read, ReadAccess::Only(list(&["/usr", "/etc", "/var"])));
        let least = confinement(&setting, SandboxChoice::ReadOnlyNoNetwork, None).expect("a sandbox");
        assert_eq!((least.writable, least.network), (vec![], false));
        assert_eq!(confinement(&setting, SandboxChoice::None, None), None);
        let more = json!({"network": null, "fileSystem": {"read": null, "write": ["/opt"]}, "macos": null});
        let more: AdditionalPermissionProfile = serde_json::from_value(more).expect("a profile");
        let more = confinement(&setting, SandboxChoice::AsPolicy, Some(&more)).expect("a sandbox");
        assert_eq!(more.writable, list(&["/var", "/opt"]));
    }

    #[test]
    fn commands_get_the_network_variable() {
        let network = |sandbox| {
            let setting = setting(sandbox, json!({}));
            has_network(&setting, confinement(&setting, SandboxChoice::AsPolicy, None).as_ref())
        };
        assert!(network(json!({"type": "dangerFullAccess"})));
        assert!(!network(json!({"type": "readOnly"})));
        assert!(network(json!({"type": "readOnly", "networkAccess": true})));
        assert!(!network(json!({"type": "externalSandbox"})));
        assert!(network(json!({"type": "externalSandbox", "networkAccess": "enabled"})));
    }

    #[test]
    fn a_grant_exposes_named_credentials_and_nothing_of_ours() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("there");
        let at = |path: &str| root.join(path);
        for path in ["ssh/known", "ssh/id", "home/key", "home/skills/one"] {
            std::fs::create_dir_all(at(path)).expect("made");
        }
        let hidden_with = |read: &[&str], write: &[&str]| {
            let all = |paths: &[&str]| paths.iter().map(|path| at(path)).collect::<Vec<_>>();
            let grants = json!({"fileSystem": {"read": all(read), "write": all(write)}});
            let mut setting = setting(json!({"type": "readOnly"}), grants);
            let mut options = (*setting.options).clone();
            options.off_limits.sealed = vec![at("home")];
            options.off_limits.credentials = vec![at("ssh")].into();
            options.off_limits.shown = vec![at("home/skills")];
            setting.options = options.into();
            let confinement = confinement(&setting, SandboxChoice::AsPolicy, None).expect("a sandbox");
            [confinement.hidden, confinement.shown, confinement.writable].map(|paths| {
                paths
                    .iter()
                    .map(|path| path.strip_prefix(&root).expect("below").display().to_string())
                    .collect::<Vec<_>>()
                    .join(" ")
            })
        };
        let plain = ["home ssh", "home/skills", ""];
        assert_eq!(hidden_with(&[], &[]), plain);
        assert_eq!(hidden_with(&["ssh"], &[]), ["home", "home/skills", ""]);
        assert_eq!(hidden_with(&["ssh/known"], &[]), ["home ssh", "home/skills ssh/known", ""]);
        assert_eq!(hidden_with(&[], &["ssh/known"]), ["home ssh/id", "home/skills", "ssh/known"]);
        // A parent folder, a path with `..`, and our own files expose nothing.
        assert_eq!(hidden_with(&["", "x/../ssh", "home", "home/key"], &[]), plain);
        assert_eq!(hidden_with(&[], &["home/key", "home"]), plain);
    }
}
