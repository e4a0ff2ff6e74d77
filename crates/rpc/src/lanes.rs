//! The two lanes of a connection as plain data: what leaves next, and what all of it holds.

use std::collections::VecDeque;

use crate::encode::EncodedLine;
use crate::lane::{Lane, LaneEntry};
use crate::message::{ENTRY_BYTES, OutgoingMessage};

/// Answers of the control lane that may leave in a row while an older message waits.
const CONTROL_STREAK: u32 = 32;

/// Which way an answer leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReplyLane {
    /// Behind everything that waits.
    Ordered,
    /// Before everything that waits.
    Control,
}

/// Bytes that wait or are being written.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HeldBytes {
    pub(crate) messages: usize,
    pub(crate) answers: usize,
}

impl HeldBytes {
    pub(crate) fn add(&mut self, entry: &LaneEntry) {
        if entry.answer {
            self.answers += entry.charge;
        } else {
            self.messages += entry.charge;
        }
    }

    fn subtract(&mut self, written: HeldBytes) {
        self.messages -= written.messages;
        self.answers -= written.answers;
    }
}

/// Deltas are merged once so many messages wait.
const MERGE_FROM: usize = 16;

#[derive(Debug)]
pub(crate) struct OutboxLanes {
    ordered: Lane,
    control: VecDeque<LaneEntry>,
    control_streak: u32,
    last_stamp: u64,
    held: HeldBytes,
}

impl Default for OutboxLanes {
    fn default() -> Self {
        Self {
            ordered: Lane::merging_from(MERGE_FROM),
            control: VecDeque::new(),
            control_streak: 0,
            last_stamp: 0,
            held: HeldBytes::default(),
        }
    }
}

impl OutboxLanes {
    /// Queues a message that was charged for. Gives back what it was charged too much.
    pub(crate) fn push_message(&mut self, message: OutgoingMessage, charge: usize) -> usize {
        let entry = LaneEntry { message, charge, stamp: self.stamp(), answer: false };
        self.held.add(&entry);
        let change = self.ordered.push(entry);
        self.held.messages -= change;
        change
    }

    pub(crate) fn push_answer(&mut self, mut line: EncodedLine, way: ReplyLane) {
        line.shrink_to_fit();
        let charge = ENTRY_BYTES + line.len();
        let message = OutgoingMessage::Plain { group: None, line };
        let entry = LaneEntry { message, charge, stamp: self.stamp(), answer: true };
        self.held.add(&entry);
        match way {
            ReplyLane::Control => self.control.push_back(entry),
            ReplyLane::Ordered => {
                self.ordered.push(entry);
            }
        }
    }

    /// Up to about `max_bytes` of what leaves next, at least one entry if there is any. They stay held.
    pub(crate) fn take(&mut self, max_bytes: usize) -> Vec<LaneEntry> {
        let mut entries = Vec::new();
        let mut bytes = 0;
        while bytes < max_bytes
            && let Some(entry) = self.pop()
        {
            bytes += entry.charge;
            entries.push(entry);
        }
        entries
    }

    /// Subtracts the bytes of entries that are written.
    pub(crate) fn settle(&mut self, written: HeldBytes) {
        self.held.subtract(written);
    }

    pub(crate) fn held(&self) -> HeldBytes {
        self.held
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.control.is_empty() && self.ordered.is_empty()
    }

    fn stamp(&mut self) -> u64 {
        self.last_stamp += 1;
        self.last_stamp
    }

    /// Control first, but what is older gets its turn. What is younger never passes an answer: the answer to a
    /// request leaves before the messages about what the request began.
    fn pop(&mut self) -> Option<LaneEntry> {
        let older_waits = match (self.control.front(), self.ordered.front()) {
            (Some(answer), Some(message)) => message.stamp < answer.stamp,
            (_, None) => false,
            (None, Some(_)) => true,
        };
        if older_waits && (self.control.is_empty() || self.control_streak == CONTROL_STREAK) {
            self.control_streak = 0;
            return self.ordered.pop();
        }
        self.control_streak = if older_waits { self.control_streak + 1 } else { 0 };
        self.control.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::OrderGroup;

    impl OutboxLanes {
        fn message(&mut self, text: &str) {
            let message = OutgoingMessage::Plain { group: Some(OrderGroup(1)), line: text.into() };
            let charge = message.cost();
            self.push_message(message, charge);
        }

        fn answers(&mut self, number: usize, way: ReplyLane) {
            for _ in 0..number {
                self.push_answer(b"A".to_vec(), way);
            }
        }

        /// Everything, in the order in which it leaves.
        fn all(&mut self) -> String {
            let entries = self.take(usize::MAX).into_iter();
            String::from_utf8(entries.flat_map(LaneEntry::into_line).collect()).unwrap()
        }
    }

    #[test]
    fn control_goes_before_what_waits() {
        let mut lanes = OutboxLanes::default();
        lanes.message("m");
        lanes.answers(1, ReplyLane::Ordered);
        lanes.message("n");
        lanes.answers(2, ReplyLane::Control);
        assert_eq!(lanes.all(), "AAmAn");
        assert_eq!(lanes.all(), "");
    }

    #[test]
    fn what_is_older_gets_a_turn_after_32_answers() {
        let mut lanes = OutboxLanes::default();
        lanes.message("m");
        lanes.message("n");
        lanes.answers(100, ReplyLane::Control);
        let streak = "A".repeat(32);
        assert_eq!(lanes.all(), format!("{streak}m{streak}n{}", "A".repeat(36)));
    }

    #[test]
    fn what_is_younger_gets_none() {
        let mut lanes = OutboxLanes::default();
        lanes.answers(100, ReplyLane::Control);
        lanes.message("m");
        lanes.answers(40, ReplyLane::Control);
        assert_eq!(lanes.all(), format!("{}m{}", "A".repeat(132), "A".repeat(8)));
    }

    #[test]
    fn what_is_taken_stays_held_until_it_is_settled() {
        let mut lanes = OutboxLanes::default();
        lanes.message("m");
        lanes.answers(1, ReplyLane::Control);
        let held = HeldBytes { messages: ENTRY_BYTES + 1, answers: ENTRY_BYTES + 1 };
        assert_eq!(lanes.held(), held);
        assert_eq!(lanes.take(1).len(), 1);
        assert_eq!(lanes.take(1).len(), 1);
        assert_eq!(lanes.held(), held);
        lanes.settle(held);
        assert_eq!(lanes.held(), HeldBytes::default());
    }
}
