//! The answer to an HTTP request: a health answer, a websocket, or a refusal. A plain function over the head
//! of the request.

use std::net::IpAddr;

use hyper::header::{
    AUTHORIZATION, CONNECTION, HOST, HeaderMap, HeaderName, ORIGIN, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION,
    UPGRADE,
};
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use super::auth::WsAuth;

/// Who is let in.
#[derive(Debug)]
pub(crate) struct Gatekeeper<'a> {
    pub(crate) auth: &'a WsAuth,
    /// The port is open to this machine alone.
    pub(crate) is_loopback: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    Healthy,
    /// A websocket, with the value of `Sec-WebSocket-Accept`.
    Upgrade(String),
    Refused(StatusCode, &'static str),
}

impl Gatekeeper<'_> {
    pub(crate) fn admit(&self, request: &Parts) -> Admission {
        // Browsers send it, and no page has any business here.
        if request.headers.contains_key(ORIGIN) {
            return Admission::Refused(StatusCode::FORBIDDEN, "");
        }
        // A page's own name that was made to point here shows in the `Host` header.
        if self.is_loopback && !names_this_machine(request) {
            return Admission::Refused(StatusCode::FORBIDDEN, "the host is not this machine");
        }
        if matches!(request.uri.path(), "/readyz" | "/healthz") {
            return match request.method {
                Method::GET | Method::HEAD => Admission::Healthy,
                _ => Admission::Refused(StatusCode::METHOD_NOT_ALLOWED, ""),
            };
        }
        let Some(key) = websocket_key(request) else {
            return Admission::Refused(StatusCode::BAD_REQUEST, "expected a websocket upgrade");
        };
        match self.auth.check(request.headers.get(AUTHORIZATION).map(|value| value.as_bytes())) {
            Ok(()) => Admission::Upgrade(derive_accept_key(key)),
            Err(text) => Admission::Refused(StatusCode::UNAUTHORIZED, text),
        }
    }
}

fn names_this_machine(request: &Parts) -> bool {
    let mut hosts = request.headers.get_all(HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
    host.to_str().is_ok_and(is_loopback_host) && request.uri.host().is_none_or(is_loopback_host)
}

fn is_loopback_host(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map_or("", |(address, _)| address),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

/// The key of a well-formed upgrade to a websocket.
fn websocket_key(request: &Parts) -> Option<&[u8]> {
    let headers = &request.headers;
    let is_upgrade = request.method == Method::GET
        && has_word(headers, &CONNECTION, "upgrade")
        && has_word(headers, &UPGRADE, "websocket")
        && headers.get(SEC_WEBSOCKET_VERSION)? == "13";
    is_upgrade.then(|| headers.get(SEC_WEBSOCKET_KEY)).flatten().map(|key| key.as_bytes())
}

fn has_word(headers: &HeaderMap, name: &HeaderName, word: &str) -> bool {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|part| part.trim().eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use hyper::Request;

    use super::*;

    fn admit(text: &str, is_loopback: bool) -> Admission {
        let mut words = text.split(" | ");
        let (method, uri) = words.next().and_then(|line| line.split_once(' ')).expect("a request line");
        let mut request = Request::builder().method(method).uri(uri);
        for header in words {
            let (name, value) = header.split_once(": ").expect("a header");
            request = request.header(name, value);
        }
        let parts = request.body(()).expect("a request").into_parts().0;
        Gatekeeper { auth: &WsAuth::default(), is_loopback }.admit(&parts)
    }

    const UPGRADE_HEADERS: &str = "Connection: keep-alive, Upgrade | Upgrade: WebSocket | Sec-WebSocket-Version: 13 \
                                   | Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==";

    fn refused(status: StatusCode) -> impl Fn(Admission) -> bool {
        move |admission| matches!(admission, Admission::Refused(given, _) if given == status)
    }

    #[test]
    fn a_websocket_is_let_in_on_any_path() {
        let expected = Admission::Upgrade("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=".to_owned());
        for path in ["/", "/any/where?x=1"] {
            assert_eq!(admit(&format!("GET {path} | Host: 127.0.0.1:1 | {UPGRADE_HEADERS}"), true), expected);
        }
    }

    #[test]
    fn a_page_is_not() {
        let forbidden = refused(StatusCode::FORBIDDEN);
        for origin in ["http://evil", "null", "http://localhost"] {
            for path in ["/", "/readyz", "/healthz"] {
                let head = format!("GET {path} | Host: localhost | Origin: {origin} | {UPGRADE_HEADERS}");
                assert!(forbidden(admit(&head, true)), "{head}");
                assert!(forbidden(admit(&head, false)), "{head}");
            }
        }
    }

    #[test]
    fn a_loopback_port_answers_to_loopback_names_only() {
        for (host, is_ours) in [
            ("localhost", true),
            ("LocalHost:8080", true),
            ("127.0.0.1", true),
            ("127.1.2.3:9", true),
            ("[::1]:9", true),
            ("[::1]", true),
            ("evil.example", false),
            ("localhost.evil.example:9", false),
            ("10.0.0.1", false),
            ("[::2]:9", false),
            ("[::1", false),
            ("", false),
        ] {
            let head = format!("GET / | Host: {host} | {UPGRADE_HEADERS}");
            assert_eq!(matches!(admit(&head, true), Admission::Upgrade(_)), is_ours, "{host}");
            assert!(matches!(admit(&head, false), Admission::Upgrade(_)), "{host}");
        }
        let forbidden = refused(StatusCode::FORBIDDEN);
        assert!(forbidden(admit("GET /readyz", true)));
        assert!(forbidden(admit(&format!("GET / | Host: localhost | Host: evil | {UPGRADE_HEADERS}"), true)));
        assert!(forbidden(admit(&format!("GET http://evil/ | Host: localhost | {UPGRADE_HEADERS}"), true)));
    }

    #[test]
    fn health_is_read_and_not_written() {
        for path in ["/readyz", "/healthz"] {
            assert_eq!(admit(&format!("GET {path} | Host: localhost"), true), Admission::Healthy);
            assert_eq!(admit(&format!("HEAD {path} | Host: localhost"), true), Admission::Healthy);
            let posted = admit(&format!("POST {path} | Host: localhost"), true);
            assert!(refused(StatusCode::METHOD_NOT_ALLOWED)(posted));
        }
    }

    #[test]
    fn plain_http_is_a_bad_request() {
        let bad = refused(StatusCode::BAD_REQUEST);
        assert!(bad(admit("GET / | Host: localhost", true)));
        assert!(bad(admit(&format!("POST / | Host: localhost | {UPGRADE_HEADERS}"), true)));
        let old = UPGRADE_HEADERS.replace("13", "8");
        assert!(bad(admit(&format!("GET / | Host: localhost | {old}"), true)));
    }
}
