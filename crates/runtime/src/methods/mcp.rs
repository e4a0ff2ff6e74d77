//! `mcpServer*/*` and `config/mcpServer/reload`; connecting threads to their MCP servers.

use std::sync::Arc;
use std::time::Duration;

use config::{Home, McpServer, McpServerProblem, ResolvedConfig, approve_mcp_tool};
use futures_util::FutureExt as _;
use mcp::{BegunLogin, LoginOptions, McpHost, McpServices, McpSource, RequiredServers, server_statuses};
use protocol::{
    ListMcpServerStatusParams, ListMcpServerStatusResponse, McpServerOauthLoginCompletedNotification,
    McpServerOauthLoginParams, McpServerOauthLoginResponse, McpServerRefreshResponse, ServerNotification,
    ThreadId,
};
use support::blocking;

use crate::error::RuntimeError;
use crate::open::config_request::ConfigRequest;
use crate::runtime::Runtime;
use crate::state::RuntimeState;
use driver::{Audience, BoxFuture};

/// How long a login waits for the browser.
const LOGIN_LIMIT: Duration = Duration::from_secs(300);

/// The runtime's services for a thread's connections.
#[derive(Debug)]
struct ThreadHost {
    thread_id: ThreadId,
    audience: Arc<dyn Audience>,
    home: Home,
}

impl McpHost for ThreadHost {
    fn notify(&self, notification: ServerNotification) -> BoxFuture<'static, ()> {
        let (thread_id, audience) = (self.thread_id.clone(), self.audience.clone());
        Box::pin(async move { audience.notify(&thread_id, notification).await })
    }

    fn approve_for_good(&self, server: &str, tool: &str) -> BoxFuture<'static, Result<(), String>> {
        let (home, server, tool) = (self.home.clone(), server.to_owned(), tool.to_owned());
        Box::pin(async move {
            let written = blocking(move || approve_mcp_tool(&home, &server, &tool)).await;
            written.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
        })
    }
}

/// The servers of the configuration and of plugins.
fn all_mcp_servers(config: &ResolvedConfig) -> Vec<Result<McpServer, McpServerProblem>> {
    config.mcp_servers_with(plugins::mcp_servers(config))
}

/// The MCP servers of a thread that is being opened. `None` if none are configured.
pub(crate) fn mcp_source(
    state: &RuntimeState,
    config: &ResolvedConfig,
    cwd: &str,
    thread_id: &ThreadId,
    audience: &Arc<dyn Audience>,
    required: RequiredServers,
) -> Option<Arc<McpSource>> {
    let servers = all_mcp_servers(config);
    let host =
        || ThreadHost { thread_id: thread_id.clone(), audience: audience.clone(), home: config.home.clone() };
    (!servers.is_empty()).then(|| McpSource::new(servers, cwd, state.mcp.clone(), Arc::new(host()), required))
}

/// Starts the servers that the thread requires. Fails when one does not start.
pub(crate) async fn start_required_mcp_servers(
    config: &ResolvedConfig,
    cwd: &str,
    services: &McpServices,
) -> Result<RequiredServers, RuntimeError> {
    RequiredServers::start(all_mcp_servers(config), cwd, services).await.map_err(|missing| {
        let each: Vec<_> = missing.into_iter().map(|(name, reason)| format!("{name}: {reason}")).collect();
        RuntimeError::RequiredMcpServers(each.join("; "))
    })
}

impl Runtime {
    /// Starts connecting to a thread's MCP servers. Called when its clients know the thread, so that they get the
    /// progress.
    pub fn connect_mcp_servers(&self, id: &ThreadId) {
        if let Some(source) = self.state.threads.get(id).and_then(|loaded| loaded.mcp) {
            source.start();
        }
    }

    /// Connects to every configured server to list what it offers.
    pub async fn list_mcp_servers(
        &self,
        params: ListMcpServerStatusParams,
    ) -> Result<ListMcpServerStatusResponse, RuntimeError> {
        let start = match &params.cursor {
            None => 0,
            Some(cursor) => cursor.parse().map_err(|_| RuntimeError::InvalidCursor(cursor.clone()))?,
        };
        let config = self.load_for_mcp(ConfigRequest::default()).await?;
        let servers: Vec<McpServer> = all_mcp_servers(&config).into_iter().filter_map(Result::ok).collect();
        let total = servers.len();
        if start > total {
            return Err(RuntimeError::Cursor(format!("cursor {start} exceeds total MCP servers {total}")));
        }
        let limit = params.limit.map_or(total, |limit| usize::try_from(limit.max(1)).unwrap_or(total));
        let page: Vec<McpServer> = servers.into_iter().skip(start).take(limit).collect();
        let end = start + page.len();
        let cwd = folder_of(&config);
        let data = server_statuses(page, &cwd, &self.state.mcp).await;
        Ok(ListMcpServerStatusResponse { data, next_cursor: (end < total).then(|| end.to_string()) })
    }

    /// Starts the login to a server. The future completes the login and returns the result; dropping it cancels the
    /// login.
    pub async fn begin_mcp_login(
        &self,
        params: McpServerOauthLoginParams,
    ) -> Result<
        (McpServerOauthLoginResponse, BoxFuture<'static, McpServerOauthLoginCompletedNotification>),
        RuntimeError,
    > {
        let McpServerOauthLoginParams { name, scopes, timeout_secs } = params;
        let config = self.load_for_mcp(ConfigRequest::default()).await?;
        let found = all_mcp_servers(&config).into_iter().find(|server| match server {
            Ok(server) => server.name == name,
            Err(problem) => problem.name == name,
        });
        let server = found.ok_or_else(|| RuntimeError::UnknownMcpServer(name.clone()))?;
        let server = server.map_err(|problem| RuntimeError::Config(problem.message))?;
        let limit =
            timeout_secs.map_or(LOGIN_LIMIT, |secs| Duration::from_secs(u64::try_from(secs).unwrap_or(0)));
        let options = LoginOptions { scopes, limit, port: config.mcp_oauth_callback_port() };
        let BegunLogin { url, ended } = self.state.mcp.logins().begin(&server, options).await?;
        let runtime = self.clone();
        let completed = ended.map(move |ended| {
            if ended.is_ok() {
                runtime.reconnect_mcp_server(&name);
            }
            let error = ended.err().map(|error| error.to_string());
            McpServerOauthLoginCompletedNotification { name, success: error.is_none(), error }
        });
        Ok((McpServerOauthLoginResponse { authorization_url: url }, Box::pin(completed)))
    }

    /// Threads that failed to connect to it try again at their next request.
    fn reconnect_mcp_server(&self, name: &str) {
        for source in self.loaded_ids().iter().filter_map(|id| self.state.threads.get(id)?.mcp) {
            source.reconnect(name);
        }
    }

    /// Each thread in memory reconnects at its next request, with the current configuration.
    pub async fn reload_mcp_servers(&self) -> Result<McpServerRefreshResponse, RuntimeError> {
        for id in self.loaded_ids() {
            let Some(loaded) = self.state.threads.get(&id) else { continue };
            let Some(source) = loaded.mcp else { continue };
            let request = ConfigRequest::of_child(&loaded.identity.meta.cwd, None);
            source.reload(all_mcp_servers(&self.load_for_mcp(request).await?));
        }
        Ok(McpServerRefreshResponse {})
    }

    async fn load_for_mcp(&self, request: ConfigRequest) -> Result<ResolvedConfig, RuntimeError> {
        let loader = self.state.loader.clone();
        blocking(move || request.load(&loader)).await?
    }
}

/// The working folder of servers outside any thread.
fn folder_of(config: &ResolvedConfig) -> String {
    config.cwd.as_deref().map_or_else(|| "/".to_owned(), |folder| folder.to_string_lossy().into_owned())
}
