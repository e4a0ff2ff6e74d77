//! Ids of threads and turns, which sort by time.

use parking_lot::Mutex;

use engine::Stamp;
use protocol::{ThreadId, TurnId};
use uuid::Builder;

/// Makes time-ordered (version 7) UUIDs. Within one millisecond a counter keeps the order.
#[derive(Debug, Default)]
pub struct IdMaker {
    last: Mutex<(u64, u16)>,
}

impl IdMaker {
    pub fn thread(&self, stamp: Stamp) -> ThreadId {
        ThreadId::new(self.uuid(stamp))
    }

    pub fn turn(&self, stamp: Stamp) -> TurnId {
        TurnId::new(self.uuid(stamp))
    }

    /// An id for something a client watches.
    pub fn watch(&self, stamp: Stamp) -> String {
        self.uuid(stamp)
    }

    /// A version 4 UUID, for what needs no order.
    pub fn random(stamp: Stamp) -> String {
        let (high, low) = (mix((stamp.entropy >> 64) as u64), mix(stamp.entropy as u64));
        let bits = u128::from(high) << 64 | u128::from(low);
        Builder::from_random_bytes(bits.to_be_bytes()).into_uuid().to_string()
    }

    fn uuid(&self, stamp: Stamp) -> String {
        const LAST_COUNT: u16 = 0xfff;
        let now = u64::try_from(stamp.now_ms).unwrap_or(0);
        let (time, count) = {
            let mut last = self.last.lock();
            *last = match *last {
                (time, _) if time < now => (now, 0),
                (time, LAST_COUNT) => (time + 1, 0),
                (time, count) => (time, count + 1),
            };
            *last
        };
        // The counter follows the time; the rest is random.
        let mut tail = [0; 10];
        tail[..2].copy_from_slice(&count.to_be_bytes());
        tail[2..].copy_from_slice(&mix(stamp.entropy as u64).to_be_bytes());
        Builder::from_unix_timestamp_millis(time, &tail).into_uuid().to_string()
    }
}

/// Spreads entropy over all bits (the finaliser of SplitMix64).
fn mix(entropy: u64) -> u64 {
    let mut mixed = entropy.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use journal::check_thread_id;

    use super::*;

    #[test]
    fn ids_sort_in_the_order_they_were_made() {
        let maker = IdMaker::default();
        let ids: Vec<ThreadId> =
            (0..10_000).map(|n| maker.thread(Stamp { now_ms: 1_700_000_000_000, entropy: n })).collect();
        assert!(ids.windows(2).all(|pair| pair[0].as_str() < pair[1].as_str()));
        assert!(ids.iter().all(|id| check_thread_id(id).is_ok_and(|checked| checked == *id)));
    }

    #[test]
    fn ids_depend_on_the_stamp_alone() {
        let stamp = Stamp { now_ms: 1_700_000_000_000, entropy: 7 << 64 | 9 };
        let maker = IdMaker::default();
        assert_eq!(maker.thread(stamp).as_str(), "018bcfe5-6800-7000-aeaf-52febe706064");
        assert_eq!(maker.turn(stamp).as_str(), "018bcfe5-6800-7001-aeaf-52febe706064");
        assert_eq!(IdMaker::random(stamp), "63cbe1e4-5932-4dd7-aeaf-52febe706064");
    }

    #[test]
    fn a_clock_that_goes_back_does_not_reorder() {
        let maker = IdMaker::default();
        let late = maker.turn(Stamp { now_ms: 2_000, entropy: 1 });
        let early = maker.turn(Stamp { now_ms: 1_000, entropy: 2 });
        assert!(late.as_str() < early.as_str(), "{late} {early}");
    }
}
