//! The four kinds of messages, with payloads as text for the handler of the method.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::bad_message::quoted;
use crate::id::Id;

/// The code of an error response without its own.
const INTERNAL_ERROR: i64 = -32603;

#[derive(Debug, Clone)]
pub enum Incoming {
    Request(IncomingRequest),
    Notification(IncomingNotification),
    Response(Response),
    Error(ErrorResponse),
}

#[derive(Debug, Clone)]
pub struct IncomingRequest {
    pub id: Id,
    pub method: String,
    pub params: Option<Box<RawValue>>,
    /// The trace context as received, not validated here.
    pub trace: Option<Box<RawValue>>,
}

#[derive(Debug, Clone)]
pub struct IncomingNotification {
    pub method: String,
    pub params: Option<Box<RawValue>>,
}

#[derive(Debug, Clone)]
pub struct Response {
    pub id: Id,
    pub result: Box<RawValue>,
}

#[derive(Debug, Clone)]
pub struct ErrorResponse {
    /// `None` if the peer does not know which of our messages it is about.
    pub id: Option<Id>,
    pub error: ErrorObject,
}

#[derive(Debug, Clone, Deserialize)]
pub struct ErrorObject {
    pub code: i64,
    pub message: String,
    pub data: Option<Box<RawValue>>,
}

impl ErrorObject {
    /// Takes the valid members: a malformed error is still an error.
    pub(crate) fn from_json(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_else(|_| Self {
            code: INTERNAL_ERROR,
            message: format!("an error without a code and a message: {}", quoted(text)),
            data: None,
        })
    }
}
