//! Another host had the task until now: how its threads stand, for one client.

use host::TaskHost;
use protocol::ThreadId;

use crate::hub::{ConnectionId, Hub};

/// Tells how the thread and its agents stand, and subscribes the connection to the agents. It is subscribed to the thread,
/// and nothing is passed on meanwhile.
pub(crate) async fn resync(host: &TaskHost, hub: &Hub, thread: &ThreadId, connection: ConnectionId) {
    let standings = match host.standings(thread).await {
        Ok(standings) => standings,
        Err(error) => return tracing::warn!(%error, %thread, "a client does not hear how a thread stands"),
    };
    for standing in standings {
        if standing.thread != *thread {
            hub.join(&standing.thread, connection).await;
        }
        hub.resync(connection, standing).await;
    }
}
