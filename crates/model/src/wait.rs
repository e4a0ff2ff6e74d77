//! The delay that a provider requests.

use jiff::fmt::rfc2822;

/// Finds "try again in 1.5s", "retry in 7m12s" and the like. In milliseconds.
pub fn requested_delay(message: &str) -> Option<u64> {
    let lower = message.to_ascii_lowercase();
    let (_, mut rest) = lower.split_once("try again in ").or_else(|| lower.split_once("retry in "))?;
    let mut total = None;
    loop {
        rest = rest.trim_start();
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let Ok(number) = rest[..digits].trim_end_matches('.').parse::<f64>() else { break };
        let after = rest[digits..].trim_start();
        let letters = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let milliseconds = match &after[..letters] {
            "ms" | "milliseconds" => 1.0,
            "s" | "sec" | "second" | "seconds" => 1_000.0,
            "m" | "min" | "minute" | "minutes" => 60_000.0,
            "h" | "hour" | "hours" => 3_600_000.0,
            _ => break,
        };
        total = Some(total.unwrap_or(0.0) + number * milliseconds);
        rest = &after[letters..];
    }
    total.filter(|total| total.is_finite()).map(|total| total as u64)
}

/// The milliseconds between two HTTP dates; 0 if negative. Both are by the server's clock, so ours does not matter.
pub fn wait_until(date: &str, now: &str) -> Option<u64> {
    let read = |date: &str| rfc2822::parse(date).ok().map(|date| date.timestamp().as_millisecond());
    u64::try_from(read(date)?.saturating_sub(read(now)?).max(0)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_read_from_messages() {
        for (text, expected) in [
            ("Rate limit reached. Please try again in 1.898s.", Some(1_898)),
            ("try again in 250ms", Some(250)),
            ("Try again in 3 seconds", Some(3_000)),
            ("Please try again in 7m12.5s. Need more tokens?", Some(432_500)),
            ("try again in 1h2m", Some(3_720_000)),
            ("Please retry in 29.5s.", Some(29_500)),
            ("try again in a while", None),
            ("try again in 3 days", None),
            ("try again later", None),
        ] {
            assert_eq!(requested_delay(text), expected, "{text}");
        }
    }

    #[test]
    fn dates_are_compared_with_each_other() {
        let now = "Sun, 06 Nov 1994 08:49:37 GMT";
        assert_eq!(wait_until("Sun, 06 Nov 1994 08:50:07 GMT", now), Some(30_000));
        assert_eq!(wait_until("Sun, 06 Nov 1994 08:49:07 GMT", now), Some(0));
        assert_eq!((wait_until("soon", now), wait_until(now, "")), (None, None));
    }
}
