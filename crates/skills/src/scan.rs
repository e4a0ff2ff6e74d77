//! Searches for skills in their roots, breadth first, with limits of time and memory.

use std::collections::{HashSet, VecDeque};
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use protocol::SkillScope;
use workspace::{Entry, EntryKind, ReadError, Reader};

use super::front_matter::{self, MAX_NAME};
use super::openai_yaml;
use super::roots::{SkillRoot, reader};
use super::{FILE, FileStamp, MAX_FILE_BYTES, ScanResult, Skill};

/// Limit of a skill's depth below its root.
const MAX_DEPTH: usize = 6;

/// Of one root.
const MAX_FOLDERS: usize = 2_000;

/// Limit per root, for entries of any kind. Most are skipped cheaply.
const MAX_ENTRIES: usize = 100_000;

/// Limit of the front matter.
const MAX_HEAD_BYTES: u64 = 64 << 10;

/// All skills in the roots: of projects, the user, the system, the machine; by name in each. Empty if the file system
/// hangs.
pub(super) fn scan(roots: &[SkillRoot]) -> ScanResult {
    let Some(first) = roots.first() else { return ScanResult::default() };
    let all = roots.to_owned();
    workspace::in_time(&first.path, move || scan_now(&all)).unwrap_or_else(|error| {
        let mut found = ScanResult::default();
        found.fail(&first.path, error.problem.to_string());
        found
    })
}

fn scan_now(roots: &[SkillRoot]) -> ScanResult {
    let mut found = ScanResult::default();
    let mut seen = HashSet::new();
    for root in roots {
        match reader(root.project.as_deref()) {
            Ok(reader) => {
                let (found, seen) = (&mut found, &mut seen);
                RootScan { root, reader, found, seen, visited: HashSet::new(), entries: 0 }.run();
            }
            // A folder of a missing project is missing too.
            Err(error) if error.is_missing() => {}
            Err(error) => found.fail(&root.path, error.problem.to_string()),
        }
    }
    sort(&mut found.skills);
    found
}

pub(super) fn sort(skills: &mut [Skill]) {
    let rank = |scope| match scope {
        SkillScope::Repo => 0,
        SkillScope::User => 1,
        SkillScope::System => 2,
        SkillScope::Admin => 3,
    };
    skills.sort_by(|one, other| {
        let key = |skill: &Skill| rank(skill.scope);
        key(one)
            .cmp(&key(other))
            .then_with(|| one.name.cmp(&other.name))
            .then_with(|| one.path.cmp(&other.path))
    });
}

struct RootScan<'a> {
    root: &'a SkillRoot,
    reader: Reader,
    found: &'a mut ScanResult,
    /// Skills of all roots so far.
    seen: &'a mut HashSet<PathBuf>,
    /// Resolved paths, so that links never form a cycle.
    visited: HashSet<PathBuf>,
    entries: usize,
}

impl RootScan<'_> {
    fn run(mut self) {
        let top = match self.reader.find(&self.root.path) {
            Ok(found) if found.metadata.is_dir() => found.path,
            Err(error) if error.is_refused() => return self.fail(&self.root.path, error.problem.to_string()),
            _ => return,
        };
        let mut queue = VecDeque::from([(top.clone(), 0)]);
        self.visited.insert(top);
        let mut folders = 0;
        while let Some((folder, depth)) = queue.pop_front() {
            if folders == MAX_FOLDERS || self.entries >= MAX_ENTRIES {
                let what = format!(
                    "only the first {MAX_FOLDERS} folders and {MAX_ENTRIES} files below this folder are searched"
                );
                self.fail(&self.root.path, what);
                break;
            }
            folders += 1;
            let inner = self.scan_folder(&folder);
            self.found.folders.push(folder);
            if depth < MAX_DEPTH {
                queue.extend(inner.into_iter().map(|folder| (folder, depth + 1)));
            }
        }
    }

    /// Adds the skill of a folder, and returns its unvisited subfolders.
    fn scan_folder(&mut self, folder: &Path) -> Vec<PathBuf> {
        let listed = match self.reader.list(folder, MAX_ENTRIES.saturating_sub(self.entries)) {
            Ok(listed) => listed,
            Err(error) => {
                if !error.is_missing() {
                    self.fail(folder, error.problem.to_string());
                }
                return Vec::new();
            }
        };
        let mut inner = Vec::new();
        self.entries += listed.entries.len();
        for Entry { name, kind } in listed.entries {
            if name.as_encoded_bytes().starts_with(b".") {
                continue;
            }
            if name == FILE {
                self.take(&folder.join(FILE), kind);
            } else {
                inner.extend(self.folder_at(folder, &name, kind));
            }
        }
        // The order on disk is arbitrary.
        inner.sort();
        inner
    }

    /// Links to folders are followed, except among bundled skills.
    fn folder_at(&mut self, folder: &Path, name: &OsStr, kind: EntryKind) -> Option<PathBuf> {
        let path = folder.join(name);
        let path = match kind {
            EntryKind::Folder => path,
            EntryKind::Link if self.root.scope != SkillScope::System => match self.reader.find(&path) {
                Ok(found) => found.metadata.is_dir().then_some(found.path)?,
                Err(error) if error.is_refused() => {
                    self.fail(&path, error.problem.to_string());
                    return None;
                }
                Err(_) => return None,
            },
            _ => return None,
        };
        self.visited.insert(path.clone()).then_some(path)
    }

    fn take(&mut self, path: &Path, kind: EntryKind) {
        // A link to a file is skipped, and so is a folder of that name.
        if matches!(kind, EntryKind::Link | EntryKind::Folder) || !self.seen.insert(path.to_owned()) {
            return;
        }
        match read_skill(path, self.root, &self.reader) {
            Ok(skill) => self.found.skills.extend(skill),
            Err(problem) => self.fail(path, problem),
        }
    }

    /// The user cannot fix errors of bundled skills.
    fn fail(&mut self, path: &Path, problem: String) {
        if self.root.scope == SkillScope::System {
            tracing::debug!(path = %path.display(), problem, "a bundled skill is left out");
        } else {
            self.found.fail(path, problem);
        }
    }
}

/// None if it is not for this program.
fn read_skill(path: &Path, root: &SkillRoot, reader: &Reader) -> Result<Option<Skill>, String> {
    if path.to_str().is_none() {
        return Err("its path is not UTF-8".to_owned());
    }
    let (head, stamp) = read_head(path, reader).map_err(|error| error.to_string())?;
    let folder = path.parent().unwrap_or(path);
    let folder_name = folder.file_name().unwrap_or_default().to_string_lossy();
    let read = front_matter::read(&head, &folder_name).map_err(|error| error.to_string())?;
    let name = match &root.prefix {
        Some(prefix) => format!("{prefix}:{}", read.name),
        None => read.name,
    };
    let actual = name.chars().count();
    if actual > MAX_NAME {
        return Err(
            front_matter::FrontMatterError::TooLong { key: "name", most: MAX_NAME, actual }.to_string()
        );
    }
    let shown = openai_yaml::read(folder, reader);
    Ok((!shown.is_hidden).then(|| Skill {
        name,
        description: read.description,
        short_description: read.short_description,
        interface: shown.interface,
        dependencies: shown.dependencies,
        path: path.to_owned(),
        scope: root.scope,
        is_implicit: shown.is_implicit,
        stamp,
        project: root.project.clone(),
    }))
}

/// The name of the skill in a file, if it is one.
pub(super) fn name_of(path: &Path) -> Option<String> {
    let folder = path.parent()?.file_name()?.to_string_lossy();
    front_matter::read(&read_head(path, &Reader::default()).ok()?.0, &folder).ok().map(|read| read.name)
}

fn read_head(path: &Path, reader: &Reader) -> io::Result<(String, FileStamp)> {
    let opened = reader.open(path).map_err(ReadError::into_io)?;
    let metadata = &opened.metadata;
    let stamp = FileStamp { bytes: metadata.len(), modified: metadata.modified().ok() };
    if stamp.bytes > MAX_FILE_BYTES {
        let what = format!("it is larger than {} MiB", MAX_FILE_BYTES >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, what));
    }
    let mut bytes = opened.read_start(MAX_HEAD_BYTES)?;
    // If the front matter is cut, its last character may be too.
    let is_cut = bytes.len() as u64 == MAX_HEAD_BYTES;
    let end = match std::str::from_utf8(&bytes) {
        Ok(_) => bytes.len(),
        Err(error) if is_cut && error.error_len().is_none() => error.valid_up_to(),
        Err(_) => return Err(io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8")),
    };
    bytes.truncate(end);
    Ok((String::from_utf8(bytes).unwrap_or_default(), stamp))
}

#[cfg(test)]
mod tests;
