//! One diff of everything the patches of a turn changed, in the form `git diff` has, without git.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::applied::{Applied, FileState};
use crate::git_section::{Side, blob, section};
use crate::unified::deadline;

/// Collects what patches do from the beginning of a turn on.
#[derive(Debug, Default)]
pub struct TurnDiff {
    display_root: Option<PathBuf>,
    files: BTreeMap<PathBuf, Tracked>,
}

/// A file that was touched: as it was when the turn began, and as it is.
#[derive(Debug)]
struct Tracked {
    began: Option<FileState>,
    /// Hashed once, however often the file changes.
    began_blob: String,
    now: Option<FileState>,
    /// The path the content had when the turn began, if patches moved it here.
    origin: Option<PathBuf>,
    section: String,
}

impl Tracked {
    fn new(began: Option<FileState>) -> Self {
        let began_blob = blob(began.as_ref());
        Self { began, began_blob, now: None, origin: None, section: String::new() }
    }
}

impl TurnDiff {
    /// Paths beneath `display_root`, which is usually the top of the repository, are shown relative to it.
    #[must_use]
    pub fn new(display_root: Option<PathBuf>) -> Self {
        Self { display_root, files: BTreeMap::new() }
    }

    /// Takes in one applied patch. Only the sections of the files it touched are made again.
    pub fn note(&mut self, applied: &Applied) {
        let mut touched = BTreeSet::new();
        let origins: Vec<Option<PathBuf>> = applied.files.iter().map(|file| self.origin_of(file)).collect();
        for (file, origin) in applied.files.iter().zip(origins) {
            let tracked =
                self.files.entry(file.path.clone()).or_insert_with(|| Tracked::new(file.before.clone()));
            touched.insert(file.path.clone());
            touched.extend(tracked.origin.take());
            touched.extend(origin.clone());
            tracked.now.clone_from(&file.after);
            tracked.origin = origin;
        }
        let deadline = deadline();
        for path in &touched {
            let section = self.section(path, deadline);
            if let Some(tracked) = self.files.get_mut(path) {
                tracked.section = section;
            }
        }
    }

    /// The diff of the turn so far; none when nothing differs from how the turn began.
    #[must_use]
    pub fn unified(&self) -> Option<String> {
        let sections = self.files.values().map(|tracked| tracked.section.as_str());
        let diff: String = sections.collect();
        (!diff.is_empty()).then_some(diff)
    }

    fn origin_of(&self, file: &crate::AppliedFile) -> Option<PathBuf> {
        let before = match &file.moved_from {
            Some(source) => source,
            None if file.before.is_some() && file.after.is_some() => {
                return self.files.get(&file.path)?.origin.clone();
            }
            None => return None,
        };
        let tracked = self.files.get(before);
        let origin = tracked.and_then(|tracked| tracked.origin.clone()).unwrap_or_else(|| before.clone());
        (origin != file.path).then_some(origin)
    }

    fn section(&self, path: &Path, deadline: Instant) -> String {
        let Some(tracked) = self.files.get(path) else { return String::new() };
        if tracked.now.is_none() && self.moved_to(path).is_some() {
            return String::new();
        }
        let source = tracked.origin.as_deref().filter(|source| self.moved_to(source) == Some(path));
        let began = source.and_then(|source| self.files.get(source)).unwrap_or(tracked);
        let (old, new) = (self.name(source.unwrap_or(path)), self.name(path));
        let old = Side { name: &old, state: began.began.as_ref(), blob: &began.began_blob };
        let new_blob = blob(tracked.now.as_ref());
        section(&old, &Side { name: &new, state: tracked.now.as_ref(), blob: &new_blob }, deadline)
    }

    /// Where a file that is gone went, if a place that was free when the turn began.
    fn moved_to(&self, source: &Path) -> Option<&Path> {
        let gone =
            self.files.get(source).is_some_and(|tracked| tracked.now.is_none() && tracked.began.is_some());
        if !gone {
            return None;
        }
        self.files
            .iter()
            .find(|(_, to)| to.origin.as_deref() == Some(source) && to.began.is_none() && to.now.is_some())
            .map(|(path, _)| path.as_path())
    }

    fn name(&self, path: &Path) -> String {
        let root = self.display_root.as_deref();
        let short = root.and_then(|root| path.strip_prefix(root).ok()).unwrap_or(path);
        short.to_string_lossy().into_owned()
    }
}
