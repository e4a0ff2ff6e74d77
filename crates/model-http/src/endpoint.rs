//! A prepared provider: its URL, its constant headers, and its secrets.

use std::borrow::Cow;

use base64::Engine as _;
use http::{Client, HeaderMap, HeaderName, HeaderValue, HttpBody, HttpRequest, Method, Proxy, Uri, header};
use hyper::http::uri::{Authority, Parts, PathAndQuery, Scheme};

use wires::Wire;

use crate::secret::{HIDDEN, Redactor};
use crate::{ClientOptions, Provider, ProviderError, Secret};

#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) name: String,
    /// Contains the query's values, so it must not be shown.
    pub(crate) url: Redacted<Uri>,
    /// For errors: without user name, password, and the query's values.
    pub(crate) shown_url: String,
    pub(crate) headers: HeaderMap,
    pub(crate) redactor: Redactor,
    /// Describes the source of the key, for the error when it is refused.
    pub(crate) refused_credential: String,
    wire: Wire,
}

/// Hides a value in `Debug` output.
pub(crate) struct Redacted<T>(pub(crate) T);

impl<T> std::fmt::Debug for Redacted<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(HIDDEN)
    }
}

impl Endpoint {
    pub(crate) fn new(provider: &Provider, options: &ClientOptions) -> Result<Self, ProviderError> {
        let base = Base::read(provider)?;
        let mut redactor = Redactor::default();
        let keys = [&provider.api_key, &provider.bearer_token].into_iter().flatten();
        let configured = provider.http_headers.values().chain(provider.query_params.values());
        for secret in keys.chain(configured).chain(base.query.iter().map(|(_, value)| value)) {
            redactor.add(secret);
        }
        if let Some(user_info) = &base.user_info {
            let password = user_info.reveal().split_once(':').map_or("", |(_, password)| password);
            redactor.add(user_info);
            redactor.add(&password.into());
            redactor.add(&basic(user_info).into());
        }
        let url = base.url(&provider.query_params).ok_or_else(|| base_url(provider, "is not a URL"))?;
        Ok(Self {
            name: provider.name.clone(),
            url: Redacted(url),
            shown_url: base.shown(&provider.query_params),
            headers: headers(provider, options, &base)?,
            redactor,
            refused_credential: refused_credential(provider),
            wire: provider.wire,
        })
    }

    /// Whether the provider runs on this machine.
    pub(crate) fn is_local(&self) -> bool {
        let host = self.url.0.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
        let address = host.parse::<std::net::IpAddr>();
        host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
    }

    /// A connection pool for it. Opens no connection yet.
    pub(crate) fn client(options: &ClientOptions) -> Result<Client, ProviderError> {
        let proxy = options.proxy.as_ref().map(|proxy| Proxy::new(proxy.reveal(), &options.no_proxy));
        Ok(Client::new(proxy.transpose()?))
    }

    /// The URL with an extended path.
    pub(crate) fn url_below(&self, rest: &str) -> Option<Uri> {
        let mut parts = self.url.0.clone().into_parts();
        let path = format!("{}{rest}", self.url.0.path());
        let path = with_query(&path, self.url.0.query().map(str::to_owned).into_iter());
        parts.path_and_query = Some(path.parse().ok()?);
        Uri::from_parts(parts).ok()
    }

    /// The path of the model list.
    pub(crate) fn models_path(&self) -> String {
        let path = self.url.0.path();
        let base = path.strip_suffix(self.wire.path()).unwrap_or(path);
        // The version is part of every path, except for base URLs without it on the Responses wire.
        format!("{base}/models")
    }

    /// The path of a model's description. Slashes in its name are encoded.
    pub(crate) fn model_path(&self, model: &str) -> String {
        format!("{}/{}", self.models_path(), encoded(model))
    }

    /// The same server with another path.
    pub(crate) fn url_at(&self, path: &str) -> Option<Uri> {
        let mut parts = self.url.0.clone().into_parts();
        let path = with_query(path, self.url.0.query().map(str::to_owned).into_iter());
        parts.path_and_query = Some(path.parse().ok()?);
        Uri::from_parts(parts).ok()
    }

    /// [`Self::url_at`] without secrets.
    pub(crate) fn shown_at(&self, path: &str) -> String {
        let url = &self.url.0;
        let host = url.authority().map_or("", |authority| authority.as_str());
        format!("{}://{host}{path}", url.scheme_str().unwrap_or("https"))
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        self.url.0.scheme() == Some(&Scheme::HTTPS)
    }

    pub(crate) fn request(&self, own: &HeaderMap, body: HttpBody) -> HttpRequest {
        let mut headers = self.headers.clone();
        headers.extend(own.clone());
        HttpRequest { method: Method::POST, url: self.url.0.clone(), headers, body }
    }
}

fn base_url(provider: &Provider, problem: &'static str) -> ProviderError {
    ProviderError::BaseUrl { provider: provider.id.clone(), problem }
}

/// The parts of `base_url`.
struct Base {
    scheme: Scheme,
    host: Authority,
    user_info: Option<Secret>,
    path: String,
    query: Vec<(String, Secret)>,
}

impl Base {
    fn read(provider: &Provider) -> Result<Self, ProviderError> {
        let text = provider.base_url.trim();
        let scheme = match text.split_once("://") {
            Some((scheme, _)) if scheme.eq_ignore_ascii_case("https") => Scheme::HTTPS,
            Some((scheme, _)) if scheme.eq_ignore_ascii_case("http") => Scheme::HTTP,
            _ => return Err(base_url(provider, "does not begin with https:// or http://")),
        };
        let uri: Uri = text.parse().map_err(|_| base_url(provider, "is not a URL"))?;
        let Parts { authority, path_and_query, .. } = uri.into_parts();
        let authority = authority.ok_or_else(|| base_url(provider, "names no host"))?;
        let (user_info, host) = match authority.as_str().rsplit_once('@') {
            Some((user_info, host)) => (Some(Secret::from(user_info)), host),
            None => (None, authority.as_str()),
        };
        let host = host.parse().map_err(|_| base_url(provider, "names no host"))?;
        let path = path_and_query.as_ref().map_or("", PathAndQuery::path).trim_end_matches('/');
        let query = path_and_query.as_ref().and_then(PathAndQuery::query).unwrap_or_default();
        let query = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (name.to_owned(), Secret::from(value))
        });
        let path = format!("{}{}", versioned(path, provider.wire), provider.wire.path());
        Ok(Self { scheme, host, user_info, path, query: query.collect() })
    }

    fn url(&self, more: &std::collections::BTreeMap<String, Secret>) -> Option<Uri> {
        let own = self.query.iter().map(|(name, value)| format!("{name}={}", value.reveal()));
        let more = more.iter().map(|(name, value)| format!("{}={}", encoded(name), encoded(value.reveal())));
        let path = with_query(&self.path, own.chain(more));
        let url = Uri::builder().scheme(self.scheme.clone()).authority(self.host.clone());
        url.path_and_query(path).build().ok()
    }

    fn shown(&self, more: &std::collections::BTreeMap<String, Secret>) -> String {
        let names =
            self.query.iter().map(|(name, _)| name.clone()).chain(more.keys().map(|name| encoded(name)));
        let path = with_query(&self.path, names.map(|name| format!("{name}={HIDDEN}")));
        format!("{}://{}{path}", self.scheme, self.host)
    }
}

/// The path including the version, whether it was given with the version, without it, or with the wire's path.
fn versioned(path: &str, wire: Wire) -> Cow<'_, str> {
    let path = path.strip_suffix(wire.path()).unwrap_or(path);
    let last = path.rsplit('/').next().unwrap_or_default();
    let is_version =
        last.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    match wire {
        // Bridges and proxies of this wire are used without a version too.
        Wire::Responses => Cow::Borrowed(path),
        Wire::Chat if !path.is_empty() => Cow::Borrowed(path),
        Wire::Messages if is_version => Cow::Borrowed(path),
        Wire::Chat | Wire::Messages => Cow::Owned(format!("{path}/v1")),
    }
}

fn with_query(path: &str, pairs: impl Iterator<Item = String>) -> String {
    let pairs = Vec::from_iter(pairs);
    if pairs.is_empty() { path.to_owned() } else { format!("{path}?{}", pairs.join("&")) }
}

/// Percent-encodes all but the unreserved characters.
fn encoded(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            shown.push(char::from(byte));
        } else {
            shown.push_str(&format!("%{byte:02X}"));
        }
    }
    shown
}

/// Ours come last: a configured header may add to them but not replace them.
fn headers(provider: &Provider, options: &ClientOptions, base: &Base) -> Result<HeaderMap, ProviderError> {
    let mut headers = HeaderMap::new();
    for (name, value) in &provider.http_headers {
        let header = (name.parse::<HeaderName>(), HeaderValue::from_str(value.reveal()));
        if let (Ok(name), Ok(mut value)) = header {
            value.set_sensitive(true);
            headers.insert(name, value);
        } else {
            tracing::warn!(
                provider = provider.id,
                header = name,
                "a configured header is not valid and is left out"
            );
        }
    }
    let identity =
        |field, text: &str| HeaderValue::from_str(text).map_err(|_| ProviderError::Identity { field });
    headers.insert("originator", identity("originator", &options.originator)?);
    headers.insert(header::USER_AGENT, identity("user agent", &options.user_agent)?);
    headers.insert(header::ACCEPT, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if provider.wire == Wire::Messages {
        headers.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
    }
    if let Some((name, credential)) = credential(provider, base)? {
        headers.insert(name, credential);
    }
    Ok(headers)
}

/// Providers of the messages wire that take the key as a bearer token.
const BEARER_ON_MESSAGES: &[&str] = &["fireworks", "bedrock"];

/// A key takes precedence over a token, and that over the URL's credentials. Never two of them.
fn credential(provider: &Provider, base: &Base) -> Result<Option<(HeaderName, HeaderValue)>, ProviderError> {
    let invalid = |field| ProviderError::Credential { provider: provider.id.clone(), field };
    let header = |name, field, text: &str| {
        let mut value = HeaderValue::from_str(text).map_err(|_| invalid(field))?;
        value.set_sensitive(true);
        Ok(Some((name, value)))
    };
    if let Some(key) = &provider.api_key {
        let is_bare = provider.wire == Wire::Messages && !BEARER_ON_MESSAGES.contains(&provider.id.as_str());
        return match is_bare {
            true => header(HeaderName::from_static("x-api-key"), "the key", key.reveal()),
            false => header(header::AUTHORIZATION, "the key", &format!("Bearer {}", key.reveal())),
        };
    }
    if let Some(token) = &provider.bearer_token {
        return header(header::AUTHORIZATION, "bearer_token", &format!("Bearer {}", token.reveal()));
    }
    match &base.user_info {
        Some(user_info) => header(header::AUTHORIZATION, "base_url", &format!("Basic {}", basic(user_info))),
        None => Ok(None),
    }
}

/// The source of a refused key.
fn refused_credential(provider: &Provider) -> String {
    let has_header = |name: &str| provider.http_headers.keys().any(|key| key.eq_ignore_ascii_case(name));
    let is_sent = provider.base_url.contains('@') || has_header("authorization") || has_header("x-api-key");
    match (&provider.api_key, &provider.key_variable, &provider.bearer_token) {
        (Some(_), Some(variable), _) => format!("the provider refused the key in {variable}"),
        (Some(_), None, _) => "the provider refused the key".to_owned(),
        (None, _, Some(_)) => "the provider refused the token".to_owned(),
        _ if is_sent => "the provider refused the key".to_owned(),
        (None, Some(variable), None) => format!("the provider wants a key in {variable}"),
        (None, None, None) => "the provider wants a key; name its variable with env_key".to_owned(),
    }
}

fn basic(user_info: &Secret) -> String {
    base64::prelude::BASE64_STANDARD.encode(user_info.reveal())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(base_url: &str, change: impl FnOnce(&mut Provider)) -> Result<Endpoint, ProviderError> {
        let mut provider = Provider::new("p", base_url);
        change(&mut provider);
        Endpoint::new(&provider, &ClientOptions::new("oarlock", "oarlock/1"))
    }

    #[track_caller]
    fn check(base_url: &str, params: &[(&str, &str)], sent: &str, shown: &str) {
        let pairs = params.iter().map(|(name, value)| ((*name).to_owned(), Secret::from(*value)));
        let endpoint = endpoint(base_url, |provider| provider.query_params = pairs.collect()).unwrap();
        assert_eq!((endpoint.url.0.to_string().as_str(), endpoint.shown_url.as_str()), (sent, shown));
    }

    #[test]
    fn urls_are_put_together_and_shown_without_secrets() {
        check("https://host/v1/", &[], "https://host/v1/responses", "https://host/v1/responses");
        check("http://[::1]:8080", &[], "http://[::1]:8080/responses", "http://[::1]:8080/responses");
        check(
            "https://me:hunter2@host/v1?key=a%20b",
            &[("api version", "2024&x")],
            "https://host/v1/responses?key=a%20b&api%20version=2024%26x",
            "https://host/v1/responses?key=***&api%20version=***",
        );
    }

    #[test]
    fn a_base_url_is_taken_with_or_without_its_version() {
        let url = |wire, base_url| {
            let endpoint = endpoint(base_url, |provider| provider.wire = wire).unwrap();
            endpoint.url.0.to_string()
        };
        for base in ["https://host", "https://host/", "https://host/v1", "https://host/v1/chat/completions"] {
            assert_eq!(url(Wire::Chat, base), "https://host/v1/chat/completions", "{base}");
        }
        assert_eq!(
            url(Wire::Chat, "https://host/v1beta/openai"),
            "https://host/v1beta/openai/chat/completions"
        );
        for base in
            ["https://host/anthropic", "https://host/anthropic/v1/", "https://host/anthropic/v1/messages"]
        {
            assert_eq!(url(Wire::Messages, base), "https://host/anthropic/v1/messages", "{base}");
        }
    }

    #[test]
    fn a_key_of_the_messages_wire_has_a_header_of_its_own() {
        let headers = |id: &str, change: fn(&mut Provider)| {
            let made = endpoint("https://host", |provider| {
                (provider.wire, provider.id) = (Wire::Messages, id.to_owned());
                change(provider);
            });
            made.unwrap().headers
        };
        let keyed = headers("anthropic", |provider| {
            provider.api_key = Some("planted-key".into());
            provider.bearer_token = Some("token".into());
        });
        assert_eq!(
            (&keyed["x-api-key"], &keyed["anthropic-version"]),
            (&"planted-key".parse().unwrap(), &"2023-06-01".parse().unwrap())
        );
        assert!(!keyed.contains_key(header::AUTHORIZATION) && keyed["x-api-key"].is_sensitive());
        let bearer = headers("fireworks", |provider| provider.api_key = Some("key".into()));
        assert!(bearer[header::AUTHORIZATION] == "Bearer key" && !bearer.contains_key("x-api-key"));
    }

    #[test]
    fn what_goes_below_the_path_goes_before_the_query() {
        let below = |url, rest| endpoint(url, |_| {}).unwrap().url_below(rest).map(|url| url.to_string());
        assert_eq!(below("https://host/v1", ""), Some("https://host/v1/responses".to_owned()));
        let expected = "https://host/v1/responses/compact?key=a%20b";
        assert_eq!(below("https://host/v1?key=a%20b", "/compact"), Some(expected.to_owned()));
        assert_eq!(below("https://host", " x"), None);
    }

    #[track_caller]
    fn check_error(base_url: &str, key: &str, expected: &str) {
        let result = endpoint(base_url, |provider| provider.api_key = Some(key.into()));
        assert_eq!(result.unwrap_err().to_string(), expected);
    }

    #[test]
    fn what_cannot_work_is_refused_before_use() {
        let advice = "; write it like https://host/v1";
        check_error(
            "host/v1",
            "k",
            &format!("base_url of provider `p` does not begin with https:// or http://{advice}"),
        );
        check_error(
            "ftp://host",
            "k",
            &format!("base_url of provider `p` does not begin with https:// or http://{advice}"),
        );
        check_error("https://not a url", "k", &format!("base_url of provider `p` is not a URL{advice}"));
        check_error(
            "https://host",
            "planted\nkey",
            "the key of provider `p` has characters a header cannot carry; is a line break in it?",
        );
    }

    #[test]
    fn credentials_have_an_order() {
        let authorization = |change: fn(&mut Provider)| {
            let endpoint = endpoint("https://me:hunter2@host", change).unwrap();
            endpoint.headers[header::AUTHORIZATION].to_str().unwrap().to_owned()
        };
        assert_eq!(authorization(|_| {}), "Basic bWU6aHVudGVyMg==");
        assert_eq!(authorization(|provider| provider.bearer_token = Some("token".into())), "Bearer token");
        assert_eq!(
            authorization(|provider| {
                provider.bearer_token = Some("token".into());
                provider.api_key = Some("key".into());
            }),
            "Bearer key"
        );
    }

    #[test]
    fn configured_headers_are_sent_and_bad_ones_left_out() {
        let endpoint = endpoint("https://host", |provider| {
            for (name, value) in
                [("X-Extra", "planted"), ("bad name", "x"), ("x-bad", "a\nb"), ("Accept", "text/html")]
            {
                provider.http_headers.insert(name.to_owned(), value.into());
            }
        });
        let endpoint = endpoint.unwrap();
        assert_eq!(endpoint.headers["x-extra"], "planted");
        assert_eq!(endpoint.headers[header::ACCEPT], "text/event-stream");
        assert_eq!(endpoint.headers.len(), 5);
        assert!(!format!("{endpoint:?}").contains("planted"));
    }

    #[test]
    fn this_machine_is_recognised() {
        let local = |url| endpoint(url, |_| {}).unwrap().is_local();
        assert!(local("http://localhost:1") && local("http://127.0.0.1:1/v1") && local("http://[::1]:1"));
        assert!(!local("https://example.com") && !local("http://10.0.0.1"));
    }
}
