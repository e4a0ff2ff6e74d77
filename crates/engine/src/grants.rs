//! Permissions that a client granted beyond the sandbox policy.

use protocol::{
    AbsolutePath, AdditionalFileSystemPermissions, AdditionalNetworkPermissions, GrantedPermissionProfile,
    RequestPermissionProfile,
};

pub(crate) const NOTHING: GrantedPermissionProfile =
    GrantedPermissionProfile { network: None, file_system: None };

/// Permissions that were both requested and granted.
pub(crate) fn intersection(
    asked: &RequestPermissionProfile,
    given: &GrantedPermissionProfile,
) -> GrantedPermissionProfile {
    let wants_network = asked.network.as_ref().and_then(|network| network.enabled) == Some(true);
    let network = given.network.clone().filter(|network| wants_network && network.enabled == Some(true));
    let file_system = match (&asked.file_system, &given.file_system) {
        (Some(asked), Some(given)) => {
            let read = common(asked.read.as_deref(), given.read.as_deref());
            let write = common(asked.write.as_deref(), given.write.as_deref());
            let any = read.is_some() || write.is_some();
            any.then_some(AdditionalFileSystemPermissions { read, write })
        }
        _ => None,
    };
    GrantedPermissionProfile { network, file_system }
}

/// The permissions of both.
pub(crate) fn union(
    one: &GrantedPermissionProfile,
    other: &GrantedPermissionProfile,
) -> GrantedPermissionProfile {
    let enabled = |profile: &GrantedPermissionProfile| {
        profile.network.as_ref().and_then(|network| network.enabled) == Some(true)
    };
    let network =
        (enabled(one) || enabled(other)).then_some(AdditionalNetworkPermissions { enabled: Some(true) });
    let paths = |pick: fn(&AdditionalFileSystemPermissions) -> Option<&Vec<AbsolutePath>>| {
        let all =
            [one, other].into_iter().filter_map(|profile| profile.file_system.as_ref()).filter_map(pick);
        let mut all: Vec<_> = all.flatten().cloned().collect();
        let mut seen = std::collections::HashSet::new();
        all.retain(|path| seen.insert(path.as_str().to_owned()));
        (!all.is_empty()).then_some(all)
    };
    let (read, write) = (paths(|files| files.read.as_ref()), paths(|files| files.write.as_ref()));
    let file_system =
        (read.is_some() || write.is_some()).then_some(AdditionalFileSystemPermissions { read, write });
    GrantedPermissionProfile { network, file_system }
}

/// A path is granted when it, or a folder above it, was granted.
fn common(asked: Option<&[AbsolutePath]>, given: Option<&[AbsolutePath]>) -> Option<Vec<AbsolutePath>> {
    let (asked, given) = (asked?, given?);
    let beneath = |path: &AbsolutePath, folder: &AbsolutePath| {
        let path = std::path::Path::new(path.as_str());
        let climbs = path.components().any(|part| part == std::path::Component::ParentDir);
        !climbs && path.starts_with(folder.as_str())
    };
    // Of two overlapping paths the narrower one counts, requested or granted.
    let narrower = asked.iter().filter(|path| given.iter().any(|folder| beneath(path, folder)));
    let narrowed =
        given.iter().filter(|path| !asked.contains(path) && asked.iter().any(|folder| beneath(path, folder)));
    let all: Vec<_> = narrower.chain(narrowed).cloned().collect();
    (!all.is_empty()).then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(read: &[&str], write: &[&str]) -> Option<AdditionalFileSystemPermissions> {
        let list = |paths: &[&str]| {
            let paths: Vec<AbsolutePath> =
                paths.iter().map(|path| serde_json::from_value((*path).into()).expect("absolute")).collect();
            (!paths.is_empty()).then_some(paths)
        };
        Some(AdditionalFileSystemPermissions { read: list(read), write: list(write) })
    }

    #[test]
    fn the_intersection_is_both_requested_and_granted() {
        let asked = RequestPermissionProfile { network: None, file_system: files(&["/r"], &["/a/b", "/c"]) };
        let given = GrantedPermissionProfile {
            network: Some(AdditionalNetworkPermissions { enabled: Some(true) }),
            file_system: files(&["/r/deep", "/other"], &["/a"]),
        };
        let granted = intersection(&asked, &given);
        assert_eq!(
            granted,
            GrantedPermissionProfile { network: None, file_system: files(&["/r/deep"], &["/a/b"]) }
        );
        assert_eq!(intersection(&asked, &NOTHING), NOTHING);
    }

    #[test]
    fn grants_add_up_without_repeating() {
        let one = GrantedPermissionProfile { network: None, file_system: files(&[], &["/a"]) };
        let other = GrantedPermissionProfile {
            network: Some(AdditionalNetworkPermissions { enabled: Some(true) }),
            file_system: files(&["/r"], &["/a", "/b"]),
        };
        let both = union(&one, &other);
        assert_eq!(both.file_system, files(&["/r"], &["/a", "/b"]));
        assert_eq!(both.network, other.network);
        assert_eq!(union(&NOTHING, &NOTHING), NOTHING);
    }
}
