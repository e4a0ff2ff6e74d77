//! Thread ids, parsed like the reference does.

use protocol::ThreadId;
use uuid::Uuid;
use uuid::fmt::{Hyphenated, Simple};

pub fn is_uuid(text: &str) -> bool {
    check_thread_id(&ThreadId::new(text)).is_ok()
}

/// Not a thread id, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid thread id: {0}")]
pub struct InvalidThreadId(String);

/// The id in lower case with hyphens, or the reason why it is invalid.
pub fn check_thread_id(id: &ThreadId) -> Result<ThreadId, InvalidThreadId> {
    let text = id.as_str();
    let text = text.strip_prefix("urn:uuid:").unwrap_or(text);
    // Braces and prefixes are refused: texts with them have other lengths.
    let is_plain = matches!(text.len(), Simple::LENGTH | Hyphenated::LENGTH);
    match Uuid::try_parse(text).ok().filter(|_| is_plain) {
        Some(uuid) => Ok(ThreadId::new(uuid.to_string())),
        None => Err(InvalidThreadId(explain(text))),
    }
}

/// The reference's messages. Those of the library change between releases.
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
