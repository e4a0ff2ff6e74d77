//! Selects the threads to process, and the notes that count. No clock and no I/O.

use std::collections::BTreeMap;

use config::MemoryOptions;
use protocol::ThreadId;

use crate::folder::ThreadMemory;

const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;

/// Limit of attempts for a thread.
const MOST_FAILURES: u32 = 3;
/// The delay after a failure.
const RETRY_MS: i64 = HOUR_MS;
/// Limit of one consolidation's notes.
const MOST_RAW_BYTES: usize = 256 << 10;

/// A stored thread that may have notes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MemoryCandidate {
    pub(crate) thread_id: ThreadId,
    pub(crate) updated_at_ms: i64,
}

/// The threads to process now, in the given order: neither too old nor too recent, and changed since the last time.
pub(crate) fn due(
    candidates: Vec<MemoryCandidate>,
    known: &BTreeMap<ThreadId, ThreadMemory>,
    options: &MemoryOptions,
    now_ms: i64,
) -> Vec<MemoryCandidate> {
    let oldest = now_ms - options.max_age_days * DAY_MS;
    let newest = now_ms - options.min_idle_hours * HOUR_MS;
    let is_due = |candidate: &MemoryCandidate| {
        let in_time = (oldest..=newest).contains(&candidate.updated_at_ms);
        in_time && known.get(&candidate.thread_id).is_none_or(|memory| is_stale(memory, candidate, now_ms))
    };
    candidates.into_iter().filter(is_due).take(options.max_threads_per_start).collect()
}

fn is_stale(memory: &ThreadMemory, candidate: &MemoryCandidate, now_ms: i64) -> bool {
    if memory.is_opted_out {
        return false;
    }
    if memory.source_updated_at_ms < candidate.updated_at_ms {
        return true;
    }
    (1..MOST_FAILURES).contains(&memory.failures) && memory.attempted_at_ms + RETRY_MS <= now_ms
}

/// The notes that count: recently used or made, the most used first.
pub(crate) fn selected<'a>(
    known: &'a BTreeMap<ThreadId, ThreadMemory>,
    options: &MemoryOptions,
    now_ms: i64,
) -> Vec<&'a ThreadMemory> {
    let oldest = now_ms - options.max_unused_days * DAY_MS;
    let has_notes = |memory: &&ThreadMemory| {
        !memory.is_opted_out && memory.raw_memory.is_some() && memory.last_used_ms() >= oldest
    };
    let mut found: Vec<&ThreadMemory> = known.values().filter(has_notes).collect();
    found.sort_by(|a, b| {
        let rank = |memory: &ThreadMemory| (memory.usage_count, memory.last_used_ms());
        rank(b).cmp(&rank(a)).then_with(|| a.thread_id.cmp(&b.thread_id))
    });
    found.truncate(options.max_raw_memories);
    let mut bytes = 0;
    let fits = found.iter().take_while(|memory| {
        bytes += memory.raw_memory.as_ref().map_or(0, String::len);
        bytes <= MOST_RAW_BYTES
    });
    let count = fits.count();
    found.truncate(count);
    found
}

/// Identifies a selection, so that the same notes are not consolidated twice.
pub(crate) fn fingerprint(selected: &[&ThreadMemory]) -> BTreeMap<ThreadId, i64> {
    selected.iter().map(|memory| (memory.thread_id.clone(), memory.source_updated_at_ms)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_000 * DAY_MS;

    fn candidate(id: &str, hours_ago: i64) -> MemoryCandidate {
        MemoryCandidate { thread_id: ThreadId::new(id), updated_at_ms: NOW - hours_ago * HOUR_MS }
    }

    fn memory(id: &str, hours_ago: i64) -> ThreadMemory {
        let at = NOW - hours_ago * HOUR_MS;
        ThreadMemory {
            source_updated_at_ms: at,
            generated_at_ms: at,
            raw_memory: Some(format!("notes of {id}")),
            ..ThreadMemory::new(ThreadId::new(id))
        }
    }

    fn known(memories: Vec<ThreadMemory>) -> BTreeMap<ThreadId, ThreadMemory> {
        memories.into_iter().map(|memory| (memory.thread_id.clone(), memory)).collect()
    }

    fn ids(due: &[MemoryCandidate]) -> Vec<&str> {
        due.iter().map(|candidate| candidate.thread_id.as_str()).collect()
    }

    #[test]
    fn threads_are_due_when_they_are_idle_and_not_too_old() {
        let all = || vec![candidate("warm", 5), candidate("cold", 7), candidate("old", 31 * 24)];
        let options = MemoryOptions::default();
        assert_eq!(ids(&due(all(), &known(vec![]), &options, NOW)), ["cold"]);
        let few = MemoryOptions { max_threads_per_start: 0, ..options };
        assert!(due(all(), &known(vec![]), &few, NOW).is_empty());
    }

    #[test]
    fn a_thread_is_looked_at_again_when_it_has_changed_and_seldom_after_failures() {
        let check = |memory: ThreadMemory| {
            !due(vec![candidate("a", 7)], &known(vec![memory]), &MemoryOptions::default(), NOW).is_empty()
        };
        assert!(!check(memory("a", 7)), "nothing is new");
        assert!(check(memory("a", 8)), "it went on since");
        assert!(!check(ThreadMemory { is_opted_out: true, ..memory("a", 8) }));
        let failed = |failures, attempted_at_ms| ThreadMemory { failures, attempted_at_ms, ..memory("a", 7) };
        assert!(check(failed(1, NOW - RETRY_MS)));
        assert!(!check(failed(1, NOW - 1)), "too soon");
        assert!(!check(failed(3, 0)), "tried often enough");
    }

    #[test]
    fn used_notes_come_first_and_unused_ones_are_forgotten() {
        let mut used = memory("used", 40 * 24);
        (used.usage_count, used.last_usage_ms) = (2, Some(NOW - DAY_MS));
        let none = ThreadMemory { raw_memory: None, ..memory("none", 1) };
        let out = ThreadMemory { is_opted_out: true, ..memory("out", 1) };
        let all = known(vec![memory("fresh", 1), memory("stale", 31 * 24), used, none, out, memory("b", 2)]);
        let options = MemoryOptions::default();
        let chosen = selected(&all, &options, NOW);
        let names: Vec<&str> = chosen.iter().map(|memory| memory.thread_id.as_str()).collect();
        assert_eq!(names, ["used", "fresh", "b"]);
        assert_eq!(fingerprint(&chosen).len(), 3);
        let one = MemoryOptions { max_raw_memories: 1, ..options };
        assert_eq!(selected(&all, &one, NOW).len(), 1);
    }

    #[test]
    fn a_selection_is_bounded_in_bytes() {
        let large = |id: &str| ThreadMemory { raw_memory: Some("x".repeat(100 << 10)), ..memory(id, 1) };
        let all = known(vec![large("a"), large("b"), large("c")]);
        assert_eq!(selected(&all, &MemoryOptions::default(), NOW).len(), 2);
    }
}
