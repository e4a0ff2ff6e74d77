//! Replaces a file as a whole: readers see the old or the new one, never a partial one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// More links than this are a cycle.
const MOST_LINKS: usize = 16;

/// The target of links, even if the file does not exist.
pub(crate) fn real_place(path: &Path) -> io::Result<PathBuf> {
    let mut place = path.to_owned();
    for _ in 0..MOST_LINKS {
        let Ok(target) = fs::read_link(&place) else { return Ok(place) };
        place = place.parent().unwrap_or(Path::new("/")).join(target);
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a circle of links"))
}

/// Writes a new file in the folder of `path` and renames it over the target of `path`. Mode and owner are kept; a new
/// file is for its owner only. The target's folder may be writable for commands, which could replace the new file
/// before the rename: the link's folder is ours.
pub(super) fn replace(path: &Path, target: &Path, text: &[u8]) -> io::Result<()> {
    match replace_from(path, target, text) {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => replace_from(target, target, text),
        written => written,
    }
}

fn replace_from(beside: &Path, target: &Path, text: &[u8]) -> io::Result<()> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let temporary = beside.with_extension(format!("{}.{count}.tmp", std::process::id()));
    // Left by a process with our id that died.
    let _ = fs::remove_file(&temporary);
    let written = write(&temporary, text, fs::metadata(target).ok().as_ref())
        .and_then(|file| fs::rename(&temporary, target).and_then(|()| check_same(&file, target)));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
        return written;
    }
    // Makes the name durable; not every file system supports that.
    if let Some(folder) = target.parent().and_then(|folder| File::open(folder).ok()) {
        let _ = folder.sync_all();
    }
    Ok(())
}

/// Removes a file that is not the one we wrote.
fn check_same(written: &File, target: &Path) -> io::Result<()> {
    let (ours, there) = (written.metadata()?, fs::symlink_metadata(target)?);
    if (ours.dev(), ours.ino()) == (there.dev(), there.ino()) {
        return Ok(());
    }
    let _ = fs::remove_file(target);
    Err(io::Error::other("another program swapped the file while it was written"))
}

fn write(path: &Path, text: &[u8], like: Option<&fs::Metadata>) -> io::Result<File> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text)?;
    if let Some(like) = like {
        // Only root can change the owner, and only then it matters.
        let _ = fchown(&file, Some(like.uid()), Some(like.gid()));
        file.set_permissions(fs::Permissions::from_mode(like.mode() & 0o7777))?;
    }
    file.sync_all()?;
    Ok(file)
}
