//! One commit under way: the directories it holds open, and how each of its steps is taken back.

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

/// A name in a directory that is held open, so that nobody can put another directory in its place.
#[derive(Debug, Clone)]
pub(crate) struct Spot {
    pub(crate) dir: usize,
    pub(crate) name: OsString,
    /// For messages only.
    pub(crate) path: PathBuf,
}

/// A step that was taken, as what takes it back.
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

    /// Opens the directory of a place. Missing ones are made if `make` is set; otherwise there is none.
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
            // Somebody was quicker; then it is theirs, and stays.
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
        }
        self.kernel.step()?;
        self.kernel.open_beneath(self.open[above].as_fd(), Path::new(name), AS_DIRECTORY)
    }

    /// A name that no file has; the caller makes the file at once.
    pub(crate) fn temporary_name(&self) -> Result<OsString, Errno> {
        let mut bytes = [0; 12];
        self.random.fill(&mut bytes).map_err(|_| Errno::IO)?;
        Ok(format!(".patch-{}.tmp", data_encoding::HEXLOWER.encode(&bytes)).into())
    }

    /// From now on the temporary file is removed if the commit fails.
    pub(crate) fn made_temporary(&mut self, spot: &Spot, name: &OsStr) {
        self.undo.push(Undo::RemoveTemporary { dir: spot.dir, name: name.to_owned() });
    }

    /// Puts the new file where none is.
    pub(crate) fn put(&mut self, spot: &Spot, temporary: &OsStr, new: FileIdentity) -> Result<(), Errno> {
        self.kernel.step()?;
        self.kernel.rename_new(&self.open[spot.dir], temporary, &spot.name)?;
        self.undo.push(Undo::TakeAway { spot: spot.clone(), temporary: temporary.to_owned(), new });
        Ok(())
    }

    /// Puts the new file in the place of the former one, and tells what was found there.
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

    /// Takes the file away, to a temporary name for now, and tells what it was.
    pub(crate) fn remove(&mut self, spot: &Spot) -> Result<Option<FileIdentity>, Errno> {
        let temporary = self.temporary_name()?;
        self.kernel.step()?;
        self.kernel.rename_new(&self.open[spot.dir], &spot.name, &temporary)?;
        self.undo.push(Undo::PutBack { spot: spot.clone(), temporary: temporary.clone() });
        self.kernel.step()?;
        state(&self.open[spot.dir], &temporary)
    }

    /// Everything is in place: the former files go.
    pub(crate) fn finish(self) {
        for step in &self.undo {
            if let Undo::SwapBack { spot, temporary, .. } | Undo::PutBack { spot, temporary } = step {
                // The patch stands; a former file that cannot be removed is only in the way.
                let _ = rustix::fs::unlinkat(&self.open[spot.dir], temporary, AtFlags::empty());
            }
        }
    }

    /// Takes every step back, the last one first. Returns what could not be restored.
    pub(crate) fn undo(mut self) -> Vec<Lost> {
        self.kernel.calm();
        let mut lost: Vec<(usize, OsString, Lost)> = Vec::new();
        while let Some(step) = self.undo.pop() {
            match step {
                Undo::RemoveDirectory(spot) => {
                    // Not empty means that somebody else uses it by now.
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

/// How directories that are not there are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MissingFolders {
    Make,
    Leave,
}

/// Whether some component of the path is a symbolic link; only for choosing the right words.
fn is_link(root: &OwnedFd, path: &Path) -> bool {
    path.ancestors().filter(|part| !part.as_os_str().is_empty()).any(|part| {
        rustix::fs::statat(root, part, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode).is_symlink())
    })
}
