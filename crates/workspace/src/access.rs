//! What a thread may read: readable roots and hidden paths, by path and by identity.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::Problem;

/// Describes processes, this one and the environment it was started with included.
const PROCESSES: &str = "/proc";

/// How many files beneath hidden folders are compared with a file that has several names. Beyond, it counts as hidden.
const MAX_COMPARED: usize = 20_000;

/// The same limits that commands of the thread have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Access {
    /// Only what is in these folders. None: everything.
    pub readable: Option<Vec<PathBuf>>,
    /// Not these, nor what is beneath them.
    pub hidden: Vec<PathBuf>,
    /// What can be read all the same beneath hidden folders.
    pub shown: Vec<PathBuf>,
}

/// The limits with their links resolved, which happens once and only when something is opened. The default is none.
#[derive(Debug, Default)]
pub(crate) struct Limits {
    access: Option<Access>,
    resolved: OnceLock<Resolved>,
}

#[derive(Debug, Default)]
struct Resolved {
    readable: Option<Vec<PathBuf>>,
    hidden: Vec<PathBuf>,
    shown: Vec<PathBuf>,
    /// Device and number of the hidden paths, which may have other names.
    hidden_ids: Vec<(u64, u64)>,
}

impl Limits {
    pub(crate) fn new(access: Access) -> Self {
        Self { access: Some(access), resolved: OnceLock::new() }
    }

    fn resolved(&self) -> Option<&Resolved> {
        let access = self.access.as_ref()?;
        Some(self.resolved.get_or_init(|| Resolved::of(access)))
    }

    /// Whether a path without links may be read, as far as its name shows.
    pub(crate) fn check_path(&self, real: &Path) -> Result<(), Problem> {
        let Some(limits) = self.resolved() else { return Ok(()) };
        let within = |folders: &[PathBuf]| folders.iter().any(|folder| real.starts_with(folder));
        if within(&limits.hidden) && !within(&limits.shown) || real.starts_with(PROCESSES) {
            return Err(Problem::Hidden);
        }
        match limits.readable.as_deref() {
            Some(roots) if !within(roots) => Err(Problem::NotReadable),
            _ => Ok(()),
        }
    }

    /// Whether what is open is something hidden under another name.
    pub(crate) fn check_identity(&self, opened: &Metadata) -> Result<(), Problem> {
        let Some(limits) = self.resolved() else { return Ok(()) };
        let id = (opened.dev(), opened.ino());
        let is_hidden = limits.hidden_ids.contains(&id)
            || opened.is_file() && opened.nlink() > 1 && limits.has_hidden_name(id);
        if is_hidden { Err(Problem::Hidden) } else { Ok(()) }
    }
}

impl Resolved {
    fn of(access: &Access) -> Self {
        let hidden_ids = access.hidden.iter().filter_map(|path| fs::metadata(path).ok());
        Self {
            readable: access.readable.as_deref().map(both_names),
            hidden: both_names(&access.hidden),
            shown: both_names(&access.shown),
            hidden_ids: hidden_ids.map(|metadata| (metadata.dev(), metadata.ino())).collect(),
        }
    }

    /// Looks through the hidden folders on the same device for another name of a file. Only files with more than one
    /// name get here, and those are rare.
    fn has_hidden_name(&self, id: (u64, u64)) -> bool {
        let mut queue: Vec<PathBuf> =
            self.hidden.iter().filter(|path| is_folder_on(path, id.0)).cloned().collect();
        let mut compared = 0;
        while let Some(folder) = queue.pop() {
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                compared += 1;
                if compared > MAX_COMPARED {
                    return true;
                }
                let Ok(metadata) = entry.metadata() else { continue };
                if (metadata.dev(), metadata.ino()) == id
                    && !self.shown.iter().any(|shown| entry.path().starts_with(shown))
                {
                    return true;
                }
                if metadata.is_dir() && metadata.dev() == id.0 {
                    queue.push(entry.path());
                }
            }
        }
        false
    }
}

fn is_folder_on(path: &Path, device: u64) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_dir() && found.dev() == device)
}

/// Each path as given and without links.
fn both_names(paths: &[PathBuf]) -> Vec<PathBuf> {
    let mut names = Vec::with_capacity(paths.len());
    for path in paths {
        if let Ok(real) = fs::canonicalize(path)
            && real != *path
        {
            names.push(real);
        }
        names.push(path.clone());
    }
    names
}
