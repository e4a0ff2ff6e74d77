//! Ids of threads and turns: made so that they sort by time, and read the way the reference reads them.

use parking_lot::Mutex;

use engine::Stamp;
use protocol::{ThreadId, TurnId};
use uuid::fmt::{Hyphenated, Simple};
use uuid::{Builder, Uuid};

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

    /// For something a client watches.
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
        // The counter is what follows the time; the rest is random.
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

pub fn is_uuid(text: &str) -> bool {
    check_thread_id(&ThreadId::new(text)).is_ok()
}

/// A text that is no id of a thread, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid thread id: {0}")]
pub struct InvalidThreadId(String);

/// The id in lower case with hyphens, or why it is none.
pub fn check_thread_id(id: &ThreadId) -> Result<ThreadId, InvalidThreadId> {
    let text = id.as_str();
    let text = text.strip_prefix("urn:uuid:").unwrap_or(text);
    // Braces are refused, as is a second prefix: texts with these have other lengths.
    let is_plain = matches!(text.len(), Simple::LENGTH | Hyphenated::LENGTH);
    match Uuid::try_parse(text).ok().filter(|_| is_plain) {
        Some(uuid) => Ok(ThreadId::new(uuid.to_string())),
        None => Err(InvalidThreadId(explain(text))),
    }
}

/// The words of the reference. Those of the library differ from release to release.
fn explain(text: &str) -> String {
    let is_allowed = |c: char| c.is_ascii_hexdigit() || c == '-';
    if let Some((at, found)) = text.char_indices().find(|(_, c)| !is_allowed(*c)) {
        return format!(
            "invalid character: expected an optional prefix of `urn:uuid:` followed by [0-9a-fA-F-], \
             found `{found}` at {}",
            at + 1
        );
    }
    let groups: Vec<usize> = text.split('-').map(str::len).collect();
    match groups.as_slice() {
        [length] => format!("invalid length: expected length 32 for simple format, found {length}"),
        groups if groups.len() != 5 => format!("invalid group count: expected 5, found {}", groups.len()),
        groups => {
            let wrong = groups.iter().zip([8, 4, 4, 4, 12]).position(|(found, expected)| *found != expected);
            let at = wrong.unwrap_or(0);
            let expected = [8, 4, 4, 4, 12][at];
            format!("invalid group length in group {at}: expected {expected}, found {}", groups[at])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_made_one_after_another_sort_that_way() {
        let maker = IdMaker::default();
        let ids: Vec<ThreadId> =
            (0..10_000).map(|n| maker.thread(Stamp { now_ms: 1_700_000_000_000, entropy: n })).collect();
        assert!(ids.windows(2).all(|pair| pair[0].as_str() < pair[1].as_str()));
        assert!(ids.iter().all(|id| check_thread_id(id).is_ok_and(|checked| checked == *id)));
    }

    #[test]
    fn ids_follow_from_the_stamp_alone() {
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

    #[test]
    fn bad_ids_say_what_is_wrong_with_them() {
        let cases = [
            ("bad", "invalid length: expected length 32 for simple format, found 3"),
            ("not-a-uuid", "found `n` at 1"),
            ("0-1", "expected 5, found 2"),
            ("00000000-0000-7000-8000-00000000000", "group 4: expected 12, found 11"),
            ("", "found 0"),
            ("{00000000-0000-7000-8000-000000000000}", "found `{` at 1"),
            ("urn:uuid:urn:uuid:00000000-0000-7000-8000-000000000000", "found `u` at 1"),
            ("00000000-0000-7000-8000-0000000000000", "group 4: expected 12, found 13"),
            ("0000000-00000-7000-8000-000000000000", "group 0: expected 8, found 7"),
        ];
        for (id, expected) in cases {
            let error = check_thread_id(&ThreadId::new(id)).map(|_| ()).map_err(|error| error.to_string());
            assert!(error.as_ref().is_err_and(|text| text.contains(expected)), "{id}: {error:?}");
        }
    }

    #[test]
    fn other_spellings_of_one_id_are_one_id() {
        let plain = "0198f0a0-0000-7000-8000-00000000abcd";
        for id in [
            "0198F0A0-0000-7000-8000-00000000ABCD",
            "0198f0a000007000800000000000abcd",
            "urn:uuid:0198f0a0-0000-7000-8000-00000000abcd",
        ] {
            assert_eq!(
                check_thread_id(&ThreadId::new(id)).map_err(|e| e.to_string()),
                Ok(ThreadId::new(plain))
            );
        }
    }
}
