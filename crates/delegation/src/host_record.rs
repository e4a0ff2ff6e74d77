//! A record that the host keeps: sent in order, awaited if something depends on it, and kept here until the host has
//! it.

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::fmt;
use std::sync::Arc;

use journal::{HistoryBuilder, JournalEntry, JournalError, Record, ThreadHistory};
use protocol::{
    OperationId, OperationRecord, RolloutAppendParams, RolloutAppendResponse, RolloutBarrier, RolloutItem,
    RolloutRecord, SessionMeta, ThreadId, ThreadItem,
};

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::{HostError, HostId, HostSession};
use model::json_bytes;
use support::kill_point;

/// Unacknowledged appends before the next one waits.
const MOST_UNDER_WAY: usize = 64;

/// Bytes of unacknowledged records, not counting the newest append.
const MOST_BYTES_UNDER_WAY: usize = 4 * 1024 * 1024;

type Handover = JoinHandle<Result<RolloutAppendResponse, HostError>>;

/// The records of one thread, and how many of them the host has.
pub struct HostRecord {
    session: Arc<HostSession>,
    thread_id: ThreadId,
    /// Written before the first record.
    meta: Option<Box<SessionMeta>>,
    /// All records, including those that the host has: it sends its record when it opens the thread, and is never asked
    /// for it again. Reading the thread, resuming a turn and recovering from a failed write use these entries, and the
    /// record of a host that attaches again is compared with them.
    entries: Vec<JournalEntry>,
    /// The ordinal of the first entry.
    first: u64,
    /// The host has the entries before this ordinal.
    committed: u64,
    /// Sent to a host and not yet acknowledged, oldest first.
    under_way: VecDeque<UnderWay>,
    /// Something was refused or lost, so everything from `committed` on is sent again.
    is_broken: bool,
    /// The host's connection ended before everything was acknowledged.
    is_cut_off: bool,
    /// The start of the last write.
    last: u64,
    /// Never acknowledged, and their effects did not happen: only the host knows whether they are in the record.
    in_doubt: BTreeSet<u64>,
    /// Another runtime has the thread now.
    is_fenced: bool,
}

impl fmt::Debug for HostRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (committed, next) = (self.committed, self.next());
        f.debug_struct("HostRecord")
            .field("committed", &committed)
            .field("next", &next)
            .finish_non_exhaustive()
    }
}

impl HostRecord {
    /// For a thread without records.
    pub fn fresh(session: Arc<HostSession>, meta: SessionMeta) -> Self {
        let thread_id = meta.thread_id.clone();
        Self::at(session, thread_id, Some(Box::new(meta)), Vec::new())
    }

    /// For a thread whose history was rebuilt: the host gets all of it with the first record.
    pub fn rebuilt(session: Arc<HostSession>, meta: SessionMeta, entries: Vec<JournalEntry>) -> Self {
        let mut record = Self::fresh(session, meta);
        if let Some(meta) = record.meta.take() {
            let at_ms = meta.created_at_ms;
            record.push(at_ms, RolloutRecord::SessionMeta { meta });
        }
        for JournalEntry { at_ms, record: kept, .. } in entries {
            let seq = record.next();
            record.entries.push(JournalEntry { seq, at_ms, record: kept });
        }
        record.is_broken = true;
        record
    }

    /// For a thread whose record the host sent.
    pub fn known(session: Arc<HostSession>, thread_id: ThreadId, entries: Vec<JournalEntry>) -> Self {
        Self::at(session, thread_id, None, entries)
    }

    fn at(
        session: Arc<HostSession>,
        thread_id: ThreadId,
        meta: Option<Box<SessionMeta>>,
        entries: Vec<JournalEntry>,
    ) -> Self {
        let first = entries.first().map_or(0, |entry| entry.seq);
        let committed = entries.last().map_or(0, |entry| entry.seq + 1);
        let under_way = VecDeque::new();
        Self {
            session,
            thread_id,
            meta,
            entries,
            first,
            committed,
            under_way,
            is_broken: false,
            is_cut_off: false,
            last: committed,
            in_doubt: BTreeSet::new(),
            is_fenced: false,
        }
    }

    /// The next ordinal to send: the host has all before it.
    pub fn committed(&self) -> u64 {
        self.committed
    }

    /// The next ordinal to be written.
    pub fn next(&self) -> u64 {
        self.first + self.entries.len() as u64
    }

    /// The history of all records, including those that the host does not have yet.
    pub fn read(&self) -> ThreadHistory {
        let mut builder = HistoryBuilder::new(Some(self.thread_id.clone()));
        self.entries.iter().for_each(|entry| builder.add(entry.clone()));
        builder.finish()
    }

    /// Returns when the host has committed, if an effect depends on it; otherwise when the records are sent.
    pub async fn write(&mut self, at_ms: i64, records: &[RolloutRecord]) -> Result<(), JournalError> {
        if self.is_fenced {
            return Err(fenced());
        }
        if let Some(meta) = self.meta.take() {
            self.push(at_ms, RolloutRecord::SessionMeta { meta });
        }
        self.last = self.next();
        let written = self.hand_over(at_ms, records).await;
        if written.is_err() {
            // Records of events stay; announcements of effects that will not happen are removed.
            let announced = self.since(self.last).filter(|entry| announces(entry)).map(|entry| entry.seq);
            let announced: Vec<u64> = announced.collect();
            self.in_doubt.extend(announced);
        }
        written
    }

    /// Undoes the last write: its command was refused.
    pub fn take_back(&mut self) {
        let undone: Vec<u64> = self.since(self.last).map(|entry| entry.seq).collect();
        self.in_doubt.extend(undone);
    }

    fn since(&self, from: u64) -> impl Iterator<Item = &JournalEntry> {
        self.entries.iter().filter(move |entry| entry.seq >= from)
    }

    /// Whether the host's connection ended before everything was acknowledged.
    pub fn is_cut_off(&self) -> bool {
        self.is_cut_off
    }

    /// The operations that have started as far as known here, without those that were only about to.
    pub fn started(&self) -> HashSet<OperationId> {
        let started = |entry: &JournalEntry| match &entry.record {
            Record::Known(RolloutRecord::Operation {
                operation: OperationRecord::Started { operation_id, .. },
            }) => Some(operation_id.clone()).filter(|_| !self.in_doubt.contains(&entry.seq)),
            _ => None,
        };
        self.entries.iter().filter_map(started).collect()
    }

    /// Continues from the record that the host sent. If it matches what was sent so far, later records are kept and
    /// sent with the next one; otherwise the host's record replaces ours.
    pub fn reconcile(&mut self, theirs: Vec<JournalEntry>) {
        let is_same =
            |(one, other): (&JournalEntry, &JournalEntry)| one.seq == other.seq && one.record == other.record;
        let is_ours = theirs.len() <= self.entries.len() && theirs.iter().zip(&self.entries).all(is_same);
        let in_doubt = std::mem::take(&mut self.in_doubt);
        self.under_way.clear();
        (self.is_broken, self.is_cut_off) = (false, false);
        if is_ours {
            let rest = self.entries.split_off(theirs.len());
            self.committed = self.next();
            for entry in rest.into_iter().filter(|entry| !in_doubt.contains(&entry.seq)) {
                let seq = self.next();
                self.entries.push(JournalEntry { seq, ..entry });
            }
            self.is_broken = self.committed < self.next();
        } else {
            self.first = theirs.first().map_or(0, |entry| entry.seq);
            self.entries = theirs;
            self.committed = self.next();
        }
    }

    async fn hand_over(&mut self, at_ms: i64, records: &[RolloutRecord]) -> Result<(), JournalError> {
        records.iter().for_each(|record| self.push(at_ms, record.clone()));
        let barrier = records.iter().rev().find_map(barrier_of);
        kill_point!("runtime.{}.before", serde_json::json!(barrier).as_str().unwrap_or("record"));
        if self.is_broken {
            return self.send_again(barrier).await;
        }
        let from = self.under_way.back().map_or(self.committed, |append| append.after);
        self.give(from, barrier.clone());
        while (barrier.is_some() && !self.under_way.is_empty()) || self.is_too_far_ahead() {
            match self.acknowledged().await {
                Ok(()) => {}
                // Another host has attached since; send to it instead.
                Err(Unacknowledged::LeftBehind) => return self.send_again(barrier).await,
                Err(Unacknowledged::Refused(error)) => return Err(error),
            }
        }
        kill_point!("runtime.{}.after", serde_json::json!(barrier).as_str().unwrap_or("record"));
        Ok(())
    }

    fn push(&mut self, at_ms: i64, record: RolloutRecord) {
        let seq = self.next();
        self.entries.push(JournalEntry { seq, at_ms, record: Record::Known(record) });
    }

    fn give(&mut self, from: u64, barrier: Option<RolloutBarrier>) {
        let start = usize::try_from(from - self.first).unwrap_or(usize::MAX);
        let items: Vec<RolloutItem> =
            self.entries.iter().skip(start).filter_map(|entry| entry.clone().into_item().ok()).collect();
        let params = RolloutAppendParams {
            thread_id: self.thread_id.clone(),
            host_epoch: self.session.epoch(),
            from_ordinal: from,
            items,
            barrier,
        };
        let host = self.session.host();
        let bytes = json_bytes(&params.items);
        let sent_at = Instant::now();
        let handover = tokio::spawn(host.append(params));
        self.under_way.push_back(UnderWay { after: self.next(), host: host.id(), bytes, sent_at, handover });
    }

    fn is_too_far_ahead(&self) -> bool {
        let bytes: usize = self.under_way.iter().map(|append| append.bytes).sum();
        let newest = self.under_way.back().map_or(0, |append| append.bytes);
        self.under_way.len() > MOST_UNDER_WAY || bytes - newest > MOST_BYTES_UNDER_WAY
    }

    /// Waits for the oldest append.
    async fn acknowledged(&mut self) -> Result<(), Unacknowledged> {
        let Some(UnderWay { after, host, sent_at, handover, .. }) = self.under_way.pop_front() else {
            return Ok(());
        };
        let answer = tokio::select! {
            biased;
            answer = handover => answer.unwrap_or(Err(HostError::Gone)),
            () = self.session.left() => Err(HostError::Gone),
        };
        match answer {
            Ok(RolloutAppendResponse { next_ordinal, valid_for_ms }) if next_ordinal == after => {
                self.committed = after;
                // Measured from the sending, which precedes the host's check of its lease: by now another host may have
                // the thread, and no effect may start here.
                if valid_for_ms.is_some_and(|valid| sent_at.elapsed() >= Duration::from_millis(valid)) {
                    self.is_fenced = true;
                    return Err(Unacknowledged::Refused(fenced()));
                }
                Ok(())
            }
            Ok(RolloutAppendResponse { next_ordinal, .. }) => {
                let problem = format!("it says that {next_ordinal} comes next, and {after} does");
                Err(Unacknowledged::Refused(self.lost(problem)))
            }
            Err(HostError::Gone) if host != self.session.host().id() => {
                self.lost(HostError::Gone.to_string());
                Err(Unacknowledged::LeftBehind)
            }
            Err(error) => Err(Unacknowledged::Refused(self.refused(&error))),
        }
    }

    /// Sends again everything that is not acknowledged. The attached host may be another one, and may have more than
    /// was acknowledged.
    async fn send_again(&mut self, barrier: Option<RolloutBarrier>) -> Result<(), JournalError> {
        self.is_broken = false;
        // Once from the known position, and once more from the one that the host then reports.
        for _ in 0..2 {
            let (before, from) = (self.committed, self.committed);
            self.give(from, barrier.clone());
            match self.acknowledged().await {
                Ok(()) => return Ok(()),
                Err(Unacknowledged::Refused(error)) if self.committed == before || self.is_fenced => {
                    return Err(error);
                }
                // It has some of them, or another host must be asked.
                Err(_) => self.is_broken = false,
            }
        }
        Err(self.lost("its place in the record goes on changing".to_owned()))
    }

    fn refused(&mut self, error: &HostError) -> JournalError {
        if *error == HostError::Gone {
            self.is_cut_off = true;
            self.session.detach(self.session.host().id());
        }
        match (error.data_code(), next_ordinal(error)) {
            (Some("fenced"), _) => self.is_fenced = true,
            // Another runtime has written.
            (Some("ordinalConflict"), Some(next)) if next > self.next() => self.is_fenced = true,
            (Some("ordinalConflict"), Some(next)) if next >= self.committed => self.committed = next,
            _ => {}
        }
        if self.is_fenced { fenced() } else { self.lost(error.to_string()) }
    }

    fn lost(&mut self, problem: String) -> JournalError {
        self.under_way.clear();
        self.is_broken = true;
        JournalError::Remote(problem)
    }
}

/// An unacknowledged append.
struct UnderWay {
    /// The ordinal after it.
    after: u64,
    host: HostId,
    /// The size of its records in the history.
    bytes: usize,
    sent_at: Instant,
    handover: Handover,
}

/// Why an append may not be in the record.
enum Unacknowledged {
    Refused(JournalError),
    /// Its host is gone, and another one is attached now.
    LeftBehind,
}

fn next_ordinal(error: &HostError) -> Option<u64> {
    match error {
        HostError::Refused { data: Some(data), .. } => data.get("nextOrdinal")?.as_u64(),
        _ => None,
    }
}

fn fenced() -> JournalError {
    JournalError::Remote("another runtime has taken the thread over (fenced)".to_owned())
}

/// Whether it announces an effect, instead of reporting one.
fn announces(entry: &JournalEntry) -> bool {
    matches!(
        &entry.record,
        Record::Known(
            RolloutRecord::Operation { operation: OperationRecord::Started { .. } }
                | RolloutRecord::TurnEnded { .. }
        )
    )
}

/// The effects that must wait until the host has committed the record.
fn barrier_of(record: &RolloutRecord) -> Option<RolloutBarrier> {
    match record {
        RolloutRecord::Operation { operation } => match operation {
            OperationRecord::Proposed { .. } => Some(RolloutBarrier::OperationProposed),
            OperationRecord::Started { .. } => Some(RolloutBarrier::OperationStarted),
            OperationRecord::Finished { .. } | OperationRecord::Unknown { .. } => {
                Some(RolloutBarrier::OperationFinished)
            }
            OperationRecord::Decided { .. } => Some(RolloutBarrier::Other("operationDecided".to_owned())),
            OperationRecord::Withdrawn { .. } => None,
        },
        RolloutRecord::ThreadItem { item: ThreadItem::UserMessage { .. }, .. }
        | RolloutRecord::TurnStarted { .. } => Some(RolloutBarrier::UserInput),
        RolloutRecord::TurnEnded { .. } => Some(RolloutBarrier::Other("turnEnded".to_owned())),
        _ => None,
    }
}
