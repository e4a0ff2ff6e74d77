//! Every vendor's failures in one vocabulary, with the vendor's own words.

use model::protocol::CodexErrorInfo;
use model::{FailureClass, FailureVerdict, ModelFailure, status_text};
use serde_json::Value;

/// An HTTP answer that is no stream, as far as it matters here. Holds no secret.
#[derive(Debug, Clone, Copy)]
pub struct HttpRefusal<'a> {
    pub status: u16,
    pub body: &'a str,
    /// `retry-after`, in milliseconds.
    pub retry_after_ms: Option<u64>,
    pub url: &'a str,
    pub model: &'a str,
    /// Where the credential came from, for the message when it is refused.
    pub credential: &'a str,
}

/// A failure in the known classes, in one sentence: our words for its kind, then the vendor's own.
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
        (None, "" | "{}") => format!("unexpected status {status}"),
        // Plain words about the request.
        (None, shown) if refusal.status == 400 && !shown.starts_with(['{', '[']) => shown.to_owned(),
        (None, shown) => format!("unexpected status {status}: {shown}"),
    };
    let kind = words.as_ref().map(|words| words.kind.as_str()).unwrap_or_default();
    let text = words.as_ref().map(|words| words.message.to_ascii_lowercase()).unwrap_or_default();
    let class = match refusal.status {
        // No API is there, whatever the status says.
        ..500 if is_page => FailureClass::InvalidRequest,
        status => class_of(status, kind, &text),
    };
    let said = match class {
        _ if is_page => said,
        FailureClass::Unauthorized => format!("{}: {said}", refusal.credential),
        class => in_our_words(class, &said),
    };
    let mut failure = ModelFailure::new(class, said);
    failure.http_status = Some(refusal.status);
    match class {
        FailureClass::InvalidRequest if is_unknown_model(refusal.status, kind, &text) => {
            failure.message = format!("the model `{}` is not there: {}", refusal.model, failure.message);
            failure.verdict = Some(FailureVerdict { info: CodexErrorInfo::ModelNotFound, may_retry: false });
        }
        FailureClass::InvalidRequest => {
            failure.verdict = Some(FailureVerdict { info: CodexErrorInfo::BadRequest, may_retry: false });
        }
        FailureClass::TooManyAttempts => {
            failure.retry_after_ms = refusal.retry_after_ms;
            let info = failure.codex_error_info();
            let may_retry = refusal.retry_after_ms.is_some_and(|wait| wait <= LONGEST_WAIT_MS);
            failure.verdict = Some(FailureVerdict { info, may_retry });
        }
        FailureClass::ContextWindow => failure.verdict = Some(room_helps()),
        _ => {}
    }
    failure
}

/// Puts our words for this kind of failure, the same for every vendor, before the vendor's own.
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

/// The same request fails again; with a shorter history it may not.
pub(crate) fn room_helps() -> FailureVerdict {
    FailureVerdict { info: CodexErrorInfo::ContextWindowExceeded, may_retry: true }
}

/// A limit that is lifted only later is better told than waited for.
pub const LONGEST_WAIT_MS: u64 = 120_000;

/// An error object in the middle of a stream that began well.
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
    let status = words.status.unwrap_or(0);
    let failure = match class_of(status, &words.kind, &text) {
        // Whatever it is, the stream broke, and may do better the next time.
        FailureClass::UnexpectedStatus | FailureClass::InternalServerError => {
            ModelFailure::stream(words.message)
        }
        FailureClass::TooManyAttempts | FailureClass::Overloaded => {
            let failure = ModelFailure::new(FailureClass::Overloaded, words.message);
            let info = CodexErrorInfo::ServerOverloaded;
            ModelFailure { verdict: Some(FailureVerdict { info, may_retry: true }), ..failure }
        }
        FailureClass::ContextWindow => ModelFailure {
            verdict: Some(room_helps()),
            ..ModelFailure::new(FailureClass::ContextWindow, words.message)
        },
        class => ModelFailure::new(class, words.message),
    };
    Some(failure)
}

/// The model or its provider will not answer this, however often it is asked.
pub(crate) fn refusal(reason: &str) -> ModelFailure {
    let failure = ModelFailure::new(FailureClass::InvalidRequest, format!("the model refused: {reason}"));
    ModelFailure {
        verdict: Some(FailureVerdict { info: CodexErrorInfo::Other, may_retry: false }),
        ..failure
    }
}

fn class_of(status: u16, kind: &str, text: &str) -> FailureClass {
    let says = |phrases: &[&str]| phrases.iter().any(|phrase| text.contains(phrase) || kind.contains(phrase));
    if says(TOO_LONG) {
        return FailureClass::ContextWindow;
    }
    if says(NO_MONEY) || status == 402 {
        return FailureClass::Quota;
    }
    if says(&["overloaded", "slow_down", "service_unavailable"]) {
        return FailureClass::Overloaded;
    }
    match (status, kind) {
        (_, "authentication_error" | "permission_error" | "invalid_api_key") | (401 | 403, _) => {
            FailureClass::Unauthorized
        }
        // Gemini says so with 400.
        (400, _)
            if says(&["api key not valid", "api_key_invalid", "invalid api key", "incorrect api key"]) =>
        {
            FailureClass::Unauthorized
        }
        (429, _) | (_, "rate_limit_error" | "rate_limit_exceeded") => FailureClass::TooManyAttempts,
        (413, _) | (_, "request_too_large") => FailureClass::ContextWindow,
        (400 | 404 | 405 | 422, _) | (_, "invalid_request_error" | "not_found_error") => {
            FailureClass::InvalidRequest
        }
        (503 | 529, _) => FailureClass::Overloaded,
        (500, _) | (_, "api_error" | "server_error") => FailureClass::InternalServerError,
        _ => FailureClass::UnexpectedStatus,
    }
}

/// How vendors say that an input does not fit.
const TOO_LONG: &[&str] = &[
    "context_length_exceeded",
    "prompt is too long",
    "maximum context length",
    "exceed_context_size",
    "exceeds the available context size",
    "context window",
    "input is too long",
    "input length and `max_tokens` exceed",
    "too many tokens",
    "exceeds the maximum number of tokens",
    "reduce the length",
];

const NO_MONEY: &[&str] = &[
    "insufficient_quota",
    "credit balance is too low",
    "billing",
    "insufficient balance",
    "insufficient credits",
];

fn is_unknown_model(status: u16, kind: &str, text: &str) -> bool {
    let is_missing =
        ["not found", "does not exist", "not_found", "no such", "unknown model", "is not supported"];
    kind == "model_not_found"
        || (text.contains("model")
            && is_missing.iter().any(|phrase| text.contains(phrase) || kind.contains(phrase)))
        || (status == 404 && kind == "not_found_error")
}

/// A vendor's report of a failure.
struct VendorWords {
    message: String,
    kind: String,
    status: Option<u16>,
}

impl VendorWords {
    fn read(body: &str) -> Option<Self> {
        Self::of(&serde_json::from_str(body).ok()?)
    }

    /// `{"error": {…}}`, `{"error": "…"}`, `[{"error": {…}}]`, `{"object": "error", …}`, `{"detail": …}`.
    fn of(value: &Value) -> Option<Self> {
        let value = if value.is_array() { value.get(0)? } else { value };
        let error = if value["error"].is_object() { &value["error"] } else { value };
        let code = if value["error"].is_object() { &error["code"] } else { &Value::Null };
        let message = [&error["message"], &value["error"], &error["detail"], &error["msg"], code];
        let message = message.iter().find_map(|text| text.as_str().filter(|text| !text.is_empty()));
        let message = match message {
            Some(message) => shortened(message),
            None if error["detail"].is_array() => shortened(&error["detail"].to_string()),
            None => return None,
        };
        let kinds = [&error["code"], &error["type"], &error["status"]];
        let kind = kinds.iter().find_map(|kind| kind.as_str()).unwrap_or_default();
        let status = error["code"].as_u64().and_then(|code| u16::try_from(code).ok());
        Some(Self { message, kind: kind.to_ascii_lowercase(), status })
    }
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
            r#"{"detail":[{"msg":"Extra inputs are not permitted"}]}"#,
            Class::InvalidRequest,
            "Extra inputs",
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
    fn a_rate_limit_that_says_when_is_waited_for() {
        let limited = |retry_after_ms| {
            let refusal = HttpRefusal {
                status: 429,
                body: "{}",
                retry_after_ms,
                url: "u",
                model: "m",
                credential: "the provider refused the key",
            };
            let failure = http_failure(refusal);
            (failure.is_retryable(), failure.retry_after_ms)
        };
        assert_eq!(limited(Some(2_000)), (true, Some(2_000)));
        assert_eq!(limited(Some(3_600_000)), (false, Some(3_600_000)));
        assert_eq!(limited(None), (false, None));
    }

    #[test]
    fn errors_inside_a_stream() {
        let read = |text: &str| in_stream(&serde_json::from_str(text).unwrap());
        let overloaded =
            read(r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#).unwrap();
        assert!(overloaded.class == FailureClass::Overloaded && overloaded.is_retryable());
        let broken = read(r#"{"error":{"message":"boom","code":500}}"#).unwrap();
        assert!(broken.class == FailureClass::Stream && broken.is_retryable());
        assert!(
            read(r#"{"object":"error","message":"prompt is too long"}"#).unwrap().class
                == FailureClass::ContextWindow
        );
        assert_eq!(read(r#"{"choices":[],"error":null}"#), None);
    }
}
