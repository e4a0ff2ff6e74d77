//! The error for an invalid message: short, with the request's id if it is known.

use std::borrow::Cow;

use crate::encode::{self, EncodedLine};
use crate::id::Id;

/// The JSON-RPC codes of this crate. All others belong to the server.
const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;

/// Limit of quoted input. The whole sentence stays well below a kilobyte.
const QUOTED_BYTES: usize = 80;

/// An invalid line. It had no effect, and the next line is read normally.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct BadMessage {
    /// The request to answer. `None` if it is unknown, and for an invalid response: its id is ours, and an error with
    /// that id would look like a response to a request of the peer.
    pub id: Option<Id>,
    pub kind: BadKind,
    pub message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BadKind {
    TooLong,
    NotUtf8,
    NotJson,
    TooDeep,
    LoneSurrogate,
    NotAnObject,
    DuplicateKey,
    BadId,
    BadMethod,
    NoKind,
}

impl BadMessage {
    pub(crate) fn new(id: Option<Id>, kind: BadKind, message: String) -> Self {
        Self { id, kind, message }
    }

    /// The JSON-RPC code: parse error for invalid JSON, invalid request for JSON of the wrong shape.
    pub fn code(&self) -> i64 {
        match self.kind {
            BadKind::NotUtf8 | BadKind::NotJson | BadKind::TooDeep | BadKind::LoneSurrogate => PARSE_ERROR,
            BadKind::TooLong
            | BadKind::NotAnObject
            | BadKind::DuplicateKey
            | BadKind::BadId
            | BadKind::BadMethod
            | BadKind::NoKind => INVALID_REQUEST,
        }
    }

    /// The error response, with the id `null` if the request is unknown.
    pub fn to_line(&self) -> EncodedLine {
        // Text and numbers can always be written as JSON; the outbox skips an empty line.
        encode::error(self.id.as_ref(), self.code(), &self.message, &()).unwrap_or_default()
    }
}

/// Cuts a name from the input down to `max_bytes`, for error messages and logs.
pub fn shorten(text: &str, max_bytes: usize) -> Cow<'_, str> {
    if text.len() <= max_bytes {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("{}…", &text[..text.floor_char_boundary(max_bytes)]))
}

/// Input quoted in an error message.
pub(crate) fn quoted(text: &str) -> Cow<'_, str> {
    shorten(text, QUOTED_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortens_between_characters() {
        assert_eq!(shorten("thread", 6), "thread");
        assert_eq!(shorten("thread", 3), "thr…");
        assert_eq!(shorten("aéé", 2), "a…");
        assert_eq!(shorten("é", 0), "…");
    }

    #[test]
    fn answers_under_the_id_or_null() {
        let known = BadMessage::new(Some(Id::from(7)), BadKind::NoKind, "no".to_owned());
        assert_eq!(known.to_line(), b"{\"id\":7,\"error\":{\"code\":-32600,\"message\":\"no\"}}\n");
        let unknown = BadMessage::new(None, BadKind::NotJson, "no".to_owned());
        assert_eq!(unknown.to_line(), b"{\"id\":null,\"error\":{\"code\":-32700,\"message\":\"no\"}}\n");
    }
}
