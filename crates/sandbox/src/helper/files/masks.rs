//! A new `/proc` that shows only the command's own processes and is not writable.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::mount::MountAttrFlags;

use super::failure::At;
use super::layers::{HelperRequest, SandboxLayer};
use super::mount::NewRoot;
use super::sys;
use super::tree::{clone_tree, new_mount};
use super::wire::{StartFailure, StartStage};

/// Files of `/proc` that expose the machine's memory and keys, or accept commands.
const HIDDEN: &[&str] = &[
    "/proc/acpi",
    "/proc/kcore",
    "/proc/keys",
    "/proc/kmsg",
    "/proc/kpagecgroup",
    "/proc/kpagecount",
    "/proc/kpageflags",
    "/proc/latency_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/sysrq-trigger",
    "/proc/timer_list",
    "/proc/vmallocinfo",
];

/// Mounted before the old `/proc` is covered: the kernel allows a new one only to a process that sees a whole old one.
pub(crate) fn fresh(request: &HelperRequest) -> Result<OwnedFd, StartFailure> {
    if !request.has(SandboxLayer::ProcessNamespace) {
        return old().at(StartStage::Mounts, "keep /proc");
    }
    let mut attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    if request.has(SandboxLayer::ProcMasks) {
        attributes |= MountAttrFlags::MOUNT_ATTR_RDONLY;
    }
    new_mount("proc", &[], attributes).map_err(|error| {
        let why = match error.kind() {
            io::ErrorKind::PermissionDenied => " (a container that hides parts of /proc does not allow it)",
            _ => "",
        };
        StartFailure::new(StartStage::Mounts, format!("cannot mount a new /proc: {error}{why}"))
    })
}

pub(crate) fn hide(root: &NewRoot) -> Result<(), StartFailure> {
    for path in HIDDEN {
        root.blank(Path::new(path)).at(StartStage::Mounts, &format!("hide {path}"))?;
    }
    Ok(())
}

/// Without a process namespace, which only tests leave out, it uses the old one.
fn old() -> io::Result<OwnedFd> {
    clone_tree(Path::new("/proc"), sys::NOSUID | sys::NODEV)
}
