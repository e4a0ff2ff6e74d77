//! MCP servers: what they offer, connecting to them anew, and logging in to them.

use std::sync::Arc;

use protocol::{
    ListMcpServerStatusParams, ListMcpServerStatusResponse, McpServerOauthLogin, McpServerOauthLoginParams,
    McpServerRefreshResponse, NoParams, ServerNotification,
};
use runtime::RuntimeError;

use crate::app::App;
use crate::hub::Requester;
use crate::reply::MethodReply;

pub(crate) async fn status_list(
    app: Arc<App>,
    _: Requester,
    params: ListMcpServerStatusParams,
) -> Result<ListMcpServerStatusResponse, RuntimeError> {
    app.runtime.list_mcp_servers(params).await
}

pub(crate) async fn reload(
    app: Arc<App>,
    _: Requester,
    _: NoParams,
) -> Result<McpServerRefreshResponse, RuntimeError> {
    app.runtime.reload_mcp_servers().await
}

/// Answers with the address to open. Everybody hears how the login ended, whoever asked for it.
pub(crate) async fn oauth_login(
    app: Arc<App>,
    _: Requester,
    params: McpServerOauthLoginParams,
    reply: MethodReply<McpServerOauthLogin>,
) {
    match app.runtime.begin_mcp_login(params).await {
        Err(error) => reply.send(Err(error.into())),
        Ok((response, completed)) => {
            reply.send(Ok(response));
            // Bounded by the login's own limit of time. It must not hold up the requests of this connection.
            tokio::spawn(async move {
                let completed = ServerNotification::McpServerOauthLoginCompleted(completed.await);
                app.hub.broadcast(completed).await;
            });
        }
    }
}
