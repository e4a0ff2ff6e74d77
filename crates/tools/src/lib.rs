//! Owns the built-in tools, one file each with spec, prompt section, handler and tests, and the registry of them.
//! Must not know who asked, nor how calls are scheduled.

mod agents;
mod apply_patch;
mod bench;
mod bm25;
mod call_scope;
mod close_agent;
mod digest;
mod error;
mod exec_command;
mod grep_files;
mod item_started;
mod lines;
mod list_dir;
mod offer;
mod orchestrate;
mod read_file;
mod recent_offers;
mod registry;
mod remote;
mod request_permissions;
mod request_user_input;
mod resume_agent;
mod schema;
mod search_tool_bm25;
mod send_input;
mod shell;
mod shell_command;
mod shown;
mod sight;
mod spawn_agent;
mod terminals;
mod test_sync_tool;
mod tool;
mod turn_diffs;
mod update_plan;
mod user_shell;
mod view_image;
mod wait_agent;
mod web_search;
mod whole_numbers;
mod write_stdin;

#[cfg(test)]
mod fake_agents;
#[cfg(test)]
mod scene;
#[cfg(test)]
mod testing;

pub use agents::{AgentStatus, Agents, SpawnOrder, Spawned};
pub use apply_patch::ApplyPatch;
pub use bench::{Bench, BenchOptions};
pub use call_scope::{CallScope, Held};
pub use close_agent::CloseAgent;
pub use error::ToolError;
pub use exec_command::ExecCommand;
pub use grep_files::GrepFiles;
pub use list_dir::ListDir;
pub use offer::{Offer, PatchForm, ShellForm, Standing};
pub use read_file::ReadFile;
pub use registry::Registry;
pub use remote::client_environment;
pub use request_permissions::RequestPermissions;
pub use request_user_input::RequestUserInput;
pub use resume_agent::ResumeAgent;
pub use search_tool_bm25::SearchToolBm25;
pub use send_input::SendInput;
pub use shell::Shell;
pub use shell_command::ShellCommand;
pub use sight::roots_of;
pub use spawn_agent::SpawnAgent;
pub use test_sync_tool::TestSyncTool;
pub use tool::{BoxFuture, Caller, Sink, Tool, ToolCx};
pub use update_plan::UpdatePlan;
pub use user_shell::UserShell;
pub use view_image::ViewImage;
pub use wait_agent::WaitAgent;
pub use web_search::WebSearch;
pub use write_stdin::WriteStdin;
