//! A folder that a reader takes in at a glance: no more than 30 source files directly in it.

use std::collections::BTreeMap;

use anyhow::Result;

use crate::known::{self, Known};
use crate::{Problems, workspace};

const MAX_FILES: usize = 30;

/// One file per noun of the wire: a table in the form of a folder.
const AGREED: &[&str] = &["crates/protocol/src/types"];

const KNOWN: Known =
    Known { file: "xtask/known/folders.txt", what: "a folder with the number of source files in it" };

pub(crate) fn check() -> Result<Problems> {
    known::compare(&KNOWN, &too_large(&workspace::files()?), |folder, count| {
        format!(
            "{folder} has {count} source files, {MAX_FILES} may be in one folder: make folders by subject"
        )
    })
}

pub(crate) fn shrink() -> Result<()> {
    known::shrink(&KNOWN, &too_large(&workspace::files()?))
}

fn too_large(paths: &[String]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for path in paths.iter().filter(|path| path.starts_with("crates/") && path.ends_with(".rs")) {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        if path.split('/').nth(2) == Some("src") && !AGREED.contains(&folder) {
            *counts.entry(folder.to_owned()).or_insert(0) += 1;
        }
    }
    counts.retain(|_, count| *count > MAX_FILES);
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_folder_is_too_large_but_for_the_known_ones() {
        assert_eq!(check().unwrap(), Problems::new());
    }

    fn check_folder(folder: &str, files: usize, expected: Option<usize>) {
        let paths: Vec<String> = (0..files).map(|number| format!("{folder}/f{number}.rs")).collect();
        assert_eq!(too_large(&paths).values().next().copied(), expected, "{files} in {folder}");
    }

    #[test]
    fn thirty_files_pass_and_one_more_fails() {
        check_folder("crates/a/src", 30, None);
        check_folder("crates/a/src", 31, Some(31));
        check_folder("crates/a/src/b/c", 31, Some(31));
    }

    #[test]
    fn only_sources_outside_of_the_agreed_folders_count() {
        check_folder("crates/a/tests", 31, None);
        check_folder("crates/protocol/src/types", 31, None);
        assert_eq!(too_large(&vec!["crates/a/src/b.txt".to_owned(); 31]), BTreeMap::new());
    }
}
