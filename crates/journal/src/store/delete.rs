//! Deletes a thread's record, and those of the threads that it started.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use protocol::{SessionSource, SubAgentSource, ThreadId, ThreadSourceKind};

use super::Store;
use crate::error::JournalError;
use crate::index::ListQuery;
use crate::layout::ThreadKey;
use crate::lock::JournalLock;
use crate::row::ThreadRow;

impl Store {
    /// Deletes a thread and its descendants permanently. If one of them is open in any process, all of them stay.
    pub fn delete(&self, thread_id: &ThreadId) -> Result<Vec<ThreadRow>, JournalError> {
        let rows = self.with_descendants(thread_id)?;
        let mut held = Vec::new();
        for row in &rows {
            let key = ThreadKey::parse(row.thread_id.as_str())?;
            let lock = JournalLock::acquire(&self.layout.lock(&key), &row.path)?;
            held.push((key, row, lock));
        }
        // Children first: after a crash, the rest can still be found and deleted by the parent.
        while let Some((key, row, _lock)) = held.pop() {
            match fs::remove_file(&row.path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(JournalError::storage("delete", &row.path, error));
                }
                _ => {}
            }
            let folder = row.path.parent().unwrap_or(Path::new("/"));
            self.writer
                .disk
                .sync_dir(folder)
                .map_err(|error| JournalError::storage("sync", folder, error))?;
            self.index.forget(&key)?;
        }
        Ok(rows)
    }

    /// The thread, then all its descendants. A rollout of another program is not ours to delete.
    pub fn with_descendants(&self, thread_id: &ThreadId) -> Result<Vec<ThreadRow>, JournalError> {
        let first = self.summary(thread_id)?;
        if !self.layout.is_own(&first.path) {
            return Err(JournalError::NotOurs { path: first.path });
        }
        let mut children = self.children()?;
        let mut found = vec![first];
        let mut next = 0;
        while let Some(row) = found.get(next) {
            let below = children.remove(&row.thread_id).unwrap_or_default();
            found.extend(below);
            next += 1;
        }
        Ok(found)
    }

    /// Our threads that another one started, by that one.
    fn children(&self) -> Result<HashMap<ThreadId, Vec<ThreadRow>>, JournalError> {
        let mut children: HashMap<ThreadId, Vec<ThreadRow>> = HashMap::new();
        for archived in [false, true] {
            let mut query = ListQuery {
                limit: 100,
                archived,
                source_kinds: vec![ThreadSourceKind::SubAgent],
                with_silent: true,
                ..ListQuery::default()
            };
            loop {
                let page = self.list(&query)?;
                for row in page.threads.into_iter().filter(|row| self.layout.is_own(&row.path)) {
                    if let Some(parent) = parent(&row) {
                        children.entry(parent).or_default().push(row);
                    }
                }
                match page.next_cursor {
                    Some(cursor) => query.cursor = Some(cursor),
                    None => break,
                }
            }
        }
        Ok(children)
    }
}

fn parent(row: &ThreadRow) -> Option<ThreadId> {
    match &row.summary.source {
        Some(SessionSource::SubAgent(SubAgentSource::ThreadSpawn { parent_thread_id, .. })) => {
            Some(parent_thread_id.clone())
        }
        _ => None,
    }
}
