//! Carries requests that somebody else wrote to one provider: with its credential, and otherwise as they are.

use std::fmt;
use std::sync::OnceLock;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{self, HeaderMap};
use hyper::{Method, Request, Response};
use hyper_util::client::proxy::matcher::Intercept;

use crate::client::{self, Client};
use crate::endpoint::Endpoint;
use crate::{ClientOptions, Provider, ProviderError};

/// One provider, for a host that keeps its key. Never sends anything again: that is for whoever asked to decide.
pub struct Relay {
    endpoint: Endpoint,
    proxy: Option<Intercept>,
    client: OnceLock<Result<Client, String>>,
}

impl Relay {
    /// Of the provider, the URL and the credential are used.
    pub fn new(provider: &Provider, options: &ClientOptions) -> Result<Self, ProviderError> {
        let endpoint = Endpoint::new(provider, options)?;
        let proxy = client::proxy(&endpoint, options)?;
        Ok(Self { endpoint, proxy, client: OnceLock::new() })
    }

    /// Posts to `{base_url}/responses{rest}` and answers once the headers are in, whatever the status. Dropping the
    /// answer ends the connection it comes by. The error says no secret of this provider.
    pub async fn post(
        &self,
        rest: &str,
        mut headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response<Incoming>, String> {
        let client = self.client.get_or_init(|| Client::new(&self.endpoint, self.proxy.as_ref()));
        let client = client.as_ref().map_err(|problem| self.clean(problem.clone()))?;
        headers.remove(header::AUTHORIZATION);
        if let Some(credential) = self.endpoint.headers.get(header::AUTHORIZATION) {
            headers.insert(header::AUTHORIZATION, credential.clone());
        }
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.endpoint.url_below(rest).ok_or("the path cannot be part of a URL")?;
        *request.headers_mut() = headers;
        client.send(request).await.map_err(|problem| self.clean(problem))
    }

    /// Takes the secrets of this provider out of text that somebody else wrote.
    pub fn clean(&self, text: String) -> String {
        self.endpoint.redactor.clean(text)
    }

    /// Where requests go, fit to be shown.
    pub fn shown_url(&self) -> &str {
        &self.endpoint.shown_url
    }

    /// Whether the credential travels where others can read it.
    pub fn is_exposed(&self) -> bool {
        !self.endpoint.is_encrypted() && !self.endpoint.is_local()
    }
}

impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Relay").field("url", &self.shown_url()).finish_non_exhaustive()
    }
}
