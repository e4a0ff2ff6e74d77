//! The places that are covered so that no process inside can read or write them, and the parts of them that stay
//! visible.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};

use super::aliases::Mounts;
use super::tree::open_old;
use crate::Confinement;

/// Files that only root may read, hidden in case the command has root's file rights or /etc as a root.
const ONLY_ROOT: &[&str] = &["/etc/gshadow", "/etc/gshadow-", "/etc/shadow", "/etc/shadow-"];
const HOST_KEYS: &str = "/etc/ssh";

/// The kernel's limit of links in one path.
const MOST_LINKS: usize = 40;

/// The mount over a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cover {
    /// Nothing: an empty folder or file.
    Blank,
    /// A folder that holds only what is shown of it.
    Partly,
    /// The place itself, read-only, inside a partly covered folder.
    Shown,
}

/// All paths here are resolved.
#[derive(Debug, Default)]
pub(crate) struct HiddenPaths {
    /// Parents come before their contents.
    covers: BTreeMap<PathBuf, Cover>,
    /// Symbolic links on the way to hidden places. If they were changed, they would lead to a visible place.
    pub(crate) links: Vec<PathBuf>,
    /// Names to reserve, because nothing is there yet.
    pub(crate) missing: Vec<PathBuf>,
}

impl HiddenPaths {
    pub(crate) fn find(confinement: &Confinement) -> Self {
        let mut hidden = Self::default();
        for path in &confinement.hidden {
            let way = FollowedPath::follow(path);
            hidden.links.extend(way.links);
            match way.missing.first() {
                None => hidden.cover(way.end),
                Some(name) if confinement.reserved.contains(path) && is_folder_name(&way.missing) => {
                    hidden.missing.push(way.end.join(name));
                }
                Some(_) => {}
            }
        }
        hidden.cover_other_ways();
        for path in &confinement.shown {
            let way = FollowedPath::follow(path);
            if way.missing.is_empty() && hidden.above(&way.end).is_some_and(|above| above != way.end) {
                hidden.covers.insert(way.end, Cover::Shown);
            }
        }
        hidden.find_partly_covered();
        hidden
    }

    /// Covers the same places where they are mounted a second time.
    fn cover_other_ways(&mut self) {
        if self.covers.is_empty() {
            return;
        }
        let mounts = Mounts::read();
        let others: Vec<PathBuf> = self.covers.keys().flat_map(|path| mounts.others(path)).collect();
        // Something else may be mounted there, or above it.
        for other in others.into_iter().filter(|other| open_old(other).is_ok()) {
            self.covers.entry(other).or_insert(Cover::Blank);
        }
    }

    /// Hides one more place.
    pub(crate) fn cover(&mut self, path: PathBuf) {
        self.covers.insert(path, Cover::Blank);
    }

    /// The hidden place that contains the path.
    pub(crate) fn above(&self, path: &Path) -> Option<&Path> {
        let nearest = path.ancestors().find_map(|above| self.covers.get_key_value(above));
        nearest.filter(|(_, cover)| **cover != Cover::Shown).map(|(above, _)| above.as_path())
    }

    /// The covers to mount, in this order.
    pub(crate) fn covers(&self) -> impl Iterator<Item = (&Path, Cover)> {
        // A covered folder hides its contents.
        let is_needed = |path: &Path, cover: Cover| {
            cover == Cover::Shown || path.parent().is_none_or(|parent| self.above(parent).is_none())
        };
        let covers = self.covers.iter().map(|(path, cover)| (path.as_path(), *cover));
        covers.filter(move |(path, cover)| is_needed(path, *cover))
    }

    pub(crate) fn is_shown(&self, path: &Path) -> bool {
        self.covers.get(path) == Some(&Cover::Shown)
    }

    fn find_partly_covered(&mut self) {
        let shown = self.covers.iter().filter(|(_, cover)| **cover == Cover::Shown);
        let folders: Vec<PathBuf> =
            shown.filter_map(|(path, _)| Some(self.outermost(path.parent()?)?.to_owned())).collect();
        for folder in folders {
            self.covers.insert(folder, Cover::Partly);
        }
    }

    /// Of nested hidden places, the one that is really covered.
    fn outermost<'a>(&'a self, path: &'a Path) -> Option<&'a Path> {
        let mut found = self.above(path)?;
        while let Some(above) = found.parent().and_then(|parent| self.above(parent)) {
            found = above;
        }
        Some(found)
    }
}

/// The names that no command may create, because a file or folder of the user's settings belongs there: those that do
/// not exist yet and have no placeholder. Each is the first missing name of its path.
pub(crate) fn withheld(confinement: &Confinement) -> Vec<PathBuf> {
    let files = confinement.hidden.iter().filter(|path| confinement.reserved.contains(path));
    let files = files.map(|path| (path, false));
    let all = files.chain(confinement.protected_paths.iter().map(|path| (path, true)));
    let missing = all.filter_map(|(path, folders_too)| {
        let way = FollowedPath::follow(path);
        let name = way.missing.first()?;
        (folders_too || !is_folder_name(&way.missing)).then(|| way.end.join(name))
    });
    missing.collect()
}

/// Those of `ONLY_ROOT` that exist.
pub(crate) fn only_root() -> impl Iterator<Item = PathBuf> {
    let is_key = |name: &OsString| {
        let name = name.to_string_lossy();
        name.starts_with("ssh_host_") && name.ends_with("_key")
    };
    let keys = fs::read_dir(HOST_KEYS).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let keys = keys.filter(is_key).map(|name| Path::new(HOST_KEYS).join(name));
    ONLY_ROOT.iter().map(PathBuf::from).chain(keys).filter(|path| open_old(path).is_ok())
}

/// Whether the first missing name is a folder's: more names follow, or it has no extension. A folder in place of a file
/// would block programs that write that file.
fn is_folder_name(missing: &[OsString]) -> bool {
    missing.len() > 1 || missing.first().is_some_and(|name| Path::new(name).extension().is_none())
}

/// A path, resolved as far as it exists.
#[derive(Debug, Default)]
struct FollowedPath {
    /// The existing part of the path, resolved.
    end: PathBuf,
    /// The links on the way, each by its resolved path.
    links: Vec<PathBuf>,
    missing: Vec<OsString>,
}

impl FollowedPath {
    fn follow(path: &Path) -> Self {
        let is_plain = |part: Component<'_>| matches!(part, Component::RootDir | Component::Normal(_));
        // Most paths have no links, which one system call shows.
        if path.components().all(is_plain) && open_old(path).is_ok_and(|found| !is_link(&found)) {
            return Self { end: path.to_owned(), ..Self::default() };
        }
        let mut way = Self { end: PathBuf::from("/"), ..Self::default() };
        let mut open: Vec<OsString> = parts(path);
        while let Some(part) = open.pop() {
            if part == ".." {
                if way.missing.pop().is_none() {
                    way.end.pop();
                }
                continue;
            }
            let next = way.end.join(&part);
            match fs::read_link(&next) {
                _ if !way.missing.is_empty() => way.missing.push(part),
                Ok(target) if way.links.len() < MOST_LINKS => {
                    if target.is_absolute() {
                        way.end = PathBuf::from("/");
                    }
                    way.links.push(next);
                    open.extend(parts(&target));
                }
                _ if fs::symlink_metadata(&next).is_ok() => way.end = next,
                _ => way.missing.push(part),
            }
        }
        way
    }
}

/// The names of a path, the last one first.
fn parts(path: &Path) -> Vec<OsString> {
    let names = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    });
    let mut names: Vec<OsString> = names.collect();
    names.reverse();
    names
}

fn is_link(found: &std::os::fd::OwnedFd) -> bool {
    use rustix::fs::{FileType, fstat};
    fstat(found).is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Symlink)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn confinement(hidden: &[PathBuf], shown: &[PathBuf]) -> Confinement {
        let hidden = hidden.to_vec();
        Confinement { reserved: hidden.clone(), hidden, shown: shown.to_vec(), ..Confinement::read_only() }
    }

    #[test]
    fn links_on_the_way_are_noted_and_the_end_is_covered() {
        let at = tempfile::tempdir().unwrap();
        let at = at.path().canonicalize().unwrap();
        fs::create_dir_all(at.join("data/state/skills")).unwrap();
        symlink("data", at.join("a")).unwrap();
        symlink(at.join("a/state"), at.join("b")).unwrap();
        let hidden = HiddenPaths::find(&confinement(&[at.join("b")], &[at.join("b/skills")]));
        assert_eq!(hidden.links, [at.join("b"), at.join("a")]);
        let covers: Vec<_> = hidden.covers().collect();
        let (state, skills) = (at.join("data/state"), at.join("data/state/skills"));
        assert_eq!(covers, [(state.as_path(), Cover::Partly), (skills.as_path(), Cover::Shown)]);
        assert_eq!(hidden.above(&state.join("x/y")), Some(state.as_path()));
        assert_eq!(hidden.above(&skills.join("x")), None);
        assert_eq!(hidden.above(&at), None);
    }

    #[test]
    fn a_missing_path_is_reserved_by_its_first_name_unless_it_is_a_file() {
        let at = tempfile::tempdir().unwrap();
        let at = at.path().canonicalize().unwrap();
        let paths = [at.join("a/b/c.json"), at.join(".state"), at.join("c.json")];
        let hidden = HiddenPaths::find(&confinement(&paths, &[]));
        assert_eq!(hidden.missing, [at.join("a"), at.join(".state")]);
        assert_eq!(hidden.covers().count(), 0);
    }

    #[test]
    fn a_place_within_another_needs_no_cover_of_its_own() {
        let at = tempfile::tempdir().unwrap();
        let at = at.path().canonicalize().unwrap();
        fs::create_dir_all(at.join("s/t/u/v")).unwrap();
        let hidden = HiddenPaths::find(&confinement(
            &[at.join("s"), at.join("s/t"), at.join("s/t/u/v")],
            &[at.join("s/t/u")],
        ));
        let covers: Vec<_> = hidden.covers().collect();
        let expected = [
            (at.join("s"), Cover::Partly),
            (at.join("s/t/u"), Cover::Shown),
            (at.join("s/t/u/v"), Cover::Blank),
        ];
        assert_eq!(covers, expected.each_ref().map(|(path, cover)| (path.as_path(), *cover)));
    }
}
