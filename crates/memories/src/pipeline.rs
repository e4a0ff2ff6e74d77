//! Both phases: extracts notes from idle threads, then joins them into the page for later threads. One request at a
//! time, each with limits of size and time.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use config::{ConfigError, MemoryOptions};
use futures_util::StreamExt;
use journal::{JournalError, ListQuery, Store, ThreadHistory};
use model::{Metadata, ModelFailure, ModelTransport, PreparedRequest, StreamEvent};
use protocol::{ContentItem, ResponseItem, SortDirection, ThreadId, ThreadSortKey};
use support::{Panicked, blocking};

use crate::answer;
use crate::folder::{MemoryFolder, ThreadMemory};
use crate::prompts::{self, MemoryRequest};
use crate::selection::{self, MemoryCandidate};
use crate::transcript::{has_foreign_results, transcript};

/// Limit of stored threads that are scanned for candidates.
const MOST_SCANNED: usize = 1_000;
const PAGE_OF_THREADS: usize = 100;
/// Time limit of one request.
const REQUEST_LIMIT: Duration = Duration::from_secs(300);
/// Limit of an answer.
const MOST_ANSWER_BYTES: usize = 256 << 10;

/// The inputs of one run.
pub struct MemoryRun {
    pub folder: MemoryFolder,
    pub store: Arc<Store>,
    /// Sends the requests for the thread in `metadata`.
    pub transport: Arc<dyn ModelTransport>,
    pub metadata: Metadata,
    pub options: MemoryOptions,
    /// Only threads of this provider are processed.
    pub provider: String,
    /// The default model.
    pub model: String,
    /// The provider supports output schemas.
    pub takes_schema: bool,
    /// Whether a thread's content may go to the provider or host of this run.
    pub may_read: Box<dyn Fn(&ThreadHistory) -> bool + Send + Sync>,
    pub now_ms: i64,
}

impl fmt::Debug for MemoryRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryRun").field("provider", &self.provider).finish_non_exhaustive()
    }
}

/// The result of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemoryReport {
    /// Threads with new notes.
    pub noted: usize,
    pub failed: usize,
    /// The page was rewritten.
    pub is_consolidated: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    #[error(transparent)]
    Files(#[from] ConfigError),
    #[error(transparent)]
    Threads(#[from] JournalError),
    #[error("{0}")]
    Model(String),
    #[error(transparent)]
    Panicked(#[from] Panicked),
}

/// A thread to be processed.
enum NoteSubject {
    /// It must not be read.
    Closed,
    Transcript {
        cwd: String,
        text: String,
    },
}

impl MemoryRun {
    /// Does nothing while another process is running the pipeline.
    pub async fn run(self) -> Result<MemoryReport, MemoryError> {
        let run = Arc::new(self);
        let folder = run.folder.clone();
        let Some(_lock) = blocking(move || folder.lock()).await?? else { return Ok(MemoryReport::default()) };
        let mut report = MemoryReport::default();
        let mut segment = 0;
        for candidate in run.clone().off_worker(Self::due).await?? {
            match run.take_notes(&candidate, &mut segment).await {
                Ok(true) => report.noted += 1,
                Ok(false) => {}
                Err(MemoryError::Model(problem)) => {
                    report.failed += 1;
                    tracing::debug!(thread = %candidate.thread_id, problem, "no notes could be taken of a thread");
                }
                Err(error) => return Err(error),
            }
        }
        report.is_consolidated = run.consolidate(segment).await?;
        Ok(report)
    }

    async fn off_worker<T: Send + 'static>(
        self: Arc<Self>,
        work: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> Result<T, Panicked> {
        blocking(move || work(&self)).await
    }

    /// The threads to process. Removes notes of deleted threads.
    fn due(&self) -> Result<Vec<MemoryCandidate>, MemoryError> {
        let mut known = self.folder.threads();
        let gone = |id: &ThreadId| matches!(self.store.summary(id), Err(JournalError::NotFound(_)));
        for id in known.keys().filter(|id| gone(id)).cloned().collect::<Vec<_>>() {
            self.folder.remove_thread(&id)?;
            known.remove(&id);
        }
        Ok(selection::due(self.candidates()?, &known, &self.options, self.now_ms))
    }

    /// The users' threads with this provider, latest first, without the requesting one.
    fn candidates(&self) -> Result<Vec<MemoryCandidate>, MemoryError> {
        let mut query = ListQuery {
            limit: PAGE_OF_THREADS,
            sort_key: ThreadSortKey::UpdatedAt,
            direction: SortDirection::Desc,
            model_providers: vec![self.provider.clone()],
            ..ListQuery::default()
        };
        let mut found = Vec::new();
        while found.len() < MOST_SCANNED {
            let page = self.store.list(&query)?;
            let others = page.threads.into_iter().filter(|row| row.thread_id != self.metadata.thread_id);
            found.extend(others.map(|row| MemoryCandidate {
                thread_id: row.thread_id,
                updated_at_ms: row.summary.updated_at_ms,
            }));
            query.cursor = page.next_cursor;
            if query.cursor.is_none() {
                break;
            }
        }
        Ok(found)
    }

    /// Returns whether the thread left notes. Every attempt is recorded.
    async fn take_notes(
        self: &Arc<Self>,
        candidate: &MemoryCandidate,
        segment: &mut u32,
    ) -> Result<bool, MemoryError> {
        let of = candidate.thread_id.clone();
        let subject = self.clone().off_worker(move |run| run.subject(&of)).await?;
        let before = self.folder.thread(&candidate.thread_id);
        let mut memory = before.unwrap_or_else(|| ThreadMemory::new(candidate.thread_id.clone()));
        if memory.source_updated_at_ms != candidate.updated_at_ms {
            memory.failures = 0;
        }
        memory.source_updated_at_ms = candidate.updated_at_ms;
        memory.attempted_at_ms = self.now_ms;
        let outcome = match subject {
            Err(problem) => Err(problem),
            Ok(NoteSubject::Closed) => Ok(None),
            Ok(NoteSubject::Transcript { cwd, text }) => {
                let model = self.options.extract_model.as_deref();
                let request = prompts::extraction(self.request(model, *segment), &cwd, &text);
                *segment += 1;
                memory.cwd = cwd;
                let answer = self.ask(request).await;
                answer.and_then(|answer| answer::extracted(&answer).map_err(|error| error.to_string()))
            }
        };
        let outcome = outcome.map_err(MemoryError::Model).map(|notes| {
            memory.failures = 0;
            memory.generated_at_ms = self.now_ms;
            let has_notes = notes.is_some();
            (memory.raw_memory, memory.summary) =
                notes.map(|notes| (notes.raw_memory, notes.summary)).unzip();
            has_notes
        });
        memory.failures += u32::from(outcome.is_err());
        self.clone().off_worker(move |run| run.folder.write_thread(&memory)).await??;
        outcome
    }

    /// Reads a thread. The error is for the log.
    fn subject(&self, id: &ThreadId) -> Result<NoteSubject, String> {
        let history = self.store.read(id).map_err(|error| error.to_string())?.history;
        let is_closed =
            history.meta.as_ref().is_some_and(|meta| meta.memory_mode.as_deref() == Some("disabled"))
                || !(self.may_read)(&history)
                || (self.options.none_with_foreign_results && has_foreign_results(&history.turns));
        match transcript(&history.turns).filter(|_| !is_closed) {
            Some(text) => Ok(NoteSubject::Transcript { cwd: history.summary.cwd.unwrap_or_default(), text }),
            None => Ok(NoteSubject::Closed),
        }
    }

    /// Rewrites the page, if the selection of notes has changed.
    async fn consolidate(self: &Arc<Self>, segment: u32) -> Result<bool, MemoryError> {
        let (known, before, page) = self
            .clone()
            .off_worker(|run| (run.folder.threads(), run.folder.consolidated(), run.folder.page()))
            .await?;
        let selected = selection::selected(&known, &self.options, self.now_ms);
        let threads = selection::fingerprint(&selected);
        if threads == before {
            return Ok(false);
        }
        let page = match selected.is_empty() {
            true => String::new(),
            false => {
                let removed = before.keys().filter(|id| !threads.contains_key(id)).map(ToString::to_string);
                let removed: Vec<String> = removed.collect();
                let model = self.options.consolidation_model.as_deref();
                let request = prompts::consolidation(
                    self.request(model, segment),
                    page.as_deref().unwrap_or_default(),
                    &selected,
                    &removed,
                );
                let answer = self.ask(request).await.map_err(MemoryError::Model)?;
                answer::consolidated(&answer).map_err(|error| MemoryError::Model(error.to_string()))?
            }
        };
        self.clone().off_worker(move |run| run.write(&page, &threads)).await??;
        Ok(true)
    }

    /// The page first: after a crash in between it is made again.
    fn write(&self, page: &str, threads: &BTreeMap<ThreadId, i64>) -> Result<(), ConfigError> {
        self.folder.write_page(page)?;
        self.folder.write_consolidated(threads)
    }

    fn request<'a>(&'a self, model: Option<&'a str>, segment: u32) -> MemoryRequest<'a> {
        let model = model.unwrap_or(&self.model);
        MemoryRequest { model, metadata: &self.metadata, segment, takes_schema: self.takes_schema }
    }

    async fn ask(&self, request: PreparedRequest) -> Result<String, String> {
        match tokio::time::timeout(REQUEST_LIMIT, self.answer(request)).await {
            Ok(answer) => answer.map_err(|failure| failure.message),
            Err(_) => Err(format!("no answer within {} seconds", REQUEST_LIMIT.as_secs())),
        }
    }

    async fn answer(&self, request: PreparedRequest) -> Result<String, ModelFailure> {
        let mut events = self.transport.open(request);
        let mut answer = String::new();
        while let Some(event) = events.next().await {
            match event? {
                StreamEvent::ItemDone(item) if answer.len() <= MOST_ANSWER_BYTES => {
                    answer.push_str(&text_of(&item));
                }
                StreamEvent::Failed(failure) => return Err(failure),
                StreamEvent::Completed { .. } => break,
                _ => {}
            }
        }
        Ok(answer)
    }
}

fn text_of(item: &ResponseItem) -> String {
    let ResponseItem::Message { role, content, .. } = item else { return String::new() };
    let texts = content.iter().filter(|_| role == "assistant").filter_map(|part| match part {
        ContentItem::OutputText { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}
