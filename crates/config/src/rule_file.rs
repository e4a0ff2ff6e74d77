//! Rule files of projects, read here so that exactly the reviewed text applies.

use std::path::{Path, PathBuf};

use policy::RuleFile;
use workspace::{EntryKind, Reader};

const EXTENSION: &str = "rules";

/// Far more than any real rule file.
const MAX_FILE_BYTES: u64 = 1 << 20;
const MAX_FILES: usize = 100;
const MAX_ENTRIES: usize = 10_000;

/// All rule files of a folder, by name.
pub(crate) fn read_rules(reader: &Reader, folder: &Path) -> Vec<RuleFile> {
    let unusable =
        |problem: String| vec![RuleFile { path: folder.to_owned(), text: Err(problem), accept: None }];
    let listing = match reader.list(folder, MAX_ENTRIES) {
        Ok(listing) => listing,
        Err(error) if error.is_missing() => return Vec::new(),
        Err(error) => return unusable(error.to_string()),
    };
    let is_rule = |name: &Path| name.extension().is_some_and(|extension| extension == EXTENSION);
    let mut files: Vec<PathBuf> = listing
        .entries
        .into_iter()
        .filter(|entry| entry.kind != EntryKind::Folder && is_rule(Path::new(&entry.name)))
        .map(|entry| folder.join(entry.name))
        .collect();
    if files.len() > MAX_FILES || !listing.is_complete {
        return unusable(format!("{}: it has more than {MAX_FILES} rule files", folder.display()));
    }
    files.sort();
    let read = |path: PathBuf| RuleFile {
        text: reader.read_text(&path, MAX_FILE_BYTES).map_err(|error| error.to_string()),
        path,
        accept: None,
    };
    files.into_iter().map(read).collect()
}
