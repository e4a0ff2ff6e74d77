//! Digests: of what is decided about, for hosts and the record, and of texts, to tell whether they are still the same.

use std::hash::{Hash, Hasher};

use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// SHA-256 with its name before it. The same for the same JSON, however its keys are ordered.
pub fn digest_of(value: &Value) -> String {
    let mut sorted = value.clone();
    sorted.sort_all_objects();
    let bytes = digest(&SHA256, sorted.to_string().as_bytes());
    let hex: String = bytes.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

/// FNV-1a, which is the same in every release. Two texts with one digest would cost a reminder, not a mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Digest(u64);

impl Digest {
    pub(crate) fn of<T: Hash + ?Sized>(value: &T) -> Self {
        let mut hasher = Fnv(0xcbf2_9ce4_8422_2325);
        value.hash(&mut hasher);
        // Not more than JSON numbers hold everywhere.
        Self(hasher.finish() >> 12)
    }
}

struct Fnv(u64);

impl Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_order_of_keys_does_not_count_and_values_do() {
        let one: Value = serde_json::from_str(r#"{"a": {"x": 1, "y": 2}, "b": []}"#).expect("JSON");
        let same: Value = serde_json::from_str(r#"{"b": [], "a": {"y": 2, "x": 1}}"#).expect("JSON");
        assert_eq!(digest_of(&one), digest_of(&same));
        assert_ne!(digest_of(&one), digest_of(&json!({"a": {"x": 1, "y": 3}, "b": []})));
        assert_eq!(
            digest_of(&json!({})),
            "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
        );
    }
}
