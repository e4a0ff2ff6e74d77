//! The supervisor of a command: the first process inside the namespaces makes its connections if there is network, and
//! creates its new files, folders, links and other names where it can write.
//!
//! The filter stops these calls and notifies the supervisor. Answering "continue" would be unsafe, because another
//! thread can change the address or the descriptor meanwhile. So the supervisor copies the address or path, takes a
//! descriptor of the same socket or folder, decides, and performs the call with its copies. The command itself opens
//! existing files (`create` says why that is safe). When the supervisor dies, so does everything in the namespace; a
//! call that it cannot handle is refused.
//!
//! One thread decides, and never blocks: pending connections are kept in a list. It has more threads only for programs
//! that restrict themselves (`domains`).

mod address;
pub(super) mod calls;
mod connect;
mod create;
pub(super) mod domains;
mod granted;
mod local;
pub(super) mod names;
mod target;
mod withheld;

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};

use self::calls::Notification;
use self::connect::{ConnectionAttempt, ConnectionRules, ConnectionStep};
use self::create::OpenOutcome;
use self::domains::Domains;
pub(super) use self::granted::Granted;
use self::names::NameGuard;
use self::target::Target;
pub(super) use self::withheld::WithheldName;
use super::layers::{HelperRequest, SandboxLayer};
use super::sys;
use crate::{Confinement, Strength};

/// The tasks of the supervisor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Duties {
    pub(super) connections: bool,
    pub(super) names: bool,
}

impl Duties {
    pub(super) fn of(request: &HelperRequest, confinement: &Confinement) -> Self {
        if confinement.strength != Strength::Full || !request.has(SandboxLayer::Seccomp) {
            return Self::default();
        }
        let names = !confinement.writable.is_empty() && !confinement.protected.is_empty();
        Self {
            connections: confinement.network && request.has(SandboxLayer::Connections),
            names: names && request.has(SandboxLayer::Names),
        }
    }

    pub(super) fn any(self) -> bool {
        self.connections || self.names
    }
}

/// Limit of pending connections; each has one or two descriptors here.
const MAX_WAITING: usize = 256;
/// How often pending calls are checked for timeouts and callers that are gone.
const CHECK: Duration = Duration::from_millis(100);
/// How often a full Unix socket is tried again.
const RETRY: Duration = Duration::from_millis(5);

/// A socket pair on which the command's process passes its listener: the sender and the receiver.
pub(super) fn handover() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?)
}

pub(super) fn hand_over(listener: &OwnedFd, to: &OwnedFd) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let listener = [listener.as_fd()];
    control.push(SendAncillaryMessage::ScmRights(&listener));
    sendmsg(to, &[IoSlice::new(b"x")], &mut control, SendFlags::empty())?;
    Ok(())
}

/// `None` if the command's process ended before it had a filter.
pub(super) fn take_over(from: &OwnedFd) -> Option<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    recvmsg(from, &mut [IoSliceMut::new(&mut byte)], &mut control, RecvFlags::CMSG_CLOEXEC).ok()?;
    control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    })
}

/// A pending call.
struct WaitingCall {
    id: u64,
    target: Target,
    deadline: Option<Instant>,
    attempt: ConnectionAttempt,
}

pub(super) struct CallSupervisor {
    listener: OwnedFd,
    /// Until no process is left that could make a call.
    open: bool,
    rules: ConnectionRules,
    names: NameGuard,
    domains: Domains,
    waiting: Vec<WaitingCall>,
    checked: Instant,
}

impl CallSupervisor {
    pub(super) fn new(
        listener: OwnedFd,
        confinement: &Confinement,
        granted: Granted,
        withheld: &'static [WithheldName],
    ) -> Self {
        calls::take_turns(&listener);
        let rules = ConnectionRules { closed_ports: confinement.closed_ports.clone(), granted };
        let protects = !confinement.protected.is_empty();
        let names = NameGuard { protects, mask_changed: false, withheld };
        let domains = Domains::new();
        Self { listener, open: true, rules, names, domains, waiting: Vec::new(), checked: Instant::now() }
    }

    /// Serves calls as long as this process lives. `reap` is called whenever a child may have ended.
    pub(super) fn run(mut self, mut reap: impl FnMut()) -> ! {
        // Without it the command's end would go unnoticed.
        let Ok(signals) = sys::signals_as_file(&[libc::SIGCHLD]) else { sys::exit(1) };
        loop {
            // Before waiting: a child may have ended before its signal was visible.
            while sys::next_signal(&signals).is_some() {}
            reap();
            let Some(ready) = self.wait(&signals) else { sys::exit(1) };
            self.advance(&ready.sockets);
            if ready.asked
                && let Ok(asked) = calls::receive(&self.listener)
            {
                self.begin(asked);
            }
        }
    }

    /// `None` if polling fails.
    fn wait(&mut self, signals: &OwnedFd) -> Option<Ready> {
        let mut files = vec![PollFd::new(signals, PollFlags::IN)];
        files.extend(self.open.then(|| PollFd::new(&self.listener, PollFlags::IN)));
        let first_socket = files.len();
        let sockets = self.waiting.iter().filter_map(|waiting| waiting.attempt.awaited());
        files.extend(sockets.map(|socket| PollFd::new(socket, PollFlags::OUT)));
        let limit = match self.waiting.len() {
            0 => None,
            _ if self.waiting.iter().any(|waiting| waiting.attempt.awaited().is_none()) => Some(RETRY),
            _ => Some(CHECK),
        };
        let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
        match poll(&mut files, limit.as_ref()) {
            Err(rustix::io::Errno::INTR) => return Some(Ready::default()),
            Err(_) => return None,
            Ok(_) => {}
        }
        let asked = if self.open { files[1].revents() } else { PollFlags::empty() };
        let sockets = files[first_socket..].iter().map(|file| !file.revents().is_empty()).collect();
        drop(files);
        self.open &= asked.is_empty() || asked.contains(PollFlags::IN);
        Some(Ready { asked: asked.contains(PollFlags::IN), sockets })
    }

    fn begin(&mut self, asked: Notification) {
        let target = Target { thread: asked.thread };
        if asked.call == libc::SYS_landlock_restrict_self {
            return match self.domains.confine(&self.listener, &asked, target) {
                Ok(()) => calls::go_on(&self.listener, asked.id),
                Err(error) => self.answer(asked.id, Err(error)),
            };
        }
        if asked.call == libc::SYS_umask {
            self.names.mask_changed = true;
            return calls::go_on(&self.listener, asked.id);
        }
        let rights = match self.domains.rights_of(target) {
            Ok(rights) => rights,
            Err(error) => return self.answer(asked.id, Err(error)),
        };
        if let Some(outcome) = create::answer(self.names, &self.listener, &asked, target, rights) {
            return self.answer_opening(asked.id, outcome);
        }
        if let Some(outcome) = self.names.answer(&self.listener, &asked, target, rights) {
            return self.answer(asked.id, outcome);
        }
        if asked.call != libc::SYS_connect {
            return self.answer(asked.id, Err(io::Error::from_raw_os_error(libc::ENOSYS)));
        }
        match self.rules.begin(&self.listener, &asked, target, rights) {
            Ok(ConnectionStep::Later(_)) if self.waiting.len() >= MAX_WAITING => {
                self.answer(asked.id, Err(io::Error::from_raw_os_error(libc::EAGAIN)));
            }
            Ok(ConnectionStep::Later(attempt)) => {
                let deadline = attempt.limit().map(|limit| Instant::now() + limit);
                self.waiting.push(WaitingCall { id: asked.id, target, deadline, attempt });
            }
            Ok(ConnectionStep::Done) => self.answer(asked.id, Ok(())),
            Err(error) => self.answer(asked.id, Err(error)),
        }
    }

    /// Continues pending calls; `ready` has one entry per polled socket.
    fn advance(&mut self, ready: &[bool]) {
        if self.waiting.is_empty() {
            return;
        }
        let check = self.checked.elapsed() >= CHECK;
        if check {
            self.checked = Instant::now();
        }
        let mut ready = ready.iter();
        for waiting in std::mem::take(&mut self.waiting) {
            let go_on = waiting.attempt.awaited().is_none() || ready.next() == Some(&true);
            if !go_on && !check {
                self.waiting.push(waiting);
                continue;
            }
            if check && !calls::is_waiting(&self.listener, waiting.id) {
                continue;
            }
            self.go_on(waiting, go_on, check);
        }
    }

    fn go_on(&mut self, waiting: WaitingCall, go_on: bool, check: bool) {
        let WaitingCall { id, target, deadline, attempt } = waiting;
        let timed_out = attempt.timed_out();
        let step = if go_on {
            let rights = self.domains.rights_of(target);
            rights.and_then(|rights| self.rules.go_on(&self.listener, id, target, rights, attempt))
        } else {
            Ok(ConnectionStep::Later(attempt))
        };
        match step {
            Ok(ConnectionStep::Done) => self.answer(id, Ok(())),
            Err(error) => self.answer(id, Err(error)),
            Ok(ConnectionStep::Later(_)) if deadline.is_some_and(|deadline| Instant::now() >= deadline) => {
                self.answer(id, Err(io::Error::from_raw_os_error(timed_out)));
            }
            Ok(ConnectionStep::Later(_)) if check && target.is_signalled() => {
                self.answer(id, Err(io::Error::from_raw_os_error(libc::EINTR)));
            }
            Ok(ConnectionStep::Later(attempt)) => {
                self.waiting.push(WaitingCall { id, target, deadline, attempt });
            }
        }
    }

    fn answer_opening(&self, id: u64, outcome: io::Result<OpenOutcome>) {
        match outcome {
            Ok(OpenOutcome::ByKernel) => calls::go_on(&self.listener, id),
            Ok(OpenOutcome::New(new)) => {
                if let Err(error) = calls::give(&self.listener, id, &new.file, new.is_closed) {
                    new.remove();
                    self.answer(id, Err(error));
                }
            }
            Err(error) => self.answer(id, Err(error)),
        }
    }

    fn answer(&self, id: u64, outcome: io::Result<()>) {
        calls::answer(&self.listener, id, outcome);
    }
}

/// The descriptors that are ready.
#[derive(Default)]
struct Ready {
    asked: bool,
    sockets: Vec<bool>,
}
