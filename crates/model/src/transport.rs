//! Whoever carries a model request.

use std::fmt;
use std::pin::Pin;

use futures_core::Stream;

use crate::{ModelFailure, PreparedRequest, StreamEvent};

/// The events of one attempt. The first failure ends it.
pub type EventStream = Pin<Box<dyn Stream<Item = Result<StreamEvent, ModelFailure>> + Send>>;

/// Carries model requests: over HTTP, by an embedded model, or by a host. Dropping the stream cancels the request.
pub trait ModelTransport: Send + Sync {
    /// Starts one attempt. Nothing is sent before the stream is polled.
    fn open(&self, request: PreparedRequest) -> EventStream;
}

/// The name alone: to print the values behind it, the program would carry the `Debug` code of all their types.
impl fmt::Debug for dyn ModelTransport + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ModelTransport")
    }
}
