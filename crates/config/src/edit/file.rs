//! Replacing a file as a whole: readers see the old one or the new one, never half of one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// More links than this are a circle.
const MOST_LINKS: usize = 16;

/// Where links lead, also when there is no file yet.
pub(crate) fn real_place(path: &Path) -> io::Result<PathBuf> {
    let mut place = path.to_owned();
    for _ in 0..MOST_LINKS {
        let Ok(target) = fs::read_link(&place) else { return Ok(place) };
        place = place.parent().unwrap_or(Path::new("/")).join(target);
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a circle of links"))
}

/// Writes a new file in the folder of `path` and renames it over the target that `path` leads to. Mode and owner stay; a
/// new file is its owner's alone. The target of a link may be where commands can write, and could swap the new file
/// before it is in its place: the folder of the link is ours.
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
    // A leftover of a process that had our id and died.
    let _ = fs::remove_file(&temporary);
    let written = write(&temporary, text, fs::metadata(target).ok().as_ref())
        .and_then(|file| fs::rename(&temporary, target).and_then(|()| check_same(&file, target)));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
        return written;
    }
    // The name is durable once its folder is; not every file system can do that.
    if let Some(folder) = target.parent().and_then(|folder| File::open(folder).ok()) {
        let _ = folder.sync_all();
    }
    Ok(())
}

/// A file that is not the one that was written does not stay.
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
        // Only root can give a file away, and only then it matters.
        let _ = fchown(&file, Some(like.uid()), Some(like.gid()));
        file.set_permissions(fs::Permissions::from_mode(like.mode() & 0o7777))?;
    }
    file.sync_all()?;
    Ok(file)
}
