//! Servers that a thread requires. They start before the thread is opened, and the thread then uses these connections.

use std::sync::Arc;

use config::{McpServer, McpServerProblem};

use crate::McpServices;
use crate::inbound::McpHost;
use crate::server::{McpServerState, Server};
use crate::status::Nobody;

/// Required servers that are ready.
#[derive(Debug, Default)]
pub struct RequiredServers(Vec<Arc<Server>>);

/// Why a thread cannot be opened: each missing server with the reason.
pub type MissingServers = Vec<(String, String)>;

impl RequiredServers {
    /// Starts the required servers concurrently, and waits until each is ready or has failed. If one fails, all are
    /// closed.
    pub async fn start(
        configured: Vec<Result<McpServer, McpServerProblem>>,
        cwd: &str,
        services: &McpServices,
    ) -> Result<Self, MissingServers> {
        let (mut required, mut missing) = (Self::default(), MissingServers::new());
        for server in configured {
            match server {
                Ok(server) if server.required => required.0.push(Server::new(server, cwd, services.clone())),
                Err(problem) if problem.required => missing.push((problem.name, problem.message)),
                Ok(_) | Err(_) => {}
            }
        }
        // There is no thread yet: its clients are notified later.
        let host: Arc<dyn McpHost> = Arc::new(Nobody);
        required.0.iter().for_each(|server| server.start(&host));
        for server in &required.0 {
            server.settled().await;
            if let McpServerState::Failed(reason) = server.state() {
                missing.push((server.name().to_owned(), reason));
            }
        }
        if missing.is_empty() {
            return Ok(required);
        }
        required.close().await;
        Err(missing)
    }

    /// The thread was not opened.
    pub async fn close(self) {
        let host: Arc<dyn McpHost> = Arc::new(Nobody);
        for server in self.0 {
            server.close(&host).await;
        }
    }

    pub(crate) fn take(&mut self, name: &str) -> Option<Arc<Server>> {
        let at = self.0.iter().position(|server| server.name() == name)?;
        Some(self.0.swap_remove(at))
    }
}
