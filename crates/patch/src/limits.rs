//! The sizes beyond which a patch is refused, each written once.

/// The largest file a patch may read or leave.
pub const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// The most that all files of one patch may hold together.
pub const MAX_TOTAL_BYTES: u64 = 256 * 1024 * 1024;

/// The longest name of one file or directory; what Linux file systems hold.
pub(crate) const MAX_NAME_BYTES: usize = 255;

/// The longest path; what Linux system calls take.
pub(crate) const MAX_PATH_BYTES: usize = 4095;

/// The most folders in a path as it is written. Each is made, looked at and taken back after the one around it.
pub(crate) const MAX_FOLDERS: usize = 256;

/// How much of the wanted lines an error repeats.
pub(crate) const MAX_QUOTED_BYTES: usize = 4_000;
