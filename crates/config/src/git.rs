//! Finding the repository a folder belongs to, without running git.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::paths::normalize;

/// The nearest folder at or above `folder` that holds one of the markers.
pub(crate) fn marked_ancestor<'a>(folder: &'a Path, markers: &[String]) -> Option<&'a Path> {
    folder.ancestors().find(|ancestor| markers.iter().any(|marker| is_marker(&ancestor.join(marker))))
}

/// Whether something marks the root of a project. While commands run, the sandbox puts sticky, empty folders where names
/// are protected that do not exist; they mark nothing.
pub fn is_marker(marker: &Path) -> bool {
    fs::symlink_metadata(marker).is_ok_and(|found| !(found.is_dir() && found.mode() & 0o1000 != 0))
}

/// The root of the repository. A worktree counts as its main repository, so that one decision of trust covers both.
pub(crate) fn repository_root(folder: &Path) -> Option<PathBuf> {
    let root = folder.ancestors().find(|ancestor| is_marker(&ancestor.join(".git")))?;
    Some(main_repository(root).unwrap_or_else(|| root.to_owned()))
}

/// In a worktree `.git` is a file that names a folder, in which `commondir` names the main `.git`.
fn main_repository(root: &Path) -> Option<PathBuf> {
    let pointer = fs::read_to_string(root.join(".git")).ok()?;
    let git_folder = normalize(&root.join(pointer.strip_prefix("gitdir:")?.trim()));
    let common = fs::read_to_string(git_folder.join("commondir")).ok()?;
    let common = normalize(&git_folder.join(common.trim()));
    // The pointer counts only if git's own files point back; else any folder could borrow another repository's trust.
    let back = fs::read_to_string(git_folder.join("gitdir")).ok()?;
    let points_back =
        fs::canonicalize(git_folder.join(back.trim())).ok()? == fs::canonicalize(root.join(".git")).ok()?;
    let is_worktree = points_back && git_folder.starts_with(&common) && common.file_name()? == ".git";
    is_worktree.then(|| common.parent().map(Path::to_owned))?
}
