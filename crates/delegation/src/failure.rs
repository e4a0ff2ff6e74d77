//! From a host's report of a failed request to the turn's reaction.

use model::{FailureClass, FailureVerdict, ModelFailure};
use protocol::{CodexErrorInfo, ModelError, ModelStreamAbortedParams, StreamAbortReason};

use super::host::HostError;

/// Longer messages are cut: they go into the record and to every client.
const LONGEST_MESSAGE: usize = 1_000;

/// The failure if no host is attached to carry the requests of a thread.
pub(super) const HOST_GONE: &str =
    "the host that carries this thread's model requests is gone; resume the thread from a new connection";

/// The host's codes for failures that no retry can fix.
const FINAL_CODES: &[&str] = &["unsupportedFeature", "badRequest", "unauthorized", "singleFlightViolation"];

/// A request that the host did not carry, or no longer could.
pub(super) fn of_error(error: &ModelError) -> ModelFailure {
    if error.code == ModelError::PAUSED {
        return ModelFailure::new(FailureClass::Paused, shortened(error.message.clone()));
    }
    let info = error.codex_error_info.clone().unwrap_or_else(|| info_of_code(&error.code));
    let class = class_of(&info);
    let message = match &error.feature {
        Some(feature) => format!("the host's provider does not support {feature}: {}", error.message),
        None => error.message.clone(),
    };
    let is_passing = matches!(
        class,
        FailureClass::Stream
            | FailureClass::Connection
            | FailureClass::InternalServerError
            | FailureClass::Overloaded
            | FailureClass::TooManyAttempts
    );
    let is_safe = error.replay_safe || error.retry_after_ms.is_some();
    let may_retry = is_passing && is_safe && !FINAL_CODES.contains(&error.code.as_str());
    ModelFailure {
        http_status: error.http_status,
        retry_after_ms: error.retry_after_ms,
        verdict: Some(FailureVerdict { info, may_retry }),
        ..ModelFailure::new(class, shortened(message))
    }
}

/// A stream that ended without a terminal event.
pub(super) fn of_abort(params: &ModelStreamAbortedParams) -> ModelFailure {
    let disconnected = CodexErrorInfo::ResponseStreamDisconnected { http_status_code: None };
    let (said, info, is_passing) = match &params.reason {
        StreamAbortReason::Canceled => ("the host canceled the model request", CodexErrorInfo::Other, false),
        StreamAbortReason::Disconnected => ("the host lost the provider", disconnected, true),
        StreamAbortReason::Timeout => ("the provider was too slow for the host", disconnected, true),
        StreamAbortReason::Budget => {
            ("the host's budget is spent", CodexErrorInfo::SessionBudgetExceeded, false)
        }
        StreamAbortReason::HostShutdown => ("the host is going away", CodexErrorInfo::Other, false),
        StreamAbortReason::ProtocolError => {
            ("the provider sent what the host cannot read", disconnected, true)
        }
        StreamAbortReason::Other(_) => ("the host gave up the model request", CodexErrorInfo::Other, true),
    };
    let Some(error) = &params.error else {
        let may_retry = is_passing && params.replay_safe;
        return ModelFailure {
            verdict: Some(FailureVerdict { info, may_retry }),
            spent: params.usage.clone(),
            ..ModelFailure::new(FailureClass::Stream, said)
        };
    };
    let mut failure =
        of_error(&ModelError { replay_safe: error.replay_safe || params.replay_safe, ..error.clone() });
    failure.spent.clone_from(&params.usage);
    if let Some(verdict) = &mut failure.verdict {
        verdict.may_retry &= is_passing;
    }
    failure
}

/// The host sent no disposition.
pub(super) fn of_host(error: &HostError) -> ModelFailure {
    match error {
        HostError::Gone => gone(),
        HostError::Refused { message, .. } => {
            of_info(CodexErrorInfo::Other, format!("the host refused the model request: {message}"))
        }
    }
}

/// Does not end the turn: it waits for a host to resume it.
pub(super) fn gone() -> ModelFailure {
    ModelFailure::new(FailureClass::CarrierGone, HOST_GONE)
}

/// Like [`gone`], for a turn that cannot be resumed.
pub fn gone_for_good() -> ModelFailure {
    of_info(CodexErrorInfo::Other, HOST_GONE)
}

/// Another host has replaced the one that carried the request.
pub fn superseded() -> ModelFailure {
    ModelFailure::stream("another host carries this thread's model requests now")
}

/// The host was silent for too long.
pub(super) fn silence(waited_ms: u128) -> ModelFailure {
    ModelFailure::stream(format_args!("the host sent no event for {waited_ms} ms"))
}

/// The host did not respond in time.
pub(super) fn host_timeout(waited_ms: u128) -> ModelFailure {
    let said = format!("hostTimeout: the host did not answer model/request within {waited_ms} ms");
    of_info(CodexErrorInfo::Other, said)
}

/// The host sent something invalid.
pub(super) fn protocol_error(problem: &impl std::fmt::Display) -> ModelFailure {
    of_info(CodexErrorInfo::Other, format!("the host's stream cannot be used: {problem}"))
}

/// The request needs a feature that the provider lacks, so it was not sent.
pub(super) fn unsupported(feature: &str) -> ModelFailure {
    let said = format!(
        "unsupportedFeature: this thread's provider does not support {feature}, which the request needs"
    );
    ModelFailure { class: FailureClass::InvalidRequest, ..of_info(CodexErrorInfo::BadRequest, said) }
}

/// Always final.
fn of_info(info: CodexErrorInfo, message: impl Into<String>) -> ModelFailure {
    ModelFailure {
        verdict: Some(FailureVerdict { info, may_retry: false }),
        ..ModelFailure::new(FailureClass::Stream, shortened(message.into()))
    }
}

fn info_of_code(code: &str) -> CodexErrorInfo {
    match code {
        "unsupportedFeature" | "badRequest" => CodexErrorInfo::BadRequest,
        "unauthorized" => CodexErrorInfo::Unauthorized,
        "rateLimitExceeded" | "rateLimit" => CodexErrorInfo::RateLimitExceeded,
        "usageLimitExceeded" => CodexErrorInfo::UsageLimitExceeded,
        "sessionBudgetExceeded" => CodexErrorInfo::SessionBudgetExceeded,
        "serverOverloaded" => CodexErrorInfo::ServerOverloaded,
        "contextWindowExceeded" => CodexErrorInfo::ContextWindowExceeded,
        "modelNotFound" => CodexErrorInfo::ModelNotFound,
        "internalServerError" => CodexErrorInfo::InternalServerError,
        "httpConnectionFailed" => CodexErrorInfo::HttpConnectionFailed { http_status_code: None },
        "responseStreamDisconnected" => CodexErrorInfo::ResponseStreamDisconnected { http_status_code: None },
        _ => CodexErrorInfo::Other,
    }
}

fn class_of(info: &CodexErrorInfo) -> FailureClass {
    match info {
        CodexErrorInfo::ContextWindowExceeded => FailureClass::ContextWindow,
        CodexErrorInfo::UsageLimitExceeded => FailureClass::UsageLimit,
        CodexErrorInfo::SessionBudgetExceeded => FailureClass::Quota,
        CodexErrorInfo::ServerOverloaded => FailureClass::Overloaded,
        CodexErrorInfo::InternalServerError => FailureClass::InternalServerError,
        CodexErrorInfo::Unauthorized => FailureClass::Unauthorized,
        CodexErrorInfo::BadRequest | CodexErrorInfo::ModelNotFound => FailureClass::InvalidRequest,
        CodexErrorInfo::RateLimitExceeded | CodexErrorInfo::ResponseTooManyFailedAttempts { .. } => {
            FailureClass::TooManyAttempts
        }
        CodexErrorInfo::HttpConnectionFailed { .. } => FailureClass::Connection,
        CodexErrorInfo::ResponseStreamConnectionFailed { .. }
        | CodexErrorInfo::ResponseStreamDisconnected { .. }
        | CodexErrorInfo::ThreadRollbackFailed
        | CodexErrorInfo::SandboxError
        | CodexErrorInfo::ActiveTurnNotSteerable { .. }
        | CodexErrorInfo::Other => FailureClass::Stream,
    }
}

fn shortened(mut message: String) -> String {
    if message.len() > LONGEST_MESSAGE {
        let end = (0..=LONGEST_MESSAGE).rev().find(|end| message.is_char_boundary(*end)).unwrap_or(0);
        message.truncate(end);
        message.push('…');
    }
    message
}

#[cfg(test)]
mod tests {
    use protocol::ThreadId;
    use serde_json::json;

    use super::*;

    fn error(json: serde_json::Value) -> ModelError {
        serde_json::from_value(json).expect("a model error")
    }

    #[test]
    fn only_temporary_and_safe_failures_are_retried() {
        for (given, info, may_retry) in [
            (
                json!({"code": "unsupportedFeature", "message": "m", "feature": "imageInput", "replaySafe": true}),
                CodexErrorInfo::BadRequest,
                false,
            ),
            (
                json!({"code": "badRequest", "message": "m", "codexErrorInfo": "other", "replaySafe": true}),
                CodexErrorInfo::Other,
                false,
            ),
            (
                json!({"code": "unauthorized", "message": "m", "replaySafe": true}),
                CodexErrorInfo::Unauthorized,
                false,
            ),
            (
                json!({"code": "rateLimitExceeded", "message": "m", "retryAfterMs": 5}),
                CodexErrorInfo::RateLimitExceeded,
                true,
            ),
            (json!({"code": "rateLimitExceeded", "message": "m"}), CodexErrorInfo::RateLimitExceeded, false),
            (
                json!({"code": "x", "message": "m", "codexErrorInfo": "internalServerError", "replaySafe": true}),
                CodexErrorInfo::InternalServerError,
                true,
            ),
            (
                json!({"code": "x", "message": "m", "codexErrorInfo": "internalServerError"}),
                CodexErrorInfo::InternalServerError,
                false,
            ),
            (
                json!({"code": "sessionBudgetExceeded", "message": "m", "replaySafe": true}),
                CodexErrorInfo::SessionBudgetExceeded,
                false,
            ),
        ] {
            let failure = of_error(&error(given.clone()));
            assert_eq!((failure.codex_error_info(), failure.is_retryable()), (info, may_retry), "{given}");
        }
        let limited = of_error(&error(
            json!({"code": "rateLimit", "message": "m", "retryAfterMs": 7, "httpStatus": 429}),
        ));
        assert_eq!((limited.retry_after_ms, limited.http_status), (Some(7), Some(429)));
    }

    #[test]
    fn a_pause_is_recognised_in_every_form() {
        let paused = json!({"code": "paused", "message": "it paused", "codexErrorInfo": "other"});
        let aborted: ModelStreamAbortedParams = serde_json::from_value(json!({
            "threadId": ThreadId::new("t"), "modelRequestId": "u:0:a1", "seq": 3, "reason": "disconnected",
            "error": paused, "replaySafe": false,
        }))
        .expect("params");
        for failure in [of_error(&error(paused)), of_abort(&aborted)] {
            assert_eq!((failure.class, failure.message.as_str()), (FailureClass::Paused, "it paused"));
        }
    }

    #[test]
    fn an_abort_is_final_unless_a_retry_is_safe() {
        for (reason, replay_safe, may_retry) in [
            ("disconnected", true, true),
            ("disconnected", false, false),
            ("timeout", true, true),
            ("protocolError", true, true),
            ("budget", true, false),
            ("hostShutdown", true, false),
            ("canceled", true, false),
            ("somethingNewer", true, true),
        ] {
            let params: ModelStreamAbortedParams = serde_json::from_value(json!({
                "threadId": ThreadId::new("t"), "modelRequestId": "u:0:a1", "seq": 0, "reason": reason,
                "replaySafe": replay_safe,
            }))
            .expect("params");
            assert_eq!(of_abort(&params).is_retryable(), may_retry, "{reason} {replay_safe}");
        }
    }

    #[test]
    fn long_messages_are_cut() {
        let failure = of_error(&error(json!({"code": "x", "message": "é".repeat(5_000)})));
        assert!(failure.message.len() <= LONGEST_MESSAGE + 3);
    }
}
