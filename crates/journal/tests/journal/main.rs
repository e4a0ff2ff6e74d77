//! The journal as its users see it, against real files, injected faults and other processes.

// The lint spares test functions but not what they call.
#![allow(clippy::unwrap_used, clippy::needless_pass_by_value)]

mod damage;
mod delete;
mod durability;
mod faults;
mod history;
mod index;
mod index_background;
mod locks;
mod reference;
mod sparse;
mod store;
mod support;
