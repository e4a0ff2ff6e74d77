//! The contents of the AGENTS.md files: the user's own, then the project's from its root to the working directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::ReadError;
use crate::marker::is_marker;
use crate::reader::Reader;

/// In each directory the first existing one of these counts; configured names follow.
const FILENAMES: [&str; 2] = ["AGENTS.override.md", "AGENTS.md"];

/// Separates the user's instructions from the project's.
const SEPARATOR: &str = "\n\n--- project-doc ---\n\n";

/// Limit of the user's own file.
const MAX_GLOBAL_BYTES: u64 = 1 << 20;

/// How project instructions are found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstructionOptions {
    /// Limit of all project files together, in bytes. 0 reads none.
    pub max_bytes: u64,
    /// Other names for AGENTS.md.
    pub fallback_filenames: Vec<String>,
    /// Files or directories that mark the root of a project.
    pub root_markers: Vec<String>,
}

impl Default for InstructionOptions {
    fn default() -> Self {
        Self { max_bytes: 32 << 10, fallback_filenames: Vec::new(), root_markers: vec![".git".to_owned()] }
    }
}

/// All instructions for `cwd`, joined. Unreadable files are skipped and logged. Project files are read by the thread's
/// reader and only inside the project's root, because their contents go to the model.
pub fn read_instructions(
    homes: &[PathBuf],
    cwd: &Path,
    options: &InstructionOptions,
    reader: &Reader,
) -> Option<Arc<str>> {
    match (global(homes), project(cwd, options, reader)) {
        (Some(global), Some(project)) => Some(format!("{global}{SEPARATOR}{project}").into()),
        (global, project) => global.or(project).map(Into::into),
    }
}

/// Only the user's own, if the project's files are not on this machine.
pub fn read_global_instructions(homes: &[PathBuf]) -> Option<Arc<str>> {
    global(homes).map(Into::into)
}

/// The first file with content. Our own folder comes after a shared one.
fn global(homes: &[PathBuf]) -> Option<String> {
    let mut files = homes.iter().flat_map(|home| FILENAMES.iter().map(|name| home.join(name)));
    files.find_map(|file| {
        let text = text_of(&file, Reader::default().read_start(&file, MAX_GLOBAL_BYTES))?.1;
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    })
}

fn project(cwd: &Path, options: &InstructionOptions, reader: &Reader) -> Option<String> {
    let cwd = fs::canonicalize(cwd).unwrap_or_else(|_| cwd.to_owned());
    let mut left = options.max_bytes;
    let mut parts = Vec::new();
    let dirs = from_root(&cwd, &options.root_markers);
    let reader = reader.beneath(dirs.first()?).ok()?;
    for dir in dirs {
        if left == 0 {
            break;
        }
        let Some(path) = file_in(dir, options) else { continue };
        let Some((bytes, text)) = text_of(&path, reader.read_start(&path, left)) else { continue };
        if !text.trim().is_empty() {
            left -= bytes;
            parts.push(text);
        }
    }
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}

/// The directories from the project's root to `cwd`; without a marked root only `cwd`.
fn from_root<'a>(cwd: &'a Path, markers: &[String]) -> Vec<&'a Path> {
    let is_root = |dir: &Path| markers.iter().any(|marker| is_marker(&dir.join(marker)));
    let depth = cwd.ancestors().position(is_root).unwrap_or(0);
    let mut dirs: Vec<_> = cwd.ancestors().take(depth + 1).collect();
    dirs.reverse();
    dirs
}

/// A link counts whatever its target: a dangling one hides the names after it.
fn file_in(dir: &Path, options: &InstructionOptions) -> Option<PathBuf> {
    let more = options.fallback_filenames.iter().map(String::as_str).filter(|name| !name.trim().is_empty());
    FILENAMES.into_iter().chain(more).map(|name| dir.join(name)).find(|path| {
        fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file() || metadata.is_symlink())
    })
}

/// The number of bytes read, and their text.
fn text_of(path: &Path, read: Result<Vec<u8>, ReadError>) -> Option<(u64, String)> {
    match read {
        Ok(bytes) => Some((bytes.len() as u64, String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if error.is_missing() => None,
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "instructions not read");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use crate::Access;
    use tempfile::TempDir;

    use super::*;

    type Files<'a> = &'a [(&'a str, &'a str)];

    /// Files by path, with `home/` and the project `p/` in it; a path with a trailing `/` is a directory.
    fn tree(files: Files<'_>) -> TempDir {
        let dir = tempfile::tempdir().expect("a directory");
        for made in ["home", "own", "p/a/b"] {
            fs::create_dir_all(dir.path().join(made)).expect("made");
        }
        for (path, text) in files {
            let full = dir.path().join(path);
            if path.ends_with('/') {
                fs::create_dir_all(full).expect("made");
            } else {
                fs::write(full, text).expect("written");
            }
        }
        dir
    }

    fn read_in(dir: &TempDir, cwd: &str, options: &InstructionOptions) -> Option<String> {
        let reader = Reader::new(Access { hidden: vec![dir.path().join("home")], ..Access::default() });
        let homes = ["home", "own"].map(|home| dir.path().join(home));
        read_instructions(&homes, &dir.path().join(cwd), options, &reader).map(|text| text.to_string())
    }

    fn check(files: Files<'_>, options: &InstructionOptions, expected: Option<&str>) {
        assert_eq!(read_in(&tree(files), "p/a/b", options).as_deref(), expected, "{files:?} {options:?}");
    }

    #[test]
    fn files_are_found_and_joined() {
        let default = InstructionOptions::default();
        let cases: &[(Files<'_>, Option<&str>)] = &[
            (&[], None),
            (&[("home/AGENTS.md", " be brief \n")], Some("be brief")),
            (&[("home/AGENTS.override.md", " \n"), ("home/AGENTS.md", "g")], Some("g")),
            (&[("home/AGENTS.override.md", "o"), ("home/AGENTS.md", "g")], Some("o")),
            (&[("home/AGENTS.md", "g"), ("own/AGENTS.override.md", "ours")], Some("g")),
            (&[("home/AGENTS.md", " "), ("own/AGENTS.md", "ours")], Some("ours")),
            (&[("p/a/b/AGENTS.md", " tabs\n")], Some(" tabs\n")),
            (
                &[("home/AGENTS.md", "g"), ("p/a/b/AGENTS.md", "tabs")],
                Some("g\n\n--- project-doc ---\n\ntabs"),
            ),
            // Without a marker only the working directory counts.
            (&[("p/AGENTS.md", "root"), ("p/a/b/AGENTS.md", "leaf")], Some("leaf")),
            (&[("p/.git/", ""), ("p/AGENTS.md", "root"), ("p/a/b/AGENTS.md", "leaf")], Some("root\n\nleaf")),
            // A worktree's marker is a file; the nearest one is the root.
            (
                &[("p/.git/", ""), ("p/a/.git", "gitdir: x"), ("p/AGENTS.md", "r"), ("p/a/AGENTS.md", "m")],
                Some("m"),
            ),
            // The override replaces the other file, even if it is blank.
            (&[("p/a/b/AGENTS.override.md", "o"), ("p/a/b/AGENTS.md", "n")], Some("o")),
            (&[("p/a/b/AGENTS.override.md", " "), ("p/a/b/AGENTS.md", "n")], None),
            // A directory of that name is no file.
            (&[("p/a/b/AGENTS.override.md/", ""), ("p/a/b/AGENTS.md", "n")], Some("n")),
            (&[("p/a/b/OTHER.md", "n")], None),
        ];
        for (files, expected) in cases {
            check(files, &default, *expected);
        }
    }

    #[test]
    fn options_choose_names_and_roots() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let files: Files<'_> =
            &[("p/.git/", ""), ("p/AGENTS.md", "root"), ("p/a/MARK", ""), ("p/a/b/OTHER.md", "leaf")];
        let cases = [
            (names(&[]), names(&[".git"]), Some("root")),
            (names(&["", "NONE.md", "OTHER.md"]), names(&[".git"]), Some("root\n\nleaf")),
            (names(&["OTHER.md"]), names(&["MARK", ".git"]), Some("leaf")),
            (names(&["OTHER.md"]), names(&[]), Some("leaf")),
            (names(&[]), names(&[]), None),
        ];
        for (fallback_filenames, root_markers, expected) in cases {
            let options =
                InstructionOptions { fallback_filenames, root_markers, ..InstructionOptions::default() };
            check(files, &options, expected);
        }
    }

    #[test]
    fn the_project_has_one_budget() {
        let files: Files<'_> = &[
            ("home/AGENTS.md", "global"),
            ("p/.git/", ""),
            ("p/AGENTS.md", "12345"),
            ("p/a/AGENTS.md", "    "),
            ("p/a/b/AGENTS.md", "678é"),
        ];
        let project = |text: &str| Some(format!("global{SEPARATOR}{text}"));
        let cases = [
            (0, Some("global".to_owned())),
            (3, project("123")),
            (5, project("12345")),
            (7, project("12345\n\n67")),
            // Cut inside a character.
            (9, project("12345\n\n678\u{fffd}")),
            (10, project("12345\n\n678é")),
            (1_000, project("12345\n\n678é")),
        ];
        let dir = tree(files);
        for (max_bytes, expected) in cases {
            let options = InstructionOptions { max_bytes, ..InstructionOptions::default() };
            assert_eq!(read_in(&dir, "p/a/b", &options), expected, "{max_bytes}");
        }
    }

    #[test]
    fn links_are_followed_to_files_only() {
        let dir = tree(&[("p/a/b/AGENTS.md", "n"), ("p/a/b/inside", "linked"), ("elsewhere", "secret")]);
        let link = dir.path().join("p/a/b/AGENTS.override.md");
        let default = InstructionOptions::default();
        for (target, expected) in [
            (PathBuf::from("inside"), Some("linked")),
            (dir.path().join("p/a/b/inside"), Some("linked")),
            (dir.path().join("elsewhere"), None),
            (PathBuf::from("../../../elsewhere"), None),
            (PathBuf::from("/proc/self/environ"), None),
            (PathBuf::from("/etc/hostname"), None),
            (dir.path().join("nowhere"), None),
            (PathBuf::from("/dev/zero"), None),
        ] {
            symlink(&target, &link).expect("linked");
            assert_eq!(read_in(&dir, "p/a/b", &default).as_deref(), expected, "{}", target.display());
            fs::remove_file(&link).expect("removed");
        }
        // The working directory itself may be a link: the directories above it are those of its target.
        fs::create_dir(dir.path().join("p/.git")).expect("made");
        fs::write(dir.path().join("p/AGENTS.md"), "root").expect("written");
        symlink(dir.path().join("p/a/b"), dir.path().join("short")).expect("linked");
        assert_eq!(read_in(&dir, "short", &default).as_deref(), Some("root\n\nn"));
    }

    /// A hidden key file under a name in the project, by every kind of link.
    #[test]
    fn hidden_files_are_never_instructions() {
        let dir = tree(&[("home/credentials.json", "secret"), ("p/.git/", "")]);
        let secret = dir.path().join("home/credentials.json");
        let default = InstructionOptions::default();
        let file = dir.path().join("p/AGENTS.md");
        fs::hard_link(&secret, &file).expect("linked");
        assert_eq!(read_in(&dir, "p", &default), None);
        fs::remove_file(&file).expect("removed");
        symlink("../home/credentials.json", &file).expect("linked");
        assert_eq!(read_in(&dir, "p", &default), None);
        // Also if the home is part of the project.
        fs::create_dir(dir.path().join(".git")).expect("made");
        fs::remove_dir(dir.path().join("p/.git")).expect("removed");
        assert_eq!(read_in(&dir, "p", &default), None);
        let names = vec!["../home/credentials.json".to_owned(), secret.to_string_lossy().into_owned()];
        fs::remove_file(&file).expect("removed");
        let options = InstructionOptions { fallback_filenames: names, ..default };
        assert_eq!(read_in(&dir, "p", &options), None);
    }

    #[test]
    fn a_pipe_does_not_block() {
        let dir = tree(&[("p/.git/", ""), ("p/AGENTS.md", "root")]);
        let pipe = dir.path().join("p/a/b/AGENTS.md");
        assert!(std::process::Command::new("mkfifo").arg(pipe).status().expect("run").success());
        assert_eq!(read_in(&dir, "p/a/b", &InstructionOptions::default()).as_deref(), Some("root"));
    }

    #[test]
    fn a_missing_directory_has_no_instructions() {
        let dir = tree(&[]);
        assert_eq!(read_in(&dir, "gone", &InstructionOptions::default()), None);
    }
}
