//! Failures of a model request, and how they are handled.

use protocol::{CodexErrorInfo, RateLimitSnapshot, TokenUsageBreakdown};
use serde::Deserialize;
use serde_json::Value;

use crate::wait::requested_delay;

/// A limit that is lifted later than this is reported instead of awaited.
pub const LONGEST_WAIT_MS: u64 = 120_000;

/// Why a model request failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ModelFailure {
    pub class: FailureClass,
    /// One sentence for the user. Never contains a key or a header.
    pub message: String,
    /// Further details: the URL, and the provider's ids of the response.
    pub details: Option<String>,
    pub http_status: Option<u16>,
    /// The delay that the provider requested, in milliseconds.
    pub retry_after_ms: Option<u64>,
    /// Set if the carrier of the request knows better than the class says.
    pub verdict: Option<FailureVerdict>,
    /// The tokens used despite the failure, if known.
    pub spent: Option<TokenUsageBreakdown>,
    /// The account's limits, if they caused the failure.
    pub rate_limits: Option<Box<RateLimitSnapshot>>,
}

/// The carrier's own classification of a failure.
#[derive(Debug, Clone, PartialEq)]
pub struct FailureVerdict {
    /// The error for clients.
    pub info: CodexErrorInfo,
    /// Whether the same request may be retried.
    pub may_retry: bool,
}

/// The classes of failures with different handling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureClass {
    ContextWindow,
    UsageLimit,
    Quota,
    PlanLacksUsage,
    InvalidRequest,
    InvalidImage,
    Overloaded,
    /// The rate limit persists (429).
    TooManyAttempts,
    InternalServerError,
    UnexpectedStatus,
    /// No connection could be made.
    Connection,
    Unauthorized,
    /// The stream broke, ended early, or fell silent.
    Stream,
    /// The model paused and continues its answer on request.
    Paused,
    /// Not sent: no provider is configured.
    NotConfigured,
    /// The host that carries the requests disconnected and may return, so the turn can wait.
    CarrierGone,
}

impl ModelFailure {
    pub fn new(class: FailureClass, message: impl Into<String>) -> Self {
        Self {
            class,
            message: message.into(),
            details: None,
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

    /// An answer that ends before it is whole, and why. Asked again it would most likely end there again, and be paid for
    /// again.
    pub(crate) fn incomplete(reason: &str) -> Self {
        let message = match reason {
            "max_output_tokens" => {
                "the answer was cut: it is as long as the model's answers may be (max_output_tokens)"
            }
            "content_filter" => "the answer was cut by the provider's content filter",
            reason => return Self::stream(format_args!("the response is incomplete, reason: {reason}")),
        };
        let verdict = FailureVerdict { info: CodexErrorInfo::Other, may_retry: false };
        Self { verdict: Some(verdict), ..Self::new(FailureClass::InvalidRequest, message) }
    }

    /// Whether a retry may succeed.
    pub fn is_retryable(&self) -> bool {
        if let Some(verdict) = &self.verdict {
            return verdict.may_retry;
        }
        match self.class {
            // A wrong key or URL or a missing model is permanent.
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
            | FailureClass::Paused
            | FailureClass::CarrierGone => false,
        }
    }

    /// The error for clients.
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
            // A missing key has the same effect as a refused one.
            FailureClass::Unauthorized | FailureClass::NotConfigured => CodexErrorInfo::Unauthorized,
            FailureClass::InvalidImage => CodexErrorInfo::BadRequest,
            FailureClass::InvalidRequest
            | FailureClass::UnexpectedStatus
            | FailureClass::Stream
            | FailureClass::Paused
            | FailureClass::CarrierGone => CodexErrorInfo::Other,
        }
    }

    /// Parses the `error` object of a `response.failed` event.
    pub fn from_failed_response(error: Option<&Value>) -> Self {
        let text = |name: &str| error.and_then(|error| error.get(name)).and_then(Value::as_str);
        let message = text("message").unwrap_or("the provider gave no reason");
        match text("code").unwrap_or_default() {
            "context_length_exceeded" => Self::context_window(),
            "insufficient_quota" => {
                Self::new(FailureClass::Quota, format!("the account has no quota left: {message}"))
            }
            "usage_not_included" => Self::plan_lacks_usage(),
            "invalid_prompt" => Self::new(FailureClass::InvalidRequest, message),
            "server_is_overloaded" | "slow_down" => {
                Self::new(FailureClass::Overloaded, format!("the model is overloaded: {message}"))
            }
            "rate_limit_exceeded" => Self {
                // Without a delay, the turn waits as after any other failure.
                retry_after_ms: requested_delay(message).filter(|wait| *wait <= LONGEST_WAIT_MS),
                ..Self::new(FailureClass::Stream, format!("too many requests: {message}"))
            },
            _ => Self::stream(message),
        }
    }

    /// Recognises errors about the user's account or one of the user's images, which no change of the request fixes.
    /// None for other responses.
    pub fn of_account(status: u16, body: &str) -> Option<Self> {
        let error = serde_json::from_str::<ErrorBody>(body).map(|body| body.error).unwrap_or_default();
        let failure = match (status, error.kind.as_deref()) {
            (400, _) if body.contains("image data you provided does not represent a valid image") => {
                Self::new(FailureClass::InvalidImage, "the provider could not read an image in the request")
            }
            (429, Some("usage_limit_reached")) => Self::new(
                FailureClass::UsageLimit,
                format!("The usage limit of this account is reached; try again {}.", error.when_reset()),
            ),
            (429, Some("usage_not_included")) => Self::plan_lacks_usage(),
            _ => return None,
        };
        Some(Self { http_status: Some(status), ..failure })
    }

    /// The status shown to clients during retries: only of an unexpected response.
    pub fn status_while_retrying(&self) -> Option<u16> {
        self.http_status.filter(|_| self.class != FailureClass::InternalServerError)
    }

    fn context_window() -> Self {
        Self::new(
            FailureClass::ContextWindow,
            "The conversation no longer fits the model's context window; start a new thread or compact this one.",
        )
    }
    fn plan_lacks_usage() -> Self {
        Self::new(FailureClass::PlanLacksUsage, "The plan of this account does not include this use.")
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
    #[serde(rename = "type")]
    kind: Option<String>,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_an_account_is_told_in_our_words() {
        let spent = r#"{"error":{"type":"usage_limit_reached"}}"#;
        let failure = ModelFailure::of_account(429, spent).expect("it is about the account");
        assert_eq!((failure.class, failure.http_status), (FailureClass::UsageLimit, Some(429)));
        for (resets_at, when) in [("null", "later"), ("4102444800", "after 2100-01-01 00:00 UTC")] {
            let spent = format!(r#"{{"error":{{"type":"usage_limit_reached","resets_at":{resets_at}}}}}"#);
            let said = ModelFailure::of_account(429, &spent).expect("as above").message;
            assert_eq!(said, format!("The usage limit of this account is reached; try again {when}."));
        }
        for (status, body) in [(400, spent), (429, "{}"), (429, r#"{"error":{"code":"insufficient_quota"}}"#)]
        {
            assert_eq!(ModelFailure::of_account(status, body), None, "{status} {body}");
        }
    }

    #[test]
    fn a_failure_inside_the_provider_is_retried_without_its_status() {
        let failed = |class| ModelFailure { http_status: Some(502), ..ModelFailure::new(class, "") };
        assert_eq!(failed(FailureClass::InternalServerError).status_while_retrying(), None);
        assert_eq!(failed(FailureClass::UnexpectedStatus).status_while_retrying(), Some(502));
        assert_eq!(ModelFailure::stream("x").status_while_retrying(), None);
    }

    #[test]
    fn a_failed_response_says_what_the_provider_said() {
        for (code, expected) in [
            ("insufficient_quota", "the account has no quota left: so it is"),
            ("server_is_overloaded", "the model is overloaded: so it is"),
            ("rate_limit_exceeded", "too many requests: so it is"),
            ("server_error", "stream disconnected before completion: so it is"),
        ] {
            let error = serde_json::json!({ "code": code, "message": "so it is" });
            assert_eq!(ModelFailure::from_failed_response(Some(&error)).message, expected);
        }
    }

    #[test]
    fn delays_are_read_from_rate_limit_messages() {
        for (text, expected) in [
            ("Rate limit reached. Please try again in 1.898s.", Some(1_898)),
            ("try again in 250ms", Some(250)),
            ("try again in 20m0s", None),
            ("try again later", None),
        ] {
            let error = serde_json::json!({ "code": "rate_limit_exceeded", "message": text });
            let failure = ModelFailure::from_failed_response(Some(&error));
            assert_eq!(failure.retry_after_ms, expected, "{text}");
            assert!(failure.is_retryable());
        }
    }
}
