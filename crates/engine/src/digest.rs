//! Short digests of texts, to see whether they are still the same. What hosts compare is in `canonical.rs`.

use std::hash::{Hash, Hasher};

use serde::{Deserialize, Serialize};

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
