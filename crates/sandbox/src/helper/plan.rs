//! Which places of the file system are mounted how. Decided outside, before anything is unshared, and carried out
//! inside by `mount`.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use super::failure::At;
use super::git_dir;
use super::placeholder::Placeholder;
use super::wire::{Failure, Stage};
use crate::Confinement;

/// Never writable by being listed: the helper puts its own there.
const OWN: [&str; 3] = ["/dev", "/proc", "/sys"];

/// How a place is mounted over itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Writable,
    /// Writable, and a mount only so that it cannot be renamed: something below it is a mount.
    Pinned,
    ReadOnly,
    /// A name behind which nobody may put anything, shown as an empty file.
    Blank,
}

/// A place as it was found, so that another one put there in the meantime is noticed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) kind: Kind,
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

/// Everything resolved: no path in here leads through a symbolic link.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// Parents come before what is inside them.
    pub(crate) places: BTreeMap<PathBuf, Place>,
    pub(crate) hidden: Vec<PathBuf>,
    placeholders: Vec<Placeholder>,
}

impl Plan {
    pub(crate) fn make(walls: &Confinement, protect: bool) -> Result<Self, Failure> {
        let mut plan = Self { hidden: existing(&walls.hidden), ..Self::default() };
        let roots = writable_roots(&walls.writable);
        for root in &roots {
            plan.add(root, Kind::Writable).at(Stage::Mounts, &format!("look at {}", root.display()))?;
        }
        if protect {
            for root in roots.iter().filter(|root| root.is_dir()) {
                for name in &walls.protected {
                    plan.protect(&root.join(name), &roots)?;
                }
            }
        }
        plan.pin(&roots).at(Stage::Mounts, "look at the folders between writable ones")?;
        Ok(plan)
    }

    pub(crate) fn writable(&self) -> impl Iterator<Item = &Path> {
        self.places.iter().filter(|(_, place)| place.kind == Kind::Writable).map(|(path, _)| path.as_path())
    }

    pub(crate) fn root_is_writable(&self) -> bool {
        self.writable().any(|path| path == Path::new("/"))
    }

    /// The stand-ins that were made, for whoever is to take them away again.
    pub(crate) fn take_placeholders(&mut self) -> Vec<Placeholder> {
        std::mem::take(&mut self.placeholders)
    }

    fn add(&mut self, path: &Path, kind: Kind) -> io::Result<()> {
        // What was asked for by name stays as asked.
        if self.places.get(path).is_some_and(|place| place.kind == Kind::Writable) {
            return Ok(());
        }
        let found = fs::symlink_metadata(path)?;
        self.places.insert(path.to_owned(), Place { kind, device: found.dev(), inode: found.ino() });
        Ok(())
    }

    fn protect(&mut self, path: &Path, roots: &[PathBuf]) -> Result<(), Failure> {
        let protecting = format!("protect {}", path.display());
        match fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return self.hold_free(path),
            Err(error) => return Err(error).at(Stage::Mounts, &protecting),
            Ok(found) if found.is_symlink() => {
                let target = fs::read_link(path).at(Stage::Mounts, &protecting)?;
                return self.protect_pointer(path, &[target], roots);
            }
            Ok(found) if found.is_file() && path.file_name().is_some_and(|name| name == ".git") => {
                return self.protect_pointer(path, &git_dir::of_pointer_file(path), roots);
            }
            Ok(found) if found.is_dir() => {
                match Placeholder::adopt(path).at(Stage::Mounts, &protecting)? {
                    Some(placeholder) => self.placeholders.push(placeholder),
                    // Another command's, which has just ended.
                    None if !path.exists() => return self.hold_free(path),
                    None => {}
                }
            }
            Ok(_) => {}
        }
        self.add(path, Kind::ReadOnly).at(Stage::Mounts, &protecting)
    }

    /// A name that is not there yet gets an empty folder to mount over, for as long as the command runs.
    fn hold_free(&mut self, path: &Path) -> Result<(), Failure> {
        let protecting = format!("protect {}", path.display());
        match Placeholder::make(path) {
            Ok(placeholder) => self.placeholders.extend(placeholder),
            // Where the server cannot create it, the command, being the same user, cannot either.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
                ) =>
            {
                return Ok(());
            }
            Err(error) => return Err(error).at(Stage::Mounts, &protecting),
        }
        self.add(path, Kind::ReadOnly).at(Stage::Mounts, &protecting)
    }

    /// A symbolic link, or a file that names a folder: what it leads to is protected along with it.
    fn protect_pointer(
        &mut self,
        path: &Path,
        targets: &[PathBuf],
        roots: &[PathBuf],
    ) -> Result<(), Failure> {
        let mut kind = Kind::ReadOnly;
        let parent = path.parent().unwrap_or(Path::new("/"));
        for target in targets {
            let target = without_dots(&parent.join(target));
            if !roots.iter().any(|root| target.starts_with(root)) {
                match fs::canonicalize(&target) {
                    // Neither the way there nor the place itself is in reach.
                    Ok(end) if !roots.iter().any(|root| end.starts_with(root)) => continue,
                    Err(_) => continue,
                    Ok(_) => {}
                }
            }
            // A way through further links, or to nothing, could be turned elsewhere by the command.
            if fs::canonicalize(&target).is_ok_and(|end| end == target) {
                self.add(&target, Kind::ReadOnly)
                    .at(Stage::Mounts, &format!("protect {}", target.display()))?;
            } else {
                kind = Kind::Blank;
            }
        }
        self.add(path, kind).at(Stage::Mounts, &format!("protect {}", path.display()))
    }

    /// A folder above a mount could be moved away and made again, with the name free. A mount cannot be moved.
    fn pin(&mut self, roots: &[PathBuf]) -> io::Result<()> {
        let places: Vec<PathBuf> = self.places.keys().cloned().collect();
        for place in places {
            for above in place.ancestors().skip(1) {
                let inside_root = roots.iter().any(|root| above.starts_with(root) && above != root);
                if inside_root && !self.places.contains_key(above) {
                    self.add(above, Kind::Pinned)?;
                }
            }
        }
        Ok(())
    }
}

/// The writable roots without symbolic links. Those that do not exist are left out.
pub(crate) fn writable_roots(asked: &[PathBuf]) -> Vec<PathBuf> {
    let resolved: Vec<(&PathBuf, PathBuf)> =
        asked.iter().filter_map(|path| Some((path, fs::canonicalize(path).ok()?))).collect();
    let ends: Vec<PathBuf> = resolved.iter().map(|(_, end)| end.clone()).collect();
    let mut roots: Vec<PathBuf> = resolved
        .into_iter()
        .filter(|(asked, end)| !turned_elsewhere(asked, end, &ends))
        .map(|(_, end)| end)
        .filter(|end| !OWN.iter().any(|own| end.starts_with(own)))
        .collect();
    roots.sort();
    roots.dedup();
    roots
}

/// Whether the way to a root leads through another root and then out of it. An earlier command can have put such a
/// link there; whoever asked for the root cannot have meant it.
fn turned_elsewhere(asked: &Path, end: &Path, roots: &[PathBuf]) -> bool {
    asked.ancestors().skip(1).filter_map(|above| fs::canonicalize(above).ok()).any(|above| {
        roots.iter().any(|root| root != end && above.starts_with(root) && !end.starts_with(root))
    })
}

fn existing(paths: &[PathBuf]) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = paths.iter().filter_map(|path| fs::canonicalize(path).ok()).collect();
    found.sort();
    found.dedup();
    found
}

/// The path with `.` and `..` taken out by name alone.
fn without_dots(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                clean.pop();
            }
            part => clean.push(part),
        }
    }
    clean
}
