//! Owns the transport of messages between two peers: framing, the envelope, matching responses to requests, and the
//! bounded queues of a connection. Must not know any method name, nor the meaning of a payload.
//!
//! One connection, from inside to outside:
//!
//! ```text
//! bytes in -> LineReader -> parse -> Incoming -> Outbox::reserve -> ReplySlot -> a handler of the server
//! bytes out <- drain <- Backlog <- ReplySlot::reply, Outbox::send
//! ```

mod bad_message;
mod drain;
mod encode;
mod envelope;
mod frame;
mod id;
mod incoming;
mod json;
mod lane;
mod lanes;
mod line_buffer;
mod message;
mod outbox;
mod pending;
mod queue;
mod reply;
mod salvage;
mod scan;

pub use bad_message::{BadKind, BadMessage, shorten};
pub use drain::{Backlog, drain};
pub use encode::{EncodeError, EncodedLine, error, notification, request, response, traced_request};
pub use envelope::parse;
pub use frame::{FrameError, FrameLimits, FrameReader};
pub use id::{Id, MAX_ID_BYTES};
pub use incoming::{ErrorObject, ErrorResponse, Incoming, IncomingNotification, IncomingRequest, Response};
pub use lane::MAX_MERGED_BYTES;
pub use message::{DeltaKey, OrderGroup, OutgoingMessage, Render};
pub use outbox::Outbox;
pub use pending::PendingRequests;
pub use queue::{Closed, OutboxLimits, Refused};
pub use reply::ReplySlot;
pub use salvage::salvage_id;
pub use scan::MAX_DEPTH;
