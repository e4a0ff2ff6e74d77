//! Reading threads, in memory or stored.

use std::path::Path;

use journal::{JournalError, ListQuery, ThreadRow};
use protocol::{
    ConfigWarningNotification, SortDirection, Thread, ThreadId, ThreadListCwd, ThreadListParams,
    ThreadListResponse, ThreadLoadedListParams, ThreadLoadedListResponse, ThreadReadParams, ThreadSortKey,
    ThreadStatus, Turn,
};

use crate::error::RuntimeError;
use crate::open::config_request::current_provider;
use crate::runtime::Runtime;
use crate::state::{Loaded, ThreadIdentity};
use driver::check_thread_id;
use support::blocking;

/// Limit of the damaged places that a warning names.
const NAMED_PLACES: usize = 20;

impl Runtime {
    pub async fn read_thread(&self, params: ThreadReadParams) -> Result<Thread, RuntimeError> {
        let id = check_thread_id(&params.thread_id)?;
        let with_turns = params.include_turns && !params.exclude_turns;
        match self.state.loaded(&id) {
            Some(loaded) => self.read_loaded(&loaded, with_turns).await,
            None => self.read_stored(id, with_turns).await,
        }
    }

    /// The warning for a client that opened or read a thread with a damaged record.
    pub async fn record_warning(&self, id: &ThreadId) -> Option<ConfigWarningNotification> {
        let wanted = check_thread_id(id).ok()?;
        let read = self.state.on_disk(move |store| {
            // Most records are undamaged, and then nothing is read again.
            let row = store.summary(&wanted)?;
            if row.is_damaged { store.read(&wanted).map(Some) } else { Ok(None) }
        });
        let read = read.await.ok()?.ok()??;
        let places: Vec<String> =
            read.damage.named().iter().take(NAMED_PLACES).map(ToString::to_string).collect();
        let total = read.damage.total();
        Some(ConfigWarningNotification {
            summary: format!(
                "The record of thread {id} is damaged in {total} places; what is sound was read."
            ),
            details: Some(places.join("\n")),
            path: Some(read.row.path.to_string_lossy().into_owned()),
            range: None,
        })
    }

    async fn read_loaded(&self, loaded: &Loaded, with_turns: bool) -> Result<Thread, RuntimeError> {
        if with_turns && loaded.identity.ephemeral {
            return Err(RuntimeError::NoTurnsKept);
        }
        let snapshot = loaded.handle.snapshot(with_turns).await?;
        let is_said = match snapshot.next_ordinal {
            // The host has the record.
            Some(next) => next > 0,
            // A turn may have no user message, such as one that only runs a command.
            None => {
                let has_preview = snapshot.row.as_ref().is_some_and(|row| row.summary.preview.is_some());
                has_preview || !snapshot.turns.is_empty()
            }
        };
        if with_turns && !is_said {
            return Err(RuntimeError::NothingSaid(loaded.handle.id().clone()));
        }
        Ok(loaded.identity.describe(snapshot.row.as_ref(), snapshot.status, snapshot.turns))
    }

    async fn read_stored(&self, id: ThreadId, with_turns: bool) -> Result<Thread, RuntimeError> {
        let wanted = id.clone();
        let read = self.state.on_disk(move |store| {
            if with_turns {
                store.read(&wanted).map(|read| (read.row, read.history.turns))
            } else {
                store.summary(&wanted).map(|row| (row, Vec::new()))
            }
        });
        match read.await? {
            Ok((row, turns)) => Ok(row.to_thread(ThreadStatus::NotLoaded, turns)),
            Err(JournalError::NotFound(_)) => Err(RuntimeError::NotLoaded(id)),
            Err(error) => Err(error.into()),
        }
    }

    pub async fn list_threads(&self, params: ThreadListParams) -> Result<ThreadListResponse, RuntimeError> {
        let providers = match params.model_providers {
            Some(providers) => providers,
            None => {
                let loader = self.state.loader.clone();
                vec![blocking(move || current_provider(&loader)).await?]
            }
        };
        let query = ListQuery {
            cursor: params.cursor,
            limit: params.limit.map_or(ListQuery::default().limit, |limit| limit.clamp(1, 100) as usize),
            sort_key: params.sort_key.unwrap_or(ThreadSortKey::CreatedAt),
            direction: params.sort_direction.unwrap_or(SortDirection::Desc),
            model_providers: providers,
            source_kinds: params.source_kinds.unwrap_or_default(),
            archived: params.archived.unwrap_or(false),
            cwds: match params.cwd {
                None => Vec::new(),
                Some(ThreadListCwd::One(cwd)) => vec![cwd],
                Some(ThreadListCwd::Any(cwds)) => cwds,
            },
            search_term: params.search_term,
            with_silent: false,
        };
        let page = self.state.on_disk(move |store| store.list(&query)).await??;
        let data = page.threads.iter().map(|row| row.to_thread(self.status_of(&row.thread_id), vec![]));
        Ok(ThreadListResponse { data: data.collect(), next_cursor: page.next_cursor })
    }

    pub fn list_loaded(
        &self,
        params: &ThreadLoadedListParams,
    ) -> Result<ThreadLoadedListResponse, RuntimeError> {
        let ids = self.loaded_ids();
        let start = match &params.cursor {
            None => 0,
            Some(cursor) => {
                let invalid = |_| RuntimeError::InvalidCursor(cursor.clone());
                let after = check_thread_id(&ThreadId::new(cursor.as_str())).map_err(invalid)?;
                ids.partition_point(|id| id.as_str() <= after.as_str())
            }
        };
        let limit = params.limit.map_or(usize::MAX, |limit| limit.max(1) as usize);
        let page = &ids[start..];
        let data: Vec<String> = page.iter().take(limit).map(ToString::to_string).collect();
        let next_cursor = if page.len() > data.len() { data.last().cloned() } else { None };
        Ok(ThreadLoadedListResponse { data, next_cursor })
    }

    pub(crate) fn status_of(&self, id: &ThreadId) -> ThreadStatus {
        self.state.loaded(id).map_or(ThreadStatus::NotLoaded, |loaded| loaded.handle.status())
    }
}

impl ThreadIdentity {
    /// The thread as clients see it: from its record, if there is one.
    pub(crate) fn describe(&self, row: Option<&ThreadRow>, status: ThreadStatus, turns: Vec<Turn>) -> Thread {
        if let Some(row) = row {
            return row.to_thread(status, turns);
        }
        let meta = self.meta.clone();
        let created_at = meta.created_at_ms.div_euclid(1_000);
        Thread {
            id: meta.thread_id,
            session_id: meta.session_id,
            forked_from_id: meta.forked_from_id,
            preview: self.preview.clone(),
            ephemeral: self.ephemeral,
            project_id: None,
            model_provider: meta.model_provider,
            created_at,
            updated_at: created_at,
            status,
            path: self.path.as_deref().map(Path::to_string_lossy).map(std::borrow::Cow::into_owned),
            cwd: meta.cwd,
            cli_version: meta.cli_version,
            source: meta.source,
            thread_source: meta.thread_source,
            agent_nickname: meta.agent_nickname,
            agent_role: meta.agent_role,
            git_info: meta.git_info,
            name: None,
            turns,
        }
    }
}
