//! The limit on open files: raised for the server, and as it was for every command. Programs that use `select` break
//! with descriptors above 1023, so commands get what the user's shell has.

use std::io;
use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The limit before it was raised.
static BEFORE: OnceLock<u64> = OnceLock::new();

/// Lets this process open as many files as the system allows it. Commands keep the limit that was.
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

/// The limit that commands are to have, if that is not this process's own.
pub(crate) fn of_commands() -> Option<u64> {
    BEFORE.get().copied()
}

/// In the helper: sets the limit for itself and for the command. It may be raised again, as in the user's shell.
pub(crate) fn set(limit: u64) -> io::Result<()> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let current = Some(maximum.map_or(limit, |maximum| limit.min(maximum)));
    Ok(setrlimit(Resource::Nofile, Rlimit { current, maximum })?)
}
