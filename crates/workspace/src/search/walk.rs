//! Walking folders by a few threads.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::candidates::{Candidates, PathCandidate};
use super::ignore_rules::FolderRules;
use super::work_queue::{WorkQueue, Worker};
use super::{MatchKind, SearchError};
use crate::{Entry, EntryKind, Reader};

const MAX_THREADS: usize = 4;
/// Limit of walks in this process, including hanging ones.
const MAX_WALKS: usize = 32;
/// Limit of a folder's entries.
const MAX_ENTRIES: usize = 200_000;
/// Limit of nested folders.
const MAX_DEPTH: usize = 128;

static WALKS: AtomicUsize = AtomicUsize::new(0);

struct WalkPermit;

impl WalkPermit {
    fn take() -> Result<Self, SearchError> {
        let taken = WALKS.fetch_update(Ordering::AcqRel, Ordering::Acquire, |count| {
            (count < MAX_WALKS).then_some(count + 1)
        });
        taken.map(|_| Self).map_err(|_| SearchError::TooManyWalks(MAX_WALKS))
    }
}

impl Drop for WalkPermit {
    fn drop(&mut self) {
        WALKS.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Starts walking and returns at once. Paths are added to the list until it is complete.
pub(super) fn start(roots: &[String]) -> Result<Arc<Candidates>, SearchError> {
    let permit = WalkPermit::take()?;
    let candidates = Arc::new(Candidates::default());
    let (list, roots) = (candidates.clone(), roots.to_vec());
    let walk = move || {
        let _permit = permit;
        Walk { list: &list }.run(&roots);
        list.complete();
    };
    if thread::Builder::new().name("search".to_owned()).spawn(walk).is_err() {
        // The machine has too many threads.
        return Err(SearchError::TooManyWalks(MAX_WALKS));
    }
    Ok(candidates)
}

struct Walk<'a> {
    list: &'a Candidates,
}

/// A folder to be read.
struct WaitingFolder {
    root: Arc<WalkRoot>,
    /// Relative to its root.
    path: PathBuf,
    depth: usize,
    rules: Arc<FolderRules>,
}

struct WalkRoot {
    number: u32,
    reader: Reader,
    path: PathBuf,
    /// Roots inside this one, which are walked separately.
    inner: Vec<PathBuf>,
}

impl Walk<'_> {
    fn run(&self, roots: &[String]) {
        let real: Vec<Option<PathBuf>> = roots.iter().map(|root| std::fs::canonicalize(root).ok()).collect();
        let mut first = Vec::new();
        for (at, path) in real.iter().enumerate() {
            let Some(path) = path else { continue };
            if real[..at].iter().flatten().any(|earlier| earlier == path) {
                continue;
            }
            let Ok(reader) = Reader::default().beneath(path) else { continue };
            let inner = real.iter().flatten().filter(|other| *other != path && other.starts_with(path));
            let root = WalkRoot {
                number: u32::try_from(at).unwrap_or(u32::MAX),
                reader,
                path: path.clone(),
                inner: inner.cloned().collect(),
            };
            let rules = FolderRules::above(path, &Reader::default(), true);
            first.push(WaitingFolder { root: Arc::new(root), path: PathBuf::new(), depth: 0, rules });
        }
        WorkQueue::run(first, MAX_THREADS, self);
    }

    /// Adds a folder's entries, and returns its subfolders.
    fn look_into(&self, folder: &WaitingFolder) -> Vec<WaitingFolder> {
        let WaitingFolder { root, path, depth, rules } = folder;
        let at = root.path.join(path);
        // An unreadable folder counts as empty.
        let Ok(listing) = root.reader.list(&at, MAX_ENTRIES) else { return Vec::new() };
        let rules = rules.below(&at, &root.reader, &listing.entries);
        let mut found = Vec::with_capacity(listing.entries.len());
        let mut below = Vec::new();
        for entry in &listing.entries {
            let kind = kind_of(entry, &at);
            let absolute = at.join(&entry.name);
            if root.inner.contains(&absolute)
                || rules.matched(&absolute, kind == MatchKind::Folder).is_ignore()
            {
                continue;
            }
            let relative = path.join(&entry.name);
            found.push(PathCandidate { path: text(&relative), root: root.number, kind });
            if entry.kind == EntryKind::Folder && *depth < MAX_DEPTH {
                let (root, rules) = (root.clone(), rules.clone());
                below.push(WaitingFolder { root, path: relative, depth: depth + 1, rules });
            }
        }
        self.list.add(found);
        below
    }
}

impl Worker<WaitingFolder> for Walk<'_> {
    fn is_over(&self) -> bool {
        self.list.is_stopped() || self.list.is_full()
    }

    fn work(&self, folder: WaitingFolder) -> Vec<WaitingFolder> {
        self.look_into(&folder)
    }
}

/// A link counts as its target, but is not followed further.
fn kind_of(entry: &Entry, folder: &Path) -> MatchKind {
    let is_folder = match entry.kind {
        EntryKind::Folder => true,
        EntryKind::Link => folder.join(&entry.name).is_dir(),
        EntryKind::File | EntryKind::Other => false,
    };
    if is_folder { MatchKind::Folder } else { MatchKind::File }
}

fn text(path: &Path) -> Box<str> {
    path.to_string_lossy().into()
}
