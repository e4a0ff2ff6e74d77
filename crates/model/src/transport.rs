//! Whoever carries a model request.

use std::fmt;
use std::pin::Pin;

use futures_core::Stream;

use crate::{ModelFailure, PreparedRequest, StreamEvent};

/// The events of one attempt. The first failure ends it.
pub type EventStream = Pin<Box<dyn Stream<Item = Result<StreamEvent, ModelFailure>> + Send>>;

/// Carries model requests: over HTTP, by an embedded model, or by a host. Dropping the stream cancels the request.
pub trait ModelTransport: fmt::Debug + Send + Sync {
    /// Starts one attempt. Nothing is sent before the stream is polled.
    fn open(&self, request: PreparedRequest) -> EventStream;
}
