//! The used part of an account's limits, from the account's service.

use std::collections::BTreeMap;
use std::time::Duration;

use config::SecretText;
use http::{Client, HeaderName, HeaderValue, HttpBody, HttpRequest, Method, header};
use protocol::{CreditsSnapshot, GetAccountRateLimitsResponse, RateLimitSnapshot, RateLimitWindow};
use serde_json::Value;

use crate::{AccountClaims, AccountLoginError};

const PATIENCE: Duration = Duration::from_secs(20);
const MAX_ANSWER: usize = 256 * 1024;
/// The agent's own limit.
const AGENT_LIMIT: &str = "codex";
/// Limit of parsed limits.
const MOST_LIMITS: usize = 100;

/// Requests the service at `base_url` with an account's token.
pub async fn read_usage(
    client: &Client,
    base_url: &str,
    token: &SecretText,
    account_id: Option<&str>,
) -> Result<GetAccountRateLimitsResponse, AccountLoginError> {
    let base = base_url.trim_end_matches('/');
    let path = if base.contains("/backend-api") { "wham/usage" } else { "api/codex/usage" };
    let unreachable = |error: String| AccountLoginError::Unreachable(error);
    let url = format!("{base}/{path}").parse().map_err(|_| unreachable(format!("{base:?} is no address")))?;
    let mut headers = http::HeaderMap::new();
    let bearer = HeaderValue::from_str(&format!("Bearer {}", token.reveal()));
    headers.insert(header::AUTHORIZATION, bearer.map_err(|_| AccountLoginError::Incomplete("access_token"))?);
    if let Some(Ok(account)) = account_id.map(HeaderValue::from_str) {
        headers.insert(HeaderName::from_static("chatgpt-account-id"), account);
    }
    let request = HttpRequest { method: Method::GET, url, headers, body: HttpBody::default() };
    let answer = client.send(request, PATIENCE).await.map_err(|error| unreachable(error.to_string()))?;
    if !answer.status.is_success() {
        return Err(AccountLoginError::Status(answer.status.as_u16()));
    }
    let body =
        answer.body.read(MAX_ANSWER, PATIENCE).await.map_err(|error| unreachable(error.to_string()))?;
    let usage: Value = serde_json::from_slice(&body).map_err(|_| AccountLoginError::Incomplete("JSON"))?;
    Ok(limits(&usage))
}

fn limits(usage: &Value) -> GetAccountRateLimitsResponse {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let plan_type = Some(AccountClaims::plan_type(usage["plan_type"].as_str()));
    let snapshot =
        |id: &str, name: Option<String>, limit: &Value, credits: Option<CreditsSnapshot>| RateLimitSnapshot {
            limit_id: Some(id.to_owned()),
            limit_name: name,
            primary: window(&limit["primary_window"]),
            secondary: window(&limit["secondary_window"]),
            credits,
            plan_type,
        };
    let own = snapshot(AGENT_LIMIT, None, &usage["rate_limit"], credits(&usage["credits"]));
    let mut all = BTreeMap::from([(AGENT_LIMIT.to_owned(), own.clone())]);
    let others = usage["additional_rate_limits"].as_array().into_iter().flatten();
    for other in others.take(MOST_LIMITS) {
        let Some(id) = text(&other["metered_feature"]) else { continue };
        let limit = snapshot(&id, text(&other["limit_name"]), &other["rate_limit"], None);
        all.insert(id, limit);
    }
    GetAccountRateLimitsResponse { rate_limits: own, rate_limits_by_limit_id: Some(all) }
}

fn window(window: &Value) -> Option<RateLimitWindow> {
    let used = window["used_percent"].as_f64()?.clamp(0.0, 100.0).round();
    let seconds = window["limit_window_seconds"].as_i64().filter(|seconds| *seconds > 0);
    Some(RateLimitWindow {
        used_percent: used as i32,
        window_duration_mins: seconds.map(|seconds| (seconds + 59) / 60),
        resets_at: window["reset_at"].as_i64(),
    })
}

fn credits(credits: &Value) -> Option<CreditsSnapshot> {
    Some(CreditsSnapshot {
        has_credits: credits["has_credits"].as_bool()?,
        unlimited: credits["unlimited"].as_bool().unwrap_or(false),
        balance: credits["balance"].as_str().map(str::to_owned),
    })
}

#[cfg(test)]
mod tests {
    use protocol::PlanType;
    use serde_json::json;

    use super::*;

    #[test]
    fn windows_are_read_and_what_is_missing_is_unknown() {
        let read = limits(&json!({
            "plan_type": "plus",
            "rate_limit": { "primary_window": { "used_percent": 12.4, "limit_window_seconds": 18_000, "reset_at": 7 } },
            "credits": { "has_credits": true, "unlimited": false, "balance": "5" },
            "additional_rate_limits": [{ "metered_feature": "other", "limit_name": "Other", "rate_limit": {} }, {}],
        }));
        let primary = read.rate_limits.primary.expect("a window");
        assert_eq!(
            (primary.used_percent, primary.window_duration_mins, primary.resets_at),
            (12, Some(300), Some(7))
        );
        assert_eq!((read.rate_limits.plan_type, read.rate_limits.secondary), (Some(PlanType::Plus), None));
        let all = read.rate_limits_by_limit_id.expect("limits");
        assert_eq!(all.keys().map(String::as_str).collect::<Vec<_>>(), ["codex", "other"]);
        assert_eq!(limits(&Value::Null).rate_limits.primary, None);
    }
}
