//! `[mcp_servers]`: the configured servers, and changes of that table.

mod edit;
mod servers;

pub use edit::{approve_mcp_tool, remove_mcp_server, write_mcp_server};
pub use servers::{McpApprovalMode, McpServer, McpServerProblem, McpTransport};
