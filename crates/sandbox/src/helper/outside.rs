//! The helper's own part when namespaces are used: it stays outside of them, so that it can take away afterwards what
//! had to be put into the real file system, and it kills the first process inside when the command is to end.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::pipe::{PipeFlags, pipe_with};

use super::cgroup::Group;
use super::failure::At;
use super::inside::{self, Inside};
use super::layers::{Layer, Request};
use super::limits::Limits;
use super::own_files::{self, OwnFiles};
use super::placeholder::Patience;
use super::plan::{Plan, Wanted};
use super::privileges::{USER_FOR_ROOT, User};
use super::report::{Report, Reports};
use super::supervise::Granted;
use super::sys::{self, Forked};
use super::wire::{Failure, Stage, Status};
use super::{StatusPipe, wait};
use crate::Confinement;

/// How long a killed process may take to be gone. Less than the server gives the helper.
const LONGEST_END: Duration = Duration::from_secs(5);

pub(super) fn run(
    request: &Request,
    walls: &Confinement,
    control: &OwnedFd,
    status: &mut StatusPipe,
) -> Result<Status, Failure> {
    let mounts = request.has(Layer::Mounts);
    let wanted = Wanted {
        protected: mounts && request.has(Layer::ProtectedNames),
        hidden: mounts && request.has(Layer::HiddenPaths),
    };
    let mut plan = Plan::make(walls, &request.order.cwd, wanted, &Patience::new(control))?;
    // Dropped, and thereby taken away, when all is over.
    let placeholders = plan.take_placeholders();
    let mut group = Group::make(&request.order.limits);
    let (reports, report) = pipe()?;
    let (ended, end) = pipe()?;
    let mut user = User::current();
    if mounts && user.is_root() && request.has(Layer::Privileges) && request.has(Layer::OwnUser) {
        plan.own_files = OwnFiles::prepare(walls, &request.order.cwd, &plan)?;
        user.is_stranger = plan.own_files.is_some();
    }
    if wanted.hidden && user.is_root() {
        plan.hide_what_only_root_reads();
    }
    let sockets = if walls.network { walls.unix_sockets.as_slice() } else { &[] };
    let granted = Granted::open(sockets, &walls.writable, plan.own_files.as_ref());
    let (mapped, tell_mapped) = pipe()?;
    let forked = group.fork(namespaces(request, walls)).at(Stage::Namespaces, "make namespaces")?;
    let first = match forked {
        Forked::Child => {
            // A lock is held as long as any copy of its descriptor.
            placeholders.iter().for_each(super::placeholder::Placeholder::forget_in_child);
            drop((reports, ended, tell_mapped));
            let limits = limits(request, &group);
            let mapped = user.is_stranger.then_some(&mapped);
            let inside = Inside { request, walls, plan: &plan, group: &group, user, mapped, limits, granted };
            inside::run(inside, report, end)
        }
        Forked::Parent { child } => child,
    };
    drop((report, end, mapped));
    // The mounts are the child's now.
    plan.own_files = None;
    if user.is_stranger {
        own_files::hand_over_streams(request.order.terminal);
        // If it fails, the other side is told by the end of the pipe.
        if own_files::write_command_maps(first, USER_FOR_ROOT).is_ok() {
            let _ = rustix::io::write(&tell_mapped, b"m");
        }
    }
    drop(tell_mapped);
    // Whoever reads the command's output must see its end as soon as the command closes it.
    let _ = sys::close_range(0, 2);
    let outcome = watch(first, Reports::new(reports), &ended, control, status);
    kill_and_reap(first);
    outcome.map(|()| end_status(ended))
}

fn pipe() -> Result<(OwnedFd, OwnedFd), Failure> {
    pipe_with(PipeFlags::CLOEXEC).at(Stage::Order, "make a pipe")
}

fn namespaces(request: &Request, walls: &Confinement) -> i32 {
    let mut flags = libc::CLONE_NEWUSER | libc::CLONE_NEWNS | libc::CLONE_NEWUTS | libc::CLONE_NEWCGROUP;
    if request.has(Layer::ProcessNamespace) {
        flags |= libc::CLONE_NEWPID;
    }
    if request.has(Layer::IpcNamespace) {
        flags |= libc::CLONE_NEWIPC;
    }
    if !walls.network && request.has(Layer::NetworkNamespace) {
        flags |= libc::CLONE_NEWNET;
    }
    flags
}

/// Inside a user namespace the kernel counts that namespace's processes alone, except those of root, where only a
/// cgroup counts.
fn limits(request: &Request, group: &Group) -> Limits {
    let asked = &request.order.limits;
    Limits { processes: Some(asked.processes), memory: asked.memory.filter(|_| !group.limits_memory()) }
}

/// Returns when the command has ended or is to be killed.
fn watch(
    first: i32,
    mut reports: Reports,
    ended: &OwnedFd,
    control: &OwnedFd,
    status: &mut StatusPipe,
) -> Result<(), Failure> {
    let signals = sys::signals_as_file(&[libc::SIGTERM, libc::SIGINT, libc::SIGHUP])
        .at(Stage::Namespaces, "watch for signals")?;
    loop {
        let [stop, signalled, over, reported] =
            wait::readable([Some(control), Some(&signals), Some(ended), reports.pipe()], None);
        if reported {
            tell_start(&mut reports, first, status)?;
        }
        if over {
            // Everything inside is gone or going, so that what was said about the start ends in a moment.
            while reports.pipe().is_some() {
                tell_start(&mut reports, first, status)?;
            }
        }
        if stop || signalled || over {
            return Ok(());
        }
    }
}

fn tell_start(reports: &mut Reports, first: i32, status: &mut StatusPipe) -> Result<(), Failure> {
    match reports.read() {
        Some(Report::Failed(failure)) => Err(failure),
        Some(Report::Started { pid }) => {
            status.tell(&Status::Started { pid: pid.unwrap_or(first.unsigned_abs()) });
            Ok(())
        }
        None => Ok(()),
    }
}

/// When the first process of a namespace is gone, so is every other.
fn kill_and_reap(first: i32) {
    let Some(first) = rustix::process::Pid::from_raw(first) else { return };
    // Opened before the kill, while the number is surely its own.
    let watched = rustix::process::pidfd_open(first, rustix::process::PidfdFlags::empty()).ok();
    let _ = rustix::process::kill_process(first, rustix::process::Signal::KILL);
    // A process that the kernel cannot end, such as one that waits for a dead file server, is nothing to wait for.
    if watched.is_some() {
        wait::readable([watched.as_ref()], Some(LONGEST_END));
    }
    let _ = rustix::process::waitpid(Some(first), rustix::process::WaitOptions::NOHANG);
}

/// What the first process said about the command's end. Nothing, if it was killed before.
fn end_status(ended: OwnedFd) -> Status {
    let mut raw = [0; 4];
    match File::from(ended).read_exact(&mut raw) {
        Ok(()) => wait::status(i32::from_ne_bytes(raw)),
        Err(_) => Status::Signaled { signal: libc::SIGKILL },
    }
}
