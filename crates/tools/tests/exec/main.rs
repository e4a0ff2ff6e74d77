//! Real commands, decided and run as in a thread.

#![allow(clippy::expect_used, reason = "a test may panic")]

mod approvals;
mod approved;
mod confinement;
mod elsewhere;
mod elsewhere_asked;
mod elsewhere_lost;
mod elsewhere_patches;
mod elsewhere_read;
mod narrowed;
mod one_shots;
mod planted;
mod profiles;
mod races;
mod scripts;
mod sessions;
mod stage;
mod start_files;
mod swaps;
