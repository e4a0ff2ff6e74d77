//! Short digests that detect changed texts. Digests that hosts compare are in `canonical.rs`.

use std::hash::{Hash, Hasher};

use serde::{Deserialize, Serialize};

/// FNV-1a, which is stable across releases. A collision costs a missed update, no error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Digest(u64);

impl Digest {
    pub(crate) fn of<T: Hash + ?Sized>(value: &T) -> Self {
        let mut hasher = Fnv(0xcbf2_9ce4_8422_2325);
        value.hash(&mut hasher);
        // 53 bits, which every JSON implementation can represent.
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
