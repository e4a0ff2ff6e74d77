//! The folders of git's settings, found without running git.

use std::fs;
use std::path::{Path, PathBuf};

use support::read_plain;

/// Pointer files contain one line.
const MAX_POINTER_BYTES: u64 = 16 * 1024;

/// The target of a `.git`.
pub(crate) struct GitFolders {
    /// The folder of this working tree.
    pub(crate) own: PathBuf,
    /// The folder that all working trees share.
    pub(crate) common: PathBuf,
}

impl GitFolders {
    /// For a folder with a `.git`: a folder, a link to one, or a file that names one. `None` if it is invalid.
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

/// The text of a regular, short file: anything else may be there, such as a pipe.
fn line_of(file: &Path) -> Option<String> {
    String::from_utf8(read_plain(file, MAX_POINTER_BYTES).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file that is replaced by a pipe between two checks would block.
    #[test]
    fn a_file_that_becomes_a_pipe_does_not_block() {
        let folder = tempfile::tempdir().expect("a folder");
        let git = folder.path().join("behind");
        std::fs::create_dir(&git).expect("made");
        std::fs::write(folder.path().join(".git"), "gitdir: behind\n").expect("written");
        let (file, pipe, place) = (git.join("file"), git.join("pipe"), git.join("commondir"));
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        let fifo = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, fifo, mode, 0).expect("made");
        let (done, is_done) = std::sync::mpsc::channel();
        let top = folder.path().to_owned();
        std::thread::spawn(move || {
            for _ in 0..20_000 {
                let _ = GitFolders::of(&top);
            }
            let _ = done.send(());
        });
        let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
        loop {
            let _ = std::fs::write(&file, ".");
            let _ = std::fs::rename(&file, &place);
            let _ = std::fs::hard_link(&pipe, &file);
            let _ = std::fs::rename(&file, &place);
            match is_done.try_recv() {
                Ok(()) => break,
                Err(_) => assert!(std::time::Instant::now() < end, "a pipe was waited for"),
            }
        }
    }
}
