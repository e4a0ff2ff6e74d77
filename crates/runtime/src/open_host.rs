//! Threads whose past the host brings, and turns that are taken up or put away for it.

use std::sync::Arc;
use std::time::Duration;

use protocol::{
    InitialItemsRef, ResolvedOperation, RolloutItem, RolloutLoadParams, RolloutLoadResponse, SessionMeta,
    ThreadId, Turn, TurnSuspendMode, TurnSuspendParams, TurnSuspendResponse,
};

use crate::delegation::{DelegationError, HostId, Seat, Terms};
use crate::error::RuntimeError;
use crate::handle::Answer;
use crate::host_record::HostRecord;
use crate::hydrate::Brought;
use crate::open::Opening;
use crate::runtime::Runtime;
use crate::take_up::TakeUp;

/// How long a turn may take to come to a safe point, unless the caller says otherwise.
const SUSPEND_LIMIT: Duration = Duration::from_secs(30);

/// What a request brings of a past, at most one of them.
#[derive(Debug, Default)]
pub(crate) struct Bring {
    pub(crate) items: Option<Vec<RolloutItem>>,
    pub(crate) turns: Option<Vec<Turn>>,
    pub(crate) parts: Option<InitialItemsRef>,
}

/// Takes it out of the params of any of the requests that open a thread.
macro_rules! bring {
    ($params:ident) => {
        $crate::open_host::Bring {
            items: $params.initial_items.take(),
            turns: $params.turn_history.take(),
            parts: $params.initial_items_ref.take(),
        }
    };
}
pub(crate) use bring;

fn invalid(code: &'static str, field: &str, problem: impl Into<String>) -> RuntimeError {
    DelegationError::Invalid { code, field: field.to_owned(), problem: problem.into() }.into()
}

impl Runtime {
    /// The past in a request, checked. `of` is whose it must be, if that matters.
    pub(crate) fn brought(
        &self,
        bring: Bring,
        of: Option<&ThreadId>,
        id: &ThreadId,
    ) -> Result<Option<Brought>, RuntimeError> {
        let Bring { items, turns, parts } = bring;
        if usize::from(items.is_some()) + usize::from(turns.is_some()) + usize::from(parts.is_some()) > 1 {
            let problem = "cannot be used together with turnHistory or initialItemsRef; send one of them";
            return Err(invalid("invalidHistory", "initialItems", problem));
        }
        if let Some(parts) = parts {
            let items = self.inner.uploads.take(id, &parts)?;
            return Ok(Some(Brought::exact(items, of)?));
        }
        match (items, turns) {
            (Some(items), _) => Ok(Some(Brought::exact(items, of)?)),
            (None, Some(turns)) => Ok(Some(Brought::lossy(turns, id))),
            (None, None) => Ok(None),
        }
    }

    /// Gives a past that was brought its place: at the host, or in a record of ours.
    pub(crate) async fn keep_brought(
        &self,
        opening: &mut Opening,
        brought: Brought,
        terms: &Terms,
    ) -> Result<(), RuntimeError> {
        let Brought { entries, fidelity, rebuilt, digest, .. } = brought;
        opening.told.items_digest = Some(digest);
        opening.told.rebuilt = (!rebuilt.is_empty()).then_some(rebuilt);
        opening.told.fidelity = Some(fidelity);
        if terms.host_keeps_record() {
            let is_exact = fidelity == protocol::HistoryFidelity::Exact;
            opening.keep_at_host(|seat, meta| match is_exact {
                true => HostRecord::known(seat, meta.thread_id, entries),
                false => HostRecord::rebuilt(seat, meta, entries),
            });
            return Ok(());
        }
        let records = entries.into_iter().map(|entry| (entry.at_ms, entry.record));
        let is_identity = |record: &journal::Record| {
            matches!(record, journal::Record::Known(protocol::RolloutRecord::SessionMeta { .. }))
        };
        let records = records.filter(|(_, record)| !is_identity(record)).collect();
        opening.journal = Some(self.write_copy(&opening.meta, records).await?);
        Ok(())
    }

    /// One part of a past that is too long for one message.
    pub fn load_part(
        &self,
        host: HostId,
        params: RolloutLoadParams,
    ) -> Result<RolloutLoadResponse, RuntimeError> {
        self.inner.uploads.add(host, params)
    }

    /// Goes on with the turn that was cut off or put away, where that is asked for and there is one.
    pub(crate) async fn take_up(&self, id: &ThreadId, is_asked: bool, resolved: Vec<ResolvedOperation>) {
        let Some(loaded) = self.loaded(id).filter(|_| is_asked || !resolved.is_empty()) else { return };
        let unheard = match loaded.handle.look(true).await {
            Ok(snapshot) => snapshot.unheard,
            Err(error) => return tracing::error!(%error, thread = %id, "a turn could not be taken up"),
        };
        let mut texts = Vec::new();
        for (item, content) in unheard {
            match self.read_input(&loaded.handle, None, content).await {
                Ok(text) => texts.push((item, text)),
                Err(error) => tracing::warn!(%error, thread = %id, "what was said could not be read again"),
            }
        }
        if let Err(error) = loaded.handle.take_up(resolved, texts).await {
            tracing::error!(%error, thread = %id, "a turn could not be taken up");
        }
    }

    /// Puts a turn away. Answers when everything of it is in the record.
    pub async fn suspend_turn(&self, params: TurnSuspendParams, answer: Answer<TurnSuspendResponse>) {
        let TurnSuspendParams { thread_id, turn_id, mode, deadline_ms } = params;
        let answer = Answer::new(move |waiting: Result<_, RuntimeError>| {
            answer.give(waiting.map(|pending_operations| TurnSuspendResponse { pending_operations }));
        });
        let limit = deadline_ms.map_or(SUSPEND_LIMIT, Duration::from_millis);
        match self.thread(&thread_id) {
            Ok(thread) => {
                let when_pending = mode == TurnSuspendMode::WhenPending;
                thread.suspend_then(turn_id, when_pending, limit, answer).await;
            }
            Err(error) => answer.give(Err(error)),
        }
    }
}

impl Opening {
    pub(crate) fn keep_at_host(&mut self, make: impl FnOnce(Arc<Seat>, SessionMeta) -> HostRecord) {
        if let Some(seat) = self.settings.host.seat.clone() {
            self.host_record = Some(Box::new(make(seat, self.meta.clone())));
        }
    }
}

/// The words of the user that the model never got to see, for whoever takes the turn up.
pub(crate) fn unheard(history: &journal::History) -> Vec<(protocol::ItemId, Vec<protocol::UserInput>)> {
    TakeUp::of(history).map(|take_up| take_up.unheard).unwrap_or_default()
}
