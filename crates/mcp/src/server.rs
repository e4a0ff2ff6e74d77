//! One configured server: started once with a time limit; then its tools and its connection.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use config::{McpServer, McpTransport};
use parking_lot::Mutex;
use protocol::{McpServerStartupState, McpServerStatusUpdatedNotification, ServerNotification};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::descriptions::Descriptions;
use crate::http_wire::{self, McpEndpoint};
use crate::inbound::{Answering, McpHost, OpenCalls};
use crate::oauth::ServerAccess;
use crate::peer::Peer;
use crate::stdio::{ServerProgram, connect, working_folder};
use crate::tool::ServerTool;
use crate::{McpError, McpServices};

/// The requested revision of MCP. Servers respond with their own.
pub(crate) const PROTOCOL_VERSION: &str = "2025-11-25";
/// Limit of listed pages, for servers that never end a list.
const MAX_PAGES: usize = 50;
pub(crate) const MAX_LISTED: usize = 1000;
const MAX_LISTED_BYTES: usize = 32 * 1024 * 1024;

#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) options: McpServer,
    cwd: PathBuf,
    writable: Vec<PathBuf>,
    state: watch::Sender<McpServerState>,
    pub(crate) calls: Arc<OpenCalls>,
    task: Mutex<Option<AbortHandle>>,
    is_listing: AtomicBool,
    /// The server reported changed tools while they were being listed.
    is_outdated: AtomicBool,
    services: McpServices,
    descriptions: Descriptions,
}

#[derive(Debug, Clone)]
pub(crate) enum McpServerState {
    /// Not needed yet.
    Idle,
    Starting,
    Ready(Arc<LiveServer>),
    /// With the reason.
    Failed(String),
    Closed,
}

/// A server that answered.
#[derive(Debug)]
pub(crate) struct LiveServer {
    pub(crate) peer: Peer,
    tools: Mutex<Arc<[Arc<ServerTool>]>>,
    pub(crate) has_resources: bool,
}

impl LiveServer {
    pub(crate) fn tools(&self) -> Arc<[Arc<ServerTool>]> {
        self.tools.lock().clone()
    }

    pub(crate) fn tool(&self, name: &str) -> Option<Arc<ServerTool>> {
        self.tools().iter().find(|tool| tool.name == name).cloned()
    }
}

impl Server {
    pub(crate) fn new(options: McpServer, cwd: &str, services: McpServices) -> Arc<Self> {
        let configured = match &options.transport {
            McpTransport::Stdio { cwd, .. } => cwd.clone(),
            McpTransport::Http { .. } => None,
        };
        Arc::new(Self {
            cwd: working_folder(configured.as_ref(), cwd),
            writable: options.writable_roots.iter().cloned().chain([PathBuf::from(cwd)]).collect(),
            options,
            state: watch::Sender::new(McpServerState::Idle),
            calls: Arc::default(),
            task: Mutex::default(),
            is_listing: AtomicBool::new(false),
            is_outdated: AtomicBool::new(false),
            services,
            descriptions: Descriptions::default(),
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.options.name
    }

    pub(crate) fn state(&self) -> McpServerState {
        self.state.borrow().clone()
    }

    pub(crate) fn live(&self) -> Result<Arc<LiveServer>, McpError> {
        match self.state() {
            McpServerState::Ready(live) => Ok(live),
            McpServerState::Failed(reason) => {
                Err(McpError::Ended(format!("the server did not start: {reason}")))
            }
            McpServerState::Idle | McpServerState::Starting => {
                Err(McpError::Ended("the server is still starting".to_owned()))
            }
            McpServerState::Closed => Err(McpError::Ended("the connection is closed".to_owned())),
        }
    }

    /// Starts connecting, on the first call.
    pub(crate) fn start(self: &Arc<Self>, host: &Arc<dyn McpHost>) {
        let is_first = self.state.send_if_modified(|state| {
            let is_first = matches!(state, McpServerState::Idle);
            if is_first {
                *state = McpServerState::Starting;
            }
            is_first
        });
        if is_first {
            let (server, host) = (Arc::clone(self), host.clone());
            let task = tokio::spawn(async move { server.bring_up(&host).await });
            *self.task.lock() = Some(task.abort_handle());
        }
    }

    async fn bring_up(self: &Arc<Self>, host: &Arc<dyn McpHost>) {
        host.notify(self.update(McpServerStartupState::Starting, None)).await;
        let limit = self.options.startup_timeout;
        let connected = match tokio::time::timeout(limit, self.connect()).await {
            Ok(connected) => connected,
            Err(_) => Err(format!(
                "it was not ready after {} s; set mcp_servers.{}.startup_timeout_sec to wait longer",
                limit.as_secs_f64(),
                self.name()
            )),
        };
        // Clients are notified before a turn continues.
        let (state, update) = match connected {
            Ok(live) => (McpServerState::Ready(live), self.update(McpServerStartupState::Ready, None)),
            Err(reason) => {
                let told = format!("MCP server `{}` failed to start: {reason}", self.name());
                tracing::warn!(server = self.name(), reason, "an MCP server did not start");
                (McpServerState::Failed(reason), self.update(McpServerStartupState::Failed, Some(told)))
            }
        };
        host.notify(update).await;
        self.state.send_replace(state);
        if self.is_outdated.load(Ordering::SeqCst) {
            self.list_again();
        }
    }

    /// For a server that was ready before there was a thread to notify.
    pub(crate) async fn notify_ready(&self, host: &Arc<dyn McpHost>) {
        for status in [McpServerStartupState::Starting, McpServerStartupState::Ready] {
            host.notify(self.update(status, None)).await;
        }
    }

    fn update(&self, status: McpServerStartupState, error: Option<String>) -> ServerNotification {
        let name = self.name().to_owned();
        ServerNotification::McpServerStatusUpdated(McpServerStatusUpdatedNotification { name, status, error })
    }

    async fn connect(self: &Arc<Self>) -> Result<Arc<LiveServer>, String> {
        let wire = match &self.options.transport {
            McpTransport::Stdio { command, args, env, env_vars, .. } => {
                let (name, cwd, writable) = (self.name(), self.cwd.as_path(), self.writable.as_slice());
                connect(ServerProgram { name, command, args, env, env_vars, cwd, writable }).await?
            }
            McpTransport::Http { .. } => http_wire::connect(self.services.http.clone(), self.endpoint()?),
        };
        let answering = Answering { server: Arc::downgrade(self), calls: self.calls.clone() };
        let peer = Peer::start(wire, Arc::new(answering));
        let say = |error: McpError| error.to_string();
        let hello = peer.request("initialize", initialize()).await.map_err(say)?;
        if !hello.is_object() {
            return Err("its answer to `initialize` cannot be used".to_owned());
        }
        peer.notify("notifications/initialized", json!({})).await;
        let offers = |key: &str| hello.pointer(&format!("/capabilities/{key}")).is_some();
        let tools = if offers("tools") { self.list_tools(&peer).await.map_err(say)? } else { Arc::new([]) };
        Ok(Arc::new(LiveServer { peer, tools: Mutex::new(tools), has_resources: offers("resources") }))
    }

    /// The URL of an HTTP server, with the headers from configuration and variables.
    fn endpoint(&self) -> Result<McpEndpoint, String> {
        let McpTransport::Http { url, bearer_token_env_var, http_headers, env_http_headers, .. } =
            &self.options.transport
        else {
            return Err("it is no HTTP server".to_owned());
        };
        let variable = |name: &String| std::env::var(name).ok().filter(|value| !value.is_empty());
        let unset = |name: &String| format!("the variable {name} is not set");
        let bearer = match bearer_token_env_var {
            Some(name) => Some(variable(name).ok_or_else(|| unset(name))?),
            None => None,
        };
        let from_env = env_http_headers.iter().filter_map(|(name, key)| Some((name.clone(), variable(key)?)));
        let fixed = http_headers.iter().map(|(name, value)| (name.clone(), value.clone()));
        let endpoint = McpEndpoint::new(url, fixed.chain(from_env), bearer.as_deref())?;
        let access = ServerAccess::new(self.services.logins(), &self.options);
        Ok(McpEndpoint { access, server: self.name().to_owned(), ..endpoint })
    }

    /// All pages, without the tools that the configuration excludes.
    async fn list_tools(&self, peer: &Peer) -> Result<Arc<[Arc<ServerTool>]>, McpError> {
        let (enabled, disabled) = (&self.options.enabled_tools, &self.options.disabled_tools);
        let mut tools: Vec<Arc<ServerTool>> = Vec::new();
        for raw in list(peer, "tools/list", "tools").await? {
            match ServerTool::read(&raw) {
                Ok(tool) if enabled.as_ref().is_some_and(|only| !only.contains(&tool.name)) => {}
                Ok(tool) if disabled.contains(&tool.name) => {}
                Ok(mut tool) => {
                    tool.is_changed = self.descriptions.is_changed(&tool.name, &tool.raw);
                    tools.push(Arc::new(tool));
                }
                Err(problem) => tracing::warn!(server = self.name(), "{problem}"),
            }
        }
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        tools.dedup_by(|a, b| a.name == b.name);
        Ok(tools.into())
    }

    /// The server reported changed tools. The next step lists them again.
    pub(crate) fn list_again(self: &Arc<Self>) {
        self.is_outdated.store(true, Ordering::SeqCst);
        // A running listing or start checks the mark at its end.
        let McpServerState::Ready(live) = self.state() else { return };
        if self.is_listing.swap(true, Ordering::SeqCst) {
            return;
        }
        let server = Arc::clone(self);
        tokio::spawn(async move {
            loop {
                while server.is_outdated.swap(false, Ordering::SeqCst) {
                    server.renew_tools(&live).await;
                }
                server.is_listing.store(false, Ordering::SeqCst);
                let came_late = server.is_outdated.load(Ordering::SeqCst);
                if !came_late || server.is_listing.swap(true, Ordering::SeqCst) {
                    break;
                }
            }
        });
    }

    async fn renew_tools(&self, live: &LiveServer) {
        let listing = self.list_tools(&live.peer);
        match tokio::time::timeout(self.options.startup_timeout, listing).await {
            Ok(Ok(tools)) => *live.tools.lock() = tools,
            Ok(Err(error)) => tracing::warn!(server = self.name(), %error, "its tools could not be listed"),
            Err(_) => tracing::warn!(server = self.name(), "its tools were not listed in time"),
        }
    }

    /// Returns when it is ready, failed or closed.
    pub(crate) async fn settled(&self) {
        let mut state = self.state.subscribe();
        // The sender is owned by the server, so this ends.
        let _ =
            state.wait_for(|state| !matches!(state, McpServerState::Idle | McpServerState::Starting)).await;
    }

    pub(crate) fn is_settled(&self) -> bool {
        !matches!(*self.state.borrow(), McpServerState::Idle | McpServerState::Starting)
    }

    pub(crate) async fn close(&self, host: &Arc<dyn McpHost>) {
        if let Some(task) = self.task.lock().take() {
            task.abort();
        }
        let was = self.state.send_replace(McpServerState::Closed);
        if matches!(was, McpServerState::Starting) {
            host.notify(self.update(McpServerStartupState::Cancelled, None)).await;
        }
    }
}

/// All entries of one kind, over all pages.
pub(crate) async fn list(peer: &Peer, method: &str, key: &str) -> Result<Vec<Value>, McpError> {
    let (mut all, mut cursor) = (Vec::new(), None::<String>);
    let mut bytes = 0;
    for _ in 0..MAX_PAGES {
        let params = cursor.as_ref().map_or_else(|| json!({}), |cursor| json!({"cursor": cursor}));
        let mut page = peer.request(method, params).await?;
        match page.get_mut(key).map(Value::take) {
            Some(Value::Array(entries)) => {
                bytes += entries.iter().map(|entry| entry.to_string().len()).sum::<usize>();
                all.extend(entries);
            }
            _ => return Err(McpError::Unusable(format!("{method} gave no list of {key}"))),
        }
        if bytes > MAX_LISTED_BYTES {
            return Err(McpError::Unusable(format!("{method} lists more than {MAX_LISTED_BYTES} bytes")));
        }
        let next = page.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
        if next.is_none() || all.len() >= MAX_LISTED {
            break;
        }
        if next == cursor {
            return Err(McpError::Unusable(format!("{method} gave the same cursor twice")));
        }
        cursor = next;
    }
    all.truncate(MAX_LISTED);
    Ok(all)
}

pub(crate) fn initialize() -> Value {
    json!({
        "protocolVersion": PROTOCOL_VERSION,
        "capabilities": {"elicitation": {"form": {}, "url": {}}},
        "clientInfo": {"name": "oarlock-mcp-client", "title": "Oarlock", "version": env!("CARGO_PKG_VERSION")},
    })
}

/// For tasks that must not keep a server alive.
pub(crate) type WeakServer = Weak<Server>;
