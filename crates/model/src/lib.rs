//! Owns the messages to and from a model: the Responses request, its stream events, the classes of failure, and the
//! trait of a transport. Must not know tokio, HTTP, or threads.

mod event;
mod failure;
mod request;
mod transport;
mod wait;
mod weight;

pub use event::{BadEvent, ResponseHead, StreamEvent, parse_event};
pub use failure::{FailureClass, FailureVerdict, LONGEST_WAIT_MS, ModelFailure, status_text};
/// The wire types in requests and events, for users that depend on the model crate only.
pub use protocol;
pub use request::{
    Metadata, OutputFormat, PreparedRequest, Purpose, Reasoning, RequestBody, TextOptions, ToolChoice,
};
pub use transport::{EventStream, ModelTransport};
pub use wait::{requested_delay, wait_until};
pub use weight::{event_bytes, json_bytes};
