//! Jobs: a child agent for each row of a CSV file, some of them at a time, and a CSV file with what they found.
//!
//! Which rows have an agent is in the thread's record, because each is started by a call of its own. What the agents
//! report is in a file of the job, so that a job that a restart cut off goes on where it was.

mod board;
mod csv;
mod job;
mod report_agent_job_result;
mod spawn_agents_on_csv;
#[cfg(test)]
mod tests;

pub use report_agent_job_result::ReportAgentJobResult;
pub use spawn_agents_on_csv::SpawnAgentsOnCsv;

/// The feature that makes jobs available.
const FEATURE: &str = "enable_fanout";
