//! Entry points for fuzzing; not part of the crate's promises.

use std::path::{Component, Path};

use crate::manifest::{ManifestEntry, WorkspaceManifest};
use crate::tar::relative_parts;

/// Reads the bytes as a manifest, and as a path beneath a workspace. Touches no disk.
///
/// # Panics
/// When a manifest that was accepted could put something outside its workspace, or hand a tool an option of its own.
pub fn manifest(data: &[u8]) {
    check_path(data);
    let Ok(json) = serde_json::from_slice::<serde_json::Value>(data) else { return };
    let Ok(manifest) = WorkspaceManifest::from_json(&json) else { return };
    for (path, entry) in &manifest.entries {
        assert!(relative_parts(path.as_bytes()).is_some(), "{path:?} was accepted");
        check_path(path.as_bytes());
        match entry {
            ManifestEntry::Git { url, rev, subpath, .. } => {
                assert!(!url.starts_with('-') && !url.contains(char::is_control), "{url:?} was accepted");
                assert!(!url.starts_with("ext::") && !url.starts_with("http://"), "{url:?} was accepted");
                assert!(!rev.as_deref().is_some_and(|rev| rev.starts_with('-')), "{rev:?} was accepted");
                let subpath = subpath.as_deref().map(|path| relative_parts(path.as_bytes()));
                assert!(subpath.is_none_or(|parts| parts.is_some()), "a path out of the repository");
            }
            ManifestEntry::LocalFile { path } | ManifestEntry::LocalDir { path, .. } => {
                assert!(Path::new(path).is_absolute(), "{path:?} was accepted");
            }
            ManifestEntry::Text { mode, .. }
            | ManifestEntry::Bytes { mode, .. }
            | ManifestEntry::Dir { mode } => {
                assert!(mode.is_none_or(|mode| mode <= 0o777), "{mode:?} was accepted");
            }
        }
    }
    for name in manifest.env.keys() {
        assert!(!name.is_empty() && !name.contains(['=', '\0']), "{name:?} was accepted");
    }
    let written = serde_json::to_value(&manifest).unwrap_or_default();
    let again = WorkspaceManifest::from_json(&written);
    assert!(again.is_ok_and(|again| again == manifest), "it is another one when it is written and read");
}

/// The parts of a path that is taken lead to one place beneath a folder, however they are put together.
fn check_path(path: &[u8]) {
    use std::os::unix::ffi::OsStrExt;

    let Some(parts) = relative_parts(path) else { return };
    let joined =
        parts.iter().fold(Path::new("/w").to_owned(), |at, part| at.join(std::ffi::OsStr::from_bytes(part)));
    assert!(
        joined.starts_with("/w") && !joined.components().any(|part| part == Component::ParentDir),
        "{joined:?}"
    );
    assert_eq!(joined.components().count(), parts.len() + 2, "{joined:?}");
}
