//! Hides the server's memory from other processes.

use std::io;

use crate::helper::sys::{self, ResourceLimit};

/// From now on other processes of the same user cannot read this one's memory, environment or descriptors, and a crash
/// leaves no core dump.
///
/// Must be called early in `main`, before secrets are read.
pub fn seal_process() -> io::Result<()> {
    sys::set_limit(ResourceLimit::Core, 0)?;
    sys::prctl(libc::PR_SET_DUMPABLE, 0)
}
