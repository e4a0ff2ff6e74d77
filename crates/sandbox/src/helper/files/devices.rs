//! A small `/dev`: harmless devices, its own terminals, and private shared memory.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, mkdirat, openat, symlinkat};
use rustix::mount::{MountAttrFlags, OpenTreeFlags, open_tree};

use super::failure::At;
use super::mount::NewRoot;
use super::sys::{self, NOEXEC, NOSUID, RDONLY};
use super::tree::{attach, clone_opened, new_mount, tmpfs};
use super::wire::{StartFailure, StartStage};

const DEVICES: &[&str] = &["full", "null", "random", "tty", "urandom", "zero"];
const LINKS: &[(&str, &str)] = &[
    ("fd", "/proc/self/fd"),
    ("ptmx", "pts/ptmx"),
    ("stderr", "/proc/self/fd/2"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
];

/// Opened while the old `/dev` is still visible.
pub(crate) struct Devices {
    known: Vec<(&'static str, OwnedFd)>,
    /// The terminal on standard input.
    terminal: Option<OwnedFd>,
}

impl Devices {
    pub(crate) fn open(terminal: bool) -> Result<Self, StartFailure> {
        let open = |name| -> io::Result<OwnedFd> {
            let path = Path::new("/dev").join(name);
            let device =
                openat(CWD, &path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
            if FileType::from_raw_mode(fstat(&device)?.st_mode) != FileType::CharacterDevice {
                return Err(io::Error::other("not a device"));
            }
            clone_opened(device, NOSUID | NOEXEC)
        };
        let devices = DEVICES
            .iter()
            .map(|name| Ok((*name, open(*name).at(StartStage::Mounts, &format!("take /dev/{name}"))?)));
        let terminal = terminal.then(own_terminal).flatten();
        Ok(Self { known: devices.collect::<Result<_, _>>()?, terminal })
    }

    /// Puts the new `/dev` into the new root.
    pub(crate) fn mount(self, root: &NewRoot) -> Result<(), StartFailure> {
        self.fill(root).at(StartStage::Mounts, "make /dev")
    }

    fn fill(self, root: &NewRoot) -> io::Result<()> {
        let dev = tmpfs("0755")?;
        root.put(&dev, Path::new("/dev"))?;
        for (name, device) in self.known {
            attach(device, touch(&dev, name)?)?;
        }
        for (name, target) in LINKS {
            symlinkat(*target, &dev, *name)?;
        }
        let folder = Mode::from_raw_mode(0o755);
        mkdirat(&dev, "pts", folder)?;
        mkdirat(&dev, "shm", folder)?;
        let terminals = [("ptmxmode", "0666"), ("mode", "0620")];
        let private = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        root.put(&new_mount("devpts", &terminals, private)?, Path::new("/dev/pts"))?;
        root.put(&tmpfs("1777")?, Path::new("/dev/shm"))?;
        // With a name, so that programs can find it.
        if let Some(terminal) = self.terminal {
            attach(terminal, touch(&dev, "console")?)?;
        }
        sys::mount_setattr(&dev, RDONLY | NOSUID | NOEXEC, false)
    }
}

/// A terminal may belong to a file system that is not mounted here; then it has no name.
fn own_terminal() -> Option<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let name = rustix::termios::ttyname(rustix::stdio::stdin(), Vec::new()).ok()?;
    open_tree(CWD, name.as_c_str(), flags).ok()
}

fn touch(folder: impl AsFd, name: &str) -> io::Result<OwnedFd> {
    let flags = OFlags::CREATE | OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    Ok(openat(folder, name, flags, Mode::from_raw_mode(0o666))?)
}
