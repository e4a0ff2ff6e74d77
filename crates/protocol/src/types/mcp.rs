//! MCP servers: how they stand, what they offer, and logging in to them.

use super::prelude::*;

/// Starts the OAuth login to an MCP server that is reached by HTTP.
#[wire(omit_null)]
pub struct McpServerOauthLoginParams {
    /// Its name in the configuration.
    pub name: String,
    /// When unset, those of the configuration, else those the server announces.
    pub scopes: Option<Vec<String>>,
    /// 300 when unset.
    pub timeout_secs: Option<i64>,
}

/// Lists MCP servers by name, a page at a time. Connects to each of them to ask.
#[wire(omit_null)]
pub struct ListMcpServerStatusParams {
    /// `nextCursor` of the page before; unset for the first page.
    pub cursor: Option<String>,
    /// Most servers on one page; all when unset.
    pub limit: Option<u32>,
}

/// Sent at once; `mcpServer/oauthLogin/completed` follows.
#[wire]
pub struct McpServerOauthLoginResponse {
    /// The page for the user to open.
    pub authorization_url: String,
}

/// Each loaded thread connects anew at its next turn.
#[wire]
pub struct McpServerRefreshResponse {}

/// How the connection to an MCP server is authenticated.
#[wire]
pub enum McpAuthStatus {
    /// There is nothing to log in to, as with a server started as a command.
    Unsupported,
    /// The server offers OAuth; there is no login yet.
    NotLoggedIn,
    /// With a token or header from the configuration.
    BearerToken,
    /// With stored OAuth tokens.
    OAuth,
}

/// One MCP server and what it offers.
#[wire]
pub struct McpServerStatus {
    /// Its name in the configuration.
    pub name: String,
    /// By tool name.
    pub tools: BTreeMap<String, Tool>,
    pub resources: Vec<Resource>,
    pub resource_templates: Vec<ResourceTemplate>,
    pub auth_status: McpAuthStatus,
}

/// A resource that an MCP server lets clients read, in the form of MCP.
#[wire(omit_null)]
pub struct Resource {
    pub annotations: Option<Value>,
    pub description: Option<String>,
    pub mime_type: Option<String>,
    pub name: String,
    /// In bytes.
    pub size: Option<i64>,
    pub title: Option<String>,
    pub uri: String,
    pub icons: Option<Vec<Value>>,
    #[serde(rename = "_meta")]
    pub meta: Option<Value>,
}

/// A template for resources, in the form of MCP.
#[wire(omit_null)]
pub struct ResourceTemplate {
    pub annotations: Option<Value>,
    /// A URI with places to fill in.
    pub uri_template: String,
    pub name: String,
    pub title: Option<String>,
    pub description: Option<String>,
    pub mime_type: Option<String>,
}

/// A tool of an MCP server, in its own words. `inputSchema` and `outputSchema` are JSON Schemas of its
/// arguments and its structured result; `annotations` are hints, such as whether it only reads.
#[wire(omit_null)]
pub struct Tool {
    pub name: String,
    pub title: Option<String>,
    pub description: Option<String>,
    pub input_schema: Value,
    pub output_schema: Option<Value>,
    pub annotations: Option<Value>,
    pub icons: Option<Vec<Value>>,
    #[serde(rename = "_meta")]
    pub meta: Option<Value>,
}

#[wire]
pub struct ListMcpServerStatusResponse {
    /// Sorted by name.
    pub data: Vec<McpServerStatus>,
    /// Null on the last page.
    pub next_cursor: Option<String>,
}

/// Sent to all connections when an OAuth login has ended.
#[wire(omit_null)]
pub struct McpServerOauthLoginCompletedNotification {
    /// The server's name in the configuration.
    pub name: String,
    pub success: bool,
    /// Set when `success` is false.
    pub error: Option<String>,
}

/// How far an MCP server has come.
#[wire]
pub enum McpServerStartupState {
    Starting,
    Ready,
    Failed,
    /// It was given up before it was ready.
    Cancelled,
}

/// Sent as an MCP server of a thread starts up.
#[wire]
pub struct McpServerStatusUpdatedNotification {
    /// The server's name in the configuration.
    pub name: String,
    pub status: McpServerStartupState,
    /// Set with `failed`.
    pub error: Option<String>,
}
