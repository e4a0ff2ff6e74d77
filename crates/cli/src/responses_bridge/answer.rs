//! What the bridge says in its own name: always a short JSON error, like the provider's own.

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::header::{self, HeaderValue};
use hyper::{Response, StatusCode};
use serde_json::json;

pub(crate) type Answer = Response<UnsyncBoxBody<Bytes, hyper::Error>>;

pub(crate) fn error(status: StatusCode, code: &str, message: &str) -> Answer {
    let error = json!({ "error": { "message": message, "type": "bridge_error", "code": code } });
    let mut answer = Response::new(whole(error.to_string().into()));
    *answer.status_mut() = status;
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

pub(crate) fn whole(body: Bytes) -> UnsyncBoxBody<Bytes, hyper::Error> {
    Full::new(body).map_err(|never| match never {}).boxed_unsync()
}
