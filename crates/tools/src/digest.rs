//! A digest over everything that decides what a proposal does, so that a yes is a yes to exactly that.

use ring::digest::{SHA256, digest};
use serde_json::Value;

/// The same for the same JSON, however its keys are ordered.
pub(crate) fn digest_of(value: &Value) -> String {
    let mut sorted = value.clone();
    sorted.sort_all_objects();
    let bytes = digest(&SHA256, sorted.to_string().as_bytes());
    let hex: String = bytes.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_order_of_keys_does_not_count_and_values_do() {
        let one: Value = serde_json::from_str(r#"{"a": {"x": 1, "y": 2}, "b": []}"#).expect("JSON");
        let same: Value = serde_json::from_str(r#"{"b": [], "a": {"y": 2, "x": 1}}"#).expect("JSON");
        assert_eq!(digest_of(&one), digest_of(&same));
        assert_ne!(digest_of(&one), digest_of(&json!({"a": {"x": 1, "y": 3}, "b": []})));
        assert_eq!(
            digest_of(&json!({})),
            "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
        );
    }
}
