//! Journals that the index has not read yet, newest first, so that the first pages are correct early.

use protocol::ThreadSortKey;

use crate::layout::{JournalFormat, StoredJournal};
use crate::time;

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// An id is made a moment before its thread, and file times are coarse.
const SLACK_MS: i64 = 1_000;

#[derive(Debug)]
pub(super) struct UnreadJournals {
    pub(super) total: usize,
    pub(super) done: usize,
    pub(super) damaged: usize,
    /// Each with the latest time at which it may be listed. The last one is read next.
    journals: Vec<(i64, StoredJournal)>,
    order: UnreadOrder,
}

/// Which journals are read first: archived or active ones, and by which time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct UnreadOrder {
    pub(super) sort_key: ThreadSortKey,
    pub(super) archived: bool,
}

impl UnreadJournals {
    pub(super) fn new(journals: Vec<StoredJournal>) -> Self {
        let order = UnreadOrder { sort_key: ThreadSortKey::CreatedAt, archived: false };
        let total = journals.len();
        let journals = journals.into_iter().map(|journal| (0, journal)).collect();
        let mut unread = Self { total, done: 0, damaged: 0, journals, order };
        unread.sort();
        unread
    }

    pub(super) fn arrange(&mut self, order: UnreadOrder) {
        if self.order != order {
            self.order = order;
            self.sort();
        }
    }

    fn sort(&mut self) {
        let UnreadOrder { sort_key, archived } = self.order;
        for (latest, journal) in &mut self.journals {
            *latest = match sort_key {
                ThreadSortKey::CreatedAt => latest_creation(journal),
                ThreadSortKey::UpdatedAt | ThreadSortKey::RecencyAt | ThreadSortKey::SectionPosition => {
                    journal.written_at_ms.saturating_add(SLACK_MS)
                }
            };
        }
        // Ids start with their creation time, which breaks ties.
        self.journals.sort_unstable_by(|(at, one), (other_at, other)| {
            let place = (one.is_archived == archived, at, &one.key);
            place.cmp(&(other.is_archived == archived, other_at, &other.key))
        });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.journals.is_empty()
    }

    pub(super) fn take(&mut self, count: usize) -> Vec<StoredJournal> {
        let from = self.journals.len().saturating_sub(count);
        let taken: Vec<StoredJournal> =
            self.journals.drain(from..).rev().map(|(_, journal)| journal).collect();
        self.done += taken.len();
        taken
    }

    /// The latest time at which an unread thread may be listed; none when all requested ones were read.
    pub(super) fn latest(&self) -> Option<i64> {
        let (latest, journal) = self.journals.last()?;
        (journal.is_archived == self.order.archived).then_some(*latest)
    }
}

/// The thread's id and its journal's folder both give the creation time. If they disagree, the folder counts.
fn latest_creation(journal: &StoredJournal) -> i64 {
    let made_at = journal.key.made_at_ms();
    if journal.format != JournalFormat::Own {
        // The reference's folders use local time.
        return made_at.map_or(i64::MAX, |made_at| made_at.saturating_add(SLACK_MS));
    }
    match (made_at, end_of_day(journal)) {
        (Some(made_at), Some(end)) if (0..DAY_MS).contains(&(end - made_at)) => made_at + SLACK_MS,
        (_, Some(end)) => end.saturating_add(SLACK_MS),
        (Some(made_at), None) => made_at.saturating_add(SLACK_MS),
        (None, None) => i64::MAX,
    }
}

fn end_of_day(journal: &StoredJournal) -> Option<i64> {
    if journal.is_archived {
        return None;
    }
    let mut folders = journal.path.parent()?.iter().rev();
    let mut next = || folders.next()?.to_str();
    let (day, month, year) = (next()?, next()?, next()?);
    time::parse_ms(&format!("{year}-{month}-{day}T23:59:59.999Z"))
}
