//! Which folders to watch to notice changes of a path, in the current state of the disk.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// Watches for one path. Folders are resolved paths, so that each has one name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct WatchPlan {
    pub(super) folders: Vec<(PathBuf, EntryFilter)>,
    pub(super) exists: bool,
}

/// The relevant entries of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum EntryFilter {
    /// The path is this folder: all its entries.
    All,
    /// The path itself, in its parent folder.
    Entry(OsString),
    /// The path and its folder are missing. It may appear after this entry does.
    Ancestor(OsString),
}

/// An empty plan means that the path changed while it was checked.
pub(super) fn plan(target: &Path) -> WatchPlan {
    let Ok(metadata) = fs::metadata(target) else {
        return WatchPlan { folders: missing(target).into_iter().collect(), exists: false };
    };
    let Ok(real) = fs::canonicalize(target) else { return WatchPlan::default() };
    let is_link = fs::symlink_metadata(target).is_ok_and(|metadata| metadata.is_symlink());
    let mut folders = Vec::new();
    if metadata.is_dir() {
        folders.push((real, EntryFilter::All));
    } else {
        folders.extend(entry(&real));
    }
    if is_link {
        // The link itself may be changed.
        let own = target.parent().and_then(|folder| fs::canonicalize(folder).ok());
        folders.extend(own.and_then(|folder| entry(&folder.join(target.file_name()?))));
    }
    WatchPlan { folders, exists: true }
}

fn entry(path: &Path) -> Option<(PathBuf, EntryFilter)> {
    Some((path.parent()?.to_owned(), EntryFilter::Entry(path.file_name()?.to_owned())))
}

/// The nearest existing parent, and the missing entry in it.
fn missing(target: &Path) -> Option<(PathBuf, EntryFilter)> {
    let folder = target.ancestors().skip(1).find(|folder| folder.is_dir())?;
    let mut below = target.strip_prefix(folder).ok()?.components();
    let name = below.next()?.as_os_str().to_owned();
    let filter = if below.next().is_none() { EntryFilter::Entry(name) } else { EntryFilter::Ancestor(name) };
    Some((fs::canonicalize(folder).ok()?, filter))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn folders_that_notice_a_path() {
        let dir = tempfile::tempdir().expect("a directory");
        let top = fs::canonicalize(dir.path()).expect("there");
        fs::create_dir_all(top.join("folder/inner")).expect("made");
        fs::write(top.join("folder/file"), "").expect("written");
        symlink(top.join("folder"), top.join("to-folder")).expect("linked");
        symlink(top.join("folder/file"), top.join("to-file")).expect("linked");
        symlink(top.join("nowhere"), top.join("dangling")).expect("linked");
        let entry = |folder: &str, name: &str| (top.join(folder), EntryFilter::Entry(name.into()));
        let top_entry = |name: &str| (top.clone(), EntryFilter::Entry(name.into()));
        let all = (top.join("folder"), EntryFilter::All);
        let cases = [
            ("folder", true, vec![all.clone()]),
            ("folder/file", true, vec![entry("folder", "file")]),
            ("to-folder", true, vec![all, top_entry("to-folder")]),
            ("to-folder/file", true, vec![entry("folder", "file")]),
            ("to-file", true, vec![entry("folder", "file"), top_entry("to-file")]),
            ("dangling", false, vec![top_entry("dangling")]),
            ("folder/new", false, vec![entry("folder", "new")]),
            ("to-folder/new", false, vec![entry("folder", "new")]),
            ("a/b/c", false, vec![(top.clone(), EntryFilter::Ancestor("a".into()))]),
            ("folder/file/x", false, vec![(top.join("folder"), EntryFilter::Ancestor("file".into()))]),
        ];
        for (path, exists, folders) in cases {
            assert_eq!(plan(&top.join(path)), WatchPlan { folders, exists }, "{path}");
        }
    }
}
