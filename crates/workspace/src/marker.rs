//! Files and folders that mark the root of a project, such as `.git`.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

const STICKY: u32 = 0o1000;
const OTHERS_WRITE: u32 = 0o002;

/// Whether this marks the root of a project. Not in folders that everyone can write, such as /tmp, where another user
/// could have put it to influence all folders below. The sandbox's placeholders for protected names, which are sticky
/// empty folders, do not count.
pub fn is_marker(marker: &Path) -> bool {
    let is_placeholder = |found: &fs::Metadata| found.is_dir() && found.mode() & STICKY != 0;
    let is_everybodys = |folder: &Path| {
        fs::metadata(folder)
            .is_ok_and(|found| found.mode() & (STICKY | OTHERS_WRITE) == STICKY | OTHERS_WRITE)
    };
    fs::symlink_metadata(marker).is_ok_and(|found| !is_placeholder(&found))
        && !marker.parent().is_some_and(is_everybodys)
}
