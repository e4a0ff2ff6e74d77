//! Converts call ids and tool names to a vendor's alphabet. Deterministic, so that repeated calls have the same bytes.

use std::borrow::Cow;

use crate::CallIds;
use crate::digest::PrefixDigest;

const LONGEST: usize = 64;

/// A call id in the vendor's form. A valid one is unchanged.
pub(crate) fn call_id(id: &str, wanted: CallIds) -> Cow<'_, str> {
    match wanted {
        CallIds::Words if is_word(id) => Cow::Borrowed(id),
        CallIds::Words => Cow::Owned(format!("call_{}", PrefixDigest::of(id.as_bytes()).hex())),
        CallIds::NineAlphanumerics if is_nine(id) => Cow::Borrowed(id),
        CallIds::NineAlphanumerics => Cow::Owned(nine(id)),
    }
}

/// A tool's name as every vendor accepts it.
pub(crate) fn tool_name(namespace: Option<&str>, name: &str) -> String {
    let whole = match namespace {
        Some(namespace) => format!("{namespace}__{name}"),
        None => name.to_owned(),
    };
    if is_word(&whole) {
        return whole;
    }
    let plain = whole.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' });
    let plain: String = plain.take(LONGEST - 9).collect();
    // A hash distinguishes names that differ only in replaced characters.
    format!("{plain}_{:08x}", PrefixDigest::of(whole.as_bytes()).value() as u32)
}

fn is_word(id: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    !id.is_empty() && id.len() <= LONGEST && id.bytes().all(is_plain)
}

fn is_nine(id: &str) -> bool {
    id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

fn nine(id: &str) -> String {
    const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut rest = PrefixDigest::of(id.as_bytes()).value();
    let mut digit = || {
        let digit = ALPHABET[(rest % 62) as usize];
        rest /= 62;
        char::from(digit)
    };
    (0..9).map(|_| digit()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_fit_stay_and_others_map_to_one_that_fits() {
        assert_eq!(call_id("call_a-1", CallIds::Words), "call_a-1");
        assert_eq!(call_id("D681PevKs", CallIds::NineAlphanumerics), "D681PevKs");
        for id in ["", "functions.shell:0", "call|x", &"x".repeat(65)] {
            let word = call_id(id, CallIds::Words);
            assert!(is_word(&word) && word == call_id(id, CallIds::Words), "{id}");
        }
        for id in ["call_0", "call_1", "toolu_01A09q90qw90lq917835lq9"] {
            assert!(is_nine(&call_id(id, CallIds::NineAlphanumerics)), "{id}");
        }
        assert_ne!(
            call_id("call_0", CallIds::NineAlphanumerics),
            call_id("call_1", CallIds::NineAlphanumerics)
        );
    }

    #[test]
    fn names_do_not_collide() {
        assert_eq!(tool_name(None, "apply_patch"), "apply_patch");
        assert_eq!(tool_name(Some("mcp"), "read"), "mcp__read");
        let names = ["a.b", "a b", "a/b", "ä", "", &"n".repeat(80), &"n".repeat(81)];
        let mapped = Vec::from_iter(names.iter().map(|name| tool_name(None, name)));
        for (at, name) in mapped.iter().enumerate() {
            assert!(is_word(name) && !mapped[..at].contains(name), "{name}");
        }
    }
}
