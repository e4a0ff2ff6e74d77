//! Services that the connections of a process share.

use std::sync::Arc;

use config::Home;
use support::Clock;

use crate::McpLogins;

/// One pool of HTTP connections, and the logins that use it. Clones share both.
#[derive(Debug, Clone)]
pub struct McpServices {
    pub(crate) http: http::Client,
    logins: Arc<McpLogins>,
}

impl McpServices {
    /// Does not connect yet. Other hosts are reached through the proxy in the environment.
    pub fn new(home: &Home, clock: Arc<dyn Clock>) -> Self {
        let variable = |names: &[&str]| {
            let value = names.iter().find_map(|name| std::env::var(name).ok());
            value.filter(|value| !value.trim().is_empty())
        };
        let address = variable(&["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"]);
        let no_proxy = variable(&["NO_PROXY", "no_proxy"]).unwrap_or_default();
        let proxy = address.and_then(|address| match http::Proxy::new(&address, &no_proxy) {
            Ok(proxy) => Some(proxy),
            Err(error) => {
                tracing::warn!(%error, "MCP servers are reached without it");
                None
            }
        });
        let http = http::Client::new(proxy);
        Self { logins: Arc::new(McpLogins::new(home, http.clone(), clock)), http }
    }

    /// The pool, for other HTTP requests.
    pub fn http(&self) -> &http::Client {
        &self.http
    }

    pub fn logins(&self) -> &Arc<McpLogins> {
        &self.logins
    }
}
