//! The options of the server.

use std::time::Duration;

use protocol::{AbsolutePath, ConfigWarningNotification};
use rpc::OutboxLimits;

use transport::{Listen, WsAuth};

/// Overrides the name under which the process is known to providers.
const ORIGINATOR_VARIABLE: &str = "CODEX_INTERNAL_ORIGINATOR_OVERRIDE";

#[derive(Debug)]
pub struct ServerOptions {
    pub listen: Listen,
    /// Who may open a websocket.
    pub auth: WsAuth,
    /// The longest line or websocket message.
    pub max_line_bytes: usize,
    /// The bounds of one connection's outbound queue.
    pub outbox: OutboxLimits,
    /// Bytes of requests of one connection that are read and not done. A single larger one comes alone.
    pub max_request_bytes: usize,
    /// Requests of all connections that are accepted and not done; one more is refused as overload.
    pub max_requests: usize,
    /// Connections that may be open at once; one more waits.
    pub max_connections: usize,
    /// TCP connections that may be open without having been let in, by a token where one is asked for. One more takes the
    /// place of the oldest.
    pub max_handshakes: usize,
    /// Connections that may be open without `initialize`. One more takes the place of the oldest.
    pub max_uninitialized: usize,
    /// The longest message before `initialize` is done.
    pub max_first_bytes: usize,
    /// How long a connection may wait with `initialize`.
    pub initialize_within: Duration,
    /// Whether anybody may use a server that other machines can reach.
    pub allow_unauthenticated: bool,
    /// How long an idle thread stays in memory when its last client has gone away without a word.
    pub unload_after: Duration,
    /// Idle threads that stay in memory so long. One more, and the oldest is unloaded.
    pub max_departed: usize,
    /// How long the last answers of a connection that ends, and the threads of a process that ends, may take.
    pub grace: Duration,
    /// The same after a signal, when somebody waits for the process to go.
    pub grace_after_signal: Duration,
    /// After a signal, how long turns that run may take to end, with everybody still served.
    pub drain_timeout: Duration,
    /// After the end of standard input, the other clients are served until the last of them has left.
    pub stays_for_others: bool,
    /// The folder with configuration and stored threads, as `initialize` tells it.
    pub home: AbsolutePath,
    /// Told to each connection after `initialize`.
    pub config_warnings: Vec<ConfigWarningNotification>,
    /// Instead of the first client's name.
    pub originator: Option<String>,
}

impl ServerOptions {
    /// Less than what service managers wait before they kill.
    pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(60);

    /// The defaults, with the originator the environment asks for.
    pub fn new(listen: Listen, home: AbsolutePath) -> Self {
        Self {
            listen,
            auth: WsAuth::default(),
            max_line_bytes: 32 * 1024 * 1024,
            outbox: OutboxLimits::default(),
            max_request_bytes: 64 * 1024 * 1024,
            max_requests: 16 * 1024,
            max_connections: 1024,
            max_handshakes: 128,
            max_uninitialized: 64,
            max_first_bytes: 256 * 1024,
            initialize_within: Duration::from_secs(30),
            allow_unauthenticated: false,
            unload_after: Duration::from_secs(30 * 60),
            max_departed: 128,
            grace: Duration::from_secs(10),
            grace_after_signal: Duration::from_secs(2),
            drain_timeout: Self::DRAIN_TIMEOUT,
            stays_for_others: false,
            home,
            config_warnings: Vec::new(),
            originator: std::env::var(ORIGINATOR_VARIABLE).ok().filter(|name| !name.is_empty()),
        }
    }
}
