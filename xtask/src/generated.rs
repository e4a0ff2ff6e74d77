//! Generated files that are kept in the repository: `cargo xtask generate` writes them, the check compares them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use protocol_export::{self as export, Surface};

use crate::workspace;
use crate::{Problems, method_page};

/// A folder with generated files in it, and who makes them.
struct Output {
    folder: &'static str,
    make: fn() -> Vec<File>,
    others: Others,
}

/// A path relative to the folder, and what belongs there.
struct File {
    path: String,
    bytes: Vec<u8>,
}

impl From<export::File> for File {
    fn from(file: export::File) -> Self {
        Self { path: file.path, bytes: file.text.into_bytes() }
    }
}

/// What else may be in the folder.
#[derive(Debug, Clone, Copy)]
enum Others {
    Anything,
    /// Nothing, except below this subfolder.
    OnlyUnder(&'static str),
}

const OUTPUTS: &[Output] = &[
    Output { folder: "docs", make: || vec![method_page::file().into()], others: Others::Anything },
    Output {
        folder: "sdk/python/oarlock-protocol",
        make: || export::python(Surface::Experimental).into_iter().map(File::from).collect(),
        others: Others::OnlyUnder("tests"),
    },
    Output {
        folder: "crates/protocol/src/schemas",
        make: || vec![File { path: "schemas.json.zz".to_owned(), bytes: protocol::schemas::packed() }],
        others: Others::Anything,
    },
];

const REMEDY: &str = "run `cargo xtask generate`";

pub(crate) fn write() -> Result<()> {
    for output in OUTPUTS {
        let folder = workspace::root().join(output.folder);
        let files = (output.make)();
        let changed = write_changed(&folder, &files)?;
        println!("{}: {changed} of {} files changed", output.folder, files.len());
        for path in strays(&files, &kept(output.folder)?, output.others) {
            println!("{}/{path} is not generated; remove it", output.folder);
        }
    }
    Ok(())
}

/// Untouched files keep their time stamp, so nothing is rebuilt for them.
fn write_changed(folder: &Path, files: &[File]) -> Result<usize> {
    let mut changed = 0;
    for file in files {
        let path = folder.join(&file.path);
        if fs::read(&path).is_ok_and(|bytes| bytes == file.bytes) {
            continue;
        }
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
        }
        fs::write(&path, &file.bytes).with_context(|| format!("cannot write {}", path.display()))?;
        changed += 1;
    }
    Ok(changed)
}

pub(crate) fn check() -> Result<Problems> {
    let mut problems = Vec::new();
    for output in OUTPUTS {
        let drift = drift(&(output.make)(), &kept(output.folder)?, output.others);
        problems.extend(drift.map(|first| format!("{}/{first}", output.folder)));
    }
    Ok(problems)
}

/// The files of the repository below a folder, by their path relative to it.
fn kept(folder: &str) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut kept = BTreeMap::new();
    for path in workspace::files()? {
        if let Some(relative) = path.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/')) {
            kept.insert(relative.to_owned(), workspace::read(&path)?);
        }
    }
    Ok(kept)
}

/// The first file that is not as it would be generated, and how many more there are.
fn drift(made: &[File], kept: &BTreeMap<String, Vec<u8>>, others: Others) -> Option<String> {
    let mut drifted: Vec<String> =
        made.iter().filter_map(|file| difference(file, kept.get(&file.path))).collect();
    drifted
        .extend(strays(made, kept, others).iter().map(|path| format!("{path} is not generated; remove it")));
    match drifted.len() {
        0 => None,
        1 => drifted.pop(),
        count => Some(format!("{} (more files are off: {})", drifted[0], count - 1)),
    }
}

fn difference(made: &File, kept: Option<&Vec<u8>>) -> Option<String> {
    let File { path, bytes } = made;
    let Some(kept) = kept else {
        return Some(format!("{path} is missing; {REMEDY}"));
    };
    if kept == bytes {
        return None;
    }
    if str::from_utf8(bytes).is_err() {
        return Some(format!("{path} is out of date; {REMEDY}"));
    }
    let equal_bytes = kept.iter().zip(bytes).take_while(|(kept, made)| kept == made).count();
    let line = 1 + kept[..equal_bytes].iter().filter(|byte| **byte == b'\n').count();
    Some(format!("{path} is out of date from line {line} on; {REMEDY}"))
}

fn strays(made: &[File], kept: &BTreeMap<String, Vec<u8>>, others: Others) -> Vec<String> {
    let Others::OnlyUnder(subfolder) = others else {
        return Vec::new();
    };
    let is_stray = |path: &&String| {
        !made.iter().any(|file| file.path == **path) && !Path::new(path.as_str()).starts_with(subfolder)
    };
    kept.keys().filter(is_stray).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_files_are_in_sync() {
        assert_eq!(check().unwrap(), Problems::new());
    }

    fn made(files: &[(&str, &str)]) -> Vec<File> {
        files
            .iter()
            .map(|(path, text)| File { path: (*path).to_owned(), bytes: text.as_bytes().to_vec() })
            .collect()
    }

    /// Two generated files, and what the repository has of them.
    fn check_drift(kept: &[(&str, &str)]) -> Option<String> {
        let kept = kept.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec())).collect();
        drift(&made(&[("a.py", "1\n2\n3\n"), ("b/c.py", "x\n")]), &kept, Others::OnlyUnder("tests"))
    }

    #[test]
    fn the_same_bytes_are_in_sync() {
        assert_eq!(
            check_drift(&[("a.py", "1\n2\n3\n"), ("b/c.py", "x\n"), ("tests/test_a.py", "hand-written")]),
            None
        );
    }

    #[test]
    fn a_changed_line_is_named() {
        assert_eq!(
            check_drift(&[("a.py", "1\n2\n4\n"), ("b/c.py", "x\n")]).as_deref(),
            Some("a.py is out of date from line 3 on; run `cargo xtask generate`")
        );
    }

    #[test]
    fn a_file_without_lines_is_only_named() {
        let made = File { path: "a.zz".to_owned(), bytes: vec![0x78, 0xda] };
        assert_eq!(
            difference(&made, Some(&vec![0x78])).as_deref(),
            Some("a.zz is out of date; run `cargo xtask generate`")
        );
    }

    #[test]
    fn a_missing_last_newline_counts() {
        assert_eq!(
            check_drift(&[("a.py", "1\n2\n3\n"), ("b/c.py", "x")]).as_deref(),
            Some("b/c.py is out of date from line 1 on; run `cargo xtask generate`")
        );
    }

    #[test]
    fn missing_files_are_counted() {
        assert_eq!(
            check_drift(&[]).as_deref(),
            Some("a.py is missing; run `cargo xtask generate` (more files are off: 1)")
        );
    }

    #[test]
    fn a_file_nobody_generates_is_named() {
        let kept = [("a.py", "1\n2\n3\n"), ("b/c.py", "x\n"), ("tests_of_old.py", "")];
        assert_eq!(check_drift(&kept).as_deref(), Some("tests_of_old.py is not generated; remove it"));
    }

    #[test]
    fn only_what_differs_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let files = made(&[("a.py", "1\n"), ("b/c.py", "x\n")]);
        assert_eq!(write_changed(folder.path(), &files).unwrap(), 2);
        fs::write(folder.path().join("a.py"), "edited by hand").unwrap();
        assert_eq!(write_changed(folder.path(), &files).unwrap(), 1);
        assert_eq!(fs::read_to_string(folder.path().join("a.py")).unwrap(), "1\n");
        assert_eq!(write_changed(folder.path(), &files).unwrap(), 0);
    }
}
