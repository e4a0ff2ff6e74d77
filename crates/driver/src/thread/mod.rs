//! One thread: its actor, the sole owner of its state, and the handle that sends it commands.

pub(crate) mod actor;
pub(crate) mod capture;
pub(crate) mod effects;
pub(crate) mod end_calls;
pub(crate) mod error;
#[cfg(test)]
mod exact_effects_tests;
pub(crate) mod goal;
pub(crate) mod handle;
pub(crate) mod hooks;
pub(crate) mod images;
pub(crate) mod notify;
pub(crate) mod open_items;
pub(crate) mod recorder;
pub(crate) mod recover;
pub(crate) mod resume_turn;
pub(crate) mod settings;
pub(crate) mod spans;
pub(crate) mod state;
pub(crate) mod suspend;
pub(crate) mod tasks;
pub(crate) mod tool_jobs;
#[cfg(test)]
pub(crate) mod trace;
