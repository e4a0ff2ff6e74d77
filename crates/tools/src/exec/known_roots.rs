//! The writable roots of a thread: their targets when first seen, and the protected paths inside them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use sandbox::{PROTECTED_NAMES, ScanLimit, protected_below};
use tokio::task::JoinHandle;

/// Limit of stored roots: those of the policy, and those granted to single commands.
const MOST_ROOTS: usize = 32;

/// Searching takes at most this fraction of the time. Only users create what is searched for, not commands.
const REST: u32 = 50;

type ProtectedPaths = BTreeMap<PathBuf, Arc<[PathBuf]>>;

/// Protected paths found in temporary folders. Shared by all threads, because the search is slow there.
static TEMPORARY: Mutex<ProtectedPaths> = Mutex::new(BTreeMap::new());

/// Owned by the thread, shared by its commands.
#[derive(Debug, Default)]
pub(crate) struct KnownRoots {
    inner: Mutex<RootCache>,
}

#[derive(Debug, Default)]
struct RootCache {
    /// The resolved path of each requested root.
    resolved: BTreeMap<PathBuf, PathBuf>,
    /// The paths found by the last search of each root.
    protected: ProtectedPaths,
    /// The search in the background.
    search: Option<JoinHandle<()>>,
    /// When the next search may start.
    rest_until: Option<Instant>,
}

impl KnownRoots {
    /// Each root with its target when first seen. A later change of the target is not the thread's doing.
    pub(crate) fn resolved(&self, roots: &[PathBuf]) -> Vec<(PathBuf, PathBuf)> {
        let mut inner = self.inner.lock();
        let resolve = |root: &PathBuf| {
            let end = inner.resolved.entry(root.clone()).or_insert_with(|| resolve(root));
            (root.clone(), end.clone())
        };
        roots.iter().map(resolve).collect()
    }

    /// The known protected paths inside these roots.
    pub(crate) fn protected(&self, roots: &[PathBuf]) -> Vec<PathBuf> {
        let inner = self.inner.lock();
        let mut found: Vec<PathBuf> = roots
            .iter()
            .filter_map(|root| inner.protected.get(root))
            .flat_map(|found| found.to_vec())
            .collect();
        found.sort();
        found.dedup();
        found
    }

    /// Returns when each of these roots was searched at least once.
    pub(crate) async fn search_first(self: &Arc<Self>, roots: &[PathBuf]) {
        let unknown = self.unknown(roots);
        if !unknown.is_empty() {
            let known = self.clone();
            // A failed search has found nothing.
            let _ = tokio::task::spawn_blocking(move || known.search(&unknown)).await;
        }
    }

    /// Roots that neither this thread nor another has searched.
    fn unknown(&self, roots: &[PathBuf]) -> Vec<PathBuf> {
        let mut inner = self.inner.lock();
        let mut unknown = Vec::new();
        for root in roots.iter().filter(|root| !inner.protected.contains_key(*root)).collect::<Vec<_>>() {
            match TEMPORARY.lock().get(root) {
                Some(found) => _ = inner.protected.insert(root.clone(), found.clone()),
                None => unknown.push(root.clone()),
            }
        }
        unknown
    }

    /// Searches again in the background, after a command that could change something.
    pub(crate) fn search_again(self: &Arc<Self>, roots: &[PathBuf]) {
        if roots.is_empty() || tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        let mut inner = self.inner.lock();
        // A running search may have started too early to see the command's changes. The next command searches again.
        if inner.search.as_ref().is_some_and(|search| !search.is_finished())
            || inner.rest_until.is_some_and(|until| Instant::now() < until)
        {
            return;
        }
        let (known, roots) = (self.clone(), roots.to_vec());
        inner.search = Some(tokio::task::spawn_blocking(move || known.search(&roots)));
    }

    /// Returns a guard that starts a search when it is dropped, after the command.
    pub(crate) fn search_after(self: &Arc<Self>, roots: &[PathBuf]) -> Arc<SearchAfter> {
        Arc::new(SearchAfter { known: self.clone(), roots: roots.to_vec() })
    }

    fn search(&self, roots: &[PathBuf]) {
        let begun = Instant::now();
        self.search_now(roots);
        self.inner.lock().rest_until = Some(Instant::now() + begun.elapsed() * REST);
    }

    fn search_now(&self, roots: &[PathBuf]) {
        let all = ScanLimit::default();
        let share = u32::try_from(roots.len()).unwrap_or(u32::MAX).max(1);
        let limit =
            ScanLimit { folders: all.folders / roots.len().max(1), time: all.time / share, found: all.found };
        for root in roots {
            let found = protected_below(std::slice::from_ref(root), &PROTECTED_NAMES, limit);
            if !found.is_complete {
                tracing::debug!(root = %root.display(), "not everything beneath a writable root was searched");
            }
            let found: Arc<[PathBuf]> = found.paths.into();
            if root == Path::new("/tmp") || *root == std::env::temp_dir() {
                TEMPORARY.lock().insert(root.clone(), found.clone());
            }
            let mut inner = self.inner.lock();
            if inner.protected.len() >= MOST_ROOTS && !inner.protected.contains_key(root) {
                inner.protected.clear();
            }
            inner.protected.insert(root.clone(), found);
        }
    }
}

/// A command that can change these roots.
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

/// The resolved path. For one that does not exist yet, the existing part is resolved.
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
    fn roots_keep_their_first_target() {
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
    async fn nested_repositories_are_found_once_and_again_after_a_command() {
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
        assert!(known.inner.lock().search.is_none(), "searched again at once");
        known.inner.lock().rest_until = None;
        drop(known.search_after(&roots));
        let search = known.inner.lock().search.take();
        search.unwrap().await.unwrap();
        assert_eq!(known.protected(&roots), [at.join("a/.git"), at.join("b/.codex")]);
    }
}
