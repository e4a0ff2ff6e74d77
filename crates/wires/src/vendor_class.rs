//! Classifies a vendor's failure by its status, code and message.

use model::{FailureClass, requested_delay};
use serde_json::Value;

/// A failure as a vendor reports it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reported<'a> {
    /// 0 if unknown.
    pub(crate) status: u16,
    /// The vendor's code, in lower case.
    pub(crate) kind: &'a str,
    /// The vendor's sentence, in lower case.
    pub(crate) text: &'a str,
    /// The vendor names a delay.
    pub(crate) says_when: bool,
}

impl Reported<'_> {
    pub(crate) fn class(&self) -> FailureClass {
        let Self { status, kind, .. } = *self;
        if self.is_rate_limit() {
            return self.class_of_limit();
        }
        if self.says(TOO_LONG) {
            return FailureClass::ContextWindow;
        }
        if self.says(NO_MONEY) || status == 402 {
            return FailureClass::Quota;
        }
        if self.says(OVERLOADED) {
            return FailureClass::Overloaded;
        }
        match (status, kind) {
            (_, "authentication_error" | "permission_error" | "invalid_api_key") | (401 | 403, _) => {
                FailureClass::Unauthorized
            }
            // Gemini uses 400 for this.
            (400, _) if self.says(BAD_KEY) => FailureClass::Unauthorized,
            (413, _) | (_, "request_too_large") => FailureClass::ContextWindow,
            (400 | 404 | 405 | 422, _) | (_, "invalid_request_error" | "not_found_error") => {
                FailureClass::InvalidRequest
            }
            (503 | 529, _) => FailureClass::Overloaded,
            (500, _) | (_, "api_error" | "server_error") => FailureClass::InternalServerError,
            _ => FailureClass::UnexpectedStatus,
        }
    }

    fn says(&self, phrases: &[&str]) -> bool {
        phrases.iter().any(|phrase| self.text.contains(phrase) || self.kind.contains(phrase))
    }

    fn is_rate_limit(&self) -> bool {
        let kinds = ["rate_limit_error", "rate_limit_exceeded", "throttling", "resource_exhausted"];
        self.status == 429
            || kinds.iter().any(|kind| self.kind.starts_with(kind))
            || self.text.contains("throttlingexception")
    }

    /// Limits per minute are reported with words about size ("too many tokens") and money ("see your billing
    /// settings"), so the code counts, and then whether a delay is named.
    fn class_of_limit(&self) -> FailureClass {
        match self.kind {
            "context_length_exceeded" => FailureClass::ContextWindow,
            "insufficient_quota" | "billing_hard_limit_reached" | "billing_not_active" => FailureClass::Quota,
            _ if self.says_when => FailureClass::TooManyAttempts,
            _ if self.says(NO_MONEY) => FailureClass::Quota,
            _ if self.says(OVERLOADED) => FailureClass::Overloaded,
            _ => FailureClass::TooManyAttempts,
        }
    }

    /// Whether the model does not exist, or not for this account. Unsupported parameters and tools are reported in
    /// similar words, so the message must be about the model itself.
    pub(crate) fn is_unknown_model(&self, model: &str) -> bool {
        let Self { status, kind, text, .. } = *self;
        let (text, model) = (text.replace(['`', '\'', '"'], ""), model.to_ascii_lowercase());
        let has_kind = matches!(
            kind,
            "model_not_found" | "model_decommissioned" | "invalid_model" | "deploymentnotfound"
        );
        let has_status = status == 404
            && (kind == "not_found_error" || kind.contains("not_found") && text.contains("model"));
        let is_about_model =
            |phrase: &&str| text.match_indices(*phrase).any(|(at, _)| ends_with_model(&text[..at], &model));
        has_kind
            || has_status
            || UNKNOWN_MODEL.iter().any(|phrase| text.contains(phrase))
            || IS_MISSING.iter().any(is_about_model)
    }
}

/// Whether the words before a verb name a model as the subject: "the model x", "the x model", "models/x", "x".
fn ends_with_model(before: &str, model: &str) -> bool {
    let words = before.split_whitespace().map(|word| word.trim_matches(|c| "[]():,;".contains(c)));
    let mut words = Vec::from_iter(words.filter(|word| !word.is_empty()));
    let is_asked = |word: &str| word == model || word.ends_with(&format!("/{model}"));
    let is_name =
        |word: &str| is_asked(word) || word.contains(|c: char| c.is_ascii_digit() || "-_/:".contains(c));
    let is_model = |word: &str| matches!(word, "model" | "models");
    let subject = match words.as_slice() {
        [.., first, last] if is_model(last) => 1 + usize::from(is_name(first)),
        [.., first, last] if is_model(first) && is_name(last) => 2,
        [.., last] if is_asked(last) || is_model(last) => 1,
        _ => return false,
    };
    words.truncate(words.len() - subject);
    while words.last().is_some_and(|word| ["the", "this", "your", "requested", "specified"].contains(word)) {
        words.pop();
    }
    // "Tools with this model", "input for the model": about something else.
    let is_other = ["with", "for", "by", "on", "of", "in", "to", "using"];
    !words.last().is_some_and(|word| is_other.contains(word))
}

const UNKNOWN_MODEL: &[&str] = &[
    "unknown model",
    "no such model",
    "invalid model:",
    "invalid model name",
    "invalid model id",
    "not a valid model",
];

const IS_MISSING: &[&str] = &[
    " not found",
    " is not found",
    " not exist",
    " does not exist",
    " is not supported",
    " is not available",
    " has been decommissioned",
];

/// Vendors' messages about too long inputs.
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

/// Vendors' messages about missing credit.
const NO_MONEY: &[&str] = &[
    "insufficient_quota",
    "credit balance is too low",
    "billing_hard_limit",
    "billing hard limit",
    "billing_not_active",
    "billing_error",
    "billing details",
    "enable billing",
    "insufficient balance",
    "insufficient credits",
];

const OVERLOADED: &[&str] = &["overloaded", "slow_down", "service_unavailable"];

const BAD_KEY: &[&str] = &["api key not valid", "api_key_invalid", "invalid api key", "incorrect api key"];

/// The delay in an error body, in milliseconds: a field of Google's, or a sentence.
pub(crate) fn wait_in(body: &Value, message: &str) -> Option<u64> {
    let error = if body.is_array() { &body[0]["error"] } else { &body["error"] };
    let details = error["details"].as_array().into_iter().flatten();
    let delay = details.filter_map(|detail| detail["retryDelay"].as_str()).find_map(seconds);
    delay.or_else(|| requested_delay(message))
}

/// `29s`, `0.5s`.
fn seconds(text: &str) -> Option<u64> {
    let seconds: f64 = text.strip_suffix('s')?.parse().ok()?;
    (seconds.is_finite() && seconds >= 0.0).then_some((seconds * 1_000.0) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_that_is_not_there_is_not_a_parameter_it_does_not_take() {
        let is_unknown = |status, kind, text: &str| {
            let text = text.to_ascii_lowercase();
            Reported { status, kind, text: &text, says_when: false }.is_unknown_model("Vendor/Big-4:8b")
        };
        for text in [
            "The model `vendor/big-4:8b` does not exist or you do not have access to it.",
            "model \"vendor/big-4:8b\" not found, try pulling it first",
            "models/vendor/big-4:8b is not found for API version v1beta, or is not supported for generateContent.",
            "The 'vendor/big-4:8b' model is not supported when using Codex with a ChatGPT account.",
            "The requested model is not supported.",
            "The requested model 'other-name' is not supported.",
            "Model Not Exist",
            "vendor/big-4:8b is not a valid model ID",
            "Invalid model: vendor/big-4:8b",
            "Unknown model: vendor/big-4:8b",
            "The model `vendor/big-4:8b` has been decommissioned and is no longer supported.",
            "invalid request: [model vendor/big-4:8b] not found",
        ] {
            assert!(is_unknown(400, "", text), "{text}");
        }
        for text in [
            "Unsupported parameter: 'temperature' is not supported with this model.",
            "tool calling is not supported with this model",
            "Image input for the model vendor/big-4:8b is not supported",
            "`thinking` with this model is not supported",
            "registry.ollama.ai/library/vendor/big-4:8b does not support tools",
            "No tool output found for function call c1 of the model's answer; the item does not exist",
            "reasoning.effort 'minimal' is not supported with the 'vendor/big-4:8b' model",
        ] {
            assert!(!is_unknown(400, "invalid_request_error", text), "{text}");
        }
        assert!(is_unknown(404, "not_found_error", "model: x") && is_unknown(400, "model_not_found", ""));
        assert!(!is_unknown(404, "not_found", "no such file"));
    }

    #[test]
    fn a_wait_is_read_from_a_body() {
        let google = serde_json::json!([{"error": {"details": [
            {"@type": "type.googleapis.com/google.rpc.Help"},
            {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "29.5s"}]}}]);
        assert_eq!(wait_in(&google, "try again in 3s"), Some(29_500));
        assert_eq!(wait_in(&google[0], ""), Some(29_500));
        let odd = serde_json::json!({"error": {"details": [{"retryDelay": "-1s"}, {"retryDelay": "soon"}]}});
        assert_eq!(wait_in(&odd, "Please try again in 11.054s."), Some(11_054));
        assert_eq!(wait_in(&Value::Null, "slow down"), None);
    }
}
