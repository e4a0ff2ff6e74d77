//! Watches the text deltas of running turns: counts them and checks that the text is the model's, byte for byte.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, ensure};
use memchr::memmem::Finder;

use crate::scan::StringField;

/// The text of a flood so far. A server may merge deltas, so texts are compared, not counts.
#[derive(Debug)]
pub(crate) struct Flood {
    method: Finder<'static>,
    thread_id: StringField,
    delta: StringField,
    expected: Arc<str>,
    /// Bytes that have arrived for each thread, as far as they were right.
    arrived: HashMap<Vec<u8>, usize>,
    /// The first wrong delta, said in words.
    wrong: Option<String>,
    last_at: Option<Instant>,
    notifications: usize,
}

impl Flood {
    /// Every one of these threads is to receive exactly this text.
    pub(crate) fn new<'id>(expected: Arc<str>, threads: impl IntoIterator<Item = &'id str>) -> Self {
        Self {
            method: Finder::new("\"item/agentMessage/delta\"").into_owned(),
            thread_id: StringField::new("threadId"),
            delta: StringField::new("delta"),
            expected,
            arrived: threads.into_iter().map(|id| (id.as_bytes().to_vec(), 0)).collect(),
            wrong: None,
            last_at: None,
            notifications: 0,
        }
    }

    /// Takes the line in if it is a text delta.
    pub(crate) fn take(&mut self, at: Instant, line: &[u8]) -> bool {
        if self.method.find(line).is_none() {
            return false;
        }
        self.notifications += 1;
        self.last_at = Some(at);
        if self.wrong.is_none() {
            self.wrong = self.check(line).err().map(|error| error.to_string());
        }
        true
    }

    fn check(&mut self, line: &[u8]) -> Result<()> {
        let (Some(thread), Some(delta)) = (self.thread_id.find(line), self.delta.find(line)) else {
            anyhow::bail!("a delta without threadId or text: {}", String::from_utf8_lossy(line));
        };
        let Some(arrived) = self.arrived.get_mut(&*thread) else {
            anyhow::bail!("a delta for another thread: {}", String::from_utf8_lossy(&thread));
        };
        let missing = &self.expected.as_bytes()[*arrived..];
        ensure!(
            missing.starts_with(&delta),
            "wrong text at byte {arrived}: {:?}",
            String::from_utf8_lossy(&delta)
        );
        *arrived += delta.len();
        Ok(())
    }

    /// When the last delta arrived, if all the text did and nothing else.
    pub(crate) fn complete(&self) -> Result<Instant> {
        if let Some(wrong) = &self.wrong {
            anyhow::bail!("{wrong}");
        }
        let total = self.expected.len();
        for arrived in self.arrived.values() {
            ensure!(*arrived == total, "{arrived} of {total} text bytes arrived");
        }
        self.last_at.ok_or_else(|| anyhow::anyhow!("no delta arrived"))
    }

    pub(crate) fn notifications(&self) -> usize {
        self.notifications
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(thread: &str, delta: &str) -> Vec<u8> {
        let params = serde_json::json!({"threadId": thread, "turnId": "t", "itemId": "i", "delta": delta});
        serde_json::json!({"method": "item/agentMessage/delta", "params": params}).to_string().into_bytes()
    }

    fn after(deltas: &[(&str, &str)]) -> Result<usize, String> {
        let mut flood = Flood::new("one two \"three\"".into(), ["a", "b"]);
        for (thread, delta) in deltas {
            assert!(flood.take(Instant::now(), &line(thread, delta)));
        }
        flood.complete().map(|_| flood.notifications()).map_err(|error| error.to_string())
    }

    #[test]
    fn merged_deltas_are_as_good_as_single_ones() {
        let single =
            [("a", "one "), ("b", "one two "), ("a", "two "), ("b", "\"three\""), ("a", "\"three\"")];
        assert_eq!(after(&single), Ok(5));
        assert_eq!(after(&[("a", "one two \"three\""), ("b", "one two \"three\"")]), Ok(2));
    }

    #[test]
    fn a_lost_a_changed_a_doubled_and_a_stray_delta_are_noticed() {
        let whole = ("b", "one two \"three\"");
        assert_eq!(after(&[whole, ("a", "one two ")]), Err("8 of 15 text bytes arrived".into()));
        assert_eq!(after(&[whole, ("a", "two ")]), Err("wrong text at byte 0: \"two \"".into()));
        assert_eq!(after(&[whole, ("b", "x")]), Err("wrong text at byte 15: \"x\"".into()));
        assert_eq!(after(&[("c", "one ")]), Err("a delta for another thread: c".into()));
    }

    #[test]
    fn other_lines_are_left_alone() {
        let mut flood = Flood::new("x".into(), ["a"]);
        let completed = br#"{"method":"turn/completed","params":{"note":"\"item/agentMessage/delta\""}}"#;
        assert!(!flood.take(Instant::now(), completed));
        assert!(flood.complete().is_err());
    }
}
