//! The two lanes of a connection as plain data: which entry leaves next, and the bytes of all.

use std::collections::VecDeque;

use crate::encode::EncodedLine;
use crate::lane::{Lane, LaneEntry};
use crate::message::{ENTRY_BYTES, OutgoingMessage};

/// Limit of consecutive control responses while an older message waits.
const CONTROL_STREAK: u32 = 32;

/// The lane of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReplyLane {
    /// Behind all queued entries.
    Ordered,
    /// Ahead of all queued entries.
    Control,
}

/// Bytes that are queued or being written.
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

/// From this many queued messages on, deltas are merged.
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
    /// Queues a charged message. Returns the part of the charge that merging saved.
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

    /// Takes about `max_bytes` of the next entries, at least one if there is any. They still count as held.
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

    /// Subtracts the bytes of written entries.
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

    /// Control responses first, but older messages get their turn. A newer message never passes a response: the
    /// response to a request comes before the messages that the request causes.
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
    fn control_responses_pass_queued_messages() {
        let mut lanes = OutboxLanes::default();
        lanes.message("m");
        lanes.answers(1, ReplyLane::Ordered);
        lanes.message("n");
        lanes.answers(2, ReplyLane::Control);
        assert_eq!(lanes.all(), "AAmAn");
        assert_eq!(lanes.all(), "");
    }

    #[test]
    fn an_older_message_gets_a_turn_after_32_responses() {
        let mut lanes = OutboxLanes::default();
        lanes.message("m");
        lanes.message("n");
        lanes.answers(100, ReplyLane::Control);
        let streak = "A".repeat(32);
        assert_eq!(lanes.all(), format!("{streak}m{streak}n{}", "A".repeat(36)));
    }

    #[test]
    fn a_newer_message_gets_none() {
        let mut lanes = OutboxLanes::default();
        lanes.answers(100, ReplyLane::Control);
        lanes.message("m");
        lanes.answers(40, ReplyLane::Control);
        assert_eq!(lanes.all(), format!("{}m{}", "A".repeat(132), "A".repeat(8)));
    }

    #[test]
    fn taken_bytes_are_held_until_they_are_settled() {
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
