//! Creates and renames paths on behalf of a command, so that no protected name is created at any depth.
//!
//! The supervisor copies the path, opens the parent folder, checks its own copy of the last name, and uses only these
//! two: later changes by the command have no effect.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, RenameFlags, linkat, makedev, mkdirat, mknodat, renameat_with, statat,
    symlinkat,
};

use super::calls::{self, Notification, low_half};
use super::connect::still_waiting;
use super::domains::Rights;
use super::target::Target;
use super::withheld::{WithheldName, is_on_the_way, is_withheld};

/// The calls that create a name, except for plain files; see `create` for those.
pub(in super::super) const CALLS: &[i64] = &[
    #[cfg(target_arch = "x86_64")]
    libc::SYS_link,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_mkdir,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_mknod,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_rename,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_symlink,
    libc::SYS_renameat,
    libc::SYS_linkat,
    libc::SYS_mkdirat,
    libc::SYS_mknodat,
    libc::SYS_renameat2,
    libc::SYS_symlinkat,
];

/// A path in the command's memory, and the descriptor it is relative to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PathArgument {
    folder: i32,
    path: u64,
}

/// What to create. Numbers are the command's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Folder { mode: u64 },
    Node { mode: u64, device: u64 },
    Link { text: u64 },
    HardLink { from: PathArgument, flags: i32 },
    Rename { from: PathArgument, flags: i32 },
}

/// `None` for other calls.
fn decode(call: i64, arguments: [u64; 6]) -> Option<(Action, PathArgument)> {
    let [a, b, c, d, e, _] = arguments;
    let at = |folder: u64, path: u64| PathArgument { folder: low_half(folder), path };
    let here = |path: u64| PathArgument { folder: libc::AT_FDCWD, path };
    Some(match call {
        #[cfg(target_arch = "x86_64")]
        libc::SYS_mkdir => (Action::Folder { mode: b }, here(a)),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_mknod => (Action::Node { mode: b, device: c }, here(a)),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_symlink => (Action::Link { text: a }, here(b)),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_link => (Action::HardLink { from: here(a), flags: 0 }, here(b)),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_rename => (Action::Rename { from: here(a), flags: 0 }, here(b)),
        libc::SYS_renameat => (Action::Rename { from: at(a, b), flags: 0 }, at(c, d)),
        libc::SYS_mkdirat => (Action::Folder { mode: c }, at(a, b)),
        libc::SYS_mknodat => (Action::Node { mode: c, device: d }, at(a, b)),
        libc::SYS_symlinkat => (Action::Link { text: a }, at(b, c)),
        libc::SYS_linkat => (Action::HardLink { from: at(a, b), flags: low_half(e) }, at(c, d)),
        libc::SYS_renameat2 => (Action::Rename { from: at(a, b), flags: low_half(e) }, at(c, d)),
        _ => return None,
    })
}

/// A name in an open folder; `None` is the root, for a path without another folder.
struct Name {
    folder: Option<OwnedFd>,
    /// Including trailing slashes, which require a folder.
    name: Vec<u8>,
}

impl Name {
    fn find(target: Target, place: PathArgument) -> io::Result<Self> {
        Self::of(target, place.folder, &calls::text_of(target.thread, place.path)?)
    }

    fn of(target: Target, from: i32, path: &[u8]) -> io::Result<Self> {
        let (folder, name) = split(path);
        let folder = if folder == b"/" { None } else { Some(target.open_folder(from, folder)?) };
        Ok(Self { folder, name: name.to_vec() })
    }

    fn folder(&self) -> BorrowedFd<'_> {
        self.folder.as_ref().map_or(CWD, OwnedFd::as_fd)
    }

    /// `None` for the root.
    fn held(&self) -> Option<BorrowedFd<'_>> {
        self.folder.as_ref().map(OwnedFd::as_fd)
    }

    fn name(&self) -> &OsStr {
        OsStr::from_bytes(&self.name)
    }

    fn exists(&self) -> bool {
        statat(self.folder(), self.name(), AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }
}

/// The parent folder and the last name of a path. Without a slash before the name the folder is empty.
pub(super) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    let end = path.iter().rposition(|byte| *byte != b'/').map_or(0, |last| last + 1);
    match path[..end].iter().rposition(|byte| *byte == b'/') {
        Some(slash) if path[..slash].iter().all(|byte| *byte == b'/') => (b"/", path),
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None if end == 0 && !path.is_empty() => (b"/", path),
        None => (b"", path),
    }
}

/// The last name of a path, without slashes.
pub(super) fn last_name(path: &[u8]) -> Option<&[u8]> {
    path.split(|byte| *byte == b'/').rfind(|part| !part.is_empty())
}

/// Which names must not be created.
#[derive(Debug, Clone, Copy)]
pub(super) struct NameGuard {
    pub(super) protects: bool,
    /// Whether a process inside has changed its umask. Until then it equals this process's initial one and need not be
    /// looked up, which is expensive.
    pub(super) mask_changed: bool,
    /// Individual names that must not be created either.
    pub(super) withheld: &'static [WithheldName],
}

impl NameGuard {
    pub(super) fn forbids(self, path: &[u8]) -> bool {
        self.protects && last_name(path).is_some_and(|last| names::is_protected(OsStr::from_bytes(last)))
    }

    /// Whether this name must not be created in that folder.
    fn withholds(self, name: &Name) -> bool {
        self.forbids(&name.name) || is_withheld(self.withheld, name.held(), &name.name)
    }

    /// The same for renames and links, which may contain or lead to anything.
    fn withholds_moved(self, name: &Name) -> bool {
        self.withholds(name) || is_on_the_way(self.withheld, name.held(), &name.name)
    }

    /// Uses the target's umask for what is created next.
    pub(super) fn take_over_mask(self, target: Target) -> io::Result<()> {
        if self.mask_changed { target.take_over_mask() } else { Ok(()) }
    }

    /// Performs the call, or returns the error. `None` if the call does not create names.
    pub(super) fn answer(
        self,
        listener: &OwnedFd,
        asked: &Notification,
        target: Target,
        rights: Rights<'_>,
    ) -> Option<io::Result<()>> {
        let (action, to) = decode(asked.call, asked.arguments)?;
        let wait = || still_waiting(listener, asked.id);
        Some(self.act(target, rights, action, to, wait))
    }

    fn act(
        self,
        target: Target,
        rights: Rights<'_>,
        action: Action,
        to: PathArgument,
        wait: impl Fn() -> io::Result<()>,
    ) -> io::Result<()> {
        let to = Name::find(target, to)?;
        match action {
            Action::Folder { mode } => {
                self.take_over_mask(target)?;
                wait()?;
                self.check_new(&to)?;
                rights.run(move || mkdirat(to.folder(), to.name(), mode_of(mode)))??;
            }
            Action::Node { mode, device } => {
                self.take_over_mask(target)?;
                wait()?;
                self.check_new(&to)?;
                let device = makedev(device_part(device, 8, 0xfff), device_part(device, 0, 0xff));
                let (kind, mode) = (kind_of(mode), mode_of(mode));
                rights.run(move || mknodat(to.folder(), to.name(), kind, mode, device))??;
            }
            Action::Link { text } => {
                let text = calls::text_of(target.thread, text)?;
                wait()?;
                self.check_new(&to)?;
                if is_on_the_way(self.withheld, to.held(), &to.name) {
                    return Err(io::Error::from_raw_os_error(libc::EACCES));
                }
                rights.run(move || symlinkat(OsStr::from_bytes(&text), to.folder(), to.name()))??;
            }
            Action::HardLink { from, flags } => {
                let flags = AtFlags::from_bits_retain(flags.unsigned_abs());
                let path = calls::text_of(target.thread, from.path)?;
                let follow = flags.contains(AtFlags::SYMLINK_FOLLOW);
                // How an unnamed file gets a name.
                let own = if follow { target.own_descriptor(&path)? } else { None };
                let from = match &own {
                    Some(file) => Name { folder: None, name: link_to(file) },
                    None => Name::of(target, from.folder, &path)?,
                };
                wait()?;
                self.check_new(&to)?;
                let link = move || {
                    let linked = linkat(from.folder(), from.name(), to.folder(), to.name(), flags);
                    drop(own);
                    linked
                };
                rights.run(link)??;
            }
            Action::Rename { from, flags } => {
                let from = Name::find(target, from)?;
                let flags = RenameFlags::from_bits_retain(flags.unsigned_abs());
                wait()?;
                let exchanged = flags.contains(RenameFlags::EXCHANGE) && self.withholds_moved(&from);
                if exchanged || self.withholds_moved(&to) {
                    return Err(io::Error::from_raw_os_error(libc::EACCES));
                }
                let rename = move || renameat_with(from.folder(), from.name(), to.folder(), to.name(), flags);
                rights.run(rename)??;
            }
        }
        Ok(())
    }

    fn check_new(self, name: &Name) -> io::Result<()> {
        let code = match self.withholds(name) {
            false => return Ok(()),
            true if name.exists() => libc::EEXIST,
            true => libc::EACCES,
        };
        Err(io::Error::from_raw_os_error(code))
    }
}

fn link_to(file: &OwnedFd) -> Vec<u8> {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into_bytes()
}

fn mode_of(mode: u64) -> Mode {
    Mode::from_raw_mode(low_half(mode).unsigned_abs() & 0o7777)
}

/// No type means a plain file.
fn kind_of(mode: u64) -> FileType {
    match low_half(mode).unsigned_abs() & libc::S_IFMT {
        0 => FileType::RegularFile,
        kind => FileType::from_raw_mode(kind),
    }
}

/// The kernel takes device numbers in 32 bits, whose middle 12 are the major number.
fn device_part(device: u64, shift: u32, mask: u32) -> u32 {
    let device = low_half(device).unsigned_abs();
    let high = if shift == 0 { (device >> 12) & 0xfff_ff00 } else { 0 };
    ((device >> shift) & mask) | high
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_split_before_the_last_name() {
        for (path, folder, name) in [
            ("a", "", "a"),
            ("a/", "", "a/"),
            ("a/b//", "a", "b//"),
            ("../b", "..", "b"),
            ("/a", "/", "/a"),
            ("//a/", "/", "//a/"),
            ("/a/b", "/a", "b"),
            ("/", "/", "/"),
            ("", "", ""),
        ] {
            assert_eq!(split(path.as_bytes()), (folder.as_bytes(), name.as_bytes()), "{path}");
        }
    }

    #[test]
    fn protected_names_are_recognised_in_any_form() {
        let guard = NameGuard { protects: true, mask_changed: false, withheld: &[] };
        let has = |name: &str| guard.forbids(name.as_bytes());
        for name in [".git", ".GIT", ".git/", "/.git//", ".g\u{200c}it", ".\u{feff}Codex", ".g\u{ad}it"] {
            assert!(has(name), "{name:?}");
        }
        for name in [".gitignore", "git", ".git2", ".", "..", "", "/", ".github"] {
            assert!(!has(name), "{name:?}");
        }
    }

    #[test]
    fn every_call_is_understood() {
        for call in CALLS {
            assert!(decode(*call, [0; 6]).is_some(), "{call}");
        }
        assert_eq!(decode(libc::SYS_connect, [0; 6]), None);
        let here = |path| PathArgument { folder: libc::AT_FDCWD, path };
        let at = |folder, path| PathArgument { folder, path };
        assert_eq!(
            decode(libc::SYS_linkat, [1, 2, 3, 4, 5, 6]),
            Some((Action::HardLink { from: at(1, 2), flags: 5 }, at(3, 4)))
        );
        assert_eq!(
            decode(libc::SYS_symlinkat, [1, 0xffff_ff9c, 3, 0, 0, 0]),
            Some((Action::Link { text: 1 }, here(3)))
        );
    }

    #[test]
    fn numbers_of_devices_are_taken_apart() {
        let device = libc::makedev(0x123, 0x45678);
        assert_eq!((device_part(device, 8, 0xfff), device_part(device, 0, 0xff)), (0x123, 0x45678));
    }
}
