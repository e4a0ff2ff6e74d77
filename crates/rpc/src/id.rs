//! Request ids, which match a response to its request.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A response repeats the id, so a longer one is refused instead of shortened.
pub const MAX_ID_BYTES: usize = 1024;

/// The string `"0"` and the number `0` are different ids.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Id {
    String(String),
    Integer(i64),
}

impl Id {
    /// Parses an id from JSON. `None` for anything but a string of at most [`MAX_ID_BYTES`] or a 64-bit integer:
    /// `null`, `1.0`, `1e2`, `-0`, `true`, objects and arrays are not ids.
    pub(crate) fn from_json(text: &str) -> Option<Self> {
        if text.starts_with('"') {
            let id: String = serde_json::from_str(text).ok()?;
            return (id.len() <= MAX_ID_BYTES).then_some(Self::String(id));
        }
        serde_json::from_str(text).ok().map(Self::Integer)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::String(id) => f.write_str(id),
            Self::Integer(id) => write!(f, "{id}"),
        }
    }
}

impl From<i64> for Id {
    fn from(id: i64) -> Self {
        Self::Integer(id)
    }
}

impl From<&str> for Id {
    fn from(id: &str) -> Self {
        Self::String(id.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_and_integers_of_64_bits_are_ids() {
        for (text, id) in [
            ("0", Id::from(0)),
            ("-7", Id::from(-7)),
            ("9223372036854775807", Id::from(i64::MAX)),
            ("-9223372036854775808", Id::from(i64::MIN)),
            (r#""""#, Id::from("")),
            (r#""a\u00e9\"""#, Id::from("aé\"")),
        ] {
            assert_eq!(Id::from_json(text), Some(id), "{text}");
        }
    }

    #[test]
    fn nothing_else_is_an_id() {
        for text in
            ["null", "true", "1.0", "1e2", "-0", "9223372036854775808", "{}", "[1]", "", "01", "1 2", "\"a"]
        {
            assert_eq!(Id::from_json(text), None, "{text}");
        }
        assert_eq!(Id::from_json(&format!("\"{}\"", "a".repeat(MAX_ID_BYTES + 1))), None);
    }

    #[test]
    fn the_text_of_a_number_is_another_id() {
        assert_ne!(Id::from("0"), Id::from(0));
        assert_eq!(Id::from("0").to_string(), Id::from(0).to_string());
    }
}
