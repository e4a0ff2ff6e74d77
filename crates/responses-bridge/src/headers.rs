//! Which headers go through the bridge, either way.

use hyper::header::{self, HeaderMap, HeaderName};

/// Request headers that are passed on to the provider. Those that choose the charged account are not among them.
const REQUEST: &[&str] = &[
    "accept",
    "content-encoding",
    "content-type",
    "conversation_id",
    "idempotency-key",
    "openai-beta",
    "originator",
    "session_id",
    "traceparent",
    "tracestate",
    "user-agent",
    "version",
    "x-client-request-id",
];
const REQUEST_PREFIXES: &[&str] = &["x-codex-", "x-openai-"];

/// About one connection, and so never of use on the next; then what hyper writes itself, and what is between the
/// provider and the host.
const NOT_ANSWERED: &[&str] = &[
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "content-length",
    "alt-svc",
    "set-cookie",
    "strict-transport-security",
    "www-authenticate",
];

pub(crate) fn of_request(headers: &HeaderMap) -> HeaderMap {
    let of_connection = named_by_connection(headers);
    let is_allowed = |name: &HeaderName| {
        let name = name.as_str();
        REQUEST.contains(&name) || REQUEST_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
    };
    picked(headers, |name| is_allowed(name) && !of_connection.contains(name))
}

pub(crate) fn of_answer(headers: &HeaderMap) -> HeaderMap {
    let of_connection = named_by_connection(headers);
    picked(headers, |name| !NOT_ANSWERED.contains(&name.as_str()) && !of_connection.contains(name))
}

fn picked(headers: &HeaderMap, is_wanted: impl Fn(&HeaderName) -> bool) -> HeaderMap {
    let wanted = headers.iter().filter(|(name, _)| is_wanted(name));
    // One by one: a header that is there twice stays so.
    wanted.fold(HeaderMap::new(), |mut picked, (name, value)| {
        picked.append(name, value.clone());
        picked
    })
}

/// `Connection` names further headers that are about the connection only.
fn named_by_connection(headers: &HeaderMap) -> Vec<HeaderName> {
    let values = headers.get_all(header::CONNECTION).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).filter_map(|name| name.trim().parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().expect("a value"));
        }
        headers
    }

    fn names(headers: &HeaderMap) -> Vec<&str> {
        headers.iter().map(|(name, _)| name.as_str()).collect()
    }

    #[test]
    fn a_request_keeps_what_is_listed() {
        let sent = headers(&[
            ("host", "x"),
            ("authorization", "Bearer theirs"),
            ("cookie", "a=b"),
            ("openai-organization", "another"),
            ("x-forwarded-for", "x"),
            ("content-length", "3"),
            ("connection", "x-codex-secret, close"),
            ("x-codex-secret", "1"),
            ("content-type", "application/json"),
            ("x-codex-turn-state", "2"),
            ("session_id", "3"),
        ]);
        assert_eq!(names(&of_request(&sent)), ["content-type", "x-codex-turn-state", "session_id"]);
    }

    #[test]
    fn an_answer_keeps_all_but_what_is_about_its_connection() {
        let sent = headers(&[
            ("content-type", "text/event-stream"),
            ("transfer-encoding", "chunked"),
            ("connection", "x-hop"),
            ("x-hop", "1"),
            ("set-cookie", "a=b"),
            ("x-ratelimit-remaining", "4"),
            ("retry-after", "7"),
        ]);
        assert_eq!(names(&of_answer(&sent)), ["content-type", "x-ratelimit-remaining", "retry-after"]);
    }
}
