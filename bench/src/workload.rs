//! How much work each measure does.

use serde_json::{Value, json};

/// Sizes after `--scale`; none falls below what the measure needs to mean anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Workload {
    /// Threads started for the memory measure.
    pub(crate) threads: usize,
    /// Turns without tools in a row.
    pub(crate) turns: usize,
    /// Turns with one command in a row.
    pub(crate) execs: usize,
    /// Deltas of the one long stream.
    pub(crate) deltas: usize,
    /// Short threads in the store.
    pub(crate) stored: usize,
    /// Turns of the long stored thread.
    pub(crate) long_turns: usize,
    /// Messages of the model in each of them.
    pub(crate) messages_per_turn: usize,
    /// Threads that stream at once.
    pub(crate) streams: usize,
    /// Deltas of each of them.
    pub(crate) deltas_per_stream: usize,
    /// Output of the command with much output.
    pub(crate) output_bytes: usize,
    /// Bytes sent by a host that does not read or does not acknowledge.
    pub(crate) flood_bytes: usize,
    /// Turns after which a long thread is measured, and the bytes that its history has by then.
    pub(crate) history_turns: usize,
    pub(crate) history_bytes: usize,
    /// Bytes of its history when it is measured again.
    pub(crate) large_history_bytes: usize,
    /// Items of the history that a request is made with.
    pub(crate) prompt_items: usize,
}

impl Workload {
    pub(crate) fn scaled(scale: usize) -> Self {
        let part = |full: usize, least: usize| (full / scale.max(1)).max(least);
        Self {
            threads: part(50, 2),
            turns: part(10, 2),
            execs: part(10, 2),
            deltas: part(20_000, 1),
            stored: part(1_000, 2),
            long_turns: part(20, 2),
            messages_per_turn: part(100, 1),
            streams: part(20, 2),
            deltas_per_stream: part(500, 1),
            output_bytes: part(400_000_000, 1_000_000),
            flood_bytes: part(400_000_000, 20_000_000),
            history_turns: part(300, 4),
            history_bytes: part(540_000, 8_000),
            large_history_bytes: part(2_000_000, 16_000),
            prompt_items: part(2_000, 5),
        }
    }

    /// Short threads and the long one.
    pub(crate) fn stored_in_all(&self) -> usize {
        self.stored + 1
    }

    pub(crate) fn to_json(self) -> Value {
        json!({
            "threads": self.threads, "turns": self.turns, "execs": self.execs, "deltas": self.deltas,
            "stored": self.stored_in_all(),
            "long_turns": self.long_turns, "messages_per_turn": self.messages_per_turn,
            "streams": self.streams, "deltas_per_stream": self.deltas_per_stream,
            "output_bytes": self.output_bytes, "flood_bytes": self.flood_bytes, "prompt_items": self.prompt_items,
            "history_turns": self.history_turns, "history_bytes": self.history_bytes,
            "large_history_bytes": self.large_history_bytes
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_long_thread_has_two_thousand_messages() {
        let full = Workload::scaled(1);
        assert_eq!(full.long_turns * full.messages_per_turn, 2_000);
        assert_eq!((full.deltas, full.stored, full.threads), (20_000, 1_000, 50));
        assert_eq!((full.streams, full.deltas_per_stream), (20, 500));
        assert_eq!((full.turns, full.execs, full.output_bytes), (10, 10, 400_000_000));
        assert_eq!(full.prompt_items, 2_000);
        assert_eq!(
            (full.history_turns, full.history_bytes, full.large_history_bytes),
            (300, 540_000, 2_000_000)
        );
    }

    #[test]
    fn a_smoke_run_still_does_every_kind_of_work() {
        let least = Workload::scaled(1_000_000);
        assert!(
            least.threads > 1 && least.turns > 1 && least.execs > 1 && least.streams > 1 && least.stored > 1
        );
        assert!(least.output_bytes >= 1_000_000);
        assert!(least.deltas > 0 && least.messages_per_turn > 0 && least.deltas_per_stream > 0);
    }
}
