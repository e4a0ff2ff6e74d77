//! Which requests get through the bridge. Decided by the head alone, before a byte of the body is read.

use base64::Engine as _;
use hyper::header::{self, HeaderMap};
use hyper::http::request::Parts;
use hyper::{Method, Uri};
use model_http::Secret;

/// The requests that the bridge passes on to the provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProviderRoute {
    Responses,
    /// The provider's own way to shorten a history.
    Compact,
}

impl ProviderRoute {
    /// The path after `responses` in the provider's URL.
    pub(crate) fn rest(self) -> &'static str {
        match self {
            Self::Responses => "",
            Self::Compact => "/compact",
        }
    }

    fn of(uri: &Uri) -> Option<Self> {
        // Compared as it was sent: nothing is decoded and no dots are followed, so nothing can hide in it.
        let is_whole = uri.scheme().is_none() && uri.authority().is_none() && uri.query().is_none();
        match uri.path() {
            "/v1/responses" if is_whole => Some(Self::Responses),
            "/v1/responses/compact" if is_whole => Some(Self::Compact),
            _ => None,
        }
    }
}

/// Why a request does not get through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GateRefusal {
    Method,
    Path,
    Upgrade,
    Browser,
    Token,
    /// The peer of a bridge without a token may be a command, or another user.
    Stranger,
}

impl GateRefusal {
    pub(crate) fn message(self) -> &'static str {
        match self {
            Self::Method => "only POST is let through",
            Self::Path => "only /v1/responses and /v1/responses/compact are let through",
            Self::Upgrade => "the connection cannot be used for another protocol",
            Self::Browser => "requests of web pages are not let through",
            Self::Token => "the bridge's token is missing or wrong",
            Self::Stranger => {
                "without a token, the bridge is for processes of its own user that are in no sandbox or container; use \
                 --token-env"
            }
        }
    }
}

pub(crate) fn admit(head: &Parts, token: Option<&Secret>) -> Result<ProviderRoute, GateRefusal> {
    if head.method != Method::POST {
        return Err(GateRefusal::Method);
    }
    let route = ProviderRoute::of(&head.uri).ok_or(GateRefusal::Path)?;
    if head.headers.contains_key(header::UPGRADE) {
        return Err(GateRefusal::Upgrade);
    }
    // A page in a browser on this machine can reach a loopback port, but it cannot leave these out.
    if head.headers.contains_key(header::ORIGIN) || head.headers.contains_key("sec-fetch-site") {
        return Err(GateRefusal::Browser);
    }
    match token {
        Some(token) if !presents(&head.headers, token) => Err(GateRefusal::Token),
        _ => Ok(route),
    }
}

/// As a bearer token, or as the password of basic authentication, which is what a URL can carry.
fn presents(headers: &HeaderMap, token: &Secret) -> bool {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return false };
    let Some((scheme, presented)) = value.to_str().ok().and_then(|value| value.split_once(' ')) else {
        return false;
    };
    if scheme.eq_ignore_ascii_case("bearer") {
        return is_same(presented.trim().as_bytes(), token);
    }
    let Ok(pair) = base64::prelude::BASE64_STANDARD.decode(presented.trim()) else { return false };
    let password = pair.iter().position(|byte| *byte == b':').map(|at| &pair[at + 1..]);
    scheme.eq_ignore_ascii_case("basic") && password.is_some_and(|password| is_same(password, token))
}

/// Takes as long wherever the first difference is.
fn is_same(presented: &[u8], token: &Secret) -> bool {
    let token = token.reveal().as_bytes();
    let differing = presented.iter().zip(token).fold(0, |differing, (a, b)| differing | (a ^ b));
    presented.len() == token.len() && std::hint::black_box(differing) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::Request;

    fn head(method: &str, uri: &str, headers: &[(&str, &str)]) -> Parts {
        let request = Request::builder().method(method).uri(uri);
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        request.body(()).expect("a request").into_parts().0
    }

    #[test]
    fn two_paths_get_through_as_they_are_written_and_nothing_else() {
        let cases = [
            ("/v1/responses", Ok(ProviderRoute::Responses)),
            ("/v1/responses/compact", Ok(ProviderRoute::Compact)),
            ("/v1/responses/", Err(GateRefusal::Path)),
            ("/v1/responses?x=1", Err(GateRefusal::Path)),
            ("/v1/responses/../models", Err(GateRefusal::Path)),
            ("/v1/responses/%2e%2e/models", Err(GateRefusal::Path)),
            ("/v1/%72esponses", Err(GateRefusal::Path)),
            ("//v1/responses", Err(GateRefusal::Path)),
            ("/V1/responses", Err(GateRefusal::Path)),
            ("/v1/responses/compact/x", Err(GateRefusal::Path)),
            ("/v1/models", Err(GateRefusal::Path)),
            ("*", Err(GateRefusal::Path)),
            ("http://elsewhere/v1/responses", Err(GateRefusal::Path)),
        ];
        for (uri, expected) in cases {
            assert_eq!(admit(&head("POST", uri, &[]), None), expected, "{uri}");
        }
    }

    #[test]
    fn other_methods_protocols_and_web_pages_are_refused() {
        for method in ["GET", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "post"] {
            assert_eq!(
                admit(&head(method, "/v1/responses", &[]), None),
                Err(GateRefusal::Method),
                "{method}"
            );
        }
        let with = |name, value| admit(&head("POST", "/v1/responses", &[(name, value)]), None);
        assert_eq!(with("upgrade", "websocket"), Err(GateRefusal::Upgrade));
        assert_eq!(with("origin", "http://127.0.0.1:1"), Err(GateRefusal::Browser));
        assert_eq!(with("sec-fetch-site", "same-origin"), Err(GateRefusal::Browser));
    }

    #[test]
    fn a_token_has_to_be_presented_once_and_whole() {
        let token = Secret::new("tok-planted");
        let cases: &[(&[(&str, &str)], bool)] = &[
            (&[("authorization", "Bearer tok-planted")], true),
            (&[("authorization", "bearer  tok-planted ")], true),
            // x:tok-planted
            (&[("authorization", "Basic eDp0b2stcGxhbnRlZA==")], true),
            (&[], false),
            (&[("authorization", "Bearer tok-plante")], false),
            (&[("authorization", "Bearer tok-planted2")], false),
            (&[("authorization", "Bearer ")], false),
            (&[("authorization", "tok-planted")], false),
            (&[("authorization", "Basic dG9rLXBsYW50ZWQ=")], false),
            (&[("authorization", "Digest eDp0b2stcGxhbnRlZA==")], false),
            (&[("authorization", "Bearer tok-planted"), ("authorization", "Bearer other")], false),
        ];
        for (headers, admitted) in cases {
            let result = admit(&head("POST", "/v1/responses", headers), Some(&token));
            assert_eq!(
                result,
                if *admitted { Ok(ProviderRoute::Responses) } else { Err(GateRefusal::Token) },
                "{headers:?}"
            );
        }
    }
}
