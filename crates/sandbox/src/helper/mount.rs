//! Building the file system that the command sees, and moving into it.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, fstat, openat2};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags,
    fsconfig_create, fsconfig_set_string, fsmount, fsopen, mount_change, move_mount, open_tree,
};

use super::failure::At;
use super::plan::{Kind, Place, Plan};
use super::sys::{self, NODEV, NOSUID, RDONLY};
use super::wire::{Failure, Stage};
use crate::{Confinement, ReadAccess};

/// Where the new root is put together. Every system has it, and nothing below it is mounted from the old one.
const STAGE: &str = "/proc";

/// What programs need to run at all.
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

/// What programs need from `/run`. The rest of it is sockets of services, and secrets.
const RUN: &[&str] = &[
    "/run/NetworkManager/resolv.conf",
    "/run/current-system",
    "/run/opengl-driver",
    "/run/resolvconf",
    "/run/systemd/resolve",
];

/// A root under construction.
pub(crate) struct NewRoot {
    root: OwnedFd,
}

impl NewRoot {
    /// Clones what may be read into a root of its own. Everything in it is read-only, and no device works there.
    pub(crate) fn begin(walls: &Confinement, plan: &Plan) -> Result<Self, Failure> {
        let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
        mount_change("/", private).at(Stage::Mounts, "keep mounts private")?;
        let everything = match &walls.read {
            ReadAccess::Everything => {
                let attributes = NOSUID | NODEV | if plan.root_is_writable() { 0 } else { RDONLY };
                Some(clone_tree(Path::new("/"), attributes).at(Stage::Mounts, "copy the root")?)
            }
            ReadAccess::Only(_) | ReadAccess::Exactly(_) => None,
        };
        begin_stage().at(Stage::Mounts, "set up a stage")?;
        let root = match everything {
            Some(tree) => tree,
            None => tmpfs("0755").at(Stage::Mounts, "make an empty root")?,
        };
        let at = open_old(&stage("root")).at(Stage::Mounts, "open the stage")?;
        attach(&root, &at).at(Stage::Mounts, "attach the new root")?;
        let new = Self { root };
        match &walls.read {
            ReadAccess::Everything => new.replace_run()?,
            ReadAccess::Only(paths) => {
                new.show(&PLATFORM.iter().map(PathBuf::from).collect::<Vec<_>>())?;
                new.show(paths)?;
            }
            ReadAccess::Exactly(paths) => new.show(paths)?,
        }
        Ok(new)
    }

    /// Mounts what is writable, and within it what is not.
    pub(crate) fn apply(&self, walls: &Confinement, plan: &Plan) -> Result<(), Failure> {
        for (path, place) in plan.places.iter().filter(|(path, _)| *path != Path::new("/")) {
            self.mount_place(path, *place).at(Stage::Mounts, &format!("mount {}", path.display()))?;
        }
        if walls.read != ReadAccess::Everything {
            self.link_all(&walls.writable);
        }
        if plan.root_is_writable() {
            self.bind(Path::new("/sys"), RDONLY | NOSUID | NODEV)
                .at(Stage::Mounts, "mount /sys read-only")?;
        }
        Ok(())
    }

    pub(crate) fn hide(&self, plan: &Plan) -> Result<(), Failure> {
        for path in &plan.hidden {
            self.blank(path).at(Stage::Mounts, &format!("hide {}", path.display()))?;
        }
        Ok(())
    }

    /// Covers a path with nothing: an empty folder or file that cannot be read. One that is not there stays so.
    pub(crate) fn blank(&self, path: &Path) -> io::Result<()> {
        let target = match self.open(path) {
            Ok(target) => target,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let folder = fstat(&target)?.st_mode & libc::S_IFMT == libc::S_IFDIR;
        let blank = stage(if folder { "folder" } else { "file" });
        attach(clone_tree(&blank, RDONLY | NOSUID | NODEV)?, &target)
    }

    /// Puts a detached mount at a path of the new root.
    pub(crate) fn put(&self, mount: &OwnedFd, path: &Path) -> io::Result<()> {
        attach(mount, self.make_target(path, true)?)
    }

    /// Makes the new root the only one.
    pub(crate) fn enter(self, walls: &Confinement) -> Result<(), Failure> {
        if walls.read != ReadAccess::Everything {
            sys::mount_setattr(&self.root, RDONLY | NOSUID | NODEV, false)
                .at(Stage::Mounts, "seal the root")?;
        }
        let change = || -> io::Result<()> {
            // On top of the old one, to which no path leads from then on, not even one upwards: whoever arrives at it
            // is passed on to what covers it. To uncover it takes a right over the namespace that nobody inside has.
            // Exchanging the two and taking the old one off would make the kernel wait for all processors.
            attach(&self.root, open_old(Path::new("/"))?)?;
            rustix::process::fchdir(&self.root)?;
            rustix::process::chroot(".")?;
            rustix::process::chdir("/")?;
            Ok(())
        };
        change().at(Stage::Mounts, "change the root")
    }

    fn mount_place(&self, path: &Path, place: Place) -> io::Result<()> {
        let source = open_old(path)?;
        let found = fstat(&source)?;
        if (found.st_dev, found.st_ino) != (place.device, place.inode) {
            return Err(io::Error::other("it was replaced while the command was being started"));
        }
        let attributes = match place.kind {
            Kind::Blank => return self.blank(path),
            Kind::Writable | Kind::Pinned => NOSUID | NODEV,
            Kind::ReadOnly => NOSUID | NODEV | RDONLY,
        };
        let tree = clone_opened(&source, attributes)?;
        let folder = found.st_mode & libc::S_IFMT == libc::S_IFDIR;
        let target = self.make_target(path, folder)?;
        attach(tree, target)
    }

    /// Binds a path of the old root at the same path of the new one.
    fn bind(&self, path: &Path, attributes: u64) -> io::Result<()> {
        let tree = clone_tree(path, attributes)?;
        attach(tree, self.make_target(path, path.is_dir())?)
    }

    /// Shows paths in a root that starts out empty.
    fn show(&self, paths: &[PathBuf]) -> Result<(), Failure> {
        let mut ends: Vec<PathBuf> = paths.iter().filter_map(|path| fs::canonicalize(path).ok()).collect();
        ends.sort();
        for end in ends.iter().filter(|end| end.as_path() != Path::new("/")) {
            self.bind(end, RDONLY | NOSUID | NODEV).at(Stage::Mounts, &format!("show {}", end.display()))?;
        }
        self.link_all(paths);
        Ok(())
    }

    /// A path that leads through symbolic links gets one link that says the same.
    fn link_all(&self, paths: &[PathBuf]) {
        for path in paths {
            let (Ok(end), Some(parent)) = (fs::canonicalize(path), path.parent()) else { continue };
            if end != *path && self.make_target(parent, true).is_ok() {
                // Fails where the way is already there, which is as good.
                let _ = symlink(&end, self.staged(path));
            }
        }
    }

    fn replace_run(&self) -> Result<(), Failure> {
        let run = Path::new("/run");
        if !fs::symlink_metadata(run).is_ok_and(|found| found.is_dir()) {
            return Ok(());
        }
        let replace = || -> io::Result<()> {
            let empty = tmpfs("0755")?;
            self.put(&empty, run)?;
            for path in RUN.iter().map(Path::new).filter(|path| path.exists()) {
                let path = fs::canonicalize(path)?;
                if path.starts_with(run) {
                    self.bind(&path, RDONLY | NOSUID | NODEV)?;
                }
            }
            Ok(())
        };
        replace().at(Stage::Mounts, "replace /run")
    }

    /// Closes `/run` for new names, once everything that belongs there is there.
    pub(crate) fn seal_run(&self) -> Result<(), Failure> {
        match self.open(Path::new("/run")) {
            Ok(run) => sys::mount_setattr(run, RDONLY | NOSUID | NODEV, false).or_else(|error| {
                // Not a mount: an empty root that shows nothing of it.
                if error.raw_os_error() == Some(libc::EINVAL) { Ok(()) } else { Err(error) }
            }),
            Err(_) => Ok(()),
        }
        .at(Stage::Mounts, "seal /run")
    }

    /// The path beneath the stage, for calls that take no folder to start at. Only for what this process made itself.
    fn staged(&self, path: &Path) -> PathBuf {
        stage("root").join(path.strip_prefix("/").unwrap_or(path))
    }

    pub(crate) fn open(&self, path: &Path) -> io::Result<OwnedFd> {
        open_beneath(&self.root, path.strip_prefix("/").unwrap_or(path))
    }

    /// Opens a mount point, making it where the new root is ours.
    fn make_target(&self, path: &Path, folder: bool) -> io::Result<OwnedFd> {
        match self.open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            opened => return opened,
        }
        let staged = self.staged(path);
        if folder {
            fs::create_dir_all(&staged)?;
        } else {
            if let Some(parent) = staged.parent() {
                fs::create_dir_all(parent)?;
            }
            fs::write(&staged, "")?;
        }
        self.open(path)
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

/// An empty file system in memory, not yet attached anywhere.
pub(crate) fn tmpfs(mode: &str) -> io::Result<OwnedFd> {
    new_mount(
        "tmpfs",
        &[("mode", mode)],
        MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV,
    )
}

pub(crate) fn new_mount(
    kind: &str,
    options: &[(&str, &str)],
    attributes: MountAttrFlags,
) -> io::Result<OwnedFd> {
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (key, value) in options {
        fsconfig_set_string(&context, *key, *value)?;
    }
    fsconfig_create(&context)?;
    Ok(fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}

/// Opens a path of the old root that must not lead through any symbolic link.
fn open_old(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?)
}

fn open_beneath(root: &OwnedFd, path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    Ok(openat2(root, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS | ResolveFlags::IN_ROOT)?)
}

pub(crate) fn clone_tree(path: &Path, attributes: u64) -> io::Result<OwnedFd> {
    clone_opened(&open_old(path)?, attributes)
}

pub(crate) fn clone_opened(source: impl AsFd, attributes: u64) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_EMPTY_PATH;
    let tree = open_tree(source, "", flags)?;
    sys::mount_setattr(&tree, attributes, true)?;
    Ok(tree)
}

pub(crate) fn attach(mount: impl AsFd, at: impl AsFd) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(move_mount(mount, "", at, "", flags)?)
}
