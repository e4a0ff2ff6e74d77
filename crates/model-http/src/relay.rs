//! Forwards other programs' requests to one provider: with its credential, and otherwise unchanged.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::{Client, HeaderMap, HttpRequest, HttpResponse, Method, header};

use crate::endpoint::Endpoint;
use crate::{ClientOptions, Provider, ProviderError};

/// One provider, for a host that keeps its key. Never retries: that is the sender's decision.
pub struct Relay {
    endpoint: Endpoint,
    client: Client,
}

/// The sender decides how long to wait.
const PATIENCE: Duration = Duration::from_secs(86_400);

impl Relay {
    /// Uses the provider's URL and credential.
    pub fn new(provider: &Provider, options: &ClientOptions) -> Result<Self, ProviderError> {
        Ok(Self { endpoint: Endpoint::new(provider, options)?, client: Endpoint::client(options)? })
    }

    /// Posts to `{base_url}/responses{rest}` and returns after the headers, whatever the status. Dropping the response
    /// closes its connection. The error contains no secret of this provider.
    pub async fn post(
        &self,
        rest: &str,
        mut headers: HeaderMap,
        body: Bytes,
    ) -> Result<HttpResponse, String> {
        headers.remove(header::AUTHORIZATION);
        if let Some(credential) = self.endpoint.headers.get(header::AUTHORIZATION) {
            headers.insert(header::AUTHORIZATION, credential.clone());
        }
        let url = self.endpoint.url_below(rest).ok_or("the path cannot be part of a URL")?;
        let request = HttpRequest { method: Method::POST, url, headers, body: body.into() };
        self.client.send(request, PATIENCE).await.map_err(|error| self.clean(error.to_string()))
    }

    /// Removes this provider's secrets from a text.
    pub fn clean(&self, text: String) -> String {
        self.endpoint.redactor.clean(text)
    }

    /// The URL without secrets.
    pub fn shown_url(&self) -> &str {
        &self.endpoint.shown_url
    }

    /// Whether the credential is sent unencrypted.
    pub fn is_exposed(&self) -> bool {
        !self.endpoint.is_encrypted() && !self.endpoint.is_local()
    }
}

impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Relay").field("url", &self.shown_url()).finish_non_exhaustive()
    }
}
