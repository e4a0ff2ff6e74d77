//! Checks which of many paths exist, with few system calls: hundreds of paths are checked before every command, and
//! nearly none exists.
//!
//! Nothing is cached, because a path may be created at any time.

use std::cmp::Ordering;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

/// Up to this many paths in a folder are checked individually.
const FEW: usize = 6;
/// A folder with fewer interesting names is not listed.
const FEW_NAMES: usize = 3;
/// A folder with more entries is not listed to its end.
const MOST_ENTRIES: usize = 2_000;

/// For each path whether it exists, also as a dangling link.
pub(crate) fn existing(paths: &Arc<[PathBuf]>) -> Vec<bool> {
    if paths.len() <= FEW {
        return paths.iter().map(|path| exists(path)).collect();
    }
    let tree = PathTree::shared(paths);
    let mut found = vec![false; paths.len()];
    tree.odd.iter().for_each(|number| found[*number] = exists(&paths[*number]));
    tree.root.look(&mut found);
    found
}

/// The paths as a tree, built once.
#[derive(Debug)]
struct PathTree {
    root: Node,
    /// Paths that are relative or contain `..`.
    odd: Vec<usize>,
}

impl PathTree {
    /// The same list is checked repeatedly.
    fn shared(paths: &Arc<[PathBuf]>) -> Arc<Self> {
        type LastTree = (Weak<[PathBuf]>, Arc<PathTree>);
        static LAST: Mutex<Option<LastTree>> = Mutex::new(None);
        let mut last = LAST.lock();
        let is_same =
            |known: &Weak<[PathBuf]>| known.upgrade().is_some_and(|known| Arc::ptr_eq(&known, paths));
        if let Some((_, tree)) = last.as_ref().filter(|(known, _)| is_same(known)) {
            return tree.clone();
        }
        let tree = Arc::new(Self::of(paths));
        *last = Some((Arc::downgrade(paths), tree.clone()));
        tree
    }

    fn of(paths: &[PathBuf]) -> Self {
        let mut tree = Self { root: Node::new(PathBuf::from("/"), OsString::new()), odd: Vec::new() };
        for (number, path) in paths.iter().enumerate() {
            let is_plain = |part: Component<'_>| matches!(part, Component::RootDir | Component::Normal(_));
            if path.is_absolute() && path.components().all(is_plain) {
                let names: Vec<&OsStr> = path.iter().skip(1).collect();
                tree.root.add(&names, number);
            } else {
                tree.odd.push(number);
            }
        }
        tree.root.sort();
        tree
    }
}

/// A parent folder of paths, or one of the paths.
#[derive(Debug)]
struct Node {
    path: PathBuf,
    name: OsString,
    /// The indexes of the paths that end here.
    numbers: Vec<usize>,
    children: Vec<Node>,
    /// The number of paths in the subtree.
    count: usize,
}

impl Node {
    fn new(path: PathBuf, name: OsString) -> Self {
        Self { path, name, numbers: Vec::new(), children: Vec::new(), count: 0 }
    }

    fn add(&mut self, names: &[&OsStr], number: usize) {
        self.count += 1;
        let Some((first, rest)) = names.split_first() else {
            self.numbers.push(number);
            return;
        };
        if let Some(child) = self.children.iter_mut().find(|child| child.name == *first) {
            return child.add(rest, number);
        }
        let mut child = Self::new(self.path.join(first), (*first).to_owned());
        child.add(rest, number);
        self.children.push(child);
    }

    fn sort(&mut self) {
        self.children.sort_by(|one, other| compare(&one.name, &other.name));
        self.children.iter_mut().for_each(Self::sort);
    }

    fn look(&self, found: &mut [bool]) {
        if !self.numbers.is_empty() && exists(&self.path) {
            self.numbers.iter().for_each(|number| found[*number] = true);
        }
        let is_large = self.count > FEW && self.children.len() > FEW_NAMES;
        let there = if is_large { self.children_there() } else { vec![true; self.children.len()] };
        for (child, _) in self.children.iter().zip(there).filter(|(_, there)| *there) {
            child.look(found);
        }
    }

    /// Which of the children may exist.
    fn children_there(&self) -> Vec<bool> {
        let everyone = || vec![true; self.children.len()];
        let entries = match fs::read_dir(&self.path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return vec![false; self.children.len()],
            Err(_) => return everyone(),
        };
        // Only for ASCII is it certain which letters a file system treats as equal.
        let mut there: Vec<bool> = self.children.iter().map(|child| !child.name.is_ascii()).collect();
        for (count, entry) in entries.enumerate() {
            let Ok(entry) = entry else { return everyone() };
            if count >= MOST_ENTRIES {
                return everyone();
            }
            let name = entry.file_name();
            let first = self.children.partition_point(|child| compare(&child.name, &name) == Ordering::Less);
            let same = self.children[first..].iter().take_while(|child| compare(&child.name, &name).is_eq());
            let count = same.count();
            there[first..first + count].fill(true);
        }
        there
    }
}

fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// Some file systems ignore case.
fn compare(one: &OsStr, other: &OsStr) -> Ordering {
    let (one, other) = (one.as_bytes().iter(), other.as_bytes().iter());
    one.map(u8::to_ascii_lowercase).cmp(other.map(u8::to_ascii_lowercase))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn the_result_equals_individual_checks() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for path in ["home/.config/gh", "home/.Ssh", "home/one/two/three", "closed/in"] {
            fs::create_dir_all(root.join(path)).unwrap();
        }
        fs::write(root.join("home/.netrc"), "").unwrap();
        symlink("nowhere", root.join("home/dangling")).unwrap();
        symlink("home", root.join("alias")).unwrap();
        let mut paths: Vec<PathBuf> = Vec::new();
        for home in ["home", "alias", "closed", "none", "home/.netrc"] {
            paths.push(root.join(home));
            for name in [
                ".ssh",
                ".SSH",
                ".Ssh",
                ".netrc",
                ".config/gh",
                ".config/hub",
                "one/two/three",
                "one/two",
                "one/x/y",
                "dangling",
                "in",
                "../home/.netrc",
                "žluť",
                ".netrc/x",
                "a",
                "b",
                "c",
            ] {
                paths.push(root.join(home).join(name));
            }
        }
        paths.push("relative".into());
        let paths: Arc<[PathBuf]> = paths.into();
        let expected: Vec<bool> = paths.iter().map(|path| exists(path)).collect();
        assert!(expected.iter().filter(|there| **there).count() >= 20, "{expected:?}");
        assert_eq!(existing(&paths), expected);
        // Paths created later are found later.
        fs::create_dir(root.join("home/a")).unwrap();
        let made = paths.iter().position(|path| *path == root.join("alias/a")).unwrap();
        assert!(!expected[made] && existing(&paths)[made]);
        assert!(existing(&Vec::new().into()).is_empty());
    }

    #[test]
    fn a_folder_that_cannot_be_read_or_is_too_large_is_no_obstacle() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for number in 0..=MOST_ENTRIES {
            fs::write(root.join(format!("entry{number}")), "").unwrap();
        }
        let paths = (0..20).map(|number| root.join(format!("entry{}", number * 500)));
        let paths: Arc<[PathBuf]> = paths.collect();
        assert_eq!(existing(&paths).iter().filter(|there| **there).count(), 5);
    }
}
