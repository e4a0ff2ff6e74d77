//! Times on lines, in paths and in cursors: RFC 3339, UTC, milliseconds. There is no clock here.

const MS_PER_DAY: i64 = 86_400_000;
/// 0000-01-01 and the last millisecond of 9999: what four digits of a year can say.
const EARLIEST_MS: i64 = -62_167_219_200_000;
const LATEST_MS: i64 = 253_402_300_799_999;

/// `2026-11-15T20:09:51.123Z`. What four digits of a year cannot say becomes the nearest time they can.
pub(crate) fn format_ms(at_ms: i64) -> String {
    let at_ms = at_ms.clamp(EARLIEST_MS, LATEST_MS);
    let (year, month, day) = utc_date(at_ms);
    let of_day = at_ms.rem_euclid(MS_PER_DAY);
    let (hour, minute) = (of_day / 3_600_000, of_day / 60_000 % 60);
    let (second, ms) = (of_day / 1_000 % 60, of_day % 1_000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

/// Reads what [`format_ms`] writes, and times of whole seconds.
pub(crate) fn parse_ms(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    let punctuation = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    if !matches!(bytes.len(), 20 | 24) || bytes[bytes.len() - 1] != b'Z' {
        return None;
    }
    if punctuation.iter().any(|&(at, mark)| bytes[at] != mark) {
        return None;
    }
    let ms = match bytes.len() {
        24 if bytes[19] == b'.' => digits(&bytes[20..23])?,
        24 => return None,
        _ => 0,
    };
    let (year, month, day) = (digits(&bytes[..4])?, digits(&bytes[5..7])?, digits(&bytes[8..10])?);
    let (hour, minute, second) = (digits(&bytes[11..13])?, digits(&bytes[14..16])?, digits(&bytes[17..19])?);
    let is_day = (1..=12).contains(&month) && (1..=days_of(year, month)).contains(&day);
    let is_time = is_day && hour < 24 && minute < 60 && second < 60;
    let of_day = hour * 3_600_000 + minute * 60_000 + second * 1_000 + ms;
    is_time.then(|| days_from_civil(year, month, day) * MS_PER_DAY + of_day)
}

fn digits(bytes: &[u8]) -> Option<i64> {
    let next = |number, byte: &u8| byte.is_ascii_digit().then(|| number * 10 + i64::from(byte - b'0'));
    bytes.iter().try_fold(0, next)
}

fn days_of(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Year, month and day in UTC.
pub(crate) fn utc_date(at_ms: i64) -> (i64, i64, i64) {
    // The civil calendar counted from 0000-03-01, so that the leap day is the last of its year.
    let days = at_ms.clamp(EARLIEST_MS, LATEST_MS).div_euclid(MS_PER_DAY) + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let of_year = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year - 719_468
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
            (i64::MAX, "9999-12-31T23:59:59.999Z"),
            (i64::MIN, "0000-01-01T00:00:00.000Z"),
        ] {
            assert_eq!(format_ms(at_ms), text);
        }
    }

    #[test]
    fn every_day_of_a_thousand_years_comes_back() {
        for day in -100_000..300_000 {
            let at_ms = day * MS_PER_DAY + 12_345;
            assert_eq!(parse_ms(&format_ms(at_ms)), Some(at_ms));
        }
    }

    #[test]
    fn every_date_that_exists_is_one_and_no_other() {
        for year in [0, 1, 4, 100, 1900, 1999, 2000, 2024, 2026, 2100, 9999] {
            for (month, day) in (0..=13).flat_map(|month| (0..=32).map(move |day| (month, day))) {
                let read = parse_ms(&format!("{year:04}-{month:02}-{day:02}T23:59:59.999Z"));
                // A 31st of February would come back as another day.
                let exists = utc_date(days_from_civil(year, month, day) * MS_PER_DAY) == (year, month, day);
                assert_eq!(read.is_some(), exists, "{year}-{month}-{day}");
                assert!(read.is_none_or(|at_ms| utc_date(at_ms) == (year, month, day)));
            }
        }
    }

    #[test]
    fn what_is_not_a_time() {
        for text in [
            "",
            "2026-02-30T00:00:00Z",
            "2026-02-03T24:00:00Z",
            "2026-02-03 00:00:00Z",
            "2026-02-03T00:00:00.12Z",
            "2026-02-03T00:00:00.1234Z",
            "+026-02-03T00:00:00.123Z",
            "2026-02-03T00:00:00,123Z",
            "２026-02-03T00:00:0Z",
        ] {
            assert_eq!(parse_ms(text), None, "{text}");
        }
        assert_eq!(parse_ms("1970-01-01T00:00:01Z"), Some(1_000));
    }
}
