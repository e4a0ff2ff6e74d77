//! Failures of a model request, and their consequences.

use protocol::{CodexErrorInfo, RateLimitSnapshot, TokenUsageBreakdown};
use serde::Deserialize;
use serde_json::Value;

/// Why a model request failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ModelFailure {
    pub class: FailureClass,
    /// One sentence for a person. Never holds a key or a header.
    pub message: String,
    pub http_status: Option<u16>,
    /// How long the provider asked to wait, in milliseconds.
    pub retry_after_ms: Option<u64>,
    /// Set where whoever carried the request knows better than the class.
    pub verdict: Option<FailureVerdict>,
    /// The tokens it used all the same, where that is known.
    pub spent: Option<TokenUsageBreakdown>,
    /// Where the account stands, when that is why.
    pub rate_limits: Option<Box<RateLimitSnapshot>>,
}

/// The classification of a failure by the carrier of the request.
#[derive(Debug, Clone, PartialEq)]
pub struct FailureVerdict {
    /// How clients are told.
    pub info: CodexErrorInfo,
    /// Whether the same request may be sent again.
    pub may_retry: bool,
}

/// The identity of an HTTP answer; whoever runs the provider can find the request by it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trace {
    pub cf_ray: Option<String>,
    pub request_id: Option<String>,
    pub authorization_error: Option<String>,
}

/// The kinds of failure that are treated differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureClass {
    ContextWindow,
    UsageLimit,
    Quota,
    PlanLacksUsage,
    InvalidRequest,
    InvalidImage,
    Overloaded,
    /// The provider keeps refusing by rate (429).
    TooManyAttempts,
    InternalServerError,
    UnexpectedStatus,
    /// No connection could be made.
    Connection,
    Unauthorized,
    /// The stream broke, ended early, or fell silent.
    Stream,
    /// The request was never sent: nothing is configured to carry it.
    NotConfigured,
    /// Whoever carries the requests has left and may come back, so the turn can wait for it.
    CarrierGone,
}

impl ModelFailure {
    pub fn new(class: FailureClass, message: impl Into<String>) -> Self {
        Self {
            class,
            message: message.into(),
            http_status: None,
            retry_after_ms: None,
            verdict: None,
            spent: None,
            rate_limits: None,
        }
    }

    /// A stream that broke for the given reason.
    pub fn stream(reason: impl std::fmt::Display) -> Self {
        Self::new(FailureClass::Stream, format!("stream disconnected before completion: {reason}"))
    }

    /// Whether the same request may succeed when sent again.
    pub fn is_retryable(&self) -> bool {
        if let Some(verdict) = &self.verdict {
            return verdict.may_retry;
        }
        match self.class {
            // A wrong key, a wrong address or a missing model stays so.
            FailureClass::UnexpectedStatus if matches!(self.http_status, Some(401 | 403 | 404 | 405)) => {
                false
            }
            FailureClass::Stream
            | FailureClass::InternalServerError
            | FailureClass::UnexpectedStatus
            | FailureClass::Connection => true,
            FailureClass::ContextWindow
            | FailureClass::UsageLimit
            | FailureClass::Quota
            | FailureClass::PlanLacksUsage
            | FailureClass::InvalidRequest
            | FailureClass::InvalidImage
            | FailureClass::Overloaded
            | FailureClass::TooManyAttempts
            | FailureClass::Unauthorized
            | FailureClass::NotConfigured
            | FailureClass::CarrierGone => false,
        }
    }

    /// How clients are told.
    pub fn codex_error_info(&self) -> CodexErrorInfo {
        if let Some(verdict) = &self.verdict {
            return verdict.info.clone();
        }
        let http_status_code = self.http_status;
        match self.class {
            FailureClass::ContextWindow => CodexErrorInfo::ContextWindowExceeded,
            FailureClass::UsageLimit | FailureClass::Quota | FailureClass::PlanLacksUsage => {
                CodexErrorInfo::UsageLimitExceeded
            }
            FailureClass::Overloaded => CodexErrorInfo::ServerOverloaded,
            FailureClass::TooManyAttempts => {
                CodexErrorInfo::ResponseTooManyFailedAttempts { http_status_code }
            }
            FailureClass::InternalServerError => CodexErrorInfo::InternalServerError,
            FailureClass::Connection => CodexErrorInfo::HttpConnectionFailed { http_status_code },
            // Without a key nobody was asked, and the answer would have been the same.
            FailureClass::Unauthorized | FailureClass::NotConfigured => CodexErrorInfo::Unauthorized,
            FailureClass::InvalidImage => CodexErrorInfo::BadRequest,
            FailureClass::InvalidRequest
            | FailureClass::UnexpectedStatus
            | FailureClass::Stream
            | FailureClass::CarrierGone => CodexErrorInfo::Other,
        }
    }

    /// Reads the `error` object of a `response.failed` event.
    pub fn from_failed_response(error: Option<&Value>) -> Self {
        let text = |name: &str| error.and_then(|error| error.get(name)).and_then(Value::as_str);
        let message = text("message").unwrap_or("the provider gave no reason");
        match text("code").unwrap_or_default() {
            "context_length_exceeded" => Self::context_window(),
            "insufficient_quota" => Self::quota(),
            "usage_not_included" => Self::plan_lacks_usage(),
            "invalid_prompt" => Self::new(FailureClass::InvalidRequest, message),
            "server_is_overloaded" | "slow_down" => Self::overloaded(),
            code => {
                let retry_after_ms =
                    if code == "rate_limit_exceeded" { requested_delay(message) } else { None };
                Self { retry_after_ms, ..Self::stream(message) }
            }
        }
    }

    /// Reads an HTTP answer that is not a success. `url` is shown to the user; it must hold no secret.
    pub fn from_http(status: u16, body: &str, url: &str) -> Self {
        let error = serde_json::from_str::<ErrorBody>(body).map(|body| body.error).unwrap_or_default();
        let failure = match (status, error.kind.as_deref(), error.code.as_deref()) {
            (400, ..) if body.contains("image data you provided does not represent a valid image") => {
                Self::new(FailureClass::InvalidImage, "the provider could not read an image in the request")
            }
            (400, ..) => Self::new(FailureClass::InvalidRequest, shortened(body)),
            (429, Some("usage_limit_reached"), _) => Self::new(
                FailureClass::UsageLimit,
                format!("The usage limit of this account is reached; try again {}.", error.when_reset()),
            ),
            (429, Some("usage_not_included"), _) => Self::plan_lacks_usage(),
            (429, ..) => Self::new(
                FailureClass::TooManyAttempts,
                format!("exceeded retry limit, last status: {}", status_text(status)),
            ),
            (500, ..) => Self::new(
                FailureClass::InternalServerError,
                "The model provider failed with an internal error; try again.",
            ),
            (503, _, Some("server_is_overloaded" | "slow_down")) => Self::overloaded(),
            _ => {
                let shown = error.message.unwrap_or_else(|| body_text(body));
                let status = status_text(status);
                Self::new(
                    FailureClass::UnexpectedStatus,
                    format!("unexpected status {status}: {shown}, url: {url}"),
                )
            }
        };
        Self { http_status: Some(status), ..failure }
    }

    /// Adds the names under which the provider knows the answer, where the message is about the answer itself.
    pub fn traced(mut self, trace: &Trace) -> Self {
        let is_unexpected = self.class == FailureClass::UnexpectedStatus;
        if !is_unexpected && self.class != FailureClass::TooManyAttempts {
            return self;
        }
        let parts = [
            ("cf-ray", trace.cf_ray.as_ref().filter(|_| is_unexpected)),
            ("request id", trace.request_id.as_ref()),
            ("auth error", trace.authorization_error.as_ref().filter(|_| is_unexpected)),
        ];
        for (name, value) in parts.into_iter().filter_map(|(name, value)| Some((name, value?))) {
            self.message = format!("{}, {name}: {value}", self.message);
        }
        self
    }

    /// The status clients are told while the request is tried again: that of an answer nobody expected.
    pub fn status_while_retrying(&self) -> Option<u16> {
        self.http_status.filter(|_| self.class != FailureClass::InternalServerError)
    }

    fn context_window() -> Self {
        Self::new(
            FailureClass::ContextWindow,
            "The conversation no longer fits the model's context window; start a new thread or compact this one.",
        )
    }
    fn quota() -> Self {
        Self::new(FailureClass::Quota, "The quota of this account is used up; check its plan and billing.")
    }
    fn plan_lacks_usage() -> Self {
        Self::new(FailureClass::PlanLacksUsage, "The plan of this account does not include this use.")
    }
    fn overloaded() -> Self {
        Self::new(
            FailureClass::Overloaded,
            "The selected model is overloaded; try again later or choose another.",
        )
    }
}

#[derive(Default, Deserialize)]
struct ErrorBody {
    #[serde(default)]
    error: ErrorFields,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ErrorFields {
    message: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
    code: Option<String>,
    /// In seconds since 1970.
    resets_at: Option<i64>,
}

impl ErrorFields {
    fn when_reset(&self) -> String {
        let at = self.resets_at.and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
        at.map_or_else(|| "later".to_owned(), |at| format!("after {}", at.strftime("%Y-%m-%d %H:%M UTC")))
    }
}

/// `429 Too Many Requests`; the number alone for a status without a name.
pub fn status_text(status: u16) -> String {
    let name = match status {
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        413 => "Payload Too Large",
        415 => "Unsupported Media Type",
        422 => "Unprocessable Entity",
        424 => "Failed Dependency",
        426 => "Upgrade Required",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        451 => "Unavailable For Legal Reasons",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => return status.to_string(),
    };
    format!("{status} {name}")
}

const SHOWN_BODY_BYTES: usize = 1_000;

/// A body that names no error, as far as it fits into one.
fn body_text(body: &str) -> String {
    match body.trim() {
        "" => "Unknown error".to_owned(),
        body if body.len() > SHOWN_BODY_BYTES => format!("{}...", shortened(body)),
        body => body.to_owned(),
    }
}

fn shortened(body: &str) -> String {
    let end =
        (0..=SHOWN_BODY_BYTES.min(body.len())).rev().find(|end| body.is_char_boundary(*end)).unwrap_or(0);
    body[..end].to_owned()
}

/// Finds "try again in 1.5s" and the like.
fn requested_delay(message: &str) -> Option<u64> {
    let lower = message.to_ascii_lowercase();
    let rest = lower.split_once("try again in ")?.1.trim_start();
    let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    let number: f64 = rest[..digits].trim_end_matches('.').parse().ok()?;
    let unit = rest[digits..].trim_start();
    let milliseconds = if unit.starts_with("ms") {
        number
    } else if unit.starts_with('s') {
        number * 1_000.0
    } else {
        return None;
    };
    (milliseconds.is_finite() && milliseconds >= 0.0).then_some(milliseconds as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_http(status: u16, body: &str, class: FailureClass, message: &str) {
        let failure = ModelFailure::from_http(status, body, "http://127.0.0.1:1/v1/responses");
        assert_eq!((failure.class, failure.message.as_str()), (class, message));
        assert_eq!(failure.http_status, Some(status));
    }

    #[test]
    fn http_answers_have_their_class() {
        check_http(
            400,
            r#"{"error":{"message":"no"}}"#,
            FailureClass::InvalidRequest,
            r#"{"error":{"message":"no"}}"#,
        );
        check_http(
            401,
            r#"{"error":{"message":"bad key"}}"#,
            FailureClass::UnexpectedStatus,
            "unexpected status 401 Unauthorized: bad key, url: http://127.0.0.1:1/v1/responses",
        );
        check_http(
            429,
            "{}",
            FailureClass::TooManyAttempts,
            "exceeded retry limit, last status: 429 Too Many Requests",
        );
        let busy = r#"{"error":{"code":"slow_down"}}"#;
        assert_eq!(ModelFailure::from_http(503, busy, "").class, FailureClass::Overloaded);
        assert_eq!(ModelFailure::from_http(503, "<html>", "").class, FailureClass::UnexpectedStatus);
        let spent = r#"{"error":{"type":"usage_limit_reached"}}"#;
        assert_eq!(ModelFailure::from_http(429, spent, "").class, FailureClass::UsageLimit);
        for (resets_at, when) in [("null", "later"), ("4102444800", "after 2100-01-01 00:00 UTC")] {
            let spent = format!(r#"{{"error":{{"type":"usage_limit_reached","resets_at":{resets_at}}}}}"#);
            let said = ModelFailure::from_http(429, &spent, "").message;
            assert_eq!(said, format!("The usage limit of this account is reached; try again {when}."));
        }
    }

    #[track_caller]
    fn check_trace(status: u16, body: &str, expected: &str) {
        let trace = Trace {
            cf_ray: Some("ray".into()),
            request_id: Some("req".into()),
            authorization_error: Some("expired".into()),
        };
        assert_eq!(ModelFailure::from_http(status, body, "u").traced(&trace).message, expected);
    }

    #[test]
    fn an_answer_can_be_found_at_its_provider() {
        check_trace(
            402,
            r#"{"error":{"message":"pay"}}"#,
            "unexpected status 402 Payment Required: pay, url: u, cf-ray: ray, request id: req, auth error: expired",
        );
        check_trace(429, "{}", "exceeded retry limit, last status: 429 Too Many Requests, request id: req");
        check_trace(400, "bad", "bad");
        let untraced = ModelFailure::from_http(404, "gone", "u").traced(&Trace::default());
        assert_eq!(untraced.message, "unexpected status 404 Not Found: gone, url: u");
    }

    #[test]
    fn what_stays_wrong_is_not_tried_again() {
        let retryable = |status| ModelFailure::from_http(status, "", "u").is_retryable();
        assert_eq!([401, 403, 404, 405, 502, 504].map(retryable), [false, false, false, false, true, true]);
    }

    #[test]
    fn a_failure_inside_the_provider_is_retried_without_its_status() {
        let status = |status| ModelFailure::from_http(status, "", "").status_while_retrying();
        assert_eq!([status(500), status(502)], [None, Some(502)]);
        assert_eq!(ModelFailure::stream("x").status_while_retrying(), None);
    }

    #[test]
    fn a_long_body_is_cut_on_a_character() {
        let failure = ModelFailure::from_http(400, &"é".repeat(2_000), "");
        assert_eq!(failure.message.len(), 1_000);
        let failure = ModelFailure::from_http(404, &"é".repeat(2_000), "u");
        assert!(failure.message.ends_with("é..., url: u"), "{}", failure.message);
        let failure = ModelFailure::from_http(404, " ", "u");
        assert_eq!(failure.message, "unexpected status 404 Not Found: Unknown error, url: u");
    }

    #[test]
    fn delays_are_read_from_rate_limit_messages() {
        for (text, expected) in [
            ("Rate limit reached. Please try again in 1.898s.", Some(1_898)),
            ("try again in 250ms", Some(250)),
            ("Try again in 3 seconds", Some(3_000)),
            ("try again in a while", None),
            ("try again later", None),
        ] {
            let error = serde_json::json!({ "code": "rate_limit_exceeded", "message": text });
            let failure = ModelFailure::from_failed_response(Some(&error));
            assert_eq!(failure.retry_after_ms, expected, "{text}");
            assert!(failure.is_retryable());
        }
    }
}
