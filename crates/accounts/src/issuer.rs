//! The issuer of tokens: exchanges codes for tokens, and refreshes tokens.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use config::{ChatgptTokens, SecretText};
use http::{Client, HeaderValue, HttpRequest, Method, StatusCode, header};
use ring::rand::{SecureRandom, SystemRandom};
use serde_json::{Value, json};

use crate::AccountLoginError;

/// The public client id of this kind of program.
pub(crate) const CLIENT_ID: &str = "app_EMoamEEZ73f0CkXaXp7hrann";
const PATIENCE: Duration = Duration::from_secs(30);
/// Limit of a response.
const MAX_ANSWER: usize = 256 * 1024;

/// The issuer.
#[derive(Debug, Clone)]
pub struct Issuer {
    base: String,
    refresh_url: String,
    client: Client,
}

impl Issuer {
    /// The issuer of ChatGPT accounts.
    pub const DEFAULT: &'static str = "https://auth.openai.com";

    /// Tokens are renewed at `refresh_url`, if it differs from the default.
    pub fn new(base: &str, refresh_url: Option<&str>, client: Client) -> Self {
        let base = base.trim_end_matches('/').to_owned();
        let refresh_url = refresh_url.map_or_else(|| format!("{base}/oauth/token"), str::to_owned);
        Self { base, refresh_url, client }
    }

    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    /// Whether this is the issuer of ChatGPT accounts, which allows only certain redirect ports.
    pub(crate) fn is_default(&self) -> bool {
        self.base == Self::DEFAULT
    }

    /// Exchanges an authorization code for tokens.
    pub(crate) async fn exchange(
        &self,
        code: &str,
        redirect_uri: &str,
        verifier: &str,
    ) -> Result<ChatgptTokens, AccountLoginError> {
        let form = form(&[
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", redirect_uri),
            ("client_id", CLIENT_ID),
            ("code_verifier", verifier),
        ]);
        let url = format!("{}/oauth/token", self.base);
        let (status, answer) = self.post(&url, "application/x-www-form-urlencoded", form).await?;
        if !status.is_success() {
            return Err(AccountLoginError::Status(status.as_u16()));
        }
        let token = |name: &'static str| secret(&answer, name).ok_or(AccountLoginError::Incomplete(name));
        Ok(ChatgptTokens {
            id_token: token("id_token")?,
            access_token: token("access_token")?,
            refresh_token: token("refresh_token")?,
            refreshed_at_ms: 0,
        })
    }

    /// Refreshes the tokens. Fields missing in the response are kept.
    pub async fn refresh(&self, tokens: &ChatgptTokens) -> Result<ChatgptTokens, AccountLoginError> {
        let body = json!({
            "client_id": CLIENT_ID,
            "grant_type": "refresh_token",
            "refresh_token": tokens.refresh_token.reveal(),
        });
        let (status, answer) = self.post_json(&self.refresh_url, &body).await?;
        match status {
            StatusCode::UNAUTHORIZED => return Err(AccountLoginError::Expired),
            status if !status.is_success() => return Err(AccountLoginError::Status(status.as_u16())),
            _ => {}
        }
        Ok(ChatgptTokens {
            id_token: secret(&answer, "id_token").unwrap_or_else(|| tokens.id_token.clone()),
            access_token: secret(&answer, "access_token")
                .ok_or(AccountLoginError::Incomplete("access_token"))?,
            refresh_token: secret(&answer, "refresh_token").unwrap_or_else(|| tokens.refresh_token.clone()),
            refreshed_at_ms: 0,
        })
    }

    pub(crate) async fn post_json(
        &self,
        url: &str,
        body: &Value,
    ) -> Result<(StatusCode, Value), AccountLoginError> {
        self.post(url, "application/json", body.to_string()).await
    }

    async fn post(
        &self,
        url: &str,
        kind: &'static str,
        body: String,
    ) -> Result<(StatusCode, Value), AccountLoginError> {
        let unreachable = |error: String| AccountLoginError::Unreachable(error);
        let url = url.parse().map_err(|_| unreachable(format!("{:?} is no address", self.base)))?;
        let mut request = HttpRequest {
            method: Method::POST,
            url,
            headers: http::HeaderMap::new(),
            body: Bytes::from(body).into(),
        };
        request.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        let sent =
            self.client.send(request, PATIENCE).await.map_err(|error| unreachable(error.to_string()))?;
        let status = sent.status;
        let body =
            sent.body.read(MAX_ANSWER, PATIENCE).await.map_err(|error| unreachable(error.to_string()))?;
        Ok((status, serde_json::from_slice(&body).unwrap_or_default()))
    }
}

/// A secret of a login, and its public hash.
pub(crate) struct Pkce {
    pub(crate) verifier: String,
    pub(crate) challenge: String,
}

impl Pkce {
    pub(crate) fn new() -> Result<Self, AccountLoginError> {
        let verifier = random()?;
        let digest = ring::digest::digest(&ring::digest::SHA256, verifier.as_bytes());
        Ok(Self { challenge: URL_SAFE_NO_PAD.encode(digest), verifier })
    }
}

/// An unguessable text.
pub(crate) fn random() -> Result<String, AccountLoginError> {
    let mut bytes = [0; 48];
    SystemRandom::new().fill(&mut bytes).map_err(|_| AccountLoginError::NoRandomness)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

fn secret(answer: &Value, name: &str) -> Option<SecretText> {
    answer[name].as_str().filter(|text| !text.is_empty()).map(SecretText::new)
}

/// Encodes names and values as a query or a form.
pub(crate) fn form(pairs: &[(&str, &str)]) -> String {
    let pairs = pairs.iter().map(|(name, value)| format!("{name}={}", encoded(value)));
    pairs.collect::<Vec<_>>().join("&")
}

fn encoded(value: &str) -> String {
    let mut text = String::new();
    for byte in value.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => text.push(byte as char),
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

/// The opposite of [`encoded`]. Drops invalid UTF-8.
pub(crate) fn decoded(value: &str) -> String {
    let bytes = value.as_bytes();
    let (mut text, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while let Some(&byte) = bytes.get(at) {
        let digits = value.get(at + 1..at + 3).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match (byte, digits) {
            (b'%', Some(decoded)) => {
                text.push(decoded);
                at += 2;
            }
            (b'+', _) => text.push(b' '),
            _ => text.push(byte),
        }
        at += 1;
    }
    String::from_utf8_lossy(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_survive_a_query() {
        for value in ["", "a b&c=d", "é%+", "http://localhost:1455/auth/callback"] {
            assert_eq!(decoded(&encoded(value)), value);
        }
        assert_eq!(form(&[("a", "b c"), ("d", "&")]), "a=b%20c&d=%26");
        for strange in ["%", "%é", "%zz", "a%4"] {
            assert!(!decoded(strange).is_empty());
        }
    }
}
