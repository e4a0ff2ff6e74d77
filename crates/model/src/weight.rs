//! The approximate memory of queued values.

use std::io;

use serde::Serialize;

use crate::event::StreamEvent;

/// The size of a value's JSON, in bytes.
pub fn json_bytes(value: &impl Serialize) -> usize {
    let mut length = Length(0);
    // Serialising cannot fail here; if it did, the count so far would be used.
    let _ = serde_json::to_writer(&mut length, value);
    length.0
}

/// The size of a model's event beyond a few words, in bytes.
pub fn event_bytes(event: &StreamEvent) -> usize {
    match event {
        StreamEvent::TextDelta { delta }
        | StreamEvent::ReasoningSummaryDelta { delta, .. }
        | StreamEvent::ReasoningTextDelta { delta, .. } => delta.len(),
        StreamEvent::ItemAdded(item) | StreamEvent::ItemDone(item) => json_bytes(item),
        StreamEvent::Opened(_)
        | StreamEvent::ReasoningSummaryPartAdded { .. }
        | StreamEvent::RateLimits(_)
        | StreamEvent::ImageSaved { .. }
        | StreamEvent::ServedBy(_)
        | StreamEvent::Completed { .. }
        | StreamEvent::Failed(_) => 0,
    }
}

struct Length(usize);

impl io::Write for Length {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn text_counts_wherever_it_is() {
        assert_eq!(json_bytes(&json!({"a": "é"})), r#"{"a":"é"}"#.len());
        let text = "x".repeat(5_000);
        assert_eq!(event_bytes(&StreamEvent::TextDelta { delta: text.clone() }), 5_000);
        let content = json!([{"type": "output_text", "text": text}]);
        let item = json!({"type": "message", "role": "assistant", "content": content});
        let item = serde_json::from_value(item).expect("an item");
        assert!((5_000..5_200).contains(&event_bytes(&StreamEvent::ItemDone(Box::new(item)))));
    }
}
