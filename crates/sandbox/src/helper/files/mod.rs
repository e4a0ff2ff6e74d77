//! The file system of a command: planned outside by `plan`, built inside by `mount`.

mod aliases;
pub(super) mod devices;
mod git_dir;
pub(super) mod hidden;
pub(super) mod masks;
pub(super) mod mount;
pub(super) mod own_files;
pub(super) mod placeholder;
pub(super) mod plan;
pub(super) mod roots;
mod tree;

use super::{failure, layers, sys, wait, wire};
