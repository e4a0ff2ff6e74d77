//! Which folders are watched, for the sake of which working directories.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use rustix::fs::inotify::ReadFlags;

use super::FILE;
use super::cache::Directory;
use super::inotify::{Event, Inotify};
use super::roots::Root;

/// Of one working directory. A tree that is larger is watched in part, nearest to its root first.
const MAX_FOLDERS: usize = 1_024;

/// Of the whole process: others want watches too.
const MAX_WATCHES: usize = 8_192;

/// The folders that are watched.
#[derive(Debug, Default)]
pub(super) struct Watches {
    inotify: Option<Inotify>,
    folders: HashMap<PathBuf, Folder>,
    /// Two paths to one folder share a watch.
    by_watch: HashMap<i32, BTreeSet<PathBuf>>,
    /// Working directories with all they need.
    covered: HashSet<PathBuf>,
    /// Some folder could not be watched, which was told.
    is_partial: bool,
}

#[derive(Debug)]
struct Folder {
    watch: i32,
    /// By working directory.
    wanted: HashMap<PathBuf, Interest>,
}

/// What in a folder matters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Interest {
    /// It may hold skills.
    skills: bool,
    /// Entries that would lead to a root, if they were there.
    names: BTreeSet<OsString>,
}

/// What is to be watched for a working directory.
pub(super) fn targets(directory: &Directory) -> HashMap<PathBuf, Interest> {
    let mut targets: HashMap<PathBuf, Interest> = HashMap::new();
    for root in directory.roots.iter().filter(|root| !root.path.is_dir()) {
        if let Some((folder, name)) = nearest(root) {
            targets.entry(folder.to_owned()).or_default().names.insert(name.to_owned());
        }
    }
    for folder in directory.found().folders.iter().take(MAX_FOLDERS) {
        targets.entry(folder.clone()).or_default().skills = true;
    }
    targets
}

/// The nearest folder above a root that is there, and the entry missing in it.
fn nearest(root: &Root) -> Option<(&Path, &OsStr)> {
    let folder = root.path.ancestors().skip(1).find(|folder| folder.is_dir())?;
    let name = root.path.strip_prefix(folder).ok()?.components().next()?;
    Some((folder, name.as_os_str()))
}

impl Watches {
    pub(super) fn inotify(&self) -> Option<&Inotify> {
        self.inotify.as_ref()
    }

    pub(super) fn is_partial(&self) -> bool {
        self.is_partial
    }

    pub(super) fn is_covered(&self, cwd: &Path) -> bool {
        self.covered.contains(cwd)
    }

    /// Watches this and nothing else for a working directory. True when other folders or entries are watched
    /// than before, so that what was read of them may be old already.
    pub(super) fn cover(&mut self, cwd: &Path, targets: HashMap<PathBuf, Interest>) -> bool {
        self.covered.insert(cwd.to_owned());
        let dropped: Vec<PathBuf> = self
            .folders
            .iter()
            .filter(|(path, folder)| folder.wanted.contains_key(cwd) && !targets.contains_key(*path))
            .map(|(path, _)| path.clone())
            .collect();
        dropped.iter().for_each(|path| self.drop_interest(path, cwd));
        // A root that was made after the look is not waited for any more, and not known yet either.
        let mut is_new = !dropped.is_empty();
        for (path, interest) in targets {
            if let Some(folder) = self.folders.get_mut(&path) {
                let before = folder.wanted.insert(cwd.to_owned(), interest.clone());
                is_new |= before.is_some_and(|before| before != interest);
            } else if let Some(watch) = self.add(&path) {
                is_new = true;
                self.by_watch.entry(watch).or_default().insert(path.clone());
                let wanted = HashMap::from([(cwd.to_owned(), interest)]);
                self.folders.insert(path, Folder { watch, wanted });
            }
        }
        is_new
    }

    /// Lets go of the working directories that nobody is in.
    pub(super) fn keep_only(&mut self, cwds: &BTreeSet<PathBuf>) {
        let gone: Vec<PathBuf> = self.covered.iter().filter(|cwd| !cwds.contains(*cwd)).cloned().collect();
        for cwd in gone {
            self.cover(&cwd, HashMap::new());
            self.covered.remove(&cwd);
        }
        if self.covered.is_empty() {
            *self = Self::default();
        }
    }

    fn add(&mut self, path: &Path) -> Option<i32> {
        if self.inotify.is_none() {
            self.inotify = Inotify::new().map_err(|error| self.tell(path, &error)).ok();
        }
        if self.folders.len() >= MAX_WATCHES {
            self.tell(path, &std::io::Error::other("too many folders are watched"));
            return None;
        }
        match self.inotify.as_ref()?.add(path) {
            Ok(watch) => Some(watch),
            Err(error) => {
                self.tell(path, &error);
                None
            }
        }
    }

    /// Once is enough.
    fn tell(&mut self, path: &Path, error: &std::io::Error) {
        // A folder that is gone again is nothing to watch.
        if error.kind() != std::io::ErrorKind::NotFound && !std::mem::replace(&mut self.is_partial, true) {
            let path = path.display();
            tracing::warn!(%path, %error, "changes of some skills are not noticed; skills/list with forceReload finds them");
        }
    }

    fn drop_interest(&mut self, path: &Path, cwd: &Path) {
        let Some(folder) = self.folders.get_mut(path) else { return };
        folder.wanted.remove(cwd);
        if folder.wanted.is_empty() {
            let watch = folder.watch;
            self.folders.remove(path);
            self.release(watch, path);
        }
    }

    fn release(&mut self, watch: i32, path: &Path) {
        let Some(paths) = self.by_watch.get_mut(&watch) else { return };
        paths.remove(path);
        if paths.is_empty() {
            self.by_watch.remove(&watch);
            if let Some(inotify) = &self.inotify {
                inotify.remove(watch);
            }
        }
    }

    /// The working directories whose skills may have changed by it.
    pub(super) fn concerned(&mut self, event: &Event) -> Vec<PathBuf> {
        if event.what.contains(ReadFlags::QUEUE_OVERFLOW) {
            return self.covered.iter().cloned().collect();
        }
        let paths = self.by_watch.get(&event.watch).cloned().unwrap_or_default();
        let mut concerned = Vec::new();
        for path in &paths {
            let Some(folder) = self.folders.get(path) else { continue };
            let wanted = folder.wanted.iter().filter(|(_, interest)| interest.includes(path, event));
            concerned.extend(wanted.map(|(cwd, _)| cwd.clone()));
        }
        if event.what.contains(ReadFlags::IGNORED) {
            // The kernel let go of it: the folder is no more.
            self.by_watch.remove(&event.watch);
            paths.iter().for_each(|path| drop(self.folders.remove(path)));
        }
        concerned
    }
}

impl Interest {
    fn includes(&self, folder: &Path, event: &Event) -> bool {
        let Some(name) = &event.name else {
            return event.what.intersects(ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF | ReadFlags::UNMOUNT);
        };
        let comes = event.what.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO);
        let goes = event.what.intersects(ReadFlags::DELETE | ReadFlags::MOVED_FROM);
        // A protected name that the sandbox holds the place of is not there.
        if self.names.contains(name) && comes && config::is_marker(&folder.join(name)) {
            return true;
        }
        if !self.skills || name.as_encoded_bytes().starts_with(b".") {
            return false;
        }
        if event.what.contains(ReadFlags::ISDIR) || goes {
            return true;
        }
        // A file counts when it is written, not while it is; a link is whole from the start.
        let is_made = event.what.contains(ReadFlags::CREATE);
        let is_ours = name == FILE || name == "openai.yaml";
        if is_made { folder.join(name).is_symlink() } else { is_ours }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(what: ReadFlags, name: &str) -> Event {
        Event { watch: 1, what, name: Some(name.into()) }
    }

    #[test]
    fn only_what_may_change_skills_counts() {
        let dir = tempfile::tempdir().expect("a directory");
        std::os::unix::fs::symlink("/", dir.path().join("link")).expect("linked");
        std::fs::write(dir.path().join("file"), "").expect("written");
        std::fs::create_dir(dir.path().join(".agents")).expect("made");
        let skills = Interest { skills: true, names: BTreeSet::new() };
        let names = Interest { skills: false, names: BTreeSet::from([".agents".into(), "gone".into()]) };
        let folder = ReadFlags::ISDIR;
        let cases = [
            (&skills, event(ReadFlags::CLOSE_WRITE, "SKILL.md"), true),
            (&skills, event(ReadFlags::CLOSE_WRITE, "openai.yaml"), true),
            (&skills, event(ReadFlags::CLOSE_WRITE, "run.py"), false),
            (&skills, event(ReadFlags::CREATE, "SKILL.md"), false),
            (&skills, event(ReadFlags::CREATE, "file"), false),
            (&skills, event(ReadFlags::CREATE, "link"), true),
            (&skills, event(ReadFlags::CREATE | folder, "new"), true),
            (&skills, event(ReadFlags::CREATE | folder, ".git"), false),
            (&skills, event(ReadFlags::MOVED_TO, "SKILL.md"), true),
            (&skills, event(ReadFlags::DELETE, "anything"), true),
            (&skills, Event { watch: 1, what: ReadFlags::DELETE_SELF, name: None }, true),
            (&skills, Event { watch: 1, what: ReadFlags::IGNORED, name: None }, false),
            (&names, event(ReadFlags::CREATE | folder, ".agents"), true),
            (&names, event(ReadFlags::CREATE | folder, "other"), false),
            (&names, event(ReadFlags::CREATE | folder, "gone"), false),
            (&names, event(ReadFlags::DELETE | folder, ".agents"), false),
            (&names, event(ReadFlags::CLOSE_WRITE, "SKILL.md"), false),
        ];
        for (interest, event, expected) in cases {
            assert_eq!(interest.includes(dir.path(), &event), expected, "{event:?}");
        }
    }

    #[test]
    fn a_folder_is_watched_as_long_as_somebody_wants_it() {
        let dir = tempfile::tempdir().expect("a directory");
        let wanted =
            || HashMap::from([(dir.path().to_owned(), Interest { skills: true, names: BTreeSet::new() })]);
        let (one, other) = (Path::new("/one"), Path::new("/other"));
        let mut watches = Watches::default();
        assert!(watches.cover(one, wanted()));
        assert!(!watches.cover(other, wanted()), "it is watched already");
        let watch = watches.folders[dir.path()].watch;
        let event = Event { watch, what: ReadFlags::CLOSE_WRITE, name: Some("SKILL.md".into()) };
        let mut concerned = watches.concerned(&event);
        concerned.sort();
        assert_eq!(concerned, [one, other]);
        watches.keep_only(&BTreeSet::from([other.to_owned()]));
        assert_eq!(watches.concerned(&event), [other]);
        assert!(watches.inotify().is_some());
        watches.keep_only(&BTreeSet::new());
        assert!(watches.inotify().is_none() && watches.folders.is_empty());
    }

    #[test]
    fn a_root_that_is_not_waited_for_any_more_is_looked_at_again() {
        let dir = tempfile::tempdir().expect("a directory");
        let wanted = |names: &[&str]| {
            let names = names.iter().map(OsString::from).collect();
            HashMap::from([(dir.path().to_owned(), Interest { skills: false, names })])
        };
        let (one, mut watches) = (Path::new("/one"), Watches::default());
        assert!(watches.cover(one, wanted(&[".agents", ".codex"])));
        assert!(!watches.cover(one, wanted(&[".agents", ".codex"])));
        assert!(watches.cover(one, wanted(&[".agents"])));
        assert!(watches.cover(one, HashMap::new()));
    }

    #[test]
    fn what_is_missing_is_waited_for_in_the_nearest_folder() {
        let dir = tempfile::tempdir().expect("a directory");
        let root = |path: &str| Root::new(dir.path().join(path), protocol::SkillScope::Repo);
        let (folder, name) = (dir.path(), OsStr::new(".agents"));
        assert_eq!(nearest(&root(".agents/skills")), Some((folder, name)));
        std::fs::create_dir(dir.path().join(".agents")).expect("made");
        assert_eq!(
            nearest(&root(".agents/skills")),
            Some((folder.join(name).as_path(), OsStr::new("skills")))
        );
    }
}
