//! The threads that calls have opened, and the calls that run.

use std::collections::HashMap;
use std::sync::Arc;

use core_api::protocol::ThreadId;
use core_api::{ManagedThread, ManagerError, ThreadManager, ThreadOptions};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::watch;

use super::call::run_call;
use super::limits::CallLimits;
use super::peer::ClientPeer;

/// Calls that run at a time. More are refused.
const MOST_CALLS: usize = 16;
/// Threads that stay open for a reply. Beyond them the one used longest ago is closed; a reply opens it again.
const MOST_OPEN: usize = 32;

#[derive(Debug)]
pub(super) struct OpenThreads {
    manager: ThreadManager,
    pub(super) limits: CallLimits,
    /// The one used last at the end.
    open: Mutex<Vec<ManagedThread>>,
    /// By the id of the request as text. Setting it to true stops the call.
    running: Mutex<HashMap<String, watch::Sender<bool>>>,
}

impl OpenThreads {
    pub(super) fn new(manager: ThreadManager, limits: CallLimits) -> Self {
        Self { manager, limits, open: Mutex::default(), running: Mutex::default() }
    }

    /// Runs a call in the background. Its answer goes to the client, unless the client cancels it.
    pub(super) fn spawn_call(self: &Arc<Self>, peer: Arc<ClientPeer>, id: Value, params: Value) {
        let (stop, stopped) = watch::channel(false);
        let key = id.to_string();
        let is_refused = {
            let mut running = self.running.lock();
            let is_refused = running.len() >= MOST_CALLS || running.contains_key(&key);
            if !is_refused {
                running.insert(key.clone(), stop);
            }
            is_refused
        };
        let threads = self.clone();
        tokio::spawn(async move {
            if is_refused {
                return peer
                    .fail(&id, -32000, "too many calls at once, or two under one id; try again later")
                    .await;
            }
            let result = run_call(&peer, &threads, &id, &params, stopped.clone()).await;
            threads.running.lock().remove(&key);
            if !*stopped.borrow() {
                peer.succeed(&id, result).await;
            }
        });
    }

    /// Stops a call. Its client no longer waits for an answer.
    pub(super) fn cancel(&self, id: &Value) {
        if let Some(call) = self.running.lock().get(&id.to_string()) {
            call.send_replace(true);
        }
    }

    pub(super) async fn start(&self, options: ThreadOptions) -> Result<ManagedThread, ManagerError> {
        let thread = self.manager.start_thread(options).await?;
        self.keep(thread.clone()).await;
        Ok(thread)
    }

    /// The open thread of this id, or the stored one.
    pub(super) async fn resume(&self, id: &ThreadId) -> Result<ManagedThread, ManagerError> {
        let known = self.open.lock().iter().find(|thread| thread.id() == id && thread.is_open()).cloned();
        let thread = match known {
            Some(thread) => thread,
            None => self.manager.resume_thread(id, ThreadOptions::default()).await?,
        };
        self.keep(thread.clone()).await;
        Ok(thread)
    }

    async fn keep(&self, thread: ManagedThread) {
        let oldest = {
            let mut open = self.open.lock();
            open.retain(|known| known.id() != thread.id());
            open.push(thread);
            (open.len() > MOST_OPEN).then(|| open.remove(0))
        };
        if let Some(oldest) = oldest
            && let Err(error) = oldest.close().await
        {
            tracing::warn!(%error, "an old thread could not be closed");
        }
    }

    pub(super) async fn shut_down(&self) {
        self.manager.shut_down().await;
    }
}
