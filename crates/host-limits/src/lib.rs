//! Owns what a host allows its tasks: budgets, models, requests and records in a time, and runtimes at once. Must not know how a task is
//! driven.

mod limits;
mod slots;

pub use limits::{AppendLimiter, HostLimits, MAX_OPEN_OPERATIONS, RateWindow};
pub use slots::{RuntimeSlot, RuntimeSlots, SlotClaim};
