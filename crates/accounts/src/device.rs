//! Login on any device, with a code that the user types there.

use std::time::Duration;

use config::ChatgptTokens;
use http::StatusCode;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::AccountLoginError;
use crate::issuer::{CLIENT_ID, Issuer};

/// Time limit of the user.
const LIMIT: Duration = Duration::from_secs(15 * 60);
/// The polling interval, unless the issuer names one.
const INTERVAL: Duration = Duration::from_secs(5);

/// A pending login.
#[derive(Debug)]
pub struct DeviceLogin {
    issuer: Issuer,
    device_id: String,
    user_code: String,
    interval: Duration,
}

impl DeviceLogin {
    /// Requests a code from the issuer.
    pub async fn begin(issuer: Issuer) -> Result<Self, AccountLoginError> {
        let url = format!("{}/api/accounts/deviceauth/usercode", issuer.base());
        let (status, answer) = issuer.post_json(&url, &json!({ "client_id": CLIENT_ID })).await?;
        if !status.is_success() {
            return Err(AccountLoginError::Status(status.as_u16()));
        }
        let text = |name: &str| answer[name].as_str().map(str::to_owned);
        let user_code = text("user_code").or_else(|| text("usercode"));
        Ok(Self {
            issuer,
            device_id: text("device_auth_id").ok_or(AccountLoginError::Incomplete("device_auth_id"))?,
            user_code: user_code.ok_or(AccountLoginError::Incomplete("user_code"))?,
            interval: interval(&answer["interval"]),
        })
    }

    /// The page for the user to open.
    pub fn verification_url(&self) -> String {
        format!("{}/codex/device", self.issuer.base())
    }

    /// The code for the user to type there.
    pub fn user_code(&self) -> &str {
        &self.user_code
    }

    /// Waits for the user and returns the tokens, or the error.
    pub async fn finish(self) -> Result<ChatgptTokens, AccountLoginError> {
        tokio::time::timeout(LIMIT, self.wait()).await.unwrap_or(Err(AccountLoginError::TimedOut))
    }

    async fn wait(&self) -> Result<ChatgptTokens, AccountLoginError> {
        let url = format!("{}/api/accounts/deviceauth/token", self.issuer.base());
        let question = json!({ "device_auth_id": self.device_id, "user_code": self.user_code });
        loop {
            let (status, answer) = self.issuer.post_json(&url, &question).await?;
            match status {
                // The user has not typed it yet.
                StatusCode::FORBIDDEN | StatusCode::NOT_FOUND => sleep(self.interval).await,
                status if status.is_success() => {
                    let text =
                        |name: &'static str| answer[name].as_str().ok_or(AccountLoginError::Incomplete(name));
                    let redirect_uri = format!("{}/deviceauth/callback", self.issuer.base());
                    let (code, verifier) = (text("authorization_code")?, text("code_verifier")?);
                    return self.issuer.exchange(code, &redirect_uri, verifier).await;
                }
                status => return Err(AccountLoginError::Status(status.as_u16())),
            }
        }
    }
}

/// In seconds, as a number or as text. A minimum applies.
fn interval(value: &Value) -> Duration {
    let seconds = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok());
    let wanted = seconds.filter(|seconds| (0.0..=60.0).contains(seconds)).map(Duration::from_secs_f64);
    wanted.unwrap_or(INTERVAL).max(Duration::from_millis(100))
}
