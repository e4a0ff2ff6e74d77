//! Owns which names are protected, however they are spelled, and which characters cannot be seen.
//! Must not know files, sandboxes or patches.

mod invisible;
mod protected;

pub use invisible::is_invisible;
pub use protected::{PROTECTED_NAMES, is_protected};
