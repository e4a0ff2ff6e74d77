//! Memories in the runtime: one run of the pipeline at a time, in the background, and counting citations.

use std::sync::Arc;

use engine::{Question, Reply};
use memories::{MemoryFolder, MemoryRun};
use parking_lot::Mutex;
use protocol::{
    DynamicToolCallParams, DynamicToolCallResponse, ItemCompletedNotification, MemoryCitation,
    ServerNotification, ThreadId, ThreadItem,
};
use support::{Clock, blocking};
use tokio::task::JoinHandle;

use driver::{Audience, BoxFuture};

/// The running pipeline.
#[derive(Debug, Default)]
pub(crate) struct MemoryRuns {
    running: Mutex<Option<JoinHandle<()>>>,
}

impl MemoryRuns {
    /// Starts the run, unless one is running. Runs in the background; errors are only logged.
    pub(crate) fn begin(&self, run: MemoryRun) {
        let mut running = self.running.lock();
        if running.as_ref().is_some_and(|task| !task.is_finished()) {
            return;
        }
        *running = Some(tokio::spawn(async move {
            match Box::pin(run.run()).await {
                Ok(report) => tracing::debug!(?report, "memories were made"),
                Err(error) => tracing::warn!(%error, "memories could not be made"),
            }
        }));
    }

    /// Stops the running pipeline. What it has written stays.
    pub(crate) async fn close(&self) {
        let running = self.running.lock().take();
        if let Some(task) = running {
            task.abort();
            // The task was aborted, or had ended already.
            let _ = task.await;
        }
    }
}

/// Forwards a thread's notifications, and counts the notes that its answers cite.
#[derive(Debug)]
pub(crate) struct CitationObserver {
    audience: Arc<dyn Audience>,
    folder: Arc<MemoryFolder>,
    clock: Arc<dyn Clock>,
}

impl CitationObserver {
    pub(crate) fn new(audience: Arc<dyn Audience>, folder: Arc<MemoryFolder>, clock: Arc<dyn Clock>) -> Self {
        Self { audience, folder, clock }
    }

    async fn note(&self, cited: Vec<String>) {
        let (folder, now_ms) = (self.folder.clone(), self.clock.now_ms());
        if let Ok(Err(error)) = blocking(move || folder.note_usage(&cited, now_ms)).await {
            tracing::warn!(%error, "the use of memories could not be noted");
        }
    }
}

fn cited(notification: &ServerNotification) -> Option<Vec<String>> {
    let ServerNotification::ItemCompleted(ItemCompletedNotification { item, .. }) = notification else {
        return None;
    };
    match item {
        ThreadItem::AgentMessage { memory_citation: Some(MemoryCitation { thread_ids, .. }), .. } => {
            Some(thread_ids.clone())
        }
        _ => None,
    }
}

impl Audience for CitationObserver {
    fn notify<'a>(&'a self, thread: &'a ThreadId, notification: ServerNotification) -> BoxFuture<'a, ()> {
        let Some(cited) = cited(&notification) else { return self.audience.notify(thread, notification) };
        Box::pin(async move {
            // Clients are notified first.
            self.audience.notify(thread, notification).await;
            self.note(cited).await;
        })
    }

    fn call_tool(
        &self,
        params: DynamicToolCallParams,
    ) -> BoxFuture<'static, Result<DynamicToolCallResponse, String>> {
        self.audience.call_tool(params)
    }

    fn ask(&self, question: Question) -> BoxFuture<'static, Result<Reply, String>> {
        self.audience.ask(question)
    }

    fn appeared(&self, thread: &ThreadId) {
        self.audience.appeared(thread);
    }

    fn left(&self, thread: &ThreadId) {
        self.audience.left(thread);
    }
}
