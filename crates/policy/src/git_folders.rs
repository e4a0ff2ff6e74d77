//! The folders that git takes its settings from, found without running git.

use std::fs;
use std::path::{Path, PathBuf};

use crate::plain_file::read_plain;

/// Files that point somewhere hold one line.
const MAX_POINTER_BYTES: u64 = 16 * 1024;

/// Where a `.git` leads to.
pub(crate) struct GitFolders {
    /// This working tree's own.
    pub(crate) own: PathBuf,
    /// The one that all working trees share.
    pub(crate) common: PathBuf,
}

impl GitFolders {
    /// For a folder that holds a `.git`: a folder, a link to one, or a file that names one. `None` where it leads
    /// nowhere.
    pub(crate) fn of(place: &Path) -> Option<Self> {
        let dot_git = place.join(".git");
        let own = if fs::metadata(&dot_git).ok()?.is_dir() {
            dot_git
        } else {
            place.join(line_of(&dot_git)?.strip_prefix("gitdir:")?.trim())
        };
        let own = fs::canonicalize(own).ok()?;
        let common = line_of(&own.join("commondir")).map(|line| own.join(line.trim()));
        let common = common.and_then(|common| fs::canonicalize(common).ok());
        Some(Self { common: common.unwrap_or_else(|| own.clone()), own })
    }

    /// The files with its settings, whether or not they exist.
    pub(crate) fn settings(&self) -> [PathBuf; 2] {
        [self.common.join("config"), self.own.join("config.worktree")]
    }
}

/// The text of a plain, short file: anything else may be there, a queue that never ends included.
fn line_of(file: &Path) -> Option<String> {
    String::from_utf8(read_plain(file, MAX_POINTER_BYTES).ok()?).ok()
}
