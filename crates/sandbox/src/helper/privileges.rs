//! Drops privileges: another user id, no capabilities, and no way to gain any.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;

use rustix::fs::{CWD, Mode, OFlags, openat};

use super::failure::At;
use super::supervise::calls;
use super::sys;
use super::wire::{StartFailure, StartStage};
use crate::command_user::CommandUser;

/// The apparent user of a command if the server runs as root.
pub(crate) const USER_FOR_ROOT: u32 = 1000;

/// The user and group of this process as seen from outside.
#[derive(Debug, Clone, Copy)]
pub(crate) struct User {
    uid: u32,
    gid: u32,
    /// To the outside the command has an unused user id, not the server's.
    pub(crate) is_stranger: bool,
}

impl User {
    pub(crate) fn current() -> Self {
        let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        Self { uid, gid, is_stranger: false }
    }

    pub(crate) fn is_root(self) -> bool {
        self.uid == 0
    }

    /// Root of the new namespace while the sandbox is built: only root can mount a terminal file system.
    ///
    /// Only a process outside can map more than one user; then `mapped` signals when it is done.
    pub(crate) fn map_to_root(self, proc: &HostProc, mapped: Option<&OwnedFd>) -> Result<(), StartFailure> {
        if let Some(mapped) = mapped {
            let told = rustix::io::retry_on_intr(|| rustix::io::read(mapped, &mut [0_u8; 1]));
            return match told {
                Ok(1) => Ok(()),
                _ => Err(StartFailure::new(StartStage::Namespaces, "cannot map users: the helper gave up")),
            };
        }
        proc.write_maps(&format!("0 {} 1", self.uid), &format!("0 {} 1", self.gid))
    }

    /// Then a nested namespace without a root.
    ///
    /// Files keep their owner: to the outside the command is still the server's user, unless that is root. All mounts
    /// belong to the outer namespace, out of reach even for the inner one's capabilities.
    pub(crate) fn step_down(self, proc: &HostProc) -> Result<(), StartFailure> {
        if self.is_stranger {
            return step_down_as_stranger(proc);
        }
        let inside = |id| if id == 0 { USER_FOR_ROOT } else { id };
        sys::unshare(libc::CLONE_NEWUSER).at(StartStage::Namespaces, "make the inner user namespace")?;
        proc.write_maps(&format!("{} 0 1", inside(self.uid)), &format!("{} 0 1", inside(self.gid)))
    }
}

fn step_down_as_stranger(proc: &HostProc) -> Result<(), StartFailure> {
    let stage = StartStage::Namespaces;
    // Keeps the namespace's capabilities until the nested one exists, despite the change of user.
    sys::prctl(libc::PR_SET_SECUREBITS, libc::SECBIT_NO_SETUID_FIXUP.unsigned_abs().into())
        .at(stage, "keep capabilities")?;
    sys::become_user(USER_FOR_ROOT).at(stage, "become another user")?;
    // A process that changed its user cannot write its own maps otherwise.
    sys::prctl(libc::PR_SET_DUMPABLE, 1).at(stage, "be open to itself")?;
    sys::unshare(libc::CLONE_NEWUSER).at(stage, "make the inner user namespace")?;
    let map = format!("{USER_FOR_ROOT} {USER_FOR_ROOT} 1");
    proc.write_maps(&map, &map)
}

/// The original `/proc`, usable even when it is no longer visible.
pub(crate) struct HostProc(pub(crate) OwnedFd);

impl HostProc {
    pub(crate) fn open() -> Result<Self, StartFailure> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        openat(CWD, "/proc", flags, Mode::empty()).map(Self).at(StartStage::Namespaces, "open /proc")
    }

    fn write_maps(&self, users: &str, groups: &str) -> Result<(), StartFailure> {
        for (name, text) in [("setgroups", "deny"), ("uid_map", users), ("gid_map", groups)] {
            self.write(name, text)
                .at(StartStage::Namespaces, &format!("write {name} of a user namespace"))?;
        }
        Ok(())
    }

    fn write(&self, name: &str, text: &str) -> io::Result<()> {
        let file = openat(&self.0, format!("self/{name}"), OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
        File::from(file).write_all(text.as_bytes())
    }
}

/// Becomes another user permanently: no setuid program helps it back.
pub(crate) fn become_command_user(user: &CommandUser) -> Result<(), StartFailure> {
    sys::become_user_of_group(user.id, user.group)
        .at(StartStage::Privileges, "become the user of commands")?;
    drop_all()
}

/// From now on, neither this process nor anything it executes has a capability or can gain one.
pub(crate) fn drop_all() -> Result<(), StartFailure> {
    refuse_new()?;
    sys::clear_capabilities().at(StartStage::Privileges, "drop capabilities")
}

/// The same for the supervisor of a command, which must be able to read the command's processes.
pub(crate) fn drop_for_supervisor() -> Result<(), StartFailure> {
    refuse_new()?;
    calls::keep_looking_into_processes().at(StartStage::Privileges, "drop capabilities")
}

/// No capability can be gained from now on.
fn refuse_new() -> Result<(), StartFailure> {
    const SECUREBITS: i32 = libc::SECBIT_NOROOT
        | libc::SECBIT_NOROOT_LOCKED
        | libc::SECBIT_NO_SETUID_FIXUP
        | libc::SECBIT_NO_SETUID_FIXUP_LOCKED
        | libc::SECBIT_KEEP_CAPS_LOCKED;
    let stage = StartStage::Privileges;
    sys::prctl(libc::PR_SET_NO_NEW_PRIVS, 1).at(stage, "refuse new privileges")?;
    sys::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL.unsigned_abs().into())
        .at(stage, "clear ambient capabilities")?;
    // Both need a capability, which a process outside a user namespace may not have. Then there is nothing to drop: its
    // permitted set is empty.
    let may_drop = sys::prctl(libc::PR_SET_SECUREBITS, SECUREBITS.unsigned_abs().into()).is_ok();
    for capability in 0..64 {
        match sys::prctl(libc::PR_CAPBSET_DROP, capability) {
            // Past the last capability of this kernel.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => break,
            Err(error) if may_drop => return Err(error).at(stage, "empty the bounding set"),
            _ => {}
        }
    }
    Ok(())
}
