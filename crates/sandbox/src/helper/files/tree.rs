//! Individual mounts: creating, opening, copying and attaching them, all by descriptor.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, fstat, openat, openat2};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create,
    fsconfig_set_string, fsmount, fsopen, move_mount, open_tree,
};

use super::sys;

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

/// Opens a path of the old root without following any symbolic link.
pub(crate) fn open_old(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?)
}

pub(crate) fn open_beneath(root: &OwnedFd, path: &Path) -> io::Result<OwnedFd> {
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

pub(crate) fn make_file(folder: &OwnedFd, name: &Path) -> io::Result<()> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    openat(folder, name, flags, Mode::from_raw_mode(0o644))?;
    Ok(())
}

pub(crate) fn is_folder(opened: impl AsFd) -> io::Result<bool> {
    Ok(fstat(opened)?.st_mode & libc::S_IFMT == libc::S_IFDIR)
}

pub(crate) fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

pub(crate) fn unless_missing(opened: io::Result<OwnedFd>) -> io::Result<Option<OwnedFd>> {
    match opened {
        Ok(opened) => Ok(Some(opened)),
        Err(error) if is_missing(&error) => Ok(None),
        Err(error) => Err(error),
    }
}
