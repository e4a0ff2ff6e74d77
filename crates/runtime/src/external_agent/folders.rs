//! Skill folders: which are missing, and copying them whole.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use config::create_private;

use super::rewrite::rewritten;
use super::trouble;
use crate::error::RuntimeError;

/// The file that is read to the model, so its words are ours to mind.
const SKILL_FILE: &str = "SKILL.md";
/// Deeper than a skill has a reason to be.
const MAX_DEPTH: usize = 16;

/// The folders of `from` that `to` does not have, by name. Links are nobody's skills to copy.
pub(super) fn missing_skills(from: &Path, to: &Path) -> Result<Vec<String>, RuntimeError> {
    let entries = match fs::read_dir(from) {
        Ok(entries) => entries,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        Err(error) => return Err(trouble(from, error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| trouble(from, error))?;
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if let (true, Ok(name)) = (is_folder, entry.file_name().into_string())
            && fs::symlink_metadata(to.join(&name)).is_err()
        {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// All of it or nothing: it is made beside its place and moved there.
pub(super) fn copy_skill(from: &Path, to: &Path, name: &str) -> Result<(), RuntimeError> {
    create_private(to).map_err(|error| trouble(to, error))?;
    let making = to.join(format!(".{name}.{}.tmp", std::process::id()));
    let _ = fs::remove_dir_all(&making);
    let made = copy(&from.join(name), &making, 0).and_then(|()| fs::rename(&making, to.join(name)));
    made.map_err(|error| {
        let _ = fs::remove_dir_all(&making);
        trouble(&from.join(name), error)
    })
}

/// Folders and regular files, with their modes.
fn copy(from: &Path, to: &Path, depth: usize) -> io::Result<()> {
    if depth > MAX_DEPTH {
        return Err(io::Error::new(ErrorKind::InvalidInput, "its folders are nested too deeply"));
    }
    create_private(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (kind, target) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() {
            copy(&entry.path(), &target, depth + 1)?;
        } else if kind.is_file() {
            fs::copy(entry.path(), &target)?;
            if entry.file_name() == SKILL_FILE
                && let Ok(text) = fs::read_to_string(&target)
            {
                fs::write(&target, rewritten(&text))?;
            }
        }
    }
    Ok(())
}
