//! The user's own files if the server runs as root.
//!
//! The command then runs with an unused user id, so that files which only root may read are closed to it. The user's
//! folders are mounted with mapped owners: root's files in them appear to belong to that user, and files it creates
//! belong to root on disk.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::{FileType, Gid, Stat, Uid, fchown, fstat, fstatfs};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use super::failure::At;
use super::hidden::Cover;
use super::plan::MountPlan;
use super::sys::{self, Forked, NODEV, NOSUID, RDONLY};
use super::tree::{clone_opened, open_old};
use super::wire::{StartFailure, StartStage};
use crate::{Confinement, ReadAccess};

/// An unused user id, above the ranges of containers.
pub(crate) const STRANGER: u32 = 1_900_000_000;

/// Mounts of the user's own folders, not attached yet.
#[derive(Debug)]
pub(crate) struct OwnFiles {
    trees: BTreeMap<PathBuf, OwnedFd>,
    /// The user namespace that defines the mapping.
    mapping: OwnedFd,
}

impl OwnFiles {
    /// `None` if mapped mounts are not supported: in most containers, and on some file systems. Concurrent changes of a
    /// path do not lead to `None`.
    pub(crate) fn prepare(
        confinement: &Confinement,
        cwd: &Path,
        plan: &MountPlan,
        mapping: Option<OwnedFd>,
    ) -> Result<Option<Self>, StartFailure> {
        if plan.root_is_writable() {
            return Ok(None);
        }
        let Some(mapping) = mapping.or_else(|| make_mapping().ok()) else { return Ok(None) };
        let mut trees = BTreeMap::new();
        for path in plan.writable() {
            let tree = tree(path, NOSUID | NODEV, &mapping, plan);
            match tree.at(StartStage::Mounts, &format!("mount {}", path.display()))? {
                Some(tree) => trees.insert(path.to_owned(), tree),
                None => return Ok(None),
            };
        }
        for path in read_only(confinement, cwd, plan) {
            match tree(&path, NOSUID | NODEV | RDONLY, &mapping, plan) {
                Ok(Some(tree)) => _ = trees.entry(path).or_insert(tree),
                Ok(None) => return Ok(None),
                // Removed or replaced by a link, so it is not the user's own.
                Err(_) => {}
            }
        }
        Ok(Some(Self { trees, mapping }))
    }

    /// The same file with mapped owners.
    pub(crate) fn own(&self, opened: &OwnedFd) -> io::Result<OwnedFd> {
        let tree = clone_opened(opened, NOSUID | NODEV)?;
        sys::map_mount(&tree, &self.mapping, false)?;
        Ok(tree)
    }

    pub(crate) fn tree(&self, path: &Path) -> Option<&OwnedFd> {
        self.trees.get(path)
    }

    /// Whether the path is in one of the folders.
    pub(crate) fn contains(&self, path: &Path) -> bool {
        path.ancestors().any(|above| self.trees.contains_key(above))
    }

    /// The read-only folders, parents first.
    pub(crate) fn read_only<'a>(
        &'a self,
        plan: &'a MountPlan,
    ) -> impl Iterator<Item = (&'a Path, &'a OwnedFd)> {
        let trees = self.trees.iter().map(|(path, tree)| (path.as_path(), tree));
        trees.filter(|(path, _)| !plan.writable().any(|root| root == *path) && !plan.hidden.is_shown(path))
    }
}

/// The user's own readable folders.
fn read_only(confinement: &Confinement, cwd: &Path, plan: &MountPlan) -> BTreeSet<PathBuf> {
    let listed = match &confinement.read {
        ReadAccess::Everything => &[],
        ReadAccess::Only(paths) | ReadAccess::Exactly(paths) => paths.as_slice(),
    };
    let asked = confinement.home.iter().map(PathBuf::as_path).chain([cwd]);
    let asked = asked.chain(listed.iter().map(PathBuf::as_path));
    let mut own: BTreeSet<PathBuf> = asked.filter_map(|path| path.canonicalize().ok()).collect();
    own.extend(plan.git_folders.iter().cloned());
    if confinement.read == ReadAccess::Everything {
        let closed: Vec<PathBuf> =
            own.iter().map(PathBuf::as_path).chain(plan.writable()).filter_map(closed_above).collect();
        own.extend(closed);
    }
    // The whole system is not the user's own.
    own.remove(Path::new("/"));
    let all: Vec<PathBuf> = own.iter().cloned().chain(plan.writable().map(Path::to_owned)).collect();
    own.retain(|path| !all.iter().any(|other| path != other && path.starts_with(other)));
    let shown = plan.hidden.covers().filter(|(_, cover)| *cover == Cover::Shown);
    own.extend(shown.map(|(path, _)| path.to_owned()));
    own
}

/// The topmost parent folder that only root can enter.
fn closed_above(path: &Path) -> Option<PathBuf> {
    let above: Vec<&Path> = path.ancestors().skip(1).collect();
    let is_closed = |folder: &&&Path| {
        open_old(folder)
            .and_then(|opened| Ok(fstat(opened)?))
            .is_ok_and(|found| found.st_uid == 0 && found.st_mode & 0o001 == 0)
    };
    above.iter().rev().find(is_closed).map(|folder| folder.to_path_buf())
}

/// `None` if the file system does not support it.
fn tree(path: &Path, attributes: u64, mapping: &OwnedFd, plan: &MountPlan) -> io::Result<Option<OwnedFd>> {
    let source = open_old(path)?;
    let found = fstat(&source)?;
    if let Some(place) = plan.places.get(path)
        && (place.device, place.inode) != (found.st_dev, found.st_ino)
    {
        return Err(io::Error::other("it was replaced while the command was being started"));
    }
    let tree = clone_opened(&source, attributes)?;
    let is_writable = attributes & RDONLY == 0;
    let mapped = match sys::map_mount(&tree, mapping, true) {
        // A mount inside cannot be mapped. It is still readable by everyone's permissions.
        Err(_) if !is_writable => sys::map_mount(&tree, mapping, false),
        mapped => mapped,
    };
    Ok(mapped.is_ok().then_some(tree))
}

/// The mapping for all helpers of a server that runs as root, because creating one takes a process.
pub(crate) fn shared_mapping() -> Option<&'static OwnedFd> {
    static MADE: OnceLock<OwnedFd> = OnceLock::new();
    if MADE.get().is_none() && rustix::process::geteuid().is_root() {
        // On failure, each helper reports the reason. Of two concurrent results, one is kept.
        let _ = make_mapping().map(|made| MADE.set(made));
    }
    MADE.get()
}

/// A user namespace that maps root on disk to the unused user, and all others to themselves.
fn make_mapping() -> io::Result<OwnedFd> {
    let (end, keep) = pipe_with(PipeFlags::CLOEXEC)?;
    let child = match sys::fork_with(libc::CLONE_NEWUSER)? {
        // Only system calls: in a server other threads may hold any lock at this moment.
        Forked::Child => {
            sys::close_in_child(&keep);
            // Ends by itself only if the server dies first.
            let _ = rustix::io::read(&end, &mut [0_u8; 1]);
            sys::exit(0)
        }
        Forked::Parent { child } => child,
    };
    let above = STRANGER + 1;
    let map = format!("0 {STRANGER} 1\n1 1 {}\n{above} {above} {}\n", STRANGER - 1, u32::MAX - above);
    let opened = write_maps(child, &map)
        .and_then(|()| File::open(format!("/proc/{child}/ns/user")).map(OwnedFd::from));
    if let Some(child) = Pid::from_raw(child) {
        // Killed, because closing the pipe may not end it: a child that another thread forks meanwhile holds the pipe
        // open too, and two such children would wait for each other for ever.
        let _ = kill_process(child, Signal::KILL);
        let _ = waitpid(Some(child), WaitOptions::empty());
    }
    drop(keep);
    opened
}

/// The maps of the namespace in which the sandbox is built: root, to build it, and the command's user.
pub(crate) fn write_command_maps(child: i32, inside: u32) -> io::Result<()> {
    write_maps(child, &format!("0 0 1\n{inside} {STRANGER} 1\n"))
}

/// Must be called from outside, by a process that may map other users.
fn write_maps(child: i32, map: &str) -> io::Result<()> {
    for name in ["uid_map", "gid_map"] {
        // The kernel accepts it as a whole or not at all.
        File::options().write(true).open(format!("/proc/{child}/{name}"))?.write_all(map.as_bytes())?;
    }
    Ok(())
}

/// Scripts open their standard streams again, as `/dev/stderr`, so the command's user must own them.
pub(crate) fn hand_over_streams(terminal: bool, user: u32, group: u32) {
    const PIPES: rustix::fs::FsWord = 0x5049_5045;
    for stream in [rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr()] {
        let Ok(found) = fstat(stream) else { continue };
        // An anonymous pipe; a named one is a file of its owner.
        let is_pipe = FileType::from_raw_mode(found.st_mode) == FileType::Fifo
            && fstatfs(stream).is_ok_and(|system| system.f_type == PIPES);
        if is_pipe || (terminal && is_terminal(&found)) {
            let _ = fchown(stream, Some(Uid::from_raw(user)), Some(Gid::from_raw(group)));
        }
    }
}

/// A pseudo-terminal.
fn is_terminal(found: &Stat) -> bool {
    FileType::from_raw_mode(found.st_mode) == FileType::CharacterDevice
        && (136..144).contains(&libc::major(found.st_rdev))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    /// Each child inherits the pipes of the others that are being made at that moment.
    #[test]
    fn mappings_made_at_once_do_not_wait_for_each_other() {
        let (sender, receiver) = mpsc::channel();
        for _ in 0..8 {
            let sender = sender.clone();
            std::thread::spawn(move || {
                for _ in 0..40 {
                    let made = make_mapping();
                    assert!(made.is_ok() || !rustix::process::geteuid().is_root(), "{made:?}");
                }
                sender.send(()).expect("received below");
            });
        }
        for _ in 0..8 {
            receiver.recv_timeout(Duration::from_secs(60)).expect("no child waits for another");
        }
    }
}
