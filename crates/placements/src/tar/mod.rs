//! Tar streams: a writer for workspaces, and a check of every stream that comes from elsewhere.

mod check;
mod header;
mod writer;

pub(crate) use check::{TarCheck, TarOrigin, stays_inside};
pub(crate) use header::relative_parts;
pub(crate) use writer::TarWriter;

pub(crate) const BLOCK: usize = 512;
