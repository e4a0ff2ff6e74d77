//! Plans which places are mounted and how: outside, before anything is unshared. `mount` carries it out inside.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use rustix::fs::{FileType, Stat, fstat, readlinkat};

use super::failure::At;
use super::git_dir;
use super::hidden::{HiddenPaths, only_root};
use super::own_files::OwnFiles;
use super::placeholder::{Patience, Placeholder};
use super::roots::writable_roots;
use super::tree::open_old;
use super::wire::{StartFailure, StartStage};
use crate::Confinement;

/// Permissions of placeholders for other users: of protected names, and of hidden ones.
const PROTECTED_RIGHTS: u32 = 0o755;
const HIDDEN_RIGHTS: u32 = 0o700;

/// How a place is mounted over itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MountKind {
    Writable,
    /// Writable, and a mount only so that it cannot be renamed, because it contains another mount.
    Pinned,
    ReadOnly,
    /// A reserved name, shown as an empty file.
    Blank,
}

/// A place with its identity, so that a replacement is noticed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MountPlace {
    pub(crate) kind: MountKind,
    pub(crate) device: u64,
    pub(crate) inode: u64,
    /// Without it the command is not started. Paths that the server found by scanning may be gone by now.
    pub(crate) is_required: bool,
}

/// All paths here are resolved.
#[derive(Debug, Default)]
pub(crate) struct MountPlan {
    /// Parents come before their contents.
    pub(crate) places: BTreeMap<PathBuf, MountPlace>,
    pub(crate) hidden: HiddenPaths,
    /// Outside the roots, but of the same repository.
    pub(crate) git_folders: Vec<PathBuf>,
    /// Set if the server is root and the command must not have its file rights.
    pub(crate) own_files: Option<OwnFiles>,
    placeholders: Vec<Placeholder>,
}

/// The wanted parts of a plan. Only tests leave any out.
#[derive(Clone, Copy)]
pub(crate) struct WantedMounts {
    pub(crate) protected: bool,
    pub(crate) hidden: bool,
}

impl MountPlan {
    pub(crate) fn make(
        confinement: &Confinement,
        cwd: &Path,
        wanted: WantedMounts,
        patience: &Patience<'_>,
    ) -> Result<Self, StartFailure> {
        let mut plan = Self::default();
        let mut roots = writable_roots(confinement)?;
        if wanted.hidden {
            plan.hidden = HiddenPaths::find(confinement);
            plan.refuse_hidden_directory(cwd)?;
            // A hidden path is not opened by being inside a root, or by being one.
            roots.retain(|root| plan.hidden.above(root).is_none());
        }
        for root in &roots {
            plan.add(root, MountKind::Writable)
                .at(StartStage::Mounts, &format!("look at {}", root.display()))?;
        }
        if wanted.protected {
            for root in &roots {
                plan.protect_names(root, confinement, &roots, patience)?;
            }
            for path in &confinement.protected_paths {
                plan.protect_if_there(path, &roots);
            }
        }
        if wanted.hidden {
            plan.hold_hidden(patience)?;
            plan.hold_links(&roots)?;
        }
        plan.pin(&roots).at(StartStage::Mounts, "look at the folders between writable ones")?;
        Ok(plan)
    }

    pub(crate) fn writable(&self) -> impl Iterator<Item = &Path> {
        self.places
            .iter()
            .filter(|(_, place)| place.kind == MountKind::Writable)
            .map(|(path, _)| path.as_path())
    }

    pub(crate) fn root_is_writable(&self) -> bool {
        self.writable().any(|path| path == Path::new("/"))
    }

    /// For a server that is root, if the command has root's file rights.
    pub(crate) fn hide_what_only_root_reads(&mut self) {
        for path in only_root() {
            if self.own_files.as_ref().is_none_or(|own| own.contains(&path)) {
                self.hidden.cover(path);
            }
        }
    }

    /// The placeholders, for the process that removes them.
    pub(crate) fn take_placeholders(&mut self) -> Vec<Placeholder> {
        std::mem::take(&mut self.placeholders)
    }

    fn refuse_hidden_directory(&self, cwd: &Path) -> Result<(), StartFailure> {
        let end = fs::canonicalize(cwd).unwrap_or_else(|_| without_dots(cwd));
        match self.hidden.above(&end) {
            None => Ok(()),
            Some(hidden) => {
                let (cwd, hidden) = (cwd.display(), hidden.display());
                Err(StartFailure::new(
                    StartStage::Directory,
                    format!(
                        "cannot enter {cwd}: it lies in {hidden}, which is hidden from sandboxed commands; work in \
                         another folder"
                    ),
                ))
            }
        }
    }

    fn add(&mut self, path: &Path, kind: MountKind) -> io::Result<()> {
        self.add_found(path, kind, &look(path)?, true);
        Ok(())
    }

    fn add_found(&mut self, path: &Path, kind: MountKind, found: &Stat, is_required: bool) {
        // An explicitly named place stays as requested.
        let known = self.places.get(path).copied();
        if known.is_some_and(|place| place.kind == MountKind::Writable || (place.is_required && !is_required))
        {
            return;
        }
        let place = MountPlace { kind, device: found.st_dev, inode: found.st_ino, is_required };
        self.places.insert(path.to_owned(), place);
    }

    fn protect_names(
        &mut self,
        root: &Path,
        confinement: &Confinement,
        roots: &[PathBuf],
        patience: &Patience<'_>,
    ) -> Result<(), StartFailure> {
        let looking = format!("look at {}", root.display());
        let opened = Rc::new(open_old(root).at(StartStage::Mounts, &looking)?);
        let found = fstat(&*opened).at(StartStage::Mounts, &looking)?;
        let as_planned = self.places.get(root).map(|place| (place.device, place.inode));
        if as_planned != Some((found.st_dev, found.st_ino)) {
            let message = format!("{} was replaced while the command was being started", root.display());
            return Err(StartFailure::new(StartStage::Mounts, message));
        }
        if file_type(&found) != FileType::Directory {
            return Ok(());
        }
        let root = OpenFolder { path: root, opened: &opened };
        for name in &confinement.protected {
            let protecting = format!("protect {}", root.path.join(name).display());
            self.protect(&root, OsStr::new(name), roots, patience).at(StartStage::Mounts, &protecting)?;
        }
        Ok(())
    }

    fn protect(
        &mut self,
        root: &OpenFolder<'_>,
        name: &OsStr,
        roots: &[PathBuf],
        patience: &Patience<'_>,
    ) -> io::Result<()> {
        let path = root.path.join(name);
        let found = match look(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return self.hold_free(root, name, patience);
            }
            found => found?,
        };
        match file_type(&found) {
            FileType::Symlink | FileType::RegularFile => self.protect_pointer(&path, &found, roots, true),
            FileType::Directory => {
                let adopted = Placeholder::adopt(root.opened, name, PROTECTED_RIGHTS, patience)?;
                self.placeholders.extend(adopted);
                let found = match look(&path) {
                    // Another command's placeholder, which has just been removed.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {
                        return self.hold_free(root, name, patience);
                    }
                    found => found?,
                };
                // Another user's placeholder is removed with that user's command. The name then stays free: commands
                // are refused to create it.
                let is_ours = found.st_uid == rustix::process::geteuid().as_raw();
                self.add_found(&path, MountKind::ReadOnly, &found, is_ours);
                Ok(())
            }
            _ => self.add(&path, MountKind::ReadOnly),
        }
    }

    /// A missing name gets an empty folder to mount over, while the command runs.
    fn hold_free(&mut self, root: &OpenFolder<'_>, name: &OsStr, patience: &Patience<'_>) -> io::Result<()> {
        match Placeholder::hold(root.opened, name, PROTECTED_RIGHTS, patience) {
            Ok(placeholder) => self.placeholders.extend(placeholder),
            // If the server cannot create it, the command, being the same user, cannot either.
            Err(error) if is_not_allowed(&error) => return Ok(()),
            Err(error) => return Err(error),
        }
        self.add(&root.path.join(name), MountKind::ReadOnly)
    }

    /// A symbolic link, or a file that names a folder: its target is protected too.
    fn protect_pointer(
        &mut self,
        path: &Path,
        found: &Stat,
        roots: &[PathBuf],
        is_required: bool,
    ) -> io::Result<()> {
        let targets = match file_type(found) {
            FileType::Symlink => vec![read_link(path)?],
            _ if path.file_name() == Some(OsStr::new(".git")) => {
                self.git_folders.extend(git_dir::of_linked_tree(path));
                git_dir::of_pointer_file(path)
            }
            _ => Vec::new(),
        };
        let mut kind = MountKind::ReadOnly;
        let parent = path.parent().unwrap_or(Path::new("/"));
        for target in targets {
            let target = without_dots(&parent.join(target));
            if !roots.iter().any(|root| target.starts_with(root)) {
                match fs::canonicalize(&target) {
                    // Neither the path nor the target is writable.
                    Ok(end) if !roots.iter().any(|root| end.starts_with(root)) => continue,
                    Err(_) => continue,
                    Ok(_) => {}
                }
            }
            // Further links, or a missing target, could be changed by the command.
            match look(&target) {
                Ok(end) if file_type(&end) != FileType::Symlink => {
                    self.add_found(&target, MountKind::ReadOnly, &end, is_required);
                }
                _ => kind = MountKind::Blank,
            }
        }
        self.add_found(path, kind, found, is_required);
        Ok(())
    }

    /// Protects a path that the server found inside a root earlier. It may be gone or replaced; then it is not
    /// followed.
    fn protect_if_there(&mut self, path: &Path, roots: &[PathBuf]) {
        let is_inside = roots.iter().any(|root| path.starts_with(root) && path != root);
        if !is_inside || self.places.contains_key(path) || self.hidden.above(path).is_some() {
            return;
        }
        let Ok(found) = look(path) else { return };
        let _ = match file_type(&found) {
            FileType::Symlink | FileType::RegularFile => self.protect_pointer(path, &found, roots, false),
            _ => {
                self.add_found(path, MountKind::ReadOnly, &found, false);
                Ok(())
            }
        };
    }

    /// Missing hidden paths get an empty folder to cover.
    fn hold_hidden(&mut self, patience: &Patience<'_>) -> Result<(), StartFailure> {
        for path in std::mem::take(&mut self.hidden.missing) {
            let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { continue };
            if self.hidden.above(&path).is_some() {
                continue;
            }
            let held = open_old(parent)
                .and_then(|parent| Placeholder::hold(&Rc::new(parent), name, HIDDEN_RIGHTS, patience));
            match held {
                Ok(placeholder) => self.placeholders.extend(placeholder),
                // No command can create it then either, being the same user.
                Err(error) if is_not_allowed(&error) => continue,
                Err(error) => {
                    return Err(error).at(StartStage::Mounts, &format!("keep {} hidden", path.display()));
                }
            }
            self.hidden.cover(path);
        }
        Ok(())
    }

    /// Keeps a link on the way to a hidden path unchanged.
    fn hold_links(&mut self, roots: &[PathBuf]) -> Result<(), StartFailure> {
        for link in std::mem::take(&mut self.hidden.links) {
            if roots.iter().any(|root| link.starts_with(root)) && self.hidden.above(&link).is_none() {
                self.add(&link, MountKind::ReadOnly)
                    .at(StartStage::Mounts, &format!("keep {}", link.display()))?;
            }
        }
        Ok(())
    }

    /// A parent folder of a mount could be renamed and created again, with the name free. A mount point cannot be
    /// renamed.
    fn pin(&mut self, roots: &[PathBuf]) -> io::Result<()> {
        let places = self.places.iter().map(|(path, place)| (path.clone(), place.is_required));
        let covers = self.hidden.covers().map(|(path, _)| (path.to_owned(), true));
        for (path, is_required) in places.chain(covers).collect::<Vec<_>>() {
            for above in path.ancestors().skip(1) {
                let inside_root = roots.iter().any(|root| above.starts_with(root) && above != root);
                let known = self.places.get(above).is_some_and(|place| place.is_required || !is_required);
                if !inside_root || known || self.hidden.above(above).is_some() {
                    continue;
                }
                match look(above) {
                    Ok(found) => self.add_found(above, MountKind::Pinned, &found, is_required),
                    Err(error) if is_required => return Err(error),
                    Err(_) => {}
                }
            }
        }
        Ok(())
    }
}

/// A folder and its path.
struct OpenFolder<'a> {
    path: &'a Path,
    opened: &'a Rc<OwnedFd>,
}

/// The metadata of a path, without following any link in it.
fn look(path: &Path) -> io::Result<Stat> {
    Ok(fstat(open_old(path)?)?)
}

fn read_link(path: &Path) -> io::Result<PathBuf> {
    use std::os::unix::ffi::OsStringExt;
    let target = readlinkat(open_old(path)?, "", Vec::new())?;
    Ok(std::ffi::OsString::from_vec(target.into_bytes()).into())
}

fn file_type(found: &Stat) -> FileType {
    FileType::from_raw_mode(found.st_mode)
}

fn is_not_allowed(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

/// The path with `.` and `..` removed as text.
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
