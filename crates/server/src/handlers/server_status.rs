//! `server/status`: what this process does at the moment.

use std::sync::Arc;

use protocol::{NoParams, ServerKind, ServerStatusResponse};
use runtime::{RuntimeError, ThreadCounts};

use crate::app::App;
use crate::hub::{Requester, memory_bytes};

pub(crate) async fn read(
    app: Arc<App>,
    _: Requester,
    _: NoParams,
) -> Result<ServerStatusResponse, RuntimeError> {
    Ok(status(&app).await)
}

/// As an app-server has it; a host changes what it knows better.
pub(crate) async fn status(app: &App) -> ServerStatusResponse {
    let ThreadCounts { loaded, running } = app.runtime.thread_counts();
    ServerStatusResponse {
        kind: ServerKind::AppServer,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        process_id: std::process::id(),
        uptime_seconds: app.hub.uptime().as_secs(),
        is_stopping: app.hub.is_stopping(),
        connections: app.hub.connections() as u64,
        threads_loaded: loaded as u64,
        turns_running: running as u64,
        waiting: app.hub.open_questions() as u64,
        oldest_waiting_ms: None,
        memory_bytes: memory_bytes(),
        sandbox: app.runtime.sandbox_status().await,
        host: None,
    }
}
