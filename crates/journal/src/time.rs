//! Times on lines, in paths and in cursors: RFC 3339, UTC, milliseconds. There is no clock here.
//!
//! Uses `jiff`'s `DateTime` and not its `Timestamp`, whose range ends two days before the year 9999 does.

use std::ops::Range;

use jiff::SignedDuration;
use jiff::civil::{Date, DateTime, Time, datetime};

const EPOCH: DateTime = datetime(1970, 1, 1, 0, 0, 0, 0);
/// The first time with a year of four digits. The last one is `DateTime::MAX`.
const EARLIEST: DateTime = datetime(0, 1, 1, 0, 0, 0, 0);

/// `2026-11-15T20:09:51.123Z`. A time outside the years of four digits becomes the nearest one inside.
pub(crate) fn format_ms(at_ms: i64) -> String {
    format!("{:.3}Z", utc(at_ms))
}

/// Parses the output of [`format_ms`], and times of whole seconds. Other forms are refused.
pub(crate) fn parse_ms(text: &str) -> Option<i64> {
    let bytes = text.strip_suffix('Z')?.as_bytes();
    let has_marks = |marks: &[(usize, u8)]| marks.iter().all(|&(at, mark)| bytes.get(at) == Some(&mark));
    let is_shape = match bytes.len() {
        19 => true,
        23 => has_marks(&[(19, b'.')]),
        _ => false,
    };
    // A 60th second is a valid time elsewhere.
    if !is_shape
        || !has_marks(&[(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')])
        || bytes[17] > b'5'
    {
        return None;
    }
    // By hand: a thread has thousands of lines, and a general parser takes as long as decoding a short one.
    let number = |range: Range<usize>| {
        bytes[range].iter().try_fold(0_i16, |number, byte| match byte {
            b'0'..=b'9' => Some(number * 10 + i16::from(byte - b'0')),
            _ => None,
        })
    };
    let part = |at: usize| number(at..at + 2).and_then(|part| i8::try_from(part).ok());
    let date = Date::new(number(0..4)?, part(5)?, part(8)?).ok()?;
    let milliseconds = if bytes.len() == 23 { number(20..23)? } else { 0 };
    let time = Time::new(part(11)?, part(14)?, part(17)?, i32::from(milliseconds) * 1_000_000).ok()?;
    i64::try_from(date.to_datetime(time).duration_since(EPOCH).as_millis()).ok()
}

/// Year, month and day in UTC.
pub(crate) fn utc_date(at_ms: i64) -> (i16, i8, i8) {
    let at = utc(at_ms);
    (at.year(), at.month(), at.day())
}

fn utc(at_ms: i64) -> DateTime {
    EPOCH.saturating_add(SignedDuration::from_millis(at_ms)).max(EARLIEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_times() {
        for (at_ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (951_826_154_007, "2000-02-29T12:09:14.007Z"),
            (1_794_773_391_123, "2026-11-15T20:09:51.123Z"),
            (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
            (253_402_300_800_000, "9999-12-31T23:59:59.999Z"),
            (-62_167_219_200_000, "0000-01-01T00:00:00.000Z"),
            (-62_167_219_200_001, "0000-01-01T00:00:00.000Z"),
            (i64::MAX, "9999-12-31T23:59:59.999Z"),
            (i64::MIN, "0000-01-01T00:00:00.000Z"),
        ] {
            assert_eq!(format_ms(at_ms), text);
        }
    }

    #[test]
    fn every_day_of_a_thousand_years_comes_back() {
        for day in -100_000..300_000 {
            let at_ms = day * 86_400_000 + 12_345;
            assert_eq!(parse_ms(&format_ms(at_ms)), Some(at_ms));
        }
    }

    #[test]
    fn every_date_that_exists_is_one_and_no_other() {
        for year in [0, 1, 4, 100, 1900, 1999, 2000, 2024, 2026, 2100, 9999] {
            let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            for (month, day) in (0..=13).flat_map(|month| (0..=32).map(move |day| (month, day))) {
                let read = parse_ms(&format!("{year:04}-{month:02}-{day:02}T23:59:59.999Z"));
                let days = match month {
                    2 => 28 + i8::from(is_leap),
                    4 | 6 | 9 | 11 => 30,
                    1..=12 => 31,
                    _ => 0,
                };
                assert_eq!(read.is_some(), (1..=days).contains(&day), "{year}-{month}-{day}");
                assert!(read.is_none_or(|at_ms| utc_date(at_ms) == (year, month, day)));
            }
        }
    }

    #[test]
    fn other_texts_are_no_times() {
        for text in [
            "",
            "Z",
            "2026-02-30T00:00:00Z",
            "2026-02-03T24:00:00Z",
            "2026-02-03T00:60:00Z",
            "2026-02-03T23:59:60Z",
            "2026-02-03T23:59:60.000Z",
            "2026-02-03 00:00:00Z",
            "2026-02-03t00:00:00z",
            "2026-02-03T00:00:00.12Z",
            "2026-02-03T00:00:00.1234Z",
            "+026-02-03T00:00:00.123Z",
            "2026-02-03T00:00:00,123Z",
            "2026-02-03T00:00:00+00Z",
            "2026-02-03T00:00:00.1 3Z",
            "20260203T000000.1234567Z",
            "２026-02-03T00:00:0Z",
        ] {
            assert_eq!(parse_ms(text), None, "{text}");
        }
        assert_eq!(parse_ms("1970-01-01T00:00:01Z"), Some(1_000));
    }
}
