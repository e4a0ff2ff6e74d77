//! Starts a helper and waits for it without an async runtime: for the self-test and for sandbox tests.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use rustix::pipe::{PipeFlags, pipe_with};

use super::wire::{self, HelperStatus};

/// A running helper. Dropping it kills everything.
#[derive(Debug)]
pub struct LaunchedHelper {
    pub child: Child,
    control: Option<OwnedFd>,
    status: BufReader<File>,
}

/// Starts a helper with an order as JSON.
pub fn launch(order: &[u8], stdin: Stdio, stdout: Stdio, stderr: Stdio) -> io::Result<LaunchedHelper> {
    let (order_end, mut writer) = pipe_pair()?;
    let (control_end, control) = pipe_pair()?;
    let (status, status_end) = pipe_pair()?;
    let mut command = Command::new(super::program());
    command.arg0(wire::NAME).env_clear().stdin(stdin).stdout(stdout).stderr(stderr);
    let passed = [
        (order_end.as_raw_fd(), wire::ORDER_FD),
        (control_end.as_raw_fd(), wire::CONTROL_FD),
        (status_end.as_raw_fd(), wire::STATUS_FD),
    ];
    pass(&mut command, passed);
    let child = command.spawn()?;
    drop((order_end, control_end, status_end));
    writer.write_all(order)?;
    drop(writer);
    Ok(LaunchedHelper { child, control: Some(OwnedFd::from(control)), status: BufReader::new(status) })
}

impl LaunchedHelper {
    /// The next status line. `None` at the end.
    pub fn next_status(&mut self) -> Option<HelperStatus> {
        let mut line = String::new();
        self.status.read_line(&mut line).ok().filter(|length| *length > 0)?;
        serde_json::from_str(&line).ok()
    }

    /// Its exit, or why it did not start.
    pub fn end(&mut self) -> Option<HelperStatus> {
        loop {
            match self.next_status()? {
                HelperStatus::Started { .. } => {}
                end => return Some(end),
            }
        }
    }

    /// Tells the helper to kill everything, like the death of the server does.
    pub fn close_control(&mut self) {
        self.control = None;
    }
}

impl Drop for LaunchedHelper {
    fn drop(&mut self) {
        self.close_control();
        let _ = self.child.wait();
    }
}

fn pipe_pair() -> io::Result<(File, File)> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    Ok((File::from(read), File::from(write)))
}

/// Passes these descriptors under fixed numbers.
#[expect(unsafe_code, reason = "descriptors under fixed numbers have no safe interface")]
fn pass(command: &mut Command, passed: [(RawFd, RawFd); 3]) {
    let place = move || -> io::Result<()> {
        // Duplicated first: one may have the number that another is to get.
        let mut safe = [0; 3];
        for (i, (fd, _)) in passed.iter().enumerate() {
            // SAFETY: only numbers are passed, and the descriptors are open until the child was started.
            safe[i] = unsafe { libc::fcntl(*fd, libc::F_DUPFD_CLOEXEC, 10) };
        }
        for (fd, (_, number)) in safe.iter().zip(passed) {
            // SAFETY: as above.
            if unsafe { libc::dup2(*fd, number) } < 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    };
    // SAFETY: between fork and exec only `fcntl` and `dup2` are called, which are safe there; nothing is allocated.
    unsafe { command.pre_exec(place) };
}
