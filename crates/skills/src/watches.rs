//! The paths that are watched for the skills of each working directory.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::time::Duration;

use workspace::{PathChanges, PathEvent, Subscription, Watcher};

use super::FILE;
use super::cache::Directory;

/// Limit of one working directory. A larger tree is watched partly, nearest to its root first.
const MAX_FOLDERS: usize = 1_024;

/// Files often change together. Changes within this time are read together.
const DEBOUNCE: Duration = Duration::from_millis(100);

/// The watched paths of all working directories.
#[derive(Debug)]
pub(super) struct SkillWatches {
    watcher: Watcher,
    /// None while there are no working directories.
    subscription: Option<Subscription>,
    directories: HashMap<PathBuf, SkillPaths>,
    /// The number of working directories that use each path.
    users: HashMap<PathBuf, usize>,
    is_complete: bool,
}

/// The paths that determine the skills of a working directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SkillPaths {
    /// The roots, which may be missing.
    roots: BTreeSet<PathBuf>,
    /// The folders that were searched.
    folders: BTreeSet<PathBuf>,
}

impl SkillPaths {
    pub(super) fn of(directory: &Directory) -> Self {
        Self {
            roots: directory.roots.iter().map(|root| root.path.clone()).collect(),
            folders: directory.scan_result().folders.iter().take(MAX_FOLDERS).cloned().collect(),
        }
    }

    fn all(&self) -> BTreeSet<PathBuf> {
        self.roots.union(&self.folders).cloned().collect()
    }

    /// Whether skills may have changed after this.
    fn includes(&self, path: &Path, event: PathEvent) -> bool {
        let contains = |path: &Path| self.roots.contains(path) || self.folders.contains(path);
        let is_content = matches!(event, PathEvent::Modified | PathEvent::Written);
        if !is_content && contains(path) {
            return true;
        }
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return false };
        if !contains(folder) || name.as_encoded_bytes().starts_with(b".") {
            return false;
        }
        let is_skill_file = name == FILE || name == "openai.yaml";
        // Folders and links to folders count at once; a file counts when it was written.
        let is_folder = || path.symlink_metadata().is_ok_and(|found| found.is_dir() || found.is_symlink());
        match event {
            PathEvent::Removed => true,
            PathEvent::Written => is_skill_file,
            PathEvent::MovedIn => is_skill_file || is_folder(),
            PathEvent::Created => is_folder(),
            PathEvent::Modified => false,
        }
    }
}

impl SkillWatches {
    pub(super) fn new(watcher: Watcher) -> Self {
        Self {
            watcher,
            subscription: None,
            directories: HashMap::new(),
            users: HashMap::new(),
            is_complete: true,
        }
    }

    /// Every path is watched; the kernel refused none.
    pub(super) fn is_complete(&self) -> bool {
        self.is_complete
    }

    pub(super) fn contains(&self, cwd: &Path) -> bool {
        self.directories.contains_key(cwd)
    }

    /// Watches exactly these paths for a working directory. True if they changed, so that earlier reads may be
    /// outdated. Blocking.
    pub(super) fn set(&mut self, cwd: &Path, paths: SkillPaths) -> bool {
        let all = paths.all();
        let before = self.directories.insert(cwd.to_owned(), paths).map(|before| before.all());
        let is_new = before.as_ref() != Some(&all);
        all.iter().for_each(|path| *self.users.entry(path.clone()).or_default() += 1);
        let subscription = self.subscription.get_or_insert_with(|| self.watcher.subscribe(DEBOUNCE));
        let coverage = subscription.add_paths(all);
        self.is_complete = coverage.is_complete;
        self.release(before.unwrap_or_default());
        is_new || coverage.is_new
    }

    /// Stops watching for all other working directories.
    pub(super) fn keep_only(&mut self, cwds: &BTreeSet<PathBuf>) {
        let gone: Vec<PathBuf> =
            self.directories.keys().filter(|cwd| !cwds.contains(*cwd)).cloned().collect();
        for cwd in gone {
            let paths = self.directories.remove(&cwd).unwrap_or_default();
            self.release(paths.all());
        }
        if self.directories.is_empty() {
            *self = Self::new(self.watcher.clone());
        }
    }

    fn release(&mut self, paths: BTreeSet<PathBuf>) {
        let mut unused = Vec::new();
        for path in paths {
            let Some(users) = self.users.get_mut(&path) else { continue };
            *users -= 1;
            if *users == 0 {
                self.users.remove(&path);
                unused.push(path);
            }
        }
        if let Some(subscription) = self.subscription.as_ref().filter(|_| !unused.is_empty()) {
            subscription.remove_paths(unused);
        }
    }

    /// Waits for changes, for ever if nothing is watched.
    pub(super) async fn next(&mut self) -> PathChanges {
        match &mut self.subscription {
            Some(subscription) => subscription.next().await,
            None => std::future::pending().await,
        }
    }

    /// The working directories whose skills may be different after these changes.
    pub(super) fn affected_by(&self, changes: &PathChanges) -> BTreeSet<PathBuf> {
        let is_affected = |paths: &SkillPaths| {
            changes.is_incomplete || changes.events.iter().any(|(path, event)| paths.includes(path, *event))
        };
        let affected = self.directories.iter().filter(|(_, paths)| is_affected(paths));
        affected.map(|(cwd, _)| cwd.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn paths(roots: &[&Path], folders: &[&Path]) -> SkillPaths {
        let set = |paths: &[&Path]| paths.iter().map(|path| path.to_path_buf()).collect();
        SkillPaths { roots: set(roots), folders: set(folders) }
    }

    #[test]
    fn only_events_that_may_change_skills_count() {
        let dir = tempfile::tempdir().expect("a directory");
        let (top, root) = (dir.path(), dir.path().join("missing"));
        std::os::unix::fs::symlink("/", top.join("link")).expect("linked");
        fs::write(top.join("file"), "").expect("written");
        fs::create_dir(top.join("folder")).expect("made");
        fs::create_dir(top.join(".git")).expect("made");
        let watched = paths(&[&root], &[top]);
        let cases = [
            ("SKILL.md", PathEvent::Written, true),
            ("openai.yaml", PathEvent::Written, true),
            ("run.py", PathEvent::Written, false),
            ("SKILL.md", PathEvent::Modified, false),
            ("SKILL.md", PathEvent::Created, false),
            ("file", PathEvent::Created, false),
            ("file", PathEvent::MovedIn, false),
            ("link", PathEvent::Created, true),
            ("link", PathEvent::MovedIn, true),
            ("folder", PathEvent::Created, true),
            (".git", PathEvent::Created, false),
            ("SKILL.md", PathEvent::MovedIn, true),
            ("anything", PathEvent::Removed, true),
            ("", PathEvent::Removed, true),
            ("missing", PathEvent::Created, true),
            ("missing/folder/SKILL.md", PathEvent::Written, false),
            ("folder/SKILL.md", PathEvent::Written, false),
        ];
        for (path, event, expected) in cases {
            let path = if path.is_empty() { top.to_owned() } else { top.join(path) };
            assert_eq!(watched.includes(&path, event), expected, "{event:?} {}", path.display());
        }
    }

    #[tokio::test]
    async fn a_path_is_watched_as_long_as_somebody_needs_it() {
        let dir = tempfile::tempdir().expect("a directory");
        let folder = fs::canonicalize(dir.path()).expect("there");
        let (one, other) = (Path::new("/one"), Path::new("/other"));
        let mut watches = SkillWatches::new(Watcher::default());
        assert!(watches.set(one, paths(&[], &[&folder])));
        assert!(watches.set(other, paths(&[], &[&folder])));
        assert!(!watches.set(other, paths(&[], &[&folder])), "nothing is new");
        fs::write(folder.join(FILE), "").expect("written");
        let changes = watches.next().await;
        assert_eq!(watches.affected_by(&changes), BTreeSet::from([one.to_owned(), other.to_owned()]));
        watches.keep_only(&BTreeSet::from([other.to_owned()]));
        fs::write(folder.join(FILE), "").expect("written");
        let changes = watches.next().await;
        assert_eq!(watches.affected_by(&changes), BTreeSet::from([other.to_owned()]));
        watches.keep_only(&BTreeSet::new());
        assert!(watches.subscription.is_none() && watches.users.is_empty());
    }

    #[test]
    fn other_paths_must_be_read_again() {
        let dir = tempfile::tempdir().expect("a directory");
        let (one, two) = (dir.path().join("one"), dir.path().join("two"));
        let mut watches = SkillWatches::new(Watcher::default());
        let cwd = Path::new("/cwd");
        assert!(watches.set(cwd, paths(&[&one, &two], &[])));
        assert!(!watches.set(cwd, paths(&[&one, &two], &[])));
        fs::create_dir(&one).expect("made");
        assert!(watches.set(cwd, paths(&[&one, &two], &[])), "it appeared after it was read");
        assert!(watches.set(cwd, paths(&[&one], &[])));
        assert!(watches.set(cwd, SkillPaths::default()));
    }

    #[test]
    fn changes_that_were_lost_affect_all() {
        let mut watches = SkillWatches::new(Watcher::default());
        watches.set(Path::new("/cwd"), SkillPaths::default());
        let lost = PathChanges { is_incomplete: true, ..PathChanges::default() };
        assert_eq!(watches.affected_by(&lost), BTreeSet::from([PathBuf::from("/cwd")]));
    }
}
