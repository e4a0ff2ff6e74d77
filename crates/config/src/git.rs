//! Finding the repository a folder belongs to, without running git.

use std::fs;
use std::path::{Path, PathBuf};

use workspace::{Reader, is_marker};

use crate::paths::normalize;

/// Limit of git's files, which contain one line.
const MAX_LINE_BYTES: u64 = 4 << 10;

/// The nearest parent folder, or `folder` itself, with one of the markers.
pub(crate) fn marked_ancestor<'a>(folder: &'a Path, markers: &[String]) -> Option<&'a Path> {
    folder.ancestors().find(|ancestor| markers.iter().any(|marker| is_marker(&ancestor.join(marker))))
}

/// The root of the repository. A worktree counts as its main repository, so that one trust decision covers both.
pub(crate) fn repository_root(folder: &Path) -> Option<PathBuf> {
    let root = folder.ancestors().find(|ancestor| is_marker(&ancestor.join(".git")))?;
    Some(main_repository(root).unwrap_or_else(|| root.to_owned()))
}

/// In a worktree `.git` is a file with the path of a folder, whose `commondir` names the main `.git`.
fn main_repository(root: &Path) -> Option<PathBuf> {
    let pointer = read(&root.join(".git"))?;
    let git_folder = normalize(&root.join(pointer.strip_prefix("gitdir:")?.trim()));
    let common = read(&git_folder.join("commondir"))?;
    let common = normalize(&git_folder.join(common.trim()));
    // Valid only if git's own files point back; otherwise any folder could use another repository's trust.
    let back = read(&git_folder.join("gitdir"))?;
    let points_back =
        fs::canonicalize(git_folder.join(back.trim())).ok()? == fs::canonicalize(root.join(".git")).ok()?;
    let is_worktree = points_back && git_folder.starts_with(&common) && common.file_name()? == ".git";
    is_worktree.then(|| common.parent().map(Path::to_owned))?
}

fn read(path: &Path) -> Option<String> {
    Reader::default().read_text(path, MAX_LINE_BYTES).ok()
}
