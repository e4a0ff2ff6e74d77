//! Closing the server itself to the eyes of other processes.

use std::io;

use crate::helper::sys::{self, ResourceLimit};

/// From here on other processes of the same user cannot read this one's memory, environment or descriptors, and a crash
/// leaves no image of its memory behind.
///
/// To be called early in `main`, before anything secret is read.
pub fn seal_process() -> io::Result<()> {
    sys::set_limit(ResourceLimit::Core, 0)?;
    sys::prctl(libc::PR_SET_DUMPABLE, 0)
}
