//! Child agents: those known to the process and those in records: the children of a thread, which of them the host
//! runs, and which ends were not reported.

mod agent;
mod at_host;
mod ledger;
mod nicknames;
mod recorded_child;
mod registry;
mod status;
#[cfg(test)]
mod testing;

pub use agent::{Agent, AgentPlace, Family};
pub use at_host::{HOST_PREFIX, report_late, reported_now, result_status, runs_at_host};
pub use ledger::{
    AgentRecord, ChildAccount, ChildFinding, ChildLife, ChildTurnEnd, ReportedEnd, find_children,
};
pub use nicknames::nickname;
pub use recorded_child::RecordedChild;
pub use registry::AgentRegistry;
pub use status::{depth_of, ended, is_output_of, output_text, recorded_status};
