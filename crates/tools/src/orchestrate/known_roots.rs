//! What is known about the writable roots of a thread: where they led when they were first seen, and what beneath them
//! is protected.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sandbox::{PROTECTED_NAMES, ScanLimit, protected_below};
use tokio::task::JoinHandle;

/// Sets of roots that are remembered. A thread has one, and a few more with permissions for single commands.
const MOST_SETS: usize = 8;

/// Kept by the thread, shared by its commands.
#[derive(Debug, Default)]
pub(crate) struct KnownRoots {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// Without links, for each root as it was asked for.
    resolved: BTreeMap<PathBuf, PathBuf>,
    /// What was found last beneath a set of roots.
    protected: BTreeMap<Vec<PathBuf>, Arc<[PathBuf]>>,
    /// The search in the background.
    search: Option<JoinHandle<()>>,
}

impl KnownRoots {
    /// Where each root led when it was first seen. What is turned elsewhere later was turned by somebody else.
    pub(crate) fn resolved(&self, roots: &[PathBuf]) -> Vec<(PathBuf, PathBuf)> {
        let mut inner = self.lock();
        let resolve = |root: &PathBuf| {
            let end = inner.resolved.entry(root.clone()).or_insert_with(|| resolve(root));
            (root.clone(), end.clone())
        };
        roots.iter().map(resolve).collect()
    }

    /// What is protected beneath these roots, as far as it is known.
    pub(crate) fn protected(&self, roots: &[PathBuf]) -> Vec<PathBuf> {
        self.lock().protected.get(roots).map_or_else(Vec::new, |found| found.to_vec())
    }

    /// Returns when these roots have been searched at least once.
    pub(crate) async fn search_first(self: &Arc<Self>, roots: &[PathBuf]) {
        if !roots.is_empty() && !self.lock().protected.contains_key(roots) {
            let (known, roots) = (self.clone(), roots.to_vec());
            // A search that fails has found nothing, which is all there is to say.
            let _ = tokio::task::spawn_blocking(move || known.search(roots)).await;
        }
    }

    /// Searches again in the background, after a command that could change what is there.
    pub(crate) fn search_again(self: &Arc<Self>, roots: &[PathBuf]) {
        if roots.is_empty() || tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        let mut inner = self.lock();
        // One that still runs has begun before the end of the command that asks now, so that it may come too early.
        // The next command asks again.
        if inner.search.as_ref().is_some_and(|search| !search.is_finished()) {
            return;
        }
        let (known, roots) = (self.clone(), roots.to_vec());
        inner.search = Some(tokio::task::spawn_blocking(move || known.search(roots)));
    }

    /// Has them searched again when what is returned is dropped: after the command.
    pub(crate) fn search_after(self: &Arc<Self>, roots: &[PathBuf]) -> Arc<SearchAfter> {
        Arc::new(SearchAfter { known: self.clone(), roots: roots.to_vec() })
    }

    fn search(&self, roots: Vec<PathBuf>) {
        let found = protected_below(&roots, &PROTECTED_NAMES, ScanLimit::default());
        if !found.is_complete {
            tracing::debug!(
                found = found.paths.len(),
                "not everything beneath the writable roots was looked at"
            );
        }
        let mut inner = self.lock();
        if inner.protected.len() >= MOST_SETS && !inner.protected.contains_key(&roots) {
            inner.protected.clear();
        }
        inner.protected.insert(roots, found.paths.into());
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A command that can change what is beneath these roots.
#[derive(Debug)]
pub(crate) struct SearchAfter {
    known: Arc<KnownRoots>,
    roots: Vec<PathBuf>,
}

impl Drop for SearchAfter {
    fn drop(&mut self) {
        self.known.search_again(&self.roots);
    }
}

/// The path without links. Of one that does not exist yet, as much as there is, and the rest as written.
fn resolve(path: &Path) -> PathBuf {
    let mut rest: Vec<OsString> = Vec::new();
    for above in path.ancestors() {
        if let Ok(end) = above.canonicalize() {
            return rest.iter().rev().fold(end, |end, name| end.join(name));
        }
        rest.extend(above.file_name().map(ToOwned::to_owned));
    }
    path.to_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn roots_stay_where_they_led_first() {
        let at = tempfile::tempdir().unwrap();
        let at = at.path().canonicalize().unwrap();
        fs::create_dir(at.join("real")).unwrap();
        symlink(at.join("real"), at.join("alias")).unwrap();
        let known = KnownRoots::default();
        let roots = [at.join("alias"), at.join("later/on")];
        let expected = vec![(roots[0].clone(), at.join("real")), (roots[1].clone(), at.join("later/on"))];
        assert_eq!(known.resolved(&roots), expected);
        fs::remove_file(at.join("alias")).unwrap();
        symlink("/etc", at.join("alias")).unwrap();
        symlink("/etc", at.join("later")).unwrap();
        assert_eq!(known.resolved(&roots), expected);
    }

    #[tokio::test]
    async fn what_is_nested_is_found_once_and_again_after_a_command() {
        let at = tempfile::tempdir().unwrap();
        let at = at.path().canonicalize().unwrap();
        fs::create_dir_all(at.join("a/.git")).unwrap();
        let (known, roots) = (Arc::new(KnownRoots::default()), [at.clone()]);
        assert_eq!(known.protected(&roots), Vec::<PathBuf>::new());
        known.search_first(&roots).await;
        assert_eq!(known.protected(&roots), [at.join("a/.git")]);
        fs::create_dir_all(at.join("b/.codex")).unwrap();
        known.search_first(&roots).await;
        assert_eq!(known.protected(&roots), [at.join("a/.git")]);
        drop(known.search_after(&roots));
        let search = known.lock().search.take();
        search.unwrap().await.unwrap();
        let mut found = known.protected(&roots);
        found.sort();
        assert_eq!(found, [at.join("a/.git"), at.join("b/.codex")]);
    }
}
