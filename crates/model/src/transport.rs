//! The trait of transports for model requests.

use std::fmt;
use std::pin::Pin;

use futures_core::Stream;

use crate::{ModelFailure, PreparedRequest, StreamEvent};

/// The events of one attempt. The first failure ends it.
pub type EventStream = Pin<Box<dyn Stream<Item = Result<StreamEvent, ModelFailure>> + Send>>;

/// Sends model requests: over HTTP, to an embedded model, or through a host. Dropping the stream cancels the request.
pub trait ModelTransport: Send + Sync {
    /// Starts one attempt. Nothing is sent before the stream is polled.
    fn open(&self, request: PreparedRequest) -> EventStream;
}

/// Prints only the name: printing the fields would add the `Debug` code of all their types to the program.
impl fmt::Debug for dyn ModelTransport + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ModelTransport")
    }
}
