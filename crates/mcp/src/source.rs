//! The servers of one thread as a source of tools.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use config::{McpServer, McpServerProblem};
use engine::{ToolCall, ToolOutcome, ToolSpec};
use futures_util::future::join_all;
use parking_lot::Mutex;
use protocol::{McpServerStartupState, McpServerStatusUpdatedNotification, ServerNotification};
use tools::{BoxFuture, Offer, ToolCx, ToolError, ToolSource};

use crate::McpServices;
use crate::approval::Agreed;
use crate::call::{CallContext, call};
use crate::inbound::McpHost;
use crate::names::Names;
use crate::required::RequiredServers;
use crate::resources;
use crate::server::{McpServerState, Server};
use crate::tool::ServerTool;

/// A configured server, or why it is unusable.
type Configured = Result<McpServer, McpServerProblem>;

/// Connects when the thread starts or first lists its tools.
#[derive(Debug)]
pub struct McpSource {
    host: Arc<dyn McpHost>,
    cwd: String,
    services: McpServices,
    connections: Mutex<Connections>,
    names: Mutex<Names>,
    agreed: Arc<Agreed>,
    /// The last specs, and the lists they were made from.
    offered: Mutex<Option<(Vec<ToolList>, Vec<ToolSpec>)>>,
    /// Whether the model of the last step accepts images.
    takes_images: AtomicBool,
}

#[derive(Debug, Default)]
struct Connections {
    servers: Vec<Arc<Server>>,
    /// Clients are notified once, when the others start.
    problems: Vec<McpServerProblem>,
    /// Ready before there was a thread. Clients are notified once, when the others start.
    ready: Vec<Arc<Server>>,
    /// The servers for the next step after a reload.
    reloaded: Option<Vec<Configured>>,
}

impl Connections {
    fn new(
        configured: Vec<Configured>,
        cwd: &str,
        services: &McpServices,
        mut required: RequiredServers,
    ) -> Self {
        let mut connections = Self::default();
        for server in configured {
            match server {
                Ok(server) if let Some(started) = required.take(&server.name) => {
                    connections.ready.push(started.clone());
                    connections.servers.push(started);
                }
                Ok(server) => connections.servers.push(Server::new(server, cwd, services.clone())),
                Err(problem) => connections.problems.push(problem),
            }
        }
        connections
    }
}

impl McpSource {
    /// Starts nothing yet; required servers are running already.
    pub fn new(
        configured: Vec<Configured>,
        cwd: &str,
        services: McpServices,
        host: Arc<dyn McpHost>,
        required: RequiredServers,
    ) -> Arc<Self> {
        Arc::new(Self {
            host,
            cwd: cwd.to_owned(),
            connections: Mutex::new(Connections::new(configured, cwd, &services, required)),
            services,
            names: Mutex::default(),
            agreed: Arc::default(),
            offered: Mutex::default(),
            takes_images: AtomicBool::new(true),
        })
    }

    /// Connects to every server, concurrently and in the background. Returns at once.
    pub fn start(&self) {
        let (servers, problems, ready) = {
            let mut connections = self.connections.lock();
            let problems = std::mem::take(&mut connections.problems);
            (connections.servers.clone(), problems, std::mem::take(&mut connections.ready))
        };
        servers.iter().for_each(|server| server.start(&self.host));
        for server in ready {
            let host = self.host.clone();
            tokio::spawn(async move { server.notify_ready(&host).await });
        }
        for McpServerProblem { name, message, .. } in problems {
            let host = self.host.clone();
            let status = McpServerStartupState::Failed;
            let update = McpServerStatusUpdatedNotification { name, status, error: Some(message) };
            tokio::spawn(
                async move { host.notify(ServerNotification::McpServerStatusUpdated(update)).await },
            );
        }
    }

    /// Uses these servers from the next step on, and closes connections to others.
    pub fn reload(&self, configured: Vec<Configured>) {
        self.connections.lock().reloaded = Some(configured);
    }

    /// Tries again to connect to a failed server. The next step waits for it.
    pub fn reconnect(&self, name: &str) {
        let mut connections = self.connections.lock();
        for server in &mut connections.servers {
            if server.name() == name && matches!(server.state(), McpServerState::Failed(_)) {
                *server = Server::new(server.options.clone(), &self.cwd, self.services.clone());
            }
        }
    }

    fn servers(&self) -> Vec<Arc<Server>> {
        self.connections.lock().servers.clone()
    }

    /// Applies a reload, if there was one.
    fn apply_reload(&self) {
        let replaced = {
            let mut connections = self.connections.lock();
            let Some(configured) = connections.reloaded.take() else { return };
            let required = RequiredServers::default();
            let next = Connections::new(configured, &self.cwd, &self.services, required);
            std::mem::replace(&mut *connections, next)
        };
        let host = self.host.clone();
        tokio::spawn(async move {
            for server in replaced.servers {
                server.close(&host).await;
            }
        });
    }
}

/// The tools of one server, if it is ready.
type ToolList = Option<Arc<[Arc<ServerTool>]>>;

/// Whether the lists are identical: a server that lists its tools again makes a new list.
fn same_lists(one: &[ToolList], other: &[ToolList]) -> bool {
    let is_same = |pair: (&ToolList, &ToolList)| match pair {
        (Some(one), Some(other)) => Arc::ptr_eq(one, other),
        (None, None) => true,
        _ => false,
    };
    one.len() == other.len() && one.iter().zip(other).all(is_same)
}

impl McpSource {
    fn make_specs(&self, servers: &[Arc<Server>], lists: &[ToolList]) -> Vec<ToolSpec> {
        let mut names = self.names.lock();
        let mut specs = Vec::new();
        for (server, tools) in servers.iter().zip(lists) {
            for tool in tools.iter().flat_map(|tools| tools.iter()) {
                match names.assign(server.name(), &tool.name) {
                    Some(name) => specs.push(tool.spec(name, server.options.plugin.as_deref())),
                    None => tracing::warn!(
                        server = server.name(),
                        tool = tool.name,
                        "another tool has the same name, so this one is not offered"
                    ),
                }
            }
        }
        specs.sort_by(|a, b| a.name.cmp(&b.name));
        let mut all = resources::specs();
        all.extend(specs);
        all
    }
}

impl ToolSource for McpSource {
    fn specs(&self, offer: &Offer) -> Vec<ToolSpec> {
        self.takes_images.store(offer.images, Ordering::Relaxed);
        let servers = self.servers();
        if servers.is_empty() {
            return Vec::new();
        }
        // Equal lists give equal specs: most requests differ only in the last message.
        let lists: Vec<ToolList> =
            servers.iter().map(|server| server.live().ok().map(|live| live.tools())).collect();
        let mut offered = self.offered.lock();
        if !offered.as_ref().is_some_and(|(known, _)| same_lists(known, &lists)) {
            let specs = self.make_specs(&servers, &lists);
            *offered = Some((lists, specs));
        }
        offered.as_ref().map(|(_, specs)| specs.clone()).unwrap_or_default()
    }

    fn has(&self, name: &str) -> bool {
        resources::TOOLS.contains(&name) || self.names.lock().meaning(name).is_some()
    }

    fn run(&self, made: ToolCall, cx: ToolCx) -> BoxFuture<'static, Result<ToolOutcome, ToolError>> {
        let (servers, cx) = (self.servers(), Arc::new(cx));
        if resources::TOOLS.contains(&made.name.as_str()) {
            return Box::pin(resources::run(servers, made.payload, cx));
        }
        let meaning = self.names.lock().meaning(&made.name);
        let found = meaning.and_then(|(server, tool)| {
            Some((servers.into_iter().find(|other| other.name() == server)?, tool))
        });
        let Some((server, tool)) = found else {
            let gone = format!("the MCP server of {} is no longer configured", made.name);
            return Box::pin(std::future::ready(Err(ToolError::Failed(gone))));
        };
        let (agreed, host) = (self.agreed.clone(), self.host.clone());
        let takes_images = self.takes_images.load(Ordering::Relaxed);
        Box::pin(call(server, tool, made.payload, cx, CallContext { agreed, host, takes_images }))
    }

    fn starting(&self) -> Option<BoxFuture<'static, ()>> {
        self.apply_reload();
        self.start();
        let waiting: Vec<_> = self.servers().into_iter().filter(|server| !server.is_settled()).collect();
        (!waiting.is_empty()).then(|| {
            let all: BoxFuture<'static, ()> = Box::pin(async move {
                join_all(waiting.iter().map(|server| server.settled())).await;
            });
            all
        })
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        let (servers, host) = (self.servers(), self.host.clone());
        Box::pin(async move {
            for server in servers {
                server.close(&host).await;
            }
        })
    }
}
