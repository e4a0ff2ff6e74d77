//! One event as every maker reads it, so that the offline model and a provider cannot differ.

use model::{ModelFailure, StreamEvent, parse_event};

pub(crate) const CLOSED_EARLY: &str = "stream closed before response.completed";

/// `Ok(None)`: nothing the turn needs. Only the end of a response must be right; of the rest, what cannot be read is passed
/// over, as providers add to it all the time.
pub(crate) fn read_event(text: &str) -> Result<Option<StreamEvent>, ModelFailure> {
    match parse_event(text) {
        Ok(event) => Ok(event),
        Err(bad) if bad.event == "response.completed" => Err(ModelFailure::stream(bad)),
        Err(bad) => {
            tracing::debug!(%bad, "passed over");
            Ok(None)
        }
    }
}
