//! Files and folders that mark the root of a project, such as `.git`.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

const STICKY: u32 = 0o1000;
const OTHERS_WRITE: u32 = 0o002;

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
