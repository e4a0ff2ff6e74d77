//! Separates a script's output from what a login prints before it, by markers.

use memchr::memmem;
use ring::rand::{SecureRandom, SystemRandom};

use super::DIAGNOSIS_BYTES;

/// A random word that does not occur in output by chance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScriptMarker(String);

impl ScriptMarker {
    pub(crate) fn new() -> Self {
        let mut bytes = [0_u8; 16];
        if SystemRandom::new().fill(&mut bytes).is_err() {
            tracing::warn!("the system gives no randomness");
        }
        Self(format!("oarlock-{}", data_encoding::HEXLOWER.encode(&bytes)))
    }

    /// Alphanumeric: needs no quotes.
    pub(crate) fn word(&self) -> &str {
        &self.0
    }
}

/// The progress of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MarkerState {
    /// The start marker has not come yet.
    Before,
    /// Further bytes are its output.
    Open,
    /// It ended with this code.
    Ended(i32),
}

/// Passes the output between the markers of one script.
#[derive(Debug)]
pub(crate) struct MarkerFilter {
    /// The prefix of every message of the script.
    start: Vec<u8>,
    state: MarkerState,
    /// Bytes that may be the start of a message.
    held: Vec<u8>,
    /// Output before the start marker.
    noise: Vec<u8>,
    /// Its message that it cannot start, with the reason.
    refusal: Option<String>,
}

impl MarkerFilter {
    pub(crate) fn new(marker: &ScriptMarker) -> Self {
        let start = format!("{}:", marker.word()).into_bytes();
        let (held, noise) = (Vec::new(), Vec::new());
        Self { start, state: MarkerState::Before, held, noise, refusal: None }
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.state != MarkerState::Before
    }

    /// `None` until it has ended.
    pub(crate) fn code(&self) -> Option<i32> {
        match self.state {
            MarkerState::Ended(code) => Some(code),
            MarkerState::Before | MarkerState::Open => None,
        }
    }

    pub(crate) fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }

    /// Output of a script that did not start.
    pub(crate) fn noise(&self) -> &[u8] {
        &self.noise
    }

    /// The output in these bytes and in those held back before.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut passed = Vec::new();
        self.held.extend_from_slice(bytes);
        loop {
            match memmem::find(&self.held, &self.start) {
                Some(at) => {
                    self.pass(at, &mut passed);
                    let Some(end) = memchr::memchr(b'\n', &self.held) else { return passed };
                    let message: Vec<u8> = self.held.drain(..=end).collect();
                    self.obey(&message[self.start.len()..end]);
                }
                None => {
                    let keep = self.start.len().min(self.held.len() + 1) - 1;
                    let keep = (0..=keep).rev().find(|keep| self.held.ends_with(&self.start[..*keep]));
                    self.pass(self.held.len() - keep.unwrap_or(0), &mut passed);
                    return passed;
                }
            }
        }
    }

    /// End of the stream: held bytes are output.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        let mut passed = Vec::new();
        self.pass(self.held.len(), &mut passed);
        passed
    }

    fn pass(&mut self, count: usize, passed: &mut Vec<u8>) {
        let bytes = self.held.drain(..count);
        match self.state {
            MarkerState::Before => {
                self.noise.extend(bytes);
                let surplus = self.noise.len().saturating_sub(DIAGNOSIS_BYTES);
                self.noise.drain(..surplus);
            }
            MarkerState::Open => passed.extend(bytes),
            MarkerState::Ended(_) => drop(bytes),
        }
    }

    fn obey(&mut self, message: &[u8]) {
        let message = String::from_utf8_lossy(message);
        match (self.state, message.split_once(' ')) {
            (MarkerState::Before, None) if message == "begin" => self.state = MarkerState::Open,
            (MarkerState::Before, _) => self.refusal = Some(message.into_owned()),
            (MarkerState::Open, Some(("end", code))) => {
                self.state = MarkerState::Ended(code.parse().unwrap_or(-1));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pieces: &[&str], expected: &str, code: Option<i32>) {
        let marker = ScriptMarker::new();
        let whole: Vec<String> = pieces.iter().map(|piece| piece.replace("M", marker.word())).collect();
        // Split at every position.
        let bytes = whole.concat().into_bytes();
        for size in [1, 2, 7, 41, bytes.len().max(1)] {
            let mut gate = MarkerFilter::new(&marker);
            let mut passed: Vec<u8> = bytes.chunks(size).flat_map(|chunk| gate.push(chunk)).collect();
            passed.extend(gate.finish());
            let expected = expected.replace("M", marker.word());
            assert_eq!(String::from_utf8_lossy(&passed), expected, "in pieces of {size}");
            assert_eq!(gate.code(), code);
        }
    }

    #[test]
    fn output_is_the_part_between_the_markers() {
        check(&["M:begin\n", "out", "M:end 3\n"], "out", Some(3));
        check(&["Welcome!\nM:begin\n", "a\nb\n", "M:end 0\nlate"], "a\nb\n", Some(0));
        check(
            &["no newlineM:begin\n", "oarlock-", "oarlock-x M M", "M:end 1\n"],
            "oarlock-oarlock-x M M",
            Some(1),
        );
        check(&["M:begin\n", "cut off M:en"], "cut off M:en", None);
        check(&["never"], "", None);
    }

    #[test]
    fn the_reason_for_a_failed_start_is_limited() {
        let marker = ScriptMarker::new();
        let mut gate = MarkerFilter::new(&marker);
        gate.push(&[b'x'; 10_000]);
        gate.push(b"the last words\n");
        gate.finish();
        assert!(!gate.has_begun() && gate.noise().len() <= DIAGNOSIS_BYTES);
        assert!(gate.noise().ends_with(b"the last words\n"));
        let mut gate = MarkerFilter::new(&marker);
        gate.push(format!("{}:folder\n", marker.word()).as_bytes());
        assert_eq!((gate.refusal(), gate.has_begun()), (Some("folder"), false));
    }
}
