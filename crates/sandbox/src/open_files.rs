//! The limit of open files: raised for the server, unchanged for commands. Programs that use `select` fail with
//! descriptors above 1023, so commands get the limit of the user's shell.

use std::io;
use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The limit before it was raised.
static BEFORE: OnceLock<u64> = OnceLock::new();

/// Raises this process's limit to the system's maximum. Commands keep the old limit.
pub fn raise_open_files() -> io::Result<()> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current == maximum {
        return Ok(());
    }
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?;
    if let Some(current) = current {
        let _ = BEFORE.set(current);
    }
    Ok(())
}

/// The limit for commands, if it differs from this process's.
pub(crate) fn of_commands() -> Option<u64> {
    BEFORE.get().copied()
}

/// In the helper: sets the limit for itself and for the command, which may raise it again, like in the user's shell.
pub(crate) fn set(limit: u64) -> io::Result<()> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let current = Some(maximum.map_or(limit, |maximum| limit.min(maximum)));
    Ok(setrlimit(Resource::Nofile, Rlimit { current, maximum })?)
}
