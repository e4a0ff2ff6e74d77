//! The bridge: a model provider that a host runs for one thread.

use std::collections::BTreeMap;

use config::{ProviderConfig, ProviderKind};
use model_http::{ClientOptions, HttpTransport, Provider, ProviderError};
use protocol::SdkDelegationConfig;

use crate::error::RuntimeError;

const DEFAULT_ID: &str = "codex-sdk-v2";
const URL_FIELD: &str = "sdkDelegation.bridgeUrl";
const ID_FIELD: &str = "sdkDelegation.modelProviderId";
const TIMEOUT_FIELD: &str = "sdkDelegation.streamIdleTimeoutMs";

/// A bridge with checked settings.
#[derive(Debug)]
pub(crate) struct Bridge {
    id: String,
    url: String,
    idle_timeout_ms: Option<u64>,
}

impl Bridge {
    pub(crate) fn of(wanted: &SdkDelegationConfig) -> Result<Self, RuntimeError> {
        let refuse = |field, problem: &str| Err(RuntimeError::Field { field, problem: problem.to_owned() });
        let id = wanted.model_provider_id.as_deref().unwrap_or(DEFAULT_ID);
        if id.is_empty() || id.trim() != id {
            return refuse(ID_FIELD, "must be a name without spaces around it");
        }
        if ProviderConfig::is_built_in(id) {
            return refuse(ID_FIELD, &format!("must not be `{id}`, which is a built-in provider"));
        }
        if wanted.stream_idle_timeout_ms == Some(0) {
            return refuse(TIMEOUT_FIELD, "must be more than 0");
        }
        let url = wanted.bridge_url.trim();
        // Created once to check the URL now, not at the first request.
        let provider = Provider::new(id, url);
        if let Err(error) = HttpTransport::new(&provider, &ClientOptions::new("oarlock", "oarlock")) {
            let problem = match &error {
                ProviderError::BaseUrl { problem, .. } => *problem,
                _ => "cannot be used",
            };
            return refuse(URL_FIELD, &format!("{problem}; write it like http://127.0.0.1:8080/v1"));
        }
        Ok(Self { id: id.to_owned(), url: url.to_owned(), idle_timeout_ms: wanted.stream_idle_timeout_ms })
    }

    /// A provider without a key: the host adds its own.
    pub(crate) fn provider(&self) -> ProviderConfig {
        ProviderConfig {
            id: self.id.clone(),
            name: "Host bridge".to_owned(),
            kind: ProviderKind::Compatible,
            wire: config::WireApi::Responses,
            base_url: Some(self.url.clone()),
            env_key: None,
            env_key_instructions: None,
            bearer_token: None,
            http_headers: BTreeMap::new(),
            env_http_headers: BTreeMap::new(),
            query_params: BTreeMap::new(),
            request_max_retries: 4,
            stream_max_retries: 5,
            stream_idle_timeout_ms: self.idle_timeout_ms.unwrap_or(300_000),
            websocket_connect_timeout_ms: 15_000,
            requires_openai_auth: false,
            supports_websockets: false,
            default_model: None,
            text_tool_calls: false,
            max_output_tokens: None,
            thinking: None,
            system_messages: None,
            is_known: false,
            auth: None,
        }
    }
}

/// The URL of a bridge without its password, for clients.
pub fn shown_bridge_url(bridge: &SdkDelegationConfig) -> String {
    let url = bridge.bridge_url.as_str();
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let host_ends = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    match rest[..host_ends].rfind('@') {
        Some(at) => format!("{scheme}://{}", &rest[at + 1..]),
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(url: &str) -> SdkDelegationConfig {
        SdkDelegationConfig {
            bridge_url: url.to_owned(),
            model_provider_id: None,
            stream_idle_timeout_ms: None,
        }
    }

    #[test]
    fn a_bridge_is_a_provider_that_needs_no_key() {
        let mut wanted = wanted("http://127.0.0.1:8080/v1");
        let provider = Bridge::of(&wanted).expect("a bridge").provider();
        assert_eq!((provider.id.as_str(), provider.stream_idle_timeout_ms), ("codex-sdk-v2", 300_000));
        assert_eq!(provider.base_url.as_deref(), Some("http://127.0.0.1:8080/v1"));
        wanted.model_provider_id = Some("host".to_owned());
        wanted.stream_idle_timeout_ms = Some(5);
        let provider = Bridge::of(&wanted).expect("a bridge").provider();
        assert_eq!((provider.id.as_str(), provider.stream_idle_timeout_ms), ("host", 5));
    }

    #[test]
    fn invalid_bridges_are_refused_by_field() {
        let told =
            |wanted: &SdkDelegationConfig| Bridge::of(wanted).map(|_| ()).map_err(|error| error.to_string());
        for url in ["https://host/v1", "HTTP://host", "http://[::1]:1/v1", "http://u:p@host:1/v1?a=b"] {
            assert_eq!(told(&wanted(url)), Ok(()), "{url}");
        }
        for url in [
            "",
            "/v1",
            "host:80/v1",
            "127.0.0.1:80",
            "ftp://host",
            "unix:///x",
            "http://",
            "http:///v1",
            "http://a b",
        ] {
            let error = told(&wanted(url)).expect_err(url);
            assert!(error.starts_with("sdkDelegation.bridgeUrl "), "{url}: {error}");
        }
        for id in ["", " a", "openai", "offline"] {
            let error =
                told(&SdkDelegationConfig { model_provider_id: Some(id.to_owned()), ..wanted("http://h") });
            assert!(error.expect_err(id).starts_with("sdkDelegation.modelProviderId must "), "{id}");
        }
        let error = told(&SdkDelegationConfig { stream_idle_timeout_ms: Some(0), ..wanted("http://h") });
        assert_eq!(error, Err("sdkDelegation.streamIdleTimeoutMs must be more than 0".to_owned()));
    }

    #[test]
    fn passwords_are_not_shown() {
        for (url, shown) in [
            ("http://127.0.0.1:8080/v1", "http://127.0.0.1:8080/v1"),
            ("http://x:tok@en@host:1/v1?a=b@c", "http://host:1/v1?a=b@c"),
            ("http://x@host", "http://host"),
        ] {
            assert_eq!(shown_bridge_url(&wanted(url)), shown);
        }
    }
}
