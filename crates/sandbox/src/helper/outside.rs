//! The helper's own part when namespaces are used: it stays outside of them, so that it can take away afterwards what
//! had to be put into the real file system, and it kills the first process inside when the command is to end.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;

use rustix::pipe::{PipeFlags, pipe_with};

use super::cgroup::Group;
use super::failure::At;
use super::inside::{self, Inside};
use super::layers::{Layer, Request};
use super::limits::Limits;
use super::plan::Plan;
use super::privileges::User;
use super::report::{Report, Reports};
use super::sys::{self, Forked};
use super::wire::{Failure, Stage, Status};
use super::{StatusPipe, wait};
use crate::Confinement;

pub(super) fn run(
    request: &Request,
    walls: &Confinement,
    control: &OwnedFd,
    status: &mut StatusPipe,
) -> Result<Status, Failure> {
    let mounts = request.has(Layer::Mounts);
    let mut plan = Plan::make(walls, mounts && request.has(Layer::ProtectedNames))?;
    // Dropped, and thereby taken away, when all is over.
    let placeholders = plan.take_placeholders();
    let mut group = Group::make(&request.order.limits);
    let (reports, report) = pipe()?;
    let (ended, end) = pipe()?;
    let user = User::current();
    let forked = group.fork(namespaces(request, walls)).at(Stage::Namespaces, "make namespaces")?;
    let first = match forked {
        Forked::Child => {
            // A lock is held as long as any copy of its descriptor.
            placeholders.iter().for_each(super::placeholder::Placeholder::forget_in_child);
            drop((reports, ended));
            let limits = limits(request, &group);
            let inside = Inside { request, walls, plan: &plan, group: &group, user, limits };
            inside::run(&inside, report, end)
        }
        Forked::Parent { child } => child,
    };
    drop((report, end));
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
    if let Some(first) = rustix::process::Pid::from_raw(first) {
        let _ = rustix::process::kill_process(first, rustix::process::Signal::KILL);
        let _ = rustix::process::waitpid(Some(first), rustix::process::WaitOptions::empty());
    }
}

/// What the first process said about the command's end. Nothing, if it was killed before.
fn end_status(ended: OwnedFd) -> Status {
    let mut raw = [0; 4];
    match File::from(ended).read_exact(&mut raw) {
        Ok(()) => wait::status(i32::from_ne_bytes(raw)),
        Err(_) => Status::Signaled { signal: libc::SIGKILL },
    }
}
