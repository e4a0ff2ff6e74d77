//! Child agents: threads that another thread's model started, in this process or at the host.

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

/// Operations on the agents of this process.
#[derive(Debug, Clone)]
pub(crate) struct AgentControl {
    state: Arc<RuntimeState>,
}

impl AgentControl {
    pub(crate) fn new(state: &Arc<RuntimeState>) -> Self {
        Self { state: state.clone() }
    }
}
