//! Registration as a client, and requests for tokens.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use config::SecretText;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use support::Clock;

use super::LoginError;
use super::discovery::AuthorizationServer;
use super::fetch::{Fetcher, JsonAnswer};
use super::url::encoded;

const SUBJECT: &str = "authorization server";

/// This program, as an authorization server knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OAuthClient {
    pub(super) id: String,
    pub(super) secret: Option<SecretText>,
    pub(super) method: ClientAuth,
}

/// How a client says who it is at the token endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ClientAuth {
    None,
    ClientSecretPost,
    ClientSecretBasic,
}

impl ClientAuth {
    fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::ClientSecretPost => "client_secret_post",
            Self::ClientSecretBasic => "client_secret_basic",
        }
    }

    fn named(name: &str) -> Option<Self> {
        [Self::None, Self::ClientSecretPost, Self::ClientSecretBasic]
            .into_iter()
            .find(|method| method.name() == name)
    }
}

/// The outcome of a login or a renewal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TokenSet {
    pub(super) access: SecretText,
    pub(super) refresh: Option<SecretText>,
    /// Milliseconds since 1970. Unset: not known.
    pub(super) expires_at: Option<u64>,
    pub(super) scope: Option<String>,
}

/// Registers this program (RFC 7591).
pub(super) async fn register(
    fetcher: &Fetcher,
    server: &AuthorizationServer,
    redirect: &str,
    scope: Option<&str>,
) -> Result<OAuthClient, LoginError> {
    let Some(endpoint) = &server.registration_endpoint else {
        let problem = "its authorization server registers no programs; get a token there and name the variable that \
                       holds it in bearer_token_env_var";
        return Err(LoginError::NotOffered(problem.to_owned()));
    };
    let offered = |method: ClientAuth| server.auth_methods.iter().any(|name| name == method.name());
    let wanted = match server.auth_methods.is_empty() || offered(ClientAuth::None) {
        true => ClientAuth::None,
        false if offered(ClientAuth::ClientSecretBasic) => ClientAuth::ClientSecretBasic,
        false => ClientAuth::ClientSecretPost,
    };
    let mut wish = json!({
        "client_name": "Oarlock",
        "redirect_uris": [redirect],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": wanted.name(),
    });
    if let Some(scope) = scope {
        wish["scope"] = json!(scope);
    }
    let answer = fetcher.post_json(SUBJECT, endpoint, &wish).await?;
    let failed = |problem| LoginError::Registration { url: endpoint.clone(), problem };
    if !answer.status.is_success() {
        return Err(failed(answer.problem()));
    }
    let text = |key: &str| answer.body.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let id = text("client_id").ok_or_else(|| failed("it gave no client_id".to_owned()))?.to_owned();
    let secret = text("client_secret").map(SecretText::new);
    let method = text("token_endpoint_auth_method").and_then(ClientAuth::named).unwrap_or(wanted);
    let method = if secret.is_none() { ClientAuth::None } else { method };
    Ok(OAuthClient { id, secret, method })
}

/// Asks the token endpoint. `Err(Refused)` carries the server's own error.
pub(super) async fn request_tokens(
    fetcher: &Fetcher,
    endpoint: &str,
    client: &OAuthClient,
    grant: &[(&str, &str)],
    clock: &dyn Clock,
) -> Result<TokenSet, LoginError> {
    let mut pairs = grant.to_vec();
    let secret = client.secret.as_ref().map(SecretText::reveal).unwrap_or_default();
    let basic = match client.method {
        ClientAuth::ClientSecretBasic => {
            let both = format!("{}:{}", encoded(&client.id), encoded(secret));
            Some(format!("Basic {}", STANDARD.encode(both)))
        }
        ClientAuth::ClientSecretPost => {
            pairs.extend([("client_id", client.id.as_str()), ("client_secret", secret)]);
            None
        }
        ClientAuth::None => {
            pairs.push(("client_id", client.id.as_str()));
            None
        }
    };
    let answer = fetcher.post_form(SUBJECT, endpoint, &pairs, basic).await?;
    if !answer.status.is_success() {
        return Err(LoginError::Refused(answer.problem()));
    }
    read_tokens(&answer, clock.now_ms())
}

fn read_tokens(answer: &JsonAnswer, now_ms: i64) -> Result<TokenSet, LoginError> {
    let text = |key: &str| answer.body.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let Some(access) = text("access_token") else {
        return Err(LoginError::Refused("its answer has no access_token".to_owned()));
    };
    if !text("token_type").unwrap_or("bearer").eq_ignore_ascii_case("bearer") {
        return Err(LoginError::Refused("its token is not a bearer token".to_owned()));
    }
    if !access.bytes().all(|byte| (0x20..0x7f).contains(&byte)) {
        return Err(LoginError::Refused("its token cannot be sent as a header".to_owned()));
    }
    let seconds = answer.body.get("expires_in").and_then(Value::as_u64);
    Ok(TokenSet {
        access: SecretText::new(access),
        refresh: text("refresh_token").map(SecretText::new),
        expires_at: seconds.map(|seconds| unsigned(now_ms).saturating_add(seconds.saturating_mul(1000))),
        scope: text("scope").map(str::to_owned),
    })
}

/// Whether the tokens are said to end before so much time has passed.
pub(super) fn expires_within(tokens: &TokenSet, margin: Duration, now_ms: i64) -> bool {
    let margin = u64::try_from(margin.as_millis()).unwrap_or(u64::MAX);
    tokens.expires_at.is_some_and(|end| end < unsigned(now_ms).saturating_add(margin))
}

fn unsigned(now_ms: i64) -> u64 {
    u64::try_from(now_ms).unwrap_or(0)
}
