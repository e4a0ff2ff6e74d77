//! Sends requests to a provider over HTTP.

use std::sync::Arc;
use std::time::Duration;

use http::{Cause, Client, HeaderMap, HttpBody, HttpError, HttpResponse};
use model::protocol::CodexErrorInfo;
use model::{EventStream, FailureClass, FailureVerdict, ModelFailure, ModelTransport, PreparedRequest};

use wires::{Capabilities, Decoder, EncodedRequest, HttpRefusal, Wire};

use crate::encoders::Encoders;
use crate::endpoint::Endpoint;
use crate::model_list;
use crate::near_names::near_names;
use crate::output_limits::OutputLimits;
use crate::pauses::WholeAnswer;
use crate::refusals::{Refusals, RefusedPart};
use crate::retry::{self, Backoff};
use crate::stream::ResponseStream;
use crate::{ClientOptions, Provider, ProviderError, headers, rate_limits};

/// Sends requests to one provider and reads its event streams. Retries failures before the response begins; the caller
/// retries a broken stream, because it has used part of it.
#[derive(Debug, Clone)]
pub struct HttpTransport {
    carrier: Arc<Carrier>,
}

impl HttpTransport {
    pub fn new(provider: &Provider, options: &ClientOptions) -> Result<Self, ProviderError> {
        let known = Capabilities::of(&provider.id, provider.wire);
        let carrier = Carrier {
            endpoint: Endpoint::new(provider, options)?,
            client: Endpoint::client(options)?,
            able: Capabilities {
                text_tool_calls: provider.text_tool_calls,
                max_output_tokens: provider.max_output_tokens,
                thinking: provider.thinking,
                completes_responses: provider.is_known,
                later_system: provider.system_messages.unwrap_or(known.later_system),
                ..known
            },
            wire: provider.wire,
            encoders: Encoders::new(provider.wire),
            output_limits: OutputLimits::default(),
            refusals: Refusals::default(),
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
        match self.carrier.wire {
            Wire::Messages => Box::pin(WholeAnswer::new(Box::new(self.asking()), request)),
            Wire::Responses | Wire::Chat => self.asking()(request),
        }
    }
}

impl HttpTransport {
    fn asking(&self) -> impl Fn(PreparedRequest) -> EventStream + Send + use<> {
        let carrier = Arc::clone(&self.carrier);
        move |request| {
            let (carrier, reader) = (Arc::clone(&carrier), Arc::clone(&carrier));
            let sending = async move { carrier.send(&request).await };
            Box::pin(ResponseStream::new(Box::pin(sending), reader))
        }
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
    refusals: Refusals,
    backoff: Backoff,
    max_retries: u32,
    /// The longest silence.
    pub(crate) patience: Duration,
    pub(crate) max_event_bytes: usize,
}

/// Limit of an error response.
const MAX_ERROR_BYTES: usize = 64 << 10;
/// Limit of a trace id.
const MAX_TRACE_BYTES: usize = 200;
/// A failed turn waits no longer for the list.
const LIST_PATIENCE: Duration = Duration::from_secs(3);
const SHOWN_MODELS: usize = 5;
const ERROR_BODY_PATIENCE: Duration = Duration::from_secs(10);

impl Carrier {
    /// Returns when a provider has accepted the request.
    async fn send(&self, request: &PreparedRequest) -> Result<Accepted, ModelFailure> {
        self.send_what_is_taken(request).await.map_err(|failure| self.in_known_terms(failure))
    }

    /// Retries without a part that the provider refuses.
    async fn send_what_is_taken(&self, request: &PreparedRequest) -> Result<Accepted, ModelFailure> {
        let model = &request.body.model;
        let able = self.refusals.apply(self.able_for(model).await, &request.body);
        let failure = match self.send_as(request, &able).await {
            Ok(accepted) => return Ok(accepted),
            Err(failure) => failure,
        };
        if let Some(part) = RefusedPart::named_by(&failure, self.wire, &request.body) {
            let without = part.left_out(&able);
            if without == able {
                return Err(failure);
            }
            let accepted = self.send_as(request, &without).await?;
            self.refusals.remember(part, &request.body);
            return Ok(accepted);
        }
        match failure.codex_error_info() {
            CodexErrorInfo::ModelNotFound => Err(self.with_near_names(failure, model).await),
            _ => Err(failure),
        }
    }

    /// With the model's own limit, if the wire needs one and none is configured.
    async fn able_for(&self, model: &str) -> Capabilities {
        let mut able = self.able.clone();
        if self.wire == Wire::Messages && able.max_output_tokens.is_none() {
            able.max_output_tokens = self.output_limits.of(model, &self.endpoint, &self.client).await;
        }
        able
    }

    /// Adds similar model names, if the server lists its models in time.
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
            let said = failure.message.trim_end_matches('.');
            failure.message = format!("{said}; {words} {}{mark}", names.join(", "));
        }
        failure
    }

    async fn send_as(
        &self,
        request: &PreparedRequest,
        able: &Capabilities,
    ) -> Result<Accepted, ModelFailure> {
        let mut own = match self.wire {
            Wire::Responses => headers::of_request(&request.metadata),
            // These providers do not use the correlation headers.
            Wire::Chat | Wire::Messages => HeaderMap::new(),
        };
        if self.endpoint.headers.contains_key(headers::ABOUT) {
            own.extend(headers::about(&request.metadata).map(|about| (headers::ABOUT, about)));
        }
        // Encoded once: every attempt sends the same bytes without a copy.
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
        let answer = answer.map_err(|error| self.unreachable(&error))?;
        if answer.status.is_success() && !is_page(&answer.headers) {
            return Ok(answer);
        }
        let status = answer.status.as_u16();
        let (details, limits) = (self.details(&answer.headers), rate_limits::main(&answer.headers));
        let retry_after_ms = retry_after_ms(&answer.headers);
        // A partial body is shown too.
        let body = answer.body.read_some(MAX_ERROR_BYTES, ERROR_BODY_PATIENCE).await;
        let body = self.clean(String::from_utf8_lossy(&body).into_owned());
        let mut failure = wires::http_failure(HttpRefusal {
            status,
            body: &body,
            retry_after_ms,
            url: &self.endpoint.shown_url,
            model,
            credential: &self.endpoint.refused_credential,
        });
        if failure.class == FailureClass::UsageLimit {
            failure.rate_limits = Some(Box::new(limits));
        }
        failure.details = Some(details);
        Err(failure)
    }

    /// The URL, and the provider's ids of the response.
    fn details(&self, headers: &HeaderMap) -> String {
        let text = |name: &str| {
            let text = headers.get(name)?.to_str().ok().filter(|text| text.len() <= MAX_TRACE_BYTES)?;
            Some(self.clean(text.to_owned()))
        };
        let parts = [
            ("url", Some(self.endpoint.shown_url.clone())),
            ("cf-ray", text("cf-ray")),
            ("request id", ["x-request-id", "x-oai-request-id", "request-id"].into_iter().find_map(text)),
            ("auth error", text("x-openai-authorization-error")),
        ];
        let parts = parts.into_iter().filter_map(|(name, value)| Some(format!("{name}: {}", value?)));
        Vec::from_iter(parts).join(", ")
    }

    /// For OpenAI and unknown Responses servers, clients expect the reference's classes.
    fn in_known_terms(&self, mut failure: ModelFailure) -> ModelFailure {
        let is_refusal = matches!(failure.class, FailureClass::InvalidRequest | FailureClass::Unauthorized);
        if self.wire == Wire::Responses
            && !self.able.completes_responses
            && failure.http_status.is_some()
            && is_refusal
        {
            let may_retry = failure.is_retryable();
            failure.verdict = Some(FailureVerdict { info: CodexErrorInfo::Other, may_retry });
        }
        failure
    }

    fn unreachable(&self, error: &HttpError) -> ModelFailure {
        let Endpoint { name, shown_url, .. } = &self.endpoint;
        let (advice, problem) = (advice(&self.able.provider), self.clean(error.to_string()));
        let is_absent = error.cause == Cause::Refused && advice.is_empty();
        let start =
            if is_absent { "; start the server that listens there, or change base_url" } else { advice };
        let message = format!("cannot reach the model provider {name}: {problem}{start}");
        let mut failure = ModelFailure::new(FailureClass::Connection, self.clean(message));
        failure.details = Some(format!("url: {shown_url}"));
        if !advice.is_empty() {
            // Reported at once, because the user has to start the server.
            let info = CodexErrorInfo::HttpConnectionFailed { http_status_code: None };
            failure.verdict = Some(FailureVerdict { info, may_retry: false });
        }
        failure
    }

    /// The address that is asked, as it may be shown.
    pub(crate) fn shown_url(&self) -> &str {
        &self.endpoint.shown_url
    }

    /// Removes this provider's secrets from a text.
    pub(crate) fn clean(&self, text: String) -> String {
        self.endpoint.redactor.clean(text)
    }
}

/// An accepted response and its decoder.
pub(crate) struct Accepted {
    pub(crate) response: HttpResponse,
    pub(crate) decoder: Decoder,
}

/// A web page, so there is no API at this URL.
fn is_page(headers: &HeaderMap) -> bool {
    let kind = headers.get(http::header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.trim_start().to_ascii_lowercase().starts_with("text/html"))
}

/// `retry-after` in seconds or as a date, or `retry-after-ms`.
fn retry_after_ms(headers: &HeaderMap) -> Option<u64> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let number = |name: &str| text(name)?.parse::<f64>().ok();
    let milliseconds = number("retry-after-ms").or_else(|| Some(number("retry-after")? * 1_000.0));
    let Some(milliseconds) = milliseconds else {
        return model::wait_until(text("retry-after")?, text("date")?);
    };
    (milliseconds.is_finite() && milliseconds >= 0.0).then_some(milliseconds as u64)
}

/// Local servers have to be started.
fn advice(provider: &str) -> &'static str {
    match provider {
        "ollama" => "; is `ollama serve` running?",
        "lmstudio" => "; is the server of LM Studio started (`lms server start`)?",
        "llamacpp" => "; is `llama-server` running?",
        "vllm" => "; is `vllm serve` running?",
        _ => "",
    }
}
