//! Copies of plugins: plain files and folders, limited in number and size.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use workspace::{EntryKind, Reader};

const MAX_FILES: usize = 10_000;
const MAX_DEPTH: usize = 32;
const MAX_FILE_BYTES: u64 = 32 << 20;
const MAX_BYTES: u64 = 256 << 20;
/// Belongs to the repository, not to the plugin.
const SKIPPED: &str = ".git";

struct Copying {
    reader: Reader,
    files: usize,
    bytes: u64,
}

/// Copies everything in `from` to `to`, which must not exist. Fails at the first unsupported entry: links, pipes,
/// devices, or too much of anything. A partial copy stays; the caller removes it.
pub(crate) fn copy_folder(from: &Path, to: &Path) -> Result<(), String> {
    let reader = Reader::default().beneath(from).map_err(|error| error.to_string())?;
    let mut copying = Copying { reader, files: 0, bytes: 0 };
    let mut waiting = vec![(from.to_owned(), to.to_owned(), 0)];
    while let Some((from, to, depth)) = waiting.pop() {
        if depth > MAX_DEPTH {
            return Err(format!("{} is more than {MAX_DEPTH} folders deep", from.display()));
        }
        waiting.extend(copying.folder(&from, &to)?.into_iter().map(|(from, to)| (from, to, depth + 1)));
    }
    Ok(())
}

impl Copying {
    /// Returns its subfolders, which are still to be copied.
    fn folder(&mut self, from: &Path, to: &Path) -> Result<Vec<(PathBuf, PathBuf)>, String> {
        DirBuilder::new().mode(0o700).create(to).map_err(|error| format!("{}: {error}", to.display()))?;
        let listing = self.reader.list(from, MAX_FILES).map_err(|error| error.to_string())?;
        if !listing.is_complete {
            return Err(format!("it has more than {MAX_FILES} files"));
        }
        let mut inner = Vec::new();
        for entry in listing.entries {
            let (from, to) = (from.join(&entry.name), to.join(&entry.name));
            self.files += 1;
            if self.files > MAX_FILES {
                return Err(format!("it has more than {MAX_FILES} files"));
            }
            match entry.kind {
                _ if entry.name == SKIPPED => {}
                EntryKind::Folder => inner.push((from, to)),
                EntryKind::File => self.file(&from, &to)?,
                EntryKind::Link => {
                    return Err(format!("{} is a link, which a plugin cannot have", from.display()));
                }
                EntryKind::Other => return Err(format!("{} is neither a file nor a folder", from.display())),
            }
        }
        Ok(inner)
    }

    fn file(&mut self, from: &Path, to: &Path) -> Result<(), String> {
        let opened = self.reader.open(from).map_err(|error| error.to_string())?;
        // Of the mode, only the owner's execute bit is copied.
        let is_program = opened.metadata.permissions().mode() & 0o100 != 0;
        let mode = if is_program { 0o700 } else { 0o600 };
        let failed = |error: io::Error| format!("{}: {error}", to.display());
        let mut target =
            OpenOptions::new().write(true).create_new(true).mode(mode).open(to).map_err(failed)?;
        let most = MAX_FILE_BYTES.min(MAX_BYTES - self.bytes);
        let copied = io::copy(&mut opened.file.take(most + 1), &mut target).map_err(failed)?;
        if copied > MAX_FILE_BYTES {
            return Err(format!("{} is larger than {} MiB", from.display(), MAX_FILE_BYTES >> 20));
        }
        if copied > most {
            return Err(format!("it is larger than {} MiB", MAX_BYTES >> 20));
        }
        self.bytes += copied;
        Ok(())
    }
}

/// Creates a folder and its missing parents, for their owner only.
pub(crate) fn make_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// A temporary folder, removed on drop unless it was moved.
#[derive(Debug)]
pub(crate) struct Staging(pub(crate) PathBuf);

impl Staging {
    /// In `plugins` of the state folder, so that a move is a rename.
    pub(crate) fn new(state: &Path) -> io::Result<Self> {
        static COUNT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let folder = state.join("plugins/staging").join(format!("{}-{count}", std::process::id()));
        // Left by a process with our id that died.
        let _ = fs::remove_dir_all(&folder);
        make_folder(&folder)?;
        Ok(Self(folder))
    }

    /// Moves a folder of it to `to`, replacing what is there.
    pub(crate) fn put(&self, name: &str, to: &Path) -> io::Result<()> {
        if let Some(parent) = to.parent() {
            make_folder(parent)?;
        }
        let old = self.0.join("replaced");
        let had_old = match fs::rename(to, &old) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => return Err(error),
        };
        let moved = fs::rename(self.0.join(name), to);
        if moved.is_err() && had_old {
            let _ = fs::rename(&old, to);
        }
        moved
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
