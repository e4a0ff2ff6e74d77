//! From the sandbox policy of the wire to the sandbox around a command.

use std::path::{Path, PathBuf};

use names::PROTECTED_NAMES;
use protocol::{ReadOnlyAccess, SandboxPolicy};

use crate::off_limits::spellings;
use crate::{Confinement, OffLimits, ReadAccess, Strength};

impl Confinement {
    /// `None` for the policies that ask for no sandbox. `tmpdir` is the folder that `TMPDIR` names.
    pub fn for_policy(
        policy: &SandboxPolicy,
        cwd: &Path,
        tmpdir: Option<&Path>,
        strength: Strength,
        off_limits: &OffLimits,
    ) -> Option<Self> {
        let (access, network) = match policy {
            SandboxPolicy::DangerFullAccess | SandboxPolicy::ExternalSandbox { .. } => return None,
            SandboxPolicy::ReadOnly { access, network_access } => (access, *network_access),
            SandboxPolicy::WorkspaceWrite { network_access, read_only_access, .. } => {
                (read_only_access, *network_access)
            }
        };
        let off_limits = off_limits.now();
        let roots = roots(policy, cwd, tmpdir);
        let hidden = off_limits.hidden_from(cwd, &named(policy), &roots);
        let opened = off_limits.opened_in(cwd);
        let writable = open_roots(roots, &hidden, &opened);
        Some(Self {
            strength,
            read: read_access(access, cwd, &writable),
            writable,
            protected: PROTECTED_NAMES.map(str::to_owned).to_vec(),
            protected_paths: off_limits.protected.iter().cloned().chain(opened).collect(),
            resolved: Vec::new(),
            hidden,
            reserved: off_limits.sealed.clone(),
            shown: off_limits.shown.clone(),
            home: std::env::home_dir().filter(|home| home.is_absolute()),
            network,
            closed_ports: off_limits.ports.clone(),
            unix_sockets: off_limits.unix_sockets.clone(),
        })
    }

    /// The writable roots of [`for_policy`](Self::for_policy) alone, which are asked for more often and cost less: what
    /// is hidden matters only where a root lies in it. Empty for the policies that ask for no sandbox.
    pub fn writable_under(
        policy: &SandboxPolicy,
        cwd: &Path,
        tmpdir: Option<&Path>,
        off_limits: &OffLimits,
    ) -> Vec<PathBuf> {
        let off_limits = off_limits.now();
        let roots = roots(policy, cwd, tmpdir);
        // Only a place above a root can close it.
        let near = |places: &[PathBuf]| -> Vec<PathBuf> {
            places.iter().filter(|place| roots.iter().any(|root| root.starts_with(place))).cloned().collect()
        };
        let (sealed, credentials) = (near(&off_limits.sealed), near(&off_limits.credentials));
        let hidden = match sealed.is_empty() && credentials.is_empty() {
            true => Vec::new(),
            false => {
                let shown = off_limits.shown.clone();
                let near =
                    OffLimits { sealed, credentials: credentials.into(), shown, ..OffLimits::default() };
                near.hidden_from(cwd, &named(policy), &roots)
            }
        };
        open_roots(roots, &hidden, &off_limits.opened_in(cwd))
    }

    /// Everything is readable, nothing is writable, and there is no network.
    pub fn read_only() -> Self {
        Self {
            strength: Strength::Full,
            read: ReadAccess::Everything,
            writable: Vec::new(),
            protected: Vec::new(),
            protected_paths: Vec::new(),
            resolved: Vec::new(),
            hidden: Vec::new(),
            reserved: Vec::new(),
            shown: Vec::new(),
            home: None,
            network: false,
            closed_ports: Vec::new(),
            unix_sockets: Vec::new(),
        }
    }
}

/// The roots that the policy lists itself.
fn named(policy: &SandboxPolicy) -> Vec<PathBuf> {
    let (access, writable): (_, &[_]) = match policy {
        SandboxPolicy::DangerFullAccess | SandboxPolicy::ExternalSandbox { .. } => return Vec::new(),
        SandboxPolicy::ReadOnly { access, .. } => (access, &[]),
        SandboxPolicy::WorkspaceWrite { read_only_access, writable_roots, .. } => {
            (read_only_access, writable_roots)
        }
    };
    let readable: &[_] = match access {
        ReadOnlyAccess::FullAccess => &[],
        ReadOnlyAccess::Restricted { readable_roots, .. } => readable_roots,
    };
    readable.iter().chain(writable).map(|root| PathBuf::from(root.as_str())).collect()
}

/// The working directory and what can be written can always be read.
fn read_access(access: &ReadOnlyAccess, cwd: &Path, writable: &[PathBuf]) -> ReadAccess {
    match access {
        ReadOnlyAccess::FullAccess => ReadAccess::Everything,
        ReadOnlyAccess::Restricted { include_platform_defaults, readable_roots } => {
            let listed = readable_roots.iter().map(|root| PathBuf::from(root.as_str()));
            let paths = [cwd.to_owned()].into_iter().chain(listed).chain(writable.iter().cloned());
            let paths = without_repeats(paths.collect());
            if *include_platform_defaults { ReadAccess::Only(paths) } else { ReadAccess::Exactly(paths) }
        }
    }
}

/// The roots that a policy makes writable, before anything is taken away.
fn roots(policy: &SandboxPolicy, cwd: &Path, tmpdir: Option<&Path>) -> Vec<PathBuf> {
    let SandboxPolicy::WorkspaceWrite { writable_roots, exclude_tmpdir_env_var, exclude_slash_tmp, .. } =
        policy
    else {
        return Vec::new();
    };
    let listed = writable_roots.iter().map(|root| PathBuf::from(root.as_str()));
    let slash_tmp = (!exclude_slash_tmp).then(|| PathBuf::from("/tmp"));
    let tmpdir = tmpdir.filter(|_| !exclude_tmpdir_env_var).map(Path::to_owned);
    let roots = [cwd.to_owned()].into_iter().chain(listed).chain(slash_tmp).chain(tmpdir);
    roots.filter(|root| root.is_absolute()).collect()
}

/// Without what lies in a hidden place, or holds a folder of ours that is worked in.
fn open_roots(roots: Vec<PathBuf>, hidden: &[PathBuf], opened: &[PathBuf]) -> Vec<PathBuf> {
    let holds_ours = |root: &PathBuf| {
        !opened.is_empty()
            && spellings(root).iter().any(|root| opened.iter().any(|ours| ours.starts_with(root)))
    };
    let is_closed = |root: &PathBuf| hidden.iter().any(|hidden| root.starts_with(hidden)) || holds_ours(root);
    let mut roots = without_repeats(roots);
    roots.retain(|root| !is_closed(root));
    roots
}

fn without_repeats(paths: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut kept: Vec<PathBuf> = Vec::with_capacity(paths.len());
    for path in paths {
        if !kept.contains(&path) {
            kept.push(path);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn confinement(policy: serde_json::Value) -> Option<Confinement> {
        let policy = serde_json::from_value(policy).unwrap();
        Confinement::for_policy(
            &policy,
            Path::new("/w"),
            Some(Path::new("/t")),
            Strength::Full,
            &OffLimits { sealed: vec!["/etc".into(), "/none".into(), "/w/s".into()], ..OffLimits::default() },
        )
    }

    #[test]
    fn no_walls_where_none_are_asked_for() {
        assert_eq!(confinement(json!({"type": "dangerFullAccess"})), None);
        assert_eq!(confinement(json!({"type": "externalSandbox"})), None);
    }

    #[test]
    fn read_only_has_nothing_to_write_to() {
        let confinement = confinement(json!({"type": "readOnly"})).unwrap();
        assert_eq!((confinement.writable, confinement.network), (vec![], false));
        assert_eq!(confinement.read, ReadAccess::Everything);
        assert_eq!(confinement.hidden, [PathBuf::from("/etc")]);
    }

    #[test]
    fn the_workspace_and_temporary_folders_are_writable_once_each() {
        let confinement =
            confinement(json!({"type": "workspaceWrite", "writableRoots": ["/x", "/tmp"]})).unwrap();
        assert_eq!(confinement.writable, ["/w", "/x", "/tmp", "/t"].map(PathBuf::from));
        assert_eq!(confinement.protected, PROTECTED_NAMES);
        assert_eq!(confinement.hidden, ["/etc", "/w/s"].map(PathBuf::from));
        assert!(!confinement.network);
    }

    #[test]
    fn the_roots_alone_are_the_same_as_with_the_rest() {
        let mut closed = 0;
        for (cwd, roots) in
            [("/w", ["/etc/x", "/x"]), ("/w/s/t", ["/w", "/w/s/u"]), ("/etc", ["/", "/none/x"])]
        {
            let policy = json!({"type": "workspaceWrite", "writableRoots": roots});
            let policy = serde_json::from_value(policy).unwrap();
            let off_limits = OffLimits {
                sealed: vec!["/w/s".into()],
                credentials: vec!["/etc".into(), "/none".into()].into(),
                ..OffLimits::default()
            };
            let (cwd, tmpdir) = (Path::new(cwd), Some(Path::new("/etc/t")));
            let confinement =
                Confinement::for_policy(&policy, cwd, tmpdir, Strength::Full, &off_limits).unwrap();
            assert_eq!(Confinement::writable_under(&policy, cwd, tmpdir, &off_limits), confinement.writable);
            closed += 5 - confinement.writable.len();
        }
        assert!(closed > 0, "no root lies in a hidden place");
    }

    #[test]
    fn temporary_folders_can_be_left_out_and_the_network_let_in() {
        let policy = json!({
            "type": "workspaceWrite", "networkAccess": true, "excludeTmpdirEnvVar": true, "excludeSlashTmp": true
        });
        let confinement = confinement(policy).unwrap();
        assert_eq!((confinement.writable, confinement.network), (vec![PathBuf::from("/w")], true));
    }

    #[test]
    fn listed_reading_includes_the_workspace() {
        let access = json!({"type": "restricted", "readableRoots": ["/r"]});
        let policy = json!({"type": "readOnly", "access": access});
        assert_eq!(confinement(policy).unwrap().read, ReadAccess::Only(vec!["/w".into(), "/r".into()]));
        let access = json!({"type": "restricted", "includePlatformDefaults": false});
        let policy = json!({"type": "readOnly", "access": access});
        assert_eq!(confinement(policy).unwrap().read, ReadAccess::Exactly(vec!["/w".into()]));
    }
}
