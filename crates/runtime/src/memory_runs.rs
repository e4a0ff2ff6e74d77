//! Memories in the runtime: one run of the pipeline at a time, beside the turns, and which notes were of use.

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

/// The run that is under way.
#[derive(Debug, Default)]
pub(crate) struct MemoryRuns {
    running: Mutex<Option<JoinHandle<()>>>,
}

impl MemoryRuns {
    /// Starts the run, unless one is under way. Nobody waits for it, and whatever goes wrong in it is for the log.
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

    /// Ends the run that is under way. What it has written down by then stays.
    pub(crate) async fn close(&self) {
        let running = self.running.lock().take();
        if let Some(task) = running {
            task.abort();
            // It was aborted, or had ended before.
            let _ = task.await;
        }
    }
}

/// Passes the notifications of a thread on, and counts the notes that its answers cite.
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
    fn tell<'a>(&'a self, thread: &'a ThreadId, notification: ServerNotification) -> BoxFuture<'a, ()> {
        let Some(cited) = cited(&notification) else { return self.audience.tell(thread, notification) };
        Box::pin(async move {
            // Clients hear of it first.
            self.audience.tell(thread, notification).await;
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
