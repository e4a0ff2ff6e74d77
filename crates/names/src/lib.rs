//! Owns the list of protected names in every spelling, and of invisible characters. Must not know files, sandboxes or
//! patches.

mod invisible;
mod protected;

pub use invisible::is_invisible;
pub use protected::{PROTECTED_NAMES, is_protected};
