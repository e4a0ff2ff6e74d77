//! Who is logged in at the model provider.

use config::{Credentials, Secret};
use protocol::{Account, ForcedLoginMethod, GetAccountResponse, LoginAccountParams};

use crate::error::RuntimeError;
use crate::runtime::Runtime;

impl Runtime {
    pub fn account(&self) -> Result<GetAccountResponse, RuntimeError> {
        let provider = self.inner.loader.startup(None).config.provider;
        let requires_openai_auth = provider.requires_openai_auth;
        let key = if requires_openai_auth {
            let found = self.credential(&provider, self.inner.loader.environment());
            found.map_err(|error| RuntimeError::Credentials(error.to_string()))?
        } else {
            None
        };
        Ok(GetAccountResponse { account: key.map(|_| Account::ApiKey), requires_openai_auth })
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
