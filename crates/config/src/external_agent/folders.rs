//! Skill folders: finds missing ones and copies them as a whole.

use std::fs;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

use workspace::{EntryKind, ReadError, ReadProblem, Reader};

use super::ExternalAgentError;
use super::rewrite::rewritten;
use super::trouble;
use crate::home::create_private;

/// The file that is read to the model, so its text is adapted.
const SKILL_FILE: &str = "SKILL.md";
/// Limit of nesting.
const MAX_DEPTH: usize = 16;
/// Of one folder.
const MAX_ENTRIES: usize = 10_000;
const MAX_SKILL_BYTES: u64 = 1 << 20;
/// Of all files of one skill.
const MAX_COPIED_BYTES: u64 = 64 << 20;

/// The folders of `from` that `to` lacks, by name. Links are not copied.
pub(super) fn missing_skills(
    reader: &Reader,
    from: &Path,
    to: &Path,
) -> Result<Vec<String>, ExternalAgentError> {
    let listing = match reader.list(from, MAX_ENTRIES) {
        Ok(listing) => listing,
        Err(error) if error.is_missing() || matches!(error.problem, ReadProblem::NotAFolder) => {
            return Ok(Vec::new());
        }
        Err(error) => return Err(trouble(from, error.problem)),
    };
    let mut names = Vec::new();
    for entry in listing.entries {
        if let (EntryKind::Folder, Ok(name)) = (entry.kind, entry.name.into_string())
            && fs::symlink_metadata(to.join(&name)).is_err()
        {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// All or nothing: copied to a temporary folder and moved.
pub(super) fn copy_skill(
    reader: &Reader,
    from: &Path,
    to: &Path,
    name: &str,
) -> Result<(), ExternalAgentError> {
    create_private(to).map_err(|error| trouble(to, error))?;
    let making = to.join(format!(".{name}.{}.tmp", std::process::id()));
    let _ = fs::remove_dir_all(&making);
    let mut room = SkillRoom { files: MAX_ENTRIES, bytes: MAX_COPIED_BYTES };
    let made = copy(reader, &from.join(name), &making, 0, &mut room)
        .and_then(|()| fs::rename(&making, to.join(name)));
    made.map_err(|error| {
        let _ = fs::remove_dir_all(&making);
        trouble(&from.join(name), error)
    })
}

/// The remaining budget of one skill.
struct SkillRoom {
    files: usize,
    bytes: u64,
}

impl SkillRoom {
    fn take_file(&mut self) -> io::Result<()> {
        self.files = self.files.checked_sub(1).ok_or_else(|| too_much("files"))?;
        Ok(())
    }

    /// Copies a file within the budget. A sparse file counts with its full size, because the copy would fill the disk.
    fn copy(&mut self, from: fs::File, to: &Path) -> io::Result<()> {
        let copied = io::copy(&mut from.take(self.bytes.saturating_add(1)), &mut fs::File::create_new(to)?)?;
        self.bytes = self.bytes.checked_sub(copied).ok_or_else(|| too_much("bytes"))?;
        Ok(())
    }
}

fn too_much(of: &str) -> io::Error {
    let most = format!("a skill may have {MAX_ENTRIES} files and {} MiB", MAX_COPIED_BYTES >> 20);
    io::Error::new(ErrorKind::InvalidInput, format!("it has too many {of}: {most}"))
}

/// Folders and regular files, with their modes.
fn copy(reader: &Reader, from: &Path, to: &Path, depth: usize, room: &mut SkillRoom) -> io::Result<()> {
    if depth > MAX_DEPTH {
        return Err(io::Error::new(ErrorKind::InvalidInput, "its folders are nested too deeply"));
    }
    create_private(to)?;
    let listing = reader.list(from, MAX_ENTRIES).map_err(ReadError::into_io)?;
    for entry in listing.entries {
        let (source, target) = (from.join(&entry.name), to.join(&entry.name));
        match entry.kind {
            EntryKind::Folder => copy(reader, &source, &target, depth + 1, room)?,
            EntryKind::File => {
                room.take_file()?;
                let opened = reader.open(&source).map_err(ReadError::into_io)?;
                let permissions = opened.metadata.permissions();
                if entry.name == SKILL_FILE
                    && let Ok(text) = reader.read_text(&source, MAX_SKILL_BYTES)
                {
                    fs::write(&target, rewritten(&text))?;
                } else {
                    room.copy(opened.file, &target)?;
                }
                fs::set_permissions(&target, permissions)?;
            }
            EntryKind::Link | EntryKind::Other => {}
        }
    }
    Ok(())
}
