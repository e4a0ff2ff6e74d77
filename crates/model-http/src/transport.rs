//! Carries requests to a provider over HTTP.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::Response;
use hyper::body::Incoming;
use hyper::header::HeaderMap;
use hyper_util::client::proxy::matcher::Intercept;
use model::{EventStream, FailureClass, ModelFailure, ModelTransport, PreparedRequest, Trace};
use tokio::time::timeout;

use crate::client::{self, Client};
use crate::endpoint::Endpoint;
use crate::retry::{self, Backoff};
use crate::stream::ResponseStream;
use crate::{ClientOptions, Provider, ProviderError, headers, rate_limits};

/// Sends requests to one provider and reads its event streams. Retries what failed before the answer began; a stream that
/// breaks later is the caller's to retry, because part of it was used already.
#[derive(Debug, Clone)]
pub struct HttpTransport {
    carrier: Arc<Carrier>,
}

impl HttpTransport {
    pub fn new(provider: &Provider, options: &ClientOptions) -> Result<Self, ProviderError> {
        let endpoint = Endpoint::new(provider, options)?;
        let proxy = client::proxy(&endpoint, options)?;
        let carrier = Carrier {
            endpoint,
            proxy,
            client: OnceLock::new(),
            backoff: Backoff::new(options.jitter_seed),
            max_retries: provider.retries(),
            patience: provider.patience(),
            max_event_bytes: options.max_event_bytes,
        };
        Ok(Self { carrier: Arc::new(carrier) })
    }
}

impl ModelTransport for HttpTransport {
    fn open(&self, request: PreparedRequest) -> EventStream {
        let carrier = Arc::clone(&self.carrier);
        let sending = async move { carrier.send(&request).await };
        Box::pin(ResponseStream::new(Box::pin(sending), Arc::clone(&self.carrier)))
    }
}

#[derive(Debug)]
pub(crate) struct Carrier {
    endpoint: Endpoint,
    proxy: Option<Intercept>,
    client: OnceLock<Result<Client, String>>,
    backoff: Backoff,
    max_retries: u32,
    /// The longest silence.
    pub(crate) patience: Duration,
    pub(crate) max_event_bytes: usize,
}

/// Error answers are short; a provider that sends more has nothing more to say.
const MAX_ERROR_BYTES: usize = 64 << 10;
/// Ids are short; anything longer is not meant for a person to pass on.
const MAX_TRACE_BYTES: usize = 200;
const ERROR_BODY_PATIENCE: Duration = Duration::from_secs(10);

impl Carrier {
    /// Answers once a provider has accepted the request.
    async fn send(&self, request: &PreparedRequest) -> Result<Response<Incoming>, ModelFailure> {
        let client = self.client().map_err(|problem| self.unreachable(&problem))?;
        let own = headers::of_request(&request.metadata);
        // Written once: every attempt sends the same bytes, and none copies them.
        let body = serde_json::to_vec(request.body.as_ref()).map(Bytes::from);
        let body = body.map_err(|error| {
            ModelFailure::new(
                FailureClass::InvalidRequest,
                format!("the request cannot be written as JSON: {error}"),
            )
        })?;
        let mut retry = 0;
        loop {
            let failure = match self.attempt(client, &own, &body).await {
                Ok(response) => return Ok(response),
                Err(failure) => failure,
            };
            let status = failure.http_status;
            if retry == self.max_retries || !retry::is_worth_it(&failure) {
                tracing::debug!(provider = self.endpoint.name, status, retry, "the request failed");
                return Err(failure);
            }
            retry += 1;
            let delay = self.backoff.delay(retry);
            tracing::debug!(
                provider = self.endpoint.name,
                status,
                retry,
                ?delay,
                "the request is sent again"
            );
            tokio::time::sleep(delay).await;
        }
    }

    fn client(&self) -> Result<&Client, String> {
        let client = self.client.get_or_init(|| Client::new(&self.endpoint, self.proxy.as_ref()));
        client.as_ref().map_err(Clone::clone)
    }

    async fn attempt(
        &self,
        client: &Client,
        own: &HeaderMap,
        body: &Bytes,
    ) -> Result<Response<Incoming>, ModelFailure> {
        let request = self.endpoint.request(own, Full::new(body.clone()));
        let response = match timeout(self.patience, client.send(request)).await {
            Ok(response) => response.map_err(|problem| self.unreachable(&problem))?,
            Err(_) => return Err(self.unreachable("timed out waiting for an answer")),
        };
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status().as_u16();
        let (trace, limits) = (self.trace(response.headers()), rate_limits::main(response.headers()));
        let body = self.clean(error_body(response.into_body()).await);
        let mut failure = ModelFailure::from_http(status, &body, &self.endpoint.shown_url).traced(&trace);
        if failure.class == FailureClass::UsageLimit {
            failure.rate_limits = Some(Box::new(limits));
        }
        Err(failure)
    }

    fn trace(&self, headers: &HeaderMap) -> Trace {
        let text = |name: &str| {
            let text = headers.get(name)?.to_str().ok().filter(|text| text.len() <= MAX_TRACE_BYTES)?;
            Some(self.clean(text.to_owned()))
        };
        Trace {
            cf_ray: text("cf-ray"),
            request_id: text("x-request-id").or_else(|| text("x-oai-request-id")),
            authorization_error: text("x-openai-authorization-error"),
        }
    }

    fn unreachable(&self, problem: &str) -> ModelFailure {
        let Endpoint { name, shown_url, .. } = &self.endpoint;
        let message = format!("cannot reach the model provider {name}: {problem}, url: {shown_url}");
        ModelFailure::new(FailureClass::Connection, self.clean(message))
    }

    /// Takes the secrets of this provider out of text that somebody else wrote.
    pub(crate) fn clean(&self, text: String) -> String {
        self.endpoint.redactor.clean(text)
    }
}

/// As much of an error answer as came in time.
async fn error_body(body: Incoming) -> String {
    let mut body = Limited::new(body, MAX_ERROR_BYTES);
    let mut bytes = Vec::new();
    let read = async {
        while let Some(Ok(frame)) = body.frame().await {
            bytes.extend_from_slice(frame.data_ref().map_or(&[], |data| data));
        }
    };
    // Late or not, what is there is shown.
    let _ = timeout(ERROR_BODY_PATIENCE, read).await;
    String::from_utf8_lossy(&bytes).into_owned()
}
