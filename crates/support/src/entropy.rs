//! Randomness for ids.

use std::hash::{BuildHasher, Hasher, RandomState};

use ring::rand::{SecureRandom, SystemRandom};

/// The system's randomness. Without it, which no supported system lacks, ids still differ by a hasher's key. Only for
/// ids: a secret must fail instead.
#[must_use]
pub fn entropy() -> u128 {
    let mut bytes = [0; 16];
    match SystemRandom::new().fill(&mut bytes) {
        Ok(()) => u128::from_ne_bytes(bytes),
        Err(_) => u128::from(RandomState::new().build_hasher().finish()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_is_random() {
        let drawn: Vec<u128> = (0..256).map(|_| entropy()).collect();
        let ever_set = drawn.iter().fold(0, |bits, one| bits | one);
        let always_set = drawn.iter().fold(u128::MAX, |bits, one| bits & one);
        assert_eq!((ever_set, always_set), (u128::MAX, 0));
    }
}
