//! A digest over everything that decides what a proposal does, so that a yes is a yes to exactly that.

pub(crate) use engine::digest_of;
