//! The last steps before the `exec` of the command.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::failure::At;
use super::landlock::{self, LandlockPart, LandlockRules};
use super::layers::{HelperRequest, SandboxLayer};
use super::limits::ProcessLimits;
use super::seccomp::NetworkFilter;
use super::supervise::Duties;
use super::wire::{self, StartFailure, StartStage};
use super::{privileges, report, seccomp, supervise, sys};
use crate::{Confinement, Strength};

/// The search path if the environment has none.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Executes the command. A failure is written to `report`, which closes on success. `handover` leads to the supervisor,
/// if there is one.
pub(crate) fn become_command(
    request: &HelperRequest,
    rules: Option<&LandlockRules>,
    limits: ProcessLimits,
    report: &mut File,
    handover: Option<&OwnedFd>,
) -> ! {
    let failure = match prepare(request, rules, limits, handover) {
        Ok(()) => match place_pinned(request.pinned) {
            Ok(()) => execute(request),
            Err(failure) => failure,
        },
        Err(failure) => failure,
    };
    report::tell_failure(report, &failure);
    sys::exit(127)
}

fn prepare(
    request: &HelperRequest,
    rules: Option<&LandlockRules>,
    limits: ProcessLimits,
    handover: Option<&OwnedFd>,
) -> Result<(), StartFailure> {
    let order = &request.order;
    sys::default_signals();
    sys::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL.unsigned_abs().into())
        .at(StartStage::Exec, "be told of a death")?;
    rustix::process::setsid().at(StartStage::Exec, "begin a session")?;
    if order.terminal {
        rustix::process::ioctl_tiocsctty(rustix::stdio::stdin()).at(StartStage::Exec, "take the terminal")?;
    }
    limits.apply()?;
    if let Some(user) = &request.user {
        privileges::become_command_user(user)?;
        // The kernel clears it when the process changes its user.
        sys::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL.unsigned_abs().into())
            .at(StartStage::Exec, "be told of a death")?;
    }
    rustix::process::chdir(&order.cwd)
        .at(StartStage::Directory, &format!("enter {}", order.cwd.display()))?;
    let (Some(confinement), Some(rules)) = (&order.confinement, rules) else { return Ok(()) };
    // With namespaces this was done before the fork, except for what the supervisor needs.
    let privileged = confinement.strength == Strength::LandlockOnly || handover.is_some();
    if privileged && request.has(SandboxLayer::Privileges) {
        privileges::drop_all()?;
    }
    sys::prctl(libc::PR_SET_NO_NEW_PRIVS, 1).at(StartStage::Privileges, "refuse new privileges")?;
    let duties = Duties::of(request, confinement);
    if request.has(SandboxLayer::Landlock) {
        // The supervisor has applied the other rules to itself, and so to this process.
        landlock::enforce(rules, if duties.names { LandlockPart::Supervised } else { LandlockPart::All })?;
    }
    if request.has(SandboxLayer::Seccomp) {
        let listener = seccomp::enforce(network(confinement, duties.connections), duties.names)?;
        if let (Some(listener), Some(handover)) = (listener, handover) {
            supervise::hand_over(&listener, handover)
                .at(StartStage::Seccomp, "hand over to the supervisor")?;
        }
    }
    Ok(())
}

/// Without a process namespace the listener of a Unix socket cannot be identified.
fn network(confinement: &Confinement, supervised: bool) -> NetworkFilter {
    match (confinement.network, supervised) {
        (false, _) => NetworkFilter::None,
        (true, true) => NetworkFilter::Supervised,
        (true, false) => NetworkFilter::Unwatched { local_sockets: confinement.strength == Strength::Full },
    }
}

/// Moves pinned files to the descriptors that the command line names.
fn place_pinned(count: u32) -> Result<(), StartFailure> {
    for number in 0..count.cast_signed() {
        let file =
            sys::inherited(wire::PINNED_FD + number).at(StartStage::Order, "take over a pinned file")?;
        let placed = rustix::io::fcntl_dupfd_cloexec(&file, wire::PINNED_AT + number)
            .at(StartStage::Exec, "place a pinned file")?;
        // The command's children read it too.
        rustix::io::fcntl_setfd(&placed, rustix::io::FdFlags::empty())
            .at(StartStage::Exec, "pass on a pinned file")?;
        if std::os::fd::IntoRawFd::into_raw_fd(placed) != wire::PINNED_AT + number {
            return Err(StartFailure::new(StartStage::Exec, "the place of a pinned file is taken"));
        }
    }
    Ok(())
}

/// The Landlock rules inside a new root, which contains only what may be read.
pub(crate) fn landlock_rules<'a>(
    confinement: &Confinement,
    writable: impl Iterator<Item = &'a Path>,
) -> LandlockRules {
    let writable = writable.chain([Path::new("/dev/shm")]).map(Path::to_owned).collect();
    LandlockRules {
        readable: vec![PathBuf::from("/")],
        listable: Vec::new(),
        writable,
        network: confinement.network,
    }
}

fn execute(request: &HelperRequest) -> StartFailure {
    match try_execute(request) {
        Ok(failure) | Err(failure) => failure,
    }
}

fn try_execute(request: &HelperRequest) -> Result<StartFailure, StartFailure> {
    let order = &request.order;
    let text = |text: &str| CString::new(text).at(StartStage::Exec, "pass on a text with a zero byte");
    let argv: Vec<CString> = order.argv.iter().map(|word| text(word)).collect::<Result<_, _>>()?;
    let env: Vec<CString> =
        order.env.iter().map(|(name, value)| text(&format!("{name}={value}"))).collect::<Result<_, _>>()?;
    let Some(name) = order.argv.first() else {
        return Err(StartFailure::new(StartStage::Exec, "the command is empty"));
    };
    let path = order.env.get("PATH").map_or(DEFAULT_PATH, String::as_str);
    let mut error = io::Error::from_raw_os_error(libc::ENOENT);
    for candidate in candidates(name, path) {
        let program =
            CString::new(candidate.as_os_str().as_bytes()).at(StartStage::Exec, "name the program")?;
        let tried = exec_or_shell(&program, &argv, &env);
        // Continues the search, but keeps this error as the better explanation.
        match tried.raw_os_error() {
            Some(libc::ENOENT | libc::ENOTDIR) => {}
            // A folder that this user cannot access has nothing to run.
            Some(libc::EACCES) if is_out_of_sight(&candidate) => {}
            Some(libc::EACCES) => error = tried,
            _ => {
                error = tried;
                break;
            }
        }
    }
    Ok(StartFailure::new(StartStage::Exec, format!("cannot run {name}: {error}")))
}

fn is_out_of_sight(program: &Path) -> bool {
    std::fs::symlink_metadata(program).is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
}

/// The candidates for a program: the path itself, or its name in every folder of the search path.
fn candidates(name: &str, path: &str) -> Vec<PathBuf> {
    if name.is_empty() || name.contains('/') {
        return vec![PathBuf::from(name)];
    }
    path.split(':')
        .map(|folder| Path::new(OsStr::new(if folder.is_empty() { "." } else { folder })).join(name))
        .collect()
}

/// A script without an interpreter line is run by the shell, as shells do.
fn exec_or_shell(program: &CString, argv: &[CString], env: &[CString]) -> io::Error {
    let env: Vec<_> = env.iter().map(CString::as_c_str).collect();
    let words: Vec<_> = argv.iter().map(CString::as_c_str).collect();
    let error = sys::exec(program, &words, &env);
    if error.raw_os_error() != Some(libc::ENOEXEC) {
        return error;
    }
    let shell = [c"/bin/sh", program.as_c_str()];
    let words: Vec<_> = shell.into_iter().chain(words.into_iter().skip(1)).collect();
    sys::exec(c"/bin/sh", &words, &env)
}
