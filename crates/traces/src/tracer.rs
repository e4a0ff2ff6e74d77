//! Begins spans, and queues those that have ended for the collector.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use support::{Clock, entropy};
use tokio::sync::{Notify, mpsc, oneshot};

use crate::context::{TraceContext, within};
use crate::exporter::Exporter;
use crate::settings::TraceSettings;
use crate::span::{Span, SpanRecord};
use crate::span_clock::SpanClock;

/// Spans that wait for the collector. More are dropped, and counted.
const WAITING_SPANS: usize = 2_048;

/// Begins spans. Clones share one way to the collector; without one, nothing is recorded.
#[derive(Debug, Clone, Default)]
pub struct Tracer(Option<Arc<SpanQueue>>);

/// Spans on their way to the exporter.
#[derive(Debug)]
pub(crate) struct SpanQueue {
    sender: mpsc::Sender<QueuedSpan>,
    clock: SpanClock,
    /// Spans that the collector never got.
    pub(crate) lost: AtomicU64,
    /// The process ends: no failed batch waits for its next attempt.
    pub(crate) closing: Notify,
}

#[derive(Debug)]
pub(crate) enum QueuedSpan {
    Ended(Box<SpanRecord>),
    /// The last one: answered when everything before it is sent or given up.
    Close(oneshot::Sender<()>),
}

impl Tracer {
    /// How long the last spans of a process may take to reach the collector.
    pub const LAST_SPANS_WITHIN: Duration = Duration::from_secs(2);

    /// Sends what is recorded in batches, in the background. Without settings there is no background.
    pub fn open(settings: Option<TraceSettings>, http: http::Client, clock: Arc<dyn Clock>) -> Self {
        let Some(settings) = settings else { return Self(None) };
        let (sender, queued) = mpsc::channel(WAITING_SPANS);
        let queue = Arc::new(SpanQueue {
            sender,
            clock: SpanClock::new(clock),
            lost: AtomicU64::new(0),
            closing: Notify::new(),
        });
        // Ends with the process, or with `close`.
        tokio::spawn(Exporter::new(settings, http, queue.clone()).run(queued));
        Self(Some(queue))
    }

    /// Begins a span below `parent`, or a trace of its own. What `parent` does not want recorded is not.
    pub fn start(&self, name: &'static str, parent: Option<TraceContext>) -> Span {
        let is_wanted = parent.as_ref().is_none_or(|parent| parent.is_sampled);
        let Some(queue) = self.0.as_ref().filter(|_| is_wanted) else { return Span::passing(parent) };
        let random = entropy().to_be_bytes();
        let mut span = [0; 8];
        span.copy_from_slice(&random[..8]);
        // An id of zeros is none.
        span[0] |= u8::from(span == [0; 8]);
        let (above, context) = match parent {
            Some(parent) => (Some(parent.span), TraceContext { span, ..parent }),
            None => {
                let trace = (entropy() | 1).to_be_bytes();
                (None, TraceContext { trace, span, is_sampled: true, state: None })
            }
        };
        let began_ns = queue.now_ns();
        let record = SpanRecord {
            name,
            context,
            parent: above,
            began_ns,
            ended_ns: began_ns,
            attributes: Vec::new(),
            has_failed: false,
        };
        Span::recorded(queue.clone(), record)
    }

    /// Does the work within a span of its own, below the current one.
    pub async fn spanned<T, E>(
        &self,
        name: &'static str,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let mut span = self.start(name, crate::current());
        let done = within(span.context(), work).await;
        if done.is_err() {
            span.fail("failed");
        }
        done
    }

    /// Spans that the collector never got, because it was slow or away.
    pub fn lost(&self) -> u64 {
        self.0.as_ref().map_or(0, |queue| queue.lost.load(Ordering::Relaxed))
    }

    /// Sends what is left, within this time. Spans that end later are lost.
    pub async fn close(&self, limit: Duration) {
        let Some(queue) = &self.0 else { return };
        let (done, closed) = oneshot::channel();
        queue.closing.notify_one();
        let sent = async {
            if queue.sender.send(QueuedSpan::Close(done)).await.is_ok() {
                let _ = closed.await;
            }
        };
        if tokio::time::timeout(limit, sent).await.is_err() {
            tracing::warn!("the last spans were not sent in time");
        }
    }
}

impl SpanQueue {
    pub(crate) fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    /// Never waits.
    pub(crate) fn put(&self, record: SpanRecord) {
        if self.sender.try_send(QueuedSpan::Ended(Box::new(record))).is_err() {
            self.lose(1);
        }
    }

    pub(crate) fn lose(&self, spans: usize) {
        self.lost.fetch_add(spans as u64, Ordering::Relaxed);
    }
}
