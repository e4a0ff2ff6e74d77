//! Starts the helper: this same program under another name, with its descriptors only.

use std::ffi::CString;
use std::io::{self, Seek, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, kill_process, pidfd_open, waitpid};
use serde::Serialize;

use super::stdio::Theirs;
use crate::command_user::{CommandUser, command_user};
use crate::helper::{self, wire};
use crate::open_files;
use crate::order::Order;

/// The descriptors of the helper, in their order from zero.
pub(crate) struct Descriptors {
    pub(crate) stdio: Theirs,
    pub(crate) order: OwnedFd,
    pub(crate) control: OwnedFd,
    pub(crate) status: OwnedFd,
    /// Files with pinned contents.
    pub(crate) pinned: Vec<OwnedFd>,
    /// See `helper::shared_mapping`.
    pub(crate) mapping: Option<&'static OwnedFd>,
}

/// A helper that is not reaped yet, so its process id stays valid.
#[derive(Debug)]
pub(crate) struct UnreapedHelper {
    pub(crate) pid: Pid,
    /// Becomes readable when it ends.
    pub(crate) pidfd: OwnedFd,
}

/// The message that the helper reads, see `HelperRequest`.
#[derive(Serialize)]
struct HelperMessage<'a> {
    #[serde(flatten)]
    order: &'a Order,
    open_files: Option<u64>,
    pinned: usize,
    mapping: bool,
    user: Option<&'a CommandUser>,
}

/// The order as a sealed file.
pub(crate) fn order_file(order: &Order, pinned: usize, mapping: bool) -> io::Result<OwnedFd> {
    let fd = memfd_create(wire::NAME, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    let mut file = std::fs::File::from(fd);
    // The sandbox has its own user.
    let user = command_user().filter(|_| order.confinement.is_none());
    let message = HelperMessage { order, open_files: open_files::of_commands(), pinned, mapping, user };
    file.write_all(&serde_json::to_vec(&message)?)?;
    file.rewind()?;
    fcntl_add_seals(&file, SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL)?;
    Ok(file.into())
}

/// Does not copy this process's memory, so its cost does not grow with the server. The helper itself resets ignored
/// signals, and closes leaked descriptors.
pub(crate) fn launch(descriptors: Descriptors) -> io::Result<UnreapedHelper> {
    let Descriptors { stdio: Theirs { stdin, stdout, stderr }, order, control, status, pinned, mapping } =
        descriptors;
    let mut wanted = vec![
        (stdin, libc::STDIN_FILENO),
        (stdout, libc::STDOUT_FILENO),
        (stderr, libc::STDERR_FILENO),
        (order, wire::ORDER_FD),
        (control, wire::CONTROL_FD),
        (status, wire::STATUS_FD),
    ];
    let mapping = mapping.map(OwnedFd::try_clone).transpose()?;
    wanted.extend(pinned.into_iter().chain(mapping).zip(wire::PINNED_FD..));
    // Duplicated to higher numbers first: a server that was started without standard streams has low numbers in use,
    // and placing one descriptor must not close another.
    let above = wanted.iter().map(|(_, place)| place + 1).max().unwrap_or_default();
    let sources =
        wanted.iter().map(|(fd, _)| fcntl_dupfd_cloexec(fd, above)).collect::<Result<Vec<_>, _>>()?;
    let mut actions = FileActions::new()?;
    for (source, (_, place)) in sources.iter().zip(&wanted) {
        actions.place(source.as_raw_fd(), *place)?;
    }
    let pid = spawn(&actions)?;
    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(pidfd) => Ok(UnreapedHelper { pid, pidfd }),
        Err(error) => {
            // It has done nothing yet, and could not be supervised.
            let _ = kill_process(pid, Signal::KILL);
            let _ = waitpid(Some(pid), WaitOptions::empty());
            Err(error.into())
        }
    }
}

fn spawn(actions: &FileActions) -> io::Result<Pid> {
    let program = CString::new(helper::program())?;
    let name = CString::new(wire::NAME)?;
    let argv = [name.as_ptr().cast_mut(), std::ptr::null_mut()];
    let no_environment = [std::ptr::null_mut()];
    let mut pid = 0;
    #[expect(unsafe_code, reason = "the standard library can place only three descriptors without forking")]
    // SAFETY: there need not be attributes, every other pointer is to a live value of this function or of its argument,
    // `argv` and the environment end with null, and the call does not keep or change what they point to.
    let result = unsafe {
        libc::posix_spawn(
            &raw mut pid,
            program.as_ptr(),
            actions.0.as_ptr(),
            std::ptr::null(),
            argv.as_ptr(),
            no_environment.as_ptr(),
        )
    };
    check(result)?;
    Pid::from_raw(pid).ok_or_else(|| io::Error::other("the system gave no process id"))
}

/// The changes to descriptors between fork and exec. Boxed, because it must not move.
struct FileActions(Box<MaybeUninit<libc::posix_spawn_file_actions_t>>);

impl FileActions {
    fn new() -> io::Result<Self> {
        let mut actions = Box::new(MaybeUninit::uninit());
        #[expect(unsafe_code, reason = "a C type that only this call can set up")]
        // SAFETY: the pointer is to writable memory of the right size and alignment.
        let result = unsafe { libc::posix_spawn_file_actions_init(actions.as_mut_ptr()) };
        check(result).map(|()| Self(actions))
    }

    fn place(&mut self, source: RawFd, place: RawFd) -> io::Result<()> {
        #[expect(unsafe_code, reason = "the only way to add to the C type")]
        // SAFETY: `new` has set the value up, and numbers that are no descriptors are an error, not undefined.
        check(unsafe { libc::posix_spawn_file_actions_adddup2(self.0.as_mut_ptr(), source, place) })
    }
}

impl Drop for FileActions {
    fn drop(&mut self) {
        #[expect(unsafe_code, reason = "what the C type holds must be freed by its own call")]
        // SAFETY: `new` has set the value up, and it is not used again.
        unsafe {
            libc::posix_spawn_file_actions_destroy(self.0.as_mut_ptr());
        }
    }
}

/// These calls return the error instead of setting `errno`.
fn check(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(result)) }
}
