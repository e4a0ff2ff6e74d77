//! Owns the built-in tools, one file each with spec, prompt section, handler and tests, and the registry of them.
//! Must not know who asked, nor how calls are scheduled.

mod apply_patch;
mod bench;
mod bm25;
mod digest;
mod error;
mod exec_command;
mod grep_files;
mod lines;
mod list_dir;
mod offer;
mod orchestrate;
mod patch_look;
mod read_file;
mod registry;
mod remote;
mod request_permissions;
mod request_user_input;
mod schema;
mod search_tool_bm25;
mod shell;
mod shell_command;
mod shown;
mod sight;
mod terminals;
mod test_sync_tool;
mod tool;
mod turn_diffs;
mod update_plan;
mod user_shell;
mod view_image;
mod web_search;
mod write_stdin;

#[cfg(test)]
mod scene;
#[cfg(test)]
mod testing;

pub use apply_patch::ApplyPatch;
pub use bench::{Bench, BenchOptions};
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
pub use search_tool_bm25::SearchToolBm25;
pub use shell::Shell;
pub use shell_command::ShellCommand;
pub use test_sync_tool::TestSyncTool;
pub use tool::{BoxFuture, Caller, Sink, Tool, ToolCx};
pub use update_plan::UpdatePlan;
pub use user_shell::UserShell;
pub use view_image::ViewImage;
pub use web_search::WebSearch;
pub use write_stdin::WriteStdin;
