//! Parses messages: determines the kind of a line, and keeps its payload as text for the handler of the method.
//!
//! The rules, in order:
//! - A `method` makes a request if there is an `id`, else a notification. Without one, a `result` makes a response
//!   and an `error` an error response. The first match counts, and a `null` `method` is none.
//! - Unknown keys are ignored, including `jsonrpc`. A known key that occurs twice is refused: two parsers could read
//!   two different messages.
//! - `null` `params` equal absent ones. A `null` `id` is an invalid id, not a missing one.
//! - An error response counts even if its `error` is malformed or its request unknown: the caller must not wait for
//!   ever, and an error is never answered with an error.

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::error::Category;
use serde_json::value::RawValue;

use crate::bad_message::{BadKind, BadMessage, quoted};
use crate::id::Id;
use crate::incoming::{
    ErrorObject, ErrorResponse, Incoming, IncomingNotification, IncomingRequest, Response,
};
use crate::line_buffer::trim;
use crate::salvage::salvage_id;
use crate::scan::{self, MAX_DEPTH, ScanFlaw};

/// The text of each member, `None` if absent.
#[derive(Deserialize)]
struct EnvelopeMembers<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<&'a RawValue>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    trace: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

/// Distinguishes `null` from an absent member.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Parses one message. Payloads are validated as JSON, not decoded.
pub fn parse(frame: &[u8]) -> Result<Incoming, BadMessage> {
    let frame = trim(frame);
    let unreadable = |kind, message| BadMessage::new(salvage_id(frame), kind, message);
    let text = str::from_utf8(frame).map_err(|error| {
        unreadable(BadKind::NotUtf8, format!("not UTF-8 from byte {}", error.valid_up_to()))
    })?;
    scan::check(frame).map_err(|flaw| match flaw {
        ScanFlaw::TooDeep => unreadable(BadKind::TooDeep, format!("nested deeper than {MAX_DEPTH} levels")),
        ScanFlaw::LoneSurrogate => unreadable(
            BadKind::LoneSurrogate,
            "an escape is half a surrogate pair, which is not text".to_owned(),
        ),
    })?;
    if !text.starts_with('{') {
        return Err(no_object(text));
    }
    match serde_json::from_str::<EnvelopeMembers<'_>>(text) {
        Ok(members) => members.message(),
        Err(error) => match error.classify() {
            Category::Data => Err(unreadable(BadKind::DuplicateKey, error.to_string())),
            Category::Syntax | Category::Eof | Category::Io => Err(not_json(salvage_id(frame), &error)),
        },
    }
}

fn not_json(id: Option<Id>, error: &serde_json::Error) -> BadMessage {
    BadMessage::new(id, BadKind::NotJson, format!("not JSON: {error}"))
}

fn no_object(text: &str) -> BadMessage {
    let message = match serde_json::from_str::<IgnoredAny>(text) {
        Err(error) => return not_json(None, &error),
        Ok(_) if text.starts_with('[') => "a message is one object: send the messages of a batch one by one",
        Ok(_) => "a message is an object",
    };
    BadMessage::new(None, BadKind::NotAnObject, message.to_owned())
}

impl EnvelopeMembers<'_> {
    fn message(self) -> Result<Incoming, BadMessage> {
        if let Some(method) = self.method {
            return self.call(method);
        }
        let id = self.id.and_then(|id| Id::from_json(id.get()));
        match (self.result, self.error) {
            (Some(result), _) => match id {
                Some(id) => Ok(Incoming::Response(Response { id, result: result.to_owned() })),
                None => {
                    let message = "a result needs the id of its request, a string or a 64-bit integer";
                    Err(BadMessage::new(None, BadKind::BadId, message.to_owned()))
                }
            },
            (None, Some(error)) => {
                Ok(Incoming::Error(ErrorResponse { id, error: ErrorObject::from_json(error.get()) }))
            }
            (None, None) => {
                let message = "a message needs a `method`, a `result` or an `error`";
                Err(BadMessage::new(id, BadKind::NoKind, message.to_owned()))
            }
        }
    }

    /// A request or a notification.
    fn call(&self, method: &RawValue) -> Result<Incoming, BadMessage> {
        let id = self.id.map(|id| Id::from_json(id.get()).ok_or(id));
        let Ok(method) = serde_json::from_str::<String>(method.get()) else {
            let answer = self.result.is_some() || self.error.is_some();
            let id = id.and_then(Result::ok).filter(|_| !answer);
            let message = format!("`method` must be a string, not {}", quoted(method.get()));
            return Err(BadMessage::new(id, BadKind::BadMethod, message));
        };
        let params = self.params.map(ToOwned::to_owned);
        match id {
            None => Ok(Incoming::Notification(IncomingNotification { method, params })),
            Some(Ok(id)) => {
                let trace = self.trace.map(ToOwned::to_owned);
                Ok(Incoming::Request(IncomingRequest { id, method, params, trace }))
            }
            Some(Err(id)) => {
                let (method, id) = (quoted(&method), quoted(id.get()));
                let message = format!("the id of `{method}` must be a string or a 64-bit integer, not {id}");
                Err(BadMessage::new(None, BadKind::BadId, message))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The message in one line: its kind, then its members.
    fn show(text: &str) -> String {
        let raw = |value: Option<Box<RawValue>>| value.map_or("-".to_owned(), |value| value.get().to_owned());
        match parse(text.as_bytes()) {
            Ok(Incoming::Request(IncomingRequest { id, method, params, trace })) => {
                format!("request {id:?} {method} {} {}", raw(params), raw(trace))
            }
            Ok(Incoming::Notification(IncomingNotification { method, params })) => {
                format!("notification {method} {}", raw(params))
            }
            Ok(Incoming::Response(Response { id, result })) => format!("response {id:?} {result}"),
            Ok(Incoming::Error(ErrorResponse { id, error: ErrorObject { code, message, data } })) => {
                format!("error {id:?} {code} {message} {}", raw(data))
            }
            Err(bad) => format!("{:?} {:?} {} {bad}", bad.kind, bad.id, bad.code()),
        }
    }

    fn check(cases: &[(&str, &str)]) {
        for (text, expected) in cases {
            assert_eq!(show(text), *expected, "{text}");
        }
    }

    #[test]
    fn distinguishes_the_four_kinds() {
        check(&[
            (r#"{"id":1,"method":"a","params":{"b":[1]}}"#, r#"request Integer(1) a {"b":[1]} -"#),
            (
                r#"{"id":"1","method":"a","trace":{"traceparent":"x"}}"#,
                r#"request String("1") a - {"traceparent":"x"}"#,
            ),
            (r#"{"method":"a","params":[]}"#, "notification a []"),
            (r#"{"id":1,"result":{"ok":true}}"#, r#"response Integer(1) {"ok":true}"#),
            (r#"{"id":1,"result":null}"#, "response Integer(1) null"),
            (r#"{"id":1,"error":{"code":-1,"message":"m"}}"#, "error Some(Integer(1)) -1 m -"),
            (r#"{"id":1,"error":{"code":-1,"message":"m","data":[2]}}"#, "error Some(Integer(1)) -1 m [2]"),
        ]);
    }

    #[test]
    fn the_first_matching_kind_counts() {
        check(&[
            (r#"{"id":1,"result":1,"error":{},"method":"a"}"#, "request Integer(1) a - -"),
            (r#"{"id":1,"error":null,"result":1}"#, "response Integer(1) 1"),
            (r#"{"id":1,"method":null,"result":1}"#, "response Integer(1) 1"),
        ]);
    }

    #[test]
    fn ignores_unknown_members() {
        check(&[
            (r#"{"jsonrpc":"2.0","x":{"y":1},"x":2,"method":"a","params":null}"#, "notification a -"),
            (r#"{"id":1,"method":"a","params":null,"trace":null}"#, "request Integer(1) a - -"),
            ("\u{feff} {\"method\":\"a\"}\r", "notification a -"),
            (r#"{"\u006dethod":"\u0061\u0000"}"#, "notification a\0 -"),
        ]);
    }

    #[test]
    fn refuses_invalid_ids() {
        for id in ["null", "1.5", "1e3", "9223372036854775808", "true", "{}", "[1]", "-0"] {
            let expected =
                format!("BadId None -32600 the id of `a` must be a string or a 64-bit integer, not {id}");
            assert_eq!(show(&format!(r#"{{"id":{id},"method":"a","params":{{}}}}"#)), expected);
        }
        let a_result = "BadId None -32600 a result needs the id of its request, a string or a 64-bit integer";
        check(&[(r#"{"result":1}"#, a_result), (r#"{"id":null,"result":1}"#, a_result)]);
    }

    #[test]
    fn refuses_other_shapes() {
        let no_kind = "-32600 a message needs a `method`, a `result` or an `error`";
        check(&[
            (r#"{"id":4,"params":{}}"#, &format!("NoKind Some(Integer(4)) {no_kind}")),
            ("{}", &format!("NoKind None {no_kind}")),
            (r#"{"id":1.5}"#, &format!("NoKind None {no_kind}")),
            (r#"{"id":1,"method":7}"#, "BadMethod Some(Integer(1)) -32600 `method` must be a string, not 7"),
            (r#"{"id":1,"method":[],"result":1}"#, "BadMethod None -32600 `method` must be a string, not []"),
            (
                r#"[{"id":1,"method":"a"}]"#,
                "NotAnObject None -32600 a message is one object: send the messages of a batch one by one",
            ),
            ("17", "NotAnObject None -32600 a message is an object"),
            (
                r#"{"id":1,"method":"a","method":"b"}"#,
                "DuplicateKey Some(Integer(1)) -32600 duplicate field `method` at line 1 column 29",
            ),
        ]);
    }

    #[test]
    fn refuses_invalid_json() {
        check(&[
            ("{not json}", "NotJson None -32700 not JSON: key must be a string at line 1 column 2"),
            (
                r#"{"id":5,"method":"a","params":{"b":}}"#,
                "NotJson Some(Integer(5)) -32700 not JSON: expected value at line 1 column 36",
            ),
            (
                r#"{"id":5,"method":"a"} x"#,
                "NotJson Some(Integer(5)) -32700 not JSON: trailing characters at line 1 column 23",
            ),
            ("[1,", "NotJson None -32700 not JSON: EOF while parsing a value at line 1 column 3"),
            ("", "NotJson None -32700 not JSON: EOF while parsing a value at line 1 column 0"),
            (
                r#"{"id":6,"method":"a","params":{"b":"\ud800"}}"#,
                "LoneSurrogate Some(Integer(6)) -32700 an escape is half a surrogate pair, which is not text",
            ),
        ]);
    }

    #[test]
    fn an_error_response_counts_however_badly_it_is_made() {
        let without = "an error without a code and a message:";
        check(&[
            (r#"{"id":null,"error":{"code":1,"message":"m"}}"#, "error None 1 m -"),
            (r#"{"error":{"code":1,"message":"m"}}"#, "error None 1 m -"),
            (r#"{"id":3,"error":"no"}"#, &format!(r#"error Some(Integer(3)) -32603 {without} "no" -"#)),
            (r#"{"id":3,"error":null}"#, &format!("error Some(Integer(3)) -32603 {without} null -")),
        ]);
    }
}
