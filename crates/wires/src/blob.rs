//! Reasoning of another wire in a Responses item: `encrypted_content` = `ox1.WIRE.BASE64` of the data to send back,
//! with its receiver.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Wire;

const VERSION: &str = "ox1";

/// Data to be sent back unchanged, and where it is valid.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Blob {
    pub(crate) provider: String,
    pub(crate) model: String,
    /// Digest of the answered request: a block that is bound to its context is invalid elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) after: Option<String>,
    /// A content block, or the fields of an assistant message.
    pub(crate) data: Value,
}

impl Blob {
    pub(crate) fn write(&self, wire: Wire) -> String {
        let json = serde_json::to_vec(self).unwrap_or_default();
        format!("{VERSION}.{}.{}", wire.name(), BASE64_STANDARD.encode(json))
    }

    /// `None` if another wire or program made it.
    pub(crate) fn read(text: &str, wire: Wire) -> Option<Self> {
        let rest = text.strip_prefix(VERSION)?.strip_prefix('.')?;
        let json = BASE64_STANDARD.decode(rest.strip_prefix(wire.name())?.strip_prefix('.')?).ok()?;
        serde_json::from_slice(&json).ok()
    }
}

/// Whether one of our wires made an `encrypted_content`, which no provider can read.
pub(crate) fn is_ours(text: &str) -> bool {
    text.strip_prefix(VERSION).is_some_and(|rest| rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blob_is_read_by_its_own_wire_alone() {
        let blob = Blob {
            provider: "p".into(),
            model: "m".into(),
            after: Some("00".into()),
            data: serde_json::json!({"type": "thinking", "signature": "é"}),
        };
        let text = blob.write(Wire::Messages);
        assert!(text.starts_with("ox1.messages.") && is_ours(&text));
        assert_eq!(Blob::read(&text, Wire::Messages), Some(blob));
        assert_eq!(Blob::read(&text, Wire::Chat), None);
        for bad in ["", "gAAAA", "ox1", "ox1.messages", "ox1.messages.%%", "ox1.messages.e30="] {
            assert_eq!(Blob::read(bad, Wire::Messages), None, "{bad}");
        }
    }
}
