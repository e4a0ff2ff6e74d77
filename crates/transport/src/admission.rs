//! The answer to an HTTP request: a health answer, a file of the console, a websocket, or a refusal. A plain function
//! over the head of the request.

use std::net::IpAddr;

use access::{TokenHolder, WsAuth};
use console::ConsoleFile;
use hyper::header::{
    AUTHORIZATION, CONNECTION, HOST, HeaderMap, HeaderName, ORIGIN, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION,
    UPGRADE,
};
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::http_pages::{console_token, is_console};

/// The connections that are let in.
#[derive(Debug)]
pub struct Gatekeeper<'a> {
    pub auth: &'a WsAuth,
    /// The port is open to this machine alone.
    pub is_loopback: bool,
    /// Whoever started the server wants everybody to use it without a token.
    pub is_for_all: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Admission {
    /// A page about this server.
    Status(StatusPage),
    /// A file of the console, or only its head.
    Page {
        file: &'static ConsoleFile,
        is_head: bool,
    },
    Upgrade(UpgradeAnswer),
    Refused(StatusCode, &'static str),
}

/// The headers that open a websocket.
#[derive(Debug, PartialEq, Eq)]
pub struct UpgradeAnswer {
    /// `Sec-WebSocket-Accept`
    pub accept: String,
    /// The console's subprotocol was offered and must be answered.
    pub is_console: bool,
    /// The name of the caller, where tokens have names.
    pub holder: Option<TokenHolder>,
}

/// The pages for those who watch the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusPage {
    /// The process answers.
    Health,
    /// It can do its work. Why it cannot is for those who have the token.
    Ready { tells_why: bool },
    /// Numbers for Prometheus.
    Metrics,
}

impl Gatekeeper<'_> {
    pub fn admit(&self, request: &Parts) -> Admission {
        // Browsers send it, and no page but the console has any business here.
        if request.headers.contains_key(ORIGIN) && !self.is_own_page(request) {
            return Admission::Refused(StatusCode::FORBIDDEN, "");
        }
        // A page's own name that was made to point here shows in the `Host` header.
        if self.is_loopback && !names_this_machine(request) {
            return Admission::Refused(StatusCode::FORBIDDEN, "the host is not this machine");
        }
        let authorization = request.headers.get(AUTHORIZATION).map(|value| value.as_bytes());
        let page = match request.uri.path() {
            "/healthz" => Some(StatusPage::Health),
            "/readyz" => Some(StatusPage::Ready { tells_why: self.auth.check(authorization).is_ok() }),
            "/metrics" => Some(StatusPage::Metrics),
            _ => None,
        };
        if let Some(page) =
            page.filter(|page| *page != StatusPage::Metrics || websocket_key(request).is_none())
        {
            let is_known = page != StatusPage::Metrics || self.auth.check(authorization).is_ok();
            return match request.method {
                Method::GET | Method::HEAD if is_known => Admission::Status(page),
                Method::GET | Method::HEAD => {
                    Admission::Refused(StatusCode::UNAUTHORIZED, "a token is needed")
                }
                _ => Admission::Refused(StatusCode::METHOD_NOT_ALLOWED, ""),
            };
        }
        let Some(key) = websocket_key(request) else {
            // An upgrade that is not well-formed is a mistake of a client, which would not know what to do with a page.
            let page = match request.headers.contains_key(UPGRADE) {
                true => None,
                false => console::find(request.uri.path()),
            };
            return match (page, &request.method) {
                (Some(file), &Method::GET) => Admission::Page { file, is_head: false },
                (Some(file), &Method::HEAD) => Admission::Page { file, is_head: true },
                _ => Admission::Refused(StatusCode::BAD_REQUEST, "expected a websocket upgrade"),
            };
        };
        let console = console_token(&request.headers);
        match self.auth.check(authorization.or(console.as_deref())) {
            Ok(holder) => Admission::Upgrade(UpgradeAnswer {
                accept: derive_accept_key(key),
                is_console: is_console(&request.headers),
                holder,
            }),
            Err(text) => Admission::Refused(StatusCode::UNAUTHORIZED, text),
        }
    }

    /// The page came from this very port: its `Origin` is the `Host` that the browser asks for. Another page can make its
    /// own name point here, and then both agree; on a port that other machines reach, only a token tells them apart.
    fn is_own_page(&self, request: &Parts) -> bool {
        let only = |name: HeaderName| {
            let mut values = request.headers.get_all(name).iter();
            values.next().filter(|_| values.next().is_none())?.to_str().ok()
        };
        let (Some(origin), Some(host)) = (only(ORIGIN), only(HOST)) else { return false };
        let name = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        name.is_some_and(|name| !name.is_empty() && name.eq_ignore_ascii_case(host))
            && (self.is_loopback || !self.auth.is_open())
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
        Gatekeeper { auth: &WsAuth::default(), is_loopback, is_for_all: false }.admit(&parts)
    }

    const UPGRADE_HEADERS: &str = "Connection: keep-alive, Upgrade | Upgrade: WebSocket | Sec-WebSocket-Version: 13 \
                                   | Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==";

    fn refused(status: StatusCode) -> impl Fn(Admission) -> bool {
        move |admission| matches!(admission, Admission::Refused(given, _) if given == status)
    }

    #[test]
    fn a_websocket_is_let_in_on_any_path() {
        let accept = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=".to_owned();
        let expected = Admission::Upgrade(UpgradeAnswer { accept, is_console: false, holder: None });
        for path in ["/", "/any/where?x=1"] {
            assert_eq!(admit(&format!("GET {path} | Host: 127.0.0.1:1 | {UPGRADE_HEADERS}"), true), expected);
        }
    }

    #[test]
    fn a_page_is_not() {
        let forbidden = refused(StatusCode::FORBIDDEN);
        for origin in
            ["http://evil", "null", "http://localhost", "http://", "ws://localhost:9", "localhost:9"]
        {
            for path in ["/", "/readyz", "/healthz"] {
                let head = format!("GET {path} | Host: localhost:9 | Origin: {origin} | {UPGRADE_HEADERS}");
                assert!(forbidden(admit(&head, true)), "{head}");
                assert!(forbidden(admit(&head, false)), "{head}");
            }
        }
    }

    /// Its own page is. Where other machines reach the port, a name of another page may point here.
    #[test]
    fn the_console_is() {
        let forbidden = refused(StatusCode::FORBIDDEN);
        for (host, origin) in [("localhost:9", "http://LocalHost:9"), ("127.0.0.1:9", "http://127.0.0.1:9")] {
            let head = format!("GET / | Host: {host} | Origin: {origin} | {UPGRADE_HEADERS}");
            assert!(matches!(admit(&head, true), Admission::Upgrade(_)), "{head}");
            assert!(forbidden(admit(&head, false)), "{head}");
            let twice = format!("{head} | Origin: http://evil");
            assert!(forbidden(admit(&twice, true)), "{twice}");
        }
        let rebound =
            format!("GET / | Host: evil.example:9 | Origin: http://evil.example:9 | {UPGRADE_HEADERS}");
        assert!(forbidden(admit(&rebound, true)));
        let offer = "Sec-WebSocket-Protocol: oarlock, oarlock.bearer.c2VzYW1l";
        let head =
            format!("GET / | Host: localhost | Origin: http://localhost | {offer} | {UPGRADE_HEADERS}");
        assert!(matches!(admit(&head, true), Admission::Upgrade(UpgradeAnswer { is_console: true, .. })));
    }

    #[test]
    fn the_console_is_read_without_a_token() {
        for (method, head_alone) in [("GET", false), ("HEAD", true)] {
            let admitted = admit(&format!("{method} / | Host: localhost"), true);
            assert!(
                matches!(admitted, Admission::Page { file, is_head } if file.path == "/" && is_head == head_alone)
            );
        }
        assert!(refused(StatusCode::BAD_REQUEST)(admit("POST / | Host: localhost", true)));
        assert!(refused(StatusCode::FORBIDDEN)(admit("GET / | Host: evil", true)));
    }

    #[test]
    fn the_token_of_the_console_is_a_subprotocol() {
        let headers = |offer: &str| {
            let mut headers = HeaderMap::new();
            let value = hyper::header::HeaderValue::from_str(offer).expect("a value");
            headers.insert(hyper::header::SEC_WEBSOCKET_PROTOCOL, value);
            headers
        };
        let token = |offer: &str| console_token(&headers(offer));
        assert_eq!(token("oarlock, oarlock.bearer.c2VzYW1l").as_deref(), Some(b"Bearer sesame".as_slice()));
        assert_eq!(token("oarlock, oarlock.bearer.??"), None);
        assert_eq!(token("oarlock"), None);
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
            assert_eq!(matches!(admit(&head, true), Admission::Upgrade(..)), is_ours, "{host}");
            assert!(matches!(admit(&head, false), Admission::Upgrade(..)), "{host}");
        }
        let forbidden = refused(StatusCode::FORBIDDEN);
        assert!(forbidden(admit("GET /readyz", true)));
        assert!(forbidden(admit(&format!("GET / | Host: localhost | Host: evil | {UPGRADE_HEADERS}"), true)));
        assert!(forbidden(admit(&format!("GET http://evil/ | Host: localhost | {UPGRADE_HEADERS}"), true)));
    }

    #[test]
    fn health_is_read_and_not_written() {
        for (path, page) in [
            ("/readyz", StatusPage::Ready { tells_why: true }),
            ("/healthz", StatusPage::Health),
            ("/metrics", StatusPage::Metrics),
        ] {
            assert_eq!(admit(&format!("GET {path} | Host: localhost"), true), Admission::Status(page));
            assert_eq!(admit(&format!("HEAD {path} | Host: localhost"), true), Admission::Status(page));
            let posted = admit(&format!("POST {path} | Host: localhost"), true);
            assert!(refused(StatusCode::METHOD_NOT_ALLOWED)(posted));
        }
    }

    #[test]
    fn plain_http_is_a_bad_request() {
        let bad = refused(StatusCode::BAD_REQUEST);
        assert!(bad(admit("GET /other | Host: localhost", true)));
        assert!(bad(admit(&format!("POST / | Host: localhost | {UPGRADE_HEADERS}"), true)));
        let old = UPGRADE_HEADERS.replace("13", "8");
        assert!(bad(admit(&format!("GET / | Host: localhost | {old}"), true)));
    }
}
