//! Child agents: threads that the model of another thread started, here or at the host.

mod at_host;
mod child_observer;
mod children;
mod late_reports;
mod resume;
mod roles;
mod spawn;
#[cfg(test)]
mod tests;

use std::sync::Arc;

pub(crate) use child_observer::ChildObserver;
pub(crate) use children::Children;

use crate::state::RuntimeState;

/// Commands to the agents of this process.
#[derive(Debug, Clone)]
pub(crate) struct AgentControl {
    state: Arc<RuntimeState>,
}

impl AgentControl {
    pub(crate) fn new(state: &Arc<RuntimeState>) -> Self {
        Self { state: state.clone() }
    }
}
