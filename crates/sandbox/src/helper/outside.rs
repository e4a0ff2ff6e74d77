//! The helper's own part with namespaces: it stays outside, so that it can remove afterwards what it had to put into
//! the real file system, and it kills the first process inside to end the command.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::pipe::{PipeFlags, pipe_with};

use super::cgroup::Group;
use super::failure::At;
use super::inside::{self, Inside};
use super::layers::{HelperRequest, SandboxLayer};
use super::limits::ProcessLimits;
use super::own_files::{self, OwnFiles, STRANGER};
use super::placeholder::Patience;
use super::plan::{MountPlan, WantedMounts};
use super::privileges::{USER_FOR_ROOT, User};
use super::report::{Reports, StartReport};
use super::supervise::Granted;
use super::sys::{self, Forked};
use super::wire::{HelperStatus, StartFailure, StartStage};
use super::{StatusPipe, wait};
use crate::Confinement;

/// Time limit for killed processes to end. Shorter than the server's limit for the helper.
const LONGEST_END: Duration = Duration::from_secs(5);

pub(super) fn run(
    request: &HelperRequest,
    confinement: &Confinement,
    control: &OwnedFd,
    mapping: Option<OwnedFd>,
    status: &mut StatusPipe,
) -> Result<HelperStatus, StartFailure> {
    let mounts = request.has(SandboxLayer::Mounts);
    let wanted = WantedMounts {
        protected: mounts && request.has(SandboxLayer::ProtectedNames),
        hidden: mounts && request.has(SandboxLayer::HiddenPaths),
    };
    let mut plan = MountPlan::make(confinement, &request.order.cwd, wanted, &Patience::new(control))?;
    // Removed on drop, when everything has ended.
    let placeholders = plan.take_placeholders();
    let mut group = Group::make(&request.order.limits);
    let (reports, report) = pipe()?;
    let (ended, end) = pipe()?;
    let mut user = User::current();
    if mounts && user.is_root() && request.has(SandboxLayer::Privileges) && request.has(SandboxLayer::OwnUser)
    {
        plan.own_files = OwnFiles::prepare(confinement, &request.order.cwd, &plan, mapping)?;
        user.is_stranger = plan.own_files.is_some();
    }
    if wanted.hidden && user.is_root() {
        plan.hide_what_only_root_reads();
    }
    let sockets = if confinement.network { confinement.unix_sockets.as_slice() } else { &[] };
    let granted = Granted::open(sockets, &confinement.writable, plan.own_files.as_ref());
    let (mapped, tell_mapped) = pipe()?;
    let forked =
        group.fork(namespaces(request, confinement)).at(StartStage::Namespaces, "make namespaces")?;
    let first = match forked {
        Forked::Child => {
            // A lock is held as long as any copy of its descriptor.
            placeholders.iter().for_each(super::placeholder::Placeholder::forget_in_child);
            drop((reports, ended, tell_mapped));
            let limits = limits(request, &group);
            let mapped = user.is_stranger.then_some(&mapped);
            let inside =
                Inside { request, confinement, plan: &plan, group: &group, user, mapped, limits, granted };
            inside::run(inside, report, end)
        }
        Forked::Parent { child } => child,
    };
    drop((report, end, mapped));
    // The mounts are used by the child.
    plan.own_files = None;
    if user.is_stranger {
        own_files::hand_over_streams(request.order.terminal, STRANGER, STRANGER);
        // On failure, the other side sees the end of the pipe.
        if own_files::write_command_maps(first, USER_FOR_ROOT).is_ok() {
            let _ = rustix::io::write(&tell_mapped, b"m");
        }
    }
    drop(tell_mapped);
    // A reader of the command's output must see its end as soon as the command closes it.
    let _ = sys::close_range(0, 2);
    let outcome = watch(first, Reports::new(reports), &ended, control, status);
    kill_and_reap(first);
    outcome.map(|()| end_status(ended))
}

fn pipe() -> Result<(OwnedFd, OwnedFd), StartFailure> {
    pipe_with(PipeFlags::CLOEXEC).at(StartStage::Order, "make a pipe")
}

fn namespaces(request: &HelperRequest, confinement: &Confinement) -> i32 {
    let mut flags = libc::CLONE_NEWUSER | libc::CLONE_NEWNS | libc::CLONE_NEWUTS | libc::CLONE_NEWCGROUP;
    if request.has(SandboxLayer::ProcessNamespace) {
        flags |= libc::CLONE_NEWPID;
    }
    if request.has(SandboxLayer::IpcNamespace) {
        flags |= libc::CLONE_NEWIPC;
    }
    if !confinement.network && request.has(SandboxLayer::NetworkNamespace) {
        flags |= libc::CLONE_NEWNET;
    }
    flags
}

/// Inside a user namespace the kernel counts only that namespace's processes, except root's, which only a cgroup
/// limits.
fn limits(request: &HelperRequest, group: &Group) -> ProcessLimits {
    let asked = &request.order.limits;
    ProcessLimits {
        processes: Some(asked.processes),
        memory: asked.memory.filter(|_| !group.limits_memory()),
    }
}

/// Returns when the command has ended or is to be killed.
fn watch(
    first: i32,
    mut reports: Reports,
    ended: &OwnedFd,
    control: &OwnedFd,
    status: &mut StatusPipe,
) -> Result<(), StartFailure> {
    let signals = sys::signals_as_file(&[libc::SIGTERM, libc::SIGINT, libc::SIGHUP])
        .at(StartStage::Namespaces, "watch for signals")?;
    loop {
        let [stop, signalled, over, reported] =
            wait::readable([Some(control), Some(&signals), Some(ended), reports.pipe()], None);
        if reported {
            tell_start(&mut reports, first, status)?;
        }
        if over {
            // Everything inside has ended or is ending, so the start report ends soon.
            while reports.pipe().is_some() {
                tell_start(&mut reports, first, status)?;
            }
        }
        if stop || signalled || over {
            return Ok(());
        }
    }
}

fn tell_start(reports: &mut Reports, first: i32, status: &mut StatusPipe) -> Result<(), StartFailure> {
    match reports.read() {
        Some(StartReport::Failed(failure)) => Err(failure),
        Some(StartReport::Started { pid }) => {
            status.tell(&HelperStatus::Started { pid: pid.unwrap_or(first.unsigned_abs()) });
            Ok(())
        }
        None => Ok(()),
    }
}

/// When the first process of a namespace has ended, so have all others.
fn kill_and_reap(first: i32) {
    let Some(first) = rustix::process::Pid::from_raw(first) else { return };
    // Opened before the kill, while the process id is certainly valid.
    let watched = rustix::process::pidfd_open(first, rustix::process::PidfdFlags::empty()).ok();
    let _ = rustix::process::kill_process(first, rustix::process::Signal::KILL);
    // A process that the kernel cannot end, such as one that waits for a dead file server, is not awaited.
    if watched.is_some() {
        wait::readable([watched.as_ref()], Some(LONGEST_END));
    }
    let _ = rustix::process::waitpid(Some(first), rustix::process::WaitOptions::NOHANG);
}

/// The status that the first process wrote at the command's end; none if it was killed before.
fn end_status(ended: OwnedFd) -> HelperStatus {
    let mut raw = [0; 4];
    match File::from(ended).read_exact(&mut raw) {
        Ok(()) => wait::status(i32::from_ne_bytes(raw)),
        Err(_) => HelperStatus::Signaled { signal: libc::SIGKILL },
    }
}
