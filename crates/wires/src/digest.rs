//! A running 64-bit FNV-1a hash: equal on every machine and in every release, unlike the standard hasher.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PrefixDigest(u64);

impl PrefixDigest {
    pub(crate) fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self::new().and(bytes)
    }

    #[must_use]
    pub(crate) fn and(self, bytes: &[u8]) -> Self {
        let step = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        Self(bytes.iter().fold(self.0, step))
    }

    pub(crate) fn value(self) -> u64 {
        self.0
    }

    pub(crate) fn hex(self) -> String {
        format!("{:016x}", self.0)
    }
}
