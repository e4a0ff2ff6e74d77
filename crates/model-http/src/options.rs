//! The caller's options. The caller reads files and environment variables.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use wires::{Thinking, Wire};

use crate::Secret;

/// A provider's URL, credentials and limits. Every field is a key of `[model_providers.<id>]`.
#[derive(Clone)]
pub struct Provider {
    pub id: String,
    /// The display name.
    pub name: String,
    /// Ends with the version; requests add the wire's path.
    pub base_url: String,
    pub wire: Wire,
    /// The value of the variable that `env_key` names.
    pub api_key: Option<Secret>,
    /// The name of that variable, for the error when the key is refused.
    pub key_variable: Option<String>,
    /// Used without a key: a configured or stored token.
    pub bearer_token: Option<Secret>,
    /// Sent with every request. Kept as secrets, because some providers take their key in one.
    pub http_headers: BTreeMap<String, Secret>,
    pub query_params: BTreeMap<String, Secret>,
    /// Finds calls in the text, on the chat wire.
    pub text_tool_calls: bool,
    /// Limit of one answer, in tokens.
    pub max_output_tokens: Option<u32>,
    /// How thinking is requested on the messages wire. `None`: by the model's name.
    pub thinking: Option<Thinking>,
    /// Whether system messages may come after others. `None`: by the provider.
    pub system_messages: Option<bool>,
    /// A known provider: its failures are classified as on the other wires, instead of as in the reference.
    pub is_known: bool,
    /// Retries of a request without a response, or with a 5xx. At most 100.
    pub request_max_retries: u32,
    /// The longest silence: before the response, and between two events.
    pub stream_idle_timeout: Duration,
}

impl Provider {
    const REQUEST_MAX_RETRIES: u32 = 4;
    const REQUEST_RETRIES_CAP: u32 = 100;
    const STREAM_IDLE_TIMEOUT: Duration = Duration::from_secs(300);

    /// A provider without a key, and with the defaults.
    pub fn new(id: impl Into<String>, base_url: impl Into<String>) -> Self {
        let id = id.into();
        Self {
            name: id.clone(),
            id,
            base_url: base_url.into(),
            wire: Wire::Responses,
            api_key: None,
            key_variable: None,
            bearer_token: None,
            http_headers: BTreeMap::new(),
            query_params: BTreeMap::new(),
            text_tool_calls: false,
            max_output_tokens: None,
            thinking: None,
            system_messages: None,
            is_known: false,
            request_max_retries: Self::REQUEST_MAX_RETRIES,
            stream_idle_timeout: Self::STREAM_IDLE_TIMEOUT,
        }
    }

    pub(crate) fn retries(&self) -> u32 {
        self.request_max_retries.min(Self::REQUEST_RETRIES_CAP)
    }

    /// Capped at a year, so that it can be added to a point in time.
    pub(crate) fn patience(&self) -> Duration {
        self.stream_idle_timeout.min(Duration::from_secs(365 * 86_400))
    }
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Provider")
            .field("id", &self.id)
            .field("name", &self.name)
            .field("base_url", &without_secrets(&self.base_url))
            .field("wire", &self.wire)
            .field("api_key", &self.api_key)
            .field("bearer_token", &self.bearer_token)
            .field("http_headers", &self.http_headers)
            .field("query_params", &self.query_params)
            .field("request_max_retries", &self.request_max_retries)
            .field("stream_idle_timeout", &self.stream_idle_timeout)
            .finish()
    }
}

/// A URL, valid or not, without its user name, password and query.
fn without_secrets(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    let (scheme, rest) = url.split_once("://").map_or(("", url), |(scheme, rest)| (scheme, rest));
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = authority.rsplit('@').next().unwrap_or_default();
    if scheme.is_empty() { format!("{host}{path}") } else { format!("{scheme}://{host}{path}") }
}

/// Options that are the same for every provider.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// The program's name for the header `originator`.
    pub originator: String,
    pub user_agent: String,
    /// `http://host:port` of a proxy to tunnel through, as in `HTTPS_PROXY`. Not used for this machine.
    pub proxy: Option<Secret>,
    /// Hosts reached without the proxy, as in `NO_PROXY`.
    pub no_proxy: String,
    /// Seeds the jitter of retries. Any number that differs between processes, such as the start time.
    pub jitter_seed: u64,
    /// A larger stream event ends the stream.
    pub max_event_bytes: usize,
}

impl ClientOptions {
    const MAX_EVENT_BYTES: usize = 16 << 20;

    pub fn new(originator: impl Into<String>, user_agent: impl Into<String>) -> Self {
        Self {
            originator: originator.into(),
            user_agent: user_agent.into(),
            proxy: None,
            no_proxy: String::new(),
            jitter_seed: 0,
            max_event_bytes: Self::MAX_EVENT_BYTES,
        }
    }
}

/// An invalid provider or option, found before anything is sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProviderError {
    #[error("base_url of provider `{provider}` {problem}; write it like https://host/v1")]
    BaseUrl { provider: String, problem: &'static str },
    #[error("{field} of provider `{provider}` has characters a header cannot carry; is a line break in it?")]
    Credential { provider: String, field: &'static str },
    #[error("{field} has characters a header cannot carry; use plain ASCII text")]
    Identity { field: &'static str },
    #[error(transparent)]
    Proxy(#[from] http::BadProxy),
}
