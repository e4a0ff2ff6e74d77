//! Opening a connection: who the client is, what it can do, and what it is talking to.

use super::prelude::*;

/// The client that connects.
#[wire]
pub struct ClientInfo {
    /// Goes into `userAgent` and HTTP headers, so it must be a legal header value.
    pub name: String,
    /// For display.
    pub title: Option<String>,
    pub version: String,
}

/// Capabilities and wishes of the client.
#[wire(omit_null)]
pub struct InitializeCapabilities {
    /// Allows this connection to use experimental methods and fields.
    #[serde(default)]
    pub experimental_api: bool,
    /// Exact method names of notifications this connection does not want. Unknown names are ignored; requests
    /// and answers are not affected.
    pub opt_out_notification_methods: Option<Vec<String>>,
    #[experimental("initialize.hostDelegation")]
    pub host_delegation: Option<HostDelegationOffer>,
    /// Asks for what a host can do beyond an app-server. An app-server does not answer it.
    #[experimental("initialize.host")]
    pub host: Option<HostOffer>,
}

/// Opens the connection. Must be the first request, and is accepted once.
#[wire]
pub struct InitializeParams {
    pub client_info: ClientInfo,
    pub capabilities: Option<InitializeCapabilities>,
}

/// The server, as told to the client.
#[wire]
pub struct InitializeResponse {
    /// As sent to providers: `{originator}/{version}`, then the system, the terminal and the client. The
    /// version is a protocol level.
    pub user_agent: String,
    /// The folder with the server's configuration and stored threads.
    pub codex_home: AbsolutePath,
    /// `unix` or `windows`.
    pub platform_family: String,
    /// `linux`, `macos` or `windows`.
    pub platform_os: String,
    /// Left out when the client asked for nothing beyond the stock protocol.
    #[experimental("initialize.capabilities")]
    #[omit]
    pub capabilities: Option<ServerCapabilities>,
}

/// Features beyond the stock protocol that the server agreed to.
#[wire(omit_null)]
pub struct ServerCapabilities {
    pub host_delegation: Option<HostDelegationAgreed>,
    /// Set by a host.
    pub host: Option<HostAgreed>,
}
