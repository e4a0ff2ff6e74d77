//! Histories that the host sends with a request to open a thread.

use delegation::{DelegationError, ImportedHistory, Uploads};
use journal::ThreadHistory;
use protocol::{InitialItemsRef, RolloutItem, ThreadId, Turn};

use crate::error::RuntimeError;
use crate::open::request::RecordSource;

/// The request fields with a history; at most one of them is set.
#[derive(Debug, Default)]
pub(crate) struct ImportFields {
    pub(crate) items: Option<Vec<RolloutItem>>,
    pub(crate) turns: Option<Vec<Turn>>,
    pub(crate) parts: Option<InitialItemsRef>,
}

/// Takes the fields from the params of any request that opens a thread.
macro_rules! import_fields {
    ($params:ident) => {
        $crate::open::import::ImportFields {
            items: $params.initial_items.take(),
            turns: $params.turn_history.take(),
            parts: $params.initial_items_ref.take(),
        }
    };
}
pub(crate) use import_fields;

impl ImportFields {
    /// Reads and checks the history. `of` is the thread it must belong to, if that matters.
    pub(crate) fn read(
        self,
        uploads: &Uploads,
        of: Option<&ThreadId>,
        id: &ThreadId,
    ) -> Result<Option<ImportedHistory>, RuntimeError> {
        let Self { items, turns, parts } = self;
        if usize::from(items.is_some()) + usize::from(turns.is_some()) + usize::from(parts.is_some()) > 1 {
            let problem = "cannot be used together with turnHistory or initialItemsRef; send one of them";
            let (code, field) = ("invalidHistory", "initialItems".to_owned());
            return Err(DelegationError::Invalid { code, field, problem: problem.to_owned() }.into());
        }
        if let Some(parts) = parts {
            let items = uploads.take(id, &parts)?;
            return Ok(Some(ImportedHistory::exact(items, of)?));
        }
        match (items, turns) {
            (Some(items), _) => Ok(Some(ImportedHistory::exact(items, of)?)),
            (None, Some(turns)) => Ok(Some(ImportedHistory::lossy(turns, id))),
            (None, None) => Ok(None),
        }
    }
}

/// Splits an import into the thread's history and the source of its record.
pub(crate) fn split(imported: ImportedHistory) -> (ThreadHistory, RecordSource) {
    let ImportedHistory { history, entries, fidelity, rebuilt, digest } = imported;
    (history, RecordSource::Imported { entries, fidelity, rebuilt, digest })
}
