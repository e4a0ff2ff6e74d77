//! Sends spans to the collector in batches. One that is slow, away or wrong costs spans and one warning, and nothing else.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use http::{Client, HttpRequest, Method};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, timeout_at};

use crate::otlp;
use crate::settings::TraceSettings;
use crate::span::SpanRecord;
use crate::tracer::{QueuedSpan, SpanQueue};

/// Spans of one request.
const BATCH: usize = 512;
/// How long a span waits for others.
const TOGETHER: Duration = Duration::from_secs(1);
/// How long the collector may take for an answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often the same spans are sent to a collector that is away or busy.
const ATTEMPTS: u32 = 4;
/// The pause before the second attempt; it doubles with each further one.
const PAUSE: Duration = Duration::from_secs(1);
/// How often the log says that spans were lost.
const REPORT_EVERY: Duration = Duration::from_secs(60);
/// An answer says nothing that is needed, but its connection is used again when it was read.
const ANSWER_BYTES: usize = 64 * 1024;

pub(crate) struct Exporter {
    settings: TraceSettings,
    http: Client,
    queue: Arc<SpanQueue>,
    /// The collector's failure is in the log, and it has not taken anything since.
    is_warned: bool,
    /// Lost spans that the log has, and when it was written.
    reported_lost: u64,
    reported_at: Option<Instant>,
    is_closing: bool,
}

/// Why spans were not taken.
struct PostFailure {
    why: String,
    may_retry: bool,
}

impl Exporter {
    pub(crate) fn new(settings: TraceSettings, http: Client, queue: Arc<SpanQueue>) -> Self {
        Self {
            settings,
            http,
            queue,
            is_warned: false,
            reported_lost: 0,
            reported_at: None,
            is_closing: false,
        }
    }

    /// Until it is closed.
    pub(crate) async fn run(mut self, mut queued: mpsc::Receiver<QueuedSpan>) {
        let mut batch = Vec::new();
        loop {
            let closed = self.collect(&mut queued, &mut batch).await;
            if !batch.is_empty() {
                self.send(&batch).await;
                batch.clear();
            }
            if let Some(done) = closed {
                self.report_lost();
                // Whoever closed it may not have waited.
                let _ = done.send(());
                return;
            }
        }
    }

    /// A batch that is full or has waited long enough; or the last one.
    async fn collect(
        &self,
        queued: &mut mpsc::Receiver<QueuedSpan>,
        batch: &mut Vec<SpanRecord>,
    ) -> Option<oneshot::Sender<()>> {
        let mut until = None;
        while batch.len() < BATCH {
            let next = match until {
                None => queued.recv().await,
                Some(until) => match timeout_at(until, queued.recv()).await {
                    Ok(next) => next,
                    Err(_) => return None,
                },
            };
            match next? {
                QueuedSpan::Ended(record) => batch.push(*record),
                QueuedSpan::Close(done) => return Some(done),
            }
            until.get_or_insert_with(|| Instant::now() + TOGETHER);
        }
        None
    }

    async fn send(&mut self, spans: &[SpanRecord]) {
        let body = otlp::request(&self.settings.resource, self.settings.version, spans).to_string();
        let body = Bytes::from(body);
        let mut pause = PAUSE;
        for attempt in 1..=ATTEMPTS {
            let Err(failure) = self.post(body.clone()).await else { return self.taken() };
            let is_last = !failure.may_retry || attempt == ATTEMPTS || self.is_closing;
            // A connection that the collector has closed meanwhile is no news.
            if attempt > 1 || is_last {
                self.warn(&failure.why);
            }
            if is_last {
                break;
            }
            tokio::select! {
                () = sleep(pause) => {}
                () = self.queue.closing.notified() => self.is_closing = true,
            }
            pause *= 2;
        }
        self.queue.lose(spans.len());
    }

    async fn post(&self, body: Bytes) -> Result<(), PostFailure> {
        let request = HttpRequest {
            method: Method::POST,
            url: self.settings.endpoint.clone(),
            headers: self.settings.headers.clone(),
            body: body.into(),
        };
        let answer = self.http.send(request, PATIENCE).await;
        let answer = answer.map_err(|error| PostFailure { why: error.to_string(), may_retry: true })?;
        let status = answer.status;
        answer.body.read_some(ANSWER_BYTES, PATIENCE).await;
        match status.is_success() {
            true => Ok(()),
            false => Err(PostFailure {
                why: format!("the collector answered with status {}", status.as_u16()),
                may_retry: matches!(status.as_u16(), 429 | 502 | 503 | 504),
            }),
        }
    }

    /// Once, until the collector takes spans again.
    fn warn(&mut self, why: &str) {
        if !std::mem::replace(&mut self.is_warned, true) {
            tracing::warn!("traces are not sent: {why}");
        }
    }

    fn taken(&mut self) {
        if std::mem::take(&mut self.is_warned) {
            tracing::info!("traces are sent again");
        }
        if self.reported_at.is_none_or(|at| at.elapsed() > REPORT_EVERY) {
            self.report_lost();
        }
    }

    fn report_lost(&mut self) {
        let lost = self.queue.lost.load(Ordering::Relaxed);
        let new = lost - std::mem::replace(&mut self.reported_lost, lost);
        if new > 0 {
            self.reported_at = Some(Instant::now());
            tracing::warn!("{new} spans were lost: the collector was slow, away, or refused them");
        }
    }
}
