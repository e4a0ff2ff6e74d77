//! The tools and resources of configured servers, for `mcpServerStatus/list`. Connects to each of them temporarily.

use std::collections::BTreeMap;
use std::sync::Arc;

use config::{McpServer, McpTransport};
use futures_util::future::{join, join_all};
use protocol::{McpAuthStatus, McpServerStatus, Resource, ResourceTemplate, ServerNotification, Tool};
use serde::de::DeserializeOwned;
use tools::BoxFuture;

use crate::McpServices;
use crate::inbound::McpHost;
use crate::names::sanitised;
use crate::oauth::has_token;
use crate::server::{LiveServer, Server, list};

/// The host of temporary connections, which have no clients.
#[derive(Debug)]
pub(crate) struct Nobody;

impl McpHost for Nobody {
    fn notify(&self, _: ServerNotification) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }

    fn approve_for_good(&self, _: &str, _: &str) -> BoxFuture<'static, Result<(), String>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// In the given order. A server that does not start offers nothing.
pub async fn server_statuses(
    servers: Vec<McpServer>,
    cwd: &str,
    services: &McpServices,
) -> Vec<McpServerStatus> {
    join_all(servers.into_iter().map(|server| status(server, cwd, services.clone()))).await
}

async fn status(options: McpServer, cwd: &str, services: McpServices) -> McpServerStatus {
    let (name, limit) = (options.name.clone(), options.startup_timeout);
    let server = Server::new(options.clone(), cwd, services.clone());
    let host: Arc<dyn McpHost> = Arc::new(Nobody);
    server.start(&host);
    let ((), auth_status) = join(server.settled(), auth_status(&options, &services)).await;
    let mut status = McpServerStatus {
        name,
        tools: BTreeMap::new(),
        resources: Vec::new(),
        resource_templates: Vec::new(),
        auth_status,
    };
    if let Ok(live) = server.live() {
        for tool in live.tools().iter() {
            if let Ok(shown) = protocol::from_value::<Tool>(&tool.raw) {
                status.tools.insert(sanitised(&tool.name), shown);
            }
        }
        if live.has_resources {
            let both = async {
                let resources = listed::<Resource>(&live, "resources/list", "resources").await;
                let templates =
                    listed::<ResourceTemplate>(&live, "resources/templates/list", "resourceTemplates").await;
                (resources, templates)
            };
            if let Ok(found) = tokio::time::timeout(limit, both).await {
                (status.resources, status.resource_templates) = found;
            }
        }
    }
    server.close(&host).await;
    status
}

async fn listed<T: DeserializeOwned>(live: &LiveServer, method: &str, key: &str) -> Vec<T> {
    let entries = list(&live.peer, method, key).await.unwrap_or_default();
    entries.iter().filter_map(|entry| protocol::from_value(entry).ok()).collect()
}

async fn auth_status(server: &McpServer, services: &McpServices) -> McpAuthStatus {
    match &server.transport {
        McpTransport::Stdio { .. } => McpAuthStatus::Unsupported,
        McpTransport::Http { .. } if has_token(server) => McpAuthStatus::BearerToken,
        McpTransport::Http { .. } if services.logins().is_logged_in(server).await => McpAuthStatus::OAuth,
        McpTransport::Http { .. } if services.logins().is_offered(server).await => McpAuthStatus::NotLoggedIn,
        McpTransport::Http { .. } => McpAuthStatus::Unsupported,
    }
}
