//! Ids that the host makes.

use protocol::ThreadId;
use uuid::Builder;

use crate::error::TaskError;

/// A UUID of version 7: those made later sort later. The 74 bits behind the time are the system's randomness.
pub(crate) fn new_uuid(now_ms: i64) -> String {
    let [tail @ .., _, _, _, _, _, _] = support::entropy().to_be_bytes();
    Builder::from_unix_timestamp_millis(u64::try_from(now_ms).unwrap_or(0), &tail).into_uuid().to_string()
}

/// The id in lower case with hyphens, or why it is none.
pub(crate) fn check_thread_id(id: &ThreadId) -> Result<ThreadId, TaskError> {
    journal::check_thread_id(id).map_err(|error| TaskError::InvalidThreadId(error.to_string()))
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    /// The bits of a version 7 UUID that are neither time nor version nor variant.
    const RANDOM_BITS: u128 = 0x0fff_3fff_ffff_ffff_ffff;

    #[test]
    fn ids_differ_in_all_their_random_bits() {
        let ids: Vec<u128> = (0..1_000)
            .map(|_| Uuid::parse_str(&new_uuid(1_700_000_000_000)).expect("a uuid").as_u128())
            .collect();
        let ever_set = ids.iter().fold(0, |bits, id| bits | id);
        let always_set = ids.iter().fold(u128::MAX, |bits, id| bits & id);
        assert_eq!((ever_set & RANDOM_BITS, always_set & RANDOM_BITS), (RANDOM_BITS, 0));
    }
}
