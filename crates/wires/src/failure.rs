//! Maps every vendor's failures to common classes, with the vendor's message.

use model::protocol::{CodexErrorInfo, TokenUsageBreakdown};
use model::{FailureClass, FailureVerdict, LONGEST_WAIT_MS, ModelFailure, status_text};
use serde_json::Value;

use crate::vendor_class::{Reported, wait_in};

/// The relevant parts of an HTTP error response. Contains no secret.
#[derive(Debug, Clone, Copy)]
pub struct HttpRefusal<'a> {
    pub status: u16,
    pub body: &'a str,
    /// `retry-after`, in milliseconds.
    pub retry_after_ms: Option<u64>,
    pub url: &'a str,
    pub model: &'a str,
    /// The source of the credential, for the error when it is refused.
    pub credential: &'a str,
}

/// A classified failure in one sentence: our text for its class, then the vendor's message.
pub fn http_failure(refusal: HttpRefusal<'_>) -> ModelFailure {
    if let Some(failure) = ModelFailure::of_account(refusal.status, refusal.body) {
        return failure;
    }
    let words = VendorWords::read(refusal.body);
    let is_page = refusal.body.trim_start().starts_with('<');
    let status = status_text(refusal.status);
    let said = match (&words, shortened(refusal.body.trim()).as_str()) {
        (_, _) if is_page && refusal.status >= 500 => {
            format!("{} answered {status} with a page instead of an API; check base_url", refusal.url)
        }
        (_, _) if is_page => {
            format!("{} answered with a page instead of an API; check base_url", refusal.url)
        }
        (Some(words), _) => words.message.clone(),
        // A path that the server does not serve.
        (None, shown) if matches!(refusal.status, 404 | 405) => {
            let said = if matches!(shown, "" | "{}") { String::new() } else { format!(" ({shown})") };
            format!("{} answered {status}{said}; check base_url", refusal.url)
        }
        (None, "" | "{}") => format!("unexpected status {status}"),
        // A plain message about the request.
        (None, shown) if refusal.status == 400 && !shown.starts_with(['{', '[']) => shown.to_owned(),
        (None, shown) => format!("unexpected status {status}: {shown}"),
    };
    let kind = words.as_ref().map(|words| words.kind.as_str()).unwrap_or_default();
    let text = words.as_ref().map(|words| words.message.to_ascii_lowercase()).unwrap_or_default();
    let body_wait = || words.as_ref().and_then(|words| words.retry_after_ms);
    let retry_after_ms = refusal.retry_after_ms.or_else(body_wait);
    let reported =
        Reported { status: refusal.status, kind, text: &text, says_when: retry_after_ms.is_some() };
    let class = match refusal.status {
        // There is no API, whatever the status says.
        ..500 if is_page => FailureClass::InvalidRequest,
        _ => reported.class(),
    };
    let said = match class {
        _ if is_page => said,
        FailureClass::Unauthorized => format!("{}: {said}", refusal.credential),
        class => in_our_words(class, &said),
    };
    let mut failure = ModelFailure::new(class, said);
    failure.http_status = Some(refusal.status);
    match class {
        FailureClass::InvalidRequest if reported.is_unknown_model(refusal.model) => {
            failure.message = format!("the model `{}` is not there: {}", refusal.model, failure.message);
            failure.verdict = Some(FailureVerdict { info: CodexErrorInfo::ModelNotFound, may_retry: false });
        }
        FailureClass::InvalidRequest => {
            failure.verdict = Some(FailureVerdict { info: CodexErrorInfo::BadRequest, may_retry: false });
        }
        FailureClass::TooManyAttempts => {
            failure.retry_after_ms = retry_after_ms;
            let info = failure.codex_error_info();
            let may_retry = retry_after_ms.is_some_and(|wait| wait <= LONGEST_WAIT_MS);
            if let (false, Some(wait)) = (may_retry, retry_after_ms) {
                let said = failure.message.trim_end_matches('.');
                failure.message = format!("{said}; try again in {}", long_span(wait));
            }
            failure.verdict = Some(FailureVerdict { info, may_retry });
        }
        FailureClass::ContextWindow => failure.verdict = Some(room_helps()),
        _ => {}
    }
    failure
}

/// Adds our text for this class of failure before the vendor's message.
fn in_our_words(class: FailureClass, said: &str) -> String {
    let ours = match class {
        FailureClass::Quota => "the account has no quota left",
        FailureClass::Overloaded => "the model is overloaded",
        FailureClass::TooManyAttempts => "too many requests",
        FailureClass::ContextWindow => "the conversation does not fit the model's context window",
        FailureClass::InternalServerError => "the provider failed",
        _ => return said.to_owned(),
    };
    format!("{ours}: {said}")
}

/// More than a minute, in words.
fn long_span(milliseconds: u64) -> String {
    match milliseconds.div_ceil(60_000) {
        minutes @ ..120 => format!("{minutes} minutes"),
        minutes => format!("{} hours", minutes.div_ceil(60)),
    }
}

/// Reads an answer with status 200 that was to be a stream of events and has none. None where it says nothing.
pub fn no_stream(body: &str, url: &str) -> Option<ModelFailure> {
    let value: Value = serde_json::from_str(body.trim()).ok()?;
    if let Some(failure) = in_stream(&value) {
        // Unlike a stream that breaks, the whole answer is an error, and is so again.
        let is_known = failure.class != FailureClass::Stream;
        return Some(if is_known { failure } else { ended_for_good(failure.message) });
    }
    value.is_object().then(|| {
        ended_for_good(format!(
            "{url} answered with JSON instead of a stream of events; check base_url and wire_api"
        ))
    })
}

/// Retrying fails again, unless the history is shorter.
pub(crate) fn room_helps() -> FailureVerdict {
    FailureVerdict { info: CodexErrorInfo::ContextWindowExceeded, may_retry: true }
}

/// An error object within a stream.
pub(crate) fn in_stream(event: &Value) -> Option<ModelFailure> {
    let is_error = event["type"] == "error"
        || event["object"] == "error"
        || event["error"].is_object()
        || event["error"].is_string();
    if !is_error {
        return None;
    }
    let words = VendorWords::of(event)?;
    let text = words.message.to_ascii_lowercase();
    let reported = Reported {
        status: words.status.unwrap_or(0),
        kind: &words.kind,
        text: &text,
        says_when: words.retry_after_ms.is_some(),
    };
    let class = reported.class();
    let said = in_our_words(class, &words.message);
    let failure = match class {
        // The stream broke, and a retry may succeed.
        FailureClass::UnexpectedStatus | FailureClass::InternalServerError => {
            let said = in_our_words(FailureClass::InternalServerError, &words.message);
            ModelFailure::new(FailureClass::Stream, said)
        }
        FailureClass::TooManyAttempts | FailureClass::Overloaded => {
            let failure = ModelFailure::new(FailureClass::Overloaded, said);
            let verdict = Some(FailureVerdict { info: CodexErrorInfo::ServerOverloaded, may_retry: true });
            let retry_after_ms = words.retry_after_ms.filter(|wait| *wait <= LONGEST_WAIT_MS);
            ModelFailure { verdict, retry_after_ms, ..failure }
        }
        FailureClass::ContextWindow => ModelFailure {
            verdict: Some(room_helps()),
            ..ModelFailure::new(FailureClass::ContextWindow, said)
        },
        class => ModelFailure::new(class, said),
    };
    Some(failure)
}

/// The model or its provider refuses to answer this; retries do not help.
pub(crate) fn refusal(reason: &str) -> ModelFailure {
    ended_for_good(format!("the model refused: {reason}"))
}

/// The answer reached its length limit. A retry would too, and cost again.
pub(crate) fn cut(provider: &str, limit: Option<u32>, used: Option<&TokenUsageBreakdown>) -> ModelFailure {
    let key = format!("set model_providers.{provider}.max_output_tokens");
    let used = used.map(|used| format!(" after {} tokens", used.output_tokens)).unwrap_or_default();
    ended_for_good(match limit {
        Some(limit) => {
            format!("the answer was cut at {limit} tokens; {key} to more, if the model can write more")
        }
        None => format!(
            "the server cut the answer{used}; {key}, or give the model a larger context if the server is yours"
        ),
    })
}

fn ended_for_good(message: String) -> ModelFailure {
    let failure = ModelFailure::new(FailureClass::InvalidRequest, message);
    ModelFailure {
        verdict: Some(FailureVerdict { info: CodexErrorInfo::Other, may_retry: false }),
        ..failure
    }
}

/// A vendor's report of a failure.
struct VendorWords {
    message: String,
    kind: String,
    status: Option<u16>,
    /// How long it asks to wait.
    retry_after_ms: Option<u64>,
}

impl VendorWords {
    fn read(body: &str) -> Option<Self> {
        Self::of(&serde_json::from_str(body).ok()?)
    }

    /// `{"error": {…}}`, `{"error": "…"}`, `[{"error": {…}}]`, `{"object": "error", …}`, `{"detail": …}`.
    fn of(body: &Value) -> Option<Self> {
        let value = if body.is_array() { body.get(0)? } else { body };
        let error = if value["error"].is_object() { &value["error"] } else { value };
        let code = if value["error"].is_object() { &error["code"] } else { &Value::Null };
        let message = [&error["message"], &value["error"], &error["detail"], &error["msg"], code];
        let message = message.iter().find_map(|text| text.as_str().filter(|text| !text.is_empty()));
        let message = match message {
            Some(message) => shortened(message),
            None if error["detail"].is_array() => shortened(&faults_of(&error["detail"])),
            None => return None,
        };
        let kinds = [&error["code"], &error["type"], &error["status"]];
        let kind = kinds.iter().find_map(|kind| kind.as_str()).unwrap_or_default();
        let status = error["code"].as_u64().and_then(|code| u16::try_from(code).ok());
        let retry_after_ms = wait_in(body, &message);
        Some(Self { message, kind: kind.to_ascii_lowercase(), status, retry_after_ms })
    }
}

/// The faults that a server found in the fields of a request: `field required (input)`.
fn faults_of(detail: &Value) -> String {
    let fault = |fault: &Value| {
        let place = fault["loc"].as_array().into_iter().flatten().skip_while(|part| *part == "body");
        let place: Vec<String> =
            place.map(|part| part.as_str().map_or_else(|| part.to_string(), str::to_owned)).collect();
        let said = fault["msg"].as_str()?;
        Some(if place.is_empty() { said.to_owned() } else { format!("{said} ({})", place.join(".")) })
    };
    let faults: Option<Vec<String>> = detail.as_array().into_iter().flatten().map(fault).collect();
    faults.filter(|faults| !faults.is_empty()).map_or_else(|| detail.to_string(), |faults| faults.join("; "))
}

const SHOWN_BYTES: usize = 1_000;

fn shortened(text: &str) -> String {
    let end = (0..=SHOWN_BYTES.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    text[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(status: u16, body: &str, class: FailureClass, says: &str) {
        let failure = http_failure(HttpRefusal {
            status,
            body,
            retry_after_ms: Some(2_000),
            url: "https://host/v1/messages",
            model: "big-model",
            credential: "the provider refused the key",
        });
        assert_eq!(failure.class, class, "{body}");
        assert!(failure.message.contains(says), "{}", failure.message);
        assert_eq!(
            failure.message.contains("is not there"),
            failure.codex_error_info() == CodexErrorInfo::ModelNotFound,
            "{}",
            failure.message
        );
    }

    #[test]
    fn vendors_say_the_same_in_many_ways() {
        let anthropic = |kind: &str, message: &str| {
            serde_json::json!({"type": "error", "error": {"type": kind, "message": message}}).to_string()
        };
        use FailureClass as Class;
        check(401, &anthropic("authentication_error", "invalid x-api-key"), Class::Unauthorized, "x-api-key");
        check(
            400,
            &anthropic("invalid_request_error", "prompt is too long: 250000 tokens > 200000 maximum"),
            Class::ContextWindow,
            "too long",
        );
        check(
            400,
            &anthropic("invalid_request_error", "Your credit balance is too low to access the API."),
            Class::Quota,
            "credit",
        );
        check(404, &anthropic("not_found_error", "model: big-model"), Class::InvalidRequest, "is not there");
        check(
            413,
            &anthropic("request_too_large", "Request exceeds the maximum size"),
            Class::ContextWindow,
            "exceeds",
        );
        check(429, &anthropic("rate_limit_error", "slow"), Class::TooManyAttempts, "slow");
        check(500, &anthropic("api_error", "Internal server error"), Class::InternalServerError, "Internal");
        check(529, &anthropic("overloaded_error", "Overloaded"), Class::Overloaded, "Overloaded");
        // OpenAI, llama.cpp, Gemini, Mistral, Ollama, vLLM.
        check(
            400,
            r#"{"error":{"message":"This model's maximum context length is 8192 tokens.","code":"context_length_exceeded"}}"#,
            Class::ContextWindow,
            "8192",
        );
        check(
            400,
            r#"{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}"#,
            Class::ContextWindow,
            "context size",
        );
        check(
            400,
            r#"[{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT"}}]"#,
            Class::Unauthorized,
            "API key",
        );
        check(
            422,
            r#"{"detail":[{"loc":["body","input",0],"msg":"Extra inputs are not permitted"},{"msg":"so it is"}]}"#,
            Class::InvalidRequest,
            "Extra inputs are not permitted (input.0); so it is",
        );
        check(
            404,
            "404 page not found",
            Class::InvalidRequest,
            "https://host/v1/messages answered 404 Not Found (404 page not found); check base_url",
        );
        check(
            404,
            r#"{"error":"model \"big-model\" not found, try pulling it first"}"#,
            Class::InvalidRequest,
            "pulling",
        );
        check(404, "<!doctype html><html>", Class::InvalidRequest, "check base_url");
        check(400, "no such parameter", Class::InvalidRequest, "no such parameter");
        check(418, "teapot", Class::UnexpectedStatus, "unexpected status 418: teapot");
        check(
            502,
            "<html>",
            Class::UnexpectedStatus,
            "answered 502 Bad Gateway with a page instead of an API",
        );
        check(
            500,
            "",
            Class::InternalServerError,
            "the provider failed: unexpected status 500 Internal Server Error",
        );
        check(
            401,
            "{}",
            Class::Unauthorized,
            "the provider refused the key: unexpected status 401 Unauthorized",
        );
        check(
            429,
            r#"{"error":{"type":"usage_limit_reached"}}"#,
            Class::UsageLimit,
            "The usage limit of this account is reached; try again later.",
        );
        check(
            429,
            r#"{"error":{"message":"You exceeded your quota","code":"insufficient_quota"}}"#,
            Class::Quota,
            "quota",
        );
    }

    #[test]
    fn words_of_money_and_size_do_not_make_a_limit_by_the_minute_anything_else() {
        use FailureClass as Class;
        check(
            429,
            r#"{"error":{"message":"Rate limit reached for model `big-model` on tokens per minute (TPM): Limit 6000, Used 5000, Requested 2000. Please try again in 10s. Need more tokens? Upgrade to Dev Tier today at https://console.groq.com/settings/billing","type":"tokens","code":"rate_limit_exceeded"}}"#,
            Class::TooManyAttempts,
            "too many requests: Rate limit reached",
        );
        check(
            429,
            r#"{"message":"Too many tokens, please wait before trying again."}"#,
            Class::TooManyAttempts,
            "Too many tokens",
        );
        check(
            400,
            r#"{"error":{"message":"tool calling is not supported with this model","code":"invalid_request"}}"#,
            Class::InvalidRequest,
            "tool calling is not supported with this model",
        );
    }

    #[test]
    fn a_rate_limit_that_says_when_is_waited_for() {
        let failed = |body, retry_after_ms| {
            let refusal = HttpRefusal {
                status: 429,
                body,
                retry_after_ms,
                url: "u",
                model: "m",
                credential: "the provider refused the key",
            };
            http_failure(refusal)
        };
        let limited = |body, retry_after_ms| {
            let failure = failed(body, retry_after_ms);
            (failure.class, failure.is_retryable(), failure.retry_after_ms)
        };
        let told = |body, retry_after_ms| failed(body, retry_after_ms).message;
        use FailureClass::{Quota, TooManyAttempts};
        assert_eq!(limited("{}", Some(2_000)), (TooManyAttempts, true, Some(2_000)));
        assert_eq!(limited("{}", Some(3_600_000)), (TooManyAttempts, false, Some(3_600_000)));
        assert_eq!(limited("{}", None), (TooManyAttempts, false, None));
        assert_eq!(
            told("{\"error\":\"Slow down.\"}", Some(3_600_000)),
            "too many requests: Slow down; try again in 60 minutes"
        );
        assert_eq!(
            told("{}", Some(90_000_000)),
            "too many requests: unexpected status 429 Too Many Requests; try again in 25 hours"
        );
        // Without the header, the body has the delay. With it, the header counts.
        let groq =
            r#"{"error":{"message":"Please try again in 11.054s. Upgrade at https://x/settings/billing"}}"#;
        assert_eq!(limited(groq, None), (TooManyAttempts, true, Some(11_054)));
        assert_eq!(limited(groq, Some(20_000)), (TooManyAttempts, true, Some(20_000)));
        // Gemini uses the same message for limits per minute and per month; only the former passes.
        let gemini = |details: &str| {
            format!(
                r#"[{{"error":{{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{details}],
                "message":"You exceeded your current quota, please check your plan and billing details."}}}}]"#
            )
        };
        let (passing, lasting) = (gemini(r#"{"retryDelay":"29s"}"#), gemini(""));
        assert_eq!(limited(&passing, None), (TooManyAttempts, true, Some(29_000)));
        assert_eq!(limited(&lasting, None), (Quota, false, None));
        let spent = r#"{"error":{"code":"insufficient_quota","message":"Try again in 2s."}}"#;
        assert_eq!(limited(spent, Some(2_000)).0, Quota);
    }

    #[test]
    fn an_answer_without_events_is_read_as_the_error_it_is() {
        let read = |body| {
            no_stream(body, "http://host/v1/responses")
                .map(|failure| (failure.is_retryable(), failure.message))
        };
        let said = |may_retry, message: &str| Some((may_retry, message.to_owned()));
        assert_eq!(
            read(r#"{"error":{"message":"no such deployment"}}"#),
            said(false, "the provider failed: no such deployment")
        );
        assert_eq!(
            read(r#"{"error":{"message":"Overloaded","type":"overloaded_error"}}"#),
            said(true, "the model is overloaded: Overloaded")
        );
        let whole = said(
            false,
            "http://host/v1/responses answered with JSON instead of a stream of events; check base_url and wire_api",
        );
        assert_eq!(read(r#"{"id":"r1","output":[]}"#), whole);
        assert_eq!((read(""), read(": a comment")), (None, None));
    }

    #[test]
    fn errors_inside_a_stream() {
        let read = |text: &str| in_stream(&serde_json::from_str(text).unwrap());
        let overloaded =
            read(r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#).unwrap();
        assert!(overloaded.class == FailureClass::Overloaded && overloaded.is_retryable());
        let limited = r#"{"error":{"message":"Too many tokens, please wait. Try again in 3s","code":429}}"#;
        let limited = read(limited).unwrap();
        assert_eq!((limited.is_retryable(), limited.retry_after_ms), (true, Some(3_000)));
        assert_eq!(limited.class, FailureClass::Overloaded);
        let broken = read(r#"{"error":{"message":"boom","code":500}}"#).unwrap();
        assert!(broken.class == FailureClass::Stream && broken.is_retryable());
        assert_eq!(broken.message, "the provider failed: boom");
        let of_responses = read(r#"{"type":"error","code":"server_error","message":"boom"}"#).unwrap();
        assert_eq!(of_responses.message, "the provider failed: boom");
        assert!(
            read(r#"{"object":"error","message":"prompt is too long"}"#).unwrap().class
                == FailureClass::ContextWindow
        );
        assert_eq!(read(r#"{"choices":[],"error":null}"#), None);
    }
}
