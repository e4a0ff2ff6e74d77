//! The paths that a thread may read: readable roots and hidden paths, by path and by identity.

use std::collections::{HashMap, HashSet};
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::ReadProblem;

/// Describes processes, including this one and its initial environment.
const PROCESSES: &str = "/proc";

/// Limit of files inside hidden folders that are compared with a file with several names.
const MAX_COMPARED: usize = 50_000;

/// The same limits as those of the thread's commands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Access {
    /// Only paths in these folders. None: everything.
    pub readable: Option<Vec<PathBuf>>,
    /// Not these, nor their contents.
    pub hidden: Vec<PathBuf>,
    /// Paths inside hidden folders that are readable nevertheless. The nearest of both above a file decides.
    pub shown: Vec<PathBuf>,
}

/// The limits with resolved links. Resolved once, when something is first opened. The default has no limits.
#[derive(Debug, Default)]
pub(crate) struct AccessLimits {
    access: Option<Access>,
    resolved: OnceLock<Arc<ResolvedPaths>>,
}

/// The last resolved limits, with their time. One request makes several readers with the same limits.
static LAST: Mutex<Option<(Instant, Access, Arc<ResolvedPaths>)>> = Mutex::new(None);

/// How long they are reused for the same paths. Links among hidden places are the user's own.
const FRESH: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
struct ResolvedPaths {
    readable: Option<Vec<PathBuf>>,
    /// Hidden and shown paths; the value says which.
    places: HashMap<PathBuf, bool>,
    /// Device and inode of the hidden paths, which may have other names.
    hidden_ids: Vec<(u64, u64)>,
    hidden_files: OnceLock<HiddenFiles>,
}

/// Device and inode of the files inside hidden folders.
#[derive(Debug)]
struct HiddenFiles {
    ids: HashSet<(u64, u64)>,
    is_complete: bool,
}

impl AccessLimits {
    pub(crate) fn new(access: Access) -> Self {
        Self { access: Some(access), resolved: OnceLock::new() }
    }

    fn resolved(&self) -> Option<&ResolvedPaths> {
        let access = self.access.as_ref()?;
        Some(self.resolved.get_or_init(|| ResolvedPaths::shared(access)))
    }

    /// Whether a resolved path may be read, judged by its name.
    pub(crate) fn check_path(&self, real: &Path) -> Result<(), ReadProblem> {
        let Some(limits) = self.resolved() else { return Ok(()) };
        if limits.hides(real) || real.starts_with(PROCESSES) {
            return Err(ReadProblem::Hidden);
        }
        let within = |folders: &[PathBuf]| folders.iter().any(|folder| real.starts_with(folder));
        match limits.readable.as_deref() {
            Some(roots) if !within(roots) => Err(ReadProblem::NotReadable),
            _ => Ok(()),
        }
    }

    /// Whether an open file is a hidden one under another name. If there are too many hidden files to compare, a strict
    /// check treats any file with several names as hidden.
    pub(crate) fn check_identity(&self, opened: &Metadata, is_strict: bool) -> Result<(), ReadProblem> {
        let Some(limits) = self.resolved() else { return Ok(()) };
        let id = (opened.dev(), opened.ino());
        let is_hidden = limits.hidden_ids.contains(&id)
            || opened.is_file() && opened.nlink() > 1 && limits.has_hidden_name(id, is_strict);
        if is_hidden { Err(ReadProblem::Hidden) } else { Ok(()) }
    }
}

impl ResolvedPaths {
    fn shared(access: &Access) -> Arc<Self> {
        let mut last = LAST.lock();
        if let Some((at, same, resolved)) = &*last
            && at.elapsed() < FRESH
            && same == access
        {
            return resolved.clone();
        }
        let resolved = Arc::new(Self::of(access));
        *last = Some((Instant::now(), access.clone(), resolved.clone()));
        resolved
    }

    fn of(access: &Access) -> Self {
        let hidden_ids = access.hidden.iter().filter_map(|path| fs::metadata(path).ok());
        Self {
            readable: access.readable.as_deref().map(both_names),
            places: places(access),
            hidden_ids: hidden_ids.map(|metadata| (metadata.dev(), metadata.ino())).collect(),
            hidden_files: OnceLock::new(),
        }
    }

    /// Called for every file of a search, so the number of places must not matter.
    fn hides(&self, real: &Path) -> bool {
        real.ancestors().find_map(|above| self.places.get(above)).copied().unwrap_or(false)
    }

    /// Whether a file is in a hidden folder under another name. Only called for files with several names, which are
    /// rare.
    fn has_hidden_name(&self, id: (u64, u64), is_strict: bool) -> bool {
        let known = self.hidden_files.get_or_init(|| self.files_beneath_hidden());
        known.ids.contains(&id) || is_strict && !known.is_complete
    }

    fn files_beneath_hidden(&self) -> HiddenFiles {
        let mut found = HiddenFiles { ids: HashSet::new(), is_complete: true };
        let hidden = self.places.iter().filter(|(_, is_hidden)| **is_hidden);
        let mut queue: Vec<PathBuf> = hidden.map(|(path, _)| path.clone()).collect();
        let mut looked_at = 0;
        while let Some(folder) = queue.pop() {
            if !fs::symlink_metadata(&folder).is_ok_and(|found| found.is_dir()) || !self.hides(&folder) {
                continue;
            }
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                looked_at += 1;
                if looked_at > MAX_COMPARED {
                    found.is_complete = false;
                    return found;
                }
                match entry.metadata() {
                    Ok(metadata) if metadata.is_dir() => queue.push(entry.path()),
                    // Also files with one name: another may be added before the next check.
                    Ok(metadata) if self.hides(&entry.path()) => {
                        found.ids.insert((metadata.dev(), metadata.ino()));
                    }
                    _ => {}
                }
            }
        }
        found
    }
}

/// A link in a shown folder does not make its target readable: a command could have put it there.
fn places(access: &Access) -> HashMap<PathBuf, bool> {
    let is_plain = |path: &&PathBuf| fs::symlink_metadata(path).is_ok_and(|found| !found.is_symlink());
    let shown: Vec<PathBuf> = access.shown.iter().filter(is_plain).cloned().collect();
    let shown = both_names(&shown).into_iter().map(|path| (path, false));
    shown.chain(both_names(&access.hidden).into_iter().map(|path| (path, true))).collect()
}

/// Each path as given and resolved.
fn both_names(paths: &[PathBuf]) -> Vec<PathBuf> {
    let mut names = Vec::with_capacity(paths.len());
    for path in paths {
        // Most hidden places do not exist, and checking that is cheaper than resolving.
        if fs::symlink_metadata(path).is_ok()
            && let Ok(real) = fs::canonicalize(path)
            && real != *path
        {
            names.push(real);
        }
        names.push(path.clone());
    }
    names
}
