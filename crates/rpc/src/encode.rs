//! Encodes messages: typed values to one line of bytes, including the newline, without a `jsonrpc` member.

use memchr::memchr2_iter;
use serde::Serialize;

use crate::id::Id;
use crate::json;

/// One encoded message with its newline.
pub type EncodedLine = Vec<u8>;

/// A payload that JSON cannot represent, such as a map with keys that are not strings.
#[derive(Debug, thiserror::Error)]
#[error("the message cannot be written as JSON")]
pub struct EncodeError(#[from] serde_json::Error);

/// A request of ours. `null` params are left out.
pub fn request(
    id: &Id,
    method: &str,
    params: &(impl Serialize + ?Sized),
) -> Result<EncodedLine, EncodeError> {
    traced_request(id, method, params, &())
}

/// A request of ours with its trace context. A `null` context is left out.
pub fn traced_request(
    id: &Id,
    method: &str,
    params: &(impl Serialize + ?Sized),
    trace: &impl Serialize,
) -> Result<EncodedLine, EncodeError> {
    let object = ObjectWriter::open().member("id", id)?.member("method", method)?;
    Ok(object.unless_null("params", params)?.unless_null("trace", trace)?.line())
}

/// A notification. `null` params are left out.
pub fn notification(method: &str, params: &(impl Serialize + ?Sized)) -> Result<EncodedLine, EncodeError> {
    Ok(ObjectWriter::open().member("method", method)?.unless_null("params", params)?.line())
}

/// The successful answer to a request of the peer.
pub fn response(id: &Id, result: &(impl Serialize + ?Sized)) -> Result<EncodedLine, EncodeError> {
    Ok(ObjectWriter::open().member("id", id)?.member("result", result)?.line())
}

/// An error response, with the id `null` for an invalid line. `null` data, as `&()`, are left out.
pub fn error(
    id: Option<&Id>,
    code: i64,
    message: &str,
    data: &(impl Serialize + ?Sized),
) -> Result<EncodedLine, EncodeError> {
    let error = ObjectWriter::open().member("code", &code)?.member("message", message)?;
    let error = error.unless_null("data", data)?.close();
    let mut object = ObjectWriter::open().member("id", &id)?;
    object.name("error");
    object.text.extend_from_slice(&error);
    Ok(object.line())
}

/// A partially written object, without its closing brace.
#[derive(Debug)]
struct ObjectWriter {
    text: Vec<u8>,
}

impl ObjectWriter {
    fn open() -> Self {
        Self { text: b"{".to_vec() }
    }

    fn name(&mut self, name: &str) {
        if self.text.len() > 1 {
            self.text.push(b',');
        }
        self.text.push(b'"');
        self.text.extend_from_slice(name.as_bytes());
        self.text.extend_from_slice(b"\":");
    }

    fn member(mut self, name: &str, value: &(impl Serialize + ?Sized)) -> Result<Self, EncodeError> {
        self.name(name);
        json::append(&mut self.text, value)?;
        Ok(self)
    }

    fn unless_null(mut self, name: &str, value: &(impl Serialize + ?Sized)) -> Result<Self, EncodeError> {
        let before = self.text.len();
        self.name(name);
        let from = self.text.len();
        json::append(&mut self.text, value)?;
        if self.text[from..] == *b"null" {
            self.text.truncate(before);
        }
        Ok(self)
    }

    fn close(mut self) -> Vec<u8> {
        self.text.push(b'}');
        self.text
    }

    fn line(self) -> EncodedLine {
        let mut line = self.close();
        flatten(&mut line);
        line.push(b'\n');
        line
    }
}

/// Raw JSON may contain line breaks. In JSON they are only white space: inside strings they are escaped.
fn flatten(text: &mut [u8]) {
    let breaks: Vec<usize> = memchr2_iter(b'\n', b'\r', text).collect();
    for at in breaks {
        text[at] = b' ';
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::value::RawValue;

    use super::*;

    #[derive(Serialize)]
    struct Params<'a> {
        text: &'a str,
        not_there: Option<u8>,
    }

    fn check(line: Result<EncodedLine, EncodeError>, expected: &str) {
        assert_eq!(String::from_utf8(line.unwrap()).unwrap(), format!("{expected}\n"));
    }

    #[test]
    fn writes_each_kind() {
        let params = Params { text: "a\n\"b\"", not_there: None };
        check(
            request(&Id::from(0), "a/b", &params),
            r#"{"id":0,"method":"a/b","params":{"text":"a\n\"b\"","not_there":null}}"#,
        );
        check(
            traced_request(&Id::from(0), "a/b", &[1], &Some(["t"])),
            r#"{"id":0,"method":"a/b","params":[1],"trace":["t"]}"#,
        );
        check(
            notification("a/b", &params),
            r#"{"method":"a/b","params":{"text":"a\n\"b\"","not_there":null}}"#,
        );
        check(response(&Id::from("x"), &[1, 2]), r#"{"id":"x","result":[1,2]}"#);
        check(
            error(Some(&Id::from(1)), -32600, "no", &[1]),
            r#"{"id":1,"error":{"code":-32600,"message":"no","data":[1]}}"#,
        );
    }

    #[test]
    fn leaves_out_null_members() {
        check(request(&Id::from(0), "m", &()), r#"{"id":0,"method":"m"}"#);
        check(traced_request(&Id::from(0), "m", &(), &None::<u8>), r#"{"id":0,"method":"m"}"#);
        check(notification("m", &None::<Params<'_>>), r#"{"method":"m"}"#);
        check(notification("m", ":null"), r#"{"method":"m","params":":null"}"#);
        check(response(&Id::from(0), &()), r#"{"id":0,"result":null}"#);
        check(error(None, -32700, "no", &()), r#"{"id":null,"error":{"code":-32700,"message":"no"}}"#);
    }

    #[test]
    fn a_message_with_raw_json_is_one_line() {
        let raw = RawValue::from_string("{\r\n  \"a\": \"b\\n\"\n}".to_owned()).unwrap();
        check(response(&Id::from(0), &raw), r#"{"id":0,"result":{    "a": "b\n" }}"#);
    }

    #[test]
    fn reports_values_that_json_cannot_represent() {
        assert!(notification("m", &BTreeMap::from([((1, 2), 3)])).is_err());
    }
}
