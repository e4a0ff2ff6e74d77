//! Who is logged in at the model provider.

use config::{Credentials, Secret};
use protocol::{
    Account, AuthMode, CancelLoginAccountParams, CancelLoginAccountResponse, CancelLoginAccountStatus,
    ForcedLoginMethod, GetAccountRateLimitsResponse, GetAccountResponse, GetAuthStatusResponse,
    LoginAccountParams,
};

use crate::error::RuntimeError;
use crate::ids::is_uuid;
use crate::runtime::Runtime;

impl Runtime {
    pub fn account(&self) -> Result<GetAccountResponse, RuntimeError> {
        let (key, requires_openai_auth) = self.login()?;
        Ok(GetAccountResponse { account: key.map(|_| Account::ApiKey), requires_openai_auth })
    }

    /// The older way to ask who is logged in. Whoever asks, keys stay here.
    pub fn auth_status(&self) -> Result<GetAuthStatusResponse, RuntimeError> {
        let (key, requires_openai_auth) = self.login()?;
        Ok(GetAuthStatusResponse {
            auth_method: key.map(|_| AuthMode::Apikey),
            auth_token: None,
            requires_openai_auth: Some(requires_openai_auth),
        })
    }

    /// The key of the configured provider, if that needs an OpenAI login, and whether it does.
    fn login(&self) -> Result<(Option<Secret>, bool), RuntimeError> {
        let provider = self.inner.loader.startup(None).config.provider;
        if !provider.requires_openai_auth {
            return Ok((None, false));
        }
        let found = self.credential(&provider, self.inner.loader.environment());
        Ok((found.map_err(|error| RuntimeError::Credentials(error.to_string()))?, true))
    }

    /// Only ChatGPT accounts have limits that can be asked for, and nobody logs in with one here.
    pub fn account_rate_limits(&self) -> Result<GetAccountRateLimitsResponse, RuntimeError> {
        let stored = self.credentials().load();
        let stored = stored.map_err(|error| RuntimeError::Credentials(error.to_string()))?;
        Err(RuntimeError::Login(match stored {
            Some(_) => "chatgpt authentication required to read rate limits",
            None => "codex account authentication required to read rate limits",
        }))
    }

    /// A login with a key is over when it is answered: there is never one to cancel.
    pub fn cancel_login(
        &self,
        params: CancelLoginAccountParams,
    ) -> Result<CancelLoginAccountResponse, RuntimeError> {
        if !is_uuid(&params.login_id) {
            return Err(RuntimeError::InvalidLoginId(params.login_id));
        }
        Ok(CancelLoginAccountResponse { status: CancelLoginAccountStatus::NotFound })
    }

    /// Stores an API key. Threads opened from now on use it.
    pub fn log_in(&self, params: &LoginAccountParams) -> Result<(), RuntimeError> {
        let forced = self.inner.loader.startup(None).config.login.forced_method;
        let api_key = match (params, forced) {
            (LoginAccountParams::ApiKey { .. }, Some(ForcedLoginMethod::Chatgpt)) => {
                return Err(RuntimeError::Login("API key login is disabled. Use ChatGPT login instead."));
            }
            (LoginAccountParams::ApiKey { api_key }, _) => api_key,
            (LoginAccountParams::ChatgptAuthTokens { .. }, Some(ForcedLoginMethod::Api)) => {
                return Err(RuntimeError::Login(
                    "External ChatGPT auth is disabled. Use API key login instead.",
                ));
            }
            (_, Some(ForcedLoginMethod::Api)) => {
                return Err(RuntimeError::Login("ChatGPT login is disabled. Use API key login instead."));
            }
            _ => return Err(RuntimeError::Login("only login with an API key is supported yet")),
        };
        if api_key.trim().is_empty() {
            return Err(RuntimeError::Login("apiKey must not be empty"));
        }
        let stored = self.credentials().save_api_key(&Secret::new(api_key.trim()));
        stored.map_err(|error| RuntimeError::Credentials(error.to_string()))
    }

    pub fn log_out(&self) -> Result<(), RuntimeError> {
        let cleared = self.credentials().clear();
        cleared.map(|_| ()).map_err(|error| RuntimeError::Credentials(error.to_string()))
    }

    fn credentials(&self) -> Credentials {
        Credentials::new(self.inner.loader.home())
    }
}
