//! Rate limits in response headers: `x-{limit}-primary-used-percent` and related ones.

use std::collections::BTreeSet;
use std::str::FromStr;

use http::HeaderMap;
use model::protocol::{CreditsSnapshot, RateLimitSnapshot, RateLimitWindow};

/// The default family.
const MAIN: &str = "codex";

/// The limits of the main family. Without its headers, only the id is set.
pub(crate) fn main(headers: &HeaderMap) -> RateLimitSnapshot {
    RateLimitSnapshot { credits: credits(headers), ..family(headers, MAIN) }
}

/// The limits of all other families, by name.
pub(crate) fn others(headers: &HeaderMap) -> Vec<RateLimitSnapshot> {
    let limit = |name: &str| -> Option<String> {
        let name = name.strip_prefix("x-")?;
        let limit = name
            .strip_suffix("-primary-used-percent")
            .or_else(|| name.strip_suffix("-secondary-used-percent"))?;
        (limit != MAIN).then(|| limit.to_owned())
    };
    let limits: BTreeSet<String> = headers.keys().filter_map(|name| limit(name.as_str())).collect();
    let families = limits.iter().map(|limit| family(headers, limit));
    families.filter(|family| family.primary.is_some() || family.secondary.is_some()).collect()
}

fn family(headers: &HeaderMap, limit: &str) -> RateLimitSnapshot {
    RateLimitSnapshot {
        // Header names use dashes, ids use underscores.
        limit_id: Some(limit.replace('-', "_")),
        limit_name: text(headers, &format!("x-{limit}-limit-name")),
        primary: window(headers, limit, "primary"),
        secondary: window(headers, limit, "secondary"),
        credits: None,
        plan_type: None,
    }
}

/// A window with only 0 % usage is ignored.
fn window(headers: &HeaderMap, limit: &str, which: &str) -> Option<RateLimitWindow> {
    let field = |field: &str| format!("x-{limit}-{which}-{field}");
    let used: f64 = number(headers, &field("used-percent"))?;
    if !used.is_finite() {
        return None;
    }
    let window_duration_mins: Option<i64> = number(headers, &field("window-minutes"));
    let resets_at: Option<i64> = number(headers, &field("reset-at"));
    let is_known =
        used != 0.0 || window_duration_mins.is_some_and(|minutes| minutes != 0) || resets_at.is_some();
    is_known.then(|| RateLimitWindow { used_percent: used.round() as i32, window_duration_mins, resets_at })
}

fn credits(headers: &HeaderMap) -> Option<CreditsSnapshot> {
    Some(CreditsSnapshot {
        has_credits: truth(headers, "x-codex-credits-has-credits")?,
        unlimited: truth(headers, "x-codex-credits-unlimited")?,
        balance: text(headers, "x-codex-credits-balance"),
    })
}

fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    let text = headers.get(name)?.to_str().ok()?.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

fn number<T: FromStr>(headers: &HeaderMap, name: &str) -> Option<T> {
    text(headers, name)?.parse().ok()
}

fn truth(headers: &HeaderMap, name: &str) -> Option<bool> {
    match text(headers, name)?.to_ascii_lowercase().as_str() {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderName, HeaderValue};

    /// `name: value` per line.
    fn headers(text: &str) -> HeaderMap {
        let lines = text.lines().filter_map(|line| line.trim().split_once(": "));
        lines
            .map(|(name, value)| (name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap()))
            .collect()
    }

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let headers = headers(text);
        let all = std::iter::once(main(&headers)).chain(others(&headers));
        let shown: Vec<String> = all.map(|limits| serde_json::to_string(&limits).unwrap()).collect();
        assert_eq!(shown, expected);
    }

    const NOTHING: &str = r#"{"limitId":"codex","limitName":null,"primary":null,"secondary":null,"credits":null,"planType":null}"#;

    #[test]
    fn without_headers_only_the_id_is_known() {
        check("", &[NOTHING]);
    }

    #[test]
    fn windows_and_credits() {
        check(
            "x-codex-primary-used-percent: 12.6
             x-codex-primary-window-minutes: 300
             x-codex-primary-reset-at: 1700000000
             x-codex-secondary-used-percent: 5
             x-codex-credits-has-credits: True
             x-codex-credits-unlimited: 0
             x-codex-credits-balance: 9.50",
            &[concat!(
                r#"{"limitId":"codex","limitName":null,"#,
                r#""primary":{"usedPercent":13,"windowDurationMins":300,"resetsAt":1700000000},"#,
                r#""secondary":{"usedPercent":5,"windowDurationMins":null,"resetsAt":null},"#,
                r#""credits":{"hasCredits":true,"unlimited":false,"balance":"9.50"},"planType":null}"#
            )],
        );
    }

    #[test]
    fn other_families_follow() {
        check(
            "x-codex-other-primary-used-percent: 1
             x-codex-other-limit-name: Other
             x-empty-primary-used-percent: 0",
            &[
                NOTHING,
                concat!(
                    r#"{"limitId":"codex_other","limitName":"Other","#,
                    r#""primary":{"usedPercent":1,"windowDurationMins":null,"resetsAt":null},"#,
                    r#""secondary":null,"credits":null,"planType":null}"#
                ),
            ],
        );
    }

    #[test]
    fn what_is_not_a_number_is_unknown() {
        check("x-codex-primary-used-percent: NaN\nx-codex-secondary-used-percent: many", &[NOTHING]);
        check("x-codex-primary-used-percent: 0\nx-codex-primary-window-minutes: 0", &[NOTHING]);
    }
}
