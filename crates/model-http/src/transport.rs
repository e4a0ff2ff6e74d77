//! Carries requests to a provider over HTTP.

use std::sync::Arc;
use std::time::Duration;

use http::{Client, HeaderMap, HttpBody, HttpResponse};
use model::protocol::CodexErrorInfo;
use model::{
    EventStream, FailureClass, FailureVerdict, ModelFailure, ModelTransport, PreparedRequest, Trace,
};

use wires::{Capabilities, Decoder, EncodedRequest, HttpRefusal, Thinking, Wire};

use crate::encoders::Encoders;
use crate::endpoint::Endpoint;
use crate::model_list;
use crate::near_names::near_names;
use crate::output_limits::OutputLimits;
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
        let carrier = Carrier {
            endpoint: Endpoint::new(provider, options)?,
            client: Endpoint::client(options)?,
            able: Capabilities {
                text_tool_calls: provider.text_tool_calls,
                max_output_tokens: provider.max_output_tokens,
                thinking: provider.thinking,
                ..Capabilities::of(&provider.id, provider.wire)
            },
            wire: provider.wire,
            encoders: Encoders::new(provider.wire),
            output_limits: OutputLimits::default(),
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
    client: Client,
    able: Capabilities,
    wire: Wire,
    encoders: Encoders,
    output_limits: OutputLimits,
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
/// A turn that has failed already is not held up for long.
const LIST_PATIENCE: Duration = Duration::from_secs(3);
const SHOWN_MODELS: usize = 5;
const ERROR_BODY_PATIENCE: Duration = Duration::from_secs(10);

impl Carrier {
    /// Answers once a provider has accepted the request.
    async fn send(&self, request: &PreparedRequest) -> Result<Accepted, ModelFailure> {
        let able = self.able_for(&request.body.model).await;
        let sent = self.send_as(request, &able).await;
        match sent {
            // A model that nobody knows may refuse to be asked to think.
            Err(failure) if self.names_thinking(&failure) => {
                let able = Capabilities { thinking: Some(Thinking::Never), ..able };
                self.send_as(request, &able).await
            }
            Err(failure) if failure.codex_error_info() == CodexErrorInfo::ModelNotFound => {
                Err(self.with_near_names(failure, &request.body.model).await)
            }
            sent => sent,
        }
    }

    /// With the model's own limit, where the wire needs one and none is configured.
    async fn able_for(&self, model: &str) -> Capabilities {
        let mut able = self.able.clone();
        if self.wire == Wire::Messages && able.max_output_tokens.is_none() {
            able.max_output_tokens = self.output_limits.of(model, &self.endpoint, &self.client).await;
        }
        able
    }

    /// Says which models there are instead, if the server tells in time.
    async fn with_near_names(&self, mut failure: ModelFailure, wanted: &str) -> ModelFailure {
        let Ok(models) = model_list::list(&self.endpoint, &self.client, LIST_PATIENCE).await else {
            return failure;
        };
        let near = near_names(wanted, models.iter().map(|model| model.id.as_str()));
        let (words, names) = match near.is_empty() {
            false => ("did you mean", near),
            true => ("there are", models.iter().map(|model| model.id.as_str()).take(SHOWN_MODELS).collect()),
        };
        if !names.is_empty() {
            let mark = if words == "there are" { "" } else { "?" };
            failure.message = format!("{}; {words} {}{mark}", failure.message, names.join(", "));
        }
        failure
    }

    fn names_thinking(&self, failure: &ModelFailure) -> bool {
        self.wire == Wire::Messages
            && failure.http_status == Some(400)
            && failure.class == FailureClass::InvalidRequest
            && failure.message.contains("thinking")
    }

    async fn send_as(
        &self,
        request: &PreparedRequest,
        able: &Capabilities,
    ) -> Result<Accepted, ModelFailure> {
        let own = match self.wire {
            Wire::Responses => headers::of_request(&request.metadata),
            // Correlation that says nothing to these providers is not for them.
            Wire::Chat | Wire::Messages => HeaderMap::new(),
        };
        // Written once: every attempt sends the same bytes, and none copies them.
        let encoded = self.encoders.encode(request, able);
        let EncodedRequest { body, decoder } =
            encoded.map_err(|error| ModelFailure::new(FailureClass::InvalidRequest, error.to_string()))?;
        let body: HttpBody = body.into_iter().collect();
        let mut retry = 0;
        loop {
            let failure = match self.attempt(&own, &body, &request.body.model).await {
                Ok(response) => return Ok(Accepted { response, decoder }),
                Err(failure) => failure,
            };
            let status = failure.http_status;
            if retry == self.max_retries || !retry::is_worth_it(&failure) {
                tracing::debug!(provider = self.endpoint.name, status, retry, "the request failed");
                return Err(retry::after(failure, retry));
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

    async fn attempt(
        &self,
        own: &HeaderMap,
        body: &HttpBody,
        model: &str,
    ) -> Result<HttpResponse, ModelFailure> {
        let request = self.endpoint.request(own, body.clone());
        let answer = self.client.send(request, self.patience).await;
        let answer = answer.map_err(|error| self.unreachable(&error.to_string()))?;
        if answer.status.is_success() && !is_page(&answer.headers) {
            return Ok(answer);
        }
        let status = answer.status.as_u16();
        let (trace, limits) = (self.trace(&answer.headers), rate_limits::main(&answer.headers));
        let retry_after_ms = retry_after_ms(&answer.headers);
        // Late or not, what is there is shown.
        let body = answer.body.read_some(MAX_ERROR_BYTES, ERROR_BODY_PATIENCE).await;
        let body = self.clean(String::from_utf8_lossy(&body).into_owned());
        if self.wire != Wire::Responses || answer.status.is_success() {
            return Err(wires::http_failure(HttpRefusal {
                status,
                body: &body,
                retry_after_ms,
                request_id: trace.request_id.as_deref(),
                url: &self.endpoint.shown_url,
                model,
            }));
        }
        let mut failure = ModelFailure::from_http(status, &body, &self.endpoint.shown_url).traced(&trace);
        if failure.class == FailureClass::UsageLimit {
            failure.rate_limits = Some(Box::new(limits));
        }
        if failure.class == FailureClass::TooManyAttempts
            && let Some(wait) = retry_after_ms.filter(|wait| *wait <= wires::LONGEST_WAIT_MS)
        {
            // The caller waits that long, and says so.
            let info = failure.codex_error_info();
            failure.retry_after_ms = Some(wait);
            failure.verdict = Some(FailureVerdict { info, may_retry: true });
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
            request_id: ["x-request-id", "x-oai-request-id", "request-id"].into_iter().find_map(text),
            authorization_error: text("x-openai-authorization-error"),
        }
    }

    fn unreachable(&self, problem: &str) -> ModelFailure {
        let Endpoint { name, shown_url, .. } = &self.endpoint;
        let advice = advice(&self.able.provider);
        let message = format!("cannot reach the model provider {name}: {problem}, url: {shown_url}{advice}");
        let mut failure = ModelFailure::new(FailureClass::Connection, self.clean(message));
        if !advice.is_empty() {
            // Nothing starts by itself: whoever has to start it is told at once.
            let info = CodexErrorInfo::HttpConnectionFailed { http_status_code: None };
            failure.verdict = Some(FailureVerdict { info, may_retry: false });
        }
        failure
    }

    /// Takes the secrets of this provider out of text that somebody else wrote.
    pub(crate) fn clean(&self, text: String) -> String {
        self.endpoint.redactor.clean(text)
    }
}

/// A response that began, and what reads it.
pub(crate) struct Accepted {
    pub(crate) response: HttpResponse,
    pub(crate) decoder: Decoder,
}

/// A page for people answers where no API is.
fn is_page(headers: &HeaderMap) -> bool {
    let kind = headers.get(http::header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.trim_start().to_ascii_lowercase().starts_with("text/html"))
}

/// `retry-after` in seconds, or its finer sister.
fn retry_after_ms(headers: &HeaderMap) -> Option<u64> {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<f64>().ok();
    let milliseconds = number("retry-after-ms").or_else(|| Some(number("retry-after")? * 1_000.0))?;
    (milliseconds.is_finite() && milliseconds >= 0.0).then_some(milliseconds as u64)
}

/// Servers of this machine have to be started.
fn advice(provider: &str) -> &'static str {
    match provider {
        "ollama" => "; is `ollama serve` running?",
        "lmstudio" => "; is the server of LM Studio started (`lms server start`)?",
        "llamacpp" => "; is `llama-server` running?",
        "vllm" => "; is `vllm serve` running?",
        _ => "",
    }
}
