//! Builds the command's file system and enters it.

use std::cell::RefCell;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Mode, fstat, mkdirat, symlinkat};
use rustix::mount::{MountPropagationFlags, mount_change};

use super::failure::At;
use super::hidden::Cover;
use super::plan::{MountKind, MountPlace, MountPlan};
use super::sys::{self, NODEV, NOSUID, RDONLY};
use super::tree::{
    attach, clone_opened, clone_tree, is_folder, is_missing, make_file, open_beneath, open_old, tmpfs,
    unless_missing,
};
use super::wire::{StartFailure, StartStage};
use crate::{Confinement, ReadAccess};

/// The mount point of the new root. Every system has it, and nothing below it is taken from the old one.
const STAGE: &str = "/proc";

/// The paths that programs need to run at all.
pub(crate) const PLATFORM: &[&str] = &[
    "/bin",
    "/etc",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    "/opt",
    "/run/current-system",
    "/sbin",
    "/usr",
];

/// The paths that programs need from `/run`. The rest are sockets of services, and secrets.
const RUN: &[&str] = &[
    "/run/NetworkManager/resolv.conf",
    "/run/current-system",
    "/run/opengl-driver",
    "/run/resolvconf",
    "/run/systemd/resolve",
];

/// A new root being built.
pub(crate) struct NewRoot {
    root: OwnedFd,
    /// Devices of the file systems made for it. New names are created only there: elsewhere another command may be
    /// changing links.
    made: RefCell<Vec<u64>>,
}

impl NewRoot {
    /// Clones the readable paths into a new root, read-only and without devices.
    pub(crate) fn begin(confinement: &Confinement, plan: &MountPlan) -> Result<Self, StartFailure> {
        let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
        mount_change("/", private).at(StartStage::Mounts, "keep mounts private")?;
        let everything = match &confinement.read {
            ReadAccess::Everything => {
                let attributes = NOSUID | NODEV | if plan.root_is_writable() { 0 } else { RDONLY };
                Some(clone_tree(Path::new("/"), attributes).at(StartStage::Mounts, "copy the root")?)
            }
            ReadAccess::Only(_) | ReadAccess::Exactly(_) => None,
        };
        begin_stage().at(StartStage::Mounts, "set up a stage")?;
        let root = match everything {
            Some(tree) => tree,
            None => tmpfs("0755").at(StartStage::Mounts, "make an empty root")?,
        };
        let at = open_old(&stage("root")).at(StartStage::Mounts, "open the stage")?;
        attach(&root, &at).at(StartStage::Mounts, "attach the new root")?;
        let new = Self { root, made: RefCell::default() };
        if confinement.read != ReadAccess::Everything {
            new.know_as_made(&new.root).at(StartStage::Mounts, "look at the new root")?;
        }
        match &confinement.read {
            ReadAccess::Everything => {
                new.show_own(plan)?;
                new.replace_run()?;
            }
            ReadAccess::Only(paths) => {
                new.show(&PLATFORM.iter().map(PathBuf::from).collect::<Vec<_>>(), plan)?;
                new.show(paths, plan)?;
            }
            ReadAccess::Exactly(paths) => new.show(paths, plan)?,
        }
        Ok(new)
    }

    /// Mounts the writable paths, and read-only ones inside them.
    pub(crate) fn apply(&self, confinement: &Confinement, plan: &MountPlan) -> Result<(), StartFailure> {
        for (path, place) in plan.places.iter().filter(|(path, _)| *path != Path::new("/")) {
            let mounted = self.mount_place(path, *place, plan);
            if place.is_required {
                mounted.at(StartStage::Mounts, &format!("mount {}", path.display()))?;
            }
        }
        if confinement.read != ReadAccess::Everything {
            self.link_all(&confinement.writable);
        }
        if plan.root_is_writable() {
            self.bind(Path::new("/sys"), RDONLY | NOSUID | NODEV)
                .at(StartStage::Mounts, "mount /sys read-only")?;
        }
        Ok(())
    }

    pub(crate) fn hide(&self, plan: &MountPlan) -> Result<(), StartFailure> {
        let mut partly = Vec::new();
        for (path, cover) in plan.hidden.covers() {
            match cover {
                Cover::Blank => self.blank(path),
                Cover::Partly => self.empty(path).map(|empty| partly.extend(empty)),
                Cover::Shown => self.show_again(path, plan),
            }
            .at(StartStage::Mounts, &format!("hide {}", path.display()))?;
        }
        for folder in partly {
            sys::mount_setattr(&folder, RDONLY | NOSUID | NODEV, false)
                .at(StartStage::Mounts, "seal a hidden folder")?;
        }
        Ok(())
    }

    /// Covers a folder with an empty one, into which its shown parts can be mounted.
    fn empty(&self, path: &Path) -> io::Result<Option<OwnedFd>> {
        let Some(target) = unless_missing(self.open(path))? else { return Ok(None) };
        let empty = tmpfs("0555")?;
        attach(&empty, target)?;
        self.know_as_made(&empty)?;
        Ok(Some(empty))
    }

    /// Shows a part of a covered folder, unless the folder itself is invisible.
    fn show_again(&self, path: &Path, plan: &MountPlan) -> io::Result<()> {
        let shown = match plan.own_files.as_ref().and_then(|own| own.tree(path)) {
            Some(tree) => self.put_own(tree, path),
            None => self.bind(path, RDONLY | NOSUID | NODEV),
        };
        match shown {
            Err(error) if is_missing(&error) => Ok(()),
            shown => shown,
        }
    }

    /// Covers a path with an unreadable empty folder or file. A missing path is skipped.
    pub(crate) fn blank(&self, path: &Path) -> io::Result<()> {
        let Some(target) = unless_missing(self.open(path))? else { return Ok(()) };
        let folder = is_folder(&target)?;
        let blank = stage(if folder { "folder" } else { "file" });
        attach(clone_tree(&blank, RDONLY | NOSUID | NODEV)?, &target)
    }

    /// Attaches a mount at a path of the new root.
    pub(crate) fn put(&self, mount: &OwnedFd, path: &Path) -> io::Result<()> {
        attach(mount, self.make_target(path, true)?)
    }

    /// Makes the new root the only one.
    pub(crate) fn enter(self, confinement: &Confinement) -> Result<(), StartFailure> {
        if confinement.read != ReadAccess::Everything {
            sys::mount_setattr(&self.root, RDONLY | NOSUID | NODEV, false)
                .at(StartStage::Mounts, "seal the root")?;
        }
        let change = || -> io::Result<()> {
            // Mounted on top of the old root, which no path reaches from then on, not even `..`. Uncovering it takes a
            // capability over the namespace that no process inside has. Swapping the two with `pivot_root` would make
            // the kernel wait for all processors.
            attach(&self.root, open_old(Path::new("/"))?)?;
            rustix::process::fchdir(&self.root)?;
            rustix::process::chroot(".")?;
            rustix::process::chdir("/")?;
            Ok(())
        };
        change().at(StartStage::Mounts, "change the root")
    }

    fn mount_place(&self, path: &Path, place: MountPlace, plan: &MountPlan) -> io::Result<()> {
        let own = plan.own_files.as_ref();
        if let Some(tree) = own.and_then(|own| own.tree(path)).filter(|_| place.kind == MountKind::Writable) {
            return self.put_own(tree, path);
        }
        // A place inside a root is taken from the root's mount, with its attributes.
        let source = if place.kind == MountKind::Writable { open_old(path)? } else { self.open(path)? };
        let found = fstat(&source)?;
        let is_same = (found.st_dev, found.st_ino) == (place.device, place.inode);
        // For a path that was not named explicitly, a replaced file is acceptable if the mount is read-only.
        if !is_same && (place.is_required || place.kind != MountKind::ReadOnly) {
            return Err(io::Error::other("it was replaced while the command was being started"));
        }
        let attributes = match place.kind {
            MountKind::Blank => return self.blank(path),
            MountKind::Writable | MountKind::Pinned => NOSUID | NODEV,
            MountKind::ReadOnly => NOSUID | NODEV | RDONLY,
        };
        let tree = clone_opened(&source, attributes)?;
        let folder = is_folder(&source)?;
        let target = self.make_target(path, folder)?;
        attach(tree, target)
    }

    /// Binds a path of the old root at the same path of the new one.
    fn bind(&self, path: &Path, attributes: u64) -> io::Result<()> {
        let source = open_old(path)?;
        let folder = is_folder(&source)?;
        attach(clone_opened(&source, attributes)?, self.make_target(path, folder)?)
    }

    /// Shows paths in an initially empty root.
    fn show(&self, paths: &[PathBuf], plan: &MountPlan) -> Result<(), StartFailure> {
        let mut ends: Vec<PathBuf> = paths.iter().filter_map(|path| fs::canonicalize(path).ok()).collect();
        ends.sort();
        for end in ends.iter().filter(|end| end.as_path() != Path::new("/")) {
            self.show_one(end, plan).at(StartStage::Mounts, &format!("show {}", end.display()))?;
        }
        self.link_all(paths);
        Ok(())
    }

    fn show_one(&self, path: &Path, plan: &MountPlan) -> io::Result<()> {
        let own = plan
            .own_files
            .as_ref()
            .and_then(|own| own.read_only(plan).find(|(own, _)| path.starts_with(own)));
        match own {
            Some((own, tree)) if own == path => self.put_own(tree, path),
            // Shown with its parent folder, which comes first.
            Some(_) => Ok(()),
            None => self.bind(path, RDONLY | NOSUID | NODEV),
        }
    }

    fn put_own(&self, tree: &OwnedFd, path: &Path) -> io::Result<()> {
        attach(tree, self.make_target(path, is_folder(tree)?)?)
    }

    /// Mounts the user's own folders with the user as their owner.
    fn show_own(&self, plan: &MountPlan) -> Result<(), StartFailure> {
        for (path, tree) in plan.own_files.iter().flat_map(|own| own.read_only(plan)) {
            self.open(path)
                .and_then(|target| attach(tree, target))
                .at(StartStage::Mounts, &format!("show {}", path.display()))?;
        }
        Ok(())
    }

    /// A path through symbolic links gets one equivalent link.
    fn link_all(&self, paths: &[PathBuf]) {
        for path in paths {
            let (Ok(end), Some(parent)) = (fs::canonicalize(path), path.parent()) else { continue };
            if end == *path {
                continue;
            }
            // Fails if the path exists already, which is fine.
            if let (Ok(parent), Some(name)) = (self.make_target(parent, true), path.file_name())
                && self.is_made(&parent)
            {
                let _ = symlinkat(&end, &parent, name);
            }
        }
    }

    fn replace_run(&self) -> Result<(), StartFailure> {
        let run = Path::new("/run");
        if !fs::symlink_metadata(run).is_ok_and(|found| found.is_dir()) {
            return Ok(());
        }
        let replace = || -> io::Result<()> {
            let empty = tmpfs("0755")?;
            self.put(&empty, run)?;
            self.know_as_made(&empty)?;
            for path in RUN.iter().map(Path::new).filter(|path| path.exists()) {
                let path = fs::canonicalize(path)?;
                if path.starts_with(run) {
                    self.bind(&path, RDONLY | NOSUID | NODEV)?;
                }
            }
            Ok(())
        };
        replace().at(StartStage::Mounts, "replace /run")
    }

    /// Makes `/run` read-only after everything is mounted there.
    pub(crate) fn seal_run(&self) -> Result<(), StartFailure> {
        match self.open(Path::new("/run")) {
            Ok(run) => sys::mount_setattr(run, RDONLY | NOSUID | NODEV, false).or_else(|error| {
                // Not a mount: an empty root that shows nothing of it.
                if error.raw_os_error() == Some(libc::EINVAL) { Ok(()) } else { Err(error) }
            }),
            Err(_) => Ok(()),
        }
        .at(StartStage::Mounts, "seal /run")
    }

    pub(crate) fn open(&self, path: &Path) -> io::Result<OwnedFd> {
        open_beneath(&self.root, path.strip_prefix("/").unwrap_or(path))
    }

    /// Opens a mount point, creating it in our own file systems.
    fn make_target(&self, path: &Path, folder: bool) -> io::Result<OwnedFd> {
        match self.open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            opened => return opened,
        }
        let names: Vec<Component<'_>> =
            path.components().filter(|part| matches!(part, Component::Normal(_))).collect();
        let mut at = self.open(Path::new("/"))?;
        for (i, name) in names.iter().enumerate() {
            let name: &Path = name.as_ref();
            at = match open_beneath(&at, name) {
                Err(error) if error.kind() == io::ErrorKind::NotFound && self.is_made(&at) => {
                    if folder || i + 1 < names.len() {
                        mkdirat(&at, name, Mode::from_raw_mode(0o755))?;
                    } else {
                        make_file(&at, name)?;
                    }
                    open_beneath(&at, name)?
                }
                opened => opened?,
            };
        }
        Ok(at)
    }

    fn know_as_made(&self, mount: impl AsFd) -> io::Result<()> {
        self.made.borrow_mut().push(fstat(mount)?.st_dev);
        Ok(())
    }

    fn is_made(&self, folder: impl AsFd) -> bool {
        fstat(folder).is_ok_and(|found| self.made.borrow().contains(&found.st_dev))
    }
}

fn stage(name: &str) -> PathBuf {
    Path::new(STAGE).join(name)
}

fn begin_stage() -> io::Result<()> {
    let mount = tmpfs("0700")?;
    attach(mount, open_old(Path::new(STAGE))?)?;
    fs::create_dir(stage("root"))?;
    fs::create_dir(stage("folder"))?;
    fs::write(stage("file"), "")?;
    for name in ["folder", "file"] {
        fs::set_permissions(stage(name), fs::Permissions::from_mode(0o000))?;
    }
    Ok(())
}
