//! A commit in progress: its open directories, and how to undo each step.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use ring::rand::{SecureRandom, SystemRandom};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, Mode};
use rustix::io::Errno;

use crate::error::{CommitError, Lost, io_at};
use crate::identity::FileIdentity;
use crate::kernel::{AS_DIRECTORY, Exchange, Kernel};
use crate::place::TrustedPlace;
use crate::read::state;

/// A name in an open directory, so that the directory cannot be replaced.
#[derive(Debug, Clone)]
pub(crate) struct Spot {
    pub(crate) dir: usize,
    pub(crate) name: OsString,
    /// For messages only.
    pub(crate) path: PathBuf,
}

/// A completed step, as its undo.
#[derive(Debug)]
enum Undo {
    RemoveDirectory(Spot),
    RemoveTemporary {
        dir: usize,
        name: OsString,
    },
    /// The new file is at the spot, the former one under the temporary name.
    SwapBack {
        spot: Spot,
        temporary: OsString,
        new: FileIdentity,
    },
    /// The new file is at the spot, where none was.
    TakeAway {
        spot: Spot,
        temporary: OsString,
        new: FileIdentity,
    },
    /// The former file is under the temporary name, and none at the spot.
    PutBack {
        spot: Spot,
        temporary: OsString,
    },
}

pub(crate) struct CommitJob<'k> {
    pub(crate) kernel: &'k Kernel,
    random: SystemRandom,
    roots: HashMap<PathBuf, usize>,
    directories: HashMap<(usize, PathBuf), usize>,
    open: Vec<OwnedFd>,
    undo: Vec<Undo>,
}

impl<'k> CommitJob<'k> {
    pub(crate) fn new(kernel: &'k Kernel) -> Self {
        let (roots, directories) = (HashMap::new(), HashMap::new());
        Self { kernel, random: SystemRandom::new(), roots, directories, open: Vec::new(), undo: Vec::new() }
    }

    pub(crate) fn directory(&self, spot: &Spot) -> &OwnedFd {
        &self.open[spot.dir]
    }

    /// Opens the directory of a place. With `make`, creates missing ones; otherwise returns none.
    pub(crate) fn spot(
        &mut self,
        place: &TrustedPlace,
        path: &Path,
        make: MissingFolders,
    ) -> Result<Option<Spot>, CommitError> {
        let root = self.root(&place.root)?;
        let parent = place.beneath.parent().unwrap_or(Path::new(""));
        let Some(name) = place.beneath.file_name() else { return Err(CommitError::Outside(path.to_owned())) };
        let dir = match self.enter(root, parent, make) {
            Ok(Some(dir)) => dir,
            Ok(None) => return Ok(None),
            Err((_, Errno::LOOP)) => return Err(CommitError::Symlink(path.to_owned())),
            Err((at, Errno::NOTDIR)) if is_link(&self.open[root], &at) => {
                return Err(CommitError::Symlink(path.to_owned()));
            }
            Err((at, errno)) => return Err(io_at("reach", &place.root.join(at), errno)),
        };
        Ok(Some(Spot { dir, name: name.to_owned(), path: path.to_owned() }))
    }

    fn root(&mut self, root: &Path) -> Result<usize, CommitError> {
        if let Some(index) = self.roots.get(root) {
            return Ok(*index);
        }
        let opened = self.kernel.step().and_then(|()| rustix::fs::open(root, AS_DIRECTORY, Mode::empty()));
        let index = self.keep(opened.map_err(|errno| io_at("open", root, errno))?);
        self.roots.insert(root.to_owned(), index);
        Ok(index)
    }

    fn keep(&mut self, fd: OwnedFd) -> usize {
        self.open.push(fd);
        self.open.len() - 1
    }

    fn enter(
        &mut self,
        root: usize,
        path: &Path,
        make: MissingFolders,
    ) -> Result<Option<usize>, (PathBuf, Errno)> {
        if path.as_os_str().is_empty() {
            return Ok(Some(root));
        }
        let key = (root, path.to_owned());
        if let Some(index) = self.directories.get(&key) {
            return Ok(Some(*index));
        }
        let at = |errno| (path.to_owned(), errno);
        self.kernel.step().map_err(at)?;
        let fd = match self.kernel.open_beneath(self.open[root].as_fd(), path, AS_DIRECTORY) {
            Ok(fd) => fd,
            Err(Errno::NOENT) if make == MissingFolders::Make => {
                let above = path.parent().unwrap_or(Path::new(""));
                let Some(above) = self.enter(root, above, make)? else { return Ok(None) };
                self.make_directory(above, path).map_err(at)?
            }
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(at(errno)),
        };
        let index = self.keep(fd);
        self.directories.insert(key, index);
        Ok(Some(index))
    }

    fn make_directory(&mut self, above: usize, path: &Path) -> Result<OwnedFd, Errno> {
        let name = path.file_name().unwrap_or_default();
        self.kernel.step()?;
        match rustix::fs::mkdirat(&self.open[above], name, Mode::from_raw_mode(0o777)) {
            Ok(()) => self.undo.push(Undo::RemoveDirectory(Spot {
                dir: above,
                name: name.to_owned(),
                path: path.to_owned(),
            })),
            // Created concurrently by another process, so it stays.
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
        }
        self.kernel.step()?;
        self.kernel.open_beneath(self.open[above].as_fd(), Path::new(name), AS_DIRECTORY)
    }

    /// An unused name; the caller creates the file at once.
    pub(crate) fn temporary_name(&self) -> Result<OsString, Errno> {
        let mut bytes = [0; 12];
        self.random.fill(&mut bytes).map_err(|_| Errno::IO)?;
        Ok(format!(".patch-{}.tmp", data_encoding::HEXLOWER.encode(&bytes)).into())
    }

    /// Removes the temporary file if the commit fails.
    pub(crate) fn made_temporary(&mut self, spot: &Spot, name: &OsStr) {
        self.undo.push(Undo::RemoveTemporary { dir: spot.dir, name: name.to_owned() });
    }

    /// Puts the new file where none exists.
    pub(crate) fn put(&mut self, spot: &Spot, temporary: &OsStr, new: FileIdentity) -> Result<(), Errno> {
        self.kernel.step()?;
        self.kernel.rename_new(&self.open[spot.dir], temporary, &spot.name)?;
        self.undo.push(Undo::TakeAway { spot: spot.clone(), temporary: temporary.to_owned(), new });
        Ok(())
    }

    /// Replaces the former file by the new one, and returns the former one's identity.
    pub(crate) fn replace(
        &mut self,
        spot: &Spot,
        temporary: &OsStr,
        new: FileIdentity,
    ) -> Result<Option<FileIdentity>, Errno> {
        self.kernel.step()?;
        match self.kernel.exchange(&self.open[spot.dir], temporary, &spot.name)? {
            Exchange::Done => {
                self.undo.push(Undo::SwapBack { spot: spot.clone(), temporary: temporary.to_owned(), new });
                self.kernel.step()?;
                state(&self.open[spot.dir], temporary)
            }
            Exchange::Unsupported => {
                let displaced = self.remove(spot)?;
                self.put(spot, temporary, new)?;
                Ok(displaced)
            }
        }
    }

    /// Moves the file to a temporary name, and returns its identity.
    pub(crate) fn remove(&mut self, spot: &Spot) -> Result<Option<FileIdentity>, Errno> {
        let temporary = self.temporary_name()?;
        self.kernel.step()?;
        self.kernel.rename_new(&self.open[spot.dir], &spot.name, &temporary)?;
        self.undo.push(Undo::PutBack { spot: spot.clone(), temporary: temporary.clone() });
        self.kernel.step()?;
        state(&self.open[spot.dir], &temporary)
    }

    /// Everything is in place: removes the former files.
    pub(crate) fn finish(self) {
        for step in &self.undo {
            if let Undo::SwapBack { spot, temporary, .. } | Undo::PutBack { spot, temporary } = step {
                // The patch is complete; a former file that cannot be removed is harmless.
                let _ = rustix::fs::unlinkat(&self.open[spot.dir], temporary, AtFlags::empty());
            }
        }
    }

    /// Undoes every step, last first. Returns what could not be restored.
    pub(crate) fn undo(mut self) -> Vec<Lost> {
        self.kernel.calm();
        let mut lost: Vec<(usize, OsString, Lost)> = Vec::new();
        while let Some(step) = self.undo.pop() {
            match step {
                Undo::RemoveDirectory(spot) => {
                    // Fails if it is not empty, because another process uses it.
                    let _ = rustix::fs::unlinkat(&self.open[spot.dir], &spot.name, AtFlags::REMOVEDIR);
                }
                Undo::RemoveTemporary { dir, name } => {
                    let in_use = lost.iter().any(|(at, kept, _)| *at == dir && *kept == name);
                    if !in_use {
                        let _ = rustix::fs::unlinkat(&self.open[dir], &name, AtFlags::empty());
                    }
                }
                Undo::SwapBack { spot, temporary, new } => {
                    if !(self.is_ours(&spot, new) && self.swap_back(&spot, &temporary)) {
                        lost.push(self.lost(&spot, temporary));
                    }
                }
                Undo::TakeAway { spot, temporary, new } => {
                    if self.is_ours(&spot, new) {
                        let _ = self.kernel.rename_new(&self.open[spot.dir], &spot.name, &temporary);
                    }
                }
                Undo::PutBack { spot, temporary } => {
                    if self.kernel.rename_new(&self.open[spot.dir], &temporary, &spot.name).is_err() {
                        lost.push(self.lost(&spot, temporary));
                    }
                }
            }
        }
        lost.into_iter().map(|(_, _, lost)| lost).collect()
    }

    /// Whether the file at the spot is still the one this job put there.
    fn is_ours(&self, spot: &Spot, new: FileIdentity) -> bool {
        matches!(state(&self.open[spot.dir], &spot.name), Ok(Some(there)) if there.same_file(&new))
    }

    fn swap_back(&self, spot: &Spot, temporary: &OsStr) -> bool {
        matches!(self.kernel.exchange(&self.open[spot.dir], temporary, &spot.name), Ok(Exchange::Done))
    }

    fn lost(&self, spot: &Spot, temporary: OsString) -> (usize, OsString, Lost) {
        let lost = Lost { path: spot.path.clone(), kept_as: spot.path.with_file_name(&temporary) };
        (spot.dir, temporary, lost)
    }
}

/// How missing directories are handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MissingFolders {
    Make,
    Leave,
}

/// Whether a component of the path is a symbolic link; only for the error message.
fn is_link(root: &OwnedFd, path: &Path) -> bool {
    path.ancestors().filter(|part| !part.as_os_str().is_empty()).any(|part| {
        rustix::fs::statat(root, part, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode).is_symlink())
    })
}
