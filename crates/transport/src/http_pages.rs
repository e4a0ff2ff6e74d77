//! Answers to plain HTTP requests on a websocket port: the console, to whoever asks for a file of it. A plain function
//! over the path; nothing of a request but its path is looked at here.

use bytes::Bytes;
use console::ConsoleFile;
use http_body_util::Full;
use hyper::Response;
use hyper::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, SEC_WEBSOCKET_PROTOCOL,
};

/// The subprotocol that the console offers and that is answered to it.
pub const CONSOLE_PROTOCOL: &str = "oarlock";
/// A page cannot set `Authorization`: its token comes as a second subprotocol, in base64url after this.
const TOKEN_PREFIX: &str = "oarlock.bearer.";

/// The words of `Sec-WebSocket-Protocol`.
fn offered(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let values = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim)
}

/// Whether an upgrade comes from the console. Its browser closes the websocket unless the subprotocol is answered.
pub fn is_console(headers: &HeaderMap) -> bool {
    offered(headers).any(|word| word == CONSOLE_PROTOCOL)
}

/// The console's token, as an `Authorization` header would carry it.
pub fn console_token(headers: &HeaderMap) -> Option<Vec<u8>> {
    use base64::Engine as _;
    let encoded = offered(headers).find_map(|word| word.strip_prefix(TOKEN_PREFIX))?;
    let token = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(encoded).ok()?;
    Some([b"Bearer ", token.as_slice()].concat())
}

pub fn response(file: &'static ConsoleFile, is_head: bool) -> Response<Full<Bytes>> {
    let body = if is_head { Bytes::new() } else { Bytes::from_static(file.gzip) };
    let mut response = Response::new(Full::new(body));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(file.content_type));
    headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(file.cache_control()));
    for (name, value) in console::HEADERS {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    response
}
