//! Ids derived from the input's stamp, so that the same inputs give the same ids.

use protocol::ItemId;

/// Time and randomness of one input, which a pure function cannot produce.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Unix milliseconds.
    pub now_ms: i64,
    /// Fresh randomness for ids and jitter.
    pub entropy: u128,
}

/// A generator seeded with one stamp's entropy: two SplitMix64 side by side, so that an id uses all 128 bits.
#[derive(Debug, Clone)]
pub(crate) struct IdGenerator {
    high: u64,
    low: u64,
}

impl IdGenerator {
    pub(crate) fn new(stamp: Stamp) -> Self {
        Self { high: (stamp.entropy >> 64) as u64, low: stamp.entropy as u64 }
    }

    fn next(&mut self) -> (u64, u64) {
        self.high = self.high.wrapping_add(STEP);
        self.low = self.low.wrapping_add(STEP);
        (mix(self.high), mix(self.low))
    }

    /// A random (version 4) UUID.
    pub(crate) fn item(&mut self) -> ItemId {
        let (high, low) = self.next();
        let bits = u128::from(high) << 64 | u128::from(low);
        ItemId::new(uuid::Builder::from_random_bytes(bits.to_be_bytes()).into_uuid().to_string())
    }

    /// Between 0.9 and 1.1.
    pub(crate) fn jitter(&mut self) -> f64 {
        0.9 + 0.2 * ((self.next().1 >> 11) as f64 / (1u64 << 53) as f64)
    }
}

/// The increment of SplitMix64.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finaliser of SplitMix64, which spreads a number over all bits.
fn mix(mut mixed: u64) -> u64 {
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_uuids_and_follow_from_the_entropy() {
        let stamp = Stamp { now_ms: 0, entropy: 7 };
        let (mut one, mut two) = (IdGenerator::new(stamp), IdGenerator::new(stamp));
        let id = one.item();
        assert_eq!(id, two.item());
        assert_ne!(id, one.item());
        // Journals contain these ids, so they must not change.
        assert_eq!(id.as_str(), "e220a839-7b1d-4daf-a3cb-e1e459320dd7");
        let parts: Vec<&str> = id.as_str().split('-').collect();
        assert_eq!(parts.iter().map(|part| part.len()).collect::<Vec<_>>(), [8, 4, 4, 4, 12]);
        assert!(parts[2].starts_with('4') && "89ab".contains(&parts[3][..1]), "{id}");
    }

    #[test]
    fn every_bit_of_the_entropy_counts() {
        let id = |entropy| IdGenerator::new(Stamp { now_ms: 0, entropy }).item();
        let ids: std::collections::BTreeSet<_> = (0..128).map(|bit| id(1 << bit)).chain([id(0)]).collect();
        assert_eq!(ids.len(), 129);
    }

    #[test]
    fn jitter_stays_in_its_band() {
        let mut ids = IdGenerator::new(Stamp { now_ms: 0, entropy: 1 });
        assert!((0..1_000).map(|_| ids.jitter()).all(|jitter| (0.9..=1.1).contains(&jitter)));
    }
}
