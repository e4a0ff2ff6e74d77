//! A digest over everything that determines a proposal's effect, so that an approval covers exactly that.

pub(crate) use engine::digest_of;
