//! Owns what is said to and heard from a model: the Responses request, its stream events, the classes of failure, and
//! the trait of whoever carries a request. Must not know tokio, HTTP, or threads.

mod event;
mod failure;
mod request;
mod transport;
mod wait;
mod weight;

pub use event::{BadEvent, ResponseHead, StreamEvent, parse_event};
pub use failure::{FailureClass, FailureVerdict, LONGEST_WAIT_MS, ModelFailure, status_text};
/// The wire types that requests and events are made of, for makers that know the model crate alone.
pub use protocol;
pub use request::{
    Metadata, OutputFormat, PreparedRequest, Purpose, Reasoning, RequestBody, TextOptions, ToolChoice,
};
pub use transport::{EventStream, ModelTransport};
pub use wait::{requested_delay, wait_until};
pub use weight::{event_bytes, json_bytes};
