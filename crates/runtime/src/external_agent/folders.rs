//! Skill folders: which are missing, and copying them whole.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use config::create_private;
use workspace::{Kind, Problem, ReadError, Reader};

use super::rewrite::rewritten;
use super::trouble;
use crate::error::RuntimeError;

/// The file that is read to the model, so its words are ours to mind.
const SKILL_FILE: &str = "SKILL.md";
/// Deeper than a skill has a reason to be.
const MAX_DEPTH: usize = 16;
/// Of one folder.
const MAX_ENTRIES: usize = 10_000;
const MAX_SKILL_BYTES: u64 = 1 << 20;

/// The folders of `from` that `to` does not have, by name. Links are nobody's skills to copy.
pub(super) fn missing_skills(reader: &Reader, from: &Path, to: &Path) -> Result<Vec<String>, RuntimeError> {
    let listing = match reader.list(from, MAX_ENTRIES) {
        Ok(listing) => listing,
        Err(error) if error.is_missing() || matches!(error.problem, Problem::NotAFolder) => {
            return Ok(Vec::new());
        }
        Err(error) => return Err(trouble(from, error.problem)),
    };
    let mut names = Vec::new();
    for entry in listing.entries {
        if let (Kind::Folder, Ok(name)) = (entry.kind, entry.name.into_string())
            && fs::symlink_metadata(to.join(&name)).is_err()
        {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// All of it or nothing: it is made beside its place and moved there.
pub(super) fn copy_skill(reader: &Reader, from: &Path, to: &Path, name: &str) -> Result<(), RuntimeError> {
    create_private(to).map_err(|error| trouble(to, error))?;
    let making = to.join(format!(".{name}.{}.tmp", std::process::id()));
    let _ = fs::remove_dir_all(&making);
    let made = copy(reader, &from.join(name), &making, 0).and_then(|()| fs::rename(&making, to.join(name)));
    made.map_err(|error| {
        let _ = fs::remove_dir_all(&making);
        trouble(&from.join(name), error)
    })
}

/// Folders and regular files, with their modes.
fn copy(reader: &Reader, from: &Path, to: &Path, depth: usize) -> io::Result<()> {
    if depth > MAX_DEPTH {
        return Err(io::Error::new(ErrorKind::InvalidInput, "its folders are nested too deeply"));
    }
    create_private(to)?;
    let listing = reader.list(from, MAX_ENTRIES).map_err(ReadError::into_io)?;
    for entry in listing.entries {
        let (source, target) = (from.join(&entry.name), to.join(&entry.name));
        match entry.kind {
            Kind::Folder => copy(reader, &source, &target, depth + 1)?,
            Kind::File => {
                let mut opened = reader.open(&source).map_err(ReadError::into_io)?;
                if entry.name == SKILL_FILE
                    && let Ok(text) = reader.read_text(&source, MAX_SKILL_BYTES)
                {
                    fs::write(&target, rewritten(&text))?;
                } else {
                    io::copy(&mut opened.file, &mut fs::File::create_new(&target)?)?;
                }
                fs::set_permissions(&target, opened.metadata.permissions())?;
            }
            Kind::Link | Kind::Other => {}
        }
    }
    Ok(())
}
