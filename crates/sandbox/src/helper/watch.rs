//! The helper's part without namespaces: it adopts all processes that the command leaves behind, and ends them.

use std::fs::File;
use std::os::fd::OwnedFd;

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, WaitOptions, getppid, set_child_subreaper, wait};

use super::cgroup::Group;
use super::command::become_command;
use super::failure::At;
use super::layers::HelperRequest;
use super::limits::{ProcessLimits, running_threads};
use super::report::{self, Reports, StartReport};
use super::sys::{self, Forked};
use super::wire::{HelperStatus, StartFailure, StartStage};
use super::{StatusPipe, landlock, landlock_alone, own_files, roots, sweep, wait as waiting};

/// `signals` gets the ends of children and requests to end, all blocked.
pub(super) fn run(
    request: &HelperRequest,
    control: &OwnedFd,
    signals: &OwnedFd,
    status: &mut StatusPipe,
) -> Result<HelperStatus, StartFailure> {
    if request.order.confinement.is_some() && !landlock::is_enough_alone() {
        let message = format!("Landlock is too old to stand alone (version {})", landlock::version());
        return Err(StartFailure::new(StartStage::Landlock, message));
    }
    set_child_subreaper(Some(rustix::process::getpid())).at(StartStage::Exec, "adopt orphans")?;
    let mut group = Group::make(&request.order.limits);
    let (reports, report) = pipe_with(PipeFlags::CLOEXEC).at(StartStage::Exec, "make a pipe")?;
    let helper = rustix::process::getpid();
    let command = match group.fork(0).at(StartStage::Exec, "start a process")? {
        Forked::Child => start(request, &group, File::from(report), helper),
        Forked::Parent { child } => child,
    };
    drop(report);
    // A reader of the command's output must see its end as soon as the command closes it.
    let _ = sys::close_range(0, 2);
    let end = until_end(command, Reports::new(reports), control, signals, status);
    sweep::kill_descendants(signals);
    end
}

fn start(request: &HelperRequest, group: &Group, mut report: File, helper: Pid) -> ! {
    let asked = &request.order.limits;
    let counted = group.limits_processes();
    let limits = ProcessLimits {
        // Without a cgroup the kernel counts all processes of this user. Another user's are counted across all
        // containers of the machine, which says nothing about this command.
        processes: (!counted && request.user.is_none())
            .then(|| asked.processes.saturating_add(running_threads())),
        memory: asked.memory.filter(|_| !group.limits_memory()),
    };
    if let Ok(proc) = openat(CWD, "/proc", OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
        report::report_pid(&mut report, &proc);
    }
    if let Some(user) = &request.user {
        own_files::hand_over_streams(request.order.terminal, user.id, user.group);
    }
    if let Err(failure) = group.join().at(StartStage::Limits, "put the command into its cgroup") {
        report::tell_failure(&mut report, &failure);
        sys::exit(127);
    }
    // A helper that died before this call would never be noticed.
    let _ = sys::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL.unsigned_abs().into());
    if getppid() != Some(helper) {
        sys::exit(127);
    }
    let rules = request
        .order
        .confinement
        .as_ref()
        .map(|confinement| landlock_alone::rules(confinement, &roots::writable_roots(confinement)?));
    let rules = rules.transpose().unwrap_or_else(|failure| {
        report::tell_failure(&mut report, &failure);
        sys::exit(127)
    });
    become_command(request, rules.as_ref(), limits, &mut report, None)
}

/// Returns when the command has ended or is to be killed.
fn until_end(
    command: i32,
    mut reports: Reports,
    control: &OwnedFd,
    signals: &OwnedFd,
    status: &mut StatusPipe,
) -> Result<HelperStatus, StartFailure> {
    loop {
        let [stop, signalled, reported] =
            waiting::readable([Some(control), Some(signals), reports.pipe()], None);
        if reported {
            match reports.read() {
                Some(StartReport::Failed(failure)) => return Err(failure),
                Some(StartReport::Started { pid }) => {
                    status.tell(&HelperStatus::Started { pid: pid.unwrap_or(command.unsigned_abs()) });
                }
                None => {}
            }
            // The result of the start is reported before the exit.
            continue;
        }
        if stop {
            return Ok(HelperStatus::Signaled { signal: libc::SIGKILL });
        }
        if signalled {
            if let Some(end) = reap_until(command) {
                return Ok(end);
            }
            while let Some(signal) = sys::next_signal(signals) {
                if signal != libc::SIGCHLD {
                    return Ok(HelperStatus::Signaled { signal: libc::SIGKILL });
                }
                if let Some(end) = reap_until(command) {
                    return Ok(end);
                }
            }
        }
    }
}

/// Reaps everything that has ended; returns the command's exit, if it was among them.
fn reap_until(command: i32) -> Option<HelperStatus> {
    while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
        if Some(pid) == Pid::from_raw(command) {
            return Some(waiting::status(status.as_raw()));
        }
    }
    None
}
