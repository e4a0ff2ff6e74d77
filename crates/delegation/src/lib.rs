//! Owns delegation: the host carries model requests and may keep the record, transparently for the turn. A stream
//! belongs to one request (`stream.rs`); a host requests all terms when it opens a thread (`terms.rs`). Also owns the
//! registry of child agents, and their state in records (`children/`). Must not know how threads run, JSON-RPC or
//! sockets.

mod children;
mod dynamic_tools;
mod error;
mod failure;
mod heartbeat;
mod host;
mod host_choices;
mod host_record;
mod imported_history;
mod incoming;
mod reading;
#[cfg(test)]
mod record_tests;
mod request;
#[cfg(test)]
mod schedules;
mod session;
mod shape;
mod stream;
#[cfg(test)]
mod stream_tests;
mod terms;
#[cfg(test)]
mod testing;
mod tool_set;
mod transport;
mod uploads;

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use protocol::ThreadId;

pub use children::{
    Agent, AgentPlace, AgentRecord, AgentRegistry, ChildAccount, ChildFinding, ChildLife, ChildTurnEnd,
    Family, HOST_PREFIX, RecordedChild, ReportedEnd, depth_of, ended, find_children, is_output_of, nickname,
    output_text, recorded_status, report_late, reported_now, result_status, runs_at_host,
};
pub use dynamic_tools::check_dynamic_tools;
pub use error::DelegationError;
pub use failure::{gone_for_good, superseded};
pub use host::{Host, HostError, HostId};
pub use host_choices::HostChoices;
pub use host_record::HostRecord;
pub use imported_history::ImportedHistory;
pub use session::HostSession;
pub use shape::{shape, shape_offer};
pub use terms::{DELEGATION_FEATURES, DELEGATION_VERSION, Terms};
pub use tool_set::{asked_tool_set, refuse_beside, tool_set_digest};
pub use transport::DelegatedTransport;
pub use uploads::Uploads;

/// The hosts' sessions with the threads of this process.
#[derive(Debug, Default)]
pub struct Delegation {
    /// Each is owned by its thread.
    sessions: Mutex<HashMap<ThreadId, Weak<HostSession>>>,
    /// The newest lease epoch seen for each thread, loaded or not.
    epochs: Mutex<HashMap<ThreadId, u64>>,
    heartbeat: heartbeat::Heartbeat,
}

impl Delegation {
    /// The host's lease is valid for this time.
    pub fn lease_renewed(&self, valid_for: Duration) {
        self.heartbeat.heard(valid_for);
    }

    /// Returns when the host's lease has expired. Nothing may continue in this process then: another host may have its
    /// threads.
    pub async fn lease_over(&self) {
        self.heartbeat.over().await;
    }

    /// A host disconnected: its streams will not continue.
    pub fn host_gone(&self, host: HostId) {
        let sessions: Vec<_> = self.sessions.lock().values().filter_map(Weak::upgrade).collect();
        for session in sessions {
            session.detach(host);
        }
    }

    pub fn session(&self, thread: &ThreadId) -> Option<Arc<HostSession>> {
        self.sessions.lock().get(thread)?.upgrade()
    }

    fn keep(&self, session: &Arc<HostSession>) {
        let mut sessions = self.sessions.lock();
        sessions.retain(|_, session| session.strong_count() > 0);
        sessions.insert(session.thread_id().clone(), Arc::downgrade(session));
    }

    /// Refuses a host whose lease has passed to another.
    fn fence(&self, thread: &ThreadId, given: Option<u64>) -> Result<(), DelegationError> {
        let mut epochs = self.epochs.lock();
        let seen = epochs.get(thread).copied();
        match (given, seen) {
            (given, Some(seen)) if given.is_none_or(|given| given < seen) => {
                Err(DelegationError::Fenced { given, seen })
            }
            (Some(given), _) => {
                epochs.insert(thread.clone(), given);
                Ok(())
            }
            (None, _) => Ok(()),
        }
    }
}
