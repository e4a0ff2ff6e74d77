//! How far the making of a placement is.

use std::fmt;
use std::sync::Arc;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlacementStep {
    Pulling,
    Creating,
    Staging,
    Workspace,
    Setup,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaceProgress {
    pub step: PlacementStep,
    /// Bytes, or commands of the setup.
    pub done: u64,
    pub total: Option<u64>,
    /// A line that a setup command printed, without secrets.
    pub line: Option<String>,
}

/// Called from the task that works; it must not block.
#[derive(Clone)]
pub struct ProgressSink(Arc<dyn Fn(PlaceProgress) + Send + Sync>);

impl ProgressSink {
    pub fn new(on_progress: impl Fn(PlaceProgress) + Send + Sync + 'static) -> Self {
        Self(Arc::new(on_progress))
    }

    /// For callers that do not watch.
    pub fn none() -> Self {
        Self::new(|_| {})
    }

    pub(crate) fn step(&self, step: PlacementStep, done: u64, total: Option<u64>) {
        (self.0)(PlaceProgress { step, done, total, line: None });
    }

    pub(crate) fn line(&self, done: u64, total: u64, line: String) {
        (self.0)(PlaceProgress { step: PlacementStep::Setup, done, total: Some(total), line: Some(line) });
    }
}

impl fmt::Debug for ProgressSink {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("ProgressSink")
    }
}
