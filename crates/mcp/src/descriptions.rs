//! The descriptions that a server's tools had first. A yes is to a tool as it was described, so a tool that is taken away
//! and comes back with another description counts as changed, as one that changes in its place.

use std::collections::HashMap;

use engine::digest_of;
use parking_lot::Mutex;
use serde_json::Value;

/// A server that brings up more names than this in one connection has all further tools count as changed.
const MAX_NAMES: usize = 10_000;

#[derive(Debug, Default)]
pub(crate) struct Descriptions(Mutex<HashMap<String, FirstDescription>>);

#[derive(Debug)]
struct FirstDescription {
    digest: String,
    /// It was seen with another one since. Going back to the first does not undo that.
    is_changed: bool,
}

impl Descriptions {
    /// Whether a tool was described otherwise before.
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
