//! One event of the offline model, read as those of a provider are, so that the two cannot differ.

use model::{ModelFailure, StreamEvent};
use wires::Decoder;

/// `None`: nothing the turn needs.
pub(crate) fn read_event(text: &str) -> Option<StreamEvent> {
    let mut events = Vec::new();
    Decoder::responses().push(text, &mut events);
    events.pop()
}

/// The failure of a stream that ended without its last event.
pub(crate) fn closed_early() -> ModelFailure {
    let mut events = Vec::new();
    Decoder::responses().close(None, &mut events);
    match events.pop() {
        Some(StreamEvent::Failed(failure)) => failure,
        _ => ModelFailure::stream("it ended"),
    }
}
