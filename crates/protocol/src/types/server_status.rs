//! The state of a running server, for its operator.

use super::prelude::*;

/// An app-server or a host at one moment.
#[wire]
pub struct ServerStatusResponse {
    pub kind: ServerKind,
    pub version: String,
    pub process_id: u32,
    pub uptime_seconds: u64,
    /// It was asked to stop: turns that run may end, and no new one begins.
    pub is_stopping: bool,
    /// Open now, the one that asks among them.
    pub connections: u64,
    /// In memory; at a host, those that have a runtime.
    pub threads_loaded: u64,
    pub turns_running: u64,
    /// Approvals and questions without an answer.
    pub waiting: u64,
    /// The age of the oldest of them, where it is known.
    pub oldest_waiting_ms: Option<i64>,
    /// Of this process alone, without its commands and runtimes. Null where the system does not tell.
    pub memory_bytes: Option<u64>,
    pub sandbox: SandboxStatus,
    /// Null at an app-server.
    pub host: Option<HostStatus>,
}

/// The kind of program that answers.
#[wire]
pub enum ServerKind {
    AppServer,
    Host,
}

/// The sandbox of commands on the machine that the server runs on.
#[wire]
pub struct SandboxStatus {
    pub level: SandboxStatusLevel,
    /// Why it is not the full one.
    pub reason: Option<String>,
}

/// From the strongest to none.
#[wire]
pub enum SandboxStatusLevel {
    /// Every layer was tried and works.
    Full,
    /// Files are not hidden, and processes are not kept apart.
    LandlockOnly,
    /// Commands that ask for a sandbox are refused.
    None,
}

/// The part of the status that only a host has.
#[wire]
pub struct HostStatus {
    /// Tasks that are not archived, by state.
    pub tasks: BTreeMap<String, i64>,
    pub runtimes: u64,
    /// Tasks that wait for room among the runtimes.
    pub queued: u64,
}
