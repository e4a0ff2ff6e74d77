//! Two processes that supervise a command without namespaces, so that one can clean up if the other is killed.
//!
//! The inner one starts the command and adopts its orphans. If the helper dies, the inner one is notified and ends
//! everything. If the inner one dies, its processes are adopted by the helper, which ends them.

use std::os::fd::OwnedFd;

use rustix::process::{
    Pid, Signal, WaitOptions, getpid, getppid, kill_process, set_child_subreaper, waitpid,
};

use super::failure::At;
use super::layers::HelperRequest;
use super::sys::{self, Forked};
use super::wire::{HelperStatus, StartFailure, StartStage};
use super::{StatusPipe, sweep, wait, watch};

/// `None` if the inner process has reported its end already.
pub(super) fn run(
    request: &HelperRequest,
    control: &OwnedFd,
    status: &mut StatusPipe,
) -> Result<Option<HelperStatus>, StartFailure> {
    let helper = getpid();
    set_child_subreaper(Some(helper)).at(StartStage::Exec, "adopt orphans")?;
    let signals = sys::signals_as_file(&[libc::SIGCHLD, libc::SIGTERM, libc::SIGINT, libc::SIGHUP])
        .at(StartStage::Exec, "watch for signals")?;
    let inner = match sys::fork_with(0).at(StartStage::Exec, "start a process")? {
        Forked::Child => {
            // Blocked since before the fork, so that it stays pending until it is read.
            let _ = sys::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM.unsigned_abs().into());
            if getppid() != Some(helper) {
                sys::exit(1);
            }
            let end = watch::run(request, control, &signals, status);
            status.tell(&end.unwrap_or_else(HelperStatus::Failed));
            sys::exit(0)
        }
        Forked::Parent { child } => Pid::from_raw(child),
    };
    // A reader of the command's output must see its end as soon as the command closes it.
    let _ = sys::close_range(0, 2);
    let told = wait_for(inner, &signals);
    sweep::kill_descendants(&signals);
    Ok((!told).then_some(HelperStatus::Signaled { signal: libc::SIGKILL }))
}

/// Whether it ended by itself. Forwards the helper's signals meanwhile.
fn wait_for(inner: Option<Pid>, signals: &OwnedFd) -> bool {
    let Some(inner) = inner else { return false };
    loop {
        match waitpid(Some(inner), WaitOptions::NOHANG) {
            Ok(Some((_, status))) => return status.exit_status() == Some(0),
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
        wait::readable([Some(signals)], None);
        while let Some(signal) = sys::next_signal(signals) {
            if signal != libc::SIGCHLD {
                let _ = kill_process(inner, Signal::TERM);
            }
        }
    }
}
