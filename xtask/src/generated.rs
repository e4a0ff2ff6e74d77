//! Generated files that are kept in the repository, and generated parts of pages that are not:
//! `cargo xtask generate` writes them, the check compares them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use protocol_export::{self as export, Surface};

use crate::{Problems, code_map, error_codes, method_page, picture, workspace};

/// A folder with generated files in it, and who makes them. The root of the repository has no name.
struct Output {
    folder: &'static str,
    make: fn() -> Result<Vec<File>>,
    others: Others,
}

impl Output {
    fn label(&self) -> &str {
        if self.folder.is_empty() { "." } else { self.folder }
    }
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

/// Other files that may be in the folder.
#[derive(Debug, Clone, Copy)]
enum Others {
    Anything,
    /// Nothing, except below this subfolder.
    OnlyUnder(&'static str),
}

const OUTPUTS: &[Output] = &[
    Output {
        folder: "",
        make: || Ok(vec![page_with_part("ARCHITECTURE.md", "code map", &code_map::text()?)?]),
        others: Others::Anything,
    },
    Output {
        folder: "",
        make: || Ok(vec![page_with_part("docs/delegation.md", "codes", &error_codes::text()?)?]),
        others: Others::Anything,
    },
    Output { folder: "docs", make: || Ok(vec![method_page::file()?.into()]), others: Others::Anything },
    Output {
        folder: "docs",
        make: || Ok(vec![File { path: "session.svg".to_owned(), bytes: picture::svg()?.into_bytes() }]),
        others: Others::Anything,
    },
    Output {
        folder: "sdk/python/oarlock-protocol",
        make: || Ok(export::python(Surface::Experimental).into_iter().map(File::from).collect()),
        others: Others::OnlyUnder("tests"),
    },
    Output {
        folder: "crates/protocol/src/schemas",
        make: || Ok(vec![File { path: "schemas.json.zz".to_owned(), bytes: protocol::schemas::packed() }]),
        others: Others::Anything,
    },
];

const REMEDY: &str = "run `cargo xtask generate`";

pub(crate) fn write() -> Result<()> {
    for output in OUTPUTS {
        let folder = workspace::root().join(output.folder);
        let files = (output.make)()?;
        let changed = write_changed(&folder, &files)?;
        println!("{}: {changed} of {} files changed", output.label(), files.len());
        for path in strays(&files, &kept(output, &files)?, output.others) {
            println!("{}/{path} is not generated; remove it", output.label());
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
        let files = (output.make)()?;
        let drift = drift(&files, &kept(output, &files)?, output.others);
        problems.extend(drift.map(|first| format!("{}/{first}", output.label())));
    }
    Ok(problems)
}

/// The files of the repository that `drift` and `strays` look at, by their path relative to the folder.
fn kept(output: &Output, made: &[File]) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut kept = BTreeMap::new();
    for path in workspace::files()? {
        let relative = match output.folder {
            "" => Some(path.as_str()),
            folder => path.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/')),
        };
        let matters = |relative: &&str| {
            matches!(output.others, Others::OnlyUnder(_)) || made.iter().any(|file| file.path == **relative)
        };
        if let Some(relative) = relative.filter(matters) {
            kept.insert(relative.to_owned(), workspace::read(&path)?);
        }
    }
    Ok(kept)
}

/// A page that is written by hand, with the part between two markers made anew.
fn page_with_part(path: &str, part: &str, text: &str) -> Result<File> {
    let page = with_part(&workspace::read_text(path)?, part, text);
    Ok(File { path: path.to_owned(), bytes: page.with_context(|| format!("in {path}"))?.into_bytes() })
}

fn with_part(page: &str, part: &str, text: &str) -> Result<String> {
    let (begin, end) = (format!("<!-- generated: {part} -->\n"), format!("<!-- end of {part} -->\n"));
    let Some((before, rest)) = page.split_once(&begin) else {
        bail!("the line {} is missing", begin.trim());
    };
    let Some((_, after)) = rest.split_once(&end) else {
        bail!("the line {} is missing after {}", end.trim(), begin.trim());
    };
    Ok(format!("{before}{begin}{text}{end}{after}"))
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
    fn a_part_of_a_page_is_made_anew() {
        let page = "a\n<!-- generated: map -->\nold\n<!-- end of map -->\nb\n";
        let made = "a\n<!-- generated: map -->\nnew\n<!-- end of map -->\nb\n";
        assert_eq!(with_part(page, "map", "new\n").unwrap(), made);
        assert_eq!(with_part(made, "map", "new\n").unwrap(), made);
    }

    #[test]
    fn a_page_without_both_markers_fails() {
        for page in ["", "<!-- generated: map -->\n", "<!-- end of map -->\n<!-- generated: map -->\n"] {
            assert!(with_part(page, "map", "new\n").is_err(), "{page}");
        }
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
