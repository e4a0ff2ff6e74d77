//! The ordered queue of a connection as plain data: its entries, and which deltas are merged while they wait.
//!
//! A delta is merged with the last message of its group if that is a delta of the same stream. Messages of other groups
//! may come between the two; one of the same group, or without a group, prevents merging. So the order within a group
//! never changes, and a slow reader gets fewer, longer lines.

use std::collections::{HashMap, VecDeque};

use crate::encode::EncodedLine;
use crate::message::{DeltaKey, ENTRY_BYTES, OrderGroup, OutgoingMessage};

/// Limit of a merged delta, so that lines have a bounded size, and a response waits for at most one of them.
pub const MAX_MERGED_BYTES: usize = 32 * 1024;

/// Capacity that an empty lane keeps.
const KEPT_PLACES: usize = 64;

/// One entry of the lane, and its charge.
#[derive(Debug)]
pub(crate) struct LaneEntry {
    pub(crate) message: OutgoingMessage,
    pub(crate) charge: usize,
    /// When its last piece was added. Stamps only increase.
    pub(crate) stamp: u64,
    /// A response: charged to the responses, not to the messages.
    pub(crate) answer: bool,
}

impl LaneEntry {
    pub(crate) fn into_line(self) -> EncodedLine {
        match self.message {
            OutgoingMessage::Plain { line, .. } => line,
            OutgoingMessage::Delta { text, render, .. } => render(&text),
        }
    }

    fn group(&self) -> Option<OrderGroup> {
        match &self.message {
            OutgoingMessage::Plain { group, .. } => *group,
            OutgoingMessage::Delta { key, .. } => Some(key.group),
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Lane {
    entries: VecDeque<LaneEntry>,
    /// The number of the first entry. Numbers only increase.
    first: u64,
    /// The number of the last queued entry of each group.
    last_of: HashMap<OrderGroup, u64>,
    /// Entries with smaller numbers are not merged with later ones.
    barrier: u64,
    /// From this many entries on, deltas are merged: a fast reader gets them one by one.
    merge_from: usize,
}

impl Lane {
    pub(crate) fn merging_from(merge_from: usize) -> Self {
        Self { merge_from, ..Self::default() }
    }

    /// Queues an entry, or merges it. Returns the part of the charge that merging saved.
    pub(crate) fn push(&mut self, mut entry: LaneEntry) -> usize {
        if self.entries.len() >= self.merge_from
            && let OutgoingMessage::Delta { key, text, .. } = &entry.message
            && let Some(last) = self.last_of_group(key.group)
            && last.join(key, text)
        {
            // The merged text keeps its charge, the unused entry's is returned.
            let place = ENTRY_BYTES.min(entry.charge);
            last.charge += entry.charge - place;
            last.stamp = entry.stamp;
            return place;
        }
        let number = self.first + self.entries.len() as u64;
        match entry.group() {
            Some(group) => {
                self.last_of.insert(group, number);
            }
            None => self.barrier = number,
        }
        entry.shrink();
        self.entries.push_back(entry);
        0
    }

    pub(crate) fn pop(&mut self) -> Option<LaneEntry> {
        let entry = self.entries.pop_front()?;
        if let Some(group) = entry.group()
            && self.last_of.get(&group) == Some(&self.first)
        {
            self.last_of.remove(&group);
        }
        self.first += 1;
        if self.entries.is_empty() {
            self.entries.shrink_to(KEPT_PLACES);
        }
        Some(entry)
    }

    pub(crate) fn front(&self) -> Option<&LaneEntry> {
        self.entries.front()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn last_of_group(&mut self, group: OrderGroup) -> Option<&mut LaneEntry> {
        let number = *self.last_of.get(&group)?;
        if number < self.barrier {
            return None;
        }
        self.entries.get_mut(usize::try_from(number - self.first).ok()?)
    }
}

impl LaneEntry {
    /// Appends the text, if it is a continuation.
    fn join(&mut self, key: &DeltaKey, more: &str) -> bool {
        let OutgoingMessage::Delta { key: own, text, .. } = &mut self.message else { return false };
        let length = text.len() + more.len();
        if own != key || length > MAX_MERGED_BYTES {
            return false;
        }
        if text.capacity() < length {
            // Grows by a quarter, so that the allocation stays close to the charge.
            text.reserve_exact(more.len().max(text.len() / 4));
        }
        text.push_str(more);
        true
    }

    /// Frees spare capacity of a waiting entry.
    fn shrink(&mut self) {
        match &mut self.message {
            OutgoingMessage::Plain { line, .. } => line.shrink_to_fit(),
            OutgoingMessage::Delta { text, .. } => text.shrink_to_fit(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn plain(group: Option<u64>, text: &str) -> OutgoingMessage {
        OutgoingMessage::Plain { group: group.map(OrderGroup), line: text.into() }
    }

    fn delta(group: u64, stream: &str, text: &str) -> OutgoingMessage {
        let name = stream.to_owned();
        OutgoingMessage::Delta {
            key: DeltaKey { group: OrderGroup(group), stream: stream.into() },
            text: text.to_owned(),
            render: Arc::new(move |text| format!("{name}={text}").into()),
        }
    }

    fn push(lane: &mut Lane, message: OutgoingMessage) -> usize {
        let charge = message.cost();
        lane.push(LaneEntry { message, charge, stamp: 0, answer: false })
    }

    fn check(messages: Vec<OutgoingMessage>, expected: &[&str]) {
        let mut lane = Lane::default();
        for message in messages {
            push(&mut lane, message);
        }
        let lines = std::iter::from_fn(|| lane.pop()).map(LaneEntry::into_line);
        let lines: Vec<String> = lines.map(|line| String::from_utf8(line).unwrap()).collect();
        assert_eq!(lines, expected);
        assert!(lane.last_of.is_empty() && lane.is_empty());
    }

    #[test]
    fn deltas_of_one_stream_become_one() {
        check(
            vec![delta(1, "a", "x"), delta(1, "a", "é"), delta(1, "a", ""), delta(1, "a", "z")],
            &["a=xéz"],
        );
    }

    #[test]
    fn a_reader_that_keeps_up_gets_every_delta() {
        let mut lane = Lane::merging_from(3);
        for text in ["1", "2", "3", "4", "5"] {
            push(&mut lane, delta(1, "a", text));
        }
        let lines: Vec<EncodedLine> = std::iter::from_fn(|| lane.pop()).map(LaneEntry::into_line).collect();
        assert_eq!(lines, [&b"a=1"[..], b"a=2", b"a=345"]);
    }

    #[test]
    fn another_group_between_them_does_not_matter() {
        check(
            vec![
                delta(1, "a", "x"),
                plain(Some(2), "two"),
                delta(2, "b", "1"),
                delta(1, "a", "y"),
                delta(2, "b", "2"),
            ],
            &["a=xy", "two", "b=12"],
        );
    }

    #[test]
    fn a_message_of_the_same_group_keeps_them_apart() {
        check(vec![delta(1, "a", "x"), plain(Some(1), "one"), delta(1, "a", "y")], &["a=x", "one", "a=y"]);
        check(vec![delta(1, "a", "x"), delta(1, "b", "1"), delta(1, "a", "y")], &["a=x", "b=1", "a=y"]);
    }

    #[test]
    fn a_message_without_a_group_keeps_all_apart() {
        check(
            vec![
                delta(1, "a", "x"),
                delta(2, "b", "1"),
                plain(None, "all"),
                delta(2, "b", "2"),
                delta(1, "a", "y"),
            ],
            &["a=x", "b=1", "all", "b=2", "a=y"],
        );
    }

    #[test]
    fn taken_entries_are_not_merged() {
        let mut lane = Lane::default();
        push(&mut lane, delta(1, "a", "x"));
        push(&mut lane, plain(Some(2), "two"));
        assert_eq!(lane.pop().unwrap().into_line(), b"a=x");
        push(&mut lane, delta(1, "a", "y"));
        push(&mut lane, delta(1, "a", "z"));
        assert_eq!(lane.pop().unwrap().into_line(), b"two");
        assert_eq!(lane.pop().unwrap().into_line(), b"a=yz");
    }

    #[test]
    fn a_merged_delta_stays_of_a_readable_size() {
        let mut lane = Lane::default();
        let piece = "x".repeat(1000);
        for _ in 0..100 {
            push(&mut lane, delta(1, "a", &piece));
        }
        let lengths: Vec<usize> =
            std::iter::from_fn(|| lane.pop()).map(|entry| entry.into_line().len() - "a=".len()).collect();
        assert_eq!(lengths, [32_000, 32_000, 32_000, 4_000]);
    }

    #[test]
    fn charges_cover_the_used_memory() {
        let mut lane = Lane::default();
        let mut charged = 0;
        for length in (0..3000).map(|n| n % 37) {
            let message = delta(1, "a", &"x".repeat(length));
            charged += message.cost();
            charged -= push(&mut lane, message);
        }
        assert_eq!(lane.entries.iter().map(|entry| entry.charge).sum::<usize>(), charged);
        for entry in &lane.entries {
            let OutgoingMessage::Delta { text, .. } = &entry.message else { panic!("a delta") };
            assert!(text.capacity() + 2 * size_of::<LaneEntry>() <= entry.charge);
        }
    }
}
