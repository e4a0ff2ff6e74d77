//! Finding the repository a folder belongs to, without running git.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use workspace::Reader;

use crate::paths::normalize;

const STICKY: u32 = 0o1000;
const OTHERS_WRITE: u32 = 0o002;

/// The files of git that are read hold one line.
const MAX_LINE_BYTES: u64 = 4 << 10;

/// The nearest folder at or above `folder` that holds one of the markers.
pub(crate) fn marked_ancestor<'a>(folder: &'a Path, markers: &[String]) -> Option<&'a Path> {
    folder.ancestors().find(|ancestor| markers.iter().any(|marker| is_marker(&ancestor.join(marker))))
}

/// Whether something marks the root of a project. In a folder that everybody writes to, such as /tmp, anybody could have put
/// it there to have a say about all folders below. While commands run, the sandbox puts sticky, empty folders where names
/// are protected that do not exist; they mark nothing.
pub fn is_marker(marker: &Path) -> bool {
    let is_placeholder = |found: &fs::Metadata| found.is_dir() && found.mode() & STICKY != 0;
    let is_everybodys = |folder: &Path| {
        fs::metadata(folder)
            .is_ok_and(|found| found.mode() & (STICKY | OTHERS_WRITE) == STICKY | OTHERS_WRITE)
    };
    fs::symlink_metadata(marker).is_ok_and(|found| !is_placeholder(&found))
        && !marker.parent().is_some_and(is_everybodys)
}

/// The root of the repository. A worktree counts as its main repository, so that one decision of trust covers both.
pub(crate) fn repository_root(folder: &Path) -> Option<PathBuf> {
    let root = folder.ancestors().find(|ancestor| is_marker(&ancestor.join(".git")))?;
    Some(main_repository(root).unwrap_or_else(|| root.to_owned()))
}

/// In a worktree `.git` is a file that names a folder, in which `commondir` names the main `.git`.
fn main_repository(root: &Path) -> Option<PathBuf> {
    let pointer = read(&root.join(".git"))?;
    let git_folder = normalize(&root.join(pointer.strip_prefix("gitdir:")?.trim()));
    let common = read(&git_folder.join("commondir"))?;
    let common = normalize(&git_folder.join(common.trim()));
    // The pointer counts only if git's own files point back; else any folder could borrow another repository's trust.
    let back = read(&git_folder.join("gitdir"))?;
    let points_back =
        fs::canonicalize(git_folder.join(back.trim())).ok()? == fs::canonicalize(root.join(".git")).ok()?;
    let is_worktree = points_back && git_folder.starts_with(&common) && common.file_name()? == ".git";
    is_worktree.then(|| common.parent().map(Path::to_owned))?
}

fn read(path: &Path) -> Option<String> {
    Reader::default().read_text(path, MAX_LINE_BYTES).ok()
}
