//! Opening threads, as clients request it.

use delegation::{Terms, asked_tool_set};
use engine::UserText;
use journal::JournalError;
use protocol::{
    ResolvedOperation, ServerNotification, ThreadForkParams, ThreadId, ThreadResumeParams, ThreadStartParams,
    ThreadStatusChangedNotification,
};

use crate::error::RuntimeError;
use crate::listeners::OwnListeners;
use crate::open::checks::{id_of_path, nothing_to_resume};
use crate::open::config_request::current_provider;
use crate::open::copy::{CopiedRecord, copy_of_import, read_to_copy};
use crate::open::import::import_fields;
use crate::open::opened::{HostAnswer, OpenedThread};
use crate::open::resume::{ResumedThread, check_path, resume};
use crate::open::{OpenRequest, open};
use crate::providers::identity::Opener;
use crate::runtime::Runtime;
use support::blocking;

use driver::{Snapshot, Then, ThreadError, UndeliveredInput, check_thread_id};

impl Runtime {
    /// Starts a new thread. Its record begins with its first turn.
    pub async fn start_thread(
        &self,
        mut params: ThreadStartParams,
        opener: Opener,
    ) -> Result<OpenedThread, RuntimeError> {
        let Opener { client, host } = opener;
        let terms = Terms::of(params.delegation.as_ref(), params.rollout_ownership, host)?;
        let mut request = OpenRequest::of_start(&params, client, terms)?;
        self.state.environments.check(params.environments.as_deref().unwrap_or_default())?;
        if let Some(url) = request.config.bridge_url() {
            self.add_listeners(OwnListeners::of_bridge(url));
        }
        request.import = Some(import_fields!(params));
        open(&self.state, request).await
    }

    /// Opens a thread with its history. A thread in memory is joined as it is: `joined` is called between two of its
    /// events, so that a client that subscribes there gets each notification exactly once.
    pub async fn resume_thread(
        &self,
        params: ThreadResumeParams,
        opener: Opener,
        joined: Then<OpenedThread, RuntimeError>,
    ) {
        let (is_asked, resolved) =
            (params.resume_turn, params.resolved_operations.clone().unwrap_or_default());
        let mut is_opened = false;
        let id = match resume(&self.state, params, opener).await {
            Ok(ResumedThread::Joined(thread)) => {
                let (state, handle) = (self.state.clone(), thread.loaded.handle.clone());
                let with_turns = thread.with_turns || thread.shows_pending;
                let then = Then::new(move |snapshot: Result<Snapshot, ThreadError>| {
                    let opened = snapshot.map(|snapshot| thread.respond(&state, snapshot));
                    Box::pin(joined.give(opened.map_err(RuntimeError::from)))
                });
                self.skills_watched(handle.id()).await;
                handle.snapshot_then(with_turns, then).await;
                handle.id().clone()
            }
            Ok(ResumedThread::Opened(opened)) => {
                is_opened = true;
                let (id, status) = (opened.thread.id.clone(), opened.thread.status.clone());
                self.skills_watched(&id).await;
                // All clients are notified before the caller has its response: the thread is in memory again.
                let changed = ThreadStatusChangedNotification { thread_id: id.clone(), status };
                self.state.audience.notify(&id, ServerNotification::ThreadStatusChanged(changed)).await;
                joined.give(Ok(*opened)).await;
                id
            }
            Err(error) => return joined.give(Err(error)).await,
        };
        if is_asked || !resolved.is_empty() {
            self.resume_turn(&id, resolved).await;
        }
        // Continues a goal that was active when its process ended. A resumed turn comes first.
        if let (true, Some(loaded)) = (is_opened, self.state.loaded(&id)) {
            loaded.handle.pursue_goal().await;
        }
    }

    /// Resumes the interrupted or suspended turn, if there is one.
    async fn resume_turn(&self, id: &ThreadId, resolved: Vec<ResolvedOperation>) {
        let Some(loaded) = self.state.loaded(id) else { return };
        let undelivered = match loaded.handle.snapshot(true).await {
            Ok(snapshot) => snapshot.undelivered,
            Err(error) => return tracing::error!(%error, thread = %id, "a turn could not be resumed"),
        };
        let mut texts = Vec::new();
        for UndeliveredInput { id: item, content, outside } in undelivered {
            match self.state.read_input(&loaded.handle, None, content).await {
                Ok(text) => texts.push((item, UserText { outside, ..text })),
                Err(error) => {
                    tracing::warn!(%error, thread = %id, "the user's input could not be read again");
                }
            }
        }
        if let Err(error) = loaded.handle.resume_turn(resolved, texts).await {
            tracing::error!(%error, thread = %id, "a turn could not be resumed");
        }
    }

    /// A new thread that starts with a copy of another's history.
    pub async fn fork_thread(
        &self,
        mut params: ThreadForkParams,
        opener: Opener,
    ) -> Result<OpenedThread, RuntimeError> {
        nothing_to_resume(params.resolved_operations.as_deref(), params.resume_turn)?;
        let Opener { client, host } = opener;
        let terms = Terms::of(params.delegation.as_ref(), params.rollout_ownership, host)?;
        params.tool_set = asked_tool_set(params.tool_set.as_ref(), &terms)?.map(|set| *set);
        let source = match &params.path {
            Some(path) => id_of_path(path)?,
            None => check_thread_id(&params.thread_id)?,
        };
        let copied = match import_fields!(params).read(&self.state.uploads, Some(&source), &source)? {
            Some(imported) => {
                let (loader, now_ms) = (self.state.loader.clone(), self.state.now_ms());
                blocking(move || copy_of_import(imported, now_ms, current_provider(&loader))).await?
            }
            None => {
                check_path(&self.state, &source, params.path.as_deref()).await?;
                self.copy_of_stored(&source).await?
            }
        };
        let request = OpenRequest::of_fork(&params, source, client, terms, copied);
        request.check_carrier()?;
        open(&self.state, request).await
    }

    /// A copy of a record on this machine.
    async fn copy_of_stored(&self, source: &ThreadId) -> Result<CopiedRecord, RuntimeError> {
        let (wanted, now_ms) = (source.clone(), self.state.now_ms());
        let loader = self.state.loader.clone();
        let read = self.state.on_disk(move |store| {
            let (history, records) = read_to_copy(store, &wanted, now_ms)?;
            let configured_provider = current_provider(&loader);
            Ok(CopiedRecord { history, records, answer: HostAnswer::default(), configured_provider })
        });
        match read.await? {
            Ok(copied) => Ok(copied),
            Err(JournalError::NotFound(_)) => Err(RuntimeError::NoRecord(source.clone())),
            Err(error) => Err(error.into()),
        }
    }
}
