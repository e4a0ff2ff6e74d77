//! A fast scan of a message for problems that the JSON parser ignores in text it does not decode: nesting too deep for
//! a later decoder, and invalid surrogate escapes.

use memchr::memchr2;

/// Limit of nested objects and arrays in one message, including its own object. A payload has one level less, which is
/// what `serde_json` accepts.
pub const MAX_DEPTH: usize = 128;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScanFlaw {
    TooDeep,
    LoneSurrogate,
}

/// Checks strings and brackets only: the parser validates the rest.
pub(crate) fn check(text: &[u8]) -> Result<(), ScanFlaw> {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        at += 1;
        match byte {
            b'{' | b'[' => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return Err(ScanFlaw::TooDeep);
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => at = string_end(text, at, surrogate)?.unwrap_or(text.len()),
            _ => {}
        }
    }
    Ok(())
}

/// The index after the closing quote of the string whose first character is at `from`, or `None` without one. `escape`
/// gets each `\` and returns the length of the escape.
fn string_end<E>(
    text: &[u8],
    mut from: usize,
    escape: impl Fn(&[u8]) -> Result<usize, E>,
) -> Result<Option<usize>, E> {
    while let Some(found) = text.get(from..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
        let at = from + found;
        if text[at] == b'"' {
            return Ok(Some(at + 1));
        }
        from = at + escape(&text[at..])?;
    }
    Ok(None)
}

/// Like [`string_end`], for any content.
pub(crate) fn any_string_end(text: &[u8], from: usize) -> Option<usize> {
    match string_end(text, from, |_| Ok::<usize, std::convert::Infallible>(2)) {
        Ok(end) => end,
        Err(never) => match never {},
    }
}

/// The length of the escape at the start of `text`. Half a surrogate pair is invalid.
fn surrogate(text: &[u8]) -> Result<usize, ScanFlaw> {
    match unicode_escape(text) {
        Some(0xD800..0xDC00) => match unicode_escape(&text[6..]) {
            Some(0xDC00..0xE000) => Ok(12),
            _ => Err(ScanFlaw::LoneSurrogate),
        },
        Some(0xDC00..0xE000) => Err(ScanFlaw::LoneSurrogate),
        Some(_) => Ok(6),
        None => Ok(2),
    }
}

/// The code unit of a `\u` escape at the beginning of `text`.
fn unicode_escape(text: &[u8]) -> Option<u16> {
    let digits = text.strip_prefix(b"\\u")?.get(..4)?;
    digits.iter().try_fold(0_u16, |unit, digit| {
        let value = char::from(*digit).to_digit(16)?;
        Some(unit << 4 | u16::try_from(value).ok()?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(levels: usize) -> String {
        format!("{}{}", "[".repeat(levels), "]".repeat(levels))
    }

    #[test]
    fn counts_levels_but_not_those_in_strings() {
        assert_eq!(check(nested(MAX_DEPTH).as_bytes()), Ok(()));
        assert_eq!(check(nested(MAX_DEPTH + 1).as_bytes()), Err(ScanFlaw::TooDeep));
        assert_eq!(check(nested(100_000).as_bytes()), Err(ScanFlaw::TooDeep));
        assert_eq!(check(format!("\"{}\"", "[".repeat(200)).as_bytes()), Ok(()));
        assert_eq!(check(format!(r#""\"{}""#, "{".repeat(200)).as_bytes()), Ok(()));
        assert_eq!(check("[]".repeat(1000).as_bytes()), Ok(()));
    }

    #[test]
    fn a_payload_of_the_deepest_allowed_message_can_be_decoded() {
        assert!(serde_json::from_str::<serde_json::Value>(&nested(MAX_DEPTH - 1)).is_ok());
        assert!(serde_json::from_str::<serde_json::Value>(&nested(MAX_DEPTH)).is_err());
    }

    #[test]
    fn finds_half_a_pair() {
        for text in [r#""\ud800""#, r#""\udc00""#, r#""\ud83d\ud83d""#, r#""\ud83dx""#, r#""\uDBFF\n""#] {
            assert_eq!(check(text.as_bytes()), Err(ScanFlaw::LoneSurrogate), "{text}");
        }
        for text in
            [r#""\ud83d\ude00""#, r#""\u00e9\ue000""#, r#""\\ud800""#, r#""\u12"#, r#""\"#, r#""\uzzzz""#]
        {
            assert_eq!(check(text.as_bytes()), Ok(()), "{text}");
        }
    }
}
