//! Converts system errors to reports for the server.

use std::fmt::Display;

use super::wire::{StartFailure, StartStage};

impl StartFailure {
    pub(crate) fn new(stage: StartStage, message: impl Into<String>) -> Self {
        Self { stage, message: message.into() }
    }
}

/// Names the step that an error belongs to.
pub(crate) trait At<T> {
    fn at(self, stage: StartStage, doing: &str) -> Result<T, StartFailure>;
}

impl<T, E: Display> At<T> for Result<T, E> {
    fn at(self, stage: StartStage, doing: &str) -> Result<T, StartFailure> {
        self.map_err(|error| StartFailure::new(stage, format!("cannot {doing}: {error}")))
    }
}
