//! The first descriptions of a server's tools. An approval covers a tool as described, so a tool that is removed and
//! added with another description counts as changed, like one that changes in place.

use std::collections::HashMap;

use engine::digest_of;
use parking_lot::Mutex;
use serde_json::Value;

/// If a server lists more names than this in one connection, all further tools count as changed.
const MAX_NAMES: usize = 10_000;

#[derive(Debug, Default)]
pub(crate) struct Descriptions(Mutex<HashMap<String, FirstDescription>>);

#[derive(Debug)]
struct FirstDescription {
    digest: String,
    /// It had another description since. Returning to the first does not undo that.
    is_changed: bool,
}

impl Descriptions {
    /// Whether a tool had another description before.
    pub(crate) fn is_changed(&self, name: &str, raw: &Value) -> bool {
        let digest = digest_of(raw);
        let mut known = self.0.lock();
        if let Some(first) = known.get_mut(name) {
            first.is_changed |= first.digest != digest;
            return first.is_changed;
        }
        if known.len() >= MAX_NAMES {
            return true;
        }
        known.insert(name.to_owned(), FirstDescription { digest, is_changed: false });
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_tool_that_comes_back_otherwise_is_changed_for_good() {
        let known = Descriptions::default();
        let (first, other) = (json!({"name": "t", "description": "reads"}), json!({"name": "t"}));
        assert!(!known.is_changed("t", &first) && !known.is_changed("t", &first));
        assert!(!known.is_changed("u", &other), "another tool has nothing to do with it");
        assert!(known.is_changed("t", &other));
        assert!(known.is_changed("t", &first));
    }

    #[test]
    fn names_without_end_are_not_remembered() {
        let known = Descriptions::default();
        for number in 0..MAX_NAMES {
            assert!(!known.is_changed(&number.to_string(), &json!({})));
        }
        assert!(known.is_changed("one more", &json!({})));
        assert!(!known.is_changed("0", &json!({})));
    }
}
