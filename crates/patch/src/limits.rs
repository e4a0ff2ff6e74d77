//! The limits of a patch.

/// Limit of a file, before and after.
pub const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// Limit of all files of one patch together.
pub const MAX_TOTAL_BYTES: u64 = 256 * 1024 * 1024;

/// Limit of a file name on Linux.
pub(crate) const MAX_NAME_BYTES: usize = 255;

/// Limit of a path in Linux system calls.
pub(crate) const MAX_PATH_BYTES: usize = 4095;

/// The most folders in a path as it is written. Each is made, looked at and taken back after the one around it.
pub(crate) const MAX_FOLDERS: usize = 256;

/// Limit of the wanted lines in an error.
pub(crate) const MAX_QUOTED_BYTES: usize = 4_000;
