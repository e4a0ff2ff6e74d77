//! The four kinds of messages, their payloads left as text for the one who knows the method.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::bad_message::quoted;
use crate::id::Id;

/// The code given to an error response that brings none of its own.
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
    /// Trace context as it came. Its shape is not checked here.
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
    /// `None` when the peer could not tell which of our messages it is about.
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
    /// Takes what it can: an error is one however badly it is made.
    pub(crate) fn from_json(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_else(|_| Self {
            code: INTERNAL_ERROR,
            message: format!("an error without a code and a message: {}", quoted(text)),
            data: None,
        })
    }
}
