//! Jobs: a child agent for each row of a CSV file, a limited number at a time, and a CSV file with their results.
//!
//! The thread's record says which rows have an agent, because each is started by its own call. The agents' reports are
//! in a file of the job, so that a job continues after a restart.

mod board;
mod csv;
mod job;
mod report_agent_job_result;
mod spawn_agents_on_csv;
#[cfg(test)]
mod tests;

pub use report_agent_job_result::ReportAgentJobResult;
pub use spawn_agents_on_csv::SpawnAgentsOnCsv;

/// The feature that enables jobs.
const FEATURE: &str = "enable_fanout";
