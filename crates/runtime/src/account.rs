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
        let LoginAccountParams::ApiKey { api_key } = params else {
            return Err(RuntimeError::Login("only login with an API key is supported yet"));
        };
        let forced = self.inner.loader.startup(None).config.login.forced_method;
        if forced == Some(ForcedLoginMethod::Chatgpt) {
            return Err(RuntimeError::Login("API key login is disabled. Use ChatGPT login instead."));
        }
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
