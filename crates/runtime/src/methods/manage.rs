//! Changes to threads outside turns: names, metadata, archive, unloading.

use std::io::ErrorKind;
use std::path::Path;

use journal::{JournalError, Store, ThreadRow};
use protocol::{
    GitInfo, Thread, ThreadId, ThreadMetadataChange, ThreadMetadataGitInfoUpdateParams,
    ThreadMetadataUpdateParams, ThreadStatus, TriState,
};

use crate::error::RuntimeError;
use crate::open::close::{CLOSING_LIMIT, close_loaded, unload};
use crate::runtime::Runtime;
use crate::step::tool_settings::outputs_folder;
use driver::{Still, ThreadError, check_thread_id};

/// Deleted threads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeletedThreads {
    /// The thread itself first, then its descendants.
    pub ids: Vec<ThreadId>,
    /// Whether the thread itself was in memory.
    pub was_loaded: bool,
}

impl Runtime {
    /// Unloads a thread. Interrupts a running turn. Returns whether the thread was in memory.
    pub async fn unload(&self, id: &ThreadId) -> Result<bool, RuntimeError> {
        unload(&self.state, &check_thread_id(id)?).await
    }

    /// Unloads an idle thread, if its record here allows opening it again and `still` agrees. Returns whether it was
    /// unloaded. Agents stay: their parents need them in memory.
    pub async fn unload_idle(
        &self,
        id: &ThreadId,
        still: impl FnOnce() -> bool + Send + 'static,
    ) -> Result<bool, RuntimeError> {
        let id = check_thread_id(id)?;
        let _opening = self.state.threads.opening(&id).await;
        let Some(loaded) = self.state.loaded(&id) else { return Ok(false) };
        let is_stored = !loaded.identity.ephemeral && loaded.identity.path.is_some();
        let is_family = self.state.agents.is_known(&id);
        if !is_stored || is_family || loaded.session.is_some() {
            return Ok(false);
        }
        match loaded.handle.close_idle(Still(Box::new(still))).await {
            Ok(true) => {
                self.state.forget(&id);
                Ok(true)
            }
            Ok(false) | Err(ThreadError::Gone(_)) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Unloads a thread and moves its record to the archive. Returns whether the thread was in memory.
    pub async fn archive(&self, id: &ThreadId) -> Result<bool, RuntimeError> {
        let id = check_thread_id(id)?;
        let _opening = self.state.threads.opening(&id).await;
        if let Some(loaded) = self.state.loaded(&id)
            && loaded.handle.snapshot(false).await?.row.is_none()
        {
            return Err(RuntimeError::NoRecord(id));
        }
        if let Some(loaded) = self.state.loaded(&id) {
            // Archiving ends a running turn, and clients are notified of that. If the end cannot be recorded in time,
            // the thread is closed all the same.
            let _ = tokio::time::timeout(CLOSING_LIMIT, loaded.handle.interrupt(None)).await;
        }
        let was_loaded = close_loaded(&self.state, &id).await?;
        let (wanted, outputs) = (id.clone(), outputs_folder(self.state.loader.home(), id.as_str()));
        let archive = move |store: &Store| {
            let archived = store.archive(&wanted);
            if archived.is_ok() {
                forget_outputs(&outputs);
            }
            archived
        };
        match self.state.on_disk(archive).await? {
            Ok(_) => Ok(was_loaded),
            Err(JournalError::NotFound(_)) => Err(RuntimeError::NoRecord(id)),
            Err(error) => Err(error.into()),
        }
    }

    pub async fn unarchive(&self, id: &ThreadId) -> Result<Thread, RuntimeError> {
        let id = check_thread_id(id)?;
        let _opening = self.state.threads.opening(&id).await;
        let (wanted, now_ms) = (id.clone(), self.state.now_ms());
        match self.state.on_disk(move |store| store.unarchive(&wanted, now_ms)).await? {
            Ok(row) => Ok(row.to_thread(ThreadStatus::NotLoaded, Vec::new())),
            Err(JournalError::NotFound(_)) => Err(RuntimeError::NotArchived(id)),
            Err(error) => Err(error.into()),
        }
    }

    /// Deletes a thread and its descendants. Refused while its turn runs, or while one of them is open in another
    /// process. Returns the deleted ids, and whether the thread was in memory.
    pub async fn delete_thread(&self, id: &ThreadId) -> Result<DeletedThreads, RuntimeError> {
        let id = check_thread_id(id)?;
        let _opening = self.state.threads.opening(&id).await;
        if matches!(self.status_of(&id), ThreadStatus::Active { .. }) {
            return Err(RuntimeError::AtWork(id));
        }
        if let Some(loaded) = self.state.loaded(&id)
            && loaded.handle.snapshot(false).await?.row.is_none()
        {
            return Err(RuntimeError::NoRecord(id));
        }
        let was_loaded = close_loaded(&self.state, &id).await?;
        let wanted = id.clone();
        let deleted = match self.state.on_disk(move |store| store.delete(&wanted)).await? {
            Ok(rows) => rows.into_iter().map(|row| row.thread_id).collect::<Vec<_>>(),
            Err(JournalError::NotFound(_)) => return Err(RuntimeError::NoRecord(id)),
            Err(error @ (JournalError::Locked { .. } | JournalError::NotOurs { .. })) => {
                return Err(RuntimeError::Undeletable { id, problem: error.to_string() });
            }
            Err(error) => return Err(error.into()),
        };
        for id in &deleted {
            forget_outputs(&outputs_folder(self.state.loader.home(), id.as_str()));
        }
        Ok(DeletedThreads { ids: deleted, was_loaded })
    }

    /// The name as it was stored.
    pub async fn set_name(&self, id: &ThreadId, name: &str) -> Result<String, RuntimeError> {
        let id = check_thread_id(id)?;
        let name = name.trim();
        if name.is_empty() {
            return Err(RuntimeError::EmptyName);
        }
        if self.row_of(&id).await?.is_some_and(|row| row.is_archived) {
            return Err(RuntimeError::UnknownThread(id));
        }
        let change =
            ThreadMetadataChange { name: TriState::Set(name.to_owned()), ..ThreadMetadataChange::default() };
        self.change(&id, change).await?;
        Ok(name.to_owned())
    }

    pub async fn update_metadata(&self, params: ThreadMetadataUpdateParams) -> Result<Thread, RuntimeError> {
        let id = check_thread_id(&params.thread_id)?;
        let wanted = checked(params.git_info.unwrap_or_default())?;
        if self.state.loaded(&id).is_some_and(|loaded| loaded.identity.ephemeral) {
            return Err(ThreadError::NoMetadataInMemory(id).into());
        }
        let before = self.row_of(&id).await?.and_then(|row| row.summary.git_info);
        let git_info = merged(before, wanted);
        let change = ThreadMetadataChange { git_info, ..ThreadMetadataChange::default() };
        let row = self.change(&id, change).await?;
        Ok(row.to_thread(self.status_of(&id), Vec::new()))
    }

    /// The thread's metadata; none yet for one without a record.
    async fn row_of(&self, id: &ThreadId) -> Result<Option<ThreadRow>, RuntimeError> {
        if let Some(loaded) = self.state.loaded(id) {
            return Ok(loaded.handle.snapshot(false).await?.row);
        }
        let wanted = id.clone();
        match self.state.on_disk(move |store| store.summary(&wanted)).await? {
            Ok(row) => Ok(Some(row)),
            Err(JournalError::NotFound(_)) => Err(RuntimeError::UnknownThread(id.clone())),
            Err(error) => Err(error.into()),
        }
    }

    async fn change(&self, id: &ThreadId, change: ThreadMetadataChange) -> Result<ThreadRow, RuntimeError> {
        let _opening = self.state.threads.opening(id).await;
        if let Some(loaded) = self.state.loaded(id) {
            return Ok(loaded.handle.note(change).await?);
        }
        let (wanted, now_ms) = (id.clone(), self.state.now_ms());
        match self.state.on_disk(move |store| store.edit(&wanted, change, now_ms)).await? {
            Ok(row) => Ok(row),
            Err(JournalError::NotFound(_)) => Err(RuntimeError::UnknownThread(id.clone())),
            Err(error) => Err(error.into()),
        }
    }
}

/// Deletes the stored outputs of a thread's commands. The record is deleted already, so a failure is only logged.
fn forget_outputs(folder: &Path) {
    match sandbox::as_command_user(|| std::fs::remove_dir_all(folder)).and_then(|removed| removed) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            tracing::warn!(%error, folder = %folder.display(), "the outputs of a deleted thread could not be removed");
        }
        _ => {}
    }
}

fn checked(
    params: ThreadMetadataGitInfoUpdateParams,
) -> Result<ThreadMetadataGitInfoUpdateParams, RuntimeError> {
    let fields = [("sha", &params.sha), ("branch", &params.branch), ("originUrl", &params.origin_url)];
    if fields.iter().all(|(_, value)| matches!(value, TriState::Keep)) {
        return Err(RuntimeError::EmptyGitInfo);
    }
    for (name, value) in fields {
        if matches!(value, TriState::Set(text) if text.trim().is_empty()) {
            return Err(RuntimeError::EmptyGitField(name));
        }
    }
    Ok(params)
}

fn merged(before: Option<GitInfo>, wanted: ThreadMetadataGitInfoUpdateParams) -> TriState<GitInfo> {
    let before = before.unwrap_or(GitInfo { sha: None, branch: None, origin_url: None });
    let choose = |before: Option<String>, wanted: TriState<String>| match wanted {
        TriState::Keep => before,
        TriState::Clear => None,
        TriState::Set(text) => Some(text.trim().to_owned()),
    };
    let merged = GitInfo {
        sha: choose(before.sha, wanted.sha),
        branch: choose(before.branch, wanted.branch),
        origin_url: choose(before.origin_url, wanted.origin_url),
    };
    let is_empty = merged.sha.is_none() && merged.branch.is_none() && merged.origin_url.is_none();
    if is_empty { TriState::Clear } else { TriState::Set(merged) }
}
