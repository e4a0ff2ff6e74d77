//! Turning an error of the operating system into what the server is told.

use std::fmt::Display;

use super::wire::{Failure, Stage};

impl Failure {
    pub(crate) fn new(stage: Stage, message: impl Into<String>) -> Self {
        Self { stage, message: message.into() }
    }
}

/// Names the step that an error belongs to.
pub(crate) trait At<T> {
    fn at(self, stage: Stage, doing: &str) -> Result<T, Failure>;
}

impl<T, E: Display> At<T> for Result<T, E> {
    fn at(self, stage: Stage, doing: &str) -> Result<T, Failure> {
        self.map_err(|error| Failure::new(stage, format!("cannot {doing}: {error}")))
    }
}
