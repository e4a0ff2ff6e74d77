//! The login at the model provider.

use config::{ConfigError, Credentials, SecretText};
use protocol::{
    Account, AccountUpdatedNotification, AuthMode, CancelLoginAccountParams, CancelLoginAccountResponse,
    CancelLoginAccountStatus, ForcedLoginMethod, GetAccountParams, GetAccountRateLimitsResponse,
    GetAccountResponse, GetAuthStatusResponse, LoginAccountParams, LoginAccountResponse,
};

use crate::error::RuntimeError;
use crate::providers::logins::{CurrentLogin, ExternalTokens, LoginDone};
use crate::runtime::Runtime;
use driver::{ClockExt, IdMaker, is_uuid};

/// The login of the configured provider.
enum ProviderLogin {
    /// The provider needs none.
    NotNeeded,
    Nobody,
    ApiKey,
    Account(CurrentLogin),
}

impl Runtime {
    pub async fn account(&self, params: &GetAccountParams) -> Result<GetAccountResponse, RuntimeError> {
        if params.refresh_token
            && let Some(CurrentLogin::Stored(tokens)) = self.state.logins.current().map_err(unreadable)?
            && let Err(error) = self.state.logins.renew(&tokens.access_token).await
        {
            tracing::warn!(%error, "the login could not be renewed");
        }
        let account = match self.login()? {
            ProviderLogin::NotNeeded => {
                return Ok(GetAccountResponse { account: None, requires_openai_auth: false });
            }
            ProviderLogin::Nobody => None,
            ProviderLogin::ApiKey => Some(Account::ApiKey),
            ProviderLogin::Account(login) => {
                const NO_EMAIL: &str = "email and plan type are required for chatgpt authentication";
                let email = login.email().ok_or(RuntimeError::Login(NO_EMAIL))?;
                Some(Account::Chatgpt { email, plan_type: login.plan_type() })
            }
        };
        Ok(GetAccountResponse { account, requires_openai_auth: true })
    }

    /// The older method for the login status. Never returns keys or tokens.
    pub fn auth_status(&self) -> Result<GetAuthStatusResponse, RuntimeError> {
        let (auth_method, is_required) = match self.login()? {
            ProviderLogin::NotNeeded => (None, false),
            ProviderLogin::Nobody => (None, true),
            ProviderLogin::ApiKey => (Some(AuthMode::Apikey), true),
            ProviderLogin::Account(login) => (Some(login.mode()), true),
        };
        Ok(GetAuthStatusResponse { auth_method, auth_token: None, requires_openai_auth: Some(is_required) })
    }

    /// Sent to all clients when a login changed.
    pub fn account_update(&self) -> AccountUpdatedNotification {
        let nobody = AccountUpdatedNotification { auth_mode: None, plan_type: None };
        match self.state.logins.current() {
            Ok(Some(login)) => AccountUpdatedNotification {
                auth_mode: Some(login.mode()),
                plan_type: Some(login.plan_type()),
            },
            _ => match self.credentials().load() {
                Ok(Some(_)) => AccountUpdatedNotification { auth_mode: Some(AuthMode::Apikey), ..nobody },
                _ => nobody,
            },
        }
    }

    /// Whether a ChatGPT account is logged in.
    pub(crate) fn has_account(&self) -> bool {
        self.state.logins.current().is_ok_and(|login| login.is_some())
    }

    fn login(&self) -> Result<ProviderLogin, RuntimeError> {
        let provider = self.state.loader.startup(None).config.provider;
        if !provider.requires_openai_auth {
            return Ok(ProviderLogin::NotNeeded);
        }
        if let Some(login) = self.state.logins.current().map_err(unreadable)? {
            return Ok(ProviderLogin::Account(login));
        }
        let key = self.state.providers.credential(&provider).map_err(unreadable)?;
        Ok(key.map_or(ProviderLogin::Nobody, |_| ProviderLogin::ApiKey))
    }

    /// Only ChatGPT accounts have rate limits that can be read.
    pub async fn account_rate_limits(&self) -> Result<GetAccountRateLimitsResponse, RuntimeError> {
        let Some(login) = self.state.logins.fresh().await? else {
            let has_key = self.credentials().load().map_err(unreadable)?.is_some();
            return Err(RuntimeError::Login(match has_key {
                true => "chatgpt authentication required to read rate limits",
                false => "codex account authentication required to read rate limits",
            }));
        };
        let base_url = self.state.loader.startup(None).config.login.chatgpt_base_url;
        let account_id = login.account_id();
        let read =
            accounts::read_usage(self.state.mcp.http(), &base_url, login.token(), account_id.as_deref());
        read.await.map_err(|error| RuntimeError::LimitsUnread(error.to_string()))
    }

    /// Cancels a login that waits for the user.
    pub fn cancel_login(
        &self,
        params: CancelLoginAccountParams,
    ) -> Result<CancelLoginAccountResponse, RuntimeError> {
        if !is_uuid(&params.login_id) {
            return Err(RuntimeError::InvalidLoginId(params.login_id));
        }
        let status = match self.state.logins.cancel(&params.login_id) {
            true => CancelLoginAccountStatus::Canceled,
            false => CancelLoginAccountStatus::NotFound,
        };
        Ok(CancelLoginAccountResponse { status })
    }

    /// Logs in, or starts a login: then `done` is called when the user has finished. `login_id` names the waiting
    /// login.
    pub async fn log_in(
        &self,
        params: LoginAccountParams,
        originator: &str,
        done: impl FnOnce(String) -> LoginDone,
    ) -> Result<LoginAccountResponse, RuntimeError> {
        let forced = self.state.loader.startup(None).config.login.forced_method;
        if let Some(refused) = refusal(&params, forced) {
            return Err(RuntimeError::Login(refused));
        }
        let logins = &self.state.logins;
        let is_external = matches!(params, LoginAccountParams::ChatgptAuthTokens { .. });
        if logins.is_external() && !is_external {
            return Err(RuntimeError::Login(
                "External auth is active. Use account/login/start (chatgptAuthTokens) to update it or \
                 account/logout to clear it.",
            ));
        }
        let login_id = IdMaker::random(self.state.clock.stamp());
        let failed = |error: accounts::AccountLoginError| RuntimeError::LoginFailed(error.to_string());
        match params {
            LoginAccountParams::ApiKey { api_key } => {
                if api_key.trim().is_empty() {
                    return Err(RuntimeError::Login("apiKey must not be empty"));
                }
                logins.cancel_all();
                let key = SecretText::new(api_key.trim());
                self.credentials().save_api_key(&key).map_err(unreadable)?;
                Ok(LoginAccountResponse::ApiKey)
            }
            LoginAccountParams::Chatgpt => {
                let done = done(login_id.clone());
                let begun = logins.begin_browser(login_id.clone(), originator, done).await;
                Ok(LoginAccountResponse::Chatgpt { login_id, auth_url: begun.map_err(failed)? })
            }
            LoginAccountParams::ChatgptDeviceCode => {
                let begun = logins.begin_device(login_id.clone(), done(login_id.clone())).await;
                let (verification_url, user_code) = begun.map_err(failed)?;
                Ok(LoginAccountResponse::ChatgptDeviceCode { login_id, verification_url, user_code })
            }
            LoginAccountParams::ChatgptAuthTokens { access_token, chatgpt_account_id, chatgpt_plan_type } => {
                logins.check_workspace(&chatgpt_account_id)?;
                logins.cancel_all();
                logins.set_external(ExternalTokens {
                    access_token: SecretText::new(access_token),
                    account_id: chatgpt_account_id,
                    plan: chatgpt_plan_type,
                });
                Ok(LoginAccountResponse::ChatgptAuthTokens)
            }
        }
    }

    pub fn log_out(&self) -> Result<(), RuntimeError> {
        self.state.logins.cancel_all();
        self.state.logins.forget_external();
        self.credentials().clear().map(|_| ()).map_err(unreadable)
    }

    fn credentials(&self) -> Credentials {
        Credentials::new(self.state.loader.home())
    }
}

#[expect(clippy::needless_pass_by_value, reason = "errors are mapped by it")]
fn unreadable(error: ConfigError) -> RuntimeError {
    RuntimeError::Credentials(error.to_string())
}

/// Why this way to log in is forbidden, if it is.
fn refusal(params: &LoginAccountParams, forced: Option<ForcedLoginMethod>) -> Option<&'static str> {
    match (params, forced?) {
        (LoginAccountParams::ApiKey { .. }, ForcedLoginMethod::Chatgpt) => {
            Some("API key login is disabled. Use ChatGPT login instead.")
        }
        (LoginAccountParams::ChatgptAuthTokens { .. }, ForcedLoginMethod::Api) => {
            Some("External ChatGPT auth is disabled. Use API key login instead.")
        }
        (LoginAccountParams::Chatgpt | LoginAccountParams::ChatgptDeviceCode, ForcedLoginMethod::Api) => {
            Some("ChatGPT login is disabled. Use API key login instead.")
        }
        _ => None,
    }
}
