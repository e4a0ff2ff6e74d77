//! Programs inside that restrict themselves further with Landlock. Their rules must also apply to what the supervisor
//! does for them: a thread with the same rules does it.
//!
//! The kernel does not tell which rules apply to a process, so the process is marked when it restricts itself. The mark
//! is a resource limit that the kernel keeps but no longer uses. Children inherit it, and the filter prevents commands
//! from setting it.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use super::calls::{self, Notification, low_half};
use super::connect::still_waiting;
use super::target::Target;

/// The number of the limit of file locks, which the kernel has not enforced since version 2.4. As a number, because C
/// libraries disagree about the type of `RLIMIT_LOCKS`.
pub(in super::super) const MARK: u32 = 10;

/// Limit of rule sets; each has a thread.
const MAX_DOMAINS: usize = 64;

/// Marks decrease from here, because only root may raise a limit.
const FIRST_MARK: u64 = 1 << 40;

const STACK_BYTES: usize = 128 * 1024;

type Job = Box<dyn FnOnce() + Send>;

/// A thread with the rules of one restricted program and its children.
struct DomainThread {
    mark: u64,
    rules: OwnedFd,
    /// The thread ends when this is dropped.
    jobs: SyncSender<Job>,
}

impl DomainThread {
    fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
        let (sender, result) = sync_channel(1);
        let gone = || io::Error::from_raw_os_error(libc::EACCES);
        let job = Box::new(move || drop(sender.send(job())));
        self.jobs.send(job).map_err(|_| gone())?;
        result.recv().map_err(|_| gone())
    }
}

/// The rules under which the supervisor acts for a process: its own, or those of a restricted program.
#[derive(Clone, Copy)]
pub(super) struct Rights<'a>(Option<&'a DomainThread>);

impl Rights<'_> {
    /// Runs a job under these rules, and waits for it.
    pub(super) fn run<T: Send + 'static>(self, job: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
        match self.0 {
            None => Ok(job()),
            Some(thread) => thread.run(job),
        }
    }

    pub(super) fn is_confined(self) -> bool {
        self.0.is_some()
    }

    /// Connects a socket under these rules.
    pub(super) fn connect(self, socket: &OwnedFd, address: &[u8]) -> io::Result<()> {
        match self.0 {
            None => calls::connect(socket, address),
            Some(thread) => {
                let (socket, address) = (socket.try_clone()?, address.to_vec());
                thread.run(move || calls::connect(socket, &address))?
            }
        }
    }
}

/// All restricted programs.
pub(super) struct Domains {
    threads: Vec<DomainThread>,
    /// The mark of an unrestricted process.
    unconfined: u64,
    next_mark: u64,
}

impl Domains {
    pub(super) fn new() -> Self {
        let unconfined = calls::mark_of(0).unwrap_or(0);
        let next_mark = FIRST_MARK.min(unconfined.saturating_sub(1));
        Self { threads: Vec::new(), unconfined, next_mark }
    }

    /// An error for a process whose rules are no longer known.
    pub(super) fn rights_of(&self, target: Target) -> io::Result<Rights<'_>> {
        if self.threads.is_empty() && self.next_mark == FIRST_MARK {
            return Ok(Rights(None));
        }
        let mark = calls::mark_of(target.thread)?;
        if mark == self.unconfined {
            return Ok(Rights(None));
        }
        let known = self.threads.iter().find(|thread| thread.mark == mark);
        known.map(|thread| Rights(Some(thread))).ok_or_else(|| io::Error::from_raw_os_error(libc::EACCES))
    }

    /// Prepares for a process that is about to restrict itself, which it then does. The mark is shared by all its
    /// threads, because any of them may start the next process.
    pub(super) fn confine(
        &mut self,
        listener: &OwnedFd,
        asked: &Notification,
        target: Target,
    ) -> io::Result<()> {
        let number = low_half(asked.arguments[0]);
        let flags = low_half(asked.arguments[1]).unsigned_abs();
        if number < 0 {
            // Only changes logging.
            return Ok(());
        }
        let rules = target.descriptor(number)?;
        let rights = self.rights_of(target)?;
        still_waiting(listener, asked.id)?;
        // Programs with threads apply the same rules to one thread after another.
        if rights.0.is_some_and(|thread| calls::is_same_file(&thread.rules, &rules)) {
            return Ok(());
        }
        if self.threads.len() >= MAX_DOMAINS {
            self.forget_unused();
        }
        if self.threads.len() >= MAX_DOMAINS || self.next_mark == 0 {
            return Err(io::Error::from_raw_os_error(libc::E2BIG));
        }
        let (jobs, inbox) = sync_channel(1);
        let copy = rules.try_clone()?;
        // Cleaning up may have ended the thread of a process that could not be seen: looked up again.
        self.rights_of(target)?.run(move || start_thread(copy, flags, inbox))??;
        let mark = self.next_mark;
        calls::set_mark(target.thread, mark)?;
        self.next_mark -= 1;
        self.threads.push(DomainThread { mark, rules, jobs });
        Ok(())
    }

    /// Ends the threads of programs that are gone. A process that was missed is refused from then on.
    fn forget_unused(&mut self) {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let processes = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let used: Vec<u64> = processes.filter_map(|process| calls::mark_of(process).ok()).collect();
        self.threads.retain(|thread| used.contains(&thread.mark));
    }
}

/// Starts a thread that adds rules to those of the calling one.
fn start_thread(rules: OwnedFd, flags: u32, inbox: Receiver<Job>) -> io::Result<()> {
    let (sender, bound) = sync_channel(1);
    std::thread::Builder::new().stack_size(STACK_BYTES).spawn(move || {
        let outcome = calls::restrict_thread(&rules, flags);
        drop(rules);
        let is_bound = outcome.is_ok();
        drop(sender.send(outcome));
        if is_bound {
            inbox.into_iter().for_each(|job| job());
        }
    })?;
    bound.recv().unwrap_or_else(|_| Err(io::Error::from_raw_os_error(libc::EAGAIN)))
}
