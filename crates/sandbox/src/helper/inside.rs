//! The first process inside the namespaces. It builds the sandbox around itself, starts the command, and waits for it;
//! when it ends, the kernel ends everything else inside.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;

use rustix::fs::Mode;
use rustix::process::{DumpableBehavior, Pid, WaitOptions, set_dumpable_behavior, umask, wait};

use super::cgroup::Group;
use super::command::{become_command, landlock_rules};
use super::devices::Devices;
use super::failure::At;
use super::landlock::{self, LandlockPart};
use super::layers::{HelperRequest, SandboxLayer};
use super::limits::ProcessLimits;
use super::mount::NewRoot;
use super::plan::MountPlan;
use super::privileges::{self, HostProc, User};
use super::supervise::{self, CallSupervisor, Duties, Granted, WithheldName};
use super::sys::{self, Forked};
use super::wire::{StartFailure, StartStage};
use super::{masks, report, wait as waiting};
use crate::Confinement;

/// Prepared outside.
pub(super) struct Inside<'a> {
    pub(super) request: &'a HelperRequest,
    pub(super) confinement: &'a Confinement,
    pub(super) plan: &'a MountPlan,
    pub(super) group: &'a Group,
    /// The user before the namespace changed it.
    pub(super) user: User,
    /// Becomes readable when the helper has mapped users, if it does.
    pub(super) mapped: Option<&'a OwnedFd>,
    pub(super) limits: ProcessLimits,
    /// Unix sockets outside that the command may connect to.
    pub(super) granted: Granted,
}

/// `report` gets the result of the start, `end` the command's exit.
pub(super) fn run(inside: Inside<'_>, report: OwnedFd, end: OwnedFd) -> ! {
    let started = die_with_helper(&report).and_then(|()| build(&inside, &report));
    let mut report = File::from(report);
    // Before the command runs: it could remove the folders by which these names are found.
    let withheld = if duties(&inside).names { WithheldName::find(inside.confinement) } else { &[] };
    let started = started.and_then(|proc| start(&inside, &proc, &mut report));
    match started {
        Ok((command, handover)) => {
            drop(report);
            // A reader of the command's output must see its end as soon as the command closes it.
            let _ = sys::close_range(0, 2);
            let command = CommandProcess { pid: command, end: File::from(end) };
            match handover.and_then(|handover| supervise::take_over(&handover)) {
                Some(listener) => {
                    let mut command = command;
                    CallSupervisor::new(listener, inside.confinement, inside.granted, withheld)
                        .run(move || command.reap(WaitOptions::NOHANG))
                }
                None => command.wait_for(),
            }
        }
        Err(failure) => {
            report::tell_failure(&mut report, &failure);
            sys::exit(1)
        }
    }
}

fn die_with_helper(report: &OwnedFd) -> Result<(), StartFailure> {
    sys::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL.unsigned_abs().into())
        .at(StartStage::Namespaces, "be told of a death")?;
    // The helper may have died already. Then no one reads the report.
    if waiting::has_reader(report) { Ok(()) } else { sys::exit(1) }
}

fn build(inside: &Inside<'_>, report: &OwnedFd) -> Result<HostProc, StartFailure> {
    let request = inside.request;
    inside.group.join().at(StartStage::Limits, "put the command into its cgroup")?;
    let proc = HostProc::open()?;
    inside.user.map_to_root(&proc, inside.mapped)?;
    if request.has(SandboxLayer::Mounts) {
        mount(inside)?;
    }
    if request.has(SandboxLayer::Privileges) {
        inside.user.step_down(&proc)?;
        // The kernel clears it when the process changes its user.
        die_with_helper(report)?;
        if duties(inside).any() { privileges::drop_for_supervisor()? } else { privileges::drop_all()? }
    }
    // Hides this process's memory and descriptors from the command. Not earlier: a hidden process cannot write its own
    // user maps.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).at(StartStage::Privileges, "be closed to others")?;
    Ok(proc)
}

fn mount(inside: &Inside<'_>) -> Result<(), StartFailure> {
    let Inside { request, confinement, plan, .. } = inside;
    // Files created here are for a command that may be another user.
    let mask = umask(Mode::from_raw_mode(0o022));
    let devices = Devices::open(request.order.terminal)?;
    let proc = masks::fresh(request)?;
    let root = NewRoot::begin(confinement, plan)?;
    root.apply(confinement, plan)?;
    root.seal_run()?;
    devices.mount(&root)?;
    root.put(&proc, std::path::Path::new("/proc")).at(StartStage::Mounts, "put the new /proc in place")?;
    if request.has(SandboxLayer::ProcMasks) {
        masks::hide(&root)?;
    }
    if request.has(SandboxLayer::HiddenPaths) {
        root.hide(plan)?;
    }
    umask(mask);
    root.enter(confinement)
}

fn duties(inside: &Inside<'_>) -> Duties {
    Duties::of(inside.request, inside.confinement)
}

/// Returns the command's process, and the descriptor on which its supervisor gets the listener.
fn start(
    inside: &Inside<'_>,
    proc: &HostProc,
    report: &mut File,
) -> Result<(i32, Option<OwnedFd>), StartFailure> {
    let rules = landlock_rules(inside.confinement, inside.plan.writable());
    let duties = duties(inside);
    if duties.names && inside.request.has(SandboxLayer::Landlock) {
        // The supervisor acts for the command, so the same rules apply to it.
        sys::prctl(libc::PR_SET_NO_NEW_PRIVS, 1).at(StartStage::Privileges, "refuse new privileges")?;
        landlock::enforce(&rules, LandlockPart::Access)?;
    }
    let handover = if duties.any() {
        Some(supervise::handover().at(StartStage::Seccomp, "prepare the supervisor")?)
    } else {
        None
    };
    let (sender, receiver) = handover.unzip();
    match sys::fork_with(0).at(StartStage::Exec, "start a process")? {
        Forked::Child => {
            report::report_pid(report, &proc.0);
            become_command(inside.request, Some(&rules), inside.limits, report, sender.as_ref())
        }
        Forked::Parent { child } => Ok((child, receiver)),
    }
}

/// The command, and where its end is reported.
struct CommandProcess {
    pid: i32,
    end: File,
}

impl CommandProcess {
    fn wait_for(mut self) -> ! {
        loop {
            self.reap(WaitOptions::empty());
        }
    }

    /// Reaps everything that has ended; the command's end ends everything.
    fn reap(&mut self, options: WaitOptions) {
        loop {
            match wait(options) {
                Ok(Some((pid, status))) if Some(pid) == Pid::from_raw(self.pid) => {
                    let _ = self.end.write_all(&status.as_raw().to_ne_bytes());
                    sys::exit(0)
                }
                Ok(None) => return,
                // An orphan of the command.
                Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
                Err(_) => sys::exit(1),
            }
        }
    }
}
