//! The claims in a token about its owner. The signature is not checked: no decision here depends on it.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use config::SecretText;
use protocol::PlanType;
use serde_json::Value;

/// Longer tokens are not parsed.
const MAX_TOKEN: usize = 64 * 1024;
const PROFILE: &str = "https://api.openai.com/profile";
const AUTH: &str = "https://api.openai.com/auth";

/// The relevant claims of a JWT. Empty if the token is no JWT.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccountClaims {
    pub email: Option<String>,
    pub plan: Option<String>,
    pub account_id: Option<String>,
    /// Unix seconds.
    pub expires_at: Option<i64>,
}

impl AccountClaims {
    pub fn of(token: &SecretText) -> Self {
        let payload = token.reveal().split('.').nth(1).filter(|_| token.reveal().len() <= MAX_TOKEN);
        let json = payload.and_then(|payload| URL_SAFE_NO_PAD.decode(payload.trim_end_matches('=')).ok());
        let claims: Value = json.and_then(|json| serde_json::from_slice(&json).ok()).unwrap_or_default();
        let text = |value: &Value| value.as_str().map(str::to_owned);
        Self {
            email: text(&claims["email"]).or_else(|| text(&claims[PROFILE]["email"])),
            plan: text(&claims[AUTH]["chatgpt_plan_type"]),
            account_id: text(&claims[AUTH]["chatgpt_account_id"]),
            expires_at: claims["exp"].as_i64(),
        }
    }

    /// The plan as clients know plans.
    pub fn plan_type(plan: Option<&str>) -> PlanType {
        let word = Value::String(plan.unwrap_or_default().to_ascii_lowercase());
        serde_json::from_value(word).unwrap_or(PlanType::Unknown)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn token(claims: &Value) -> SecretText {
        SecretText::new(format!("e30.{}.x", URL_SAFE_NO_PAD.encode(claims.to_string())))
    }

    #[test]
    fn claims_are_read_where_they_are() {
        let claims = AccountClaims::of(&token(&json!({
            "exp": 7, (PROFILE): { "email": "a@b.c" },
            (AUTH): { "chatgpt_plan_type": "Pro", "chatgpt_account_id": "w1" },
        })));
        assert_eq!(claims.email.as_deref(), Some("a@b.c"));
        assert_eq!((claims.account_id.as_deref(), claims.expires_at), (Some("w1"), Some(7)));
        assert_eq!(AccountClaims::plan_type(claims.plan.as_deref()), PlanType::Pro);
        for strange in ["", "a", "a.b.c", "e30.####.x"] {
            assert_eq!(AccountClaims::of(&SecretText::new(strange)), AccountClaims::default(), "{strange}");
        }
        assert_eq!(AccountClaims::plan_type(Some("newer")), PlanType::Unknown);
    }
}
