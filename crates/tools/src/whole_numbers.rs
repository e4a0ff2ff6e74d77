//! Whole numbers that a model writes with a zero fraction or an exponent: in JSON they are the same number.

use std::borrow::Cow;

/// Up to here, an `f64` represents every whole number.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// The same JSON with every whole number written in digits. Strings are unchanged.
pub(crate) fn in_digits(json: &str) -> Cow<'_, str> {
    let mut written = String::new();
    // Everything before this index is in `written` already.
    let mut copied = 0;
    let mut places = json.char_indices().peekable();
    while let Some((start, first)) = places.next() {
        if first == '"' {
            // Skips to the end of the string, over escapes.
            while let Some((_, next)) = places.next() {
                match next {
                    '\\' => drop(places.next()),
                    '"' => break,
                    _ => {}
                }
            }
        } else if first == '-' || first.is_ascii_digit() {
            let mut end = start + 1;
            while let Some((at, _)) = places.next_if(|(_, next)| is_of_number(*next)) {
                end = at + 1;
            }
            if let Some(digits) = digits(&json[start..end]) {
                written.push_str(&json[copied..start]);
                written.push_str(&digits);
                copied = end;
            }
        }
    }
    match copied {
        0 => Cow::Borrowed(json),
        _ => Cow::Owned(written + &json[copied..]),
    }
}

fn is_of_number(character: char) -> bool {
    character.is_ascii_digit() || matches!(character, '+' | '-' | '.' | 'e' | 'E')
}

/// `None` for numbers already in digits, and for fractions.
fn digits(number: &str) -> Option<Cow<'_, str>> {
    let digits = if number.contains(['e', 'E']) {
        let value: f64 = number.parse().ok()?;
        let is_whole = value.fract() == 0.0 && value.abs() <= EXACT;
        Cow::Owned(is_whole.then(|| format!("{value:.0}"))?)
    } else {
        let (whole, fraction) = number.split_once('.')?;
        let is_whole = !fraction.is_empty() && fraction.bytes().all(|digit| digit == b'0');
        Cow::Borrowed(is_whole.then_some(whole)?)
    };
    Some(if digits == "-0" { Cow::Borrowed("0") } else { digits })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_written_in_digits() {
        for (given, expected) in [
            ("30000.0", "30000"),
            ("-5.00", "-5"),
            ("-0.0", "0"),
            ("3e4", "30000"),
            ("3.5E+1", "35"),
            ("-2e0", "-2"),
            ("9007199254740993.0", "9007199254740993"),
            (r#"{"a": [1.0, 2.50, {"b": 4.0}], "c": 5}"#, r#"{"a": [1, 2.50, {"b": 4}], "c": 5}"#),
            (r#"{"päth": "ü 1.0", "n": 1.0}"#, r#"{"päth": "ü 1.0", "n": 1}"#),
        ] {
            assert_eq!(in_digits(given), expected, "{given}");
        }
    }

    #[test]
    fn anything_else_stays_as_it_is() {
        for given in [
            "30000.5",
            "0.1",
            "1e-1",
            "1e300",
            "1e999",
            "12",
            "-",
            "1.",
            "1.0.0",
            "1e",
            "",
            r#""1.0""#,
            r#""a \" 1.0""#,
            r#""a \\\" 1.0"#,
            r#"{"1.0": "2.0", "cmd": "sleep 3.0 | tee \"4.0\""}"#,
        ] {
            assert!(matches!(in_digits(given), Cow::Borrowed(same) if same == given), "{given}");
        }
    }
}
