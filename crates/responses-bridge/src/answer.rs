//! Errors of the bridge itself: short JSON, like the provider's own.

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::header::{self, HeaderValue};
use hyper::{Response, StatusCode};
use serde_json::{Value, json};

pub(crate) type BridgeResponse = Response<UnsyncBoxBody<Bytes, http::HttpError>>;

pub(crate) fn error(status: StatusCode, code: &str, message: &str) -> BridgeResponse {
    let error = json!({ "error": { "message": message, "type": "bridge_error", "code": code } });
    json_document(status, &error)
}

pub(crate) fn json_document(status: StatusCode, document: &Value) -> BridgeResponse {
    let mut answer = Response::new(whole(document.to_string().into()));
    *answer.status_mut() = status;
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

pub(crate) fn whole(body: Bytes) -> UnsyncBoxBody<Bytes, http::HttpError> {
    Full::new(body).map_err(|never| match never {}).boxed_unsync()
}
